//! D9: is it out-of-order arrival that lowers the quality over unequal paths?

use super::compare::{BITRATE, HIGH_QUALITY, Metric, Quantity, REORDER, above, digits, higher};
use super::dash::{LENGTHS, RATIOS, name};
use super::study::Study;
use crate::claims::verdict::{Claim, Finding};

/// The wait per byte for what another path carried, as a part of a media segment's mean delay.
const ACROSS: Metric = Metric { name: "wait for the other path over delay", unit: "%", of: |s| s.across_share * 100.0 };
/// A part of the delay that matters, per cent.
const MATTERS: f64 = 10.0;
/// A correlation that is called strong.
const STRONG: f64 = -0.8;

pub(super) fn d9(study: &Study) -> Claim {
    let mut findings = Vec::new();
    for (length, _) in LENGTHS {
        let at = |ratio: &str| name(length, ratio);
        findings.push(higher(study, &at("1:5"), &at("1:1"), REORDER));
        findings.push(above(study, &at("1:5"), ACROSS, MATTERS));
        findings.push(falls_with_the_wait(study, length));
    }
    Claim {
        id: "D9",
        claim: "the cause is out-of-order arrival over unequal paths",
        criterion: "for each length: bytes wait longer for earlier ones at 1:5 than at 1:1; at 1:5 the wait for the other path is more \
            than 10 % of a media segment's delay; over the five ratios the bitrate falls with the wait (correlation below -0.8)",
        findings,
    }
}

pub(super) fn quantities(study: &Study) -> Vec<Quantity> {
    let mut all = Vec::new();
    for (length, _) in LENGTHS {
        for ratio in ["1:1", "1:5"] {
            all.push(REORDER.quantity(study, "D9", &name(length, ratio), ""));
            all.push(ACROSS.quantity(study, "D9", &name(length, ratio), ""));
        }
    }
    all
}

fn falls_with_the_wait(study: &Study, length: &str) -> Finding {
    let means = |metric: Metric| RATIOS.map(|(ratio, _)| metric.mean(study, &name(length, ratio)));
    let (waits, rates, shares) = (means(REORDER), means(BITRATE), means(HIGH_QUALITY));
    let r = correlation(&waits.map(|m| m.mean), &rates.map(|m| m.mean));
    let text = format!(
        "{length}: correlation of bitrate and wait {r:.2} (waits {} to {} ms, high quality {} to {} %)",
        digits(&waits[0]),
        digits(&waits[4]),
        digits(&shares[0]),
        digits(&shares[4])
    );
    Finding::new(text, r < STRONG)
}

/// Pearson's; zero where one of them does not vary.
fn correlation(x: &[f64], y: &[f64]) -> f64 {
    let n = x.len() as f64;
    let (mx, my) = (x.iter().sum::<f64>() / n, y.iter().sum::<f64>() / n);
    let sum = |f: &dyn Fn(f64, f64) -> f64| x.iter().zip(y).map(|(x, y)| f(x - mx, y - my)).sum::<f64>();
    let spread = (sum(&|x, _| x * x) * sum(&|_, y| y * y)).sqrt();
    if spread > 0.0 { sum(&|x, y| x * y) / spread } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::correlation;

    #[test]
    fn the_correlation_of_lines_is_one() {
        assert!((correlation(&[1.0, 2.0, 4.0], &[3.0, 5.0, 9.0]) - 1.0).abs() < 1e-12);
        assert!((correlation(&[1.0, 2.0, 4.0], &[-3.0, -5.0, -9.0]) + 1.0).abs() < 1e-12);
        assert_eq!(correlation(&[1.0, 2.0, 4.0], &[7.0, 7.0, 7.0]), 0.0);
        // Mean-free: (-1, 0, 1) and (1, -2, 1) are orthogonal.
        assert_eq!(correlation(&[1.0, 2.0, 3.0], &[5.0, 2.0, 5.0]), 0.0);
    }
}
