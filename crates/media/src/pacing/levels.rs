//! Levels: each viewer of a shared bottleneck gets a level of the ladder, and responses at the pace at which a player keeps it.
//!
//! A player measures how fast a response arrives, and takes the highest bitrate below nine tenths of that. So a server chooses a viewer's
//! level by the pace: above what the level needs, and below what the next one needs.
//!
//! ```text
//! lower_i  = bitrate(level_i) / 0.9       upper_i = bitrate(level_i + 1) / 0.9
//! wanted_i = lower_i + position * (upper_i - lower_i)             `refill` for `position`, while the buffer is not full
//! pace_i   = wanted_i * min(boost, max(1, wanted_i / mean throughput of i))
//! levels   = as equal as sum(bitrate(level_i)) <= budget allows; who had less gets more
//! ```
//!
//! Nobody states the budget:
//! - at first it is `margin` times the most that all viewers together got in ten seconds, while they fill their buffers;
//! - a buffer that falls by `drop_s` below its full level shows that it is too high: then it is `margin` times what arrived in the last
//!   `window_s`, and at least one viewer's step less than before. The next such evidence counts after `settle_s`;
//! - buffers that stay full for `raise_after_s`, while every player asks for its level, allow one viewer's step more. A step that is taken
//!   back within `trial_s` doubles that time.
//!
//! Who has the higher level changes every `turn_s`, by mean bitrates that forget within `memory_s`, so that these become equal with few
//! changes. Nothing is paced for a viewer who is alone, whose buffer is below `start_s`, or whose MPD the server does not know.
//!
//! Ours. It takes all viewers of a server for sharing one bottleneck.

use super::{Entry, Moment, Response, ResponsePacing, Viewer};
use anabranch_units::{Bandwidth, Duration, Instant};
use std::collections::VecDeque;

pub(super) const ENTRY: Entry = Entry {
    name: "levels",
    summary: "Gives viewers who share a bottleneck equal levels of the ladder, at paces at which players keep them.",
    source: "ours",
    create: |options| {
        options.expect_only(&[
            "position",
            "refill",
            "margin",
            "drop_s",
            "window_s",
            "settle_s",
            "raise_after_s",
            "trial_s",
            "turn_s",
            "start_s",
            "memory_s",
            "boost",
            "half_s",
        ])?;
        let seconds = |name, default| options.number(name, default, 0.0..=3_600.0);
        Ok(Some(Box::new(Levels {
            position: options.number("position", 0.7, 0.0..=1.0)?,
            refill: options.number("refill", 0.9, 0.0..=1.0)?,
            margin: options.number("margin", 1.0, 0.1..=1.0)?,
            drop_s: seconds("drop_s", 4.0)?,
            window: Duration::from_secs_f64(seconds("window_s", 20.0)?),
            settle: Duration::from_secs_f64(seconds("settle_s", 30.0)?),
            raise_after: Duration::from_secs_f64(seconds("raise_after_s", 30.0)?),
            trial: Duration::from_secs_f64(seconds("trial_s", 900.0)?),
            turn: Duration::from_secs_f64(seconds("turn_s", 120.0)?),
            start_s: seconds("start_s", 4.0)?,
            boost: options.number("boost", 1.2, 1.0..=100.0)?,
            half_s: options.number("half_s", 5.0, 0.1..=1_000.0)?,
            memory_s: options.number("memory_s", 200.0, 1.0..=100_000.0)?,
            ..Levels::default()
        })))
    },
};

/// Players take the highest bitrate below this share of the throughput (dash.js: `bandwidthSafetyFactor`).
const SAFETY: f64 = 0.9;
/// The highest level has no next one: its pace may be this much above what it needs.
const TOP_UPPER: f64 = 1.3;
/// The time in which the most that arrived is the first budget.
const FIRST_WINDOW: Duration = Duration::from_secs(10);
/// The first budget is allotted again when it has grown by this factor.
const GROWN: f64 = 1.05;
/// A buffer within this of its full level is full.
const NEARLY_S: f64 = 1.0;
/// The time before a step up doubles up to this many times.
const MOST_WAIT: u64 = 16;

