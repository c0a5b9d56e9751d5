//! Trains: new data in consecutive segments, which one packet carries to the kernel. The kernel, or the interface, cuts
//! it up (segmentation offload), and so routes it once.
//!
//! Each of the segments that it is cut into has the options of the whole, and so its mapping, which covers all of them.
//! Linux's own sender has the same effect. A receiver that knows this mapping from one segment refuses another one for
//! bytes within it (Linux: `MPTcpExtDSSNoMatching`, and a reset), so a retransmission has to repeat it: [`Mappings`]
//! keeps it until its bytes are acknowledged.

use anabranch_segment::{Flags, Mapping, Segment};
use anabranch_stack::Transmit;
use anabranch_units::SeqNumber;
use std::collections::VecDeque;

/// Bytes that a connection sends before the next one's turn, IP headers included: some ten full packets. Fewer would be
/// no fairer to clients, and a connection's state would leave the processor's cache more often.
pub(super) const TURN: usize = 16 << 10;

/// Payload of a train at most, by which a packet stays within the 65 535 bytes of its length field. It is a
/// connection's turn: more would make others wait for longer.
const MAX_PAYLOAD: u32 = TURN as u32;

/// One segment of new data, or several as one.
#[derive(Clone, Debug)]
pub(super) struct Train {
    /// A segment with the payload of all.
    pub(super) whole: Transmit,
    /// Number of segments.
    pub(super) segments: u32,
    /// Payload of each of them, but for the last one, which may have less.
    pub(super) payload: u32,
}

impl Train {
    pub(super) fn of(first: Transmit) -> Self {
        Train { payload: first.segment.payload_len, segments: 1, whole: first }
    }

    /// Whether another segment may continue the train, which has new data.
    pub(super) fn may_grow(&self) -> bool {
        let segment = &self.whole.segment;
        // One with less payload is the last, and so is one that pushes.
        segment.payload_len == self.segments * self.payload
            && segment.payload_len < MAX_PAYLOAD
            && is_plain(segment, Flags::ACK)
    }

    /// Whether a segment is the next one of a train that may grow, and not the start of something else.
    pub(super) fn continues(&self, next: &Transmit) -> bool {
        let (ours, theirs) = (&self.whole.segment, &next.segment);
        let taken = ours.payload_len;
        theirs.payload_len <= self.payload
            && taken + theirs.payload_len <= MAX_PAYLOAD
            && (is_plain(theirs, Flags::ACK) || is_plain(theirs, Flags::ACK | Flags::PSH))
            && next.path == self.whole.path
            && (ours.source_port, ours.destination_port) == (theirs.source_port, theirs.destination_port)
            && theirs.seq == ours.seq + taken
            && next.stream_offset == self.whole.stream_offset + u64::from(taken)
            && (ours.ack, ours.window, ours.timestamps) == (theirs.ack, theirs.window, theirs.timestamps)
            && ours.dss.map(|dss| dss.data_ack) == theirs.dss.map(|dss| dss.data_ack)
    }

    /// Adds the segment that continues the train.
    pub(super) fn push(&mut self, next: &Transmit) {
        let segment = &mut self.whole.segment;
        segment.flags = next.segment.flags;
        segment.payload_len += next.segment.payload_len;
        self.segments += 1;
        if let Some(mapping) = mapping_mut(segment) {
            mapping.len += next.segment.payload_len as u16;
        }
    }
}

/// Whether a segment has these flags and payload, and no options that belong to it alone.
fn is_plain(segment: &Segment, flags: Flags) -> bool {
    let maps_itself = segment.dss.is_none_or(|dss| {
        let own = |mapping: Mapping| u32::from(mapping.len) == segment.payload_len && mapping.checksum.is_none();
        !dss.data_fin && dss.mapping.is_some_and(own)
    });
    segment.flags == flags
        && segment.payload_len > 0
        && segment.syn.is_none()
        && segment.sack.as_slice().is_empty()
        && segment.mptcp.is_empty()
        && maps_itself
}

fn mapping_mut(segment: &mut Segment) -> Option<&mut Mapping> {
    segment.dss.as_mut()?.mapping.as_mut()
}

/// The mapping of a train that was sent.
#[derive(Clone, Copy, Debug)]
struct Sent {
    start: SeqNumber,
    end: SeqNumber,
    mapping: Mapping,
}

/// The mappings of a subflow's trains, as far as their bytes are not all acknowledged.
#[derive(Clone, Debug, Default)]
pub(super) struct Mappings(VecDeque<Sent>);

impl Mappings {
    /// A train was sent; a single segment has the mapping that its retransmission will have anyway.
    pub(super) fn remember(&mut self, train: &Train) {
        let segment = &train.whole.segment;
        if let (true, Some(mapping)) = (train.segments > 1, segment.dss.and_then(|dss| dss.mapping)) {
            self.0.push_back(Sent { start: segment.seq, end: segment.seq + segment.payload_len, mapping });
        }
    }

