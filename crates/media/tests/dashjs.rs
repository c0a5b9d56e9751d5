//! Our dash.js rules compared with the originals: dash.js 2.2.0, 2.9.3 and 5.2.1 from npm, run under Node with a fake
//! clock (`dashjs/judge.mjs`), get the same sessions and must decide the same, decision by decision and rule by rule.
//!
//! Needs `node` and `npm`. The thorough comparison installs the packages into Cargo's target folder, where the short
//! one finds them; without them it skips. With `ANABRANCH_REQUIRE_DASHJS` set it installs them too, and never skips.

mod common;

use anabranch_media::abr::dashjs::Release;
use anabranch_media::abr::{self, AbrOptions, BufferState, Download, Ladder, Strategy};
use anabranch_units::{Bandwidth, Duration, Instant};
use common::network::{Mood, Network};
use common::session::{Session, Setup, Step};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Media segments per session.
const SEGMENTS: usize = 100;
/// Sessions of one run of Node.
const BATCH: u64 = 100;

const SOURCES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/dashjs");

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Case {
    release: &'static str,
    strategy: &'static str,
}

const CASES: [Case; 7] = [
    Case { release: "2.2.0", strategy: "throughput" },
    Case { release: "2.9.3", strategy: "dynamic" },
    Case { release: "2.9.3", strategy: "bola" },
    Case { release: "2.9.3", strategy: "throughput" },
    Case { release: "5.2.1", strategy: "dynamic" },
    Case { release: "5.2.1", strategy: "bola" },
    Case { release: "5.2.1", strategy: "throughput" },
];

/// Counts of events: a comparison without decisions proves nothing.
type Tally = BTreeMap<String, u64>;

fn ladder(rng: &mut ChaCha8Rng) -> Ladder {
    // The one-second ladder of the DASH-over-MPTCP paper, or a part of it, or anything at all.
    const BIG_BUCK_BUNNY: [u64; 20] = [
        46_980, 91_917, 135_410, 182_366, 226_106, 270_316, 352_546, 424_520, 537_825, 620_705, 808_057, 1_071_529,
        1_312_787, 1_662_809, 2_234_145, 2_617_284, 3_305_118, 3_841_983, 4_242_923, 4_726_737,
    ];
    let durations = [1_000, 2_000, 4_000, 6_000, 10_000, 1_001, 3_840];
    let duration = Duration::from_millis(durations[rng.random_range(0..durations.len())]);
    let bitrates: Vec<u64> = match rng.random_range(0..4) {
        0 => BIG_BUCK_BUNNY.to_vec(),
        1 => BIG_BUCK_BUNNY.into_iter().step_by(rng.random_range(2..6)).collect(),
        2 => BIG_BUCK_BUNNY[rng.random_range(0..10)..][..rng.random_range(1..=10)].to_vec(),
        _ => {
            let mut bps = rng.random_range(30_000..500_000);
            let mut next = || {
                bps += rng.random_range(1..2_000_000);
                bps
            };
            (0..6).map(|_| next()).collect()
        }
    };
    Ladder::new(bitrates, duration, 10_000).unwrap()
}

fn mood(ladder: &Ladder, rng: &mut ChaCha8Rng) -> Mood {
    let (low, high) = (ladder.bps(0), ladder.bps(ladder.len() - 1));
    // Around the ladder; around one rate; or so fast that small media segments look cached.
    let bps = match rng.random_range(0..4) {
        0 => (0.4 * low, 2.5 * high),
        1 => (1.0 * low, 1.2 * high),
        2 => {
            let middle = low + (high - low) * rng.random::<f64>();
            (0.5 * middle, 1.6 * middle)
        }
        _ => (0.5 * high, 60.0 * high),
    };
    Mood {
        bps: (bps.0, bps.1.max(bps.0 * 1.01)),
        step: [1.1, 1.6, 4.0, f64::INFINITY][rng.random_range(0..4)],
        hold_ms: [500, 4_000, 30_000][rng.random_range(0..3)],
        latency_ms: [5, 60, 400, 1_500][rng.random_range(0..4)],
    }
}

