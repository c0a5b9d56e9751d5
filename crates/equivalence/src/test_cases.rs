//! Test cases: each is a scenario, the live server, and the criteria. The client is always the kernel's.

use crate::question::{
    CHUNKS, CHUNKS_OVER_UNLIKE_PATHS, COUPLED, Criterion, DASH, GOODPUT, ONE_PATH, Part, RATE_BASED, SHARED_LINK,
    UNLIKE_PATHS,
};
use anabranch_testbed::ServerKind;
use serde::Serialize;

/// How simulated and live runs are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Runs {
    /// The same seed loses the same packets, and these determine nearly everything: a live run is compared with the
    /// simulated run of the same seed.
    Paired,
    /// Runs vary for other reasons as well: distributions are compared.
    Unpaired,
}

/// The player of the live run. The simulated player is the scenario's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Client {
    /// The scenario's player on a kernel's socket.
    Model,
    /// The real dash.js in Chromium, configured as the scenario says.
    Browser,
}

/// One test case.
#[derive(Clone, Debug, Serialize)]
pub struct TestCase {
    /// The part to which it belongs.
    pub part: Part,
    /// Name, such as `10 Mb/s, 50 ms, 0.5 %, 1 BDP, cubic`.
    pub name: String,
    /// The scenario, of the simulation and of the live run.
    pub scenario: String,
    /// The server of the live run.
    #[serde(skip)]
    pub server: ServerKind,
    /// The player of the live run.
    #[serde(skip)]
    pub client: Client,
    /// Number of sessions that run at the same time.
    pub sessions: u32,
    /// Duration of a run in seconds.
    pub seconds: u32,
    /// Number of live runs, with seeds from 1.
    pub live_runs: u32,
    /// Number of simulated runs, with seeds from 1, where they are not paired with the live ones.
    pub simulated_runs: u32,
    /// How the runs are compared.
    pub runs: Runs,
    /// What has to agree, where that is not the criteria of the part.
    #[serde(skip)]
    stricter: Option<&'static [Criterion]>,
}

impl TestCase {
    /// The criteria of the test case.
    pub fn criteria(&self) -> &'static [Criterion] {
        if let Some(stricter) = self.stricter {
            return stricter;
        }
        match self.part {
            Part::OnePath => ONE_PATH,
            Part::SeveralPaths | Part::OurServer | Part::Handoff => GOODPUT,
            Part::OnOff => CHUNKS,
            Part::Dash => DASH,
            Part::Coupled => COUPLED,
        }
    }

    /// Whether download times of chunks are measured.
    pub fn in_chunks(&self) -> bool {
        self.part == Part::OnOff
    }
}

/// The path over the first of a test case's links.
pub(crate) const FIRST_PATH: &str = "path1";

/// One link of a test case.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Link {
    /// Rate in Mb/s.
    rate: u32,
    /// Round trip in ms.
    rtt: u32,
    /// Loss in per mille.
    loss: u32,
    /// Queue in percent of the bandwidth-delay product.
    queue: u32,
}

const fn link(rate: u32, rtt: u32, loss: u32, queue: u32) -> Link {
    Link { rate, rtt, loss, queue }
}

impl Link {
    fn toml(&self, name: &str) -> String {
        let Link { rate, rtt, .. } = self;
        let (loss, queue) = (self.loss_percent(), self.queue_bytes());
        format!(
            "[link.{name}]\nrate = \"{rate} Mb/s\"\nrtt = \"{rtt} ms\"\nqueue = \"{queue} B\"\nloss = \"{loss} %\"\n"
        )
    }

    fn queue_bytes(&self) -> u32 {
        // Mb/s times ms is 1000 bits.
        let product = self.rate * self.rtt * 1000 / 8;
        product * self.queue / 100
    }

    fn loss_percent(&self) -> f64 {
        f64::from(self.loss) / 10.0
    }

    fn name(&self) -> String {
        let queue = f64::from(self.queue) / 100.0;
        format!("{} Mb/s, {} ms, {} %, {queue} BDP", self.rate, self.rtt, self.loss_percent())
    }
}

