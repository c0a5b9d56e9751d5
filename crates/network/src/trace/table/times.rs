//! Times as tables write them: numbers, dates of ISO 8601, and times of day.

/// A date or a time of day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Clock {
    /// Since 1970, in UTC.
    Zoned(i128),
    /// Since 1970, in an unknown zone.
    Local(i128),
    /// Since midnight.
    OfDay(i128),
}

const SECOND: i128 = 1_000_000_000;

impl Clock {
    /// A date of ISO 8601 with a time of day (`2026-01-31T12:30:00.5+01:00`; a blank for the `T` and slashes for the
    /// dashes are accepted, as is the basic form `20260131T123000Z`), a date alone, or a time of day (`12:30:00.5`).
    pub(super) fn of(text: &str) -> Option<Self> {
        let (days, rest) = match date(text) {
            Some((days, rest)) => (days, rest),
            // `12:30` may be hours and minutes or minutes and seconds, and without colons it is a number.
            None if text.matches(':').count() != 2 => return None,
            None => return time_of_day(text).filter(|(_, rest)| rest.is_empty()).map(|(at, _)| Clock::OfDay(at)),
        };
        let midnight = i128::from(days) * 86_400 * SECOND;
        if rest.is_empty() {
            return Some(Clock::Local(midnight));
        }
        let rest = rest.strip_prefix(['T', 't']).unwrap_or_else(|| rest.trim_start());
        let (at, rest) = time_of_day(rest)?;
        match rest.trim() {
            "" => Some(Clock::Local(midnight + at)),
            rest => zone(rest).map(|zone| Clock::Zoned(midnight + at - zone)),
        }
    }

    /// In nanoseconds.
    pub(super) fn nanos(self) -> i128 {
        match self {
            Clock::Zoned(at) | Clock::Local(at) | Clock::OfDay(at) => at,
        }
    }

    /// How the times of a column are written, for people.
    pub(super) fn name(self) -> &'static str {
        match self {
            Clock::Zoned(_) => "ISO 8601 with a zone",
            Clock::Local(_) => "ISO 8601",
            Clock::OfDay(_) => "time of day",
        }
    }
}

/// A number of exactly this many digits, and what follows.
fn digits(text: &str, count: usize) -> Option<(i64, &str)> {
    let (number, rest) = text.split_at_checked(count)?;
    let all = number.bytes().all(|byte| byte.is_ascii_digit());
    Some((number.parse().ok().filter(|_| all)?, rest))
}