/// A session from its seed: its description for Node, and the session itself, not yet begun.
fn session(case: Case, seed: u64) -> (Value, Session) {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let drawn = ladder(&mut rng);
    let ladder = if rng.random_ratio(1, 8) { drawn.live() } else { drawn };
    let mood = mood(&ladder, &mut rng);
    let (release, name, stable_s) = match case.release {
        "2.2.0" => (Release::V2_2, "dash.js-2.2", 12),
        "2.9.3" => (Release::V2_9, "dash.js-2.9", [12, 12, 12, 20, 60][rng.random_range(0..5)]),
        _ => (Release::V5, "dash.js-5", [18, 18, 18, 12, 60][rng.random_range(0..5)]),
    };
    let stable_buffer = Duration::from_secs(stable_s);
    let last = ladder.len() - 1;
    let setup = Setup {
        release,
        stable_buffer,
        top_buffer: Duration::from_secs([30, 30, 60][rng.random_range(0..3)].max(stable_s)),
        stated_target: rng.random_ratio(1, 4).then_some(stable_buffer),
        top: if rng.random_ratio(1, 5) { rng.random_range(0..=last) } else { last },
        initial: 0,
        seeks: [0, 0, 2][rng.random_range(0..3)],
        replacements: [0, 0, 100][rng.random_range(0..3)],
        dropped_percent: [0, 0, 0, 30][rng.random_range(0..4)],
        ladder,
    };
    let setup = Setup { initial: rng.random_range(0..=setup.top), ..setup };
    let strategy = match case.strategy {
        "dynamic" => Strategy::Dynamic,
        "bola" => Strategy::Bola,
        _ => Strategy::Throughput,
    };
    let of_five = |value: bool| (release == Release::V5).then_some(value);
    let from_two_nine = release != Release::V2_2;
    let (dropped, by_progress) = (rng.random(), rng.random());
    let options = AbrOptions {
        strategy: from_two_nine.then_some(strategy),
        stable_buffer: from_two_nine.then_some(stable_buffer),
        dropped_frames: of_five(dropped),
        progress_timing: of_five(by_progress),
        ..AbrOptions::default()
    };
    let description = json!({
        "release": case.release,
        "strategy": case.strategy,
        "ladder": setup.ladder.bitrates(),
        "duration": setup.ladder.segment_duration().as_secs_f64(),
        "live": setup.ladder.is_live(),
        "stable": stable_s,
        "top": setup.top,
        "initial": setup.initial,
        "dropped": dropped,
        "progressTiming": by_progress,
    });
    let rule = (abr::REGISTRY.find(name).unwrap().create)(&options).unwrap();
    let network = Network::new(mood, &mut rng);
    (description, Session::new(setup, rule, network, rng))
}

fn ms(at: Instant) -> f64 {
    at.as_nanos() as f64 / 1e6
}

fn download_values(d: &Download) -> Vec<Value> {
    let first = d.first_progress;
    vec![
        json!(d.index),
        json!(d.representation),
        json!(ms(d.requested_at)),
        json!(ms(d.first_byte_at)),
        json!(first.map(|mark| ms(mark.at))),
        json!(first.map_or(0, |mark| mark.bytes)),
        json!(ms(d.last_progress.at)),
        json!(d.last_progress.bytes),
        json!(ms(d.finished_at)),
    ]
}

/// A step in Node's format.
fn encode(at: Instant, step: &Step) -> Value {
    let (kind, values) = match step {
        Step::Level(level) => ("L", vec![json!(level.as_nanos() as f64 / 1e6)]),
        Step::State(state) => ("S", vec![json!(*state == BufferState::Loaded)]),
        Step::Decided { pictures, target, .. } => {
            ("D", vec![json!(pictures.total), json!(pictures.dropped), json!(target.as_secs_f64())])
        }
        Step::Reported { progress: p, .. } => {
            let first = p.first_progress;
            let values = vec![
                json!(p.index),
                json!(p.representation),
                json!(ms(p.requested_at)),
                json!(first.map(|mark| ms(mark.at))),
                json!(first.map_or(0, |mark| mark.bytes)),
                json!(p.bytes),
                json!(p.total),
            ];
            ("P", values)
        }
        Step::Requested { index, representation, .. } => ("R", vec![json!(index), json!(representation)]),
        Step::Finished(download) => ("F", download_values(download)),
        Step::Aborted(download) => ("A", download_values(download)),
        Step::Init => ("I", vec![]),
        Step::Seek => ("K", vec![]),
        Step::Shown { from, to, pictures } => {
            ("X", vec![json!(from), json!(to), json!(pictures.total), json!(pictures.dropped)])
        }
    };
    Value::Array([vec![json!(kind), json!(ms(at))], values].concat())
}

