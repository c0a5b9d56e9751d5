//! From an MPD to the video that a player streams.

use super::segments::Unplayable;
use super::{AdaptationSet, MediaKind, Mpd, MpdPeriod, MpdRepresentation};
use crate::content::{ContentError, DashVideo, INIT_BYTES, Place, Representation, nominal_bytes};
use anabranch_units::Duration;

/// Which parts of an MPD to use, and the assumptions for missing information.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MpdSelection {
    /// Only this period, counted from one. `None`: all of them, one after the other.
    pub period: Option<usize>,
    /// This adaptation set of each period, counted from one. `None`: of those with video the one with the highest
    /// bitrate, as dash.js chooses; the first of equals.
    pub adaptation_set: Option<usize>,
    /// Longest playing time. A period without end (a live presentation) is assumed to be this long.
    pub duration: Option<Duration>,
    /// Duration of media segments where only the media file's index has it (SegmentBase).
    pub segment_duration: Option<Duration>,
}

/// The chosen part of a period.
struct Part<'a> {
    place: Place,
    durations: Vec<Duration>,
    /// Ascending by bitrate, each bitrate once.
    representations: Vec<&'a MpdRepresentation>,
}

impl Mpd {
    /// The video that the selection chooses.
    ///
    /// Representations of equal bitrate count once, the first of them. All chosen periods must have the same number of
    /// representations; the bitrates and resolutions are those of the longest one, sizes are each period's own.
    pub fn video(&self, selection: &MpdSelection) -> Result<DashVideo, ContentError> {
        let parts = self.chosen_periods(selection)?.map(|(n, period)| self.part(n, period, selection));
        let mut parts: Vec<_> = parts.collect::<Result<_, _>>()?;
        if let Some(limit) = selection.duration {
            cut(&mut parts, limit);
        }
        self.check_ladders(&parts)?;
        let durations: Vec<_> = parts.iter().flat_map(|part| part.durations.iter().copied()).collect();
        let count = parts.first().map_or(0, |part| part.representations.len());
        let sizes = (0..count).map(|rank| parts.iter().flat_map(|part| part.sizes(rank)).collect()).collect();
        let main = parts.iter().rev().max_by_key(|part| part.durations.iter().map(|d| d.as_nanos()).sum::<u64>());
        let representations = main.map_or_else(Vec::new, |part| {
            part.representations
                .iter()
                .map(|r| Representation { bitrate: r.bandwidth, resolution: r.resolution })
                .collect()
        });
        let init = parts.iter().flat_map(|part| &part.representations).filter_map(|r| r.segments.init_bytes).max();
        let video = DashVideo::with_sizes(representations, &durations, sizes)
            .map_err(|error| self.error(parts.first().map(|part| part.place), error))?;
        Ok(video.with_init_bytes(init.unwrap_or(INIT_BYTES)).with_manifest_bytes(self.bytes).live_if(self.live))
    }

    fn error(&self, place: Option<Place>, message: impl std::fmt::Display) -> ContentError {
        ContentError::new(&self.file, place, message)
    }

    /// The periods with their numbers, counted from one.
    fn chosen_periods(
        &self,
        selection: &MpdSelection,
    ) -> Result<impl Iterator<Item = (usize, &MpdPeriod)>, ContentError> {
        let wanted = selection.period;
        if let Some(n) = wanted.filter(|n| !(1..=self.periods.len()).contains(n)) {
            let have = self.periods.len();
            return Err(self.error(None, format!("there is no period {n}: the MPD has {have}")));
        }
        Ok((1..).zip(&self.periods).filter(move |(n, _)| wanted.is_none_or(|wanted| wanted == *n)))
    }

