//! How media segments were delivered.

use super::{Number, Observed, mean};
use crate::folds::MediaSegmentReport;
use anabranch_scenario::Video;

/// Of a DASH video; none where no media segment came.
pub fn of_segments(observed: &Observed<'_>) -> Vec<Number> {
    let segments = observed.metrics.dash().map_or(&[][..], |dash| &dash.media_segments);
    let mut delays: Vec<f64> = segments.iter().map(|segment| segment.download_s).collect();
    delays.sort_by(f64::total_cmp);
    let waits: f64 = segments.iter().filter_map(|segment| segment.reorder_wait_across_s).sum();
    let speeds: Vec<f64> = segments.iter().map(|segment| segment.throughput_bps).collect();
    let number = |what: &str, value: Option<f64>| (what.to_string(), value);
    vec![
        number("delay_mean_s", Some(mean(&delays))),
        number("delay_p90_s", delays.get(delays.len() * 9 / 10).copied()),
        number("speed_mean_bps", Some(mean(&speeds))),
        number("wait_across_share", Some(waits / delays.iter().sum::<f64>())),
        number("second_bitrate_bps", second_bitrate(observed.video, segments)),
    ]
}

/// The bitrate that was chosen for the second media segment.
fn second_bitrate(video: &Video, segments: &[MediaSegmentReport]) -> Option<f64> {
    let Video::Dash(dash) = video else { return None };
    let second = segments.iter().find(|segment| segment.index == 1)?;
    Some(dash.video().representations().get(usize::from(second.representation))?.bitrate as f64)
}
