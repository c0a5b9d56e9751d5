//! Synthetic sizes of media segments where only the nominal rate is known.
//!
//! size_k = nominal_k * x_k,  scaled so that every representation keeps its total bytes, and with them its mean rate.
//! x_k = the mean over media segment k of a process in time: it holds one lognormal value until the next cut;
//! cuts are a Poisson process. So long segments vary less than short ones, neighbours are similar, and all
//! representations vary together, because they show the same scenes.
//!
//! With values of coefficient of variation v and scenes of mean length T, segments of duration d have
//! v_d = v * sqrt(2 * (d/T - 1 + exp(-d/T))) / (d/T).
//! The default v is what gives segments of 4 s, with T = 4 s, the median of Big Buck Bunny's 20 representations in the
//! sizes that AStream lists, v_4 = 0.19 (they range from 0.10 to 0.46; neighbouring segments correlate by 0.4 there and
//! by (1 - 1/e)^2 / (2/e) = 0.54 here; neighbouring representations correlate by about 0.9 there and by 1 here).

use anabranch_units::Duration;
use rand::{Rng, RngExt};

use crate::frames::lognormal;

/// 0.19 / sqrt(2/e), see the module.
const SCENE_VARIATION: f64 = 0.222;
/// As for pictures: shots of contemporary films last about four seconds (Cutting, DeLong and Nothelfer 2010).
const SCENE_LENGTH: Duration = Duration::from_secs(4);
/// The highest accepted value: beyond it a lognormal factor has an extreme tail.
pub(crate) const VARIATION_MAX: f64 = 10.0;

/// Variation of the sizes of media segments.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SegmentVariation {
    /// Coefficient of variation between scenes, 0 to 10. Zero: nominal sizes.
    pub scene: f64,
    /// Mean length of a scene.
    pub scene_length: Duration,
}

impl Default for SegmentVariation {
    /// Big Buck Bunny's, see the module's documentation: 0.222 and 4 s.
    fn default() -> Self {
        SegmentVariation { scene: SCENE_VARIATION, scene_length: SCENE_LENGTH }
    }
}

impl SegmentVariation {
    /// Whether the parameters are in range.
    pub fn is_valid(&self) -> bool {
        (0.0..=VARIATION_MAX).contains(&self.scene) && !self.scene_length.is_zero()
    }

    /// Relative sizes of media segments of these durations.
    pub(super) fn factors(&self, durations: &[Duration], rng: &mut impl Rng) -> Vec<f64> {
        let mean_length = self.scene_length.as_secs_f64();
        let mut scene = Scene { value: lognormal(self.scene, rng), left: exponential(mean_length, rng) };
        let mut factor = |duration: Duration| {
            let duration = duration.as_secs_f64();
            let (mut sum, mut missing) = (0.0, duration);
            while scene.left < missing {
                sum += scene.value * scene.left;
                missing -= scene.left;
                scene = Scene { value: lognormal(self.scene, rng), left: exponential(mean_length, rng) };
            }
            scene.left -= missing;
            (sum + scene.value * missing) / duration
        };
        durations.iter().map(|&duration| factor(duration)).collect()
    }
}

/// The current scene: the factor of its segments, and its remaining seconds.
struct Scene {
    value: f64,
    left: f64,
}

fn exponential(mean: f64, rng: &mut impl Rng) -> f64 {
    -mean * libm::log(1.0 - rng.random::<f64>())
}

/// `sizes` times `factors`, at least one byte each, with the same sum. The partial sums are rounded.
pub(super) fn scale(sizes: &[u64], factors: &[f64]) -> Vec<u64> {
    let weights = || sizes.iter().zip(factors).map(|(&bytes, factor)| bytes as f64 * factor);
    let (total, bytes): (f64, u64) = (weights().sum(), sizes.iter().sum());
    let spare = bytes - sizes.len() as u64;
    let (mut sum, mut before) = (0.0, 0);
    let mut scaled: Vec<u64> = weights()
        .map(|weight| {
            sum += weight;
            let end = ((sum / total * spare as f64) as u64).min(spare);
            let own = end - before;
            before = end;
            own + 1
        })
        .collect();
    // The rest of the last rounding, if any, is added to the last one.
    if let Some(last) = scaled.last_mut() {
        *last += spare - before;
    }
    scaled
}

#[cfg(test)]
mod tests {
    use super::super::{DashVideo, find_ladder};
    use super::*;
    use rand_chacha::ChaCha8Rng;
    use rand_chacha::rand_core::SeedableRng;

