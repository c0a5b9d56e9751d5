//! Sizes of media segments as a JSON table, in the form that Sabre reads:
//! `{ "segment_duration_ms": 3000, "bitrates_kbps": [230, ...], "segment_sizes_bits": [[..], ..] }`,
//! where `segment_sizes_bits[segment][representation]`. `resolutions` may add `[[width, height], ...]` by
//! representation. Other fields are ignored: such tables carry their source and notes.

use super::{ContentError, DashVideo, Place, Representation, Resolution};
use anabranch_units::Duration;
use serde::Deserialize;

#[derive(Deserialize)]
struct Table {
    segment_duration_ms: f64,
    bitrates_kbps: Vec<f64>,
    segment_sizes_bits: Vec<Vec<f64>>,
    resolutions: Option<Vec<(u32, u32)>>,
}

/// Reads such a table. `file` is its name for messages.
pub fn read_table(file: &str, text: &str) -> Result<DashVideo, ContentError> {
    let table: Table = serde_json::from_str(text).map_err(|error| {
        let place = Place { line: error.line() as u32, column: error.column() as u32 };
        let message = error.to_string();
        // The library ends its message with the position, which comes first here.
        let what = message.split(" at line ").next().unwrap_or(&message);
        ContentError::new(file, Some(place), format!("not a table of segment sizes: {what}"))
    })?;
    let fail = |message: String| ContentError::new(file, None, message);
    let duration = milliseconds(table.segment_duration_ms)
        .ok_or_else(|| fail("`segment_duration_ms` must be above zero and at most a day".to_string()))?;
    let sizes = transpose(&table).map_err(fail)?;
    let durations = vec![duration; table.segment_sizes_bits.len()];
    let representations = representations(&table).map_err(fail)?;
    DashVideo::with_sizes(representations, &durations, sizes).map_err(|error| fail(error.to_string()))
}

/// A duration above zero, of at most a day.
fn milliseconds(ms: f64) -> Option<Duration> {
    const DAY_MS: f64 = 86_400_000.0;
    (ms > 0.0 && ms <= DAY_MS).then(|| Duration::from_secs_f64(ms / 1_000.0)).filter(|d| !d.is_zero())
}

/// Above every encoder's output; keeps sums from overflowing.
const MOST: f64 = 1e15;

fn representations(table: &Table) -> Result<Vec<Representation>, String> {
    let count = table.bitrates_kbps.len();
    if let Some(given) = table.resolutions.as_ref().filter(|given| given.len() != count) {
        return Err(format!("there are {count} bitrates but {} resolutions", given.len()));
    }
    let one = |(index, &kbps): (usize, &f64)| {
        if !(kbps > 0.0 && kbps <= MOST) {
            return Err(format!("bitrate {index} (counted from zero) is {kbps} kbit/s"));
        }
        let resolution = table.resolutions.as_ref().map(|r| Resolution { width: r[index].0, height: r[index].1 });
        Ok(Representation { bitrate: (kbps * 1_000.0).round() as u64, resolution })
    };
    table.bitrates_kbps.iter().enumerate().map(one).collect()
}

/// `[segment][representation]` in bits to `[representation][segment]` in bytes.
fn transpose(table: &Table) -> Result<Vec<Vec<u64>>, String> {
    let count = table.bitrates_kbps.len();
    let mut sizes = vec![Vec::with_capacity(table.segment_sizes_bits.len()); count];
    for (segment, row) in table.segment_sizes_bits.iter().enumerate() {
        if row.len() != count {
            let found = row.len();
            return Err(format!("media segment {segment} (counted from zero) has {found} sizes for {count} bitrates"));
        }
        for (representation, &bits) in row.iter().enumerate() {
            if !(1.0..=MOST).contains(&bits) {
                let whose = format!("media segment {segment} of representation {representation}");
                return Err(format!("{whose} (both counted from zero) has {bits} bits"));
            }
            sizes[representation].push((bits / 8.0).ceil() as u64);
        }
    }
    Ok(sizes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(text: &str) -> String {
        read_table("sizes.json", text).unwrap_err().to_string()
    }

    #[test]
    fn a_table_is_read_with_its_sizes() {
        let text = r#"{"segment_duration_ms": 3000, "bitrates_kbps": [45.226, 331], "note": "kept out",
            "segment_sizes_bits": [[800, 8000], [801, 9000]], "resolutions": [[320, 240], [1280, 720]]}"#;
        let video = read_table("sizes.json", text).unwrap();
        assert_eq!((video.segments(), video.duration()), (2, Duration::from_secs(6)));
        assert_eq!((video.bytes(0, 0), video.bytes(0, 1), video.bytes(1, 1)), (100, 101, 1_125));
        let first = video.representations()[0];
        assert_eq!((first.bitrate, first.resolution), (45_226, Some(Resolution { width: 320, height: 240 })));
    }

    #[test]
    fn broken_json_is_reported_with_its_place() {
        let message = message("{\"segment_duration_ms\": 3000,\n \"bitrates_kbps\": [1, }");
        assert!(message.starts_with("sizes.json:2:") && message.contains("expected value"), "{message}");
        assert!(!message.contains("at line"), "{message}");
    }

    #[test]
    fn what_does_not_fit_is_named() {
        let with = |bitrates: &str, sizes: &str, more: &str| {
            let text = format!(
                r#"{{"segment_duration_ms": 1000, "bitrates_kbps": {bitrates}, "segment_sizes_bits": {sizes}{more}}}"#
            );
            message(&text)
        };
        assert!(with("[1, 2]", "[[8, 8], [8]]", "").contains("media segment 1 (counted from zero) has 1 sizes for 2"));
        assert!(with("[1]", "[[-8]]", "").contains("has -8 bits"));
        assert!(with("[1]", "[[0]]", "").contains("has 0 bits"));
        assert!(with("[0]", "[[8]]", "").contains("bitrate 0"));
        assert!(with("[2, 1]", "[[8, 8]]", "").contains("not above"));
        assert!(with("[1]", "[]", "").contains("no media segments"));
        assert!(with("[1]", "[[8]]", ", \"resolutions\": []").contains("0 resolutions"));
        let timeless = r#"{"segment_duration_ms": 0, "bitrates_kbps": [1], "segment_sizes_bits": [[8]]}"#;
        assert!(message(timeless).contains("segment_duration_ms"));
    }
}
