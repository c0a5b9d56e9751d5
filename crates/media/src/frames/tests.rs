//! Sizes of synthetic videos compared with measurements, and lookups of pictures.

use super::*;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

fn paper(fps: u32, seed: u64) -> FrameTable {
    let spec = VideoSpec {
        size: 409_000_000,
        rate: Bandwidth::from_bps(5_240_000),
        frame_rate: FrameRate::from_fps(fps).unwrap(),
        variation: Variation::default(),
    };
    FrameTable::generate(&spec, &mut ChaCha8Rng::seed_from_u64(seed)).unwrap()
}

fn sizes(table: &FrameTable) -> Vec<f64> {
    (0..table.len()).map(|k| (table.end(k) - table.start(k)) as f64).collect()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn variation(values: &[f64]) -> f64 {
    let m = mean(values);
    mean(&values.iter().map(|v| (v - m) * (v - m)).collect::<Vec<_>>()).sqrt() / m
}

#[test]
fn the_papers_video_has_its_size_and_duration_at_every_frame_rate() {
    // 409e6 * 8 / 5.24e6 = 624.427 s.
    for (fps, pictures) in [(24, 14_986), (25, 15_610), (30, 18_732)] {
        let table = paper(fps, 1);
        assert_eq!(table.len(), pictures);
        assert_eq!(table.size(), 409_000_000);
        assert!((table.duration().as_secs_f64() - 624.427).abs() < 0.05);
        assert_eq!(table.header(), 4_000 + 20 * u64::from(pictures));
    }
}

#[test]
fn kinds_keep_test_model_fives_proportion() {
    let table = paper(24, 3);
    let sizes = sizes(&table);
    let of = |wanted| {
        let chosen: Vec<f64> =
            (0..table.len()).filter(|&k| table.kind(k) == wanted).map(|k| sizes[k as usize]).collect();
        mean(&chosen)
    };
    let (i, p, b) = (of(FrameKind::I), of(FrameKind::P), of(FrameKind::B));
    assert!((i / p / (160.0 / 60.0) - 1.0).abs() < 0.05, "I:P {}", i / p);
    assert!((p / b / 2.0 - 1.0).abs() < 0.03, "P:B {}", p / b);
}

#[test]
fn variation_is_the_measured_traces() {
    let all: Vec<_> = (0..8).map(|seed| sizes(&paper(24, seed))).collect();
    let pictures = mean(&all.iter().map(|s| variation(s)).collect::<Vec<_>>());
    let groups = |s: &[f64]| variation(&s.chunks_exact(48).map(mean).collect::<Vec<_>>());
    let groups = mean(&all.iter().map(|s| groups(s)).collect::<Vec<_>>());
    assert!((pictures - 0.75).abs() < 0.06, "{pictures}");
    assert!((groups - 0.43).abs() < 0.06, "{groups}");
}

#[test]
fn the_seed_decides_and_nothing_else() {
    assert_eq!(paper(25, 7), paper(25, 7));
    assert_ne!(paper(25, 7), paper(25, 8));
}

#[test]
fn the_pattern_is_i_then_p_b_b() {
    let table = paper(24, 1);
    let first: Vec<_> = (0..8).chain(47..50).map(|k| table.kind(k)).collect();
    use FrameKind::{B, I, P};
    assert_eq!(first, [I, P, B, B, P, B, B, P, B, I, P]);
}

#[test]
fn offsets_and_times_find_their_picture() {
    let table = FrameTable::from_sizes(FrameRate::from_fps(25).unwrap(), 100, [10, 20, 30]);
    let found: Vec<_> = [0, 99, 100, 109, 110, 129, 130, 159, 160].map(|o| table.at_offset(o)).into();
    assert_eq!(found, [None, None, Some(0), Some(0), Some(1), Some(1), Some(2), Some(2), None]);
    for (offset, near) in (90..170).flat_map(|offset| [0, 1, 2, 3, u32::MAX].map(|near| (offset, near))) {
        assert_eq!(table.at_offset_near(offset, near), table.at_offset(offset), "{offset} near {near}");
    }
    assert_eq!([0, 109, 110, 159, 160, 999].map(|b| table.complete_within(b)), [0, 0, 1, 2, 3, 3]);
    assert_eq!([0, 39, 40, 119, 120, 500].map(|t| table.at_time(Duration::from_millis(t))), [0, 0, 1, 2, 3, 3]);
    assert_eq!((table.start(0), table.start(2), table.size()), (100, 130, 160));
}

#[test]
fn a_tiny_video_or_one_without_a_rate_is_refused_and_a_small_one_is_exact() {
    let frame_rate = FrameRate::from_fps(30).unwrap();
    let make = |size, bps| {
        let rate = Bandwidth::from_bps(bps);
        let spec = VideoSpec { size, rate, frame_rate, variation: Variation::default() };
        FrameTable::generate(&spec, &mut ChaCha8Rng::seed_from_u64(1))
    };
    assert_eq!(make(1000, 0), Err(VideoError::ZeroRate));
    assert_eq!(make(4_020, 1_000_000), Err(VideoError::TooSmall { size: 4_020, pictures: 1, header: 4_020 }));
    let one = make(4_021, 1_000_000).unwrap();
    assert_eq!((one.len(), one.size()), (1, 4_021));
    let small = make(30_000, 100_000).unwrap();
    assert_eq!(small.size(), 30_000);
    assert!(sizes(&small).iter().all(|&size| size >= 1.0));
}

#[test]
fn without_variation_every_group_has_the_same_size() {
    let none = Variation { scene: 0.0, picture: 0.0, ..Variation::default() };
    let make = |variation| {
        let rate = Bandwidth::from_bps(5_240_000);
        let spec = VideoSpec { size: 40_900_000, rate, frame_rate: FrameRate::from_fps(25).unwrap(), variation };
        FrameTable::generate(&spec, &mut ChaCha8Rng::seed_from_u64(1))
    };
    let table = make(none).unwrap();
    let groups: Vec<u64> = (0..30).map(|g| table.start(50 * (g + 1)) - table.start(50 * g)).collect();
    assert!(groups.iter().all(|group| group.abs_diff(groups[0]) <= 1), "{groups:?}");
    for bad in [Variation { scene: -0.1, ..none }, Variation { picture: f64::NAN, ..none }] {
        assert_eq!(make(bad), Err(VideoError::BadVariation));
    }
    assert_eq!(make(Variation { scene_length: Duration::ZERO, ..none }), Err(VideoError::BadVariation));
}

#[test]
fn film_rates_do_not_drift() {
    let film = FrameRate::new(24_000, 1_001).unwrap();
    assert_eq!(film.timestamp(24_000), Duration::from_secs(1_001));
    assert_eq!(film.period(), Duration::from_nanos(41_708_333));
}