    fn varied(name: &str, duration: Option<Duration>, variation: &SegmentVariation, seed: u64) -> DashVideo {
        let nominal = find_ladder(name).unwrap().video(duration).unwrap();
        nominal.varied(variation, &mut ChaCha8Rng::seed_from_u64(seed))
    }

    fn sizes(video: &DashVideo, representation: usize) -> Vec<f64> {
        (0..video.segments()).map(|k| video.bytes(representation, k) as f64).collect()
    }

    fn variation_of(sizes: &[f64]) -> f64 {
        let mean = sizes.iter().sum::<f64>() / sizes.len() as f64;
        (sizes.iter().map(|s| (s - mean) * (s - mean)).sum::<f64>() / sizes.len() as f64).sqrt() / mean
    }

    #[test]
    fn the_mean_is_the_nominal_bitrate_in_every_representation() {
        let nominal = find_ladder("bbb-6s").unwrap().video(None).unwrap();
        let video = varied("bbb-6s", None, &SegmentVariation::default(), 7);
        for r in 0..20 {
            let total = |v: &DashVideo| (0..v.segments()).map(|k| v.bytes(r, k)).sum::<u64>();
            assert_eq!(total(&video), total(&nominal), "representation {r}");
            assert_ne!(sizes(&video, r), sizes(&nominal, r));
        }
    }

    #[test]
    fn segments_vary_as_the_formula_says_and_longer_ones_less() {
        let variation = SegmentVariation { scene: 0.3, scene_length: Duration::from_secs(4) };
        // Many segments, so that the estimate is good to a few per cent.
        for (name, count, d) in [("bbb-1s", 20_000, 1.0_f64), ("bbb-2s", 20_000, 2.0), ("bbb-10s", 20_000, 10.0)] {
            let duration = Duration::from_secs(count * d as u64);
            let measured = variation_of(&sizes(&varied(name, Some(duration), &variation, 3), 10));
            let x = d / 4.0;
            let expected = 0.3 * (2.0 * (x - 1.0 + libm::exp(-x))).sqrt() / x;
            assert!((measured / expected - 1.0).abs() < 0.06, "{name}: {measured} instead of {expected}");
        }
    }

    #[test]
    fn the_default_gives_four_seconds_the_measured_variation() {
        let x: f64 = 1.0;
        let of_four = SCENE_VARIATION * (2.0 * (x - 1.0 + libm::exp(-x))).sqrt() / x;
        assert!((of_four - 0.19).abs() < 0.001, "{of_four}");
    }

    #[test]
    fn representations_vary_together_and_seeds_differ() {
        let video = varied("bbb-1s", None, &SegmentVariation::default(), 1);
        let again = varied("bbb-1s", None, &SegmentVariation::default(), 1);
        let other = varied("bbb-1s", None, &SegmentVariation::default(), 2);
        assert_eq!(video, again);
        assert_ne!(video, other);
        let (low, high) = (sizes(&video, 0), sizes(&video, 19));
        let ratio = find_ladder("bbb-1s").unwrap().bitrates[19] as f64 / 46_980.0;
        assert!(low.iter().zip(&high).all(|(l, h)| (h / l / ratio - 1.0).abs() < 0.01));
    }

    #[test]
    fn no_variation_leaves_nominal_sizes() {
        let still = SegmentVariation { scene: 0.0, ..SegmentVariation::default() };
        let nominal = find_ladder("bbb-10s").unwrap().video(None).unwrap();
        let video = varied("bbb-10s", None, &still, 1);
        // Rounding of the sums may move a byte.
        assert!(sizes(&video, 5).iter().zip(sizes(&nominal, 5)).all(|(a, b)| (a - b).abs() <= 1.0));
    }

    #[test]
    fn tiny_segments_keep_a_byte() {
        assert_eq!(scale(&[1, 1, 1], &[5.0, 0.0, 0.1]), [1, 1, 1]);
        assert_eq!(scale(&[10, 10, 10], &[1.0, 0.0, 0.0]), [28, 1, 1]);
        assert_eq!(scale(&[10, 20], &[1.0, 1.0]).iter().sum::<u64>(), 30);
    }

    #[test]
    fn numbers_out_of_range_are_not_valid() {
        let with = |scene, secs| SegmentVariation { scene, scene_length: Duration::from_secs(secs) }.is_valid();
        assert!(with(0.0, 1) && with(10.0, 1));
        assert!(!with(-0.1, 1) && !with(10.1, 1) && !with(f64::NAN, 1) && !with(1.0, 0));
    }
}
