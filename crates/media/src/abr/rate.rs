//! Rate-based: the highest representation below the predicted throughput.
//!
//! C = n / sum(1/c_k) over the last n media segments,  choose max i with R_i <= s*C
//! c_k = size_k / (last byte - request), bit/s; R_i nominal bitrate; s = 1 and n = 5 by default.
//!
//! The harmonic mean, because a few fast downloads must not hide slow ones (Jiang, Sekar, Zhang: "Improving Fairness,
//! Efficiency, and Stability in HTTP-based Adaptive Video Streaming with FESTIVE", CoNEXT 2012, section 5.1, with n =
//! 20 there); n = 5 and s = 1 as the rate-based baseline of Mao, Netravali, Alizadeh, "Neural Adaptive Video Streaming
//! with Pensieve", SIGCOMM 2017, section 5.1.

use super::options::check;
use super::{AbrRule, Decision, Download, Entry, View};

const NAME: &str = "rate";
/// Pensieve section 5.1.
pub(super) const SAMPLES: usize = 5;
const SAFETY: f64 = 1.0;

pub(super) const ENTRY: Entry = Entry {
    name: NAME,
    summary: "The highest representation below the harmonic mean of the last downloads' throughput.",
    source: "Jiang et al., FESTIVE, CoNEXT 2012; baseline of Mao et al., Pensieve, SIGCOMM 2017",
    create: |options| {
        options.expect_only(NAME, &["samples", "safety"])?;
        Ok(Box::new(Rate {
            samples: check(NAME, "samples", "at least 1", options.samples.unwrap_or(SAMPLES), |n| n >= 1)?,
            safety: check(NAME, "safety", "above 0", options.safety.unwrap_or(SAFETY), |s| s > 0.0)?,
        }))
    },
};

#[derive(Debug)]
struct Rate {
    samples: usize,
    safety: f64,
}

/// The harmonic mean of the throughput of the last `n` downloads, bit/s; `None` if there was no download.
pub(super) fn harmonic_mean(downloads: &[Download], n: usize) -> Option<f64> {
    let last = &downloads[downloads.len().saturating_sub(n)..];
    let inverse: f64 = last.iter().map(|d| 1.0 / d.throughput_bps()).sum();
    (!last.is_empty()).then(|| last.len() as f64 / inverse)
}

impl AbrRule for Rate {
    fn decide(&mut self, view: &View<'_>) -> Decision {
        match harmonic_mean(view.downloads, self.samples) {
            None => Decision::now(view.current.min(view.top), "nothing measured yet"),
            Some(bps) => Decision::now(view.ladder.highest_within(self.safety * bps, view.top), "below the throughput"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{download, ladder, view};
    use super::super::{AbrOptionError, AbrOptions};
    use super::*;

    fn chosen(options: AbrOptions, bps: &[u64]) -> usize {
        let ladder = ladder(&[100_000, 200_000, 400_000, 800_000]);
        let downloads: Vec<_> = bps.iter().map(|&bps| download(bps)).collect();
        (ENTRY.create)(&options)
            .unwrap()
            .decide(&View { current: 1, downloads: &downloads, ..view(&ladder) })
            .representation
    }

    #[test]
    fn the_mean_is_harmonic_over_the_last_five() {
        // 2 / (1/800 + 1/200) = 320, where the arithmetic mean would be 500.
        assert_eq!(harmonic_mean(&[download(800_000), download(200_000)], 5).map(f64::round), Some(320_000.0));
        assert_eq!(chosen(AbrOptions::default(), &[800_000, 200_000]), 1);
        // The first of six is forgotten.
        assert_eq!(chosen(AbrOptions::default(), &[1, 400_000, 400_000, 400_000, 400_000, 400_000]), 2);
        assert_eq!(chosen(AbrOptions::default(), &[199_000]), 0);
        assert_eq!(chosen(AbrOptions { samples: Some(1), ..AbrOptions::default() }, &[1, 400_080]), 2);
        assert_eq!(chosen(AbrOptions { samples: Some(6), ..AbrOptions::default() }, &[1, 1 << 30, 1 << 30]), 0);
    }

    #[test]
    fn before_the_first_download_it_keeps_what_the_player_chose() {
        assert_eq!(chosen(AbrOptions::default(), &[]), 1);
    }

    #[test]
    fn the_safety_factor_scales_the_estimate() {
        assert_eq!(chosen(AbrOptions { safety: Some(0.9), ..AbrOptions::default() }, &[400_000]), 1);
        assert_eq!(chosen(AbrOptions { safety: Some(2.0), ..AbrOptions::default() }, &[400_080]), 3);
    }

    #[test]
    fn options_out_of_range_are_refused() {
        let refused = |options: &AbrOptions| match (ENTRY.create)(options).unwrap_err() {
            AbrOptionError::OutOfRange { option, .. } => option,
            AbrOptionError::Unknown { .. } => "unknown",
        };
        assert_eq!(refused(&AbrOptions { samples: Some(0), ..AbrOptions::default() }), "samples");
        assert_eq!(refused(&AbrOptions { safety: Some(0.0), ..AbrOptions::default() }), "safety");
        assert_eq!(refused(&AbrOptions { safety: Some(f64::NAN), ..AbrOptions::default() }), "safety");
    }
}
