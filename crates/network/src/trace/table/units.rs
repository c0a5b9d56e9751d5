//! Units of rates and times, and their spellings.

use anabranch_units::nearest;
use anabranch_units::text::Problem;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::borrow::Cow;
use std::fmt;

/// What a table's rates are measured in: bits or bytes, with a prefix, in a second or in the interval of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateUnit {
    prefix: Prefix,
    bytes: bool,
    per_interval: bool,
}

/// A factor in front of bits or bytes. A `K` is 1000, as in all rates of networks; 1024 is written `Ki`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Prefix {
    One,
    Kilo,
    Mega,
    Giga,
    Tera,
    Kibi,
    Mebi,
    Gibi,
}

/// A prefix: its symbol as it is written, its symbols as they are read, its word, its factor.
type PrefixRow = (Prefix, &'static str, &'static [&'static str], &'static str, f64);

/// The binary prefixes come first, as `Ki` begins with `K`.
const PREFIXES: [PrefixRow; 8] = [
    (Prefix::Kibi, "Ki", &["Ki", "ki"], "kibi", 1024.0),
    (Prefix::Mebi, "Mi", &["Mi", "mi"], "mebi", 1_048_576.0),
    (Prefix::Gibi, "Gi", &["Gi", "gi"], "gibi", 1_073_741_824.0),
    (Prefix::Kilo, "k", &["k", "K"], "kilo", 1e3),
    (Prefix::Mega, "M", &["M", "m"], "mega", 1e6),
    (Prefix::Giga, "G", &["G", "g"], "giga", 1e9),
    (Prefix::Tera, "T", &["T", "t"], "tera", 1e12),
    (Prefix::One, "", &[""], "", 1.0),
];

/// What is said of an unknown unit. Every combination is read; these are the usual ones.
pub(crate) const EXPECTED_UNIT: &str =
    "one of b/s, kb/s, Mb/s, Gb/s, B/s, kB/s, MB/s, GB/s, KiB/s, MiB/s, B per interval, or the like";

const SECOND: [&str; 6] = ["s", "sec", "secs", "second", "seconds", "sek"];

const INTERVAL: [&str; 6] = ["interval", "step", "sample", "row", "line", "period"];

impl RateUnit {
    /// Bits per second.
    pub const BITS_PER_SECOND: RateUnit = RateUnit::bits(Prefix::One);
    /// 1000 bits per second.
    pub const KILOBITS_PER_SECOND: RateUnit = RateUnit::bits(Prefix::Kilo);
    /// 1 000 000 bits per second.
    pub const MEGABITS_PER_SECOND: RateUnit = RateUnit::bits(Prefix::Mega);
    /// Bytes per second.
    pub const BYTES_PER_SECOND: RateUnit = RateUnit { bytes: true, ..RateUnit::BITS_PER_SECOND };

    const fn bits(prefix: Prefix) -> Self {
        RateUnit { prefix, bytes: false, per_interval: false }
    }

    /// Every unit.
    pub fn all() -> impl Iterator<Item = RateUnit> {
        let kinds = [(false, false), (true, false), (false, true), (true, true)];
        kinds.into_iter().flat_map(|(bytes, per_interval)| {
            PREFIXES.iter().map(move |(prefix, ..)| RateUnit { prefix: *prefix, bytes, per_interval })
        })
    }

    /// Name in scenarios and on the command line.
    pub fn name(self) -> String {
        let what = if self.bytes { "B" } else { "b" };
        let per = if self.per_interval { " per interval" } else { "/s" };
        format!("{}{what}{per}", self.row().1)
    }

    /// Whether amounts are counted in each interval, rather than in each second.
    pub fn is_per_interval(self) -> bool {
        self.per_interval
    }

    /// How many bits one of it has.
    pub fn factor(self) -> f64 {
        self.row().4 * if self.bytes { 8.0 } else { 1.0 }
    }

    /// The unit with this name: all spellings that a heading may have are read.
    ///
    /// Errors: the unit is unknown, or it may be bits as well as bytes.
    pub fn read(text: &str) -> Result<Self, Problem> {
        match UnitIn::heading(text) {
            UnitIn::One(unit) => Ok(unit),
            UnitIn::None | UnitIn::Unclear => {
                let names: Vec<String> = RateUnit::all().map(RateUnit::name).collect();
                let nearest = nearest(text, names.iter().map(String::as_str));
                let message = format!("`{text}` is unknown");
                Err(Problem { message, expected: EXPECTED_UNIT.into(), nearest })
            }
        }
    }

    fn row(self) -> &'static PrefixRow {
        PREFIXES.iter().find(|(prefix, ..)| *prefix == self.prefix).expect("every prefix has a row")
    }
}

impl fmt::Display for RateUnit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name())
    }
}

impl Serialize for RateUnit {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.name())
    }
}

impl<'de> Deserialize<'de> for RateUnit {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;
        impl de::Visitor<'_> for Text {
            type Value = RateUnit;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(EXPECTED_UNIT)
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<RateUnit, E> {
                RateUnit::read(text).map_err(E::custom)
            }
        }
        deserializer.deserialize_any(Text)
    }
}

