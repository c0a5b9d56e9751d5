//! Invariants of every session, on every network.

use super::*;
use anabranch_media::GiveUp;
use anabranch_observation::DashMetrics;
use anabranch_scenario::Statistics;
use anabranch_units::Bandwidth;
use proptest::prelude::*;
use std::collections::BTreeMap;

#[derive(Clone, Debug)]
struct Case {
    player: &'static str,
    kbps: Vec<u64>,
    segment_ms: u64,
    segments: usize,
    /// Durations and rates (kbit/s); the last one has no end.
    rates: Vec<(u64, u64)>,
    delay_ms: u64,
    last_short: bool,
    drain: bool,
}

fn cases() -> impl Strategy<Value = Case> {
    let ladder = proptest::collection::btree_set(50u64..5_000, 1..7).prop_map(|set| set.into_iter().collect());
    let rates = proptest::collection::vec((100u64..20_000, prop_oneof![Just(0), 60u64..8_000]), 0..8);
    (0..DASH_PLAYERS.len(), ladder, 500u64..11_000, 2usize..40, rates, 1u64..200, any::<(bool, bool)>()).prop_map(
        |(player, kbps, segment_ms, segments, rates, delay_ms, (last_short, drain))| Case {
            player: DASH_PLAYERS[player],
            kbps,
            segment_ms,
            segments,
            rates,
            delay_ms,
            last_short,
            drain,
        },
    )
}

impl Case {
    fn video(&self) -> DashVideo {
        let representation = |&kbps: &u64| Representation { bitrate: kbps * 1_000, resolution: None };
        let mut durations = vec![Duration::from_millis(self.segment_ms); self.segments];
        if self.last_short {
            durations[self.segments - 1] = Duration::from_millis(self.segment_ms / 3 + 1);
        }
        DashVideo::nominal(self.kbps.iter().map(representation).collect(), &durations).unwrap()
    }

    fn link(&self) -> Downlink {
        let mut at = 0;
        let mut rates = Vec::new();
        for (length, kbps) in &self.rates {
            rates.push((at_ms(at), Bandwidth::from_bps(kbps * 1_000)));
            at += length;
        }
        rates.push((at_ms(at), Bandwidth::from_bps(2_000_000)));
        Downlink { delay: Duration::from_millis(self.delay_ms), rates, hangs_up: None }
    }
}

/// Every media segment is fetched, or abandoned and fetched again; one at a time.
fn check_requests(session: &Session, video: &DashVideo) -> Result<(), TestCaseError> {
    let mut running: Option<(u32, u32, u16)> = None;
    let mut given_up: BTreeMap<u32, u32> = BTreeMap::new();
    let mut owed: Option<u32> = None;
    for (at, event) in &session.events {
        match *event {
            PlayerEvent::SegmentRequested { request, index, representation } => {
                prop_assert!(running.is_none(), "two media segments at once at {at}");
                prop_assert!(owed.is_none_or(|owed| owed == index), "not the abandoned segment at {at}");
                owed = None;
                running = Some((request, index, representation));
            }
            PlayerEvent::SegmentAbandoned { request, index, received, .. } => {
                prop_assert_eq!(running.map(|r| (r.0, r.1)), Some((request, index)));
                let (_, _, representation) = running.take().unwrap();
                prop_assert!(received < video.bytes(usize::from(representation), index));
                given_up.insert(request, index);
                owed = Some(index);
            }
            PlayerEvent::ResponseComplete { request, bytes, .. } => {
                if let Some((_, index, representation)) = running.take_if(|r| r.0 == request) {
                    prop_assert_eq!(bytes, video.bytes(usize::from(representation), index));
                } else {
                    given_up.remove(&request);
                }
            }
            _ => {}
        }
    }
    prop_assert!(owed.is_none());
    prop_assert!(given_up.is_empty(), "abandoned requests are drained");
    Ok(())
}

/// Media segments are shown once, in order, after they were appended, and in the representation appended last.
fn check_showing(session: &Session, video: &DashVideo) -> Result<(), TestCaseError> {
    let mut there: BTreeMap<u32, u16> = BTreeMap::new();
    let mut next = 0;
    for (at, event) in &session.events {
        match *event {
            PlayerEvent::SegmentAppended { index, representation, .. } => {
                prop_assert!(index <= there.len() as u32, "a gap at {at}");
                prop_assert!(index >= next, "on screen already, at {at}");
                there.insert(index, representation);
            }
            PlayerEvent::SegmentShown { index, representation } => {
                prop_assert_eq!(index, next);
                prop_assert_eq!(there.get(&index), Some(&representation), "at {}", at);
                next += 1;
            }
            _ => {}
        }
    }
    prop_assert_eq!(next, video.segments());
    Ok(())
}

