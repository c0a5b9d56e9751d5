//! AStream's `SegmentSize` elements, which are no part of DASH: `<SegmentSize id="..." size="168.0" scale="Kbits"/>`,
//! one per media segment, in order. AStream itself reads `bits, Kbits, Mbits, bytes, KB, MB`.
//!
//! Its kilo is 1024: the numbers are eight times the KiB of a directory listing. The public file of them (Big Buck
//! Bunny, 4 s) has "Mbits" in 143 places where the number is in kilobits; a segment of a thousand times its nominal
//! size is taken for that error.

use super::xml::{Element, Fault};

const KILO: f64 = 1_024.0;
/// Ratio of a stated size to the nominal one: between 2, which encoders reach, and 1000, which the error gives.
const IMPLAUSIBLE: f64 = 100.0;

/// A stated size, bits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct StatedSize {
    bits: f64,
    mega: bool,
}

pub(super) fn read(representation: &Element<'_>) -> Result<Vec<StatedSize>, Fault> {
    representation.children("SegmentSize").map(|element| read_one(&element)).collect()
}

fn read_one(element: &Element<'_>) -> Result<StatedSize, Fault> {
    let size: f64 = element.number("size", "a number")?.ok_or_else(|| element.fault("a SegmentSize needs a `size`"))?;
    let scale = element.text("scale").unwrap_or("bits");
    let Some(unit) = unit(scale) else {
        let message =
            format!("scale=\"{scale}\" is no known unit: expected bits, Kbits, Mbits, Gbits, bytes, KB, MB or GB");
        return Err(element.attribute_fault("scale", message));
    };
    if !(size > 0.0 && size * unit <= 1e15) {
        let message = format!("size=\"{size}\" is no usable size: expected one above zero");
        return Err(element.attribute_fault("size", message));
    }
    Ok(StatedSize { bits: size * unit, mega: unit == KILO * KILO })
}

/// The bits of a unit. Of one letter the case tells bits from bytes, so `kb` and `mb` are neither.
fn unit(scale: &str) -> Option<f64> {
    let scale = scale.trim();
    let (power, rest) = match scale.as_bytes().first()?.to_ascii_lowercase() {
        b'k' => (1, &scale[1..]),
        b'm' => (2, &scale[1..]),
        b'g' => (3, &scale[1..]),
        _ => (0, scale),
    };
    let rest = rest.strip_prefix('i').filter(|rest| power > 0 && rest.len() == 1).unwrap_or(rest);
    let own = match rest {
        "b" if scale.starts_with(['k', 'm', 'g']) => return None,
        "b" => 1.0,
        "B" => 8.0,
        word => match word.to_ascii_lowercase().as_str() {
            "bit" | "bits" => 1.0,
            "byte" | "bytes" => 8.0,
            _ => return None,
        },
    };
    Some(own * KILO.powi(power))
}

impl StatedSize {
    /// Whether the unit is taken for an error, where `nominal` is the size by the bitrate.
    pub fn is_mistaken(self, nominal: u64) -> bool {
        self.mega && self.bits / 8.0 > IMPLAUSIBLE * nominal as f64
    }

    /// Bytes, where `nominal` is the size by the bitrate.
    pub fn bytes(self, nominal: u64) -> u64 {
        let bits = if self.is_mistaken(nominal) { self.bits / KILO } else { self.bits };
        (bits / 8.0).ceil() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_those_of_astream_and_their_like() {
        let kilo = 1_024.0;
        for (scale, bits) in [("bits", 1.0), ("Kbits", kilo), ("Mbits", kilo * kilo), ("bytes", 8.0), ("Bytes", 8.0)] {
            assert_eq!(unit(scale), Some(bits), "{scale}");
        }
        for (scale, bits) in [("KB", kilo), ("kB", kilo), ("kbytes", kilo), ("KiB", kilo), ("MB", kilo * kilo)] {
            assert_eq!(unit(scale), Some(8.0 * bits), "{scale}");
        }
        assert_eq!((unit("mbytes"), unit("GB")), (Some(8.0 * kilo * kilo), Some(8.0 * kilo * kilo * kilo)));
        assert_eq!(
            (unit("Kb"), unit("Mb"), unit("b"), unit("B")),
            (Some(kilo), Some(kilo * kilo), Some(1.0), Some(8.0))
        );
        for scale in ["", "kb", "mb", "k", "K", "KBs", "TB", "i", "Kibits", "\u{e9}", "k\u{e9}"] {
            assert_eq!(unit(scale), None, "{scale}");
        }
    }

    #[test]
    fn a_mistaken_unit_is_corrected_only_where_it_is_absurd() {
        let stated = StatedSize { bits: 8_000.0 * KILO * KILO, mega: true };
        assert_eq!(stated.bytes(737_000), 1_024_000, "8000 Kbits at 1.47 Mbit/s for 4 s");
        let large = StatedSize { bits: 8.0 * KILO * KILO, mega: true };
        assert_eq!(large.bytes(737_000), 1_048_576);
        let kilo = StatedSize { bits: 8e9, mega: false };
        assert_eq!(kilo.bytes(737_000), 1_000_000_000);
    }
}
