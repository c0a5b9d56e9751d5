//! Quantities as text with a unit, `"2 Mb/s"`, and back, without losing a digit.
//!
//! A quantity is stored as a whole number of its base unit (bits per second, nanoseconds, bytes, parts per billion).
//! Text is read as a decimal number, never as a float, and written in the largest unit that suits, so reading what was
//! written gives the same number. With serde a quantity is such a text, and its JSON Schema says what is expected.

use crate::nearest::nearest;
use crate::{Bandwidth, Duration};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::borrow::Cow;
use std::fmt;

/// A share of something in parts per billion: `"2 %"` is 20 000 000 of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ratio(pub u64);

impl Ratio {
    /// Nothing.
    pub const ZERO: Ratio = Ratio(0);
    /// All.
    pub const ONE: Ratio = Ratio(1_000_000_000);

    /// The share as a number from 0 to 1.
    pub fn as_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }
}

/// A unit's spelling, and how many base units it has.
type Unit = (&'static str, u64);

/// The spelling of no limit.
const UNLIMITED: &str = "unlimited";

/// A kind of quantity: what it is called, its units from the smallest up, an example.
struct Kind {
    /// The unit in which nothing is written.
    zero: &'static str,
    units: &'static [Unit],
    /// Further spellings that are read but never written.
    also: &'static [Unit],
    /// Units that are not read, because nothing here is that large or because they have several spellings, but which
    /// people write: a message says the same quantity in a unit that is.
    foreign: &'static [Unit],
    expected: &'static str,
}

const RATE: Kind = Kind {
    zero: "b/s",
    units: &[("b/s", 1), ("kb/s", 1_000), ("Mb/s", 1_000_000), ("Gb/s", 1_000_000_000)],
    also: &[("bit/s", 1), ("kbit/s", 1_000), ("Mbit/s", 1_000_000), ("Gbit/s", 1_000_000_000)],
    foreign: &[("Tb/s", 1_000_000_000_000), ("Tbit/s", 1_000_000_000_000), ("Tbps", 1_000_000_000_000)],
    expected: "a rate such as \"2 Mb/s\" (b/s, kb/s, Mb/s, Gb/s) or \"unlimited\"",
};

/// In nanoseconds.
const MINUTE: u64 = 60_000_000_000;
/// In nanoseconds.
const HOUR: u64 = 60 * MINUTE;

const TIME: Kind = Kind {
    zero: "s",
    units: &[("ns", 1), ("us", 1_000), ("ms", 1_000_000), ("s", 1_000_000_000)],
    also: &[("µs", 1_000), ("min", MINUTE), ("h", HOUR)],
    foreign: &[
        ("msec", 1_000_000),
        ("sec", 1_000_000_000),
        ("second", 1_000_000_000),
        ("seconds", 1_000_000_000),
        ("m", MINUTE),
        ("minute", MINUTE),
        ("minutes", MINUTE),
        ("hour", HOUR),
        ("hours", HOUR),
        ("d", 24 * HOUR),
        ("day", 24 * HOUR),
        ("days", 24 * HOUR),
    ],
    expected: "a time such as \"50 ms\" (ns, us, ms, s, min, h)",
};

const BYTES: Kind = Kind {
    zero: "B",
    units: &[("B", 1), ("kB", 1_000), ("MB", 1_000_000), ("GB", 1_000_000_000)],
    also: &[("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30)],
    foreign: &[("TB", 1_000_000_000_000), ("TiB", 1 << 40), ("byte", 1), ("bytes", 1)],
    expected: "a size such as \"64 kB\" (B, kB, MB, GB, KiB, MiB, GiB)",
};

const RATIO: Kind = Kind {
    zero: "%",
    units: &[("%", 10_000_000)],
    also: &[],
    foreign: &[("percent", 10_000_000)],
    expected: "a share such as \"2 %\"",
};

/// Why a text is no such quantity.
///
/// Displayed as `message; expected what would be right; did you mean `unit`?`, which is how it travels through the text
/// errors of serde.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// What is wrong with the text.
    pub message: String,
    /// What would be right.
    pub expected: String,
    /// The unit that was probably meant.
    pub nearest: Option<String>,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; expected {}", self.message, self.expected)?;
        self.nearest.as_ref().map_or(Ok(()), |unit| write!(f, "; did you mean `{unit}`?"))
    }
}

impl std::error::Error for Problem {}

impl Kind {
    fn read(&self, text: &str) -> Result<u64, Problem> {
        let text = text.trim();
        let split =
            text.find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | '_' | '-' | '+'))).unwrap_or(text.len());
        let (number, unit) = (text[..split].trim(), text[split..].trim());
        if number.starts_with('-') {
            return Err(self.problem(format!("`{text}` is negative")));
        }
        if number.is_empty() {
            return Err(self.problem(format!("`{text}` has no number")));
        }
        if unit.is_empty() && !is_zero(number) {
            return Err(self.problem(format!("`{text}` has no unit")));
        }
        let Some((_, factor)) = self.units.iter().chain(self.also).find(|(name, _)| *name == unit || unit.is_empty())
        else {
            return Err(self.unknown_unit(text, number, unit));
        };
        decimal(number, *factor).ok_or_else(|| self.problem(format!("`{number}` in `{text}` is no usable number")))
    }

    fn problem(&self, message: String) -> Problem {
        Problem { message, expected: self.expected.into(), nearest: None }
    }

    fn unknown_unit(&self, text: &str, number: &str, unit: &str) -> Problem {
        let foreign = self.foreign.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit));
        if let Some(same) = foreign.and_then(|(_, factor)| decimal(number, *factor)) {
            let nearest = Some(self.write(same));
            return Problem { nearest, ..self.problem(format!("`{unit}` in `{text}` is no unit that fits here")) };
        }
        let names = || self.units.iter().chain(self.also).map(|(name, _)| *name);
        // "Mbps" is no typing error, but a common habit.
        let habitual = unit.replace("bps", "b/s");
        let exact = names().find(|name| name.eq_ignore_ascii_case(&habitual)).map(str::to_string);
        let nearest = exact.or_else(|| nearest(&habitual, names()));
        Problem { nearest, ..self.problem(format!("`{unit}` in `{text}` is no unit that fits here")) }
    }

    /// The number in the largest unit of which there is at least one.
    fn write(&self, n: u64) -> String {
        if n == 0 {
            return format!("0 {}", self.zero);
        }
        let (unit, factor) = self.units.iter().rev().find(|(_, factor)| n >= *factor).unwrap_or(&self.units[0]);
        let (whole, rest) = (n / factor, n % factor);
        if rest == 0 {
            return format!("{whole} {unit}");
        }
        let width = factor.ilog10() as usize;
        let fraction = format!("{rest:0width$}");
        format!("{whole}.{} {unit}", fraction.trim_end_matches('0'))
    }
}

