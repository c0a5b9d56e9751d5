//! Numbers as tables write them: decimal points or commas, and thousands in quotes.

use std::borrow::Cow;

/// The marks in a table's numbers. A table has one decimal mark: what its first lines have, and else the first that
/// comes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Marks {
    /// A comma that separates fields is none in a number.
    comma_separates: bool,
    decimal: Option<char>,
}

/// Marks between thousands besides the one of the two that is not the decimal mark.
const THOUSANDS: [char; 5] = ['\'', '\u{2019}', ' ', '\u{a0}', '\u{202f}'];

impl Marks {
    pub(super) fn new(comma_separates: bool) -> Self {
        Marks { comma_separates, decimal: comma_separates.then_some('.') }
    }

    /// The decimal mark, once a number had one.
    pub(super) fn decimal(self) -> Option<char> {
        self.decimal
    }

    /// Takes the decimal mark from a field of the first lines, if it is a number with one for certain.
    pub(super) fn learn(&mut self, field: &str, quoted: bool) {
        if quoted && grouped_by(field, ',') {
            return;
        }
        let mark = [',', '.'].into_iter().find(|mark| {
            field.split_once(*mark).is_some_and(|(whole, part)| {
                [whole, part].iter().all(|digits| !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()))
            })
        });
        self.decimal = self.decimal.or(mark);
    }

    /// The number in this field with a decimal point and without marks between thousands. `quoted` says whether the
    /// field was in quotes, which marks between thousands need.
    ///
    /// Errors: it is none, or may be two; the text says what is wrong.
    pub(super) fn plain<'a>(&mut self, field: &'a str, quoted: impl Fn() -> bool) -> Result<Cow<'a, str>, String> {
        if !field.contains([',', '.']) && !field.contains(THOUSANDS) {
            return Ok(Cow::Borrowed(field));
        }
        let decimal = self.decimal_of(field, &quoted)?;
        let (whole, part) = match decimal.and_then(|mark| field.rsplit_once(mark)) {
            Some((whole, part)) => (whole, Some(part)),
            None => (field, None),
        };
        self.decimal = self.decimal.or(decimal.filter(|_| part.is_some()));
        let grouped = whole.contains([',', '.']) || whole.contains(THOUSANDS);
        if !grouped && decimal != Some(',') {
            return Ok(Cow::Borrowed(field));
        }
        if grouped && !(quoted() && in_groups_of_three(whole)) {
            return Err("thousands are separated only in quotes, by three digits".into());
        }
        let mut plain: String = whole.chars().filter(|c| !matches!(c, ',' | '.') && !THOUSANDS.contains(c)).collect();
        if let Some(part) = part {
            plain.push('.');
            plain.push_str(part);
        }
        Ok(Cow::Owned(plain))
    }

    /// The decimal mark that this field has if it has one.
    fn decimal_of(self, field: &str, quoted: &impl Fn() -> bool) -> Result<Option<char>, String> {
        if self.comma_separates {
            return Ok(Some('.'));
        }
        let last = field.rfind([',', '.']).map(|at| field.as_bytes()[at] as char);
        let both = field.contains(',') && field.contains('.');
        let several = last.is_some_and(|mark| field.matches(mark).count() > 1);
        match (self.decimal, last) {
            (Some(known), Some(mark)) if known == mark || (quoted() && (both || grouped_by(field, mark))) => {
                Ok(Some(known))
            }
            (Some(known), Some(mark)) => Err(format!("it has a `{mark}` where other numbers have a `{known}`")),
            (None, Some(mark)) if several => Ok(Some(if mark == ',' { '.' } else { ',' })),
            (None, Some(',')) if !both && quoted() && grouped_by(field, ',') => {
                Err("the comma may be a decimal one or one of thousands".into())
            }
            (known, mark) => Ok(mark.or(known)),
        }
    }
}

fn grouped_by(field: &str, mark: char) -> bool {
    field.contains(mark) && in_groups_of_three(field)
}

/// One to three digits, with a sign perhaps, and then three in each group.
fn in_groups_of_three(whole: &str) -> bool {
    let digits = whole.trim_start_matches(['+', '-']);
    let mut groups = digits.split(|c: char| !c.is_ascii_digit());
    let first = groups.next().map_or(0, str::len);
    (1..=3).contains(&first) && groups.all(|group| group.len() == 3)
}

