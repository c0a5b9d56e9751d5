//! The media types of files, by their extension.

use std::path::Path;

/// Types that the general table lacks, or has under a name from before the registration at IANA: HLS (RFC 8216), tracks
/// of CMAF (ISO/IEC 23000-19), MP4 (RFC 4337), timed text (W3C TTML), E-AC-3 (RFC 4598), and JavaScript (RFC 9239).
const REGISTERED: [(&str, &str); 9] = [
    ("m3u8", "application/vnd.apple.mpegurl"),
    ("cmfv", "video/mp4"),
    ("cmfa", "audio/mp4"),
    ("cmft", "application/mp4"),
    ("m4v", "video/mp4"),
    ("dfxp", "application/ttml+xml"),
    ("ec3", "audio/eac3"),
    ("js", "text/javascript"),
    ("mjs", "text/javascript"),
];

/// The type of files with any other extension, or none (RFC 9110 section 8.3).
const UNKNOWN: &str = "application/octet-stream";

/// The type of the file with this path. Upper and lower case are the same.
pub(super) fn media_type(path: &str) -> &'static str {
    let extension = Path::new(path).extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    let registered = REGISTERED.iter().find(|(known, _)| known.eq_ignore_ascii_case(extension));
    let listed = || new_mime_guess::from_ext(extension).first_raw().unwrap_or(UNKNOWN);
    registered.map_or_else(listed, |(_, media_type)| media_type)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn media_files_have_their_registered_types() {
        for (file, expected) in [
            ("/a/manifest.mpd", "application/dash+xml"),
            ("/a/MANIFEST.MPD", "application/dash+xml"),
            ("/a/1.m4s", "video/iso.segment"),
            ("/a/1.mp4", "video/mp4"),
            ("/a/1.m4v", "video/mp4"),
            ("/a/1.m4a", "audio/mp4"),
            ("/a/1.cmfv", "video/mp4"),
            ("/a/1.cmfa", "audio/mp4"),
            ("/a/1.cmft", "application/mp4"),
            ("/a/1.ts", "video/mp2t"),
            ("/a/master.m3u8", "application/vnd.apple.mpegurl"),
            ("/a/text.vtt", "text/vtt"),
            ("/a/text.ttml", "application/ttml+xml"),
            ("/a/1.webm", "video/webm"),
            ("/a/page.html", "text/html"),
            ("/a/dash.all.min.js", "text/javascript"),
            ("/a/player.css", "text/css"),
            ("/a/list.json", "application/json"),
            ("/a/nothing", UNKNOWN),
            ("/a.mpd/nothing", UNKNOWN),
            ("/a/.mpd", UNKNOWN),
        ] {
            assert_eq!(media_type(file), expected, "{file}");
        }
    }
}
