//! Levels: each viewer of a shared bottleneck gets a level of the ladder, and responses at the pace at which a player
//! keeps it.
//!
//! A player measures how fast a response arrives, and takes the highest bitrate below nine tenths of that. So a server
//! chooses a viewer's level by the pace: above what the level needs, and below what the next one needs.
//!
//! ```text
//! lower_i  = bitrate(level_i) / 0.9       upper_i = bitrate(level_i + 1) / 0.9
//! wanted_i = lower_i + position * (upper_i - lower_i)          `rising` for `position` while the buffer or the level is not reached
//! claim_i  = wanted_i * min(boost, max(1, wanted_i / mean throughput of i))
//! pace_i   = claim_i * min(1, 1.1 * C / sum of the claims of viewers with a response under way)
//! ```
//!
//! C is what arrives per second while the claims are above it: a sample is the mean of four such seconds; a higher one
//! counts at once, a lower one by a tenth. It is not configured. That of a group that got other members is at least
//! what has arrived for all of them in the last four to eight seconds: from the C of its first members, paces that are
//! a tenth above it would take minutes to grow.
//!
//! The server knows the sizes of the media segments that come next. So it predicts the mean buffer of all viewers for
//! `horizon_s`, if C and all levels stay as they are:
//! - a viewer's level rises if the buffer stays above `high` times the full one with it, or if C carries `1 / room` of
//!   the need;
//! - a level falls if the buffer gets below `low` times the full one without that, and C does not carry that;
//! - two viewers change levels every `turn_s` if their mean bitrates, which forget within `memory_s`, differ by more
//!   than a twentieth.
//!
//! The lowest level rises first, and the highest falls first; among equals the mean bitrates decide. One level changes
//! at a time, and the next one after `settle_s`; among more than eight viewers both `settle_s` and `turn_s` are shorter
//! in proportion, since each viewer is a smaller part of the whole. Who comes or leaves, or a C that is another by a
//! fifth, has all levels allotted again: as equal as C allows. Nothing is paced for a viewer who is alone, whose buffer
//! is below `start_s`, or whose MPD the server does not know.
//!
//! All of this holds within a group of viewers who share a bottleneck ([`Viewer::group`]); each group has a C of its
//! own.
//!
//! Ours.

use super::capacity::{Arrivals, Capacity};
use super::{Entry, Moment, Response, ResponsePacing, Viewer};
use anabranch_units::{Bandwidth, Duration, Instant};
use std::cmp::Ordering;

pub(super) const ENTRY: Entry = Entry {
    name: "levels",
    summary: "Gives viewers who share a bottleneck equal levels of the ladder, at paces at which players keep them.",
    source: "ours",
    create: |options| {
        options.expect_only(&[
            "position",
            "rising",
            "boost",
            "half_s",
            "horizon_s",
            "high",
            "low",
            "room",
            "settle_s",
            "turn_s",
            "memory_s",
            "start_s",
        ])?;
        let seconds = |name, default| options.number(name, default, 0.0..=3_600.0);
        Ok(Some(Box::new(Levels {
            position: options.number("position", 0.9, 0.0..=1.0)?,
            rising: options.number("rising", 1.2, 0.0..=2.0)?,
            boost: options.number("boost", 2.5, 1.0..=100.0)?,
            half_s: options.number("half_s", 5.0, 0.1..=1_000.0)?,
            horizon: Duration::from_secs_f64(options.number("horizon_s", 60.0, 2.0..=3_600.0)?),
            high: options.number("high", 0.95, 0.0..=1.0)?,
            low: options.number("low", 0.4, 0.0..=1.0)?,
            room: options.number("room", 0.9, 0.0..=1.0)?,
            settle: Duration::from_secs_f64(seconds("settle_s", 20.0)?),
            turn: Duration::from_secs_f64(seconds("turn_s", 120.0)?),
            memory_s: options.number("memory_s", 200.0, 1.0..=100_000.0)?,
            start_s: seconds("start_s", 4.0)?,
            ..Levels::default()
        })))
    },
};

