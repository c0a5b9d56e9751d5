//! Results of one session.

use crate::runs::observed;
use anabranch_media::content::find_ladder;
use anabranch_media::{DashReport, MediaSegmentReport, SubflowReport};
use anabranch_observation::{Ended, Outcome, PathRecording, SessionRecording};

/// How many samples of a path's throughput the deviations of [`Seen::settling`] look at (P3); the last is all of them.
pub const SETTLING: [usize; 4] = [50, 150, 300, usize::MAX];

/// One session. Rates in b/s, times in s, within the scenario's statistics window where it has one.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// Share of the playing time with at least 1280x720.
    pub high_quality: f64,
    /// Changes of the representation.
    pub switches: f64,
    /// Changes of the resolution.
    pub impactful: f64,
    /// Mean over time of the bitrate on screen.
    pub bitrate_bps: f64,
    /// Mean over the different bitrates that were on screen.
    pub used_bitrate_bps: f64,
    /// Until the first picture.
    pub startup_s: f64,
    /// Frozen intervals.
    pub stalls: f64,
    /// Standard deviation over time of what is buffered.
    pub buffer_deviation_s: f64,
    /// Mean time from the request of a media segment to its last byte.
    pub delay_s: f64,
    /// What nine in ten of these times are below.
    pub delay_p90_s: f64,
    /// Mean over media segments of their size over that time.
    pub speed_bps: f64,
    /// QoE after Yin et al.
    pub qoe_linear: f64,
    /// QoE with logarithmic quality.
    pub qoe_log: f64,
    /// Mean time for which a byte waited for earlier ones.
    pub reorder_s: f64,
    /// Mean time for which a byte of a media segment waited for bytes that another path carried, over the mean delay.
    pub across_share: f64,
    /// Coefficient of variation over time of the sum of the congestion windows.
    pub window_variation: f64,
    /// The bitrate that was chosen for the second media segment.
    pub second_choice_bps: f64,
    /// How often MCC's θ was triggered.
    pub theta_triggers: f64,
    /// The part of the playing time in which PUD kept its least used path away.
    pub disabled_share: f64,
    /// By path: standard deviation of the sampled throughput, b/s, over the first so many samples (`SETTLING`).
    pub settling: Vec<[f64; SETTLING.len()]>,
    /// By path: the mean of all samples.
    pub sampled_bps: Vec<f64>,
    /// By path: the mean of window over round trip at the same times, PUD's estimate.
    pub estimated_bps: Vec<f64>,
    /// Whether the video was played to its end.
    pub finished: bool,
}

impl Seen {
    pub(super) fn of(outcome: &Outcome) -> Self {
        let session = &outcome.metrics.sessions[0];
        let recorded = &outcome.recording.sessions[0];
        let viewer = observed(session.viewer.as_ref());
        let common = Seen {
            startup_s: known(viewer.startup_s),
            stalls: viewer.stalls as f64,
            reorder_s: observed(session.transport.reorder_delay_s).mean,
            window_variation: known(session.transport.total_window.map(|window| window.variation)),
            theta_triggers: counted(&session.transport.subflows, "theta_triggers"),
            disabled_share: disabled_share(&session.transport.subflows, viewer.played_s),
            settling: recorded.paths.iter().map(settling).collect(),
            sampled_bps: recorded.paths.iter().map(|path| mean(&samples(path))).collect(),
            estimated_bps: recorded.paths.iter().map(|path| mean(&estimates(path))).collect(),
            finished: outcome.metrics.ended == Ended::Finished,
            ..Seen::default()
        };
        session.dash().map_or_else(|| common.clone(), |dash| common.clone().with_dash(dash, recorded))
    }

