use super::*;
use crate::pacing::{Moment, UnknownMedia, Viewer, create};
use crate::testing::at_ms;
use anabranch_registry::options::Options;
use anabranch_units::Duration;
use proptest::prelude::*;
use std::net::Ipv4Addr;
use std::sync::Mutex;

/// What a policy saw: the moment, and the buffer and number of representations of the viewer.
type Seen = Arc<Mutex<Vec<(&'static str, usize, u64, usize)>>>;

/// Paces each viewer by 1 Mb/s times their number plus one, and records what it sees.
#[derive(Debug)]
struct Recorder(Seen);

impl ResponsePacing for Recorder {
    fn decide(&mut self, now: Instant, viewers: &mut [Viewer], moment: &Moment) {
        let (what, at) = match *moment {
            Moment::Requested(at) => ("requested", at),
            Moment::Delivered(at, _) => ("delivered", at),
            Moment::Left(at) => ("left", at),
            Moment::Grouped => return,
        };
        viewers[at].pace = (what != "left").then(|| Bandwidth::from_mbps(at as u64 + 1));
        let (buffer, count) = (viewers[at].buffer(now).as_millis(), viewers[at].representations());
        self.0.lock().unwrap().push((what, at, buffer, count));
    }
}

const MPD: &[u8] = br#"<MPD mediaPresentationDuration="PT20S"><Period><AdaptationSet mimeType="video/mp4">
    <SegmentTemplate media="$RepresentationID$/$Number$.m4s" duration="4"/>
    <Representation id="hi" bandwidth="2000000"/><Representation id="lo" bandwidth="500000"/></AdaptationSet></Period></MPD>"#;

fn presentation(mpd: &[u8]) -> Result<Presentation, UnknownMedia> {
    Presentation::read("/film/a.mpd", mpd, |path| (path == "/film/lo/2.m4s").then_some(777))
}

fn made() -> (FilePacer, Seen) {
    let seen = Seen::default();
    let mut pacer = FilePacer::new(Box::new(Recorder(seen.clone())));
    pacer.learn("/film/a.mpd", "1", presentation(MPD));
    (pacer, seen)
}

fn take(seen: &Seen) -> Vec<(&'static str, usize, u64, usize)> {
    std::mem::take(&mut seen.lock().unwrap())
}

fn client(n: u8) -> IpAddr {
    Ipv4Addr::new(10, 0, 0, n).into()
}

fn response(path: &str, cmcd: &str, begin: u64) -> FileResponse {
    FileResponse { path: path.into(), cmcd: Cmcd::of(None, [cmcd]), begin, bytes: 1_000 }
}

fn acked(pacer: &mut FilePacer, at: u64, connection: usize, acked: u64) {
    pacer.advance(at_ms(at), connection, acked, std::iter::empty());
}

#[test]
fn media_of_a_known_mpd_is_paced_from_its_request_to_its_last_byte() {
    let (mut pacer, seen) = made();
    let connection = pacer.open(client(1));
    pacer.respond(at_ms(0), connection, response("/film/a.mpd", "", 0));
    assert_eq!((pacer.cap(connection), take(&seen).len()), (None, 0), "an MPD is no media");
    acked(&mut pacer, 10, connection, 1_200);
    pacer.respond(at_ms(10), connection, response("/film/hi/1.m4s?x=1", "", 1_200));
    assert_eq!(pacer.cap(connection), Some(Bandwidth::from_mbps(1)));
    assert_eq!((pacer.take_changed(), pacer.take_changed()), (vec![connection], vec![]));
    acked(&mut pacer, 20, connection, 2_199);
    assert!(pacer.cap(connection).is_some());
    acked(&mut pacer, 30, connection, 2_200);
    assert_eq!((pacer.cap(connection), pacer.take_changed()), (None, vec![connection]));
    assert_eq!(take(&seen), [("requested", 0, 0, 2), ("delivered", 0, 4_000, 2)]);
    let expected = PacingCounts { media: 1, paced: 1, viewers: 1, limited: 0, presentations: 1, unusable: 0 };
    assert_eq!(pacer.counts(), expected);
}

#[test]
fn other_downloads_are_not_paced() {
    let (mut pacer, seen) = made();
    let connection = pacer.open(client(1));
    for (path, cmcd) in
        [("/big.iso", ""), ("/film/lo/init.mp4", "ot=i,sf=d,d=4000"), ("/x.m4s", "ot=v,sf=d"), ("/y", "ot=v,d=1,sf=h")]
    {
        pacer.respond(at_ms(0), connection, response(path, cmcd, 0));
        assert_eq!(pacer.cap(connection), None, "{path}");
    }
    assert_eq!((take(&seen), pacer.counts().media), (vec![], 0));
}

#[test]
fn a_session_is_one_viewer_on_all_of_its_connections() {
    let (mut pacer, seen) = made();
    let (first, second, other) = (pacer.open(client(1)), pacer.open(client(2)), pacer.open(client(1)));
    pacer.respond(at_ms(0), first, response("/film/hi/1.m4s", "sid=\"a\",bl=9000,ot=v", 0));
    pacer.respond(at_ms(0), other, response("/film/hi/1.m4s", "sid=\"b\"", 0));
    acked(&mut pacer, 100, first, 1_000);
    pacer.respond(at_ms(100), second, response("/film/hi/2.m4s", "sid=\"a\"", 0));
    assert_eq!(pacer.cap(second), Some(Bandwidth::from_mbps(1)));
    assert_eq!(pacer.cap(other), Some(Bandwidth::from_mbps(2)));
    pacer.respond(at_ms(100), first, response("/film/hi/3.m4s", "sid=\"a\"", 1_000));
    assert_eq!([first, second].map(|at| pacer.cap(at)), [Some(Bandwidth::from_bps(500_000)); 2], "one pace for both");
    let asked = [
        ("requested", 0, 9_000, 2),
        ("requested", 1, 0, 2),
        ("delivered", 0, 12_900, 2),
        ("requested", 0, 12_900, 2),
        ("requested", 0, 12_900, 2),
    ];
    assert_eq!(take(&seen), asked);
    pacer.close(at_ms(200), first);
    assert_eq!(take(&seen), [], "another connection is left");
    pacer.close(at_ms(300), second);
    assert_eq!(take(&seen).iter().map(|seen| (seen.0, seen.1)).collect::<Vec<_>>(), [("left", 0)]);
    let again = pacer.open(client(3));
    pacer.respond(at_ms(400), again, response("/film/hi/1.m4s", "sid=\"c\"", 0));
    assert_eq!(take(&seen), [("requested", 0, 0, 2)], "the place of who has left, without what was buffered there");
}

#[test]
fn a_connection_that_sends_media_knows_when_the_buffer_will_be_empty() {
    let (mut pacer, _) = made();
    let connection = pacer.open(client(1));
    pacer.respond(at_ms(100), connection, response("/film/hi/1.m4s", "", 0));
    assert_eq!(pacer.buffered_until(connection), Some(Instant::ZERO), "nothing is buffered");
    acked(&mut pacer, 500, connection, 1_000);
    assert_eq!(pacer.buffered_until(connection), None, "nothing is being sent");
    pacer.respond(at_ms(500), connection, response("/other.iso", "", 1_000));
    assert_eq!(pacer.buffered_until(connection), None, "no media");
    pacer.respond(at_ms(700), connection, response("/film/hi/2.m4s", "", 2_000));
    assert_eq!(pacer.buffered_until(connection), Some(at_ms(4_500)), "4 s since the first one arrived");
    let reports = pacer.open(client(2));
    pacer.respond(at_ms(700), reports, response("/else/1.m4s", "ot=v,d=3000,bl=9000", 0));
    assert_eq!(pacer.buffered_until(reports), Some(at_ms(9_700)));
}

#[test]
fn without_a_session_an_address_is_a_viewer_of_each_mpd() {
    let (mut pacer, seen) = made();
    pacer.learn("/b/b.mpd", "1", Presentation::read("/b/b.mpd", MPD, |_| None));
    let connections = [1, 1, 2, 1].map(|n| pacer.open(client(n)));
    for (connection, path) in
        connections.into_iter().zip(["/film/lo/1.m4s", "/film/lo/2.m4s", "/film/lo/1.m4s", "/b/lo/1.m4s"])
    {
        pacer.respond(at_ms(0), connection, response(path, "", 0));
    }
    let viewers: Vec<_> = take(&seen).iter().map(|seen| seen.1).collect();
    assert_eq!(viewers, [0, 0, 1, 2]);
    assert_eq!(pacer.counts().presentations, 2);
}

#[test]
fn who_does_not_ask_again_has_left_until_they_do() {
    let (mut pacer, seen) = made();
    let (quiet, busy) = (pacer.open(client(1)), pacer.open(client(2)));
    pacer.respond(at_ms(0), quiet, response("/film/lo/1.m4s", "", 0));
    acked(&mut pacer, 0, quiet, 1_000);
    pacer.respond(at_ms(9_999), busy, response("/film/lo/1.m4s", "", 0));
    assert_eq!(pacer.counts().viewers, 2, "4 s of media, and less than 10 s without a request");
    pacer.respond(at_ms(10_000), busy, response("/film/lo/2.m4s", "", 1_000));
    assert_eq!(pacer.counts().viewers, 1);
    assert!(take(&seen).iter().any(|seen| (seen.0, seen.1) == ("left", 0)));
    pacer.respond(at_ms(20_000), quiet, response("/film/lo/2.m4s", "", 1_000));
    assert_eq!((pacer.counts().viewers, take(&seen)), (2, vec![("requested", 0, 0, 2)]));
}

#[test]
fn a_player_that_reports_what_it_plays_needs_no_mpd() {
    let (mut pacer, seen) = made();
    let connection = pacer.open(client(1));
    for k in 0..2 {
        pacer.respond(at_ms(0), connection, response("/else/1.m4s", "ot=av,d=3000,sid=\"a\",tb=2000", k * 1_000));
        acked(&mut pacer, 0, connection, (k + 1) * 1_000);
    }
    let buffers: Vec<_> = take(&seen).iter().map(|seen| seen.2).collect();
    assert_eq!(buffers, [0, 3_000, 3_000, 6_000]);
    let mut sammy = FilePacer::new(create("sammy", &Options::default()).unwrap().unwrap());
    let connection = sammy.open(client(1));
    sammy.respond(at_ms(0), connection, response("/else/1.m4s", "ot=v,d=3000,bl=30000,tb=2000", 0));
    assert_eq!(sammy.cap(connection), Some(Bandwidth::from_bps(3_000_000)), "1.5 times the highest bitrate");
}

#[test]
fn a_host_may_know_its_viewers() {
    let (mut pacer, seen) = made();
    let (connection, viewer) = pacer.open_of_viewer(at_ms(0), None, None);
    let answer = Answer { media: Some(MediaSegment { representation: 0, index: 0 }), bytes: 10, end: 10, cmcd: None };
    let progress = Progress { acked: 0, written: 10, over: false };
    pacer.progress(at_ms(0), connection, progress, std::iter::once(answer));
    assert_eq!(pacer.cap(connection), Some(Bandwidth::from_mbps(1)));
    pacer.close(at_ms(1), connection);
    let (again, same) = pacer.open_of_viewer(at_ms(2), None, Some(viewer));
    assert_eq!((again, same), (connection, viewer));
    assert_eq!(take(&seen).iter().map(|seen| seen.0).collect::<Vec<_>>(), ["requested", "left"]);
}

#[test]
fn another_connection_in_the_place_of_one_begins_from_zero() {
    let (mut pacer, seen) = made();
    let (connection, viewer) = pacer.open_of_viewer(at_ms(0), None, None);
    let answer =
        |index, end| Answer { media: Some(MediaSegment { representation: 0, index }), bytes: 10, end, cmcd: None };
    let at = |acked| Progress { acked, written: u64::MAX, over: false };
    pacer.progress(at_ms(0), connection, at(0), [answer(0, 10), answer(1, 20)].into_iter());
    pacer.progress(at_ms(1), connection, at(15), std::iter::empty());
    assert!(pacer.pacer.viewer(viewer).is_served());
    pacer.progress(at_ms(2), connection, at(5), std::iter::empty());
    assert!(pacer.pacer.viewer(viewer).is_served(), "the viewer is about to ask again");
    assert_eq!((pacer.cap(connection), pacer.pacer.viewer(viewer).delivered), (None, 20));
    pacer.progress(at_ms(3), connection, at(5), std::iter::once(answer(2, 15)));
    assert_eq!(pacer.pacer.viewer(viewer).current().map(|response| response.idle_before), Some(Duration::ZERO));
    pacer.progress(at_ms(4), connection, at(15), std::iter::empty());
    assert!(!pacer.pacer.viewer(viewer).is_served(), "the second response will not arrive");
    let moments: Vec<_> = take(&seen).iter().map(|seen| seen.0).collect();
    assert_eq!(moments, ["requested", "requested", "delivered", "requested", "delivered"]);
}

#[test]
fn presentations_have_the_sizes_of_their_files_and_are_refused_with_a_reason() {
    let known = presentation(MPD).unwrap();
    assert_eq!((known.video().bytes(0, 1), known.video().bytes(0, 0)), (777, 250_000));
    let refused = |mpd: &[u8]| presentation(mpd).unwrap_err().to_string();
    assert!(refused(b"<MPD>").contains("not well-formed"));
    let text = String::from_utf8(MPD.to_vec()).unwrap();
    assert_eq!(refused(text.replace("<MPD", "<MPD type=\"dynamic\"").as_bytes()), "a live presentation");
    let single = text.replace("SegmentTemplate media=\"$RepresentationID$/$Number$.m4s\"", "SegmentList");
    assert!(presentation(single.as_bytes()).is_err());
}

#[test]
fn an_mpd_that_has_changed_replaces_itself_and_the_oldest_is_forgotten() {
    let (mut pacer, _) = made();
    assert!(pacer.knows("/film//a.mpd", "1") && !pacer.knows("/film/a.mpd", "2"));
    pacer.learn("/film/a.mpd", "2", presentation(b"<MPD>"));
    assert!(pacer.knows("/film/a.mpd", "2") && !pacer.knows("/film/a.mpd", "1"));
    let counts = pacer.counts();
    assert_eq!((counts.presentations, counts.unusable), (0, 1), "broken, which is not read again");
    pacer.learn("/film/a.mpd", "3", presentation(MPD));
    (0..300).for_each(|n| pacer.learn(&format!("/{n}/a.mpd"), "1", presentation(MPD)));
    assert_eq!(pacer.counts().presentations, 256);
    assert!(!pacer.knows("/film/a.mpd", "3") && pacer.knows("/44/a.mpd", "1"));
}

#[test]
fn there_is_a_most_of_viewers() {
    let (mut pacer, _) = made();
    for n in 0..300 {
        let connection = pacer.open(client(1));
        pacer.respond(at_ms(0), connection, response("/film/lo/1.m4s", &format!("sid=\"{n}\""), 0));
    }
    assert_eq!(pacer.counts().viewers, 256);
    assert_eq!((pacer.cap(255).is_some(), pacer.cap(256)), (true, None));
    pacer.close(at_ms(1), 0);
    let connection = pacer.open(client(1));
    pacer.respond(at_ms(1), connection, response("/film/lo/1.m4s", "sid=\"x\"", 0));
    assert_eq!((connection, pacer.cap(connection).is_some()), (0, true));
}

/// What clients may do to a server.
#[derive(Clone, Debug)]
enum Step {
    Open(u8),
    Respond(usize, u8, Option<u8>, u64),
    Acknowledge(usize, u64),
    Close(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (0..4_u8).prop_map(Step::Open),
        (0..8_usize, 0..7_u8, proptest::option::of(0..3_u8), 0..60_000_u64)
            .prop_map(|(c, k, s, b)| Step::Respond(c, k, s, b)),
        (0..8_usize, 0..3_000_u64).prop_map(|(c, bytes)| Step::Acknowledge(c, bytes)),
        (0..8_usize).prop_map(Step::Close),
    ]
}

proptest! {
    #[test]
    fn whatever_clients_do_every_policy_goes_on(name in 1..3_usize, steps in proptest::collection::vec((step(), 0..9_000_u64), 1..120)) {
        let name = crate::pacing::REGISTRY.names().nth(name).unwrap();
        let mut pacer = FilePacer::new(create(name, &Options::default()).unwrap().unwrap());
        pacer.learn("/film/a.mpd", "1", presentation(MPD));
        let mut open: Vec<(usize, u64)> = Vec::new();
        let mut now = 0;
        for (step, passed) in steps {
            now += passed;
            match step {
                Step::Open(n) => open.push((pacer.open(client(n)), 0)),
                Step::Respond(c, k, session, buffer) if c < open.len() => {
                    let sid = session.map_or_else(String::new, |n| format!("sid=\"{n}\",bl={buffer},ot=v,d=4000"));
                    pacer.respond(at_ms(now), open[c].0, response(&format!("/film/hi/{k}.m4s"), &sid, open[c].1));
                }
                Step::Acknowledge(c, bytes) if c < open.len() => {
                    open[c].1 += bytes;
                    acked(&mut pacer, now, open[c].0, open[c].1);
                }
                Step::Close(c) if c < open.len() => pacer.close(at_ms(now), open.remove(c).0),
                _ => {}
            }
            let counts = pacer.counts();
            prop_assert!(counts.viewers <= open.len() as u64 && counts.limited <= open.len() as u64);
            pacer.take_changed();
        }
        open.drain(..).for_each(|(connection, _)| pacer.close(at_ms(now), connection));
        prop_assert_eq!((pacer.counts().viewers, pacer.counts().limited), (0, 0));
    }
}