    /// The peer has acknowledged everything before a number.
    pub(super) fn acknowledge(&mut self, before: SeqNumber) {
        while self.0.front().is_some_and(|sent| !is_before(before, sent.end)) {
            self.0.pop_front();
        }
    }

    /// Gives a retransmission the mapping that its bytes had. Returns the rest of it, where only its first bytes had
    /// one mapping.
    pub(super) fn restore(&self, again: &mut Transmit) -> Option<Transmit> {
        let start = again.segment.seq;
        mapping_mut(&mut again.segment).filter(|mapping| mapping.len > 0)?;
        let next = self.0.partition_point(|sent| !is_before(start, sent.end));
        let sent = self.0.get(next)?;
        let covered = !is_before(start, sent.start);
        let rest = split(again, if covered { sent.end } else { sent.start });
        if let (true, Some(mapping)) = (covered, mapping_mut(&mut again.segment)) {
            *mapping = sent.mapping;
        }
        rest
    }
}

/// Cuts a segment at a number behind its first byte. Returns what is behind it, if anything is.
fn split(transmit: &mut Transmit, at: SeqNumber) -> Option<Transmit> {
    let first = at.0.wrapping_sub(transmit.segment.seq.0);
    let left = transmit.segment.payload_len.checked_sub(first).filter(|left| *left > 0)?;
    let mut rest = transmit.clone();
    rest.stream_offset += u64::from(first);
    rest.segment.seq = at;
    rest.segment.payload_len = left;
    transmit.segment.payload_len = first;
    transmit.segment.flags = Flags::ACK;
    if let (Some(ours), Some(theirs)) = (mapping_mut(&mut transmit.segment), mapping_mut(&mut rest.segment)) {
        theirs.dsn.value = theirs.dsn.value.wrapping_add(u64::from(first));
        if !theirs.dsn.wide {
            theirs.dsn.value &= u64::from(u32::MAX);
        }
        theirs.subflow_offset = theirs.subflow_offset.wrapping_add(first);
        theirs.len -= first as u16;
        ours.len = first as u16;
    }
    Some(rest)
}

