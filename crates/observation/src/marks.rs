//! The scenario's events in a few words, for figures: which link or path, and what it changes from and to.

use crate::recording::Mark;
use anabranch_network::{Change, Loss, RateConfig};
use anabranch_scenario::{Action, DirectionSpec, Link, Scenario};
use anabranch_units::{Duration, Instant};

/// The events until `end`, such as "wifi cut" or "wifi 2 \u{2192} 0.5 Mb/s".
pub(crate) fn marks(scenario: &Scenario, end: Instant) -> Vec<Mark> {
    let mut links = scenario.links.clone();
    let happened = scenario.events.iter().filter(|event| Instant::ZERO + event.at <= end);
    let mut text = |action: &Action| match action {
        Action::Path { path, down } => {
            format!("{} interface {}", scenario.paths[*path].name, if *down { "down" } else { "up" })
        }
        Action::Session { session, reads, writes } => {
            let client = reads.map(|on| if on { "client reads again" } else { "client stops reading" });
            let server = writes.map(|on| if on { "server writes again" } else { "server stops writing" });
            let parts: Vec<&str> = client.into_iter().chain(server).collect();
            // One session needs no number.
            let whose = if scenario.sessions.len() == 1 { String::new() } else { format!("session {session}: ") };
            format!("{whose}{}", parts.join(", "))
        }
        Action::Link { link, cut, down, up } => {
            let mut parts = Vec::new();
            parts.extend(cut.map(|cut| if cut { "cut" } else { "restored" }.to_string()));
            parts.extend(changes(&mut links[*link], down.cloned(), up.cloned()));
            format!("{} {}", links[*link].name, parts.join(", "))
        }
    };
    happened.map(|event| Mark { at_s: event.at.as_secs_f64(), text: text(&event.action(scenario)) }).collect()
}

/// What an event changes of a link, one text per property; the link is changed.
fn changes(link: &mut Link, down: Option<DirectionSpec>, up: Option<DirectionSpec>) -> Vec<String> {
    let before = (link.down.clone(), link.up.clone());
    let (down, up) = (down.unwrap_or_default(), up.unwrap_or_default());
    let both = down == up;
    link.down = down.clone().or(before.0.clone());
    link.up = up.clone().or(before.1.clone());
    if both {
        let round_trip = |down: &DirectionSpec, up: &DirectionSpec| Some(down.delay? + up.delay?);
        let trips = (round_trip(&before.0, &before.1), round_trip(&link.down, &link.up));
        let rtt = down.delay.map(|_| format!("RTT {}", from_to(&trips.0.map(time), &trips.1.map(time))));
        return rtt.into_iter().chain(of_direction(&before.0, &DirectionSpec { delay: None, ..down })).collect();
    }
    // Figures show what comes to the viewer, so the downlink needs no word.
    let uplink = of_direction(&before.1, &up).into_iter().map(|text| format!("uplink {text}"));
    of_direction(&before.0, &down).into_iter().chain(uplink).collect()
}

/// What changes of a direction.
fn of_direction(before: &DirectionSpec, change: &DirectionSpec) -> Vec<String> {
    let mut list = Vec::new();
    let rate = |spec: &DirectionSpec| spec.rate.as_ref().map(|rate| rate_text(&rate.config()));
    list.extend(change.rate.as_ref().map(|_| from_to(&rate(before), &rate(change))));
    let delay = |spec: &DirectionSpec| spec.delay.map(time);
    list.extend(change.delay.map(|_| format!("delay {}", from_to(&delay(before), &delay(change)))));
    let loss = |spec: &DirectionSpec| spec.loss.as_ref().and_then(loss_share);
    list.extend(change.loss.as_ref().map(|_| format!("loss {}", from_to(&loss(before), &loss(change)))));
    let other = |change: &Change| match change {
        // These are above, with their values.
        Change::Rate(_) | Change::Delay(_) | Change::Loss(_) => None,
        Change::Mtu(_) => Some("MTU"),
        Change::ReportsTooBig(_) => Some("too-big packets"),
        change => change.key(),
    };
    list.extend(change.changes().iter().filter_map(other).map(str::to_string));
    list
}

