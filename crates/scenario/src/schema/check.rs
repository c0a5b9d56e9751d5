//! What a single key cannot tell: names that must exist, values that must fit together, files that must be readable.
//! What follows from other values or from files is written into the scenario here.

use super::checker::{Checker, Result};
use super::document::{Node, Value};
use super::mistake::Mistake;
use super::tables::{DirectionSpec, Event, Link, Offset, Path, Rate, SCHEMA, Scenario, Session, Traffic};
use super::{algorithms, content};
use crate::warning::WarningKind;
use anabranch_media::pacing;
use anabranch_network::{Jitter, Loss, QueueConfig};
use anabranch_stack::scheduler::SubflowSet;
use anabranch_units::Duration;
use anabranch_units::text::write_time;

/// The version comes first: of another one nothing else can be said.
pub(super) fn check_version(root: &Node) -> Result<()> {
    let expected = format!("schema = {SCHEMA}");
    let Some(entry) = root.as_table().and_then(|table| table.get("schema")) else {
        return Err(Mistake::missing("schema", expected).in_table("the scenario", &root.at));
    };
    match entry.node.value {
        Value::Integer(version) if u64::try_from(version) == Ok(SCHEMA) => Ok(()),
        Value::Integer(version) => {
            let message = format!("schema {version} is not known to this version");
            Err(Mistake::new(message, expected).at(&entry.node.at))
        }
        ref other => Err(Mistake::wrong_kind(other, &expected.as_str()).in_value("schema", &entry.node.at)),
    }
}

/// Checks a scenario, and completes it.
pub(super) fn check(scenario: &mut Scenario, checker: &mut Checker<'_>) -> Result<()> {
    check_times(scenario, checker)?;
    algorithms::check_transport(&mut scenario.transport, &["transport"], checker)?;
    algorithms::check_server(&mut scenario.server, checker)?;
    let offset = scenario.trace_offset;
    for link in &mut scenario.links {
        check_link(link, offset, checker)?;
    }
    let links: Vec<String> = scenario.links.iter().map(|link| link.name.clone()).collect();
    if scenario.paths.is_empty() {
        let expected = "a [link.NAME] with rate and rtt; a path per link is made where none is written";
        return checker.wrong(&[], "the scenario has no path", expected);
    }
    scenario.paths.iter_mut().try_for_each(|path| check_path(path, &links, checker))?;
    let paths: Vec<String> = scenario.paths.iter().map(|path| path.name.clone()).collect();
    for (position, session) in scenario.sessions.iter_mut().enumerate() {
        check_session(session, &position.to_string(), &paths, checker)?;
    }
    for (position, traffic) in scenario.traffic.iter_mut().enumerate() {
        check_traffic(traffic, &position.to_string(), &paths, checker)?;
    }
    if scenario.sessions.is_empty() && scenario.traffic.is_empty() {
        return checker.wrong(&[], "the scenario has no session", "a [[session]]");
    }
    let sessions = scenario.sessions.len();
    for (position, event) in scenario.events.iter_mut().enumerate() {
        check_event(event, &position.to_string(), (&links, &paths, sessions), offset, checker)?;
    }
    check_rates(scenario, checker)?;
    warn_of_times(scenario, checker);
    warn_of_empty_traces(scenario, checker);
    warn_of_unpaced_viewers(scenario, checker);
    check_changes(scenario, checker)
}

fn check_times(scenario: &Scenario, checker: &Checker<'_>) -> Result<()> {
    checker.above_zero("duration", scenario.duration)?;
    checker.above_zero("sample_interval", scenario.sample_interval)?;
    checker.above_zero("stuck_after", scenario.stuck_after)?;
    check_samples(scenario, checker)?;
    if scenario.warm_up >= scenario.duration {
        return checker.wrong(&["warm_up"], "`warm_up` is not shorter than `duration`", "warm_up < duration");
    }
    Ok(())
}