fn is_zero(number: &str) -> bool {
    number.chars().all(|c| matches!(c, '0' | '.' | '_')) && number.contains('0')
}

/// A decimal number times a factor, rounded to the nearest whole; none if it is malformed or too large.
fn decimal(number: &str, factor: u64) -> Option<u64> {
    let digits: String = number.strip_prefix('+').unwrap_or(number).chars().filter(|c| *c != '_').collect();
    let (whole, fraction) = digits.split_once('.').unwrap_or((&digits, ""));
    let all_digits = |s: &str| s.chars().all(|c| c.is_ascii_digit());
    if whole.is_empty() || !all_digits(whole) || !all_digits(fraction) || fraction.len() > 18 {
        return None;
    }
    let power = 10u128.pow(fraction.len() as u32);
    let mantissa: u128 = format!("{whole}{fraction}").parse().ok()?;
    let scaled = mantissa.checked_mul(u128::from(factor))?;
    u64::try_from((scaled + power / 2) / power).ok()
}

/// Reads a rate such as `2 Mb/s`, or `unlimited`.
///
/// # Errors
/// What is wrong with the text and what was expected.
pub fn read_rate(text: &str) -> Result<Bandwidth, Problem> {
    if text.trim() == UNLIMITED {
        return Ok(Bandwidth::INFINITE);
    }
    RATE.read(text).map(Bandwidth::from_bps)
}