/// Whether dash.js gave the same answer; an error has both answers.
fn same(step: &Step, theirs: &Value, tally: &mut Tally) -> Result<(), String> {
    match step {
        Step::Decided { decision, votes, .. } => {
            let votes: BTreeMap<&str, usize> = votes.iter().copied().collect();
            let delay_ms = theirs[1].as_f64().unwrap();
            // A wait is stored in whole nanoseconds.
            let alike = theirs[0] == json!(decision.representation)
                && theirs[2] == json!(votes)
                && (delay_ms - decision.wait.as_nanos() as f64 / 1e6).abs() < 1e-6;
            *tally.entry("decisions".into()).or_default() += 1;
            *tally.entry("waits".into()).or_default() += u64::from(!decision.wait.is_zero());
            for rule in votes.keys() {
                *tally.entry((*rule).into()).or_default() += 1;
            }
            if alike { Ok(()) } else { Err(format!("ours {decision:?} {votes:?}, theirs {theirs}")) }
        }
        Step::Reported { abandon, .. } => {
            let ours = abandon.map_or(-1, |r| i64::try_from(r).unwrap());
            *tally.entry("reports".into()).or_default() += 1;
            *tally.entry("abandonments".into()).or_default() += u64::from(ours >= 0);
            if *theirs == json!(ours) { Ok(()) } else { Err(format!("ours {ours}, theirs {theirs}")) }
        }
        Step::Requested { cmcd, .. } => {
            let ms = |time: Option<Duration>| time.map(|time| time.as_millis());
            let kbps = |rate: Option<Bandwidth>| rate.map(|rate| rate.as_bps() / 1_000);
            let ours = json!({
                "bl": ms(cmcd.buffer), "br": kbps(cmcd.bitrate), "d": ms(cmcd.duration), "dl": ms(cmcd.deadline),
                "ot": "v", "rtp": kbps(cmcd.enough), "su": cmcd.startup, "tb": kbps(cmcd.top),
            });
            *tally.entry("requests".into()).or_default() += 1;
            *tally.entry("requests to begin or go on".into()).or_default() += u64::from(cmcd.startup);
            if *theirs == ours { Ok(()) } else { Err(format!("ours {ours}, theirs {theirs}")) }
        }
        _ => unreachable!("only decisions, reports and requests are answered"),
    }
}

fn compare(case: Case, seed: u64, session: &Session, answers: &Value, tally: &mut Tally) {
    let answers = answers.as_array().unwrap();
    let asked = session
        .steps
        .iter()
        .filter(|(_, s)| matches!(s, Step::Decided { .. } | Step::Reported { .. } | Step::Requested { .. }));
    assert_eq!(asked.clone().count(), answers.len(), "{case:?}, seed {seed}");
    for ((at, step), theirs) in asked.zip(answers) {
        if let Err(difference) = same(step, theirs, tally) {
            let history: Vec<_> = session.steps.iter().take_while(|(t, _)| t <= at).collect();
            let mut context = String::new();
            for (at, step) in &history[history.len().saturating_sub(25)..] {
                let _ = writeln!(context, "  {at} {step:?}");
            }
            panic!("{case:?}, seed {seed}, at {at}: {difference}\nafter\n{context}");
        }
    }
}

/// Compares the sessions of these seeds with Node's.
fn judge(case: Case, seeds: std::ops::Range<u64>, folder: &Path, tally: &mut Tally) {
    // Two concurrent runs must not share files.
    let name = format!("{}-{}-{}-{}", case.release, case.strategy, seeds.start, std::process::id());
    let (input, output) = (folder.join(format!("{name}.in")), folder.join(format!("{name}.out")));
    let mut lines = String::new();
    let sessions: Vec<Session> = seeds
        .clone()
        .map(|seed| {
            let (mut description, mut session) = session(case, seed);
            session.fetch(SEGMENTS);
            description["steps"] = session.steps.iter().map(|(at, step)| encode(*at, step)).collect();
            let _ = writeln!(lines, "{description}");
            session
        })
        .collect();
    std::fs::write(&input, lines).unwrap();
    let run =
        Command::new("node").arg(Path::new(SOURCES).join("judge.mjs")).arg(folder).arg(&input).arg(&output).output();
    let run = run.unwrap();
    assert!(run.status.success(), "node failed: {}", String::from_utf8_lossy(&run.stderr));
    let answers = std::fs::read_to_string(&output).unwrap();
    assert_eq!(answers.lines().count(), sessions.len());
    for ((seed, session), line) in seeds.zip(&sessions).zip(answers.lines()) {
        compare(case, seed, session, &serde_json::from_str(line).unwrap(), tally);
    }
    std::fs::remove_file(input).unwrap();
    std::fs::remove_file(output).unwrap();
}

