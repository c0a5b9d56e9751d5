//! Shipped ladders: Big Buck Bunny in 20 representations, as the DASH papers streamed it, and a ladder up to 2160
//! lines.
//!
//! `bbb`: rates of 1, 2 and 10 s: the file names of the ITEC dataset (Lederer, Mueller, Timmerer, "Dynamic Adaptive
//! Streaming over HTTP Dataset", MMSys 2012; DASHDataset2014), in bit/s. Those of 6 s: Table I of "Performance of DASH
//! over Multipath TCP" (REV Journal, 2019), which rounds to kbit/s below 1 Mbit/s and to 100 kbit/s above; no exact
//! source was found. Resolutions by rank: the same table. Length: 596 s ("596 video segments" of one second, MPTCP+,
//! section V); the film itself has 596.46 s.
//!
//! `uhd`: the rates and resolutions of HEVC in Apple's "HTTP Live Streaming (HLS) authoring specification for Apple
//! devices" (SDR, up to 30 pictures per second), from 145 kbit/s to 16.8 Mbit/s. Above them one more of 25 Mbit/s, an
//! assumption of this project: recorded networks carry more than the specification's highest rate. No such video was
//! measured: sizes are synthetic ([`super::SegmentVariation`]: lognormal scenes with the variation of Big Buck Bunny),
//! and the length is Big Buck Bunny's, so that results compare.

use super::{DashVideo, Representation, Resolution};
use anabranch_registry::{Entry, Registry};
use anabranch_units::Duration;

/// The representations of a video, and how it is cut into media segments.
#[derive(Clone, Copy, Debug)]
pub struct NominalLadder {
    /// Playing time of a media segment.
    pub segment: Duration,
    /// Playing time of the whole video.
    pub duration: Duration,
    /// Nominal rates, bit/s.
    pub bitrates: &'static [u64],
    /// Sizes of the pictures, by rank.
    pub resolutions: &'static [Resolution],
}

const fn size(width: u32, height: u32) -> Resolution {
    Resolution { width, height }
}

const BUNNY_DURATION: Duration = Duration::from_secs(596);
const BUNNY_RESOLUTIONS: [Resolution; 20] = [
    size(320, 240),
    size(320, 240),
    size(320, 240),
    size(480, 360),
    size(480, 360),
    size(480, 360),
    size(480, 360),
    size(480, 360),
    size(854, 480),
    size(854, 480),
    size(1280, 720),
    size(1280, 720),
    size(1280, 720),
    size(1280, 720),
    size(1920, 1080),
    size(1920, 1080),
    size(1920, 1080),
    size(1920, 1080),
    size(1920, 1080),
    size(1920, 1080),
];

const UHD_RESOLUTIONS: [Resolution; 13] = [
    size(640, 360),
    size(768, 432),
    size(960, 540),
    size(960, 540),
    size(960, 540),
    size(1280, 720),
    size(1280, 720),
    size(1920, 1080),
    size(1920, 1080),
    size(2560, 1440),
    size(3840, 2160),
    size(3840, 2160),
    size(3840, 2160),
];

/// Every shipped ladder.
pub static LADDERS: Registry<fn() -> NominalLadder> = Registry::new(&[
    Entry {
        name: "bbb-1s",
        summary: "Big Buck Bunny, 20 representations of 1 s segments.",
        source: "ITEC DASHDataset2014; Table I of DASH over Multipath TCP",
        create: || NominalLadder {
            segment: Duration::from_secs(1),
            duration: BUNNY_DURATION,
            bitrates: &[
                46_980, 91_917, 135_410, 182_366, 226_106, 270_316, 352_546, 424_520, 537_825, 620_705, 808_057,
                1_071_529, 1_312_787, 1_662_809, 2_234_145, 2_617_284, 3_305_118, 3_841_983, 4_242_923, 4_726_737,
            ],
            resolutions: &BUNNY_RESOLUTIONS,
        },
    },
    Entry {
        name: "bbb-2s",
        summary: "Big Buck Bunny, 20 representations of 2 s segments.",
        source: "ITEC DASHDataset2014; Table I of DASH over Multipath TCP",
        create: || NominalLadder {
            segment: Duration::from_secs(2),
            duration: BUNNY_DURATION,
            bitrates: &[
                45_652, 89_283, 131_087, 178_351, 221_600, 262_537, 334_349, 396_126, 522_286, 595_491, 791_182,
                1_032_682, 1_244_778, 1_546_902, 2_133_691, 2_484_135, 3_078_587, 3_526_922, 3_840_360, 4_219_897,
            ],
            resolutions: &BUNNY_RESOLUTIONS,
        },
    },
    Entry {
        name: "bbb-6s",
        summary: "Big Buck Bunny, 20 representations of 6 s segments, rates rounded.",
        source: "Table I of DASH over Multipath TCP",
        create: || NominalLadder {
            segment: Duration::from_secs(6),
            duration: BUNNY_DURATION,
            bitrates: &[
                46_000, 89_000, 128_000, 177_000, 218_000, 255_000, 321_000, 374_000, 506_000, 573_000, 780_000,
                1_000_000, 1_200_000, 1_500_000, 2_100_000, 2_400_000, 3_100_000, 3_300_000, 3_600_000, 3_900_000,
            ],
            resolutions: &BUNNY_RESOLUTIONS,
        },
    },
    Entry {
        name: "bbb-10s",
        summary: "Big Buck Bunny, 20 representations of 10 s segments.",
        source: "ITEC DASHDataset2014; Table I of DASH over Multipath TCP",
        create: || NominalLadder {
            segment: Duration::from_secs(10),
            duration: BUNNY_DURATION,
            bitrates: &[
                45_373, 88_482, 127_412, 176_780, 216_536, 252_988, 317_328, 368_912, 503_270, 568_500, 771_359,
                987_061, 1_174_238, 1_431_232, 2_070_985, 2_384_387, 2_884_382, 3_245_900, 3_493_765, 3_792_491,
            ],
            resolutions: &BUNNY_RESOLUTIONS,
        },
    },
    Entry {
        name: "uhd-4s",
        summary: "Synthetic, 13 representations from 145 kbit/s to 25 Mbit/s (2160 lines) of 4 s segments.",
        source: "Apple's HLS authoring specification (HEVC) up to 16.8 Mbit/s; the highest rate is an assumption",
        create: || NominalLadder {
            segment: Duration::from_secs(4),
            duration: BUNNY_DURATION,
            bitrates: &[
                145_000, 300_000, 600_000, 900_000, 1_600_000, 2_400_000, 3_400_000, 4_500_000, 5_800_000, 8_100_000,
                11_600_000, 16_800_000, 25_000_000,
            ],
            resolutions: &UHD_RESOLUTIONS,
        },
    },
]);

