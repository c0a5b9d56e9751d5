//! CMCD: what a player reports about itself with a request (CTA-5004, and CTA-5004-B, its version 2).
//!
//! The keys stand in the query argument `CMCD`, percent-encoded, or in four headers. Either is a dictionary of
//! structured fields (RFC 9651): `bl=21300,br=3200,sid="6e2f",su`. In version 2 a number may be a list of numbers with
//! types of objects, `br=(3200;v 128;a)`; that of the video counts here, or the first one.
//!
//! Nothing of it fails a request: what is unknown, malformed or beyond its bound is ignored, and the rest is read.
//! Where a key stands twice, the last valid value counts.

use anabranch_units::{Bandwidth, Duration};
use percent_encoding::percent_decode_str;
use std::borrow::Cow;

/// The headers that carry CMCD, in lower case.
pub const CMCD_HEADERS: [&str; 4] = ["cmcd-object", "cmcd-request", "cmcd-session", "cmcd-status"];

/// The query argument that carries CMCD.
const ARGUMENT: &str = "CMCD";
/// Longer texts are not read: dash.js sends 300 bytes, and a next request's address may add some thousand.
const MOST_BYTES: usize = 16 << 10;
/// The most characters of a session's name (CTA-5004, `sid`).
const MOST_NAME: usize = 64;
/// Times are no longer than a day, in milliseconds.
const MOST_MS: f64 = 86_400_000.0;
/// Rates are no higher than 1 Tb/s, in kbit/s, as bandwidths of MPDs.
const MOST_KBPS: f64 = 1e9;
/// The most digits of a number (RFC 9651, section 3.3.1).
const MOST_DIGITS: usize = 15;

/// What a player reports with a request. What it does not report is `None`, or false.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cmcd {
    /// `bl`: media that is buffered, of the type of the requested object.
    pub buffer: Option<Duration>,
    /// `br`: bitrate of the requested object.
    pub bitrate: Option<Bandwidth>,
    /// `d`: playing time of the requested object.
    pub duration: Option<Duration>,
    /// `dl`: when the first byte is needed, from now on, so that playing goes on.
    pub deadline: Option<Duration>,
    /// `mtp`: throughput that the player measured.
    pub throughput: Option<Bandwidth>,
    /// `ot`: type of the requested object.
    pub object: Option<ObjectType>,
    /// `rtp`: throughput above which the player has no use for more.
    pub enough: Option<Bandwidth>,
    /// `sf`: streaming format.
    pub format: Option<StreamingFormat>,
    /// `sid`: name of the session.
    pub session: Option<String>,
    /// `su`: the object is needed to begin, or to go on after a seek or a stall.
    pub startup: bool,
    /// `tb`: highest bitrate that the player may choose.
    pub top: Option<Bandwidth>,
    /// `v`: version; 1 if it is not stated.
    pub version: Option<u8>,
}

/// Type of a requested object: the key `ot`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObjectType {
    /// `m`: an MPD or a playlist.
    Manifest,
    /// `a`: sound alone.
    Audio,
    /// `v`: pictures alone.
    Video,
    /// `av`: both together.
    Muxed,
    /// `i`: an initialisation segment.
    Init,
    /// `c`, `tt`: text in a file or in a track.
    Text,
    /// `k`: a key of encryption.
    Key,
    /// `o`: something else.
    Other,
}

impl ObjectType {
    fn named(token: &str) -> Option<Self> {
        Some(match token {
            "m" => ObjectType::Manifest,
            "a" => ObjectType::Audio,
            "v" => ObjectType::Video,
            "av" => ObjectType::Muxed,
            "i" => ObjectType::Init,
            "c" | "tt" => ObjectType::Text,
            "k" => ObjectType::Key,
            "o" => ObjectType::Other,
            _ => return None,
        })
    }

    /// Whether it has pictures.
    pub fn has_video(self) -> bool {
        matches!(self, ObjectType::Video | ObjectType::Muxed)
    }
}

/// Streaming format: the key `sf`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamingFormat {
    /// `d`: MPEG-DASH.
    Dash,
    /// `h`: HTTP Live Streaming.
    Hls,
    /// `s`: Smooth Streaming.
    Smooth,
    /// `o`: another one.
    Other,
}

impl StreamingFormat {
    fn named(token: &str) -> Option<Self> {
        Some(match token {
            "d" => StreamingFormat::Dash,
            "h" => StreamingFormat::Hls,
            "s" => StreamingFormat::Smooth,
            "o" => StreamingFormat::Other,
            _ => return None,
        })
    }
}