/// Sessions beyond this number are not recorded, so that a run with thousands of viewers fits into memory.
pub const MOST_RECORDED: usize = 16;

/// The most samples that a run may hold, all recorded sessions together. A sample takes some 20 bytes and 12 more for
/// each path, twice while it is written: about a gigabyte.
const MOST_SAMPLES: u64 = 10_000_000;

/// Samples of all sessions must fit into memory.
fn check_samples(scenario: &Scenario, checker: &Checker<'_>) -> Result<()> {
    let sessions: u64 = scenario.sessions.iter().map(|session| u64::from(session.starts.count)).sum();
    let sessions = sessions.clamp(1, MOST_RECORDED as u64);
    let total = |interval: Duration| (scenario.duration.as_nanos() / interval.as_nanos()).saturating_mul(sessions);
    let interval = scenario.sample_interval;
    if total(interval) <= MOST_SAMPLES {
        return Ok(());
    }
    let least = Duration::from_nanos(scenario.duration.as_nanos().div_ceil(MOST_SAMPLES / sessions));
    // A round number is easier to type: three digits, rounded up.
    let step = 10_u64.pow(least.as_nanos().ilog10().saturating_sub(2));
    let least = Duration::from_nanos(least.as_nanos().div_ceil(step).saturating_mul(step));
    let of = match sessions {
        1 => String::new(),
        n => format!(" of {n} sessions"),
    };
    let message = format!(
        "`sample_interval` is {}, which makes {} samples{of} in {}, more than the {MOST_SAMPLES} that a run may hold",
        write_time(interval),
        total(interval),
        write_time(scenario.duration)
    );
    checker.wrong(&["sample_interval"], message, format!("at least \"{}\" for this `duration`", write_time(least)))
}

/// Warns of what never happens, because the run is over by then. An override of `duration` makes that easily, and the
/// rest of the scenario still means something, so it is no mistake.
fn warn_of_times(scenario: &Scenario, checker: &mut Checker<'_>) {
    let end = scenario.duration;
    let over = |time: Duration| format!("at {}, when the run is over ({})", write_time(time), write_time(end));
    for (position, event) in scenario.events.iter().enumerate() {
        if event.at >= end {
            let message = format!("[[event]] {position} is {}: it never happens", over(event.at));
            checker.warn(&["event", &position.to_string(), "at"], WarningKind::EventAfterEnd, message);
        }
    }
    let sessions = scenario.sessions.iter().map(|session| session.starts).enumerate();
    let traffic = scenario.traffic.iter().map(|traffic| traffic.starts).enumerate();
    let starts = sessions.map(|start| ("session", start)).chain(traffic.map(|start| ("traffic", start)));
    for (key, (position, starts)) in starts {
        let last = starts.last();
        if last >= end {
            let who = if starts.count == 1 { "begins" } else { "has its last start" };
            let message = format!("[[{key}]] {position} {who} {}", over(last));
            checker.warn(&[key, &position.to_string(), "start"], WarningKind::StartAfterEnd, message);
        }
    }
}

/// Warns of traces that let nothing through before the run ends. Where the beginning is drawn, that is not known yet.
fn warn_of_empty_traces(scenario: &Scenario, checker: &mut Checker<'_>) {
    let shared = scenario.trace_offset == Offset::Random;
    let mut warn = |steps: [&str; 2], begin: Duration, up: Option<&DirectionSpec>, down: Option<&DirectionSpec>| {
        let rates = [("up", up), ("down", down)].map(|(key, direction)| (key, direction.and_then(|d| d.rate.as_ref())));
        // Both directions may have the same rate, written once.
        let same = rates[0].1 == rates[1].1;
        for (key, rate) in rates.into_iter().skip(usize::from(same)) {
            let Some(Rate::Trace(trace)) = rate else { continue };
            let Some(left) = (scenario.duration > begin).then(|| scenario.duration - begin) else { continue };
            let first = match trace.first_packet(shared) {
                Some(Some(first)) if first >= left => format!("the first one passes after {}", write_time(first)),
                Some(None) => "none ever passes".to_string(),
                Some(Some(_)) | None => continue,
            };
            let message = format!("trace {} lets no packet through in {}: {first}", trace.trace, write_time(left));
            checker.warn(&[&steps[..], &[key, "rate", "trace"]].concat(), WarningKind::NothingPasses, message);
        }
    };
    for link in &scenario.links {
        warn(["link", &link.name], Duration::ZERO, Some(&link.up), Some(&link.down));
    }
    for (position, event) in scenario.events.iter().enumerate() {
        warn(["event", &position.to_string()], event.at, event.up.as_ref(), event.down.as_ref());
    }
}