    fn with_dash(self, dash: &DashReport, recorded: &SessionRecording) -> Self {
        let segments = &dash.media_segments;
        let mut delays: Vec<f64> = segments.iter().map(|segment| segment.download_s).collect();
        delays.sort_by(f64::total_cmp);
        let waits: f64 = segments.iter().filter_map(|segment| segment.reorder_wait_across_s).sum();
        let speeds: Vec<f64> = segments.iter().map(|segment| segment.throughput_bps).collect();
        Seen {
            high_quality: known(dash.time_on_high_quality),
            switches: dash.switches as f64,
            impactful: known(dash.impactful_switches.map(|switches| switches as f64)),
            bitrate_bps: known(dash.mean_bitrate_bps),
            used_bitrate_bps: known(dash.mean_used_bitrate_bps),
            buffer_deviation_s: buffer_deviation(recorded),
            delay_s: mean(&delays),
            delay_p90_s: delays.get(delays.len() * 9 / 10).copied().unwrap_or(f64::NAN),
            speed_bps: mean(&speeds),
            qoe_linear: dash.qoe_linear,
            qoe_log: dash.qoe_log,
            second_choice_bps: second_choice(segments),
            across_share: waits / delays.iter().sum::<f64>(),
            ..self
        }
    }
}

/// A number that a session may not have, such as the bitrate where nothing was shown: then NaN, which every mean over sessions shows.
fn known(metric: Option<f64>) -> f64 {
    metric.unwrap_or(f64::NAN)
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn deviation(values: &[f64]) -> f64 {
    let center = mean(values);
    (values.iter().map(|v| (v - center) * (v - center)).sum::<f64>() / values.len() as f64).sqrt()
}

/// The bitrate of the second media segment; all conditions that ask use this ladder.
fn second_choice(segments: &[MediaSegmentReport]) -> f64 {
    let bitrates = find_ladder("bbb-1s").map_or(&[][..], |ladder| ladder.bitrates);
    let second = segments.iter().find(|segment| segment.index == 1);
    second.and_then(|s| bitrates.get(usize::from(s.representation))).map_or(f64::NAN, |bps| *bps as f64)
}

/// The seconds that the DASH-over-MPTCP paper averages over, for its figure 7.
const BUFFER_WINDOW_S: std::ops::Range<f64> = 60.0..540.0;

fn buffer_deviation(recorded: &SessionRecording) -> f64 {
    let timed = recorded.time_s.iter().zip(&recorded.buffer_s);
    let within = timed.filter(|(at, level)| BUFFER_WINDOW_S.contains(*at) && !level.is_nan());
    deviation(&within.map(|(_, level)| f64::from(*level)).collect::<Vec<_>>())
}

/// Sums up what the subflows' congestion controls count.
fn counted(subflows: &[SubflowReport], name: &str) -> f64 {
    let counts = subflows.iter().flat_map(|subflow| observed(subflow.control_counts.as_ref()));
    counts.filter(|(counted, _)| *counted == name).map(|(_, count)| *count as f64).sum()
}

/// The part of the playing time in which the path policy forbade the subflow that it forbade longest.
fn disabled_share(subflows: &[SubflowReport], played_s: f64) -> f64 {
    let longest = subflows.iter().map(|subflow| observed(subflow.disabled_s)).fold(0.0, f64::max);
    if played_s > 0.0 { longest / played_s } else { 0.0 }
}

/// The throughput of a path in every sampling interval in which something was acknowledged.
fn samples(path: &PathRecording) -> Vec<f64> {
    path.throughput_bps.iter().filter(|acked| **acked > 0.0).map(|acked| f64::from(*acked)).collect()
}

/// The same as PUD estimates it: window over round trip.
fn estimates(path: &PathRecording) -> Vec<f64> {
    const PAYLOAD_BITS: f64 = crate::runs::MPTCP_PAYLOAD * 8.0;
    let all = path.throughput_bps.iter().zip(&path.cwnd_packets).zip(&path.srtt_s);
    let flowing = all.filter(|((acked, _), rtt)| **acked > 0.0 && **rtt > 0.0);
    flowing.map(|((_, window), rtt)| f64::from(*window) * PAYLOAD_BITS / f64::from(*rtt)).collect()
}

fn settling(path: &PathRecording) -> [f64; SETTLING.len()] {
    let samples = samples(path);
    SETTLING.map(|first| deviation(&samples[..first.min(samples.len())]))
}