impl Cmcd {
    /// What is reported in the query of a request's address, without the question mark, and in its headers
    /// ([`CMCD_HEADERS`]). `None` if no known key has a valid value.
    pub fn of<'a>(query: Option<&str>, headers: impl IntoIterator<Item = &'a str>) -> Option<Self> {
        let mut reported = Cmcd::default();
        for argument in query.filter(|query| query.len() <= MOST_BYTES).unwrap_or_default().split('&') {
            if let Some((ARGUMENT, value)) = argument.split_once('=') {
                // `URLSearchParams` writes a blank as a plus sign, `encodeURIComponent` does not.
                let value = value.replace('+', " ");
                if let Ok(text) = percent_decode_str(&value).decode_utf8() {
                    reported.read(&text);
                }
            }
        }
        headers.into_iter().filter(|text| text.len() <= MOST_BYTES).for_each(|text| reported.read(text));
        (reported != Cmcd::default()).then_some(reported)
    }

    /// Reads a dictionary.
    fn read(&mut self, text: &str) {
        for member in Parts::new(text, ',') {
            let (key, value) = member.split_once('=').unwrap_or((member, "?1"));
            if let Some(value) = Value::parse(value.trim()) {
                self.set(key.trim(), &value);
            }
        }
    }

    fn set(&mut self, key: &str, value: &Value<'_>) {
        match key {
            "bl" => replace(&mut self.buffer, value.time()),
            "br" => replace(&mut self.bitrate, value.rate()),
            "d" => replace(&mut self.duration, value.time()),
            "dl" => replace(&mut self.deadline, value.time()),
            "mtp" => replace(&mut self.throughput, value.rate()),
            "ot" => replace(&mut self.object, value.token().and_then(ObjectType::named)),
            "rtp" => replace(&mut self.enough, value.rate()),
            "sf" => replace(&mut self.format, value.token().and_then(StreamingFormat::named)),
            "sid" => replace(&mut self.session, value.name()),
            "su" => {
                if let Value::Flag(flag) = value {
                    self.startup = *flag;
                }
            }
            "tb" => replace(&mut self.top, value.rate()),
            "v" => replace(&mut self.version, value.version()),
            _ => {}
        }
    }
}

fn replace<T>(field: &mut Option<T>, value: Option<T>) {
    if value.is_some() {
        *field = value;
    }
}

/// The value of a key.
#[derive(Clone, Debug, PartialEq)]
enum Value<'a> {
    Flag(bool),
    Number(f64),
    Text(Cow<'a, str>),
    Token(&'a str),
}

impl<'a> Value<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        match *text.as_bytes().first()? {
            b'(' => Value::of_list(text),
            b'"' => unquoted(Parts::new(text, ';').next()?.trim()).map(Value::Text),
            _ => Value::bare(text.split(';').next()?.trim()),
        }
    }

    /// A value without quotation marks and parameters.
    fn bare(text: &'a str) -> Option<Self> {
        match *text.as_bytes().first()? {
            b'?' => match text {
                "?1" => Some(Value::Flag(true)),
                "?0" => Some(Value::Flag(false)),
                _ => None,
            },
            b'-' | b'0'..=b'9' => number(text).map(Value::Number),
            first if first.is_ascii_alphabetic() => Some(Value::Token(text)),
            _ => None,
        }
    }

    /// That of the video in a list, or the first one.
    fn of_list(text: &'a str) -> Option<Self> {
        let (inside, _) = text.strip_prefix('(')?.split_once(')')?;
        let items = || inside.split(' ').filter(|item| !item.is_empty());
        let is_of_video = |item: &&str| item.split(';').skip(1).any(|parameter| matches!(parameter, "v" | "av"));
        let item = items().find(is_of_video).or_else(|| items().next())?;
        Value::bare(item.split(';').next()?)
    }

    fn number_up_to(&self, most: f64) -> Option<f64> {
        match *self {
            Value::Number(number) if (0.0..=most).contains(&number) => Some(number),
            _ => None,
        }
    }

    /// From milliseconds.
    fn time(&self) -> Option<Duration> {
        self.number_up_to(MOST_MS).map(|ms| Duration::from_micros((ms * 1e3) as u64))
    }

    /// From kbit/s.
    fn rate(&self) -> Option<Bandwidth> {
        self.number_up_to(MOST_KBPS).map(|kbps| Bandwidth::from_bps((kbps * 1e3) as u64))
    }

    fn version(&self) -> Option<u8> {
        self.number_up_to(f64::from(u8::MAX)).map(|number| number as u8)
    }

    fn token(&self) -> Option<&'a str> {
        match *self {
            Value::Token(token) => Some(token),
            _ => None,
        }
    }

    fn name(&self) -> Option<String> {
        match self {
            Value::Text(text) if !text.is_empty() && text.chars().count() <= MOST_NAME => Some(text.to_string()),
            _ => None,
        }
    }
}