const RATES: [u32; 3] = [2, 10, 18];
const RTTS: [u32; 4] = [20, 50, 100, 200];
const LOSSES: [u32; 3] = [0, 5, 20];
const QUEUES: [u32; 3] = [50, 100, 200];

/// Of the 108 combinations 20, such that every rate meets every round trip, and every value of one quantity nearly every value of
/// another: two Latin squares laid over the grid of rates and round trips, the second one thinned out.
fn one_path_links() -> Vec<Link> {
    let of = |i: usize, j: usize, shift: usize| {
        link(RATES[i], RTTS[j], LOSSES[(i + j + shift) % 3], QUEUES[(2 * i + j + 2 * shift) % 3])
    };
    let grid = || (0..RATES.len()).flat_map(|i| (0..RTTS.len()).map(move |j| (i, j)));
    let first = grid().map(|(i, j)| of(i, j, 0));
    let second = grid().filter(|(i, j)| (i + j) % 3 != 1).map(|(i, j)| of(i, j, 1));
    first.chain(second).collect()
}

/// The transport of (b), (e) and the two paths of (f): upstream Linux's.
const UPSTREAM: &str = "kernel = \"upstream\"\n";
const TCP: &str = "protocol = \"tcp\"\n";
const BULK: &str = "video = { kind = \"bulk\" }\n";

/// Simulated runs are cheap, so their mean can be precise.
const SIMULATED_RUNS: u32 = 40;

/// The common parameters of a part's test cases.
struct Kind {
    part: Part,
    transport: &'static str,
    session: String,
    sessions: u32,
    seconds: u32,
    live_runs: u32,
}

/// A duration at which even the slowest test cases have sent some thousand packets.
const SECONDS: u32 = 60;

impl Kind {
    /// One session that downloads as much as it can.
    fn bulk(part: Part, transport: &'static str, live_runs: u32) -> Self {
        Kind { part, transport, session: BULK.into(), sessions: 1, seconds: SECONDS, live_runs }
    }

    fn case(&self, links: &[Link], control: &str) -> TestCase {
        let names: Vec<_> = links.iter().map(Link::name).collect();
        let tables: String = links.iter().enumerate().map(|(i, link)| link.toml(&format!("path{}", i + 1))).collect();
        let lossy = links.iter().any(|link| link.loss > 0);
        TestCase {
            part: self.part,
            name: format!("{}, {control}", names.join(" + ")),
            scenario: format!(
                "schema = 1\nduration = \"{} s\"\n[transport]\n{}congestion_control = \"{control}\"\n{tables}\
                 [[session]]\ncount = {}\n{}",
                self.seconds, self.transport, self.sessions, self.session
            ),
            server: if self.part == Part::OurServer { ServerKind::Anabranch } else { ServerKind::Kernel },
            client: Client::Model,
            sessions: self.sessions,
            seconds: self.seconds,
            live_runs: self.live_runs,
            simulated_runs: SIMULATED_RUNS,
            runs: if lossy && links.len() == 1 && self.sessions == 1 { Runs::Paired } else { Runs::Unpaired },
            stricter: None,
        }
    }
}

/// Both controls that every kernel has.
const CONTROLS: [&str; 2] = ["newreno", "cubic"];

/// The kernel's control by rate, which some kernels lack: no quick test case has it.
const BBR: &str = "bbr";
/// Queues from a quarter of the bandwidth-delay product to four times that, and losses that a control by loss would heed.
const BBR_OVER_ONE: [Link; 6] = [
    link(10, 60, 0, 25),
    link(10, 50, 0, 100),
    link(10, 50, 0, 400),
    link(10, 50, 20, 100),
    link(2, 100, 5, 200),
    link(18, 20, 5, 50),
];
/// Pairs of links for the same control, alike and unlike.
const BBR_OVER_TWO: [[Link; 2]; 4] = [
    [link(10, 50, 0, 100), link(10, 50, 0, 100)],
    [link(5, 60, 0, 25), link(5, 60, 0, 25)],
    [link(10, 20, 5, 100), link(2, 100, 5, 100)],
    [link(10, 20, 0, 100), link(10, 100, 0, 100)],
];
/// Bytes of a chunk and the links that it comes over, for the same control: shallow queues, and unlike rates.
const BBR_CHUNKS_OVER: [(u32, [Link; 2]); 3] = [
    (250_000, [link(5, 60, 0, 25), link(5, 60, 0, 25)]),
    (250_000, [link(5, 60, 0, 100), link(5, 60, 0, 100)]),
    (100_000, [link(2, 60, 5, 200), link(1, 60, 5, 200)]),
];