/// A decimal number times a unit of nanoseconds, exact to the nanosecond; `None` if it is none or too large.
pub(super) fn nanos(number: &str, unit: i128) -> Option<i128> {
    /// With a unit of seconds, 28 digits stay below 2^127.
    const MOST_DIGITS: i32 = 28;
    let (mantissa, exponent) = match number.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?.clamp(-10_000, 10_000)),
        None => (number, 0),
    };
    let negative = mantissa.starts_with('-');
    let unsigned = mantissa.strip_prefix(['+', '-']).unwrap_or(mantissa);
    let (whole, part) = unsigned.split_once('.').unwrap_or((unsigned, ""));
    if whole.len() + part.len() == 0 || !whole.bytes().chain(part.bytes()).all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let (mut value, mut digits, mut scale) = (0i128, 0, exponent);
    for (at, digit) in whole.bytes().chain(part.bytes()).enumerate() {
        let after_the_point = at >= whole.len();
        if digits < MOST_DIGITS {
            value = value * 10 + i128::from(digit - b'0');
            digits += i32::from(value > 0);
            scale -= i32::from(after_the_point);
        } else {
            scale += i32::from(!after_the_point);
        }
    }
    value *= unit;
    let value = match u32::try_from(scale) {
        Ok(up) => value.checked_mul(10i128.checked_pow(up)?)?,
        Err(_) => 10i128.checked_pow(scale.unsigned_abs()).map_or(0, |power| (value + power / 2) / power),
    };
    Some(if negative { -value } else { value })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(comma_separates: bool, fields: &[&str]) -> Vec<String> {
        let mut marks = Marks::new(comma_separates);
        let one = |field: &&str| {
            let bare = field.trim_matches('"');
            marks.plain(bare, || bare != *field).map_or_else(|error| error[..3].to_string(), Cow::into_owned)
        };
        fields.iter().map(one).collect()
    }

    #[test]
    fn a_table_has_one_decimal_mark() {
        assert_eq!(read(false, &["20,5", "7", "1.5", "-3,25"]), ["20.5", "7", "it ", "-3.25"]);
        assert_eq!(read(false, &["20.5", "20,5", "\"1,234\"", "\"1,23\""]), ["20.5", "it ", "1234", "it "]);
        assert_eq!(read(false, &["0,5", "\"1.234,5\"", "\"1.234\"", "1.234,5"]), ["0.5", "1234.5", "1234", "tho"]);
        assert_eq!(read(false, &["\"1,234\""]), ["the"]);
        assert_eq!(read(false, &["\"1.234,5\"", "0,5"]), ["1234.5", "0.5"]);
        assert_eq!(read(false, &["\"1,234,567\"", "0.5"]), ["1234567", "0.5"]);
    }

    #[test]
    fn where_commas_separate_they_are_thousands_in_quotes() {
        let quoted = ["\"1,234\"", "\"1,234.5\"", "\"20,5\"", "1.5", "\"12,345,678\"", "\"1 234\"", "\"1'234\""];
        let expected = ["1234", "1234.5", "tho", "1.5", "12345678", "1234", "1234"];
        assert_eq!(read(true, &quoted), expected);
    }

    #[test]
    fn times_are_exact() {
        let seconds = |text: &str| nanos(text, 1_000_000_000);
        assert_eq!(seconds("1700000000.123456789"), Some(1_700_000_000_123_456_789));
        assert_eq!(
            [seconds("0.1"), seconds("1e-3"), seconds("+2.5E1")],
            [100_000_000, 1_000_000, 25_000_000_000].map(Some)
        );
        assert_eq!([seconds("-1"), seconds("0.0000000005"), seconds(".5")], [-1_000_000_000, 1, 500_000_000].map(Some));
        assert_eq!(["", ".", "1e", "x", "1.2.3", "0x1", "inf", "--1", "1e99"].map(seconds), [None; 9]);
        assert_eq!(nanos("1700000000000000000", 1), Some(1_700_000_000_000_000_000));
        assert_eq!(seconds("1e-99999"), Some(0));
        assert_eq!(seconds(&format!("0.{}", "3".repeat(60))), Some(333_333_333));
        assert_eq!(seconds(&format!("1{}e-40", "0".repeat(40))), Some(1_000_000_000));
    }
}