/// The level of an event is the appended less the played time.
fn check_levels(session: &Session, video: &DashVideo) -> Result<(), TestCaseError> {
    let (mut end, mut played, mut since) = (Duration::ZERO, Duration::ZERO, None);
    for (at, event) in &session.events {
        match *event {
            PlayerEvent::PlaybackStarted | PlayerEvent::StallEnded => since = Some(*at),
            PlayerEvent::StallBegan | PlayerEvent::PlaybackEnded => {
                let began = since.take();
                prop_assert!(began.is_some(), "stopped twice at {at}");
                played += at.since(began.unwrap());
                prop_assert!(played <= end, "played what was not there at {at}");
            }
            PlayerEvent::SegmentAppended { index, buffered, .. } => {
                end = end.max(video.end(index));
                let now = played + since.map_or(Duration::ZERO, |since| at.since(since));
                prop_assert!(now <= end, "negative at {at}");
                prop_assert_eq!(buffered, end - now);
            }
            _ => {}
        }
    }
    prop_assert_eq!(played, video.duration());
    Ok(())
}

/// Two folds of the same events agree.
fn check_metrics(session: &Session, video: &DashVideo, viewer: &ViewerReport) -> Result<(), TestCaseError> {
    let mut metrics = DashMetrics::new(Instant::ZERO, Arc::new(video.clone()), Statistics::default());
    session.events.iter().for_each(|(at, event)| metrics.observe(*at, event));
    let report = metrics.finish(session.end);
    let ratio = viewer.stall_s / (viewer.stall_s + viewer.played_s);
    prop_assert!((report.stall_ratio - ratio).abs() < 1e-9, "{} and {ratio}", report.stall_ratio);
    let rates = video.representations();
    let mean = report.mean_bitrate_bps.unwrap_or(f64::NAN);
    prop_assert!(mean >= rates[0].bitrate as f64 - 1e-3 && mean <= rates[rates.len() - 1].bitrate as f64 + 1e-3);
    prop_assert!(report.media_segments.len() >= video.segments() as usize);
    prop_assert!(report.switches < u64::from(video.segments()));
    let fetched: u64 = report.media_segments.iter().map(|s| s.bytes).sum();
    let shown: u64 = session.shown().iter().map(|(_, (k, r))| video.bytes(usize::from(*r), *k)).sum();
    // Segments fetched and not shown are wasted, and so are the received bytes of abandoned requests.
    prop_assert!(report.wasted_bytes >= fetched - shown);
    prop_assert!(report.abandoned_requests > 0 || report.wasted_bytes == fetched - shown);
    Ok(())
}

fn check_session(case: &Case) -> Result<(), TestCaseError> {
    let (video, link) = (case.video(), case.link());
    let give_up = Some(if case.drain { GiveUp::Drain } else { GiveUp::Cancel });
    let options = DashOptions { give_up, ..DashOptions::default() };
    let session = run(case.player, &video, options, &link, 36_000_000);
    prop_assert!(session.finished, "not finished after ten hours");
    check_requests(&session, &video)?;
    check_showing(&session, &video)?;
    check_levels(&session, &video)?;
    let viewer = session.viewer();
    let sum = viewer.startup_s.unwrap_or(f64::NAN) + viewer.played_s + viewer.stall_s;
    prop_assert!((sum - session.end.as_secs_f64()).abs() < 1e-6, "{sum} s of {}", session.end);
    check_metrics(&session, &video, &viewer)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn sessions_are_sound(case in cases()) {
        check_session(&case)?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    #[ignore = "slow suite: two thousand sessions"]
    fn many_sessions_are_sound(case in cases()) {
        check_session(&case)?;
    }
}

#[test]
fn the_same_session_emits_the_same_events() {
    let video = anabranch_media::content::find_ladder("bbb-2s").unwrap().video(Some(Duration::from_secs(100))).unwrap();
    let link = Downlink::constant(3_000_000, 20).then(20_000, 200_000).then(50_000, 2_000_000);
    for name in DASH_PLAYERS {
        let events = || run(name, &video, DashOptions::default(), &link, 400_000).events;
        assert_eq!(events(), events(), "{name}");
    }
}