/// Players take the highest bitrate below this share of the throughput (dash.js: `bandwidthSafetyFactor`).
const SAFETY: f64 = 0.9;
/// The highest level has no next one: its pace may be this much above what it needs.
const TOP_UPPER: f64 = 1.3;
/// A buffer within this of its full level is full.
const NEARLY_S: f64 = 1.0;
/// A player that asks this long after the last response has waited because its buffer was full.
const WAITED: Duration = Duration::from_millis(200);
/// The full buffer of a player that has never waited is taken for this long. dash.js requests below 12 to 18 s.
const FULL_S: f64 = 15.0;
/// Paces may be this much above the capacity together: with less, the capacity would never be seen to grow.
const PROBE: f64 = 1.1;
/// Mean bitrates that differ by less than this factor are equal.
const UNLIKE: f64 = 1.05;
/// Levels are allotted again if the capacity is another by this factor.
const OTHER: f64 = 1.2;
/// One level changes at a time, in groups of up to so many viewers; in larger ones levels change more often in
/// proportion.
const FEW: f64 = 8.0;
/// The step of the forecast.
const STEP: Duration = Duration::from_secs(2);

#[derive(Debug, Default)]
struct Levels {
    position: f64,
    rising: f64,
    boost: f64,
    half_s: f64,
    horizon: Duration,
    high: f64,
    low: f64,
    room: f64,
    settle: Duration,
    turn: Duration,
    memory_s: f64,
    start_s: f64,
    members: Vec<Member>,
    /// By number of the group.
    pools: Vec<Pool>,
    arrivals: Arrivals,
    /// The group that is decided about.
    group: usize,
    forgot_at: Instant,
}

/// What the viewers of a group share.
#[derive(Debug, Default)]
struct Pool {
    capacity: Capacity,
    /// The capacity when levels were allotted last, bit/s.
    allotted: f64,
    /// When a level changed last, and when two viewers last took each other's.
    changed_at: Instant,
    turned_at: Instant,
}

#[derive(Clone, Copy, Debug, Default)]
struct Member {
    /// The viewer asked for media, and the connection is open.
    present: bool,
    group: usize,
    level: usize,
    /// The buffer's level when the player waited before it asked, in seconds: what it keeps when nothing is wrong.
    full_s: Option<f64>,
    /// The mean throughput of recent responses, bit/s; zero as long as there was none.
    throughput: f64,
    /// The level and the media segment that were asked for last.
    asked: usize,
    index: u32,
}

/// What comes in the next `horizon_s` with the present levels.
struct Forecast {
    /// The lowest mean buffer, as a share of the full one.
    buffer: f64,
    /// What the levels need, as a share of what the capacity carries.
    load: f64,
}

impl ResponsePacing for Levels {
    fn decide(&mut self, now: Instant, viewers: &mut [Viewer], moment: &Moment) {
        // A new viewer is alone.
        self.members.extend((self.members.len()..viewers.len()).map(|group| Member { group, ..Member::default() }));
        self.pools.resize_with(viewers.len(), Pool::default);
        self.arrivals.note(now, viewers);
        self.regroup(now, viewers);
        let Some(at) = moment.viewer() else { return };
        self.group = viewers[at].group;
        let delivered = self.delivered(viewers);
        self.pool().capacity.measure(now, delivered);
        self.forget(now, viewers);
        match *moment {
            Moment::Requested(at) => self.on_request(now, viewers, at),
            Moment::Delivered(at, response) => self.note_throughput(now, at, &response),
            Moment::Left(at) => {
                self.members[at].present = false;
                self.allot(now, viewers);
            }
            Moment::Grouped => {}
        }
        let (before, capacity) = (self.pool().allotted, self.capacity());
        if capacity > OTHER * before || capacity < before / OTHER {
            self.allot(now, viewers);
        }
        self.adjust(now, viewers);
        self.set_paces(now, viewers);
    }

    fn groups(&self) -> bool {
        true
    }
}

impl Levels {
    fn pool(&mut self) -> &mut Pool {
        &mut self.pools[self.group]
    }