/// Reads a time such as `50 ms`.
///
/// # Errors
/// As [`read_rate`].
pub fn read_time(text: &str) -> Result<Duration, Problem> {
    TIME.read(text).map(Duration::from_nanos)
}

/// Reads a size such as `64 kB`, in bytes.
///
/// # Errors
/// As [`read_rate`].
pub fn read_bytes(text: &str) -> Result<u64, Problem> {
    BYTES.read(text)
}

/// Reads a share from 0 to 100 %.
///
/// # Errors
/// As [`read_rate`].
pub fn read_ratio(text: &str) -> Result<Ratio, Problem> {
    let ratio = Ratio(RATIO.read(text)?);
    if ratio > Ratio::ONE {
        return Err(RATIO.problem(format!("`{text}` is more than all")));
    }
    Ok(ratio)
}

/// Writes what [`read_rate`] reads.
pub fn write_rate(rate: Bandwidth) -> String {
    if rate == Bandwidth::INFINITE { UNLIMITED.into() } else { RATE.write(rate.as_bps()) }
}

/// Writes what [`read_time`] reads.
pub fn write_time(time: Duration) -> String {
    TIME.write(time.as_nanos())
}

/// Writes what [`read_bytes`] reads.
pub fn write_bytes(bytes: u64) -> String {
    BYTES.write(bytes)
}

/// Writes what [`read_ratio`] reads.
pub fn write_ratio(ratio: Ratio) -> String {
    RATIO.write_percent(ratio)
}

impl Kind {
    /// Percent is the only unit and may be a fraction of one.
    fn write_percent(&self, ratio: Ratio) -> String {
        let (whole, rest) = (ratio.0 / 10_000_000, ratio.0 % 10_000_000);
        if rest == 0 {
            format!("{whole} %")
        } else {
            format!("{whole}.{} %", format!("{rest:07}").trim_end_matches('0'))
        }
    }
}

/// Serde and the JSON Schema of a quantity that is a text in scenarios.
macro_rules! as_text {
    ($type:ty, $read:ident, $write:expr, $kind:ident) => {
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&$write(*self))
            }
        }

        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_any(Text { kind: &$kind, read: $read })
            }
        }

        impl JsonSchema for $type {
            fn schema_name() -> Cow<'static, str> {
                stringify!($type).into()
            }

            fn inline_schema() -> bool {
                true
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                $kind.schema()
            }
        }
    };
}

as_text!(Bandwidth, read_rate, write_rate, RATE);
as_text!(Duration, read_time, write_time, TIME);
as_text!(Ratio, read_ratio, write_ratio, RATIO);
as_text!(Bytes, read_bytes_type, |bytes: Bytes| write_bytes(bytes.0), BYTES);

/// A number of bytes that scenarios write as a size, `"64 kB"`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Bytes(pub u64);

fn read_bytes_type(text: &str) -> Result<Bytes, Problem> {
    read_bytes(text).map(Bytes)
}

/// Reads a text; a bare zero needs no unit, and any other number without one is an error.
struct Text<T> {
    kind: &'static Kind,
    read: fn(&str) -> Result<T, Problem>,
}

impl<T> de::Visitor<'_> for Text<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind.expected)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
        (self.read)(text).map_err(E::custom)
    }

    fn visit_i64<E: de::Error>(self, n: i64) -> Result<T, E> {
        (self.read)(&n.to_string()).map_err(E::custom)
    }

    fn visit_f64<E: de::Error>(self, x: f64) -> Result<T, E> {
        (self.read)(&x.to_string()).map_err(E::custom)
    }
}

