//! AStream's `SegmentSize` elements, which are no part of DASH: `<SegmentSize id="..." size="168.0" scale="Kbits"/>`, one
//! per media segment, in order.
//!
//! Its kilo is 1024: the numbers are eight times the KiB of a directory listing. The public file of them (Big Buck Bunny,
//! 4 s) has "Mbits" in 143 places where the number is in kilobits; a segment of a thousand times its nominal size is
//! taken for that error.

use super::super::ContentError;
use super::xml::Element;

const KILO: f64 = 1_024.0;
/// Ratio of a stated size to the nominal one: between 2, which encoders reach, and 1000, which the error gives.
const IMPLAUSIBLE: f64 = 100.0;

/// A stated size, bits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct StatedSize {
    bits: f64,
    mega: bool,
}

pub(super) fn read(representation: &Element<'_>) -> Result<Vec<StatedSize>, ContentError> {
    representation.children("SegmentSize").map(|element| read_one(&element)).collect()
}

fn read_one(element: &Element<'_>) -> Result<StatedSize, ContentError> {
    let size: f64 = element.number("size", "a number")?.ok_or_else(|| element.error("a SegmentSize needs a `size`"))?;
    let scale = element.text("scale").unwrap_or("bits");
    let unit = match scale.to_ascii_lowercase().as_str() {
        "bits" => 1.0,
        "kbits" => KILO,
        "mbits" => KILO * KILO,
        "bytes" => 8.0,
        "kbytes" => 8.0 * KILO,
        "mbytes" => 8.0 * KILO * KILO,
        _ => return Err(element.attribute_error("scale", format!("scale=\"{scale}\" is no known unit"))),
    };
    if !(size > 0.0 && size * unit <= 1e15) {
        return Err(element.attribute_error("size", format!("size=\"{size}\" is no usable size")));
    }
    Ok(StatedSize { bits: size * unit, mega: unit == KILO * KILO })
}

impl StatedSize {
    /// Bytes, where `nominal` is the size by the bitrate.
    pub fn bytes(self, nominal: u64) -> u64 {
        let mistaken = self.mega && self.bits / 8.0 > IMPLAUSIBLE * nominal as f64;
        let bits = if mistaken { self.bits / KILO } else { self.bits };
        (bits / 8.0).ceil() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