/// The shipped ladder of that name.
pub fn find_ladder(name: &str) -> Option<NominalLadder> {
    LADDERS.find(name).map(|entry| (entry.create)())
}

impl NominalLadder {
    /// A video of nominal sizes that plays for `duration` (none: the ladder's own). The last media segment is shorter
    /// if the duration is no multiple.
    pub fn video(&self, duration: Option<Duration>) -> Result<DashVideo, super::VideoShapeError> {
        let pairs = self.bitrates.iter().zip(self.resolutions);
        let representations = pairs.map(|(&bitrate, &r)| Representation { bitrate, resolution: Some(r) }).collect();
        DashVideo::of_equal_segments(representations, self.segment, duration.unwrap_or(self.duration))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_ladder_makes_a_video() {
        for name in LADDERS.names() {
            let ladder = find_ladder(name).unwrap();
            let representations = if name.starts_with("bbb") { 20 } else { 13 };
            assert_eq!((ladder.bitrates.len(), ladder.resolutions.len()), (representations, representations));
            let video = ladder.video(None).unwrap();
            assert_eq!(video.duration(), BUNNY_DURATION);
            let expected = 596_u64.div_ceil(ladder.segment.as_nanos() / 1_000_000_000);
            assert_eq!(u64::from(video.segments()), expected, "{name}");
        }
        assert!(find_ladder("bbb-3s").is_none());
    }

    #[test]
    fn the_rates_round_to_the_papers_table() {
        // Kbit/s as Table I prints them; from 1 Mbit/s on it has two digits.
        let table: [(&str, [u64; 20]); 3] = [
            (
                "bbb-1s",
                [
                    47, 92, 135, 182, 226, 270, 353, 425, 538, 621, 808, 1_100, 1_300, 1_700, 2_200, 2_600, 3_300,
                    3_800, 4_200, 4_700,
                ],
            ),
            (
                "bbb-2s",
                [
                    46, 89, 131, 178, 222, 263, 334, 396, 522, 595, 791, 1_000, 1_200, 1_500, 2_100, 2_500, 3_100,
                    3_500, 3_800, 4_200,
                ],
            ),
            (
                "bbb-10s",
                [
                    45, 88, 127, 177, 217, 253, 317, 369, 503, 569, 771, 987, 1_200, 1_400, 2_100, 2_400, 2_900, 3_200,
                    3_500, 3_800,
                ],
            ),
        ];
        for (name, printed) in table {
            let rounded = find_ladder(name).unwrap().bitrates.iter().map(|&bps| match bps {
                1_000_000.. => (bps + 50_000) / 100_000 * 100,
                _ => (bps + 500) / 1_000,
            });
            assert_eq!(rounded.collect::<Vec<_>>(), printed, "{name}");
        }
    }

    #[test]
    fn resolutions_change_where_the_table_changes_them() {
        let ranks = |r: Resolution| BUNNY_RESOLUTIONS.iter().filter(|&&own| own == r).count();
        assert_eq!(ranks(size(320, 240)), 3);
        assert_eq!(ranks(size(480, 360)), 5);
        assert_eq!(ranks(size(854, 480)), 2);
        assert_eq!(ranks(size(1280, 720)), 4);
        assert_eq!(ranks(size(1920, 1080)), 6);
        let video = find_ladder("bbb-1s").unwrap().video(None).unwrap();
        assert_eq!(video.highest_within(None, Some(Resolution::HIGH_QUALITY)), 13);
        assert_eq!(video.bytes(10, 0), 101_007, "808 057 bit in whole bytes");
    }

    #[test]
    fn a_remainder_is_a_short_segment() {
        let video = find_ladder("bbb-10s").unwrap().video(Some(Duration::from_secs(25))).unwrap();
        assert_eq!((video.segments(), video.duration_of(2)), (3, Duration::from_secs(5)));
        let exact = find_ladder("bbb-10s").unwrap().video(Some(Duration::from_secs(20))).unwrap();
        assert_eq!(exact.segments(), 2);
        assert!(find_ladder("bbb-1s").unwrap().video(Some(Duration::ZERO)).is_err());
    }
}
