//! BOLA as in dash.js (BOLA-E): the algorithm of `abr/bola.rs` over a buffer with a virtual part, the placeholder.
//!
//! u_i = ln b_i - ln b_0 + 1,  T = max(stable, 10 + 2 * M),  gp = (u_max - 1) / (T/10 - 1),  Vp = 10 / gp
//! choose max (Vp * (u_i + gp) - (B + P)) / b_i          2.6 to 2.9
//!            (Vp * (u_i - 1 + gp) - (B + P)) / b_i      5.x;  ties to the higher
//! highest level for i: Vp * (u_i + gp);   lowest: max over j < i of Vp * (gp + (b_i*u_j - b_j*u_i) / (b_i - b_j))
//! B buffered s; P placeholder s, time that would be buffered had there been no pauses; b bit/s; M representations.
//!
//! Starting up: what the throughput allows, P = max(0, lowest level for it - B), until B >= a media segment.
//! Then: P += time since the last download ended (or the last decision); above the last choice no higher than the
//! throughput allows (BOLA-O); B + P above the highest level for the choice is first taken from P, and what is left is
//! waited, except at the top.
//! After each media segment: P <- min(0.99 * P, max(0, highest level for it - (B + download time))), and its duration
//! more if it replaced another one. Empty buffer: P = 0. Seek: start up again.
//! After an abandoned request: P <- min(P, max(0, lowest level for q - B)), or 10 s for the lowest q.
//!
//! dash.js 2.9.3 and 5.2.1, rules/abr/BolaRule.js. Two oddities that we keep:
//! - 2.x scores with u_i, though its own comment and derivation say u_i - 1: its thresholds lie Vp higher.
//! - In 2.9 q is not the representation that the request is abandoned *for*: the abort is announced before the new
//!   representation, so q is that of the last change before (AbrController.onFragmentLoadProgress), or none, which
//!   counts as the lowest. In 5.x q is the new one.

use super::super::view::{Download, View};
use super::js::{date_ms, level_s};
use super::request::Request;
use anabranch_units::Duration;

pub(super) use super::dynamic::Generation;

pub(super) const NAME: &str = "BolaRule";
/// `MINIMUM_BUFFER_S`.
const MINIMUM_BUFFER_S: f64 = 10.0;
/// `MINIMUM_BUFFER_PER_BITRATE_LEVEL_S`.
const MINIMUM_BUFFER_PER_BITRATE_LEVEL_S: f64 = 2.0;
/// `PLACEHOLDER_BUFFER_DECAY`.
const PLACEHOLDER_BUFFER_DECAY: f64 = 0.99;

/// Input from the throughput rule.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sustainable {
    /// Whether a throughput was measured.
    pub(super) known: bool,
    /// The highest representation within the throughput.
    pub(super) representation: usize,
}

#[derive(Debug)]
pub(super) struct Bola {
    generation: Generation,
    /// Stable buffer time in seconds.
    stable_buffer: f64,
    /// Set at the first decision; `None` with a single representation.
    state: Option<State>,
}

/// Lengths in seconds, instants in milliseconds. They are floating point because dash.js compares what it sums up.
#[derive(Debug)]
struct State {
    starting_up: bool,
    bitrates: Vec<f64>,
    utilities: Vec<f64>,
    gp: f64,
    vp: f64,
    placeholder: f64,
    /// The representation of the last choice or download; in 5.x also of the last change.
    last: usize,
    /// The last change of the representation (2.x).
    changed_to: Option<usize>,
    most_advanced: Option<u64>,
    last_duration: Option<f64>,
    last_finished_ms: Option<f64>,
    last_call_ms: Option<f64>,
}

/// Waiting time in seconds.
pub(super) type DelayS = f64;

impl State {
    fn new(generation: Generation, stable_buffer: f64, view: &View<'_>) -> Option<State> {
        let all = view.ladder.bitrates();
        // 5.x ignores representations above the limits.
        let visible = if generation == Generation::V5 { &all[..=view.top] } else { all };
        let bitrates: Vec<f64> = visible.iter().map(|&b| b as f64).collect();
        let logarithms: Vec<f64> = bitrates.iter().map(|&b| libm::log(b)).collect();
        let utilities: Vec<f64> = logarithms.iter().map(|u| u - logarithms[0] + 1.0).collect();
        let top = utilities[utilities.len() - 1];
        if bitrates.len() < 2 {
            return None;
        }
        let per_level = MINIMUM_BUFFER_PER_BITRATE_LEVEL_S * bitrates.len() as f64;
        let buffer_time = stable_buffer.max(MINIMUM_BUFFER_S + per_level);
        let gp = (top - 1.0) / (buffer_time / MINIMUM_BUFFER_S - 1.0);
        Some(State {
            starting_up: true,
            bitrates,
            utilities,
            gp,
            vp: MINIMUM_BUFFER_S / gp,
            placeholder: 0.0,
            last: 0,
            changed_to: None,
            most_advanced: None,
            last_duration: None,
            last_finished_ms: None,
            last_call_ms: None,
        })
    }

    fn choose(&self, generation: Generation, level: f64) -> usize {
        let offset = if generation == Generation::V5 { 1.0 } else { 0.0 };
        let score = |i: usize| (self.vp * (self.utilities[i] - offset + self.gp) - level) / self.bitrates[i];
        (1..self.bitrates.len()).fold(0, |best, i| if score(i) >= score(best) { i } else { best })
    }

