//! Differences between the DASH players: facts of dash.js's releases, and the parameters of the papers' players.
//!
//! | | 2.2 | 2.9 | 5 | others |
//! |---|---|---|---|---|
//! | buffer, s | 12 | 12 | 18 | the paper's |
//! | at the highest representation, s | 30, from 600 s of video on 60 | same | same | as below it |
//! | a request is placed when | level < target | same | level + segment < target | the segment fits |
//! | otherwise the next check | after 500 ms | same | same | when it fits |
//! | decisions per media segment | one | one more after each initialisation segment | one | one |
//! | initialisation segment | after the first media segment that needs it | before | before | before |
//! | stall | level < 0.5 s | level < 0.5 s | empty | empty |
//! | it ends at | 0.5 s | the buffer target (12 s) | any | any |
//! | first representation | 1000 kbit/s | same | same | the lowest |
//!
//! dash.js 2.2.0, 2.9.3, 5.2.1: controllers/ScheduleController.js, BufferController.js, PlaybackController.js,
//! AbrController.js, StreamProcessor.js, rules/scheduling/BufferLevelRule.js, models/VideoModel.js, core/Settings.js.
//! Findings beyond the table:
//! - An initialisation segment is fetched once per representation and kept; a later switch back appends it from there.
//! - 2.2 states its buffer target as 0 to the rules: `bufferTarget` is never set. So its BufferOccupancyRule holds the
//!   top as long as more than 20 s are buffered, not 20 s above the target.
//! - 5 does not stop the video itself (`syntheticStallEvents` is off): the element runs out of data.

use crate::abr::dashjs::Release;
use anabranch_units::{Bandwidth, Duration};

/// `BUFFER_TIME_AT_TOP_QUALITY`.
const AT_TOP: Duration = Duration::from_secs(30);
/// `BUFFER_TIME_AT_TOP_QUALITY_LONG_FORM`.
const AT_TOP_LONG: Duration = Duration::from_secs(60);
/// `LONG_FORM_CONTENT_DURATION_THRESHOLD`.
const LONG_FORM: Duration = Duration::from_secs(600);
/// `DEFAULT_VIDEO_BITRATE`, without a stored one. (5 would prefer the throughput of the MPD's request; as the first
/// trace of an XHR is ignored and an MPD is small, there is none.)
const INITIAL: Bandwidth = Bandwidth::from_bps(1_000_000);
/// Huang et al., SIGCOMM 2014, section 4: the player's buffer of 240 s.
const BBA_BUFFER: Duration = Duration::from_secs(240);
/// Sabre's default buffer (BOLA's authors' simulator).
const BOLA_BUFFER: Duration = Duration::from_secs(25);
/// Yin et al., SIGCOMM 2015, section 7.1: B_max = 30 s.
const MPC_BUFFER: Duration = Duration::from_secs(30);
/// Pensieve's simulator: 60 s; for rules without a buffer parameter.
const PLAIN_BUFFER: Duration = Duration::from_secs(60);

/// Which option of its rule takes the buffer length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BufferOption {
    Stable,
    Capacity,
    Nothing,
}

/// A player of the registry.
#[derive(Clone, Copy, Debug)]
pub(super) struct Profile {
    /// Name of the player and of its rule.
    pub name: &'static str,
    /// Release of dash.js; `None`: a player with only the table's last column.
    pub release: Option<Release>,
    pub buffer: Duration,
    pub buffer_option: BufferOption,
}

pub(super) const DASHJS_2_2: Profile = dashjs("dash.js-2.2", Release::V2_2, BufferOption::Nothing);
pub(super) const DASHJS_2_9: Profile = dashjs("dash.js-2.9", Release::V2_9, BufferOption::Stable);
pub(super) const DASHJS_5: Profile = dashjs("dash.js-5", Release::V5, BufferOption::Stable);
pub(super) const BBA_0: Profile = plain("bba-0", BBA_BUFFER, BufferOption::Capacity);
pub(super) const BOLA: Profile = plain("bola", BOLA_BUFFER, BufferOption::Capacity);
pub(super) const ROBUST_MPC: Profile = plain("robust-mpc", MPC_BUFFER, BufferOption::Capacity);
pub(super) const RATE: Profile = plain("rate", PLAIN_BUFFER, BufferOption::Nothing);
pub(super) const FIXED: Profile = plain("fixed", PLAIN_BUFFER, BufferOption::Nothing);

const fn dashjs(name: &'static str, release: Release, buffer_option: BufferOption) -> Profile {
    Profile { name, release: Some(release), buffer: release.stable_buffer(), buffer_option }
}

const fn plain(name: &'static str, buffer: Duration, buffer_option: BufferOption) -> Profile {
    Profile { name, release: None, buffer, buffer_option }
}

impl Profile {
    /// The buffer at the highest representation, given the one below.
    pub fn buffer_at_top(&self, buffer: Duration, content: Duration) -> Duration {
        match self.release {
            None => buffer,
            Some(_) if content >= LONG_FORM => AT_TOP_LONG,
            Some(_) => AT_TOP,
        }
    }

    /// The highest bitrate of the first representation; `None`: the lowest one.
    pub fn initial_bitrate(&self) -> Option<Bandwidth> {
        self.release.map(|_| INITIAL)
    }

    /// Whether the next media segment must fit below the target.
    pub fn reserves_segment(&self) -> bool {
        matches!(self.release, Some(Release::V5) | None)
    }

    /// Whether the player itself stops the video when its buffer is empty.
    pub fn stops_video(&self) -> bool {
        matches!(self.release, Some(Release::V2_2 | Release::V2_9))
    }

    /// Whether an initialisation segment is fetched only when a media segment is waiting for it.
    pub fn initialises_late(&self) -> bool {
        self.release == Some(Release::V2_2)
    }

    /// Whether its rule is asked again when an initialisation segment was appended.
    pub fn asks_again(&self) -> bool {
        self.release == Some(Release::V2_9)
    }

    /// Whether it can replace buffered segments of a lower representation. (2.x can too, but not by default, and in
    /// another way, which is not modelled.)
    pub fn can_switch_fast(&self) -> bool {
        self.release == Some(Release::V5)
    }

    /// Whether its rules get a buffer target of zero.
    pub fn states_no_target(&self) -> bool {
        self.release == Some(Release::V2_2)
    }

    /// Whether a media segment that is fetched again waits for room like any other.
    pub fn refetches_within_target(&self) -> bool {
        !matches!(self.release, Some(Release::V2_2 | Release::V2_9))
    }
}