#[derive(Debug, Default)]
struct Levels {
    position: f64,
    refill: f64,
    margin: f64,
    drop_s: f64,
    window: Duration,
    settle: Duration,
    raise_after: Duration,
    trial: Duration,
    turn: Duration,
    start_s: f64,
    memory_s: f64,
    boost: f64,
    half_s: f64,
    members: Vec<Member>,
    /// What all viewers have acknowledged, by time, of the longer window.
    arrived: VecDeque<(Instant, u64)>,
    /// Bits per second that the levels may need in sum; zero as long as nothing is known.
    budget: f64,
    /// A buffer has fallen since: what arrives is no longer the first budget.
    learned: bool,
    /// When the levels last changed for another reason than a turn, and when they were last allotted.
    changed_at: Instant,
    allotted_at: Instant,
    /// The budget then.
    allotted: f64,
    /// When a step up was last tried, and how many times `raise_after` is waited.
    tried_at: Option<Instant>,
    wait_times: u64,
    /// Since when all buffers are full.
    full_since: Option<Instant>,
    forgot_at: Instant,
}

#[derive(Clone, Copy, Debug, Default)]
struct Member {
    /// The viewer asked for media, and the connection is open.
    present: bool,
    level: usize,
    /// The buffer's level when the player waited before it asked, in seconds: what it keeps when nothing is wrong.
    full_s: f64,
    /// The buffer at the last evidence.
    seen_s: f64,
    /// The mean throughput of recent responses, bit/s; zero as long as there was none.
    throughput: f64,
    /// The level that was asked for last.
    asked: usize,
}

impl ResponsePacing for Levels {
    fn decide(&mut self, now: Instant, viewers: &mut [Viewer], moment: &Moment) {
        self.members.resize(viewers.len(), Member::default());
        self.measure(now, viewers);
        self.forget(now, viewers);
        match *moment {
            Moment::Requested(at) => self.on_request(now, viewers, at),
            Moment::Delivered(at, response) => {
                self.note_throughput(now, at, &response);
                self.on_delivery(now, viewers, at);
            }
            Moment::Left(at) => {
                self.members[at].present = false;
                self.allot(now, viewers);
            }
        }
        self.set_paces(now, viewers);
    }
}

impl Levels {
    /// Keeps what arrived by time.
    fn measure(&mut self, now: Instant, viewers: &[Viewer]) {
        let total = viewers.iter().map(|viewer| viewer.delivered).sum();
        self.arrived.push_back((now, total));
        let span = self.window.max(FIRST_WINDOW);
        // The one before the window stays, as its beginning.
        while self.arrived.get(1).is_some_and(|(at, _)| now.since(*at) >= span) {
            self.arrived.pop_front();
        }
        if !self.learned && self.present() > 0 {
            self.budget = self.budget.max(self.margin * self.rate(now, FIRST_WINDOW));
        }
    }