/// Warns of more viewers than the pacing of responses compares.
fn warn_of_unpaced_viewers(scenario: &Scenario, checker: &mut Checker<'_>) {
    let choice = &scenario.server.response_pacing;
    let compares = pacing::create(&choice.name, &choice.options).is_ok_and(|made| made.is_some_and(|p| p.groups()));
    let sessions: u64 = scenario.sessions.iter().map(|session| u64::from(session.starts.count)).sum();
    if compares && sessions > pacing::MOST_VIEWERS as u64 {
        let most = pacing::MOST_VIEWERS;
        let message =
            format!("`{}` paces {most} viewers at a time, and not the others of the {sessions} sessions", choice.name);
        checker.warn(&["server", "response_pacing"], WarningKind::Unpaced, message);
    }
}

fn check_link(link: &mut Link, trace_offset: Offset, checker: &mut Checker<'_>) -> Result<()> {
    let name = link.name.clone();
    for (direction, key) in [(&mut link.up, "up"), (&mut link.down, "down")] {
        let steps = ["link", &name, key];
        check_direction(direction, &name, trace_offset, &steps, checker)?;
        *direction = std::mem::take(direction).or(DirectionSpec::usual());
        if direction.rate.is_none() {
            let missing = Mistake::missing("rate", "a rate such as \"2 Mb/s\", or \"unlimited\"");
            return Err(missing.in_table(&format!("[link.{name}]"), checker.at(&["link", &name])));
        }
        if let Err(error) = direction.config().validate() {
            let field = error.field.split('.').next().unwrap_or_default();
            let message = format!("{key} of [link.{name}]: {error}");
            return checker.wrong(&["link", &name, key, field], message, "");
        }
    }
    Ok(())
}

/// Checks what is said about a direction, reads its trace, and writes out what follows from other keys.
fn check_direction(
    direction: &mut DirectionSpec,
    link: &str,
    trace_offset: Offset,
    steps: &[&str],
    checker: &mut Checker<'_>,
) -> Result<()> {
    let under = |key: &'static str| [steps, &[key]].concat();
    if let Some(rate) = &mut direction.rate {
        checker.complete_rate(rate, link, trace_offset, &under("rate"))?;
    }
    let queue = direction.queue.as_ref().map_or(Ok(()), QueueConfig::check);
    let loss = direction.loss.as_ref().map_or(Ok(()), Loss::check);
    let jitter = direction.jitter.as_ref().map_or(Ok(()), Jitter::check);
    if let Err(error) = queue.and(loss).and(jitter) {
        let keys: Vec<&str> = error.field.split('.').collect();
        return checker.wrong(&[steps, &keys].concat(), error.to_string(), error.expected);
    }
    if let Some(queue) = &mut direction.queue {
        queue.complete();
    }
    Ok(())
}

