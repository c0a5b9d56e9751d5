//! Conditional requests and ranges: which part of a file a request gets, if any (RFC 9110 sections 13 and 14).

use super::super::dates::http_date;
use httpdate::parse_http_date;
use hyper::header::{
    HeaderMap, HeaderName, IF_MATCH, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_RANGE, IF_UNMODIFIED_SINCE, RANGE,
};
use std::ops::Range;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// What identifies the version of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Version {
    /// A strong validator, in its quotation marks.
    pub(super) etag: String,
    /// Whole seconds since 1970, which is all that a date in a header can express; `None` for files of before.
    modified: Option<u64>,
}

impl Version {
    /// The version of a file of this length, inode number and time of modification (seconds and nanoseconds since
    /// 1970). A file that is replaced gets another inode or another time, one that is written to another time.
    pub(super) fn new(len: u64, inode: u64, modified: (i64, u64)) -> Self {
        let (seconds, nanos) = modified;
        Version { etag: format!("\"{len:x}-{seconds:x}.{nanos:x}-{inode:x}\""), modified: u64::try_from(seconds).ok() }
    }

    /// For the header `Last-Modified`, which is never in the future (section 8.8.2.1).
    pub(super) fn last_modified(&self, now: SystemTime) -> Option<String> {
        let time = UNIX_EPOCH.checked_add(Duration::from_secs(self.modified?))?;
        // A file of a year of five digits has none, whatever the time is now.
        http_date(time).and(http_date(time.min(now)))
    }
}

/// What a request gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Selected {
    /// 200: all of it.
    Whole,
    /// 206: these bytes.
    Part(Range<u64>),
    /// 304: the client has this version.
    NotModified,
    /// 412: the client wants another version.
    PreconditionFailed,
    /// 416: there are no such bytes.
    Unsatisfiable,
}

/// Evaluates the preconditions of a GET or HEAD in the order of section 13.2.2, and then the range.
pub(super) fn select(headers: &HeaderMap, is_get: bool, version: &Version, len: u64) -> Selected {
    let modified_by = |name| Some((version.modified?, date(headers, name)?));
    if headers.contains_key(IF_MATCH) {
        if !lists(headers, IF_MATCH, |tag| tag == version.etag) {
            return Selected::PreconditionFailed;
        }
    } else if modified_by(IF_UNMODIFIED_SINCE).is_some_and(|(modified, date)| modified > date) {
        return Selected::PreconditionFailed;
    }
    if headers.contains_key(IF_NONE_MATCH) {
        // The comparison is weak here: the mark of a weak validator does not count.
        if lists(headers, IF_NONE_MATCH, |tag| tag.strip_prefix("W/").unwrap_or(tag) == version.etag) {
            return Selected::NotModified;
        }
    } else if modified_by(IF_MODIFIED_SINCE).is_some_and(|(modified, date)| modified <= date) {
        return Selected::NotModified;
    }
    // A range has no meaning for HEAD (section 14.2).
    if !is_get || !is_same_version(headers, version) {
        return Selected::Whole;
    }
    single(headers, RANGE).map_or(Selected::Whole, |range| part(range, len))
}

/// The value of a header that may be there once only; `None` if it is not, or is not text.
fn single(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next().filter(|_| values.next().is_none())?;
    value.to_str().ok().map(str::trim)
}

/// The date of a header in seconds since 1970; an invalid one is ignored (section 13.1.3).
fn date(headers: &HeaderMap, name: HeaderName) -> Option<u64> {
    seconds(single(headers, name)?)
}

fn seconds(date: &str) -> Option<u64> {
    parse_http_date(date).ok()?.duration_since(UNIX_EPOCH).ok().map(|since| since.as_secs())
}

/// Whether a list of validators is `*` or has one that matches.
fn lists(headers: &HeaderMap, name: HeaderName, matches: impl Fn(&str) -> bool) -> bool {
    let values = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
    // The validators of this server have no comma, so one that is torn apart at a comma is another server's.
    values.flat_map(|value| value.split(',')).map(str::trim).any(|tag| tag == "*" || matches(tag))
}

