//! Where a player is used outside of what its rule was made for.

use super::DashOptions;
use super::profile::BOLA;
use crate::abr::bola;
use crate::content::DashVideo;
use anabranch_units::text::write_time;

/// What is to be expected of this player with this video if its rule was not made for it; `None` otherwise.
pub fn outside_domain(player: &str, options: &DashOptions, video: &DashVideo) -> Option<String> {
    let segment = video.ladder().segment_duration();
    let (buffer, needed) = (options.buffer.unwrap_or(BOLA.buffer), bola::least_capacity(segment));
    // A video that fits into the buffer is never limited by it.
    if player != BOLA.name || buffer >= needed || video.duration() <= buffer {
        return None;
    }
    let [buffer, needed, segment] = [buffer, needed, segment].map(write_time);
    Some(format!(
        "`bola` has a buffer of {buffer} and needs three media segments ({needed} at {segment} each): it alternates \
         between low and high representations, stalls, and abandons many downloads"
    ))
}