/// Links that two sessions share.
const SHARED: [Link; 2] = [link(10, 50, 0, 100), link(10, 50, 5, 100)];

fn one_path() -> Vec<TestCase> {
    // With random losses simulation and live run lose the same packets, so a few runs suffice. Without them chance decides which of
    // several cycles a kernel's run falls into.
    let kind = |link: &Link| Kind::bulk(Part::OnePath, TCP, if link.loss > 0 { 4 } else { 12 });
    let alone =
        one_path_links().into_iter().flat_map(|link| CONTROLS.map(|control| kind(&link).case(&[link], control)));
    let shared = SHARED.map(|link| two_sessions(Kind::bulk(Part::OnePath, TCP, VARYING_RUNS), &[link]));
    let rate_based = BBR_OVER_ONE.map(|link| {
        let case = Kind::bulk(Part::OnePath, TCP, VARYING_RUNS).case(&[link], BBR);
        // The phase of its cycles is chance, so the same losses do not make the same run.
        TestCase { runs: Runs::Unpaired, stricter: Some(RATE_BASED), ..case }
    });
    alone.chain(shared).chain(rate_based).collect()
}

/// Two sessions over the same links: which of their packets are lost is chance.
fn two_sessions(kind: Kind, links: &[Link]) -> TestCase {
    let case = Kind { sessions: 2, ..kind }.case(links, "cubic");
    TestCase { name: format!("two sessions, {}", case.name), stricter: Some(SHARED_LINK), ..case }
}

/// Equal paths, then different rates, different round trips, both different, and losses.
const PAIRS: [[Link; 2]; 5] = [
    [link(10, 20, 0, 100), link(10, 20, 0, 100)],
    [link(10, 50, 0, 100), link(2, 50, 0, 100)],
    [link(10, 20, 0, 100), link(10, 100, 0, 100)],
    [link(2, 50, 0, 200), link(10, 100, 0, 100)],
    [link(10, 50, 5, 100), link(10, 50, 5, 100)],
];

/// Ratios of rates or round trips of 1:5 and losses: the subflows' send buffers and not their windows decide how the data is
/// shared. The faster path comes first.
const UNLIKE: [[Link; 2]; 4] = [
    [link(10, 20, 5, 100), link(2, 100, 5, 100)],
    [link(10, 20, 1, 100), link(2, 100, 1, 100)],
    [link(10, 50, 5, 100), link(2, 50, 5, 100)],
    [link(10, 20, 5, 100), link(10, 100, 5, 100)],
];
/// Unlike queues: one that never has room for a window, and one that delays by four round trips.
const UNLIKE_QUEUES: [[Link; 2]; 2] =
    [[link(10, 50, 0, 50), link(10, 50, 0, 400)], [link(10, 50, 5, 50), link(10, 50, 5, 400)]];
/// Three paths, of which each differs from the next one in one or both of rate and round trip.
const THREE: [[Link; 3]; 2] = [
    [link(10, 20, 0, 100), link(10, 50, 0, 100), link(2, 100, 0, 100)],
    [link(10, 20, 5, 100), link(10, 50, 5, 100), link(2, 100, 5, 100)],
];
/// Runs of test cases in which chance decides more than in those of [`PAIRS`].
const VARYING_RUNS: u32 = 8;
/// Runs over unlike links with random losses. Their goodput varies by a tenth from run to run, so the interval of the mean of fewer
/// runs would be wider than the tolerance.
const LOSSY_RUNS: u32 = 48;
/// The same, simulated.
const LOSSY_SIMULATED_RUNS: u32 = 200;

