//! The capacity of paths over time: what figures draw behind their throughput.
//!
//! The links are built a second time, as both engines build them, and get the scenario's changes at their times.
//! Nothing is sent over them, so they say what the rates allow, whatever a run made of it.

use crate::recording::{PathRecording, SessionRecording};
use anabranch_network::{Change, Direction, Packet};
use anabranch_scenario::{Action, Scenario, directed_links};
use anabranch_units::{Duration, Instant, LinkDirection};

/// Fills in the capacity of each path: of its slowest downlink, as a mean over the interval of each sample.
pub(crate) fn fill(sessions: &mut [SessionRecording], scenario: &Scenario, seed: u64, interval: Duration) {
    for session in sessions {
        let samples: Vec<Instant> =
            session.time_s.iter().map(|at| Instant::ZERO + Duration::from_secs_f64(*at)).collect();
        for path in &mut session.paths {
            path.capacity_bps = of_path(path, scenario, seed, &samples, interval);
        }
    }
}

fn of_path(path: &PathRecording, scenario: &Scenario, seed: u64, samples: &[Instant], interval: Duration) -> Vec<f32> {
    let path = scenario.path_position(&path.path);
    let first = samples.first().map_or(Instant::ZERO, |first| Instant::ZERO + first.since(Instant::ZERO + interval));
    let bits = bits(scenario, seed, path, first, samples);
    let begins = std::iter::once(first).chain(samples.iter().copied());
    let rate = |((bits, from), to): ((f64, Instant), &Instant)| {
        let seconds = to.since(from).as_secs_f64();
        // In no time no limit was seen.
        if seconds > 0.0 { (bits / seconds) as f32 } else { f32::INFINITY }
    };
    bits.into_iter().zip(begins).zip(samples).map(rate).collect()
}

/// The bits that a path's slowest downlink allows in each slice of this length, from zero to a time.
pub(crate) fn of_slices(scenario: &Scenario, seed: u64, path: usize, until: Instant, len: Duration) -> Vec<f64> {
    let slices = until.as_nanos().div_ceil(len.as_nanos().max(1));
    let ends: Vec<Instant> = (1..=slices).map(|slice| Instant::ZERO + len * slice).collect();
    bits(scenario, seed, path, Instant::ZERO, &ends)
}

/// The bits that the slowest downlink of the path in this position allows until each of these times, from the one
/// before; the first from `first`.
fn bits(scenario: &Scenario, seed: u64, path: usize, first: Instant, ends: &[Instant]) -> Vec<f64> {
    let mut lowest = vec![f64::INFINITY; ends.len()];
    for link in scenario.links_of(&scenario.paths[path]) {
        let (mut downlink, mut from) = (Downlink::new(scenario, seed, link, path), first);
        for (lowest, to) in lowest.iter_mut().zip(ends) {
            *lowest = lowest.min(downlink.bits(from, *to));
            from = *to;
        }
    }
    lowest
}

/// No packet is ever sent.
struct Nothing;

impl Packet for Nothing {
    fn bytes(&self) -> u32 {
        0
    }

    fn duplicate(&self) -> Self {
        Nothing
    }
}

/// A link towards the client, with the changes that are to come.
struct Downlink {
    direction: Direction<Nothing>,
    /// Whether the client's interface on the path is up, and so anything can arrive.
    interface: bool,
    changes: std::vec::IntoIter<(Instant, What)>,
    next: Option<(Instant, What)>,
}

enum What {
    Link(Change),
    Interface(bool),
}

impl Downlink {
    fn new(scenario: &Scenario, seed: u64, link: usize, path: usize) -> Self {
        let links = directed_links::<Nothing>(scenario, seed).into_iter();
        let mut downlinks = links.filter(|link| link.direction == LinkDirection::Down);
        let direction = downlinks.nth(link).map(|downlink| downlink.link).expect("each link has a downlink");
        let mut changes = changes(scenario, link, path).into_iter();
        let next = changes.next();
        Downlink { direction, interface: true, changes, next }
    }