    /// Bits per second that arrived in the last `window`; zero if it is not that long yet.
    fn rate(&self, now: Instant, window: Duration) -> f64 {
        let before = self.arrived.partition_point(|(at, _)| now.since(*at) >= window);
        let (Some((from, first)), Some((_, last))) =
            (before.checked_sub(1).map(|at| self.arrived[at]), self.arrived.back())
        else {
            return 0.0;
        };
        (last - first) as f64 * 8.0 / now.since(from).as_secs_f64()
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

    fn present(&self) -> usize {
        self.members.iter().filter(|member| member.present).count()
    }

    fn on_request(&mut self, now: Instant, viewers: &[Viewer], at: usize) {
        let buffer_s = viewers[at].buffer(now).as_secs_f64();
        let waited = viewers[at].current.is_some_and(|response| response.idle_before >= WAITED);
        let member = &mut self.members[at];
        member.asked = viewers[at].current.map_or(0, |response| response.segment.representation as usize);
        if waited {
            member.full_s = buffer_s;
        }
        if !member.present && viewers[at].representations() > 0 {
            *member = Member { present: true, full_s: f64::INFINITY, ..Member::default() };
            self.allot(now, viewers);
        } else if now.since(self.allotted_at) >= self.turn || self.budget > GROWN * self.allotted {
            self.allot(now, viewers);
        }
    }

    fn on_delivery(&mut self, now: Instant, viewers: &[Viewer], at: usize) {
        let buffer_s = viewers[at].buffer(now).as_secs_f64();
        let member = &mut self.members[at];
        let falls = member.full_s.is_finite() && buffer_s < member.full_s - self.drop_s;
        if falls && now.since(self.changed_at) >= self.settle {
            if buffer_s <= member.seen_s {
                self.lower(now, viewers);
            }
            self.members[at].seen_s = buffer_s;
            return;
        }
        if !falls {
            member.seen_s = f64::INFINITY;
        }
        self.note_full(now, viewers);
        let wait = self.raise_after * self.wait_times.max(1);
        let reached = self.members.iter().all(|member| !member.present || member.asked >= member.level);
        if reached && self.full_since.is_some_and(|since| now.since(since.max(self.changed_at)) >= wait) {
            self.raise(now, viewers);
        }
    }

    fn note_full(&mut self, now: Instant, viewers: &[Viewer]) {
        let full = |(member, viewer): (&Member, &Viewer)| {
            !member.present || viewer.buffer(now).as_secs_f64() >= member.full_s - self.drop_s.max(NEARLY_S)
        };
        if !self.members.iter().zip(viewers).all(full) {
            self.full_since = None;
        } else if self.full_since.is_none() {
            self.full_since = Some(now);
        }
    }

    /// The budget was too high.
    fn lower(&mut self, now: Instant, viewers: &[Viewer]) {
        self.learned = true;
        if self.tried_at.take().is_some_and(|tried| now.since(tried) < self.trial) {
            self.wait_times = (self.wait_times.max(1) * 2).min(MOST_WAIT);
        }
        let less = self.sum(viewers) - 1.0;
        let arrived = self.rate(now, self.window);
        self.budget = if arrived > 0.0 { less.min(self.margin * arrived) } else { less };
        self.changed_at = now;
        self.full_since = None;
        self.allot(now, viewers);
    }

    /// One viewer's step more.
    fn raise(&mut self, now: Instant, viewers: &[Viewer]) {
        let steps = self
            .members
            .iter()
            .zip(viewers)
            .filter(|(member, viewer)| member.present && member.level + 1 < viewer.representations());
        let lowest = steps.min_by_key(|(member, _)| member.level);
        let Some((member, viewer)) = lowest else { return };
        let step = viewer.bitrate(member.level + 1) - viewer.bitrate(member.level);
        self.budget = self.sum(viewers) + step + 1.0;
        self.learned = true;
        self.tried_at = Some(now);
        self.changed_at = now;
        self.full_since = None;
        self.allot(now, viewers);
    }

    /// Bits per second that the levels need.
    fn sum(&self, viewers: &[Viewer]) -> f64 {
        let present = self.members.iter().zip(viewers).filter(|(member, _)| member.present);
        present.map(|(member, viewer)| viewer.bitrate(member.level)).sum()
    }

    /// Levels as equal as the budget allows: the lowest one rises first, and among equals that of the viewer who had least.
    fn allot(&mut self, now: Instant, viewers: &[Viewer]) {
        (self.allotted_at, self.allotted) = (now, self.budget);
        for member in &mut self.members {
            member.level = 0;
        }
        let mut left = self.budget - self.sum(viewers);
        loop {
            let steps = (0..viewers.len())
                .filter(|&at| self.members[at].present && self.members[at].level + 1 < viewers[at].representations());
            let next = steps.min_by(|&a, &b| {
                let by_level = self.members[a].level.cmp(&self.members[b].level);
                by_level.then(viewers[a].mean_bitrate().total_cmp(&viewers[b].mean_bitrate()))
            });
            let Some(at) = next else { return };
            let level = self.members[at].level;
            let step = viewers[at].bitrate(level + 1) - viewers[at].bitrate(level);
            if step > left {
                return;
            }
            left -= step;
            self.members[at].level += 1;
        }
    }

    fn set_paces(&self, now: Instant, viewers: &mut [Viewer]) {
        let alone = self.present() < 2;
        for (member, viewer) in self.members.iter().zip(viewers) {
            let buffer_s = viewer.buffer(now).as_secs_f64();
            let free = alone || !member.present || self.budget <= 0.0 || buffer_s < self.start_s;
            viewer.pace = (!free).then(|| self.pace(member, viewer, buffer_s));
        }
    }

    fn pace(&self, member: &Member, viewer: &Viewer, buffer_s: f64) -> Bandwidth {
        let lower = viewer.bitrate(member.level) / SAFETY;
        let top = member.level + 1 >= viewer.representations();
        let upper = if top { TOP_UPPER * lower } else { viewer.bitrate(member.level + 1) / SAFETY };
        let full = buffer_s >= member.full_s - NEARLY_S;
        let position = if full { self.position } else { self.refill };
        let wanted = lower + position * (upper - lower);
        // What others took from the last responses is made up for.
        let lacks = if member.throughput > 0.0 { (wanted / member.throughput).clamp(1.0, self.boost) } else { 1.0 };
        Bandwidth::from_bps((lacks * wanted) as u64)
    }
}

/// A player that asks this long after the last response has waited because its buffer was full.
const WAITED: Duration = Duration::from_millis(200);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::MediaSegment;
    use crate::testing::at_ms;
    use anabranch_registry::options::{Options, Value};
    use std::sync::Arc;

