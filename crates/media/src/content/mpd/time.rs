//! Durations and ticks in MPDs.

use anabranch_units::Duration;

/// Two centuries: live presentations count periods from 1970, and twice this still fits into nanoseconds.
const LONGEST_S: u64 = 200 * 366 * 86_400;

/// An xs:duration without years and months, which have no fixed length, and without a sign.
pub(super) fn read_duration(text: &str) -> Result<Duration, String> {
    let rest = text.trim().strip_prefix('P').ok_or("it does not begin with P")?;
    let (days, time) = rest.split_once('T').unwrap_or((rest, ""));
    let mut seconds = read_parts(days, &[('Y', None), ('M', None), ('D', Some(86_400))])?;
    seconds += read_parts(time, &[('H', Some(3_600)), ('M', Some(60)), ('S', Some(1))])?;
    if (days.is_empty() && time.is_empty()) || rest.ends_with('T') {
        return Err("it has no parts".to_string());
    }
    if seconds > Duration::from_secs(LONGEST_S) {
        return Err("it is longer than two centuries".to_string());
    }
    Ok(seconds)
}

/// Numbers followed by letters in the given order; each letter at most once, a fraction in any.
fn read_parts(text: &str, units: &[(char, Option<u64>)]) -> Result<Duration, String> {
    let mut units = units.iter();
    let (mut sum, mut rest) = (Duration::ZERO, text);
    while !rest.is_empty() {
        let end = rest.find(|c: char| c != '.' && !c.is_ascii_digit()).ok_or("a number has no unit")?;
        let (number, letter) = (&rest[..end], rest[end..].chars().next().unwrap_or(' '));
        let unit = units.find(|(own, _)| *own == letter).ok_or_else(|| format!("`{letter}` is not expected there"))?;
        let part = match unit.1 {
            Some(seconds) => seconds_of(number, seconds).ok_or_else(|| format!("`{number}` is no usable number"))?,
            None if number.bytes().all(|b| b == b'0') => Duration::ZERO,
            None => return Err("years and months have no fixed length".to_string()),
        };
        sum += part;
        rest = &rest[end + letter.len_utf8()..];
    }
    Ok(sum)
}

/// A decimal number times a unit, exact to the nanosecond (further digits are cut off).
fn seconds_of(number: &str, unit: u64) -> Option<Duration> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let digits: String = fraction.chars().chain("000000000".chars()).take(9).collect();
    let nanos: u64 = digits.parse().ok()?;
    let whole = whole.checked_mul(unit).filter(|&s| s <= LONGEST_S)?;
    Some(Duration::from_secs(whole) + Duration::from_nanos(nanos) * unit)
}

/// These nanoseconds; `None` if they are more than two centuries.
pub(super) fn from_nanos(nanos: u128) -> Option<Duration> {
    let nanos = u64::try_from(nanos).ok()?;
    (nanos <= LONGEST_S * 1_000_000_000).then(|| Duration::from_nanos(nanos))
}

/// Whether `ticks` of a clock with `timescale` ticks per second are at least a nanosecond and at most two centuries.
pub(super) fn ticks_last(ticks: u64, timescale: u64) -> bool {
    let nanos = u128::from(ticks) * 1_000_000_000 / u128::from(timescale.max(1));
    nanos > 0 && from_nanos(nanos).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_to_the_nanosecond() {
        let ms = |text| read_duration(text).unwrap().as_nanos() / 1_000_000;
        assert_eq!(ms("PT0H9M56.46S"), 596_460);
        assert_eq!(ms("PT1H32M16.072S"), 5_536_072);
        assert_eq!(ms("P1DT1S"), 86_401_000);
        assert_eq!(ms("P0Y0M0DT0H3M1.63S"), 181_630);
        assert_eq!(ms("PT1.5M"), 90_000);
        assert_eq!(read_duration("PT604.0399780273438S").unwrap().as_nanos(), 604_039_978_027);
    }

    #[test]
    fn what_is_no_duration_is_refused() {
        for text in [
            "",
            "9",
            "T9S",
            "P",
            "PT",
            "PT9",
            "PT9X",
            "PT1S1M",
            "-PT1S",
            "P1Y",
            "P2M",
            "PT.S",
            "PT1.2.3S",
            "PT9999999H",
        ] {
            assert!(read_duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn ticks_last_from_a_nanosecond_to_two_centuries() {
        assert!(ticks_last(1, 1_000_000_000) && !ticks_last(1, 2_000_000_000) && !ticks_last(0, 1));
        assert!(ticks_last(LONGEST_S, 1) && !ticks_last(LONGEST_S + 1, 1) && !ticks_last(u64::MAX, 1));
        assert_eq!(from_nanos(7), Some(Duration::from_nanos(7)));
    }
}
