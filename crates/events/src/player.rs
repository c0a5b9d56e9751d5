//! What a player can say.

use anabranch_units::Duration;

/// What a player can say about its viewer's session.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PlayerEvent {
    /// A request left.
    Requested {
        /// Counted from zero.
        request: u32,
    },
    /// The first byte of its response arrived.
    FirstByte {
        /// Which request.
        request: u32,
    },
    /// The last byte of its response arrived.
    ResponseComplete {
        /// Which request.
        request: u32,
        /// Bytes of the body.
        bytes: u64,
        /// Where the response ends in its connection's stream: the next one begins there.
        end: u64,
    },
    /// The first picture is shown.
    PlaybackStarted,
    /// The picture froze.
    StallBegan,
    /// The picture moves again.
    StallEnded,
    /// The player found its clock reference late (VLC's "buffer underflow").
    BufferUnderflow {
        /// By how much.
        late: Duration,
    },
    /// The player will keep more playing time in reserve from here on (VLC's "pts_delay increased").
    PlayoutDelayRaised {
        /// The new reserve.
        to: Duration,
    },
    /// A picture was decoded too late to be shown.
    PictureDiscarded {
        /// Its number in the video, from zero.
        frame: u32,
    },
    /// Pictures that were buffered were thrown away unshown, because the player started to buffer anew.
    PicturesFlushed {
        /// The first one's number in the video, from zero.
        first: u32,
        /// How many.
        count: u32,
    },
    /// How much is buffered, at an interval that the host chooses.
    BufferLevel {
        /// Playing time ahead of the viewer.
        media: Duration,
        /// The same in bytes.
        bytes: u64,
    },
    /// The last picture was shown.
    PlaybackEnded,
    /// A bitrate rule was asked for a representation, and answered.
    RepresentationChosen {
        /// The media segment that is to be fetched next, from zero.
        index: u32,
        /// The representation's rank, from zero, the lowest.
        representation: u16,
        /// The rule's reason.
        reason: &'static str,
    },
    /// The request is for an initialisation segment; [`PlayerEvent::Requested`] came just before.
    InitRequested {
        /// Which request.
        request: u32,
        /// Of which representation.
        representation: u16,
    },
    /// The request is for a media segment; [`PlayerEvent::Requested`] came just before.
    SegmentRequested {
        /// Which request.
        request: u32,
        /// The media segment, from zero.
        index: u32,
        /// Of which representation.
        representation: u16,
    },
    /// The request is for a segment of the sound; [`PlayerEvent::Requested`] came just before.
    AudioRequested {
        /// Which request.
        request: u32,
        /// Which one, from zero: it plays with the media segment of the same number.
        index: u32,
    },
    /// The player gave up a request for a media segment. What still arrives of it is thrown away; when that is all, its
    /// response is complete.
    SegmentAbandoned {
        /// Which request.
        request: u32,
        /// The media segment.
        index: u32,
        /// Bytes of its body so far.
        received: u64,
        /// In which representation it will be fetched instead.
        instead: u16,
    },
    /// The player closed its connection and opened another one; responses that were not complete never will be.
    Reconnected,
    /// A media segment went into the buffer, perhaps in place of another representation of it.
    SegmentAppended {
        /// The media segment.
        index: u32,
        /// Of which representation.
        representation: u16,
        /// Playing time ahead of the viewer with it.
        buffered: Duration,
    },
    /// A media segment came on screen.
    SegmentShown {
        /// The media segment.
        index: u32,
        /// Of which representation.
        representation: u16,
    },
    /// The player's idea of its buffer changed: enough to play, or not.
    BufferStateChanged {
        /// Enough.
        loaded: bool,
    },
}
