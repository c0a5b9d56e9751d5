//! From a period to what is played of it: the media segments and representations of the chosen adaptation sets.

use super::axis::{Layout, Piece, Unplayable, Window};
use super::remarks::Remarks;
use super::sets::{NoVideo, UsedSets, choose, joined, unused};
use super::xml::Spot;
use super::{AdaptationSet, Mpd, MpdPeriod, MpdRepresentation, MpdSelection};
use crate::content::{ContentError, nominal_bytes};
use anabranch_units::{Duration, text::write_time};

/// Shorter parts without media are rounding, or the delay of a codec: Chromium plays over a gap of two pictures, 80 ms
/// at 25 pictures a second.
pub(super) const NOTICED: Duration = Duration::from_millis(100);
/// dash.js itself goes to the end of a period when less than this is left of it (`gaps.smallGapLimit`).
const SHORT_REST: Duration = Duration::from_millis(1_500);
/// A remote element with this address has no content (ISO/IEC 23009-1, 5.5.3).
const NOTHING: &str = "urn:mpeg:dash:resolve-to-zero:2013";

/// The chosen part of a period.
pub(super) struct Part<'a> {
    pub period: &'a MpdPeriod,
    pub spot: &'a Spot,
    pub pieces: Vec<Piece>,
    /// Ascending by bitrate, each bitrate once.
    pub representations: Vec<&'a MpdRepresentation>,
}

/// Why nothing of a period is played, or no part of the MPD.
pub(super) enum Nothing<'a> {
    /// The period is skipped.
    Skipped(&'a Spot, String),
    /// The MPD cannot be used.
    Refused(ContentError),
}

impl From<ContentError> for Nothing<'_> {
    fn from(error: ContentError) -> Self {
        Nothing::Refused(error)
    }
}

/// A period as messages name it.
pub(super) fn name(n: usize, period: &MpdPeriod) -> String {
    period.id.as_ref().map_or_else(|| format!("period {n}"), |id| format!("period {id}"))
}

