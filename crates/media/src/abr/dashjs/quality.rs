//! The highest representation within a throughput.
//!
//! 2.x:  max i with 1000 * kbps * (1 - latency/L) >= bandwidth_i, else 0; 0 if latency > L   (latency from 2.6 on)
//! 5.x:  max i with bandwidth_i / 1000 <= kbps, else 0; no latency
//! kbps throughput, L duration of a media segment, ms.
//!
//! dash.js 2.9.3, controllers/AbrController.js, getQualityForBitrate; 5.2.1, getOptimalRepresentationForBitrate.

use super::super::view::Ladder;

/// 2.x. NaN allows only the lowest; a latency of NaN or zero is ignored.
pub(super) fn allowed_2(ladder: &Ladder, kbps: f64, latency_ms: Option<f64>) -> usize {
    let mut kbps = kbps;
    if let Some(latency_ms) = latency_ms {
        let latency_s = latency_ms / 1_000.0;
        let duration_s = ladder.segment_duration().as_secs_f64();
        if latency_s > duration_s {
            return 0;
        }
        kbps *= 1.0 - latency_s / duration_s;
    }
    (0..ladder.len()).rev().find(|&i| kbps * 1_000.0 >= ladder.bps(i)).unwrap_or(0)
}

/// 5.x, up to the representation `top`.
pub(super) fn allowed_5(ladder: &Ladder, top: usize, kbps: f64) -> usize {
    (0..=top).rev().find(|&i| ladder.bps(i) / 1_000.0 <= kbps).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::{ladder, two_second_ladder};
    use super::*;

    #[test]
    fn equality_is_enough() {
        let ladder = ladder(&[100_000, 200_000, 300_000]);
        for (kbps, allowed) in [(99.0, 0), (199.9, 0), (200.0, 1), (300.0, 2), (f64::NAN, 0), (f64::INFINITY, 2)] {
            assert_eq!(allowed_2(&ladder, kbps, None), allowed, "{kbps}");
            assert_eq!(allowed_5(&ladder, 2, kbps), allowed, "{kbps}");
        }
        assert_eq!(allowed_5(&ladder, 1, 300.0), 1);
    }

    #[test]
    fn latency_takes_its_share_of_the_media_segment() {
        // Of one second, 100 ms are lost: 223 kbit/s become 200.7, 222 become 199.8.
        let ladder = ladder(&[100_000, 200_000]);
        assert_eq!(allowed_2(&ladder, 223.0, Some(100.0)), 1);
        assert_eq!(allowed_2(&ladder, 222.0, Some(100.0)), 0);
        let longer = two_second_ladder(&[100_000, 200_000]);
        assert_eq!((allowed_2(&longer, 211.0, Some(100.0)), allowed_2(&longer, 210.0, Some(100.0))), (1, 0), "5 %");
        assert_eq!(allowed_2(&ladder, 9e9, Some(1_000.0)), 0, "nothing is left");
        assert_eq!(allowed_2(&ladder, f64::INFINITY, Some(1_000.1)), 0);
    }
}
