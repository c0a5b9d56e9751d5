//! Options of a player with its defaults applied.

use super::options::{DashOptions, GiveUp};
use super::profile::Profile;
use crate::content::DashVideo;
use anabranch_units::{Bandwidth, Duration};

/// The limits in force, defaults included.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub top: usize,
    pub buffer: Duration,
    pub buffer_at_top: Duration,
    pub startup: Duration,
    pub resume: Duration,
    pub fast_switch: bool,
    pub give_up: GiveUp,
    pub audio: Option<Bandwidth>,
}

impl Limits {
    pub fn new(profile: &Profile, video: &DashVideo, options: &DashOptions) -> Self {
        let buffer = options.buffer.unwrap_or(profile.buffer);
        let at_top = options.buffer_at_top.unwrap_or_else(|| profile.buffer_at_top(buffer, video.duration()));
        let bitrate = options.max_bitrate.map(|rate| rate.as_bps());
        Limits {
            top: video.highest_within(bitrate, options.max_resolution),
            buffer,
            // A lower value would never end a stall of 2.9.
            buffer_at_top: at_top.max(buffer),
            startup: options.startup.unwrap_or(Duration::ZERO),
            resume: options.resume.unwrap_or(Duration::ZERO),
            fast_switch: options.fast_switch.unwrap_or(profile.can_switch_fast()),
            give_up: options.give_up.unwrap_or_default(),
            audio: options.audio,
        }
    }
}

/// The representation of the first media segment.
pub(super) fn first_representation(profile: &Profile, video: &DashVideo, options: &DashOptions) -> usize {
    let bitrate = options.initial_bitrate.or(profile.initial_bitrate());
    options.initial_representation.unwrap_or_else(|| match bitrate {
        Some(bitrate) => video.highest_within(Some(bitrate.as_bps()), None),
        None => 0,
    })
}