/// The folder with dash.js, if it is there or can be put there.
fn folder(install: bool) -> Result<PathBuf, String> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("dashjs");
    let required = std::env::var_os("ANABRANCH_REQUIRE_DASHJS").is_some();
    let lock = |base: &Path| std::fs::read(base.join("package-lock.json")).ok();
    let installed = folder.join("node_modules").is_dir() && lock(&folder) == lock(Path::new(SOURCES));
    if installed {
        return Ok(folder);
    }
    if !install && !required {
        return Err(format!("dash.js is not in {}; the thorough comparison installs it", folder.display()));
    }
    std::fs::create_dir_all(&folder).map_err(|e| e.to_string())?;
    for file in ["package.json", "package-lock.json"] {
        std::fs::copy(Path::new(SOURCES).join(file), folder.join(file)).map_err(|e| e.to_string())?;
    }
    let npm =
        Command::new("npm").args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"]).current_dir(&folder).output();
    match npm {
        Ok(run) if run.status.success() => Ok(folder),
        Ok(run) => Err(format!("npm ci failed: {}", String::from_utf8_lossy(&run.stderr))),
        Err(e) => Err(format!("npm cannot be run: {e}")),
    }
}

/// Compares this many sessions per case, or prints why not; returns the counts of each case.
fn compare_all(sessions: u64, install: bool) -> Option<BTreeMap<Case, Tally>> {
    let folder = match folder(install) {
        Ok(folder) => folder,
        Err(reason) => {
            assert!(std::env::var_os("ANABRANCH_REQUIRE_DASHJS").is_none(), "{reason}");
            println!("skipped: {reason}");
            return None;
        }
    };
    let compare_one = |case: Case| {
        let mut tally = Tally::new();
        for start in (0..sessions).step_by(usize::try_from(BATCH).unwrap()) {
            judge(case, start..(start + BATCH).min(sessions), &folder, &mut tally);
        }
        println!("{} {}: {sessions} sessions agree: {tally:?}", case.release, case.strategy);
        (case, tally)
    };
    // Two at a time.
    let (two, five): (Vec<Case>, Vec<Case>) = CASES.into_iter().partition(|case| case.release != "5.2.1");
    std::thread::scope(|scope| {
        let one_half = scope.spawn(|| two.into_iter().map(compare_one).collect::<Vec<_>>());
        let mut tallies: BTreeMap<Case, Tally> = five.into_iter().map(compare_one).collect();
        tallies.extend(one_half.join().expect("a disagreement is reported above"));
        Some(tallies)
    })
}

#[test]
fn dash_js_agrees_on_some_sessions() {
    if let Some(tallies) = compare_all(8, false) {
        assert!(tallies.values().all(|tally| tally["decisions"] > 8 * SEGMENTS as u64));
    }
}

#[test]
#[ignore = "slow suite: npm packages, and minutes of dash.js"]
fn dash_js_agrees_on_a_thousand_sessions_of_each_kind() {
    const SESSIONS: u64 = 1_000;
    let Some(tallies) = compare_all(SESSIONS, true) else { return };
    for (case, tally) in &tallies {
        let often = |what: &str| {
            assert!(tally.get(what).is_some_and(|&n| n >= SESSIONS), "{case:?}: {what} in {tally:?}");
        };
        ["abandonments", "InsufficientBufferRule"].iter().for_each(|what| often(what));
        match case.strategy {
            "dynamic" => ["BolaRule", "waits", "ThroughputRule"].iter().for_each(|what| often(what)),
            "bola" => ["BolaRule", "waits"].iter().for_each(|what| often(what)),
            _ => often("ThroughputRule"),
        }
        match case.release {
            "2.2.0" => often("BufferOccupancyRule"),
            _ => ["SwitchHistoryRule", "DroppedFramesRule"].iter().for_each(|what| often(what)),
        }
    }
}
