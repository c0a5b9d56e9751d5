//! Manifests as packagers write them, those of `tests/manifests` and random ones. `tests/test_manifests.py` reads the
//! same files with a reader of its own.

use anabranch_media::content::{DashVideo, Mpd, MpdSelection};
use anabranch_units::Duration;
use proptest::prelude::*;
use std::fmt::Write;
use std::path::Path;

fn read(name: &str, selection: &MpdSelection) -> (DashVideo, Vec<String>) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/manifests").join(name);
    let mpd = Mpd::read(name, &std::fs::read(path).unwrap()).unwrap_or_else(|error| panic!("{error}"));
    let (video, warnings) = mpd.video_with_warnings(selection).unwrap_or_else(|error| panic!("{error}"));
    (video, warnings.iter().map(ToString::to_string).collect())
}

fn bitrates(video: &DashVideo) -> Vec<u64> {
    video.representations().iter().map(|r| r.bitrate).collect()
}

fn shape(video: &DashVideo) -> (u32, u64) {
    (video.segments(), video.duration().as_millis())
}

#[test]
fn every_kind_has_its_reading() {
    let whole = MpdSelection::default();
    let minute = MpdSelection { duration: Some(Duration::from_secs(60)), ..whole };
    assert_eq!(shape(&read("live-epoch.mpd", &whole).0), (50, 300_000));
    assert_eq!(shape(&read("live-epoch.mpd", &minute).0), (10, 60_000));
    assert_eq!(shape(&read("pto-split.mpd", &whole).0), (30, 60_000));
    assert_eq!(shape(&read("no-t.mpd", &whole).0), (5, 10_000));
    assert_eq!(shape(&read("latin1.mpd", &whole).0), (30, 60_000));
    let (sized, _) = read("astream-kb.mpd", &whole);
    assert_eq!((0..2).map(|k| sized.bytes(0, k)).collect::<Vec<_>>(), [21_504, 19_456]);
    let (plain, warnings) = read("trickmode-high.mpd", &whole);
    assert_eq!((bitrates(&plain), warnings), (vec![300_000, 900_000], vec![]));
    for name in ["live-epoch.mpd", "pto-split.mpd", "latin1.mpd", "astream-kb.mpd"] {
        assert_eq!(read(name, &whole).1, Vec::<String>::new(), "{name}");
    }
}

#[test]
fn what_is_not_used_as_it_is_written_is_named_with_its_line() {
    let whole = MpdSelection::default();
    let (joined, warnings) = read("set-each.mpd", &whole);
    assert_eq!(bitrates(&joined), [400_000, 1_500_000, 4_000_000]);
    let expected = "set-each.mpd:5:1: period 0: AdaptationSets 1, 2 and 3 have the same codec, language and role: their \
        representations are one ladder; dash.js plays AdaptationSet 3 alone";
    assert!(warnings.len() == 1 && warnings[0].starts_with(expected), "{warnings:?}");
    let (rest, warnings) = read("empty-period.mpd", &whole);
    assert_eq!(shape(&rest), (30, 60_000));
    let expected = ["empty-period.mpd:1:515: period ad is empty: it has no AdaptationSet, and is skipped"];
    assert_eq!(warnings, expected);
    let (_, warnings) = read("no-t.mpd", &whole);
    let expected = ["no-t.mpd:3:3: period p1 has media segments for 10 s of its 30 s: it ends with the last one"];
    assert_eq!(warnings, expected);
}

/// A timeline: a gap before each run, as ticks; a length; a number of repeats.
type Runs = Vec<(u64, u64, u64)>;

/// A random period: ticks per second, the tick of its begin, its length in ticks if it ends, and its timeline.
#[derive(Clone, Debug)]
struct RandomPeriod {
    timescale: u64,
    offset: u64,
    length: u64,
    runs: Runs,
}

fn random_period() -> impl Strategy<Value = RandomPeriod> {
    let runs =
        prop::collection::vec((prop_oneof![4 => Just(0_u64), 1 => 1..5_000_u64], 1_000..9_000_u64, 0..6_u64), 1..6);
    let timescale = prop::sample::select(vec![1_000_u64, 90_000, 44_100, 12_800, 10_000_000]);
    (timescale, 0..20_000_u64, 1_000..60_000_u64, runs).prop_map(|(timescale, offset, length, runs)| RandomPeriod {
        timescale,
        offset,
        length,
        runs,
    })
}

impl RandomPeriod {
    /// The segments, as begin and end in ticks.
    fn segments(&self) -> Vec<(u64, u64)> {
        let mut at = 0;
        let mut segments = Vec::new();
        for &(gap, ticks, repeats) in &self.runs {
            at += gap;
            for _ in 0..=repeats {
                segments.push((at, at + ticks));
                at += ticks;
            }
        }
        segments
    }