impl JsonSchema for RateUnit {
    fn schema_name() -> Cow<'static, str> {
        "RateUnit".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "x-expected": EXPECTED_UNIT })
    }
}

/// What a heading says about the unit of a rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UnitIn {
    /// Nothing.
    None,
    /// This.
    One(RateUnit),
    /// Something that may be bits as well as bytes, or several units.
    Unclear,
}

impl UnitIn {
    /// The unit at word boundaries of a heading, such as `wifi_mbps`, `Throughput (Mbit/s)`, `rateMBps` or
    /// `bytes_per_second`.
    pub(super) fn heading(heading: &str) -> Self {
        let words = words(heading);
        let mut found = UnitIn::None;
        for position in 0..words.len() {
            found = match (found, UnitIn::at(&words[position..])) {
                (found, UnitIn::None) => found,
                (UnitIn::None, new) => new,
                (found, new) if found == new => found,
                _ => UnitIn::Unclear,
            };
        }
        found
    }

    /// The unit with which these words begin.
    fn at(words: &[&str]) -> Self {
        let Some((first, rest)) = words.split_first() else { return UnitIn::None };
        let rate = |word: &str| {
            let shouted = word.len() > 1 && word.chars().all(char::is_uppercase);
            let amount = Amount::of(word.strip_suffix("ps").or(word.strip_suffix("PS"))?)?;
            Some(if shouted && !amount.spelt { UnitIn::Unclear } else { UnitIn::One(amount.per(false)) })
        };
        if let Some(found) = rate(first).or_else(|| at_the_end_of(first, &rate)) {
            return found;
        }
        let Some(amount) = Amount::of(first) else { return UnitIn::None };
        let rest = match rest {
            [per, rest @ ..] if *per == "/" || per.eq_ignore_ascii_case("per") => rest,
            rest => rest,
        };
        let Some(per) = rest.first() else { return UnitIn::None };
        let lower = per.to_lowercase();
        // Where all is in capitals, `MB/S` may be either.
        let shouted = *per == "S" && !amount.spelt;
        match () {
            () if INTERVAL.contains(&lower.as_str()) => UnitIn::One(amount.per(true)),
            () if !SECOND.contains(&lower.as_str()) => UnitIn::None,
            () if shouted => UnitIn::Unclear,
            () => UnitIn::One(amount.per(false)),
        }
    }
}

/// A unit at the end of a word in camel case, as in `rateMbps`. In `rateKBps` the `K` belongs to it; whether the `k` of
/// `linkBps` does is unknown.
fn at_the_end_of(word: &str, rate: &dyn Fn(&str) -> Option<UnitIn>) -> Option<UnitIn> {
    let mut previous = None::<char>;
    for (at, character) in word.char_indices() {
        let before = previous.replace(character).filter(|before| before.is_lowercase() && character.is_uppercase());
        if let Some((before, found)) = before.and_then(|before| Some((before, rate(&word[at..])?))) {
            let prefix = character == 'B' && matches!(before, 'k' | 'm' | 'g' | 't' | 'i');
            return Some(if prefix { UnitIn::Unclear } else { found });
        }
    }
    None
}

/// Bits or bytes with a prefix.
#[derive(Clone, Copy)]
struct Amount {
    prefix: Prefix,
    bytes: bool,
    /// Whether it says `bit` or `byte`, so that its case has no meaning.
    spelt: bool,
}

impl Amount {
    fn per(self, per_interval: bool) -> RateUnit {
        RateUnit { prefix: self.prefix, bytes: self.bytes, per_interval }
    }

    fn of(word: &str) -> Option<Self> {
        let spelt = |text: &str| match text.to_lowercase().as_str() {
            "bit" | "bits" => Some(false),
            "byte" | "bytes" | "octet" | "octets" => Some(true),
            _ => None,
        };
        for (prefix, _, symbols, name, _) in &PREFIXES {
            let full = word.get(..name.len()).filter(|start| start.eq_ignore_ascii_case(name));
            if let Some(bytes) = full.and_then(|_| spelt(&word[name.len()..])) {
                return Some(Amount { prefix: *prefix, bytes, spelt: true });
            }
            for symbol in *symbols {
                let Some(rest) = word.strip_prefix(symbol) else { continue };
                if let Some(bytes) = spelt(rest) {
                    return Some(Amount { prefix: *prefix, bytes, spelt: true });
                }
                // A small `m` or `g` in front of a capital `B` is no unit in use; `k` is.
                let small = matches!(*symbol, "m" | "g" | "t" | "mi" | "gi" | "ki");
                match rest {
                    "b" => return Some(Amount { prefix: *prefix, bytes: false, spelt: false }),
                    "B" if !small => return Some(Amount { prefix: *prefix, bytes: true, spelt: false }),
                    _ => {}
                }
            }
        }
        None
    }
}

