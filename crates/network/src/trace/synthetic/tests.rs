//! The generator against its formulas, over many seconds.

use super::*;
use crate::trace::Summary;

const PERIOD: Duration = Duration::from_secs(100_000);

const MEAN: Bandwidth = Bandwidth::from_mbps(10);

fn lte() -> SyntheticConfig {
    let read = serde_json::json!({ "synthetic": "lte", "mean": "10 Mb/s", "period": "100000 s" });
    SyntheticConfig { stream: "test".into(), ..serde_json::from_value(read).unwrap() }
}

fn plain() -> SyntheticModel {
    SyntheticModel {
        headroom: 0.0,
        spread: 0.0,
        correlation_time: Duration::from_secs(10),
        noise: 0.0,
        between_outages: Duration::from_secs(100),
        outage: Duration::ZERO,
    }
}

fn summary(model: SyntheticModel, seed: u64) -> Summary {
    Summary::of(&model.recording(MEAN, PERIOD, &Streams::new(seed, "test")).unwrap()).unwrap()
}

#[test]
fn without_variation_it_is_constant() {
    let steps = plain().generate(MEAN, PERIOD, &Streams::new(1, "x"));
    assert!(steps.iter().all(|step| step == (Duration::from_secs(1), MEAN)));
}

#[test]
fn the_name_and_the_seed_decide() {
    let make = |config: &SyntheticConfig, seed, streams| config.generate(&Streams::new(seed, streams));
    let varied = lte();
    let first = make(&varied, 1, "link/a/down");
    assert_eq!(make(&varied, 1, "link/a/up"), first);
    assert_ne!(make(&varied, 2, "link/a/down"), first);
    let fixed = SyntheticConfig { seed: Some(1), ..varied };
    assert_eq!(make(&fixed, 2, "link/a/down"), first);
    let other = SyntheticConfig { stream: "other".into(), ..fixed };
    assert_ne!(make(&other, 2, "link/a/down"), first);
}

#[test]
fn what_is_given_replaces_the_kind_s_parameters() {
    let usual = lte().model();
    let mut config = SyntheticConfig { spread: Some(2.0), outage: Some(Duration::ZERO), ..lte() };
    let model = SyntheticModel { spread: 2.0, outage: Duration::ZERO, ..usual };
    assert_eq!(config.model(), model);
    config.complete();
    assert_eq!((config.headroom, config.spread, config.noise), (Some(usual.headroom), Some(2.0), Some(usual.noise)));
    assert_eq!(config.model(), model);
}

#[test]
fn every_kind_has_its_mean_and_its_outages() {
    for kind in SYNTHETIC_KINDS {
        let model = (kind.create)();
        let seeds: Vec<Summary> = (0..10).map(|seed| summary(model, seed)).collect();
        let mean = seeds.iter().map(|s| s.mean_bps).sum::<f64>() / 10.0;
        assert!((mean / 1e7 - 1.0).abs() < 0.02, "{}: {mean}", kind.name);
        let zeros = seeds.iter().flat_map(|s| &s.samples_bps).filter(|rate| **rate == 0.0).count() as f64 / 1e6;
        let expected = 1.0 - model.service();
        assert!((zeros - expected).abs() <= 0.1 * expected, "{}: {zeros} {expected}", kind.name);
    }
}

/// At a low headroom the rate is log-normal: its variation is sqrt(exp(s^2) - 1) with s^2 = spread^2 + noise^2, and its
/// correlation (exp(spread^2 a^k) - 1) / (exp(s^2) - 1).
#[test]
fn with_little_headroom_it_is_log_normal() {
    let model = SyntheticModel { headroom: -20.0, spread: 0.5, noise: 0.3, ..plain() };
    let (total, slow) = (0.25 + 0.09, 0.25f64);
    let variance = libm::exp(total) - 1.0;
    let seeds: Vec<Summary> = (0..10).map(|seed| summary(model, seed)).collect();
    let mean = |of: &dyn Fn(&Summary) -> f64| seeds.iter().map(of).sum::<f64>() / 10.0;
    let variation = mean(&|s| s.variation);
    assert!((variation / variance.sqrt() - 1.0).abs() < 0.02, "{variation}");
    for k in [1, 5, 20] {
        let expected = (libm::exp(slow * libm::exp(-(k as f64) / 10.0)) - 1.0) / variance;
        let measured = mean(&|s| s.autocorrelation(k).unwrap());
        assert!((measured - expected).abs() < 0.015, "{k}: {measured} {expected}");
    }
    let median = mean(&|s| s.quantile_bps(0.5)) / 1e7;
    assert!((median / libm::exp(-total / 2.0) - 1.0).abs() < 0.02, "{median}");
}

/// The chain leaves an outage with 1 - exp(-1/4) per second, so its mean length is the inverse.
#[test]
fn outages_have_the_configured_length() {
    let model = SyntheticModel { between_outages: Duration::from_secs(40), outage: Duration::from_secs(4), ..plain() };
    let made = summary(model, 3);
    let length = made.outage_share * 1e5 / made.outages as f64;
    let expected = 1.0 / (1.0 - libm::exp(-0.25));
    assert!((length / expected - 1.0).abs() < 0.08, "{length} {expected}");
    let share = 1.0 - model.service();
    assert!((made.outage_share / share - 1.0).abs() < 0.08, "{} {share}", made.outage_share);
}

#[test]
fn impossible_parameters_are_named() {
    let bad = |change: fn(&mut SyntheticConfig)| {
        let mut config = lte();
        assert_eq!(config.check(), Ok(()));
        change(&mut config);
        config.check().unwrap_err().field
    };
    assert_eq!(bad(|c| c.kind = "let".into()), "synthetic");
    assert_eq!(bad(|c| c.headroom = Some(f64::NAN)), "headroom");
    assert_eq!(bad(|c| c.spread = Some(-0.1)), "spread");
    assert_eq!(bad(|c| c.noise = Some(3.1)), "noise");
    assert_eq!(bad(|c| c.correlation_time = Some(Duration::ZERO)), "correlation_time");
    assert_eq!(bad(|c| c.between_outages = Some(Duration::ZERO)), "between_outages");
    assert_eq!(bad(|c| c.period = Duration::from_millis(900)), "period");
    assert_eq!(bad(|c| c.period = Duration::from_secs(1 << 33)), "period");
}