    /// The capacity of the group, bit/s; zero as long as it is not known.
    fn capacity(&self) -> f64 {
        self.pools[self.group].capacity.bps()
    }

    /// Bytes that all viewers of the group have acknowledged.
    fn delivered(&self, viewers: &[Viewer]) -> u64 {
        viewers.iter().filter(|viewer| viewer.group == self.group).map(|viewer| viewer.delivered).sum()
    }

    /// Takes over who is in which group. The levels of a group with other members are allotted again.
    fn regroup(&mut self, now: Instant, viewers: &mut [Viewer]) {
        let mut others = Vec::new();
        for (member, viewer) in self.members.iter_mut().zip(viewers.iter()) {
            if member.group != viewer.group {
                others.extend([member.group, viewer.group]);
                member.group = viewer.group;
            }
        }
        others.sort_unstable();
        others.dedup();
        for group in others {
            self.group = group;
            let (delivered, arrived) = (self.delivered(viewers), self.arrivals.rate(now, viewers, group));
            self.pool().capacity.rebase(now, delivered, arrived);
            self.allot(now, viewers);
            self.set_paces(now, viewers);
        }
    }

    /// Old requests count less in the mean bitrates.
    fn forget(&mut self, now: Instant, viewers: &mut [Viewer]) {
        let passed = now.since(self.forgot_at).as_secs_f64();
        let share = (1.0 - passed / self.memory_s).max(0.0);
        viewers.iter_mut().for_each(|viewer| viewer.forget(share));
        self.forgot_at = now;
    }

    /// The mean of throughputs that players keep, too: recent ones count more, and long downloads.
    fn note_throughput(&mut self, now: Instant, at: usize, response: &Response) {
        let member = &mut self.members[at];
        let (sample, took) = (response.throughput(now), now.since(response.began_at.unwrap_or(now)).as_secs_f64());
        let keeps = if member.throughput > 0.0 { libm::exp2(-took / self.half_s) } else { 0.0 };
        member.throughput = keeps * member.throughput + (1.0 - keeps) * sample;
    }

    fn on_request(&mut self, now: Instant, viewers: &[Viewer], at: usize) {
        let Some(response) = viewers[at].current() else { return };
        let joins = !self.members[at].present && viewers[at].representations() > 0;
        if joins {
            self.members[at] = Member { present: true, group: self.group, ..Member::default() };
        }
        let member = &mut self.members[at];
        member.asked = response.segment.representation as usize;
        member.index = response.segment.index;
        if response.idle_before >= WAITED {
            member.full_s = Some(viewers[at].buffer(now).as_secs_f64());
        }
        if joins {
            self.allot(now, viewers);
        }
    }

    /// Positions of the viewers of the group who are present.
    fn present(&self) -> impl Iterator<Item = usize> {
        (0..self.members.len()).filter(|&at| self.members[at].present && self.members[at].group == self.group)
    }

    /// By level, and among equals by mean bitrate.
    fn by_level(&self, viewers: &[Viewer], a: usize, b: usize) -> Ordering {
        let by_mean = viewers[a].mean_bitrate().total_cmp(&viewers[b].mean_bitrate());
        self.members[a].level.cmp(&self.members[b].level).then(by_mean)
    }

    /// Who gets the next step up.
    fn lowest(&self, viewers: &[Viewer]) -> Option<usize> {
        let below_top = |&at: &usize| self.members[at].level + 1 < viewers[at].representations();
        self.present().filter(below_top).min_by(|&a, &b| self.by_level(viewers, a, b))
    }

    /// Levels as equal as the capacity allows.
    fn allot(&mut self, now: Instant, viewers: &[Viewer]) {
        let (capacity, group) = (self.capacity(), self.group);
        (self.pool().changed_at, self.pool().allotted) = (now, capacity);
        self.members.iter_mut().filter(|member| member.group == group).for_each(|member| member.level = 0);
        let bitrate = |at: usize, level: usize| viewers[at].bitrate(level);
        let mut left = capacity - self.present().map(|at| bitrate(at, 0)).sum::<f64>();
        while let Some(at) = self.lowest(viewers) {
            let level = self.members[at].level;
            left -= bitrate(at, level + 1) - bitrate(at, level);
            if left < 0.0 {
                return;
            }
            self.members[at].level += 1;
        }
    }