/// Whether a number is before another one, which is less than 2^31 away.
pub(super) fn is_before(number: SeqNumber, other: SeqNumber) -> bool {
    (number.0.wrapping_sub(other.0) as i32) < 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_segment::{DataSeq, Dss};
    use anabranch_units::PathId;

    const DSN: u64 = 0xffff_fff0;

    /// New data at an offset of a subflow that begins its data at offset 1 and has stream offset 0 there.
    fn data(at: u32, payload_len: u32) -> Transmit {
        let mut segment = Segment::new(Flags::ACK);
        (segment.seq, segment.payload_len) = (SeqNumber(u32::MAX - 3000) + at, payload_len);
        let dsn = DataSeq { value: (DSN + u64::from(at)) & 0xffff_ffff, wide: false };
        let mapping = Mapping { dsn, subflow_offset: 1 + at, len: payload_len as u16, checksum: None };
        segment.dss = Some(Dss { data_ack: Some(dsn_of(7)), mapping: Some(mapping), data_fin: false });
        Transmit { path: PathId(0), segment, stream_offset: u64::from(at) }
    }

    fn dsn_of(value: u64) -> DataSeq {
        DataSeq { value, wide: false }
    }

    fn mapping(transmit: &Transmit) -> (u64, u32, u16) {
        let mapping = transmit.segment.dss.unwrap().mapping.unwrap();
        (mapping.dsn.value, mapping.subflow_offset, mapping.len)
    }

    fn train(segments: &[(u32, u32)]) -> Train {
        let mut segments = segments.iter().map(|(at, len)| data(*at, *len));
        let mut train = Train::of(segments.next().unwrap());
        for next in segments {
            assert!(train.may_grow() && train.continues(&next));
            train.push(&next);
        }
        train
    }

    #[test]
    fn consecutive_segments_become_one_with_a_mapping_of_all() {
        let train = train(&[(0, 1000), (1000, 1000), (2000, 300)]);
        assert_eq!((train.segments, train.payload, train.whole.segment.payload_len), (3, 1000, 2300));
        assert_eq!(mapping(&train.whole), (DSN & 0xffff_ffff, 1, 2300));
        assert!(!train.may_grow(), "a short segment is the last");
    }

    #[test]
    fn a_train_is_no_longer_than_a_turn() {
        let mut train = train(&[(0, 1400)]);
        let mut at = 1400;
        while train.may_grow() && train.continues(&data(at, 1400)) {
            train.push(&data(at, 1400));
            at += 1400;
        }
        assert_eq!((train.segments, train.whole.segment.payload_len), (11, 15_400));
    }

    /// A change of a segment that would continue a train.
    type Change = fn(&mut Transmit);

    #[test]
    fn what_belongs_to_one_segment_alone_ends_a_train() {
        let train = train(&[(0, 1000)]);
        assert!(train.continues(&data(1000, 1000)));
        let changes: [(&str, Change); 12] = [
            ("a gap", |t| t.segment.seq = t.segment.seq + 1),
            ("another place of the stream", |t| t.stream_offset += 1),
            ("another path", |t| t.path = PathId(1)),
            ("another subflow", |t| t.segment.destination_port = 9),
            ("another window", |t| t.segment.window = 9),
            ("another acknowledgment", |t| t.segment.ack = SeqNumber(9)),
            ("another data acknowledgment", |t| t.segment.dss.as_mut().unwrap().data_ack = Some(dsn_of(8))),
            ("more payload", |t| {
                t.segment.payload_len = 1001;
                mapping_mut(&mut t.segment).unwrap().len = 1001;
            }),
            ("the end of the data", |t| t.segment.dss.as_mut().unwrap().data_fin = true),
            ("the end of the subflow", |t| t.segment.flags = Flags::ACK | Flags::FIN),
            ("a checksum", |t| mapping_mut(&mut t.segment).unwrap().checksum = Some(1)),
            ("an infinite mapping", |t| mapping_mut(&mut t.segment).unwrap().len = 0),
        ];
        for (name, change) in changes {
            let mut next = data(1000, 1000);
            change(&mut next);
            assert!(!train.continues(&next), "{name}");
        }
    }

    #[test]
    fn a_segment_that_pushes_is_the_last() {
        let mut train = train(&[(0, 1000)]);
        let mut last = data(1000, 1000);
        last.segment.flags = Flags::ACK | Flags::PSH;
        assert!(train.continues(&last));
        train.push(&last);
        assert_eq!((train.may_grow(), train.whole.segment.flags), (false, Flags::ACK | Flags::PSH));
    }

    #[test]
    fn a_retransmission_has_the_mapping_of_its_train_until_it_is_acknowledged() {
        let mut sent = Mappings::default();
        for segments in [&[(0, 1000), (1000, 1000)][..], &[(2000, 1000)], &[(3000, 1000), (4000, 500)]] {
            sent.remember(&train(segments));
        }
        let again = |sent: &Mappings, at, len| {
            let mut again = data(at, len);
            assert!(sent.restore(&mut again).is_none());
            assert_eq!(again.segment.payload_len, len);
            mapping(&again)
        };
        let own = |at: u32, len| mapping(&data(at, len));
        assert_eq!(again(&sent, 0, 1000), own(0, 2000));
        assert_eq!(again(&sent, 1000, 1000), own(0, 2000));
        assert_eq!(again(&sent, 2000, 1000), own(2000, 1000));
        assert_eq!(again(&sent, 4000, 500), own(3000, 1500));
        sent.acknowledge(data(1999, 1).segment.seq);
        assert_eq!(again(&sent, 1000, 1000), own(0, 2000), "its last byte is not acknowledged");
        sent.acknowledge(data(2000, 1).segment.seq);
        assert_eq!(sent.0.len(), 1);
        sent.acknowledge(data(4500, 1).segment.seq);
        assert!(sent.0.is_empty());
    }

    #[test]
    fn a_retransmission_with_bytes_of_several_mappings_is_cut() {
        let mut sent = Mappings::default();
        sent.remember(&train(&[(1000, 1000), (2000, 1000)]));
        sent.remember(&train(&[(3000, 1000), (4000, 1000)]));
        // From a segment of its own into the first train, through it, and into the second one.
        let (mut pieces, mut left) = (Vec::new(), Some(data(500, 3500)));
        while let Some(mut piece) = left {
            left = sent.restore(&mut piece);
            let own = data(piece.stream_offset as u32, piece.segment.payload_len);
            assert_eq!((piece.segment.seq, piece.segment.payload_len), (own.segment.seq, own.segment.payload_len));
            pieces.push((piece.stream_offset, piece.segment.payload_len, mapping(&piece)));
        }
        let own = |at: u32, len| mapping(&data(at, len));
        assert_eq!(pieces, [(500, 500, own(500, 500)), (1000, 2000, own(1000, 2000)), (3000, 1000, own(3000, 2000)),]);
    }

    #[test]
    fn data_without_mappings_travels_in_trains_and_keeps_none() {
        let bare = |at, len| {
            let mut data = data(at, len);
            data.segment.dss = None;
            data
        };
        let mut train = Train::of(bare(0, 1000));
        assert!(train.continues(&bare(1000, 1000)) && !train.continues(&data(1000, 1000)));
        train.push(&bare(1000, 1000));
        let mut sent = Mappings::default();
        sent.remember(&train);
        assert!(sent.0.is_empty() && sent.restore(&mut bare(0, 1000)).is_none());
    }
}
