//! Writes a scenario as TOML with every default filled in, such that it reads as the same scenario again.

use super::link::{self, Change};
use super::session::{Action, Event, Path, Session, Traffic};
use super::transport::{Choice, Transport, commit_name, failover_name, protocol_name};
use super::video::{Player, Video};
use super::{SCHEMA, Scenario, dash};
use crate::quantity::{write_bytes, write_rate, write_time};
use anabranch_stack::options::Value;
use anabranch_units::Duration;
use std::fmt::Write;

pub(super) fn write(scenario: &Scenario) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail.
    let mut line = |text: String| writeln!(out, "{text}").expect("a string takes all");
    line(format!("schema = {SCHEMA}"));
    line(format!("question = {}", quoted(&scenario.question)));
    line(time("duration", scenario.duration));
    line(time("warm_up", scenario.warm_up));
    line(time("sample_interval", scenario.sample_interval));
    line(time("stuck_after", scenario.stuck_after));
    line("\n[transport]".into());
    transport(&scenario.transport).into_iter().for_each(&mut line);
    for l in &scenario.links {
        line(format!("\n[link.{}]", quoted(&l.name)));
        line(format!("up = {}", inline(&link::write_change(&Change::from(&l.up)))));
        line(format!("down = {}", inline(&link::write_change(&Change::from(&l.down)))));
    }
    for p in &scenario.paths {
        line(format!("\n[path.{}]", quoted(&p.name)));
        path(p, scenario).into_iter().for_each(&mut line);
    }
    for s in &scenario.sessions {
        line("\n[[session]]".into());
        session(s, scenario).into_iter().for_each(&mut line);
    }
    for t in &scenario.traffic {
        line("\n[[traffic]]".into());
        traffic(t, scenario).into_iter().for_each(&mut line);
    }
    for e in &scenario.events {
        line("\n[[event]]".into());
        event(e, scenario).into_iter().for_each(&mut line);
    }
    out
}

/// A text as a TOML string.
pub(super) fn quoted(text: &str) -> String {
    toml::Value::String(text.to_string()).to_string()
}

fn inline(lines: &[String]) -> String {
    format!("{{ {} }}", lines.join(", "))
}

fn time(key: &str, time: Duration) -> String {
    format!("{key} = \"{}\"", write_time(time))
}

fn names<'a>(list: &[usize], name: impl Fn(usize) -> &'a str) -> String {
    let names: Vec<String> = list.iter().map(|i| quoted(name(*i))).collect();
    format!("[{}]", names.join(", "))
}

fn choice(choice: &Choice) -> String {
    let mut parts = vec![format!("name = {}", quoted(&choice.name))];
    for (key, value) in &choice.options {
        let value = match value {
            Value::Text(text) => quoted(text),
            // Debug writes a float so that it reads as the same one, and never as an integer.
            Value::Number(n) => format!("{n:?}"),
            Value::Flag(flag) => flag.to_string(),
        };
        parts.push(format!("{} = {value}", quoted(key)));
    }
    inline(&parts)
}

fn transport(t: &Transport) -> Vec<String> {
    let buffer = t.receive_buffer;
    vec![
        format!("protocol = \"{}\"", protocol_name(t.protocol)),
        format!("scheduler = {}", choice(&t.scheduler)),
        format!("path_policy = {}", choice(&t.path_policy)),
        format!("congestion_control = {}", choice(&t.congestion_control)),
        format!("commit = \"{}\"", commit_name(t.commit)),
        format!("failover = \"{}\"", failover_name(t.failover)),
        format!("opportunistic_retransmission = {}", t.opportunistic_retransmission),
        format!("penalisation = {}", t.penalisation),
        format!(
            "receive_buffer = {{ initial = \"{}\", max = \"{}\" }}",
            write_bytes(buffer.initial),
            write_bytes(buffer.max)
        ),
        format!("send_buffer = \"{}\"", write_bytes(t.send_buffer)),
        format!("initial_window = {}", t.initial_window),
        format!("pacing = {}", t.pacing),
        format!("idle_restart = {}", t.idle_restart),
        format!("whole_windows = {}", t.whole_windows),
        format!("segmentation_offload = {}", t.segmentation_offload),
        format!("capable_retries = {}", t.capable_retries),
        format!("timestamps = {}", t.timestamps),
        format!("wide_data_seq = {}", t.wide_data_seq),
    ]
}