impl Mpd {
    /// What is played of the `n`th period, counted from one.
    pub(super) fn part<'a>(
        &'a self,
        n: usize,
        period: &'a MpdPeriod,
        selection: &MpdSelection,
        remarks: &mut Remarks<'a>,
    ) -> Result<Part<'a>, Nothing<'a>> {
        self.check_content(n, period, selection, remarks)?;
        let (set, others) = self.chosen_sets(n, period, selection, remarks)?;
        let mut representations: Vec<_> = set.usable().collect();
        if representations.is_empty() {
            representations = set.representations.iter().collect();
        }
        if let Some(empty) = representations.iter().find(|r| r.bandwidth == 0) {
            let message = "a representation's bandwidth is 0: its rate must be known, so give it in bit/s";
            return Err(self.source.error(&empty.spot, message).into());
        }
        representations.sort_by_key(|r| r.bandwidth);
        drop_equals(&mut representations, remarks);
        let Some(first) = representations.first() else {
            let message = "the adaptation set has no representations: choose another `adaptation_set`";
            return Err(self.source.error(&set.spot, message).into());
        };
        let layout = self.layout(first, period, selection, remarks)?;
        for other in &representations[1..] {
            let others = self.layout(other, period, selection, remarks)?;
            if others.pieces.len() != layout.pieces.len() {
                let (a, b) = (layout.pieces.len(), others.pieces.len());
                let message = format!(
                    "{b} media segments, where representation `{}` has {a}: they are not aligned; take one of them out",
                    first.id
                );
                return Err(self.source.error(&other.spot, message).into());
            }
            if let Some(apart) = apart(&layout, &others) {
                let apart = write_time(apart);
                let message = format!(
                    "representation `{}` has media segments that begin up to {apart} apart from those of `{}`: these are used",
                    other.id, first.id
                );
                remarks.add(&other.spot, message);
            }
        }
        self.join(&mut representations, &layout, (n, set), &others, (period, selection), remarks)?;
        self.check_layout(n, period, &layout, remarks)?;
        Ok(Part { period, spot: &set.spot, pieces: layout.pieces, representations })
    }

    /// Whether the period has any content, here and with a length.
    fn check_content<'a>(
        &self,
        n: usize,
        period: &'a MpdPeriod,
        selection: &MpdSelection,
        remarks: &mut Remarks<'a>,
    ) -> Result<(), Nothing<'a>> {
        let name = name(n, period);
        let skipped = |message| Err(Nothing::Skipped(&period.spot, message));
        match &period.remote {
            Some(remote) if remote == NOTHING => {
                return skipped(format!("{name} is empty (xlink:href=\"{NOTHING}\"): it is skipped"));
            }
            Some(remote) if period.sets.is_empty() => {
                let message = format!(
                    "{name} is remote (xlink:href=\"{remote}\"), which is not fetched: it is skipped; write its content into the \
                     MPD to play it"
                );
                return skipped(message);
            }
            Some(remote) => {
                let message = format!(
                    "{name} is remote (xlink:href=\"{remote}\"), which is not fetched: what stands here in its place is played"
                );
                remarks.add(&period.spot, message);
            }
            None => {}
        }
        if period.sets.is_empty() {
            return skipped(format!("{name} is empty: it has no AdaptationSet, and is skipped"));
        }
        if period.duration.is_some_and(|duration| duration.is_zero()) {
            return skipped(format!("{name} is empty: its length is zero, and it is skipped"));
        }
        if !period.overlap.is_zero() && selection.period.is_none() {
            let overlap = write_time(period.overlap);
            remarks.add(
                &period.spot,
                format!("the next period begins {overlap} before the end of {name}: it is cut there"),
            );
        }
        Ok(())
    }

    /// The set that counts, and those that may be joined with it.
    fn chosen_sets<'a>(
        &self,
        n: usize,
        period: &'a MpdPeriod,
        selection: &MpdSelection,
        remarks: &mut Remarks<'a>,
    ) -> Result<(&'a AdaptationSet, Vec<usize>), Nothing<'a>> {
        if let Some(wanted) = selection.adaptation_set {
            let have = period.sets.len();
            let message = || format!("period {n} has no adaptation set {wanted}: it has {have}");
            let set = wanted.checked_sub(1).and_then(|at| period.sets.get(at));
            let set = set.ok_or_else(|| self.source.error(&period.spot, message()))?;
            return match &set.fault {
                Some(fault) => Err(self.source.fault(fault).into()),
                None => Ok((set, Vec::new())),
            };
        }
        match choose(&period.sets) {
            Ok(UsedSets { sets, remarks: of_sets }) => {
                for (at, message) in of_sets {
                    remarks.add(&period.sets[at].spot, format!("{}: {message}", name(n, period)));
                }
                Ok((&period.sets[sets[0]], sets))
            }
            Err(NoVideo::Fault(fault)) => Err(self.source.fault(&fault).into()),
            Err(NoVideo::None) => Err(Nothing::Skipped(&period.spot, format!("period {n} has no video"))),
            Err(NoVideo::Skipped(why)) => {
                Err(Nothing::Skipped(&period.spot, format!("period {n} has no video that dash.js plays: {why}")))
            }
        }
    }

    /// Adds the representations of the other sets whose media segments coincide.
    fn join<'a>(
        &self,
        representations: &mut Vec<&'a MpdRepresentation>,
        layout: &Layout,
        (n, set): (usize, &'a AdaptationSet),
        together: &[usize],
        (period, selection): (&'a MpdPeriod, &MpdSelection),
        remarks: &mut Remarks<'a>,
    ) -> Result<(), Nothing<'a>> {
        let mut used: Vec<usize> = together.iter().copied().take(1).collect();
        for &at in together.iter().skip(1) {
            let other = &period.sets[at];
            let mut coincide = true;
            for representation in other.usable().filter(|r| r.bandwidth > 0) {
                let own = self.layout(representation, period, selection, remarks)?;
                coincide &= own.pieces.len() == layout.pieces.len() && apart(layout, &own).is_none();
            }
            if coincide {
                used.push(at);
                representations.extend(other.usable().filter(|r| r.bandwidth > 0));
            } else {
                let message = unused(at, other, "other media segments");
                remarks.add(&other.spot, format!("{}: {message}", name(n, period)));
            }
        }
        if used.len() > 1 {
            representations.sort_by_key(|r| r.bandwidth);
            drop_equals(representations, remarks);
            if let Some(message) = joined(&period.sets, &used) {
                remarks.add(&set.spot, format!("{}: {message}", name(n, period)));
            }
        }
        Ok(())
    }

    fn layout(
        &self,
        representation: &MpdRepresentation,
        period: &MpdPeriod,
        selection: &MpdSelection,
        remarks: &mut Remarks<'_>,
    ) -> Result<Layout, ContentError> {
        let window = Window { period: period.duration, enough: selection.duration };
        let found = representation.segments.division.layout(window, selection.segment_duration);
        let layout = found.map_err(|why| self.source.error(&representation.spot, complaint(why)))?;
        if remarks.lay(layout.pieces.len()) {
            return Ok(layout);
        }
        let message = "the media segments of all representations are more than can be played: give a `duration`";
        Err(self.source.error(&representation.spot, message))
    }

    /// Whether anything lies in the period, and where nothing does.
    fn check_layout<'a>(
        &self,
        n: usize,
        period: &'a MpdPeriod,
        layout: &Layout,
        remarks: &mut Remarks<'a>,
    ) -> Result<(), Nothing<'a>> {
        let name = name(n, period);
        let Some(last) = layout.pieces.last() else {
            let message = if layout.listed {
                format!(
                    "{name} is empty: no media segment lies between its begin and its end, and it is skipped; check \
                     `presentationTimeOffset`, and the period's `start` and `duration`"
                )
            } else {
                format!("{name} is empty: it lists no media segments, and is skipped")
            };
            return Err(Nothing::Skipped(&period.spot, message));
        };
        // A live presentation lists what is still offered, so its begin is no hole.
        let holes = layout.holes.iter().filter(|hole| hole.length >= NOTICED && !(self.live && hole.at.is_zero()));
        if let Some(first) = holes.clone().next() {
            let count = holes.clone().count();
            let whole = holes.fold(Duration::ZERO, |sum, hole| sum + hole.length);
            let (at, whole) = (write_time(first.at), write_time(whole));
            let what = if count == 1 {
                format!("a hole of {whole}")
            } else {
                format!("{count} holes of {whole} together, the first")
            };
            remarks.add(&period.spot, format!("{name} has {what} at {at}: the player jumps over it, as dash.js does"));
        }
        if layout.back >= NOTICED {
            let message = format!(
                "{name} has media segments that begin up to {} before the end of the one before: they are played one after the other",
                write_time(layout.back)
            );
            remarks.add(&period.spot, message);
        }
        let end = last.start + last.duration;
        // A limit ends the list as well, but what it leaves out is not missing.
        let rest = period.duration.map_or(Duration::ZERO, |length| length - end);
        if rest >= SHORT_REST && !self.live && !layout.limited {
            let (end, length) = (write_time(end), write_time(period.duration.unwrap_or_default()));
            remarks.add(
                &period.spot,
                format!("{name} has media segments for {end} of its {length}: it ends with the last one"),
            );
        }
        Ok(())
    }
}

