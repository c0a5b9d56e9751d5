//! How steady a player's buffer is.

use super::{Number, Observed, standard_deviation};
use crate::recording::SessionRecording;
use std::ops::Range;

/// The standard deviation over time of what is buffered.
pub fn deviation(observed: &Observed<'_>) -> Vec<Number> {
    let (start, window) = (observed.metrics.start_s, observed.metrics.dash().and_then(|dash| dash.statistics_window_s));
    let window = window.map_or(0.0..f64::INFINITY, |(from, to)| start + from..start + to);
    vec![(String::new(), Some(deviation_within(observed.recording, &window)))]
}

fn deviation_within(recording: &SessionRecording, window: &Range<f64>) -> f64 {
    let timed = recording.time_s.iter().zip(&recording.buffer_s);
    let within = timed.filter(|(at, level)| window.contains(*at) && !level.is_nan());
    standard_deviation(&within.map(|(_, level)| f64::from(*level)).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_buffered_within_the_window_counts() {
        let recording = SessionRecording {
            time_s: vec![0.1, 0.2, 0.3, 0.4, 0.5, 0.6],
            buffer_s: vec![f32::NAN, 2.0, 4.0, 4.0, 2.0, 9.0],
            ..SessionRecording::default()
        };
        assert_eq!(deviation_within(&recording, &(0.0..0.6)), 1.0);
        assert_eq!(deviation_within(&recording, &(0.3..0.5)), 0.0);
        assert!(deviation_within(&recording, &(1.0..2.0)).is_nan(), "of nothing, which a reducer reports as none");
    }
}