/// Links in both orders.
fn both_orders<const N: usize>(links: [Link; N]) -> [Vec<Link>; 2] {
    [links.to_vec(), links.into_iter().rev().collect()]
}

fn several_paths() -> Vec<TestCase> {
    let kind = |live_runs| Kind::bulk(Part::SeveralPaths, UPSTREAM, live_runs);
    let pairs = PAIRS.iter().flat_map(|pair| CONTROLS.map(|control| kind(5).case(pair, control)));
    let unlike =
        UNLIKE.into_iter().chain(UNLIKE_QUEUES).flat_map(both_orders).chain(THREE.into_iter().flat_map(both_orders));
    let unlike = unlike.map(|links| {
        let lossy = links.iter().any(|link| link.loss > 0);
        let (live_runs, simulated_runs) =
            if lossy { (LOSSY_RUNS, LOSSY_SIMULATED_RUNS) } else { (VARYING_RUNS, SIMULATED_RUNS) };
        TestCase { simulated_runs, stricter: Some(UNLIKE_PATHS), ..kind(live_runs).case(&links, "cubic") }
    });
    let shared = two_sessions(kind(VARYING_RUNS), &PAIRS[2]);
    let rate_based =
        BBR_OVER_TWO.iter().map(|pair| TestCase { stricter: Some(UNLIKE_PATHS), ..kind(VARYING_RUNS).case(pair, BBR) });
    pairs.chain(unlike).chain([shared]).chain(rate_based).collect()
}

fn our_server() -> Vec<TestCase> {
    let kind = Kind::bulk(Part::OurServer, "", 3);
    let one = [link(10, 50, 5, 100)];
    let mut cases = vec![kind.case(&one, "cubic")];
    cases.extend(PAIRS.iter().map(|pair| kind.case(pair, "cubic")));
    cases.push(kind.case(&PAIRS[2], "lia"));
    cases
}

/// The controls that `anabranch kernel attach` brings into the kernel.
const COUPLED_CONTROLS: [&str; 4] = ["lia", "olia", "balia", "mcc"];

fn coupled() -> Vec<TestCase> {
    let of_pair = |pair: &[Link; 2]| {
        let lossy = pair.iter().any(|link| link.loss > 0);
        // Coupled windows are smaller than uncoupled ones, so that chance decides more of what random losses leave of them.
        let (live_runs, simulated_runs) = if lossy { (LOSSY_RUNS, LOSSY_SIMULATED_RUNS) } else { (5, SIMULATED_RUNS) };
        let kind = Kind::bulk(Part::Coupled, UPSTREAM, live_runs);
        COUPLED_CONTROLS.map(|control| TestCase { simulated_runs, ..kind.case(pair, control) })
    };
    PAIRS.iter().flat_map(of_pair).collect()
}

/// dash.js without its fast switch: with it, it fetches the segment on screen again and keeps its buffer almost empty,
/// so that sessions that differ in a packet soon differ in everything, in Chromium as in the model. Such a player is no
/// basis for a comparison.
const DASH_JS: (&str, &str) = ("dash.js-5 without fast switch", "{ kind = \"dash.js-5\", fast_switch = false }");
const BOLA: (&str, &str) = ("bola", "\"bola\"");

fn dash() -> Vec<TestCase> {
    let case = |transport, (name, player): (&str, &str), links: &[Link], live_runs| {
        let video = "{ kind = \"dash\", ladder = \"bbb-2s\", duration = \"110 s\" }";
        let session = format!("video = {video}\nplayer = {player}\n");
        let kind = Kind { session, seconds: 120, ..Kind::bulk(Part::Dash, transport, live_runs) };
        let mut case = kind.case(links, "cubic");
        case.name = format!("{name}, {}", case.name);
        case
    };
    let mut cases = vec![
        case(TCP, DASH_JS, &[link(2, 50, 5, 200)], 5),
        // Losses make the number of stalls vary by one or two, so that many runs are needed to know its mean within
        // one.
        case(TCP, BOLA, &[link(10, 50, 20, 100)], 12),
        case(UPSTREAM, DASH_JS, &[link(2, 50, 0, 200), link(2, 100, 0, 200)], 5),
    ];
    cases.extend(chromium());
    cases
}

