//! Requests for media segments: how long they took, and what of them was for nothing.

use super::waits::{Wait, Waits};
use anabranch_events::PlayerEvent;
use anabranch_units::{Duration, Instant};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A media segment that was fetched; the field names are those of `run --json`. Times count from the session's start.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MediaSegmentReport {
    /// Which media segment, from zero.
    pub index: u32,
    /// In which representation, by rank from zero.
    pub representation: u16,
    /// Bytes of its body.
    pub bytes: u64,
    /// When it was requested.
    pub requested_s: f64,
    /// When the first byte of the response was there.
    pub first_byte_s: f64,
    /// When the last one was.
    pub finished_s: f64,
    /// From the request to the last byte.
    pub download_s: f64,
    /// Bits of the body over that time.
    pub throughput_bps: f64,
    /// How long the bytes of its response waited in reassembly for earlier ones: the mean over the bytes, those that
    /// came in order included. Null if the receiver was not observed.
    pub reorder_wait_s: Option<f64>,
    /// The part of it in which only bytes of other subflows were missing; the rest is what repairs of losses take.
    pub reorder_wait_across_s: Option<f64>,
    /// The longest wait of any of its bytes.
    pub reorder_wait_max_s: Option<f64>,
}

#[derive(Clone, Copy, Debug)]
struct Request {
    index: u32,
    representation: u16,
    requested_at: Instant,
    first_byte_at: Option<Instant>,
    /// Bytes that had come when it was given up.
    given_up: Option<u64>,
}

#[derive(Clone, Copy, Debug)]
struct Fetched {
    request: Request,
    bytes: u64,
    finished_at: Instant,
    wait: Wait,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Requests {
    /// Those that are not answered to the end, by number.
    open: BTreeMap<u32, Request>,
    fetched: Vec<Fetched>,
    /// A body that is complete but was not appended yet.
    in_hand: Option<u64>,
    /// Bytes of the media segments that were appended last, by index.
    appended: BTreeMap<u32, u64>,
    wasted: u64,
    given_up: u64,
    waits: Waits,
}

impl Requests {
    pub fn observe(&mut self, at: Instant, event: &PlayerEvent) {
        match *event {
            PlayerEvent::SegmentRequested { request, index, representation } => {
                // What was not appended by now came too late.
                self.wasted += self.in_hand.take().unwrap_or(0);
                let new = Request { index, representation, requested_at: at, first_byte_at: None, given_up: None };
                self.open.insert(request, new);
            }
            PlayerEvent::FirstByte { request } => {
                if let Some(open) = self.open.get_mut(&request) {
                    open.first_byte_at = Some(at);
                }
            }
            PlayerEvent::SegmentAbandoned { request, received, .. } => {
                self.given_up += 1;
                if let Some(open) = self.open.get_mut(&request) {
                    open.given_up = Some(received);
                }
            }
            // Of what was not complete nothing more comes.
            PlayerEvent::Reconnected => self.waits = Waits::default(),
            PlayerEvent::ResponseComplete { request, bytes, end } => self.complete(at, request, bytes, end),
            PlayerEvent::SegmentAppended { index, .. } => {
                let bytes = self.in_hand.take().unwrap_or(0);
                self.wasted += self.appended.insert(index, bytes).unwrap_or(0);
            }
            _ => {}
        }
    }

    /// Bytes became readable.
    pub fn deliver(&mut self, bytes: u32, waited: Duration, across: Duration) {
        self.waits.deliver(bytes, waited, across);
    }

    fn complete(&mut self, at: Instant, request: u32, bytes: u64, end: u64) {
        let wait = self.waits.take_until(end);
        match self.open.remove(&request) {
            Some(open) if open.given_up.is_some() => self.wasted += bytes,
            Some(open) => {
                self.in_hand = Some(bytes);
                self.fetched.push(Fetched { request: open, bytes, finished_at: at, wait });
            }
            // A manifest or an initialisation segment.
            None => {}
        }
    }

    /// Wasted bytes, and how many requests were given up.
    pub fn wasted(&self) -> (u64, u64) {
        // Of what is still being drained, only the bytes until it was given up are known.
        let draining: u64 = self.open.values().filter_map(|open| open.given_up).sum();
        (self.wasted + draining, self.given_up)
    }

    pub fn reports(&self, start: Instant) -> Vec<MediaSegmentReport> {
        let report = |fetched: &Fetched| {
            let Fetched { request, bytes, finished_at, wait } = *fetched;
            let seconds = |at: Instant| at.since(start).as_secs_f64();
            let download_s = finished_at.since(request.requested_at).as_secs_f64();
            MediaSegmentReport {
                index: request.index,
                representation: request.representation,
                bytes,
                requested_s: seconds(request.requested_at),
                first_byte_s: seconds(request.first_byte_at.unwrap_or(finished_at)),
                finished_s: seconds(finished_at),
                download_s,
                throughput_bps: if download_s > 0.0 { bytes as f64 * 8.0 / download_s } else { 0.0 },
                reorder_wait_s: wait.mean_s(),
                reorder_wait_across_s: wait.mean_across_s(),
                reorder_wait_max_s: wait.longest_s(),
            }
        };
        self.fetched.iter().map(report).collect()
    }
}
