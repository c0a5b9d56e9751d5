//! The throughput of paths, sampled: what PUD estimates, and how soon its deviation settles.

use super::{Number, Observed, mean, standard_deviation};
use crate::recording::PathRecording;

/// How many samples the deviations are of.
const FIRST: [usize; 3] = [50, 150, 300];
/// Bits of payload in a full segment of Multipath TCP, for the estimate of window over round trip: 1500 B with headers,
/// timestamps, and a mapping and acknowledgment of 4 bytes each.
const PAYLOAD_BITS: f64 = 1428.0 * 8.0;

/// Per path, in bit/s.
pub fn sampled(observed: &Observed<'_>) -> Vec<Number> {
    observed.recording.paths.iter().flat_map(of_path).collect()
}

fn of_path(path: &PathRecording) -> Vec<Number> {
    let samples: Vec<f64> =
        path.throughput_bps.iter().filter(|acked| **acked > 0.0).map(|acked| f64::from(*acked)).collect();
    let number = |what: &str, value: f64| (format!("{}.{what}", path.path), Some(value));
    let mut numbers = vec![number("mean_bps", mean(&samples))];
    for first in FIRST {
        let some = &samples[..first.min(samples.len())];
        numbers.push(number(&format!("deviation_{first}_bps"), standard_deviation(some)));
    }
    numbers.push(number("deviation_bps", standard_deviation(&samples)));
    numbers.push(number("window_over_rtt_bps", mean(&estimates(path))));
    numbers
}

fn estimates(path: &PathRecording) -> Vec<f64> {
    let all = path.throughput_bps.iter().zip(&path.cwnd_packets).zip(&path.srtt_s);
    let flowing = all.filter(|((acked, _), rtt)| **acked > 0.0 && **rtt > 0.0);
    flowing.map(|((_, window), rtt)| f64::from(*window) * PAYLOAD_BITS / f64::from(*rtt)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_without_an_acknowledgment_are_no_samples() {
        let path = PathRecording {
            path: "wifi".into(),
            throughput_bps: vec![f32::NAN, 0.0, 100.0, 300.0],
            cwnd_packets: vec![10.0, 10.0, 10.0, 20.0],
            srtt_s: vec![0.1, 0.1, 0.1, 0.0],
            ..PathRecording::default()
        };
        let numbers = of_path(&path);
        let of = |name: &str| numbers.iter().find(|(n, _)| n == name).unwrap().1.unwrap();
        assert_eq!([of("wifi.mean_bps"), of("wifi.deviation_bps"), of("wifi.deviation_50_bps")], [200.0, 100.0, 100.0]);
        let expected = 10.0 * PAYLOAD_BITS / f64::from(0.1_f32);
        assert_eq!(of("wifi.window_over_rtt_bps"), expected);
    }
}