fn path(p: &Path, scenario: &Scenario) -> Vec<String> {
    let mut lines = vec![
        format!("links = {}", names(&p.links, |i| &scenario.links[i].name)),
        format!("backup = {}", p.backup),
        format!("ip = {}", p.ip),
    ];
    lines.extend(p.congestion_control.as_ref().map(|cc| format!("congestion_control = {}", choice(cc))));
    lines
}

fn session(s: &Session, scenario: &Scenario) -> Vec<String> {
    let mut lines = vec![
        format!("paths = {}", names(&s.paths, |i| &scenario.paths[i].name)),
        format!("video = {}", video(&s.video)),
        format!("player = {}", player(&s.player)),
        format!("count = {}", s.count),
        time("start", s.start),
        time("start_spread", s.start_spread),
        time("stagger", s.stagger),
    ];
    if matches!(s.video, Video::Dash(_)) {
        lines.push(format!("statistics = {}", dash::write_statistics(&s.statistics)));
    }
    if s.transport != scenario.transport {
        lines.push(format!("transport = {}", inline(&transport(&s.transport))));
    }
    lines
}

fn video(video: &Video) -> String {
    match video {
        Video::Progressive { size, rate, fps, seed, variation } => {
            let fps = if fps.1 == 1 { fps.0.to_string() } else { format!("\"{}/{}\"", fps.0, fps.1) };
            let (size, rate) = (write_bytes(*size), write_rate(*rate));
            let variation = format!(
                "scene_variation = {:?}, picture_variation = {:?}, scene_length = \"{}\"",
                variation.scene,
                variation.picture,
                write_time(variation.scene_length)
            );
            format!(
                "{{ kind = \"progressive\", size = \"{size}\", rate = \"{rate}\", fps = {fps}, seed = {seed}, {variation} }}"
            )
        }
        Video::Dash(content) => dash::write_video(content),
        Video::Bulk { size: None } => "{ kind = \"bulk\" }".into(),
        Video::Bulk { size: Some(size) } => format!("{{ kind = \"bulk\", size = \"{}\" }}", write_bytes(*size)),
    }
}

fn player(player: &Player) -> String {
    let o = &player.options;
    let mut parts = vec![format!("kind = {}", quoted(&player.kind))];
    parts.extend(o.caching.map(|t| time("caching", t)));
    parts.extend(o.ring.map(|bytes| format!("ring = \"{}\"", write_bytes(bytes))));
    parts.extend(o.clock_jitter.map(|t| time("clock_jitter", t)));
    parts.extend(o.duration.map(|t| time("duration", t)));
    parts.extend(dash::write_options(&o.dash));
    inline(&parts)
}

fn traffic(t: &Traffic, scenario: &Scenario) -> Vec<String> {
    let mut lines = vec![
        "kind = \"tcp\"".to_string(),
        format!("path = {}", quoted(&scenario.paths[t.path].name)),
        format!("congestion_control = {}", choice(&t.congestion_control)),
        format!("count = {}", t.count),
        time("start", t.start),
        time("start_spread", t.start_spread),
        time("stagger", t.stagger),
    ];
    lines.extend(t.stop.map(|stop| time("stop", stop)));
    lines.extend(t.size.map(|size| format!("size = \"{}\"", write_bytes(size))));
    lines
}

fn event(e: &Event, scenario: &Scenario) -> Vec<String> {
    let mut lines = vec![time("at", e.at)];
    match &e.action {
        Action::Path { path, down } => {
            lines.push(format!("path = {}", quoted(&scenario.paths[*path].name)));
            lines.push(format!("down = {down}"));
        }
        Action::Link { link, cut, down, up } => {
            lines.push(format!("link = {}", quoted(&scenario.links[*link].name)));
            // `down` is either the outage or the table of the downlink. Where it is the outage, the downlink's changes
            // stand as keys of the event itself; the `up` table wins over these, so both directions read as they were.
            match cut {
                Some(cut) => {
                    lines.push(format!("down = {cut}"));
                    lines.extend(link::write_change(down));
                }
                None => lines.extend(direction_changes("down", down)),
            }
            lines.extend(direction_changes("up", up));
        }
    }
    lines
}

fn direction_changes(key: &str, change: &Change) -> Option<String> {
    (!change.is_empty()).then(|| format!("{key} = {}", inline(&link::write_change(change))))
}