    fn part<'a>(&self, n: usize, period: &'a MpdPeriod, selection: &MpdSelection) -> Result<Part<'a>, ContentError> {
        let set = self.chosen_set(n, period, selection)?;
        let mut representations: Vec<_> = set.representations.iter().collect();
        if let Some(silent) = representations.iter().find(|r| r.bandwidth == 0) {
            return Err(self.error(Some(silent.place), "a representation's bandwidth is 0: its rate must be known"));
        }
        representations.sort_by_key(|r| r.bandwidth);
        representations.dedup_by_key(|r| r.bandwidth);
        let length = period.duration.or(selection.duration);
        let durations = |r: &MpdRepresentation| {
            let found = r.segments.division.durations(length, selection.segment_duration);
            found.map_err(|why| self.error(Some(r.place), complaint(why)))
        };
        let Some(first) = representations.first() else {
            return Err(self.error(Some(set.place), "the adaptation set has no representations"));
        };
        let own = durations(first)?;
        for other in &representations[1..] {
            let others = durations(other)?;
            if others.len() != own.len() {
                let (a, b) = (own.len(), others.len());
                let message =
                    format!("{b} media segments, where representation `{}` has {a}: they are not aligned", first.id);
                return Err(self.error(Some(other.place), message));
            }
        }
        Ok(Part { place: set.place, durations: own, representations })
    }

    fn chosen_set<'a>(
        &self,
        n: usize,
        period: &'a MpdPeriod,
        selection: &MpdSelection,
    ) -> Result<&'a AdaptationSet, ContentError> {
        if let Some(wanted) = selection.adaptation_set {
            let have = period.sets.len();
            let missing =
                || self.error(Some(period.place), format!("period {n} has no adaptation set {wanted}: it has {have}"));
            return wanted.checked_sub(1).and_then(|at| period.sets.get(at)).ok_or_else(missing);
        }
        let videos = period.sets.iter().filter(|set| set.kind == MediaKind::Video && !set.representations.is_empty());
        let highest = |set: &&AdaptationSet| set.representations.iter().map(|r| r.bandwidth).max();
        // `max_by_key` takes the last of equals, so the list is turned round.
        let best = videos.collect::<Vec<_>>().into_iter().rev().max_by_key(highest);
        best.ok_or_else(|| self.error(Some(period.place), format!("period {n} has no video")))
    }

    fn check_ladders(&self, parts: &[Part<'_>]) -> Result<(), ContentError> {
        let Some(first) = parts.first() else { return Ok(()) };
        let own = first.representations.len();
        match parts.iter().find(|part| part.representations.len() != own) {
            None => Ok(()),
            Some(odd) => {
                let other = odd.representations.len();
                let message =
                    format!("{other} video representations, where an earlier period has {own}: choose one `period`");
                Err(self.error(Some(odd.place), message))
            }
        }
    }
}

fn complaint(why: Unplayable) -> &'static str {
    match why {
        Unplayable::Endless => "the period has no end: give a `duration`",
        Unplayable::NeedsIndex => {
            "its media segments are listed only in the media file's index: give a `segment_duration`"
        }
        Unplayable::NoDurations => "its media segments have no durations",
        Unplayable::TooMany => "its media segments are too many, or too short or too long to be played",
    }
}

/// Keeps only the first `limit`.
fn cut(parts: &mut Vec<Part<'_>>, limit: Duration) {
    let mut left = limit;
    for part in parts.iter_mut() {
        part.durations.retain_mut(|duration| {
            *duration = (*duration).min(left);
            left -= *duration;
            !duration.is_zero()
        });
    }
    parts.retain(|part| !part.durations.is_empty());
}

impl Part<'_> {
    /// The sizes in bytes of the representation of this rank: stated or nominal.
    fn sizes(&self, rank: usize) -> Vec<u64> {
        let representation = self.representations[rank];
        let size = |(index, &duration): (usize, &Duration)| {
            let nominal = nominal_bytes(representation.bandwidth, duration);
            let range = representation.segments.sizes.get(index).copied().flatten();
            range.or_else(|| representation.stated.get(index).map(|stated| stated.bytes(nominal))).unwrap_or(nominal)
        };
        self.durations.iter().enumerate().map(size).collect()
    }
}