/// Days since 1970, and what follows the date.
fn date(text: &str) -> Option<(i64, &str)> {
    let (year, rest) = digits(text, 4)?;
    let mark = rest.chars().next().filter(|mark| matches!(mark, '-' | '/'));
    let skip = |rest: &'_ str| mark.map_or(Some(0), |mark| rest.starts_with(mark).then_some(1));
    let rest = &rest[skip(rest)?..];
    let (month, rest) = digits(rest, 2)?;
    let rest = &rest[skip(rest)?..];
    let (day, rest) = digits(rest, 2)?;
    // Eight digits alone are a number.
    if mark.is_none() && !rest.starts_with(['T', 't']) {
        return None;
    }
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let lengths = [31, if leap { 29 } else { 28 }, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let earlier = usize::try_from(month - 1).ok()?;
    if !(1..=*lengths.get(earlier)?).contains(&day) {
        return None;
    }
    // Leap days before this year, counted from year 1, of which 1970 had 477.
    let before = year - 1;
    let leap_days = before.div_euclid(4) - before.div_euclid(100) + before.div_euclid(400) - 477;
    let days = (year - 1970) * 365 + leap_days + lengths[..earlier].iter().sum::<i64>() + day - 1;
    Some((days, rest))
}

/// Nanoseconds since midnight, and what follows. Hours may be any number of a recording's.
fn time_of_day(text: &str) -> Option<(i128, &str)> {
    let (hours, rest) = digits(text, 2).or_else(|| digits(text, 1))?;
    let colon = rest.starts_with(':');
    let (minutes, rest) = digits(after(rest, colon)?, 2)?;
    let (seconds, rest) = after(rest, colon).and_then(|rest| digits(rest, 2)).unwrap_or((0, rest));
    // A leap second is the sixtieth.
    if hours > 24 || minutes > 59 || seconds > 60 {
        return None;
    }
    let whole = i128::from(hours * 3600 + minutes * 60 + seconds) * SECOND;
    let Some(part) = rest.strip_prefix(['.', ',']) else { return Some((whole, rest)) };
    let end = part.find(|c: char| !c.is_ascii_digit()).unwrap_or(part.len());
    let (part, rest) = part.split_at(end);
    let nanos = super::numbers::nanos(&format!("0.{part}"), SECOND).filter(|_| !part.is_empty())?;
    Some((whole + nanos, rest))
}

/// What follows the colon between the parts of a time of day, if it has colons.
fn after(text: &str, colon: bool) -> Option<&str> {
    if colon { text.strip_prefix(':') } else { Some(text) }
}

/// How far a zone is ahead of UTC, in nanoseconds.
fn zone(text: &str) -> Option<i128> {
    if matches!(text, "Z" | "z" | "UTC" | "GMT") {
        return Some(0);
    }
    let (sign, rest) = match text.split_at_checked(1)? {
        ("+", rest) => (1, rest),
        ("-", rest) => (-1, rest),
        _ => return None,
    };
    let (hours, rest) = digits(rest, 2)?;
    let rest = rest.strip_prefix(':').unwrap_or(rest);
    let (minutes, rest) = if rest.is_empty() { (0, rest) } else { digits(rest, 2)? };
    (rest.is_empty() && hours < 24 && minutes < 60).then_some(sign * i128::from(hours * 3600 + minutes * 60) * SECOND)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_counted_from_1970() {
        let at = |text| Clock::of(text).map(Clock::nanos);
        // `date -u -d 2026-11-25T18:04:05Z +%s` and the like.
        let expected = Some(1_795_629_845 * SECOND);
        for text in [
            "2026-11-25T18:04:05Z",
            "2026-11-25 18:04:05",
            "2026-11-25T19:04:05+01:00",
            "2026-11-25 19:04:05+0100",
            "2026-11-25 08:34:05.000-09:30",
            "20261125T180405Z",
            "2026/11/25 18:04:05 UTC",
            "2026-11-25T19:04:05+01",
        ] {
            assert_eq!(at(text), expected, "{text}");
        }
        assert_eq!(at("1970-01-01"), Some(0));
        assert_eq!(at("1969-12-31T23:59:59Z"), Some(-SECOND));
        assert_eq!(at("2000-02-29T00:00"), Some(951_782_400 * SECOND));
        assert_eq!(at("2100-03-01T00:00:00Z"), Some(4_107_542_400 * SECOND));
        assert_eq!(at("2026-11-25T18:04:05,125Z"), Some(1_795_629_845 * SECOND + 125_000_000));
    }

    #[test]
    fn zones_and_times_of_day_are_kept_apart() {
        assert!(matches!(Clock::of("2026-11-25T18:04:05Z"), Some(Clock::Zoned(_))));
        assert!(matches!(Clock::of("2026-11-25T18:04:05"), Some(Clock::Local(_))));
        assert_eq!(Clock::of("01:00:00.5"), Some(Clock::OfDay(3_600 * SECOND + SECOND / 2)));
    }

    #[test]
    fn what_is_no_date_is_none() {
        for text in [
            "",
            "1",
            "20261125",
            "2026-13-01",
            "2025-02-29",
            "2026-1-1",
            "25.11.2026 18:04",
            "2026-11-25T",
            "12:60:00",
            "12:30",
            "1230",
            "0.5",
            "2026-11-25T18:04:05+1",
            "2026-11-25T18:04:05 CET",
            "2026-11/25",
            "12:00:00x",
            "\u{e4}\u{e4}:00",
            "2026-11-2\u{e4}",
        ] {
            assert_eq!(Clock::of(text), None, "{text}");
        }
    }
}