fn check_path(path: &mut Path, links: &[String], checker: &Checker<'_>) -> Result<()> {
    let steps = ["path", &path.name];
    if path.links.is_empty() {
        return checker.wrong(&["path", &path.name, "links"], "`links` is empty", "at least one name of a link");
    }
    for (position, link) in path.links.iter().enumerate() {
        let at = ["path", &path.name, "links", &position.to_string()];
        checker.known(&at, "link", link, links)?;
        // A packet would compete with itself for one queue, which no network does to a route.
        if path.links[..position].contains(link) {
            return checker.wrong(&at, format!("link `{link}` stands twice in `links`"), "each link once");
        }
    }
    if path.ip == 5 {
        return checker.wrong(&["path", &path.name, "ip"], "`ip` is 5", "4 or 6");
    }
    match &mut path.congestion_control {
        Some(control) => algorithms::check_congestion_control(control, &steps, checker),
        None => Ok(()),
    }
}

fn check_session(session: &mut Session, position: &str, paths: &[String], checker: &mut Checker<'_>) -> Result<()> {
    let steps = ["session", position];
    if session.paths.is_empty() {
        return checker.wrong(&["session", position, "paths"], "`paths` is empty", "at least one name of a path");
    }
    let (most, count) = (SubflowSet::CAPACITY, session.paths.len());
    if count > most {
        let expected = format!("at most {most}, because a connection has at most {most} subflows");
        return checker.wrong(&["session", position, "paths"], format!("`paths` has {count} paths"), expected);
    }
    for (i, path) in session.paths.iter().enumerate() {
        let at = ["session", position, "paths", &i.to_string()];
        checker.known(&at, "path", path, paths)?;
        if session.paths[..i].contains(path) {
            return checker.wrong(&at, format!("path `{path}` stands twice in `paths`"), "each path once");
        }
    }
    if let Some(transport) = &mut session.transport {
        algorithms::check_transport(transport, &["session", position, "transport"], checker)?;
    }
    content::check_video(&mut session.video, &steps, checker)?;
    content::check_player(&mut session.player, &session.video, &steps, checker)?;
    content::warn_of_domain(&session.player, &session.video, &steps, checker);
    content::check_statistics(session, &steps, checker)
}

fn check_traffic(traffic: &mut Traffic, position: &str, paths: &[String], checker: &Checker<'_>) -> Result<()> {
    checker.known(&["traffic", position, "path"], "path", &traffic.path, paths)?;
    algorithms::check_congestion_control(&mut traffic.congestion_control, &["traffic", position], checker)?;
    if traffic.stop.is_some_and(|stop| stop <= traffic.starts.start) {
        return checker.wrong(&["traffic", position, "stop"], "`stop` is not after `start`", "start < stop");
    }
    Ok(())
}

fn check_event(
    event: &mut Event,
    position: &str,
    (links, paths, sessions): (&[String], &[String], usize),
    trace_offset: Offset,
    checker: &mut Checker<'_>,
) -> Result<()> {
    let missing = |key, expected: &str, checker: &Checker<'_>| {
        Err(Mistake::missing(key, expected)
            .in_table(&format!("[[event]] {position}"), checker.at(&["event", position])))
    };
    if let Some(session) = event.session {
        return check_event_of_session(event, session as usize, position, sessions, checker);
    }
    for (key, given) in [("reads", event.reads), ("writes", event.writes)] {
        if given.is_some() {
            return checker.wrong(&["event", position, key], format!("`{key}` without `session`"), "`session`, too");
        }
    }
    match (&event.link, &event.path) {
        (Some(link), None) => checker.known(&["event", position, "link"], "link", link, links)?,
        (None, Some(path)) => {
            checker.known(&["event", position, "path"], "path", path, paths)?;
            return if event.cut.is_some() { Ok(()) } else { missing("down", "true or false", checker) };
        }
        (Some(_), Some(_)) => {
            let remedy =
                "one of them: leave out `path` to change the link, or `link` to take the client's interface down";
            return checker.wrong(&["event", position, "path"], "an event has both `link` and `path`", remedy);
        }
        (None, None) => {
            return missing("link", "`link`, `path` or `session`: the name or number of what changes", checker);
        }
    }
    let link = event.link.clone().unwrap_or_default();
    for (direction, key) in [(&mut event.up, "up"), (&mut event.down, "down")] {
        if let Some(direction) = direction {
            check_direction(direction, &link, trace_offset, &["event", position, key], checker)?;
        }
    }
    let says_nothing =
        |direction: &Option<DirectionSpec>| direction.as_ref().is_none_or(|d| *d == DirectionSpec::default());
    if event.cut.is_none() && says_nothing(&event.up) && says_nothing(&event.down) {
        return missing("down", "`down`, or a key of links that changes, such as `rate`", checker);
    }
    Ok(())
}