    /// The ticks that are played of each segment within the period.
    fn played(&self) -> Vec<u64> {
        let end = self.offset + self.length;
        let inside = |(a, b): (u64, u64)| b.min(end).saturating_sub(a.max(self.offset));
        self.segments().into_iter().map(inside).filter(|ticks| *ticks > 0).collect()
    }

    /// As XML: `t` stands where there is a gap, and sometimes where there is none.
    fn xml(&self, n: usize, every_t: bool) -> String {
        let RandomPeriod { timescale, offset, length, runs } = self;
        // More digits than nanoseconds need not be exact, so the length is rounded up to the next one.
        let nanos = (u128::from(*length) * 1_000_000_000).div_ceil(u128::from(*timescale));
        let (seconds, nanos) = (nanos / 1_000_000_000, nanos % 1_000_000_000);
        let mut text = format!(
            "<Period id=\"p{n}\" duration=\"PT{seconds}.{nanos:09}S\"><AdaptationSet contentType=\"video\"><SegmentTemplate \
             timescale=\"{timescale}\" presentationTimeOffset=\"{offset}\" media=\"$Time$\"><SegmentTimeline>"
        );
        let mut at = 0;
        for (gap, ticks, repeats) in runs {
            at += gap;
            let t = if *gap > 0 || every_t { format!("t=\"{at}\" ") } else { String::new() };
            write!(text, "<S {t}d=\"{ticks}\" r=\"{repeats}\"/>").unwrap();
            at += ticks * (repeats + 1);
        }
        text + "</SegmentTimeline></SegmentTemplate><Representation bandwidth=\"800000\"/></AdaptationSet></Period>\n"
    }
}

proptest! {
    /// Whatever lies in the periods is played, to the nanosecond, and nothing else.
    #[test]
    fn timelines_are_placed_on_the_axis_of_their_periods(
        periods in prop::collection::vec(random_period(), 1..4),
        every_t in any::<bool>(),
        wide in any::<bool>(),
    ) {
        let body: String = periods.iter().enumerate().map(|(n, period)| period.xml(n, every_t)).collect();
        let label = if wide { "UTF-16" } else { "UTF-8" };
        let text = format!("<?xml version=\"1.0\" encoding=\"{label}\"?>\n<MPD>\n{body}</MPD>");
        let bytes: Vec<u8> =
            if wide { text.encode_utf16().flat_map(u16::to_le_bytes).collect() } else { text.into_bytes() };
        let mpd = Mpd::read("random.mpd", &bytes).unwrap();
        let expected: Vec<u64> = periods
            .iter()
            .flat_map(|p| p.played().into_iter().map(|t| t * 1_000_000_000 / p.timescale))
            .collect();
        match mpd.video_with_warnings(&MpdSelection::default()) {
            Ok((video, warnings)) => {
                let seen: Vec<u64> = (0..video.segments()).map(|k| video.duration_of(k).as_nanos()).collect();
                prop_assert_eq!(seen, expected);
                for (n, period) in periods.iter().enumerate() {
                    let named = warnings.iter().any(|w| w.message.starts_with(&format!("period p{n} is empty")));
                    prop_assert_eq!(named, period.played().is_empty(), "{:?}", warnings);
                }
            }
            Err(error) => {
                prop_assert!(expected.is_empty(), "{}", error);
                let message = error.to_string();
                prop_assert!(message.starts_with("random.mpd:3:1: period 1 has no video"), "{}", message);
            }
        }
    }

    /// Segments of one duration fill the period, wherever its first one begins.
    #[test]
    fn equal_segments_fill_the_period(
        timescale in prop::sample::select(vec![1_u64, 3, 1_000, 24_000, 30_000, 90_000]),
        parts in (1_u64..400, 1_u64..40),
        list in any::<bool>(),
        pto in 0..100_000_u64,
    ) {
        let (ticks, count) = parts;
        let nanos = (u128::from(ticks * count) * 1_000_000_000).div_ceil(u128::from(timescale));
        let (seconds, rest) = (nanos / 1_000_000_000, nanos % 1_000_000_000);
        let inner = if list {
            let urls = "<SegmentURL media=\"a\"/>".repeat(count as usize);
            format!("<SegmentList timescale=\"{timescale}\" duration=\"{ticks}\">{urls}</SegmentList>")
        } else {
            format!("<SegmentTemplate timescale=\"{timescale}\" duration=\"{ticks}\" presentationTimeOffset=\"{pto}\" media=\"$Number$\"/>")
        };
        let text = format!(
            "<MPD mediaPresentationDuration=\"PT{seconds}.{rest:09}S\"><Period><AdaptationSet mimeType=\"video/mp4\">{inner}\
             <Representation bandwidth=\"800000\"/></AdaptationSet></Period></MPD>"
        );
        let video = Mpd::parse("equal.mpd", &text).unwrap().video(&MpdSelection::default()).unwrap();
        prop_assert_eq!(u64::from(video.segments()), count);
        let short = nanos - u128::from(video.duration().as_nanos());
        prop_assert!(short <= u128::from(count), "{} ns are missing", short);
    }
}
