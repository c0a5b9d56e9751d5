//! The list of options in a TCP header (RFC 9293 section 3.1).

use crate::mptcp::{self, Decoded};
use crate::reader::Reader;
use crate::writer::{NOP, Writer};
use anabranch_segment::{Flags, SackBlock, Segment, SynOptions, Timestamps};
use anabranch_units::SeqNumber;

/// End of the list.
pub(crate) const END: u8 = 0;
/// Maximum segment size (RFC 9293 section 3.7.1).
const MSS: u8 = 2;
/// Window scale (RFC 7323 section 2).
const WINDOW_SCALE: u8 = 3;
/// Selective acknowledgments permitted (RFC 2018 section 2).
const SACK_PERMITTED: u8 = 4;
/// Selective acknowledgments (RFC 2018 section 3).
const SACK: u8 = 5;
/// Timestamps (RFC 7323 section 3).
const TIMESTAMPS: u8 = 8;

/// The largest shift that a receiver may use (RFC 7323 section 2.3).
const MAX_WINDOW_SCALE: u8 = 14;

/// Reads the options into `segment`.
///
/// Unknown options are skipped. A malformed MPTCP option, and any other known one with a wrong length, is ignored;
/// an option that ends behind the header ends the list. Of two of a kind the last one counts. All this follows Linux: a
/// middlebox's malformed option costs the feature, not the segment. `default_mss` replaces the option missing on a SYN
/// (RFC 9293 section 3.7.1).
pub(crate) fn decode(options: &[u8], default_mss: u16, segment: &mut Segment) {
    if segment.flags.contains(Flags::SYN) {
        segment.syn = Some(SynOptions { mss: default_mss, window_scale: None, sack_permitted: false });
    }
    let mut r = Reader::new(options);
    while let Some(kind) = r.u8() {
        match kind {
            END => return,
            NOP => continue,
            _ => {}
        }
        let Some(body) = body(&mut r) else { return };
        match kind {
            mptcp::KIND => decode_mptcp(body, segment),
            TIMESTAMPS => decode_timestamps(body, segment),
            SACK => decode_sack(body, segment),
            _ => decode_syn_option(kind, body, segment),
        }
    }
}

/// The bytes behind an option's kind and length; `None` if the length is impossible.
fn body<'a>(r: &mut Reader<'a>) -> Option<&'a [u8]> {
    let len = usize::from(r.u8()?).checked_sub(2)?;
    r.take(len)
}

fn decode_mptcp(body: &[u8], segment: &mut Segment) {
    match mptcp::decode(body) {
        Some(Decoded::Dss(dss)) => segment.dss = Some(dss),
        Some(Decoded::Other(option)) => segment.mptcp.push(option),
        None => {}
    }
}

fn decode_timestamps(body: &[u8], segment: &mut Segment) {
    if let &[a, b, c, d, e, f, g, h] = body {
        let (value, echo) = (u32::from_be_bytes([a, b, c, d]), u32::from_be_bytes([e, f, g, h]));
        segment.timestamps = Some(Timestamps { value, echo });
    }
}

fn decode_sack(body: &[u8], segment: &mut Segment) {
    let mut r = Reader::new(body);
    if body.is_empty() || !body.len().is_multiple_of(8) {
        return;
    }
    segment.sack = Default::default();
    while let (Some(start), Some(end)) = (r.u32(), r.u32()) {
        // At most four fit into a header, so none is refused.
        segment.sack.push(SackBlock { start: SeqNumber(start), end: SeqNumber(end) });
    }
}

/// Options that count on a SYN only.
fn decode_syn_option(kind: u8, body: &[u8], segment: &mut Segment) {
    let Some(syn) = &mut segment.syn else { return };
    match (kind, body) {
        // Linux takes a zero for absent, too.
        (MSS, &[high, low]) if [high, low] != [0, 0] => syn.mss = u16::from_be_bytes([high, low]),
        (WINDOW_SCALE, &[shift]) => syn.window_scale = Some(shift.min(MAX_WINDOW_SCALE)),
        (SACK_PERMITTED, &[]) => syn.sack_permitted = true,
        _ => {}
    }
}

/// Writes the options of `segment`, [`Segment::options_len`] bytes.
pub(crate) fn encode(w: &mut Writer<'_>, segment: &Segment) {
    encode_leading(w, segment);
    encode_sack(w, segment);
    if let Some(dss) = &segment.dss {
        mptcp::encode_dss(w, dss);
    }
    for option in &segment.mptcp {
        mptcp::encode(w, option);
    }
}

/// Maximum segment size, SACK-permitted, timestamps and window scale.
fn encode_leading(w: &mut Writer<'_>, segment: &Segment) {
    if let Some(syn) = &segment.syn {
        w.bytes(&[MSS, 4]);
        w.u16(syn.mss);
    }
    let sack_permitted = segment.syn.is_some_and(|syn| syn.sack_permitted);
    if sack_permitted {
        w.bytes(&[SACK_PERMITTED, 2]);
    }
    // Two bytes of padding belong to the timestamps, or to SACK-permitted where there are none; each fills the other's
    // gap.
    if sack_permitted != segment.timestamps.is_some() {
        w.bytes(&[NOP, NOP]);
    }
    if let Some(stamps) = segment.timestamps {
        w.bytes(&[TIMESTAMPS, 10]);
        w.u32(stamps.value);
        w.u32(stamps.echo);
    }
    if let Some(shift) = segment.syn.and_then(|syn| syn.window_scale) {
        w.bytes(&[NOP, WINDOW_SCALE, 3, shift]);
    }
}

fn encode_sack(w: &mut Writer<'_>, segment: &Segment) {
    let blocks = segment.sack.as_slice();
    if blocks.is_empty() {
        return;
    }
    w.bytes(&[NOP, NOP, SACK, (2 + 8 * blocks.len()) as u8]);
    for block in blocks {
        w.u32(block.start.0);
        w.u32(block.end.0);
    }
}
