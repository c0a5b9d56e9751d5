//! From an MPD to the video that a player streams.

use super::names::{file_of, within};
use super::part::{NOTICED, Nothing, Part, name};
use super::remarks::Remarks;
use super::{Mpd, MpdPeriod, MpdSelection};
use crate::content::{ContentError, ContentWarning, DashVideo, INIT_BYTES, Representation};
use anabranch_units::{Duration, text::write_time};

impl Mpd {
    /// The video that the selection chooses.
    ///
    /// Representations of equal bitrate count once, the first of them. All chosen periods must have the same number of
    /// representations; the bitrates and resolutions are those of the longest one, sizes are each period's own.
    pub fn video(&self, selection: &MpdSelection) -> Result<DashVideo, ContentError> {
        self.video_with_warnings(selection).map(|(video, _)| video)
    }

    /// The video that the selection chooses, and what of the MPD is skipped, cut, joined or corrected for it.
    pub fn video_with_warnings(
        &self,
        selection: &MpdSelection,
    ) -> Result<(DashVideo, Vec<ContentWarning>), ContentError> {
        let mut remarks = Remarks::default();
        let mut parts = self.parts(selection, &mut remarks)?;
        if let Some(limit) = selection.duration {
            cut(&mut parts, limit);
        }
        self.check_ladders(&parts)?;
        let count = parts.first().map_or(0, |part| part.representations.len());
        for part in &parts {
            part.remark_sizes(&part.representations, &mut remarks);
        }
        let durations: Vec<_> = parts.iter().flat_map(|part| part.pieces.iter().map(|piece| piece.duration)).collect();
        let sizes = (0..count).map(|rank| parts.iter().flat_map(|part| part.sizes(rank)).collect()).collect();
        let main = parts.iter().rev().max_by_key(|part| part.length());
        let representations = main.map_or_else(Vec::new, |part| {
            part.representations
                .iter()
                .map(|r| Representation { bitrate: r.bandwidth, resolution: r.resolution })
                .collect()
        });
        let init = parts.iter().flat_map(|part| &part.representations).filter_map(|r| r.segments.init_bytes).max();
        let video = DashVideo::with_sizes(representations, &durations, sizes).map_err(|error| match parts.first() {
            Some(part) => self.source.error(part.spot, error),
            None => self.source.error_of_file(error),
        })?;
        let video =
            video.with_init_bytes(init.unwrap_or(INIT_BYTES)).with_manifest_bytes(self.bytes).live_if(self.live);
        Ok((video, remarks.finish(&self.source, self.remark.as_deref())))
    }

    /// Where the media segments of the video of [`Mpd::video`] are, by rank of the representation and number: paths on
    /// the server, if the MPD itself has the path `mpd` there. `None` for those without a file of their own.
    pub fn files(&self, selection: &MpdSelection, mpd: &str) -> Result<Vec<Vec<Option<String>>>, ContentError> {
        let mut parts = self.parts(selection, &mut Remarks::default())?;
        if let Some(limit) = selection.duration {
            cut(&mut parts, limit);
        }
        let count = parts.iter().map(|part| part.representations.len()).min().unwrap_or(0);
        Ok((0..count).map(|rank| parts.iter().flat_map(|part| part.files(rank, mpd)).collect()).collect())
    }

    /// What is played of each period that is not skipped.
    fn parts<'a>(&'a self, selection: &MpdSelection, remarks: &mut Remarks<'a>) -> Result<Vec<Part<'a>>, ContentError> {
        let mut parts: Vec<Part<'_>> = Vec::new();
        let mut nothing = None;
        let mut played = Duration::ZERO;
        for (n, period) in self.chosen_periods(selection)? {
            if selection.duration.is_some_and(|limit| played >= limit && !parts.is_empty()) {
                break;
            }
            match self.part(n, period, selection, remarks) {
                Ok(part) => {
                    if let Some(before) = parts.last() {
                        remark_gap(before, &part, n, remarks);
                    }
                    played += Duration::from_nanos(u64::try_from(part.length()).unwrap_or(u64::MAX));
                    parts.push(part);
                }
                Err(Nothing::Refused(error)) => return Err(error),
                Err(Nothing::Skipped(spot, message)) => {
                    remarks.add(spot, message.clone());
                    nothing.get_or_insert((n, spot, message));
                }
            }
        }
        match nothing {
            Some((n, spot, message)) if parts.is_empty() => {
                let lead = format!("period {n} has no video");
                let why = if message.starts_with(&lead) { message } else { format!("{lead}: {message}") };
                Err(self
                    .source
                    .error(spot, format!("{why}; nothing is left to play: name an MPD or a `period` that has video")))
            }
            _ => Ok(parts),
        }
    }

    /// The periods with their numbers, counted from one.
    fn chosen_periods(
        &self,
        selection: &MpdSelection,
    ) -> Result<impl Iterator<Item = (usize, &MpdPeriod)>, ContentError> {
        let wanted = selection.period;
        if let Some(n) = wanted.filter(|n| !(1..=self.periods.len()).contains(n)) {
            let have = self.periods.len();
            let message = format!("there is no period {n}: the MPD has {have}, counted from one");
            return Err(match self.periods.last() {
                Some(last) => self.source.error(&last.spot, message),
                None => self.source.error_of_file(message),
            });
        }
        Ok((1..).zip(&self.periods).filter(move |(n, _)| wanted.is_none_or(|wanted| wanted == *n)))
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
                Err(self.source.error(odd.spot, message))
            }
        }
    }
}

/// Warns of time between two periods that neither covers.
fn remark_gap<'a>(before: &Part<'a>, after: &Part<'a>, n: usize, remarks: &mut Remarks<'a>) {
    let end = before.period.start.zip(before.period.duration).map(|(start, duration)| start + duration);
    let gap = after.period.start.zip(end).map(|(start, end)| start - end);
    if let Some(gap) = gap.filter(|gap| *gap >= NOTICED) {
        let (name, gap) = (name(n, after.period), write_time(gap));
        let message = format!("nothing is played for {gap} before {name}: the player jumps over it, as dash.js does");
        remarks.add(&after.period.spot, message);
    }
}

impl Part<'_> {
    fn files(&self, rank: usize, mpd: &str) -> Vec<Option<String>> {
        let representation = self.representations[rank];
        let base = within(mpd, &representation.base);
        let of = (representation.id.as_str(), representation.bandwidth);
        let names = representation.segments.names.of(&self.pieces, of);
        names.into_iter().map(|name| name.map(|name| file_of(&within(&base, &name)))).collect()
    }

    /// Playing time, in nanoseconds.
    fn length(&self) -> u128 {
        self.pieces.iter().map(|piece| u128::from(piece.duration.as_nanos())).sum()
    }
}

/// Keeps only the first `limit`.
fn cut(parts: &mut Vec<Part<'_>>, limit: Duration) {
    let mut left = limit;
    for part in parts.iter_mut() {
        part.pieces.retain_mut(|piece| {
            if piece.duration > left {
                (piece.duration, piece.coded) = (left, left);
            }
            left -= piece.duration;
            !piece.duration.is_zero()
        });
    }
    parts.retain(|part| !part.pieces.is_empty());
}