impl Kind {
    fn schema(&self) -> Schema {
        let units: Vec<&str> = self.units.iter().chain(self.also).map(|(name, _)| *name).collect();
        let unlimited = if self.zero == RATE.zero { "|^\\s*unlimited\\s*$" } else { "" };
        let number = r"\+?[0-9][0-9_]*(\.[0-9_]*)?";
        let pattern = format!(r"^\s*{number}\s*({})\s*$|^\s*0[0._]*\s*$", units.join("|")) + unlimited;
        json_schema!({
            "anyOf": [{ "type": "string", "pattern": pattern }, { "const": 0 }],
            "x-expected": self.expected,
        })
    }
}

/// Reads a whole number in a range: for `#[serde(deserialize_with = "text::whole::<1, 1000, _, _>")]`.
///
/// # Errors
/// What else the value is.
pub fn whole<'de, const MIN: u64, const MAX: u64, T: TryFrom<u64>, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    deserializer.deserialize_any(Whole::<MIN, MAX>).and_then(narrow)
}

/// The same under a key that may be absent.
///
/// # Errors
/// As [`whole`].
pub fn whole_option<'de, const MIN: u64, const MAX: u64, T: TryFrom<u64>, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    whole::<MIN, MAX, T, D>(deserializer).map(Some)
}

fn narrow<T: TryFrom<u64>, E: de::Error>(n: u64) -> Result<T, E> {
    T::try_from(n).map_err(|_| E::custom(format!("{n} is too large")))
}

/// Reads a number in a range with whole ends: for `#[serde(deserialize_with = "text::number::<0, 10, _>")]`.
///
/// # Errors
/// What else the value is.
pub fn number<'de, const MIN: i64, const MAX: i64, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    deserializer.deserialize_any(Number::<MIN, MAX>)
}

/// The same under a key that may be absent.
///
/// # Errors
/// As [`number`].
pub fn number_option<'de, const MIN: i64, const MAX: i64, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<f64>, D::Error> {
    number::<MIN, MAX, D>(deserializer).map(Some)
}

/// Reads bytes of a packet, `1500` or `"1500 B"`, of at most `most`.
///
/// # Errors
/// What else the value is.
pub fn packet_bytes<'de, D: Deserializer<'de>>(deserializer: D, most: u32) -> Result<u32, D::Error> {
    deserializer.deserialize_any(PacketBytes { most })
}

struct PacketBytes {
    most: u32,
}

impl de::Visitor<'_> for PacketBytes {
    type Value = u32;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "from 0 to {} bytes, such as 1500", self.most)
    }

    fn visit_i64<E: de::Error>(self, n: i64) -> Result<u32, E> {
        let allowed = u32::try_from(n).ok().filter(|n| *n <= self.most);
        allowed.ok_or_else(|| E::invalid_value(de::Unexpected::Signed(n), &self))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<u32, E> {
        let bytes = read_bytes(text).map_err(E::custom)?;
        self.visit_i64(i64::try_from(bytes).unwrap_or(i64::MAX))
    }
}

struct Whole<const MIN: u64, const MAX: u64>;

impl<const MIN: u64, const MAX: u64> de::Visitor<'_> for Whole<MIN, MAX> {
    type Value = u64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if MAX >= u64::from(u32::MAX) {
            write!(f, "a whole number of at least {MIN}")
        } else {
            write!(f, "a whole number from {MIN} to {MAX}")
        }
    }

    fn visit_i64<E: de::Error>(self, n: i64) -> Result<u64, E> {
        let allowed = u64::try_from(n).ok().filter(|n| (MIN..=MAX).contains(n));
        allowed.ok_or_else(|| E::invalid_value(de::Unexpected::Signed(n), &self))
    }

    fn visit_u64<E: de::Error>(self, n: u64) -> Result<u64, E> {
        let allowed = Some(n).filter(|n| (MIN..=MAX).contains(n));
        allowed.ok_or_else(|| E::invalid_value(de::Unexpected::Unsigned(n), &self))
    }
}