/// The words of a heading: runs of letters and digits, and each `/`.
pub(super) fn words(heading: &str) -> Vec<&str> {
    let mut words = Vec::new();
    for part in heading.split_inclusive('/') {
        let (text, slash) = part.strip_suffix('/').map_or((part, None), |text| (text, Some("/")));
        words.extend(text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()));
        words.extend(slash);
    }
    words
}

/// What a table's times are measured in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum TimeUnit {
    /// Seconds.
    #[serde(rename = "s")]
    Seconds,
    /// Thousandths of a second.
    #[serde(rename = "ms")]
    Milliseconds,
    /// Millionths of a second.
    #[serde(rename = "us")]
    Microseconds,
    /// Nanoseconds.
    #[serde(rename = "ns")]
    Nanoseconds,
}

impl TimeUnit {
    /// Every unit with its name.
    pub const NAMES: [(&'static str, TimeUnit); 4] = [
        ("s", TimeUnit::Seconds),
        ("ms", TimeUnit::Milliseconds),
        ("us", TimeUnit::Microseconds),
        ("ns", TimeUnit::Nanoseconds),
    ];

    /// Name in scenarios and on the command line.
    pub fn name(self) -> &'static str {
        TimeUnit::NAMES.iter().find(|(_, unit)| *unit == self).map_or("", |(name, _)| name)
    }

    /// Its length in nanoseconds.
    pub(super) fn nanos(self) -> i128 {
        match self {
            TimeUnit::Seconds => 1_000_000_000,
            TimeUnit::Milliseconds => 1_000_000,
            TimeUnit::Microseconds => 1_000,
            TimeUnit::Nanoseconds => 1,
        }
    }

    /// The unit that this word of a heading, in small letters, is.
    pub(super) fn of_word(word: &str) -> Option<Self> {
        match word {
            "s" | "sec" | "secs" | "second" | "seconds" | "sek" | "sekunde" | "sekunden" => Some(TimeUnit::Seconds),
            "ms" | "msec" | "msecs" | "millis" | "millisecond" | "milliseconds" => Some(TimeUnit::Milliseconds),
            "us" | "\u{b5}s" | "\u{3bc}s" | "usec" | "usecs" | "micros" | "microsecond" | "microseconds" => {
                Some(TimeUnit::Microseconds)
            }
            "ns" | "nsec" | "nsecs" | "nanos" | "nanosecond" | "nanoseconds" => Some(TimeUnit::Nanoseconds),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unit(heading: &str) -> String {
        match UnitIn::heading(heading) {
            UnitIn::One(unit) => unit.name(),
            UnitIn::None => "none".into(),
            UnitIn::Unclear => "unclear".into(),
        }
    }

    #[test]
    fn units_are_read_at_word_boundaries_with_their_case() {
        for (expected, headings) in [
            ("b/s", "bps|rate_bps|bit/s|bits per second|b/s|bits_per_s|Bits/sec|BIT/S|att bits_per_second"),
            ("kb/s", "kbps|Kbps|DL (kbit/s)|rate [kbps]|kb/s|Kb/s|kilobits per second|KBit/s|kbit_s|KBITS/SEC"),
            ("Mb/s", "mbps|wifi_mbps|Throughput (Mbit/s)|Mbps|Mb/s|mb/s|MBit/s|mbps_wifi|rateMbps|megabit/s|Mbits/sec"),
            ("Gb/s", "rate_gbps|Gbps|Gb/s|Gbit/s|gigabits_per_second"),
            ("B/s", "Bps|bytes/s|bytes_per_s|B/s|Byte/s|bytes per second|octets/s"),
            ("kB/s", "KBps|kBps|KB/s|kB/s|kbytes/s|kilobytes_per_second|rate (KB/s)"),
            ("MB/s", "throughput_MBps|MB/s|bandwidthMBps|MBytes/sec|MB_s|megabytes per second"),
            ("GB/s", "GBps|GB/s"),
            ("Mib/s", "Mib/s|Mibit/s|Mibps"),
            ("MiB/s", "MiB/s|MiBps|mebibytes/s"),
            ("B per interval", "B per interval|bytes_per_interval|bytes/interval|bytes per sample"),
            ("none", "rate|bitrate|MB|transfer_MB|MB/min|bytes_per_ms|mbs|pps|bytes|steps|apps|time_s|mbit/h"),
            ("unclear", "MBPS|KBPS|BPS|MB/S|linkBps|ratekBps|mBps|mbps or kbps"),
        ] {
            for heading in headings.split('|') {
                assert_eq!(unit(heading), expected, "{heading}");
            }
        }
    }

    #[test]
    fn every_unit_is_read_by_its_name() {
        let units: Vec<RateUnit> = RateUnit::all().collect();
        assert_eq!(units.len(), 32);
        for unit in units {
            assert_eq!(RateUnit::read(&unit.name()), Ok(unit));
        }
        assert_eq!(RateUnit::read("Mbs").unwrap_err().nearest.as_deref(), Some("Mb/s"));
        assert_eq!(RateUnit::MEGABITS_PER_SECOND.factor(), 1e6);
        assert_eq!(RateUnit::read("KiB/s").unwrap().factor(), 8192.0);
    }
}