    const SECOND: u64 = 1_000;

    fn viewers(count: usize) -> Vec<Viewer> {
        let ladder = crate::content::find_ladder("bbb-2s").unwrap();
        let video = Arc::new(ladder.video(None).unwrap());
        (0..count).map(|_| Viewer::new(Some(video.clone()))).collect()
    }

    /// Each viewer in turn asks for media segment `index` at its level, and has it after `took_ms`.
    fn round(levels: &mut dyn ResponsePacing, viewers: &mut [Viewer], index: u32, from_ms: u64, took_ms: u64) {
        for at in 0..viewers.len() {
            let segment = MediaSegment { representation: 15, index };
            viewers[at].requested(at_ms(from_ms), segment, 600_000);
            levels.decide(at_ms(from_ms), viewers, &Moment::Requested(at));
            viewers[at].began(at_ms(from_ms));
        }
        for at in 0..viewers.len() {
            viewers[at].delivered += 600_000;
            let response = viewers[at].completed(at_ms(from_ms + took_ms)).unwrap();
            levels.decide(at_ms(from_ms + took_ms), viewers, &Moment::Delivered(at, response));
        }
    }

    fn paces(viewers: &[Viewer]) -> Vec<f64> {
        viewers.iter().filter_map(|viewer| viewer.pace).map(|pace| pace.as_bps() as f64).collect()
    }

    /// Viewers with a level each, after 40 s in which their buffers filled and then stayed as they are.
    fn settled(count: usize, levels: &mut dyn ResponsePacing) -> Vec<Viewer> {
        let mut viewers = viewers(count);
        (0..8).for_each(|k| round(levels, &mut viewers, k, u64::from(k) * SECOND, SECOND));
        (8..24).for_each(|k| round(levels, &mut viewers, k, u64::from(k - 4) * 2 * SECOND, 1_700));
        viewers
    }

    fn made(options: &[(&str, f64)]) -> Box<dyn ResponsePacing> {
        let options = options.iter().map(|(name, value)| ((*name).to_string(), Value::Number(*value))).collect();
        super::super::create("levels", &Options::new(options)).unwrap().unwrap()
    }

    #[test]
    fn a_viewer_who_is_alone_is_not_paced() {
        let viewers = settled(1, made(&[]).as_mut());
        assert_eq!(viewers[0].pace, None);
    }

    #[test]
    fn paces_lie_between_what_the_level_and_the_next_one_need() {
        // Two viewers got 9.6 Mb/s together at first: level 19 for both would need 8.4.
        let viewers = settled(2, made(&[("boost", 1.0)]).as_mut());
        let top = viewers[0].bitrate(19) / SAFETY;
        assert!(paces(&viewers).iter().all(|&pace| pace > top && pace < TOP_UPPER * top), "{:?}", paces(&viewers));
        // Four got 16 to 17 Mb/s in the first ten seconds, and `margin` makes that some 9: between levels 14 and 15 for each.
        let viewers = settled(4, made(&[("boost", 1.0), ("margin", 0.55)]).as_mut());
        let edges = [14, 15, 16].map(|level| viewers[0].bitrate(level) / SAFETY);
        let mut paces = paces(&viewers);
        paces.sort_by(f64::total_cmp);
        assert_eq!(paces.len(), 4);
        assert!(paces[0] > edges[0] && paces[0] < edges[1], "{paces:?}");
        assert!(paces[3] > edges[1] && paces[3] < edges[2], "{paces:?}");
    }

    #[test]
    fn buffers_that_fall_lower_the_paces_and_full_ones_raise_them() {
        let mut levels = made(&[("boost", 1.0), ("margin", 0.5), ("turn_s", 3_600.0)]);
        let mut viewers = settled(4, levels.as_mut());
        let sum = |viewers: &[Viewer]| paces(viewers).iter().sum::<f64>();
        let before = sum(&viewers);
        (24..44).for_each(|k| round(levels.as_mut(), &mut viewers, k, u64::from(k - 4) * 2 * SECOND, 1_700));
        let raised = sum(&viewers);
        assert!(raised > before + 1e5, "{before} -> {raised}");
        // Every media segment takes 2.4 s from here on: buffers fall by 0.4 s in 2.4 s.
        let begin = 80 * SECOND;
        (0..20).for_each(|k| {
            round(levels.as_mut(), &mut viewers, 44 + k, begin + u64::from(k) * 2_400, 2_400);
        });
        let lowered = sum(&viewers);
        assert!(lowered < before, "{raised} -> {lowered}");
    }
}
