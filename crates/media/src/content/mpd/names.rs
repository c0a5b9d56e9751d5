//! Where the media segments of an MPD are: paths on the server that the MPD is from.
//!
//! ISO/IEC 23009-1, 5.3.9.4.4 (templates), 5.6 (BaseURL, of which the first one of each level counts), and RFC 3986,
//! section 5.2, without queries. The name of a server in an address is not compared: who asks for the path has come to
//! this one.

use super::axis::Piece;
use super::xml::Element;
use percent_encoding::percent_decode_str;
use std::sync::Arc;

/// A longer BaseURL is not read: servers take no longer addresses, and each level's address has those of the levels
/// around it in front.
const MOST_ADDRESS: usize = 2_048;

/// The widest number of a template.
const MOST_DIGITS: usize = 20;

/// How the files of media segments are named.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Names {
    /// They are not, or are parts of one file.
    #[default]
    Unknown,
    /// By a template, and the number of the first one.
    Template { media: String, first: u64 },
    /// By a list.
    Listed(Vec<Option<String>>),
}

/// An address within another one; `base` is where relative ones begin.
pub(super) fn within(base: &str, address: &str) -> String {
    let authority =
        base.find("://").map_or(0, |at| base[at + 3..].find('/').map_or(base.len(), |slash| at + 3 + slash));
    match address.trim() {
        "" => base.to_string(),
        whole if whole.contains("://") => whole.to_string(),
        rooted if rooted.starts_with('/') => format!("{}{rooted}", &base[..authority]),
        relative => {
            let folder = base.rfind('/').filter(|&slash| slash >= authority).map_or(base.len(), |slash| slash + 1);
            // A server's name needs a slash behind it, and a file's name without a folder makes room.
            let folder = if folder == base.len() && !base.contains('/') { "" } else { &base[..folder] };
            let separator = if authority == base.len() && authority > 0 { "/" } else { "" };
            format!("{folder}{separator}{relative}")
        }
    }
}

/// The address of a level's first BaseURL, within that of the level around it. Levels without one share it.
pub(super) fn base(outer: &Arc<str>, level: &Element<'_>) -> Arc<str> {
    let own = level.child("BaseURL").and_then(|element| element.content());
    match own.filter(|address| address.len() <= MOST_ADDRESS) {
        Some(address) => within(outer, address).into(),
        None => outer.clone(),
    }
}

/// The file that a server's address or path names: decoded, without query, empty parts and dots.
pub fn file_of(address: &str) -> String {
    let path = match address.split_once("://") {
        Some((_, rest)) => rest.split_once('/').map_or("", |(_, path)| path),
        None => address,
    };
    let path = path.split(['?', '#']).next().unwrap_or_default();
    let decoded = percent_decode_str(path).decode_utf8_lossy();
    let mut parts = Vec::new();
    for part in decoded.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            name => parts.push(name),
        }
    }
    format!("/{}", parts.join("/"))
}

impl Names {
    /// The addresses of these media segments of a representation (its `id` and bandwidth), relative to the MPD where
    /// they are relative.
    pub fn of(&self, pieces: &[Piece], representation: (&str, u64)) -> Vec<Option<String>> {
        let name_of = |piece: &Piece| match self {
            Names::Unknown => None,
            Names::Listed(names) => names.get(piece.index as usize).cloned().flatten(),
            Names::Template { media, first } => {
                fill(media, representation, first.saturating_add(piece.index), piece.tick)
            }
        };
        pieces.iter().map(name_of).collect()
    }
}

/// A template for one media segment; `None` if it names something else than media segments have.
fn fill(template: &str, (id, bandwidth): (&str, u64), number: u64, tick: u64) -> Option<String> {
    let mut filled = String::with_capacity(template.len() + 16);
    let mut parts = template.split('$');
    filled.push_str(parts.next()?);
    while let (Some(identifier), Some(text)) = (parts.next(), parts.next()) {
        let (identifier, width) = match identifier.split_once("%0") {
            Some((identifier, format)) => (identifier, format.strip_suffix('d')?.parse().ok()?),
            None => (identifier, 1),
        };
        if width > MOST_DIGITS {
            return None;
        }
        match identifier {
            "" => filled.push('$'),
            "RepresentationID" => filled.push_str(id),
            "Number" => filled.push_str(&format!("{number:0width$}")),
            "Bandwidth" => filled.push_str(&format!("{bandwidth:0width$}")),
            "Time" => filled.push_str(&format!("{tick:0width$}")),
            _ => return None,
        }
        filled.push_str(text);
    }
    Some(filled)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_relative_to_the_one_around_them() {
        for (base, address, expected) in [
            ("", "a/b.mpd", "a/b.mpd"),
            ("a/b.mpd", "c.m4s", "a/c.m4s"),
            ("b.mpd", "c/d.m4s", "c/d.m4s"),
            ("/a/b/", "c", "/a/b/c"),
            ("/a/b/", "/c", "/c"),
            ("/a/b.mpd", " ", "/a/b.mpd"),
            ("http://x", "c", "http://x/c"),
            ("http://x/a/b", "c", "http://x/a/c"),
            ("http://x/a/b", "/c", "http://x/c"),
            ("/a/", "https://y/z/", "https://y/z/"),
        ] {
            assert_eq!(within(base, address), expected, "{base} {address}");
        }
    }

    #[test]
    fn a_file_has_one_name() {
        for (address, expected) in [
            ("/a/b.m4s", "/a/b.m4s"),
            ("//a/./b%2Em4s?CMCD=x#y", "/a/b.m4s"),
            ("a/../b", "/b"),
            ("/../../b", "/b"),
            ("http://x:80/a%20b", "/a b"),
            ("http://x", "/"),
            ("", "/"),
        ] {
            assert_eq!(file_of(address), expected, "{address}");
        }
    }

    #[test]
    fn templates_are_filled() {
        let filled = |template: &str| fill(template, ("v1", 800), 7, 90);
        assert_eq!(filled("$RepresentationID$/$Bandwidth$-$Number%05d$.m4s").as_deref(), Some("v1/800-00007.m4s"));
        assert_eq!(filled("$Time$$$.m4s").as_deref(), Some("90$.m4s"));
        assert_eq!(filled("whole.mp4").as_deref(), Some("whole.mp4"));
        for unknown in ["$SubNumber$", "$Number%05x$", "$Number%0$", "$Number%099d$"] {
            assert_eq!(filled(unknown), None, "{unknown}");
        }
    }
}