    /// Bits between two times, the second of which is the first of the next call.
    fn bits(&mut self, from: Instant, to: Instant) -> f64 {
        let (mut bits, mut since) = (0.0, from);
        while let Some((at, what)) = self.next.take_if(|(at, _)| *at < to) {
            bits += self.steady(since, at.max(since));
            since = since.max(at);
            match what {
                What::Link(change) => self.direction.change(at, change),
                What::Interface(up) => self.interface = up,
            }
            self.next = self.changes.next();
        }
        bits + self.steady(since, to)
    }

    fn steady(&self, from: Instant, to: Instant) -> f64 {
        // An unlimited rate times no time is no number.
        if self.interface && to > from { self.direction.capacity_bits(from, to) } else { 0.0 }
    }
}

fn changes(scenario: &Scenario, of_link: usize, of_path: usize) -> Vec<(Instant, What)> {
    let mut list = Vec::new();
    for event in &scenario.events {
        let at = Instant::ZERO + event.at;
        let action = event.action(scenario);
        match action {
            Action::Link { link, .. } if link == of_link => {
                list.extend(action.changes(LinkDirection::Down).into_iter().map(|change| (at, What::Link(change))));
            }
            Action::Path { path, down } if path == of_path => list.push((at, What::Interface(!down))),
            Action::Link { .. } | Action::Path { .. } | Action::Session { .. } => {}
        }
    }
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"
        schema = 1
        duration = "10 s"
        [link.a]
        rtt = "20 ms"
        rate = "2 Mb/s"
        [link.b]
        rtt = "20 ms"
        rate = { synthetic = "lte", mean = "3 Mb/s" }
        [path.one]
        links = ["a"]
        [path.both]
        links = ["b", "a"]
        [[session]]
        [[event]]
        at = "1500 ms"
        link = "a"
        rate = "4 Mb/s"
        [[event]]
        at = "3 s"
        link = "a"
        down = true
        [[event]]
        at = "4 s"
        link = "a"
        down = false
        [[event]]
        at = "5 s"
        path = "one"
        down = true
    "#;

    fn filled() -> Vec<PathRecording> {
        let scenario = anabranch_scenario::load(TEXT, "test", None, &[]).unwrap();
        let path = |name: &str| PathRecording { path: name.into(), ..PathRecording::default() };
        let time_s = (1..=6).map(f64::from).collect();
        let session =
            SessionRecording { time_s, paths: vec![path("one"), path("both")], ..SessionRecording::default() };
        let mut sessions = [session];
        fill(&mut sessions, &scenario, 1, Duration::from_secs(1));
        let [session] = sessions;
        session.paths
    }

    #[test]
    fn it_follows_the_scenarios_changes() {
        // The rate doubles in the middle of the second second; the link is cut in the fourth, the interface in the
        // last.
        assert_eq!(filled()[0].capacity_bps, [2e6, 3e6, 4e6, 0.0, 4e6, 0.0]);
    }

    #[test]
    fn it_is_that_of_the_slowest_link_whose_synthetic_rate_is_that_of_the_run() {
        let [one, both] = filled().try_into().unwrap();
        let scenario = anabranch_scenario::load(TEXT, "test", None, &[]).unwrap();
        let mut links = directed_links::<Nothing>(&scenario, 1).into_iter();
        let b = links.find(|link| link.name == "b" && link.direction == LinkDirection::Down).unwrap().link;
        let at = |s: u64| Instant::ZERO + Duration::from_secs(s);
        let alone: Vec<f32> = (0..5).map(|s| b.capacity_bits(at(s), at(s + 1)) as f32).collect();
        let expected: Vec<f32> = one.capacity_bps.iter().zip(&alone).map(|(a, b)| a.min(*b)).collect();
        assert_eq!(both.capacity_bps[..5], expected);
        assert!(alone.windows(2).any(|pair| pair[0] != pair[1]), "the rate varies");
        assert!(expected != one.capacity_bps[..5], "the synthetic rate matters");
    }
}
