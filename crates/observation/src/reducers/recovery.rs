//! How soon the second path takes over.

use super::{Number, Observed};
use anabranch_scenario::Video;

/// For how long it has to carry the video's rate, in seconds.
const CARRIED_S: f64 = 1.0;

/// From the scenario's first event until the second path carries a progressive video's rate, on average over a second.
/// Where it never does, until the end; none without an event, without a second path, and for another video.
pub fn recovery(observed: &Observed<'_>) -> Vec<Number> {
    vec![(String::new(), recovery_s(observed))]
}

fn recovery_s(observed: &Observed<'_>) -> Option<f64> {
    let (Video::Progressive(video), Some(event)) = (observed.video, observed.events.first()) else { return None };
    let samples = ((CARRIED_S / observed.interval_s).round() as usize).max(1);
    let after = observed.recording.time_s.partition_point(|time| *time <= event.at_s);
    let rates = &observed.recording.paths.get(1)?.throughput_bps[after..];
    Some(first_carried(rates, samples, video.rate.as_bps() as f64) as f64 * observed.interval_s)
}

/// Where the first so many samples begin whose mean is what is needed; behind the last sample where there are none.
fn first_carried(rates: &[f32], samples: usize, needed: f64) -> usize {
    let carries = |window: &[f32]| window.iter().map(|bps| f64::from(*bps)).sum::<f64>() / samples as f64 >= needed;
    rates.windows(samples).position(carries).unwrap_or(rates.len())
}

#[cfg(test)]
mod tests {
    use super::first_carried;

    #[test]
    fn a_path_has_taken_over_when_its_mean_rate_is_what_is_needed() {
        let rates = [0.0, 4.0, 1.0, 3.0, 5.0, 5.0];
        assert_eq!(first_carried(&rates, 2, 4.0), 3);
        assert_eq!(first_carried(&rates, 2, 9.0), 6, "never");
        assert_eq!(first_carried(&[], 2, 0.0), 0);
    }
}