    fn highest_level(&self, i: usize) -> f64 {
        self.vp * (self.utilities[i] + self.gp)
    }

    fn lowest_level(&self, i: usize) -> f64 {
        let (bi, ui) = (self.bitrates[i], self.utilities[i]);
        let against = |j: usize| {
            let (bj, uj) = (self.bitrates[j], self.utilities[j]);
            self.vp * (self.gp + (bi * uj - bj * ui) / (bi - bj))
        };
        (0..i).map(against).fold(0.0, f64::max)
    }

    /// Adds pauses that the network did not cause to the placeholder.
    fn lengthen_placeholder(&mut self, now_ms: f64) {
        if let Some(since) = self.last_finished_ms.or(self.last_call_ms) {
            self.placeholder += (0.001 * (now_ms - since)).max(0.0);
        }
        self.last_call_ms = Some(now_ms);
        self.last_finished_ms = None;
    }

    fn shorten_placeholder(&mut self, level: f64) {
        self.placeholder = self.placeholder.min(level.max(0.0));
    }
}

impl Bola {
    pub(super) fn new(generation: Generation, stable_buffer: Duration) -> Self {
        Bola { generation, stable_buffer: stable_buffer.as_secs_f64(), state: None }
    }

    pub(super) fn request(&mut self, view: &View<'_>, allowed: Sustainable) -> Option<(Request, DelayS)> {
        // 5.x restarts when the limit changes.
        let limited_otherwise = |s: &State| self.generation == Generation::V5 && s.bitrates.len() != view.top + 1;
        if self.state.as_ref().is_none_or(limited_otherwise) {
            self.state = State::new(self.generation, self.stable_buffer, view);
        }
        let state = self.state.as_mut()?;
        if !allowed.known && (state.starting_up || self.generation == Generation::V2) {
            return None;
        }
        let level = level_s(view.buffer);
        if state.starting_up {
            state.placeholder = (state.lowest_level(allowed.representation) - level).max(0.0);
            state.last = allowed.representation;
            state.starting_up = !state.last_duration.is_some_and(|duration| level >= duration);
            return Some((Request::new(NAME, allowed.representation), 0.0));
        }
        state.lengthen_placeholder(date_ms(view.now));
        let by_buffer = state.choose(self.generation, level + state.placeholder);
        let choice = by_buffer.min(allowed.representation.max(state.last));
        let too_much = (level + state.placeholder - state.highest_level(choice)).max(0.0);
        let mut delay = 0.0;
        if too_much <= state.placeholder {
            state.placeholder -= too_much;
        } else {
            delay = if choice < view.top { too_much - state.placeholder } else { 0.0 };
            state.placeholder = 0.0;
        }
        state.last = choice;
        Some((Request::new(NAME, choice), delay))
    }

    /// A media segment is complete.
    pub(super) fn finished(&mut self, view: &View<'_>, download: &Download) {
        let Some(state) = self.state.as_mut() else { return };
        let (requested, finished) = (date_ms(download.requested_at), date_ms(download.finished_at));
        let duration = view.ladder.segment_duration().as_secs_f64();
        let replaces = state.most_advanced.is_some_and(|most| download.index <= most);
        if !replaces {
            state.most_advanced = Some(download.index);
        }
        state.last_finished_ms = Some(finished);
        state.last_duration = Some(duration);
        state.last = download.representation;
        state.placeholder *= PLACEHOLDER_BUFFER_DECAY;
        let at_request = level_s(view.buffer) + 0.001 * (finished - requested);
        let representation = download.representation.min(state.bitrates.len() - 1);
        state.shorten_placeholder(state.highest_level(representation) - at_request);
        if replaces {
            state.placeholder += duration;
        }
    }

    /// A request was aborted, and the player recorded it (5.x).
    pub(super) fn noted_abort(&mut self, download: &Download) {
        if let Some(state) = self.state.as_mut() {
            state.last_finished_ms = Some(date_ms(download.finished_at));
        }
    }

    /// The player changed to this representation.
    pub(super) fn changed(&mut self, representation: usize) {
        if let Some(state) = self.state.as_mut() {
            match self.generation {
                Generation::V2 => state.changed_to = Some(representation),
                Generation::V5 => state.last = representation,
            }
        }
    }

    /// A request was aborted.
    pub(super) fn abandoned(&mut self, view: &View<'_>) {
        if let Some(state) = self.state.as_mut() {
            let q = if self.generation == Generation::V5 { state.last } else { state.changed_to.unwrap_or(0) };
            let wanted = if q > 0 { state.lowest_level(q) } else { MINIMUM_BUFFER_S };
            state.shorten_placeholder(wanted - level_s(view.buffer));
        }
    }

    pub(super) fn emptied(&mut self) {
        if let Some(state) = self.state.as_mut().filter(|state| !state.starting_up) {
            state.placeholder = 0.0;
        }
    }

    pub(super) fn seeked(&mut self) {
        if let Some(state) = self.state.as_mut() {
            state.starting_up = true;
            state.placeholder = 0.0;
            state.most_advanced = None;
            state.last_duration = None;
            state.last_finished_ms = None;
        }
    }
}

#[cfg(test)]
#[path = "bola_tests.rs"]
mod tests;