    /// At most one change of the levels, or of two that are exchanged.
    fn adjust(&mut self, now: Instant, viewers: &[Viewer]) {
        let count = self.present().count();
        let unknown = self.capacity() <= 0.0 || count < 2;
        let part = (FEW / count.max(1) as f64).min(1.0);
        let (settle, turn) = (self.settle.mul_f64(part), self.turn.mul_f64(part));
        if unknown || now.since(self.pool().changed_at) < settle {
            return;
        }
        let forecast = self.forecast(now, viewers, None);
        let changes = if forecast.buffer < self.low && forecast.load > self.room {
            self.lower(viewers)
        } else {
            self.raise(now, viewers) || (now.since(self.pool().turned_at) >= turn && self.take_turns(now, viewers))
        };
        if changes {
            self.pool().changed_at = now;
        }
    }

    fn lower(&mut self, viewers: &[Viewer]) -> bool {
        let above = self.present().filter(|&at| self.members[at].level > 0);
        let highest = above.max_by(|&a, &b| self.by_level(viewers, a, b));
        highest.inspect(|&at| self.members[at].level -= 1).is_some()
    }

    fn raise(&mut self, now: Instant, viewers: &[Viewer]) -> bool {
        let Some(at) = self.lowest(viewers) else { return false };
        let forecast = self.forecast(now, viewers, Some(at));
        let raises = forecast.buffer > self.high || forecast.load < self.room;
        self.members[at].level += usize::from(raises);
        raises
    }

    /// The viewer with the lowest level takes that of the one with the highest, if the latter had more.
    fn take_turns(&mut self, now: Instant, viewers: &[Viewer]) -> bool {
        let low = self.present().min_by(|&a, &b| self.by_level(viewers, a, b));
        let high = self.present().max_by(|&a, &b| self.by_level(viewers, a, b));
        let (Some(low), Some(high)) = (low, high) else { return false };
        let (lower, higher) = (self.members[low].level, self.members[high].level);
        if lower == higher || viewers[high].mean_bitrate() <= UNLIKE * viewers[low].mean_bitrate() {
            return false;
        }
        self.members[low].level = higher.min(viewers[low].representations() - 1);
        self.members[high].level = lower.min(viewers[high].representations() - 1);
        self.pool().turned_at = now;
        true
    }

    /// Bits per second that this level needs some time after the media segment that was asked for last.
    fn need(&self, viewer: &Viewer, member: &Member, level: usize, ahead: Duration) -> f64 {
        let Some(video) = viewer.video().filter(|video| member.index < video.segments()) else { return 0.0 };
        let index = video.at_time(video.start(member.index) + ahead);
        let over = video.start(member.index) + ahead >= video.duration();
        if over { 0.0 } else { video.bytes(level, index) as f64 * 8.0 / video.duration_of(index).as_secs_f64() }
    }

    /// What comes with the present levels, or with that of one viewer a step higher.
    fn forecast(&self, now: Instant, viewers: &[Viewer], raised: Option<usize>) -> Forecast {
        let level = |at: usize| self.members[at].level + usize::from(raised == Some(at));
        let count = self.present().count() as f64;
        let full_s: f64 = self.present().map(|at| self.members[at].full_s.unwrap_or(FULL_S)).sum();
        let buffer_of = |at: usize| {
            let full = self.members[at].full_s.unwrap_or(FULL_S);
            viewers[at].buffer(now).as_secs_f64().min(full)
        };
        let buffered_s: f64 = self.present().map(buffer_of).sum();
        let bitrates: f64 = self.present().map(|at| viewers[at].bitrate(level(at))).sum();
        let carried = self.capacity() * STEP.as_secs_f64();
        // Bits that are missing, and would be if the buffers were full; no more arrives than fills them.
        let empty = (full_s - buffered_s) / count * bitrates;
        let (mut missing, mut worst, mut needed, mut steps) = (0.0_f64, 0.0_f64, 0.0, 0.0);
        let mut ahead = Duration::ZERO;
        while ahead < self.horizon {
            let need = |at: usize| self.need(&viewers[at], &self.members[at], level(at), ahead);
            let need = self.present().map(need).sum::<f64>() * STEP.as_secs_f64();
            missing = (missing + need - carried).max(-empty);
            worst = worst.max(missing);
            needed += need;
            steps += 1.0;
            ahead += STEP;
        }
        let buffer = (buffered_s - worst / bitrates * count) / full_s;
        Forecast { buffer, load: needed / (steps * carried) }
    }

