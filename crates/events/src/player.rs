//! Events of players.

use crate::Note;
use anabranch_units::{Bandwidth, Duration};
use serde::Serialize;

/// An event of a viewer's session.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum PlayerEvent {
    /// A request was sent.
    Requested {
        /// Number of the request, from zero.
        request: u32,
    },
    /// The first byte of its response arrived.
    FirstByte {
        /// Number of the request.
        request: u32,
    },
    /// The last byte of its response arrived.
    ResponseComplete {
        /// Number of the request.
        request: u32,
        /// Bytes of the body.
        bytes: u64,
        /// Offset of the response's end in its connection's stream; the next response begins there.
        #[serde(rename = "end_offset")]
        end: u64,
    },
    /// The first picture is shown.
    PlaybackStarted,
    /// The picture froze: a stall began.
    StallBegan,
    /// The picture moves again: the stall ended.
    StallEnded,
    /// The player found its clock reference late (VLC's "buffer underflow").
    BufferUnderflow {
        /// Lateness of the clock reference.
        #[serde(rename = "late_s", serialize_with = "crate::column::seconds")]
        late: Duration,
    },
    /// The player increases its reserve of playing time from here on (VLC's "pts_delay increased").
    PlayoutDelayRaised {
        /// The new reserve.
        #[serde(rename = "delay_s", serialize_with = "crate::column::seconds")]
        to: Duration,
    },
    /// A picture was decoded too late to be shown.
    PictureDiscarded {
        /// Number of the picture in the video, from zero.
        frame: u32,
    },
    /// Buffered pictures were discarded unshown, because the player started to buffer anew.
    PicturesFlushed {
        /// Number of the first one in the video, from zero.
        #[serde(rename = "frame")]
        first: u32,
        /// Number of pictures.
        count: u32,
    },
    /// The buffer level, at an interval that the host chooses.
    BufferLevel {
        /// Buffered playing time ahead of the current picture.
        #[serde(rename = "buffered_s", serialize_with = "crate::column::seconds")]
        media: Duration,
        /// Buffered bytes.
        #[serde(rename = "buffered_bytes")]
        bytes: u64,
    },
    /// The last picture was shown.
    PlaybackEnded,
    /// A bitrate rule chose a representation.
    RepresentationChosen {
        /// Number of the media segment to be fetched next, from zero.
        index: u32,
        /// Rank of the representation, from zero, the lowest.
        representation: u16,
        /// The rule's reason.
        #[serde(rename = "detail")]
        reason: &'static str,
        /// What it saw: the buffered playing time, as the player last measured it.
        #[serde(rename = "buffered_s", serialize_with = "crate::column::seconds")]
        buffered: Duration,
        /// What it saw: the rate of the latest media segment, from its request to its last byte; none before the first.
        #[serde(rename = "download_bps", serialize_with = "crate::column::bps_option")]
        download: Option<Bandwidth>,
    },
    /// A note of a bitrate rule from outside.
    Noted(Note),
    /// The request is for an initialisation segment; [`PlayerEvent::Requested`] came just before.
    InitRequested {
        /// Number of the request.
        request: u32,
        /// Rank of the representation.
        representation: u16,
    },
    /// The request is for a media segment; [`PlayerEvent::Requested`] came just before.
    SegmentRequested {
        /// Number of the request.
        request: u32,
        /// Number of the media segment, from zero.
        index: u32,
        /// Rank of the representation.
        representation: u16,
    },
    /// The request is for an audio segment; [`PlayerEvent::Requested`] came just before.
    AudioRequested {
        /// Number of the request.
        request: u32,
        /// Number of the audio segment, from zero: it plays with the media segment of the same number.
        index: u32,
    },
    /// The player abandoned a request for a media segment. Bytes that still arrive are discarded; after the last of
    /// them its response is complete.
    SegmentAbandoned {
        /// Number of the request.
        request: u32,
        /// Number of the media segment.
        index: u32,
        /// Bytes of the body received so far.
        #[serde(rename = "received_bytes")]
        received: u64,
        /// Rank of the representation that is fetched instead.
        #[serde(rename = "representation")]
        instead: u16,
    },
    /// The player closed its connection and opened another one; incomplete responses stay incomplete.
    Reconnected,
    /// A media segment was added to the buffer, perhaps in place of another representation of it.
    SegmentAppended {
        /// Number of the media segment.
        index: u32,
        /// Rank of the representation.
        representation: u16,
        /// Buffered playing time, this segment included.
        #[serde(rename = "buffered_s", serialize_with = "crate::column::seconds")]
        buffered: Duration,
    },
    /// Playback of a media segment began.
    SegmentShown {
        /// Number of the media segment.
        index: u32,
        /// Rank of the representation.
        representation: u16,
    },
    /// The player's buffer state changed between loaded and empty.
    BufferStateChanged {
        /// Whether there is enough to play.
        loaded: bool,
    },
}
