//! The text of a file: its encoding and its ends of lines.

use super::TraceError;
use std::borrow::Cow;

/// A file as text, with lines that end in a line feed.
#[derive(Debug)]
pub(super) struct Text<'a> {
    pub(super) content: Cow<'a, str>,
    /// The encoding's name, for people.
    pub(super) encoding: &'static str,
}

const UTF_8_MARK: &[u8] = b"\xef\xbb\xbf";

impl<'a> Text<'a> {
    /// Reads UTF-8 with or without a byte-order mark, or UTF-16 with one. Lines may end in LF, CRLF or CR.
    ///
    /// Errors: the line of the first byte or character that no text has.
    pub(super) fn of(bytes: &'a [u8]) -> Result<Self, TraceError> {
        let (text, encoding) = match bytes {
            [0xff, 0xfe, rest @ ..] => (Cow::Owned(utf_16(rest, u16::from_le_bytes)?), "UTF-16LE"),
            [0xfe, 0xff, rest @ ..] => (Cow::Owned(utf_16(rest, u16::from_be_bytes)?), "UTF-16BE"),
            _ => (Cow::Borrowed(utf_8(bytes.strip_prefix(UTF_8_MARK).unwrap_or(bytes))?), "UTF-8"),
        };
        let content =
            if text.contains('\r') { Cow::Owned(text.replace("\r\n", "\n").replace('\r', "\n")) } else { text };
        if let Some(at) = content.bytes().position(|byte| byte < b' ' && !matches!(byte, b'\t' | b'\n')) {
            return Err(no_text(content[..at].as_bytes(), &format!("the byte {:#04x}", content.as_bytes()[at])));
        }
        Ok(Text { content, encoding })
    }
}

fn utf_8(bytes: &[u8]) -> Result<&str, TraceError> {
    std::str::from_utf8(bytes).map_err(|error| {
        let at = error.valid_up_to();
        // A compressed file has control bytes before the first one that is not UTF-8.
        let control = bytes[..at].iter().position(|byte| *byte < b' ' && !matches!(byte, b'\t' | b'\n' | b'\r'));
        let at = control.unwrap_or(at);
        no_text(&bytes[..at], &format!("the byte {:#04x}", bytes[at]))
    })
}

fn utf_16(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> Result<String, TraceError> {
    let pairs = bytes.chunks_exact(2);
    let odd = !pairs.remainder().is_empty();
    let mut text = String::with_capacity(bytes.len() / 2);
    for unit in char::decode_utf16(pairs.map(|pair| unit([pair[0], pair[1]]))) {
        match unit {
            Ok(character) => text.push(character),
            Err(_) => return Err(no_text(text.as_bytes(), "half of a character of UTF-16")),
        }
    }
    if odd { Err(no_text(text.as_bytes(), "half of a character of UTF-16")) } else { Ok(text) }
}

fn no_text(before: &[u8], what: &str) -> TraceError {
    let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
    TraceError::at(line, format!("this is no text: it holds {what}"))
        .expecting("a text file in UTF-8, or in UTF-16 with a byte-order mark; unpack or convert it first")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn utf_16(text: &str, bytes: fn(u16) -> [u8; 2]) -> Vec<u8> {
        "\u{feff}".encode_utf16().chain(text.encode_utf16()).flat_map(bytes).collect()
    }

    #[test]
    fn encodings_and_ends_of_lines_make_no_difference() {
        let text = "t;µ\n1;2\n";
        let marked = format!("\u{feff}{text}");
        let read = |bytes: &[u8]| Text::of(bytes).map(|text| (text.content.into_owned(), text.encoding)).unwrap();
        assert_eq!(read(text.as_bytes()), (text.into(), "UTF-8"));
        assert_eq!(read(marked.as_bytes()), (text.into(), "UTF-8"));
        assert_eq!(read(&utf_16(text, u16::to_le_bytes)), (text.into(), "UTF-16LE"));
        assert_eq!(read(&utf_16(text, u16::to_be_bytes)), (text.into(), "UTF-16BE"));
        assert_eq!(read(b"1\r\n2\r3\n\r4").0, "1\n2\n3\n\n4");
    }

    #[test]
    fn what_is_no_text_is_refused_with_its_line() {
        let error = |bytes: &[u8]| Text::of(bytes).unwrap_err().to_string();
        assert!(error(b"1\n2\n\x1f\x8b\x08\n").starts_with("line 3: this is no text: it holds the byte 0x1f"));
        assert!(error(b"1\n\xff\xfe2\n").starts_with("line 2: this is no text: it holds the byte 0xff"));
        assert!(error(b"1\0\n2\n").starts_with("line 1: this is no text: it holds the byte 0x00"));
        let mut cut = utf_16("1\n2", u16::to_le_bytes);
        cut.pop();
        assert!(error(&cut).starts_with("line 2: this is no text: it holds half of a character"));
        assert!(error(b"\xff\xfe\x00\xd8\x0a\x00").starts_with("line 1: this is no text: it holds half"));
    }
}