    fn set_paces(&mut self, now: Instant, viewers: &mut [Viewer]) {
        let free = self.present().count() < 2 || self.capacity() <= 0.0;
        let claims: Vec<Option<f64>> = (0..viewers.len())
            .map(|at| {
                let (member, buffer_s) = (&self.members[at], viewers[at].buffer(now).as_secs_f64());
                let paced = !free && member.present && member.group == self.group && buffer_s >= self.start_s;
                paced.then(|| self.claim(member, &viewers[at], buffer_s))
            })
            .collect();
        let sending: Vec<Option<f64>> =
            self.present().filter(|&at| viewers[at].is_served()).map(|at| claims[at]).collect();
        let claimed: f64 = sending.iter().flatten().sum();
        let paced = sending.iter().flatten().count();
        // Who is not paced takes an equal share.
        let share = PROBE * self.capacity() * paced as f64 / sending.len().max(1) as f64;
        let scale = if claimed > share { share / claimed } else { 1.0 };
        self.pool().capacity.note_claims(if paced < sending.len() { f64::INFINITY } else { claimed });
        for (viewer, claim) in viewers.iter_mut().zip(claims).filter(|(viewer, _)| viewer.group == self.group) {
            viewer.pace = claim.map(|claim| Bandwidth::from_bps((claim * scale) as u64));
        }
    }