/// A number and its unit.
type Quantity = (String, &'static str);

/// "2 \u{2192} 0.5 Mb/s"; the unit is written once if it is the same, and what is not known or did not change is left
/// out.
fn from_to(before: &Option<Quantity>, after: &Option<Quantity>) -> String {
    match (before, after) {
        (_, None) => "changes".to_string(),
        (Some((old, unit)), Some((new, same))) if unit == same && old != new => format!("{old} \u{2192} {new} {unit}"),
        (Some((old, unit)), Some((new, other))) if unit != other => format!("{old} {unit} \u{2192} {new} {other}"),
        (_, Some((new, unit))) => format!("{new} {unit}").trim_end().to_string(),
    }
}

/// A rate; one that varies has a tilde and its mean.
fn rate_text(rate: &RateConfig) -> Quantity {
    let varies = !matches!(rate, RateConfig::Constant(_) | RateConfig::TokenBucket(_));
    let about = if varies { "~" } else { "" };
    let mean = rate.mean();
    if mean == anabranch_units::Bandwidth::INFINITE {
        return ("unlimited".to_string(), "");
    }
    let bps = mean.as_bps() as f64;
    let (value, unit) = if bps >= 1e9 { (bps / 1e9, "Gb/s") } else { (bps / 1e6, "Mb/s") };
    (format!("{about}{}", short(value)), unit)
}

fn time(time: Duration) -> Quantity {
    (short(time.as_secs_f64() * 1e3), "ms")
}

/// The share of independent losses; other models have no single number.
fn loss_share(loss: &Loss) -> Option<Quantity> {
    match loss {
        Loss::Bernoulli(bernoulli) => Some((short(bernoulli.share.as_f64() * 100.0), "%")),
        _ => None,
    }
}

/// Three digits after the point at most, and no zeros at the end.
fn short(value: f64) -> String {
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NETWORK: &str = r#"
        schema = 1
        duration = "100 s"
        [link.wifi]
        rtt = "20 ms"
        rate = "2 Mb/s"
        [[session]]
    "#;

    /// What each event is called, with the keys of one event per text.
    fn texts(events: &[&str]) -> Vec<String> {
        let events = events.iter().map(|keys| format!("[[event]]\nat = \"1 s\"\n{keys}\n")).collect::<String>();
        let scenario = anabranch_scenario::load(&format!("{NETWORK}{events}"), "test", None, &[]).unwrap();
        let end = Instant::ZERO + Duration::from_secs(50);
        marks(&scenario, end).into_iter().map(|mark| mark.text).collect()
    }

    #[test]
    fn a_text_says_what_changes_from_which_value_to_which() {
        let of_wifi = |keys: &str| format!("link = \"wifi\"\n{keys}");
        let events = [
            of_wifi("down = true"),
            of_wifi("down = false\nrate = \"500 kb/s\""),
            of_wifi("rate = { synthetic = \"lte\", mean = \"3 Mb/s\" }"),
            of_wifi("rtt = \"60 ms\""),
            of_wifi("loss = \"1.5 %\""),
            of_wifi("queue = \"100 kB\""),
            of_wifi("too_big = \"reported\""),
            of_wifi("up.rate = \"1 Mb/s\""),
            "path = \"wifi\"\ndown = true".to_string(),
        ];
        let expected = [
            "wifi cut",
            "wifi restored, 2 \u{2192} 0.5 Mb/s",
            "wifi 0.5 \u{2192} ~3 Mb/s",
            "wifi RTT 20 \u{2192} 60 ms",
            "wifi loss 0 \u{2192} 1.5 %",
            "wifi queue",
            "wifi too-big packets",
            "wifi uplink ~3 \u{2192} 1 Mb/s",
            "wifi interface down",
        ];
        assert_eq!(texts(&events.each_ref().map(String::as_str)), expected);
    }

    #[test]
    fn what_lies_after_the_end_has_no_mark() {
        let scenario = anabranch_scenario::load(
            &format!("{NETWORK}[[event]]\nat = \"60 s\"\nlink = \"wifi\"\ndown = true"),
            "test",
            None,
            &[],
        );
        assert_eq!(marks(&scenario.unwrap(), Instant::ZERO + Duration::from_secs(50)), []);
    }
}