/// A whole number or a decimal one.
fn number(text: &str) -> Option<f64> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let valid = digits.len() <= MOST_DIGITS + 1 && digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    if valid { text.parse().ok() } else { None }
}

/// The text between quotation marks, without the backslashes before others.
fn unquoted(text: &str) -> Option<Cow<'_, str>> {
    let inside = text.strip_prefix('"')?.strip_suffix('"')?;
    if !inside.contains('\\') {
        return (!inside.contains('"')).then_some(Cow::Borrowed(inside));
    }
    let mut characters = inside.chars();
    let mut plain = String::with_capacity(inside.len());
    while let Some(character) = characters.next() {
        plain.push(match character {
            '\\' => characters.next()?,
            '"' => return None,
            other => other,
        });
    }
    Some(Cow::Owned(plain))
}

/// The parts of a text between separators, but for those in quotation marks or parentheses.
struct Parts<'a> {
    rest: Option<&'a str>,
    separator: char,
}

impl<'a> Parts<'a> {
    fn new(text: &'a str, separator: char) -> Self {
        Parts { rest: Some(text), separator }
    }
}

impl<'a> Iterator for Parts<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        let rest = self.rest.take()?;
        let (mut quoted, mut escaped, mut nested) = (false, false, false);
        for (at, character) in rest.char_indices() {
            if escaped {
                escaped = false;
            } else if quoted {
                (quoted, escaped) = (character != '"', character == '\\');
            } else if character == self.separator && !nested {
                self.rest = Some(&rest[at + character.len_utf8()..]);
                return Some(rest[..at].trim());
            } else {
                quoted = character == '"';
                nested = (nested || character == '(') && character != ')';
            }
        }
        Some(rest.trim()).filter(|part| !part.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn query(query: &str) -> Option<Cmcd> {
        Cmcd::of(Some(query), [])
    }

    fn headers(texts: &[&str]) -> Option<Cmcd> {
        Cmcd::of(None, texts.iter().copied())
    }

    fn kbps(n: u64) -> Option<Bandwidth> {
        Some(Bandwidth::from_bps(n * 1_000))
    }

    fn ms(n: u64) -> Option<Duration> {
        Some(Duration::from_millis(n))
    }

    /// What `@svta/cml-cmcd` 2.3.2, the library of dash.js 5.2.1, makes of one set of values: by query and by headers,
    /// in version 1 and 2.
    const QUERIES: [&str; 2] = [
        "CMCD=bl%3D21300%2Cbr%3D3200%2Cbs%2Ccid%3D%22faec5fc2-ac30%22%2Cd%3D4004%2Cdl%3D18500%2Cmtp%3D25400%2Cnor%3D%22..%252F300kbps%252Ft\
         rack.m4v%22%2Cot%3Dv%2Cpr%3D1.08%2Crtp%3D15000%2Csf%3Dd%2Csid%3D%226e2fb550-c457-11e9-bb97-0800200c9a66%22%2Cst%3Dv%2Csu%2Ctb%3D6000",
        "CMCD=bl%3D21300%2Cbr%3D3200%2Cbs%2Ccid%3D%22faec5fc2-ac30%22%2Cd%3D4004%2Cdl%3D18500%2Cmtp%3D25400%2Cnor%3D(%22..%2F300kbps%2Ftrack\
         .m4v%22)%2Cot%3Dv%2Cpr%3D1.08%2Crtp%3D15000%2Csf%3Dd%2Csid%3D%226e2fb550-c457-11e9-bb97-0800200c9a66%22%2Cst%3Dv%2Csu%2Ctb%3D6000%2C\
         v%3D2",
    ];
    const HEADERS: [&str; 4] = [
        "br=3200,d=4004,ot=v,tb=6000",
        "bl=21300,dl=18500,mtp=25400,nor=\"..%2F300kbps%2Ftrack.m4v\",su",
        "cid=\"faec5fc2-ac30\",sf=d,sid=\"6e2fb550-c457-11e9-bb97-0800200c9a66\",st=v",
        "bs,pr=1.08,rtp=15000",
    ];

    fn expected(version: Option<u8>) -> Cmcd {
        Cmcd {
            buffer: ms(21_300),
            bitrate: kbps(3_200),
            duration: ms(4_004),
            deadline: ms(18_500),
            throughput: kbps(25_400),
            object: Some(ObjectType::Video),
            enough: kbps(15_000),
            format: Some(StreamingFormat::Dash),
            session: Some("6e2fb550-c457-11e9-bb97-0800200c9a66".into()),
            startup: true,
            top: kbps(6_000),
            version,
        }
    }

    #[test]
    fn all_that_dash_js_sends_is_read() {
        assert_eq!(query(QUERIES[0]), Some(expected(None)));
        assert_eq!(query(QUERIES[1]), Some(expected(Some(2))));
        assert_eq!(headers(&HEADERS), Some(expected(None)));
        let among_others = format!("token=a%3D1&{}&x=CMCD", QUERIES[0]);
        assert_eq!(query(&among_others), Some(expected(None)));
    }

    #[test]
    fn of_a_list_the_number_of_the_video_counts() {
        let both = headers(&["bl=(18000;a 21300;v),br=(128;a 3200;av 900;v),d=(4004),tb=(6000;x 7)"]).unwrap();
        assert_eq!(
            (both.buffer, both.bitrate, both.duration, both.top),
            (ms(21_300), kbps(3_200), ms(4_004), kbps(6_000))
        );
        assert_eq!(query("CMCD=bl%3D(21300%3Bv%2018000%3Ba)").unwrap().buffer, ms(21_300));
        assert_eq!(query("CMCD=bl%3D(18000%3Ba+21300%3Bv)").unwrap().buffer, ms(21_300), "a plus sign for the blank");
        assert_eq!(headers(&["br=()", "bl=(100", "d=(a;v)"]), None);
    }

    #[test]
    fn invalid_parts_are_ignored_and_the_rest_is_read() {
        let reported =
            headers(&["bl=-3,br=99999999999,d=x,ot=7,,=,;, rtp = 15000 ,sf=z,sid=\"open,tb=6000", "tb=7000;q=1,su=?0"]);
        assert_eq!(reported, Some(Cmcd { enough: kbps(15_000), top: kbps(7_000), ..Cmcd::default() }));
        for nothing in [
            "",
            "CMCD",
            "CMCD=",
            "CMCD=%FF%FE",
            "CMCD=%",
            "cmcd=bl%3D1",
            "CMCD=bl%3D1e3",
            "CMCD=BL%3D1",
            "CMCD=d%3D1.2.3",
        ] {
            assert_eq!(query(nothing), None, "{nothing}");
        }
        assert_eq!(headers(&["bl=1000,bl=2000,bl=x"]).unwrap().buffer, ms(2_000), "the last valid one");
    }

    #[test]
    fn names_may_hold_anything_and_are_bounded() {
        let named = |sid: &str| headers(&[&format!("sid=\"{sid}\",bl=100")]).and_then(|reported| reported.session);
        assert_eq!(named(r#"a, (b) \"c\" \\d"#).as_deref(), Some(r#"a, (b) "c" \d"#));
        assert_eq!(named(&"x".repeat(64)), Some("x".repeat(64)));
        assert_eq!(named(&"x".repeat(65)), None);
        assert_eq!(named(""), None);
        assert_eq!(headers(&["sid=token"]), None);
        let long = format!("nor=\"{}\",bl=100", "x".repeat(MOST_BYTES));
        assert_eq!(headers(&[&long]), None);
        assert_eq!(headers(&[&long[..20], "bl=100"]).unwrap().buffer, ms(100));
    }

    #[test]
    fn bounds_of_numbers_are_valid_themselves() {
        let reported = headers(&["d=86400000,br=1000000000,bl=0,v=255"]).unwrap();
        assert_eq!((reported.duration, reported.bitrate), (ms(86_400_000), kbps(1_000_000_000)));
        assert_eq!((reported.buffer, reported.version), (ms(0), Some(255)));
        assert_eq!(headers(&["d=86400001,br=1000000001,v=256"]), None);
        assert_eq!(headers(&["d=1.5"]).unwrap().duration, Some(Duration::from_micros(1_500)));
    }

    proptest! {
        #[test]
        fn no_text_is_too_odd(text in "\\PC*", keys in "[a-z=,;()\"\\\\ 0-9.%+&?-]{0,80}") {
            query(&text);
            headers(&[&text, &keys]);
            query(&format!("CMCD={keys}"));
        }
    }
}