struct Number<const MIN: i64, const MAX: i64>;

impl<const MIN: i64, const MAX: i64> de::Visitor<'_> for Number<MIN, MAX> {
    type Value = f64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a number from {MIN} to {MAX}")
    }

    fn visit_f64<E: de::Error>(self, x: f64) -> Result<f64, E> {
        let allowed = Some(x).filter(|x| (MIN as f64..=MAX as f64).contains(x));
        allowed.ok_or_else(|| E::invalid_value(de::Unexpected::Float(x), &self))
    }

    fn visit_i64<E: de::Error>(self, n: i64) -> Result<f64, E> {
        self.visit_f64(n as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_design_s_quantities_are_read() {
        assert_eq!(read_rate("2 Mb/s"), Ok(Bandwidth::from_mbps(2)));
        assert_eq!(read_rate("5.24 Mb/s"), Ok(Bandwidth::from_bps(5_240_000)));
        assert_eq!(read_rate("unlimited"), Ok(Bandwidth::INFINITE));
        assert_eq!(read_time("2.9 ms"), Ok(Duration::from_micros(2_900)));
        assert_eq!(read_bytes("409 MB"), Ok(409_000_000));
        assert_eq!(read_bytes("16 MiB"), Ok(16_777_216));
        assert_eq!(read_ratio("2%"), Ok(Ratio(20_000_000)));
        assert_eq!(read_ratio("0"), Ok(Ratio::ZERO));
    }

    #[test]
    fn mistakes_say_what_would_be_right() {
        let problem = read_rate("2 Mbps").unwrap_err();
        assert_eq!(problem.nearest.as_deref(), Some("Mb/s"));
        assert!(read_rate("-2 Mb/s").unwrap_err().message.contains("negative"));
        assert!(read_rate("2").unwrap_err().message.contains("no unit"));
        assert!(read_time("50 Mb").is_err());
        let meant = |problem: Problem| problem.nearest.unwrap_or_default();
        assert_eq!(meant(read_rate("900 Tb/s").unwrap_err()), "900000 Gb/s");
        assert_eq!(meant(read_rate("1.5 Tbps").unwrap_err()), "1500 Gb/s");
        assert_eq!(meant(read_time("2 days").unwrap_err()), "172800 s");
        assert_eq!(meant(read_time("5 m").unwrap_err()), "300 s");
        assert_eq!(meant(read_bytes("2 TB").unwrap_err()), "2000 GB");
        // More than can be counted has no other spelling either.
        assert!(read_rate("99999999999 Tb/s").unwrap_err().nearest.is_none_or(|unit| unit.ends_with("b/s")));
        assert!(read_time("fast").unwrap_err().message.contains("no number"));
        assert!(read_ratio("101 %").is_err());
        assert!(read_bytes("1.2.3 kB").is_err());
        assert!(read_bytes("99999999999999 GB").is_err());
    }

    proptest::proptest! {
        #[test]
        fn what_was_written_reads_as_the_same(n: u64, parts in 0u64..=1_000_000_000) {
            proptest::prop_assert_eq!(read_bytes(&write_bytes(n)), Ok(n));
            proptest::prop_assert_eq!(read_time(&write_time(Duration::from_nanos(n))), Ok(Duration::from_nanos(n)));
            proptest::prop_assert_eq!(read_rate(&write_rate(Bandwidth::from_bps(n))), Ok(Bandwidth::from_bps(n)));
            proptest::prop_assert_eq!(read_ratio(&write_ratio(Ratio(parts))), Ok(Ratio(parts)));
        }
    }
}
