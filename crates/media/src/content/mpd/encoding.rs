//! From the bytes of an MPD to its text: the byte-order mark, else the zeros of UTF-16, else what the prolog declares,
//! else UTF-8 (XML 1.0, 4.3.3 and appendix F).

use super::super::{ContentError, Place};
use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE, X_USER_DEFINED};
use std::borrow::Cow;

/// The prolog is at the beginning of a file, and shorter than this.
const PROLOG: usize = 512;
/// What helps where the bytes are no text.
const REMEDY: &str = "save the file as UTF-8, or declare its encoding in the prolog";

/// A text, and what a reader should know of how it was read.
pub(super) struct Decoded<'a> {
    pub text: Cow<'a, str>,
    pub remark: Option<String>,
}

/// The text of these bytes without a byte-order mark.
pub(super) fn decode<'a>(file: &str, bytes: &'a [u8]) -> Result<Decoded<'a>, ContentError> {
    let start = || Some(Place { line: 1, column: 1 });
    let utf_32 = [&[0xff, 0xfe, 0, 0][..], &[0, 0, 0xfe, 0xff], &[b'<', 0, 0, 0], &[0, 0, 0, b'<']];
    if utf_32.iter().any(|mark| bytes.starts_with(mark)) {
        return Err(ContentError::new(file, start(), format!("the file is UTF-32, which is not read: {REMEDY}")));
    }
    if let Some((encoding, mark)) = Encoding::for_bom(bytes) {
        return text(file, &bytes[mark..], encoding).map(|text| Decoded { text, remark: None });
    }
    let wide = match bytes {
        [b'<', 0, ..] => Some(UTF_16LE),
        [0, b'<', ..] => Some(UTF_16BE),
        _ => None,
    };
    if let Some(encoding) = wide {
        return text(file, bytes, encoding).map(|text| Decoded { text, remark: None });
    }
    let Some((label, at)) = declared(bytes) else {
        return text(file, bytes, UTF_8).map(|text| Decoded { text, remark: None });
    };
    let place = Some(Place { line: 1, column: at as u32 + 1 });
    let known = Encoding::for_label_no_replacement(label.as_bytes()).filter(|known| *known != X_USER_DEFINED);
    let Some(encoding) = known else {
        let message = format!("encoding=\"{label}\" is not known: {REMEDY} (<?xml>)");
        return Err(ContentError::new(file, place, message));
    };
    if encoding == UTF_16LE || encoding == UTF_16BE {
        // A prolog that can be read byte by byte is not UTF-16: .NET writes such files.
        let remark = format!("the prolog declares {label}, but the file is not: it is read as UTF-8");
        return text(file, bytes, UTF_8).map(|text| Decoded { text, remark: Some(remark) });
    }
    text(file, bytes, encoding).map(|text| Decoded { text, remark: None })
}

fn text<'a>(file: &str, bytes: &'a [u8], encoding: &'static Encoding) -> Result<Cow<'a, str>, ContentError> {
    if encoding == UTF_8 {
        return std::str::from_utf8(bytes).map(Cow::Borrowed).map_err(|error| {
            let before = String::from_utf8_lossy(&bytes[..error.valid_up_to()]);
            let byte = bytes[error.valid_up_to()];
            let message = format!("byte {byte:#04x} is not UTF-8: {REMEDY}");
            ContentError::new(file, Some(end_of(&before)), message)
        });
    }
    encoding.decode_without_bom_handling_and_without_replacement(bytes).ok_or_else(|| {
        let message = format!("the file is not {}, as it says: {REMEDY}", encoding.name());
        ContentError::new(file, Some(Place { line: 1, column: 1 }), message)
    })
}

/// The place behind a text.
pub(super) fn end_of(before: &str) -> Place {
    let line = before.rfind('\n').map_or(0, |at| at + 1);
    let number = before.bytes().filter(|byte| *byte == b'\n').count() + 1;
    Place { line: number as u32, column: before[line..].chars().count() as u32 + 1 }
}

/// The encoding that a prolog in ASCII declares, and its position.
fn declared(bytes: &[u8]) -> Option<(&str, usize)> {
    let head = &bytes[..bytes.len().min(PROLOG)];
    let ascii = head.iter().position(|byte| !byte.is_ascii()).unwrap_or(head.len());
    let head = std::str::from_utf8(&head[..ascii]).ok()?;
    let prolog = head.strip_prefix("<?xml").and_then(|rest| rest.split_once("?>"))?.0;
    let at = prolog.find("encoding")? + "encoding".len();
    let rest = prolog[at..].trim_start().strip_prefix('=')?.trim_start();
    let quote = rest.chars().next().filter(|c| ['"', '\''].contains(c))?;
    let label = rest[1..].split(quote).next()?;
    Some((label.trim(), head.find(label).unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8]) -> Result<(String, bool), String> {
        let decoded = decode("a.mpd", bytes).map_err(|error| error.to_string())?;
        Ok((decoded.text.into_owned(), decoded.remark.is_some()))
    }

    fn wide(text: &str, big: bool) -> Vec<u8> {
        let unit = |unit: u16| if big { unit.to_be_bytes() } else { unit.to_le_bytes() };
        text.encode_utf16().flat_map(unit).collect()
    }

    #[test]
    fn the_declared_encoding_is_read() {
        let of = |label: &str, byte: u8| {
            let mut bytes = format!("<?xml version='1.0' encoding = '{label}'?><a>").into_bytes();
            bytes.push(byte);
            read(&bytes).map(|(text, _)| text.chars().last().unwrap())
        };
        assert_eq!(of("ISO-8859-1", 0xe9), Ok('\u{e9}'));
        assert_eq!(of("latin1", 0xe9), Ok('\u{e9}'));
        assert_eq!(of("windows-1252", 0x80), Ok('\u{20ac}'));
        assert_eq!(of("windows-1251", 0xe9), Ok('\u{439}'));
        assert_eq!(of("iso-8859-15", 0xa4), Ok('\u{20ac}'));
        let unknown = of("klingon", b'x').unwrap_err();
        assert!(
            unknown.starts_with("a.mpd:1:33: encoding=\"klingon\" is not known: save the file as UTF-8"),
            "{unknown}"
        );
    }

    #[test]
    fn utf_16_is_recognised_with_and_without_its_mark() {
        let prolog = "<?xml version='1.0' encoding='UTF-16'?><a>\u{e9}";
        for big in [false, true] {
            assert_eq!(read(&wide(prolog, big)), Ok((prolog.to_string(), false)));
            assert_eq!(read(&wide(&format!("\u{feff}{prolog}"), big)), Ok((prolog.to_string(), false)));
        }
        assert_eq!(read(prolog.as_bytes()), Ok((prolog.to_string(), true)), "UTF-8 that claims to be UTF-16");
        let odd = [&wide("<a>", false)[..], b"x"].concat();
        assert!(read(&odd).unwrap_err().contains("is not UTF-16LE"));
        assert!(read(b"<\0\0\0").unwrap_err().contains("UTF-32"));
    }

    #[test]
    fn without_a_word_it_is_utf_8_and_a_wrong_byte_has_its_place() {
        assert_eq!(read("\u{feff}<a>\u{e9}".as_bytes()), Ok(("<a>\u{e9}".to_string(), false)));
        let wrong = read(b"<a>\n<b \xc3\xa9=\xe9").unwrap_err();
        assert!(wrong.starts_with("a.mpd:2:6: byte 0xe9 is not UTF-8: save the file as UTF-8"), "{wrong}");
        assert_eq!(read(b""), Ok((String::new(), false)));
    }
}