/// The video of these test cases is `manifest.mpd` of a folder given to the campaign: a real player needs real media
/// segments, and the simulated one fetches as many bytes.
fn chromium() -> [TestCase; 3] {
    let (name, player) = DASH_JS;
    let case = |transport, links: &[Link], control, server| {
        let session = format!("video = {{ kind = \"dash\", mpd = \"manifest.mpd\" }}\nplayer = {player}\n");
        let kind = Kind { session, seconds: 90, ..Kind::bulk(Part::Dash, transport, 4) };
        let case = kind.case(links, control);
        let by = if server == ServerKind::Kernel { "" } else { ", our server" };
        TestCase { name: format!("{name} in Chromium{by}, {}", case.name), server, client: Client::Browser, ..case }
    };
    [
        case(TCP, &[link(2, 50, 0, 200)], "cubic", ServerKind::Kernel),
        // Not 2 + 1 Mb/s: nine tenths of that are just what the highest representation needs, and one run of eight
        // stays on it.
        case(UPSTREAM, &[link(2, 50, 0, 200), link(2, 100, 0, 200)], "cubic", ServerKind::Kernel),
        case("", &[link(2, 50, 0, 200), link(1, 100, 0, 200)], "lia", ServerKind::Anabranch),
    ]
}

/// Time of the cut, in seconds.
const CUT_AT: u32 = 20;

/// A cut and its end. A sender with exponential back-off resumes at the first retransmission after the end, so the end
/// must not be close to one: a timer three per cent shorter would then change the result by many seconds. The
/// retransmissions on path 1 are some 7.5 and 15 s after the cut, those on path 2 some 9 and 18 s.
fn handoff() -> Vec<TestCase> {
    let kind = Kind::bulk(Part::Handoff, UPSTREAM, 5);
    let cut = |path: u32, seconds: u32| {
        let mut case = kind.case(&[link(10, 20, 0, 100), link(10, 50, 0, 100)], "cubic");
        let end = CUT_AT + seconds;
        case.scenario += &format!(
            "[[event]]\nat = \"{CUT_AT} s\"\nlink = \"path{path}\"\ndown = true\n\
             [[event]]\nat = \"{end} s\"\nlink = \"path{path}\"\ndown = false\n"
        );
        case.name = format!("path {path} cut from {CUT_AT} s to {end} s: {}", case.name);
        case
    };
    vec![cut(1, 10), cut(2, 15)]
}

/// Bytes of a chunk and the links that it comes over. The kernel alternates between two times of the large ones.
const CHUNKS_OVER: [(u32, [Link; 2]); 5] = [
    (250_000, [link(10, 20, 0, 100), link(10, 100, 0, 100)]),
    (300_000, [link(10, 20, 0, 100), link(10, 100, 0, 100)]),
    (250_000, [link(8, 20, 0, 200), link(2, 100, 0, 200)]),
    (300_000, [link(8, 20, 0, 200), link(2, 100, 0, 200)]),
    (100_000, [link(2, 50, 5, 200), link(1, 100, 5, 200)]),
];