    /// The throughput at which a player keeps its level or gets to it. What others took from the last responses is made
    /// up for.
    fn claim(&self, member: &Member, viewer: &Viewer, buffer_s: f64) -> f64 {
        let lower = viewer.bitrate(member.level) / SAFETY;
        let top = member.level + 1 >= viewer.representations();
        let upper = if top { TOP_UPPER * lower } else { viewer.bitrate(member.level + 1) / SAFETY };
        let full = member.full_s.is_some_and(|full_s| buffer_s >= full_s - NEARLY_S);
        let position = if full && member.asked >= member.level { self.position } else { self.rising };
        let wanted = lower + position * (upper - lower);
        let lacks = if member.throughput > 0.0 { (wanted / member.throughput).clamp(1.0, self.boost) } else { 1.0 };
        lacks * wanted
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::MediaSegment;
    use crate::testing::at_ms;
    use anabranch_registry::options::{Options, Value};
    use std::sync::Arc;

    /// Bytes of a response and milliseconds that it takes. All viewers of a test begin at once, so four of them get 9.6
    /// Mb/s.
    const USUAL: (u64, u64) = (300_000, 1_000);

    fn viewers(count: usize) -> Vec<Viewer> {
        let ladder = crate::content::find_ladder("bbb-2s").unwrap();
        let video = Arc::new(ladder.video(None).unwrap());
        (0..count).map(|_| Viewer::new(Some(video.clone()))).collect()
    }

    /// All viewers ask for media segment `index`, each for the highest level within nine tenths of its pace, and have
    /// it some time after.
    fn round(levels: &mut dyn ResponsePacing, viewers: &mut [Viewer], index: u32, from_ms: u64, response: (u64, u64)) {
        let (bytes, took_ms) = response;
        for at in 0..viewers.len() {
            let within =
                |pace: Bandwidth| (1..20).rev().find(|&r| viewers[at].bitrate(r) < SAFETY * pace.as_bps() as f64);
            let representation = viewers[at].pace.map_or(15, |pace| within(pace).unwrap_or(0)) as u32;
            viewers[at].requested(at_ms(from_ms), 0, MediaSegment { representation, index }, bytes);
            levels.decide(at_ms(from_ms), viewers, &Moment::Requested(at));
            viewers[at].began(at_ms(from_ms), 0);
        }
        viewers.iter_mut().for_each(|viewer| viewer.delivered += bytes);
        for at in 0..viewers.len() {
            let segment = viewers[at].current().unwrap().segment;
            let response = viewers[at].completed(at_ms(from_ms + took_ms), 0, segment).unwrap();
            levels.decide(at_ms(from_ms + took_ms), viewers, &Moment::Delivered(at, response));
        }
    }

    /// Viewers who have filled their buffers in 10 s, and then waited before each request until 40 s.
    fn settled(count: usize, levels: &mut dyn ResponsePacing) -> Vec<Viewer> {
        let mut viewers = viewers(count);
        (0..10).for_each(|k| round(levels, &mut viewers, k, u64::from(k) * 1_000, USUAL));
        (10..25).for_each(|k| round(levels, &mut viewers, k, u64::from(k - 5) * 2_000, USUAL));
        viewers
    }

    fn paces(viewers: &[Viewer]) -> Vec<f64> {
        viewers.iter().filter_map(|viewer| viewer.pace).map(|pace| pace.as_bps() as f64).collect()
    }

    fn paced(viewers: &[Viewer]) -> Vec<bool> {
        viewers.iter().map(|viewer| viewer.pace.is_some()).collect()
    }

    fn sum(viewers: &[Viewer]) -> f64 {
        paces(viewers).iter().sum()
    }

    /// Without what makes up for throughputs: those of these viewers do not follow their paces.
    fn made(options: &[(&str, f64)]) -> Box<dyn ResponsePacing> {
        let options = options.iter().chain(&[("boost", 1.0)]);
        let options = options.map(|(name, value)| ((*name).to_string(), Value::Number(*value))).collect();
        super::super::create("levels", &Options::new(options)).unwrap().unwrap()
    }

    #[test]
    fn who_is_alone_or_has_a_short_buffer_is_not_paced() {
        let alone = settled(1, made(&[]).as_mut());
        assert_eq!(alone[0].pace, None);
        let mut levels = made(&[("start_s", 1_000.0)]);
        assert!(paces(&settled(4, levels.as_mut())).is_empty());
        assert_eq!(paces(&settled(4, made(&[]).as_mut())).len(), 4);
    }

    #[test]
    fn paces_lie_between_what_the_level_and_the_next_one_need() {
        // Four times level 14 is 8.5 Mb/s, and four times level 15 is 9.9.
        let viewers = settled(4, made(&[("turn_s", 3_600.0)]).as_mut());
        let edges = [14, 15, 16].map(|level| viewers[0].bitrate(level) / SAFETY);
        let mut paces = paces(&viewers);
        paces.sort_by(f64::total_cmp);
        assert!(paces[0] > edges[0] && paces[0] < edges[1], "{paces:?}");
        assert!(paces[3] > edges[1] && paces[3] < edges[2], "{paces:?}");
    }

    #[test]
    fn paces_of_responses_under_way_are_a_tenth_above_what_arrives() {
        let mut levels = made(&[]);
        let mut viewers = settled(4, levels.as_mut());
        assert!(sum(&viewers) > 1.2 * PROBE * 9.6e6, "nothing is sent");
        for at in 0..4 {
            viewers[at].requested(at_ms(40_000), 0, MediaSegment { representation: 15, index: 25 }, 300_000);
            levels.decide(at_ms(40_000), &mut viewers, &Moment::Requested(at));
        }
        assert!((sum(&viewers) - PROBE * 9.6e6).abs() < 10.0, "{:?}", paces(&viewers));
    }

    #[test]
    fn more_that_arrives_raises_levels_and_buffers_that_fall_lower_them() {
        let mut levels = made(&[]);
        let mut viewers = settled(4, levels.as_mut());
        let before = sum(&viewers);
        // Twice as fast, with no pause.
        (25..35).for_each(|k| {
            round(levels.as_mut(), &mut viewers, k, 40_000 + u64::from(k - 25) * 1_000, (600_000, 1_000));
        });
        let raised = sum(&viewers);
        assert!(raised > 1.5 * before, "{before} -> {raised}");
        // A third of that: 600 kB take 3 s.
        (35..47).for_each(|k| {
            round(levels.as_mut(), &mut viewers, k, 50_000 + u64::from(k - 35) * 3_000, (600_000, 3_000));
        });
        let lowered = sum(&viewers);
        assert_eq!(paces(&viewers).len(), 4, "buffers are not short yet");
        assert!(lowered < 0.8 * raised, "{raised} -> {lowered}");
    }

    #[test]
    fn each_group_is_paced_by_what_arrives_for_it() {
        let mut levels = made(&[("turn_s", 3_600.0)]);
        let mut viewers = viewers(4);
        for (viewer, group) in viewers.iter_mut().zip([0, 0, 2, 3]) {
            viewer.group = group;
        }
        (0..10).for_each(|k| round(levels.as_mut(), &mut viewers, k, u64::from(k) * 1_000, USUAL));
        (10..25).for_each(|k| round(levels.as_mut(), &mut viewers, k, u64::from(k - 5) * 2_000, USUAL));
        // Two viewers get 4.8 Mb/s of their own bottleneck, and the others are alone.
        assert_eq!(paced(&viewers), [true, true, false, false]);
        let lower = viewers[0].bitrate(14) / SAFETY;
        assert!(paces(&viewers).iter().all(|pace| *pace > lower && *pace < 4.8e6), "{:?}", paces(&viewers));
        // The third one turns out to share it: all three have it, and what arrives for them.
        viewers[2].group = 0;
        levels.decide(at_ms(40_000), &mut viewers, &Moment::Grouped);
        (25..45).for_each(|k| round(levels.as_mut(), &mut viewers, k, u64::from(k - 5) * 2_000, USUAL));
        assert_eq!(paced(&viewers), [true, true, true, false]);
        // It moves on.
        viewers[2].group = 2;
        levels.decide(at_ms(80_000), &mut viewers, &Moment::Grouped);
        assert_eq!(paced(&viewers), [true, true, false, false]);
    }

    #[test]
    fn who_joins_elsewhere_changes_no_level() {
        let mut levels = made(&[]);
        let mut viewers = settled(4, levels.as_mut());
        // Levels that a forecast has raised are above those that the capacity alone allows.
        (25..60).for_each(|k| round(levels.as_mut(), &mut viewers, k, u64::from(k - 5) * 2_000, USUAL));
        let before = paces(&viewers);
        viewers.append(&mut self::viewers(1));
        viewers[4].group = 4;
        viewers[4].requested(at_ms(110_000), 0, MediaSegment { representation: 0, index: 0 }, 300_000);
        levels.decide(at_ms(110_000), &mut viewers, &Moment::Requested(4));
        assert_eq!(paces(&viewers), before);
    }

    #[test]
    fn viewers_take_turns() {
        let mut levels = made(&[]);
        let mut viewers = settled(4, levels.as_mut());
        let lowest = |viewers: &[Viewer]| (0..4).min_by_key(|&at| viewers[at].pace).unwrap();
        let first = lowest(&viewers);
        let mut others = 0;
        for k in 25..290 {
            round(levels.as_mut(), &mut viewers, k, u64::from(k - 5) * 2_000, USUAL);
            others += usize::from(lowest(&viewers) != first);
        }
        assert!((60..265).contains(&others), "{others} of 265");
        let means: Vec<_> = viewers.iter().map(|viewer| viewer.mean_bitrate()).collect();
        let (least, most) = means.iter().fold((f64::MAX, 0.0_f64), |(a, b), &mean| (a.min(mean), b.max(mean)));
        assert!(most < 1.15 * least, "{means:?}");
    }
}