/// Whether `If-Range` allows a part: without it, or with exactly this version's validator (section 13.1.5).
fn is_same_version(headers: &HeaderMap, version: &Version) -> bool {
    if !headers.contains_key(IF_RANGE) {
        return true;
    }
    let Some(validator) = single(headers, IF_RANGE) else { return false };
    validator == version.etag || seconds(validator).is_some_and(|date| version.modified == Some(date))
}

/// The part that a `Range` selects of `len` bytes. Other units, several ranges and wrong syntax select the whole, as
/// section 14.2 allows or requires.
fn part(range: &str, len: u64) -> Selected {
    let Some((unit, range)) = range.split_once('=') else { return Selected::Whole };
    let Some((first, last)) = range.trim().split_once('-').filter(|_| unit.eq_ignore_ascii_case("bytes")) else {
        return Selected::Whole;
    };
    match (number(first), number(last)) {
        (Some(first), Some(last)) if first > last => Selected::Whole,
        (Some(first), last) if last.is_some() || last_is_open(range) => {
            let end = last.map_or(len, |last| last.saturating_add(1).min(len));
            if first < len { Selected::Part(first..end) } else { Selected::Unsatisfiable }
        }
        (None, Some(suffix)) if first.is_empty() => match (suffix, len) {
            (0, _) => Selected::Unsatisfiable,
            // The whole of nothing has no first byte that a `Content-Range` could name.
            (_, 0) => Selected::Whole,
            _ => Selected::Part(len.saturating_sub(suffix)..len),
        },
        _ => Selected::Whole,
    }
}

fn last_is_open(range: &str) -> bool {
    range.trim().ends_with('-')
}