/// By how much the media segments of two representations begin apart, if that can be noticed.
fn apart(one: &Layout, other: &Layout) -> Option<Duration> {
    let pairs = one.pieces.iter().zip(&other.pieces);
    let distance = |(a, b): (&Piece, &Piece)| a.start.max(b.start) - a.start.min(b.start);
    pairs.map(distance).max().filter(|apart| *apart >= NOTICED)
}

/// Two representations of one bitrate cannot be told apart by a rule.
fn drop_equals<'a>(representations: &mut Vec<&'a MpdRepresentation>, remarks: &mut Remarks<'a>) {
    representations.dedup_by(|next, kept| {
        let equal = next.bandwidth == kept.bandwidth;
        if equal {
            let message = format!("representation `{}` has the bandwidth of `{}`, and is left out", next.id, kept.id);
            remarks.add(&next.spot, message);
        }
        equal
    });
}

fn complaint(why: Unplayable) -> &'static str {
    match why {
        Unplayable::Endless => "the period has no end: give a `duration`",
        Unplayable::NeedsIndex => {
            "its media segments are listed only in the media file's index: give a `segment_duration`"
        }
        Unplayable::NoDurations => {
            "its media segments have no durations: give `duration` or a SegmentTimeline in the MPD"
        }
        Unplayable::TooMany => {
            "its media segments are too many, or too short or too long to be played: check `timescale`, and give a `duration`"
        }
    }
}

impl Part<'_> {
    /// The sizes in bytes of the representation of this rank: stated or nominal.
    pub fn sizes(&self, rank: usize) -> Vec<u64> {
        let representation = self.representations[rank];
        let size = |piece: &Piece| {
            let nominal = nominal_bytes(representation.bandwidth, piece.coded);
            let index = usize::try_from(piece.index).unwrap_or(usize::MAX);
            let range = representation.segments.sizes.get(index).copied().flatten();
            range.or_else(|| representation.stated.get(index).map(|stated| stated.bytes(nominal))).unwrap_or(nominal)
        };
        self.pieces.iter().map(size).collect()
    }

    /// Warns of sizes that are not as they are stated.
    pub fn remark_sizes<'a>(&self, representations: &[&'a MpdRepresentation], remarks: &mut Remarks<'a>) {
        for representation in representations {
            let MpdRepresentation { id, stated, segments, .. } = representation;
            let listed = self.pieces.last().map_or(0, |piece| piece.index.saturating_add(1));
            if !stated.is_empty() && (stated.len() as u64) < listed {
                let message = format!(
                    "representation `{id}` has {} SegmentSize for {listed} media segments: the others have their nominal size",
                    stated.len()
                );
                remarks.add(&representation.spot, message);
            }
            let nominal = |piece: &Piece| nominal_bytes(representation.bandwidth, piece.coded);
            let of = |piece: &Piece| usize::try_from(piece.index).ok().and_then(|index| stated.get(index));
            let mistaken = self
                .pieces
                .iter()
                .filter(|piece| of(piece).is_some_and(|size| size.is_mistaken(nominal(piece))))
                .count();
            if mistaken > 0 {
                let message = format!(
                    "representation `{id}` has {mistaken} SegmentSize in Mbits of a thousand times their nominal size: they are \
                     read as Kbits"
                );
                remarks.add(&representation.spot, message);
            }
            if segments.open_ranges > 0 {
                let message = format!(
                    "representation `{id}` has {} `mediaRange` without an end: these media segments have their nominal size",
                    segments.open_ranges
                );
                remarks.add(&representation.spot, message);
            }
        }
    }
}