fn on_off() -> Vec<TestCase> {
    let kind = |transport, bytes: u32, live_runs| Kind {
        session: format!("video = {{ kind = \"bulk\", size = \"{bytes} B\" }}\nplayer = \"on-off\"\n"),
        ..Kind::bulk(Part::OnOff, transport, live_runs)
    };
    let chunk = |bytes: u32, mut case: TestCase| {
        case.name = format!("{} kB, {}", bytes / 1000, case.name);
        case
    };
    let tcp = |bytes, links: Link, control| chunk(bytes, kind(TCP, bytes, 3).case(&[links], control));
    let both = |bytes, pair: &[Link], control| chunk(bytes, kind(UPSTREAM, bytes, 5).case(pair, control));
    let strict = |bytes: u32, pair: &[Link], control| TestCase {
        stricter: Some(CHUNKS_OVER_UNLIKE_PATHS),
        ..chunk(bytes, kind(UPSTREAM, bytes, VARYING_RUNS).case(pair, control))
    };
    let unlike = |bytes: u32, pair| both_orders(pair).map(|links| strict(bytes, &links, "cubic"));
    let mut cases = vec![
        tcp(250_000, link(10, 50, 0, 100), "cubic"),
        tcp(250_000, link(10, 50, 5, 100), "cubic"),
        tcp(250_000, link(10, 50, 5, 100), "newreno"),
        tcp(100_000, link(2, 100, 0, 200), "cubic"),
        both(250_000, &PAIRS[0], "cubic"),
    ];
    cases.extend(CHUNKS_OVER.into_iter().flat_map(|(bytes, pair)| unlike(bytes, pair)));
    cases.extend(BBR_CHUNKS_OVER.iter().map(|(bytes, pair)| strict(*bytes, pair, BBR)));
    cases
}

/// Live runs of a quick test case: the minimum for a variance.
const QUICK_RUNS: u32 = 2;

/// The test cases of the parts. The quick ones are a few of each part, with few runs.
pub fn all(parts: &[Part], quick: bool) -> Vec<TestCase> {
    let of = |part: &Part| match part {
        Part::OnePath => one_path(),
        Part::SeveralPaths => several_paths(),
        Part::OurServer => our_server(),
        Part::Dash => dash(),
        Part::Handoff => handoff(),
        Part::OnOff => on_off(),
        Part::Coupled => coupled(),
    };
    let cases = parts.iter().flat_map(|part| {
        let mut cases = of(part);
        cases.retain(|case| !quick || !case.name.ends_with(BBR));
        let every = if quick { cases.len().div_ceil(quick_test_cases(*part)) } else { 1 };
        cases
            .into_iter()
            .step_by(every)
            .map(move |case| TestCase { live_runs: if quick { QUICK_RUNS } else { case.live_runs }, ..case })
    });
    cases.collect()
}

/// Number of quick test cases of a part.
fn quick_test_cases(part: Part) -> usize {
    match part {
        Part::OnePath => 8,
        Part::OnOff => 2,
        // Each control once.
        Part::Coupled => 4,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measurement::scenario;

    #[test]
    fn every_test_case_is_a_scenario_of_its_name_and_length() {
        let cases = [all(&Part::ALL, false), all(&[Part::Coupled], false)].concat();
        let mut names: Vec<_> = cases.iter().map(|case| (case.part, case.name.clone())).collect();
        for case in &cases {
            if case.client == Client::Model {
                assert_eq!(scenario(case, None, &[]).duration.as_secs_f64(), f64::from(case.seconds));
            }
            assert!(case.live_runs >= 2, "a single run says nothing");
        }
        names.sort();
        names.dedup();
        assert_eq!(names.len(), cases.len());
    }

    #[test]
    fn the_test_cases_of_one_path_cover_the_grid() {
        let links = one_path_links();
        assert_eq!(links.len(), 20);
        for rate in RATES {
            assert!(RTTS.iter().all(|rtt| links.iter().any(|l| l.rate == rate && l.rtt == *rtt)));
            assert!(LOSSES.iter().all(|loss| links.iter().any(|l| l.rate == rate && l.loss == *loss)));
            assert!(QUEUES.iter().all(|queue| links.iter().any(|l| l.rate == rate && l.queue == *queue)));
        }
        for rtt in RTTS {
            assert!(LOSSES.iter().filter(|loss| links.iter().any(|l| l.rtt == rtt && l.loss == **loss)).count() >= 2);
        }
    }

    #[test]
    fn the_quick_test_cases_are_a_few_of_every_part() {
        let cases = all(&Part::ALL, true);
        assert!(Part::ALL.iter().all(|part| cases.iter().any(|case| case.part == *part)));
        assert!(cases.len() < 20, "{}", cases.len());
        assert!(cases.iter().all(|case| case.client == Client::Model), "a browser takes the time of all others");
    }
}