/// An event of a session stops its programs or lets them go on; `expand` has refused what changes links.
fn check_event_of_session(
    event: &Event,
    session: usize,
    position: &str,
    sessions: usize,
    checker: &Checker<'_>,
) -> Result<()> {
    for (key, name) in [("link", &event.link), ("path", &event.path)] {
        if name.is_some() {
            let message = format!("an event has both `session` and `{key}`");
            return checker.wrong(&["event", position, key], message, "one of them");
        }
    }
    if session >= sessions {
        let message = format!("`session` is {session}, but the scenario has {sessions}, counted from 0");
        return checker.wrong(&["event", position, "session"], message, "the position of a [[session]]");
    }
    if event.reads.is_none() && event.writes.is_none() {
        let expected = "`reads` or `writes`, true or false";
        return Err(Mistake::missing("reads", expected)
            .in_table(&format!("[[event]] {position}"), checker.at(&["event", position])));
    }
    Ok(())
}

/// Tries every change of a link on the link as it then is, in the order of time, in which the events are left.
fn check_changes(scenario: &mut Scenario, checker: &Checker<'_>) -> Result<()> {
    let mut order: Vec<usize> = (0..scenario.events.len()).collect();
    order.sort_by_key(|position| scenario.events[*position].at);
    let mut links = scenario.links.clone();
    for position in &order {
        let event = &scenario.events[*position];
        let Some(name) = &event.link else { continue };
        let link = &mut links[scenario.link_position(name)];
        for (own, change, which) in [(&mut link.down, &event.down, "down"), (&mut link.up, &event.up, "up")] {
            let Some(change) = change else { continue };
            *own = change.clone().or(std::mem::take(own));
            if let Err(error) = own.config().validate() {
                let message = format!("the event leaves link `{name}` ({which}) unusable: {error}");
                return checker.wrong(&["event", &position.to_string()], message, "");
            }
        }
    }
    scenario.events.sort_by_key(|event| event.at);
    Ok(())
}

/// A direction that never carries anything is a mistake: a rate of zero all the time that no event changes. To cut a
/// link, `down = true` in an event says so.
fn check_rates(scenario: &Scenario, checker: &Checker<'_>) -> Result<()> {
    for link in &scenario.links {
        let changes = |event: &&Event| event.link.as_deref() == Some(&link.name);
        let changed = |of: fn(&Event) -> Option<&DirectionSpec>| {
            let mut changes = scenario.events.iter().filter(changes).filter_map(of);
            changes.any(|direction| direction.rate.as_ref().is_some_and(|rate| !rate.is_zero()))
        };
        let directions =
            [(&link.down, changed(|e| e.down.as_ref()), "down"), (&link.up, changed(|e| e.up.as_ref()), "up")];
        for (direction, changed, key) in directions {
            if !changed && direction.rate.as_ref().is_some_and(Rate::is_zero) {
                let last = match direction.rate {
                    Some(Rate::Synthetic(_)) => "mean",
                    Some(Rate::Trace(_)) => "trace",
                    _ => "rate",
                };
                let steps = ["link", &link.name, key, "rate", last];
                let message = format!("the rate of [link.{}] ({key}) is zero all the time", link.name);
                return checker.wrong(&steps, message, "a rate above zero at some time");
            }
        }
    }
    Ok(())
}
