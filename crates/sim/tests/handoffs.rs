//! scratch
use anabranch_scenario::{catalogue, load};
use anabranch_sim::{RunOptions, run};
use anabranch_stack::{congestion, scheduler};

fn gap(name: &str, over: &[(String, String)]) -> (f64, f64, f64, String) {
    let shipped = catalogue::scenario(name).unwrap();
    let scenario = load(shipped.text, name, None, over).unwrap_or_else(|e| panic!("{e}"));
    let outcome = run(&scenario, &RunOptions::default(), &mut |_| true);
    let r = &outcome.recording.sessions[0];
    let (mut longest, mut at, mut run_) = (0.0, 0.0, 0);
    let end = outcome.metrics.sessions[0].finished_s.unwrap_or(f64::INFINITY);
    let mut last_data = 0.0_f64;
    for (i, t) in r.time_s.iter().enumerate() {
        let any = r.paths.iter().any(|p| p.throughput_bps[i] > 0.0);
        if any { last_data = *t; run_ = 0 } else { run_ += 1 }
        let g = f64::from(run_) * outcome.recording.interval_s;
        if g > longest && *t < end { longest = g; at = last_data }
    }
    let v = outcome.metrics.sessions[0].viewer.as_ref().map_or(0.0, |v| v.stall_s);
    (longest, at, v, format!("{:?} bytes {} fin {:?}", outcome.metrics.ended, outcome.metrics.sessions[0].bytes, outcome.metrics.sessions[0].finished_s))
}

#[test]
#[ignore]
fn scratch() {
    let only_cc = std::env::var("CC").unwrap_or_default();
    let only_s = std::env::var("SCHED").unwrap_or_default();
    let only_n = std::env::var("NAME").unwrap_or_default();
    let commits = std::env::var("COMMIT").unwrap_or("at-window,into-buffer".into());
    for name in ["handoff/large-handoff", "handoff/limited-handoff", "handoff/cellular-handoff", "mobile/walk"] {
        if !name.contains(&only_n) { continue }
        let begin = std::time::Instant::now();
        for cc in congestion::REGISTRY {
            if !only_cc.is_empty() && !only_cc.split(',').any(|c| c == cc.name) { continue }
            for s in scheduler::REGISTRY {
                if !only_s.is_empty() && !only_s.split(',').any(|c| c == s.name) { continue }
                for commit in commits.split(',') {
                let mut over = vec![
                    ("transport.congestion_control".into(), cc.name.to_string()),
                    ("transport.scheduler".into(), s.name.to_string()),
                    ("transport.commit".into(), commit.to_string()),
                ];
                if name.starts_with("handoff") {
                    over.push(("session.0.video.size".into(), "39.3 MB".into()));
                    over.push(("duration".into(), "140 s".into()));
                    over.push(("event.0.at".into(), "20 s".into()));
                } else {
                    over.push(("session.0.video.duration".into(), "60 s".into()));
                    over.push(("duration".into(), "140 s".into()));
                    for (i, t) in [10.0, 15.0, 20.0, 33.0, 38.0].iter().enumerate() {
                        over.push((format!("event.{i}.at"), format!("{t} s")));
                    }
                }
                let (g, at, stall, text) = gap(name, &over);
                if g > 2.0 || !only_cc.is_empty() { println!("{name} {} {} {commit}: gap {g:.1} s from {at:.1} stall {stall:.1} {text}", cc.name, s.name); }
                }
            }
        }
        println!("{name} took {:.1}", begin.elapsed().as_secs_f64());
    }
}