/// A number of digits alone. One that is too large for 64 bits is larger than any file.
fn number(digits: &str) -> Option<u64> {
    let valid = !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit());
    valid.then(|| digits.parse().unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::header::HeaderValue;

    const LEN: u64 = 1000;
    const MODIFIED: i64 = 1_700_000_000;
    const DATE: &str = "Tue, 14 Nov 2023 22:13:20 GMT";
    const BEFORE: &str = "Tue, 14 Nov 2023 22:13:19 GMT";
    const AFTER: &str = "Tue, 14 Nov 2023 22:13:21 GMT";

    fn version() -> Version {
        Version::new(LEN, 77, (MODIFIED, 5))
    }

    /// `ETAG` stands for the version's validator.
    fn selected(lines: &[(&str, &str)], is_get: bool, len: u64) -> Selected {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            let value = HeaderValue::from_str(&value.replace("ETAG", &version().etag)).expect("a value");
            headers.append(HeaderName::try_from(*name).expect("a name"), value);
        }
        select(&headers, is_get, &version(), len)
    }

    #[test]
    fn ranges() {
        use Selected::{Part, Unsatisfiable, Whole};
        for (range, len, expected) in [
            ("bytes=0-0", LEN, Part(0..1)),
            ("bytes=10-19", LEN, Part(10..20)),
            ("Bytes=10-19", LEN, Part(10..20)),
            ("bytes=990-", LEN, Part(990..LEN)),
            ("bytes=990-5000", LEN, Part(990..LEN)),
            ("bytes=0-99999999999999999999999999", LEN, Part(0..LEN)),
            ("bytes=0-18446744073709551615", LEN, Part(0..LEN)),
            ("bytes=-10", LEN, Part(990..LEN)),
            ("bytes=-5000", LEN, Part(0..LEN)),
            ("bytes=-0", LEN, Unsatisfiable),
            ("bytes=1000-", LEN, Unsatisfiable),
            ("bytes=1000-1001", LEN, Unsatisfiable),
            ("bytes=99999999999999999999999999-", LEN, Unsatisfiable),
            ("bytes=0-0", 0, Unsatisfiable),
            ("bytes=0-", 0, Unsatisfiable),
            ("bytes=-5", 0, Whole),
            ("bytes=0-1,5-6", LEN, Whole),
            ("bytes=5-4", LEN, Whole),
            ("bytes=-", LEN, Whole),
            ("bytes=a-b", LEN, Whole),
            ("bytes=1-b", LEN, Whole),
            ("bytes=+1-2", LEN, Whole),
            ("bytes", LEN, Whole),
            ("seconds=1-2", LEN, Whole),
        ] {
            assert_eq!(selected(&[("range", range)], true, len), expected, "{range} of {len}");
        }
        assert_eq!(selected(&[("range", "bytes=0-0"), ("range", "bytes=1-1")], true, LEN), Whole);
        assert_eq!(selected(&[("range", "bytes=0-0")], false, LEN), Whole, "HEAD");
    }

    #[test]
    fn preconditions() {
        use Selected::{NotModified, Part, PreconditionFailed, Whole};
        let range = ("range", "bytes=1-2");
        for (lines, expected) in [
            (vec![("if-none-match", "ETAG")], NotModified),
            (vec![("if-none-match", "W/ETAG")], NotModified),
            (vec![("if-none-match", "\"x\", ETAG")], NotModified),
            (vec![("if-none-match", "\"x\""), ("if-none-match", "ETAG")], NotModified),
            (vec![("if-none-match", "*")], NotModified),
            (vec![("if-none-match", "\"x\"")], Whole),
            // The date counts only without validators.
            (vec![("if-none-match", "\"x\""), ("if-modified-since", DATE)], Whole),
            (vec![("if-modified-since", DATE)], NotModified),
            (vec![("if-modified-since", AFTER)], NotModified),
            (vec![("if-modified-since", BEFORE)], Whole),
            (vec![("if-modified-since", "yesterday")], Whole),
            (vec![("if-match", "ETAG")], Whole),
            (vec![("if-match", "*")], Whole),
            (vec![("if-match", "\"x\"")], PreconditionFailed),
            // This comparison is strong.
            (vec![("if-match", "W/ETAG")], PreconditionFailed),
            (vec![("if-match", "ETAG"), ("if-unmodified-since", BEFORE)], Whole),
            (vec![("if-match", "ETAG"), ("if-none-match", "ETAG")], NotModified),
            (vec![("if-match", "\"x\""), ("if-none-match", "ETAG")], PreconditionFailed),
            (vec![("if-unmodified-since", DATE)], Whole),
            (vec![("if-unmodified-since", BEFORE)], PreconditionFailed),
            (vec![range, ("if-range", "ETAG")], Part(1..3)),
            (vec![range, ("if-range", "W/ETAG")], Whole),
            (vec![range, ("if-range", "\"x\"")], Whole),
            (vec![range, ("if-range", DATE)], Part(1..3)),
            (vec![range, ("if-range", AFTER)], Whole),
            (vec![range, ("if-range", BEFORE)], Whole),
            (vec![range, ("if-none-match", "ETAG")], NotModified),
            (vec![range, ("if-match", "\"x\"")], PreconditionFailed),
        ] {
            assert_eq!(selected(&lines, true, LEN), expected, "{lines:?}");
        }
    }

    #[test]
    fn every_change_of_a_file_changes_its_validator() {
        let versions =
            [(1000, 77, (5, 5)), (1001, 77, (5, 5)), (1000, 78, (5, 5)), (1000, 77, (6, 5)), (1000, 77, (5, 6))];
        let tags = versions.map(|(len, inode, modified)| Version::new(len, inode, modified).etag);
        for (i, tag) in tags.iter().enumerate() {
            assert!(tag.starts_with('"') && tag.ends_with('"') && !tag.contains(','), "{tag}");
            assert!(!tags[..i].contains(tag), "{tags:?}");
        }
    }

    #[test]
    fn the_date_of_a_file_is_not_in_the_future_and_can_be_written() {
        let now = UNIX_EPOCH + Duration::from_secs(1_800_000_000);
        assert_eq!(version().last_modified(now).as_deref(), Some(DATE));
        let future = Version::new(1, 1, (1_900_000_000, 0)).last_modified(now);
        assert_eq!(future, Some(httpdate::fmt_http_date(now)));
        assert_eq!(Version::new(1, 1, (-5, 0)).last_modified(now), None);
        assert_eq!(Version::new(1, 1, (i64::MAX, 0)).last_modified(now), None);
    }

    #[test]
    fn a_clock_before_1970_gives_a_file_no_date() {
        // A file of today, seen by a clock that stands before 1970.
        assert_eq!(Version::new(1, 1, (1_700_000_000, 0)).last_modified(UNIX_EPOCH - Duration::from_secs(9)), None);
    }
}
