//! What a scenario leaves to the run's seed.

use crate::schema::{DirectionSpec, Offset, Rate, Scenario, Trace};
use anabranch_network::Streams;
use rand_chacha::rand_core::Rng as _;
use std::borrow::Cow;

/// The name of the stream that moves traces.
const OFFSET: &str = "trace/offset";

impl Scenario {
    /// Whether another seed gives another run: a link or a beginning is random. Keys and sequence numbers of
    /// connections, which are drawn as well, have no influence.
    pub fn seed_matters(&self) -> bool {
        let spreads = self.sessions.iter().map(|session| session.starts.start_spread);
        let mut spreads = spreads.chain(self.traffic.iter().map(|traffic| traffic.starts.start_spread));
        let shared = self.trace_offset;
        spreads.any(|spread| !spread.is_zero())
            || directions(self).any(|(_, direction)| direction.is_random(shared == Offset::Random))
    }

    /// The scenario of one seed: traces with a random offset begin where the seed says. An engine runs this one.
    ///
    /// # Panics
    /// If the scenario was not made by [`load`](crate::load).
    pub fn of_seed(&self, seed: u64) -> Cow<'_, Scenario> {
        let shared = self.trace_offset == Offset::Random;
        let moves = |direction: &DirectionSpec| direction.trace().is_some_and(|trace| trace.begins_anywhere(shared));
        if !directions(self).any(|(_, direction)| moves(direction)) {
            return Cow::Borrowed(self);
        }
        let mut own = self.clone();
        let links = own.links.iter_mut().flat_map(|link| [(&link.name, &mut link.up), (&link.name, &mut link.down)]);
        let events = own.events.iter_mut().flat_map(|event| {
            let name = event.link.as_ref();
            let both = [(name, event.up.as_mut()), (name, event.down.as_mut())];
            both.into_iter().filter_map(|(name, direction)| Some((name?, direction?)))
        });
        for (link, direction) in links.chain(events) {
            if let Some(Rate::Trace(trace)) = &mut direction.rate
                && trace.begins_anywhere(shared)
            {
                trace.begin_at(draw(seed, link, trace));
            }
        }
        Cow::Owned(own)
    }
}

/// Which part of the recording is skipped, in units of 2^-64 of it. All traces without an offset of their own follow
/// one draw, so that those which were recorded together stay together; both directions of a link do so in any case.
fn draw(seed: u64, link: &str, trace: &Trace) -> u64 {
    let own = trace.offset == Some(Offset::Random);
    let name = if own { format!("link/{link}") } else { "scenario".to_owned() };
    Streams::new(seed, name).stream(OFFSET).next_u64()
}

/// The directions of all links, and what events change of them, each with its link's name.
fn directions(scenario: &Scenario) -> impl Iterator<Item = (&str, &DirectionSpec)> {
    let links = scenario.links.iter().flat_map(|link| [(&link.name, &link.up), (&link.name, &link.down)]);
    let links = links.map(|(name, direction)| (name.as_str(), direction));
    let events = scenario.events.iter().flat_map(|event| {
        let name = event.link.as_deref().unwrap_or_default();
        event.up.iter().chain(&event.down).map(move |direction| (name, direction))
    });
    links.chain(events)
}

#[cfg(test)]
mod tests {
    use crate::{DirectionSpec, Rate, Scenario, load};
    use anabranch_network::RateConfig;
    use anabranch_units::{Bandwidth, Duration};
    use std::path::Path;

    /// Ten steps of a second, 1 Mb/s to 10 Mb/s; the second file is half as long.
    fn recordings(directory: &Path) {
        let table = |steps: u32| (0..steps).map(|n| format!("{n},{}\n", n + 1)).collect::<String>();
        for (name, steps) in [("wifi.csv", 10), ("lte.csv", 5)] {
            std::fs::write(directory.join(name), format!("t,mbps\n{}", table(steps))).unwrap();
        }
    }

    fn directory(test: &str) -> std::path::PathBuf {
        let directory = std::env::temp_dir().join(format!("anabranch-seed-{test}-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        recordings(&directory);
        directory
    }

    fn scenario(directory: &Path, text: &str) -> Result<Scenario, String> {
        let text = format!("schema = 1\nduration = \"5 s\"\n{text}\n[[session]]\n");
        load(&text, "x.toml", Some(directory), &[]).map_err(|error| error.to_string())
    }

    /// The rates of the trace's steps in Mb/s, from its beginning on, and the length of the first.
    fn steps(direction: &DirectionSpec) -> (Vec<u64>, Duration) {
        let Some(Rate::Trace(_)) = &direction.rate else { panic!("a trace") };
        let RateConfig::Table(steps) = direction.config().rate else { panic!("a table") };
        let list: Vec<_> = steps.iter().collect();
        (list.iter().map(|(_, rate)| rate.as_bps() / 1_000_000).collect(), list[0].0)
    }

    #[test]
    fn a_random_offset_is_a_rotation_that_the_seed_draws() {
        let directory = directory("rotation");
        let text = "[link.wifi]\nrate = { trace = \"wifi.csv\", offset = \"random\" }\n";
        let scenario = scenario(&directory, text).unwrap();
        let begins: Vec<_> = (1..9).map(|seed| steps(&scenario.of_seed(seed).links[0].down)).collect();
        let again: Vec<_> = (1..9).map(|seed| steps(&scenario.of_seed(seed).links[0].down)).collect();
        assert_eq!(begins, again);
        assert!(begins.iter().any(|one| *one != begins[0]), "{begins:?}");
        for (rates, _) in &begins {
            let next = |rate: u64| rate % 10 + 1;
            assert!(rates.windows(2).all(|pair| pair[1] == next(pair[0])), "{rates:?}");
        }
        let own = scenario.of_seed(3);
        assert_eq!(steps(&own.links[0].down), steps(&own.links[0].up), "both directions follow one recording");
        std::fs::remove_dir_all(directory).unwrap();
    }

    #[test]
    fn traces_follow_one_draw_of_the_scenario_and_an_own_draw_each() {
        let directory = directory("draws");
        let text = |shared: &str, own: &str| {
            format!(
                "{shared}[link.wifi]\nrate = {{ trace = \"wifi.csv\", duration = \"5 s\"{own} }}\n\
                 [link.lte]\nrate = {{ trace = \"lte.csv\", duration = \"5 s\"{own} }}\n"
            )
        };
        let pair = scenario(&directory, &text("trace_offset = \"random\"\n", "")).unwrap();
        let apart = scenario(&directory, &text("", ", offset = \"random\"")).unwrap();
        let begins = |scenario: &Scenario, seed| {
            let own = scenario.of_seed(seed);
            (steps(&own.links[0].down), steps(&own.links[1].down))
        };
        assert!((1..9).map(|seed| begins(&pair, seed)).all(|(wifi, lte)| wifi == lte));
        assert!((1..9).map(|seed| begins(&apart, seed)).any(|(wifi, lte)| wifi != lte));
        // The resolved scenario draws the same.
        let again = load(&pair.resolved(), "y.toml", None, &[]).unwrap();
        assert_eq!(begins(&again, 4), begins(&pair, 4));
        std::fs::remove_dir_all(directory).unwrap();
    }

    #[test]
    fn rates_are_scaled_and_what_cannot_be_is_refused() {
        let directory = directory("scale");
        let trace = |keys: &str| scenario(&directory, &format!("[link.a]\nrate = {{ trace = \"lte.csv\", {keys} }}\n"));
        let half = trace("scale = 2.0").unwrap();
        assert_eq!(steps(&half.links[0].down).0, [2, 4, 6, 8, 10]);
        let Some(Rate::Trace(read)) = &half.links[0].down.rate else { panic!("a trace") };
        assert_eq!(read.scale, 2.0);
        assert_eq!(half.links[0].down.config().rate.mean(), Bandwidth::from_mbps(6));
        for (keys, part) in [
            ("scale = 0", "`scale` is zero; expected a factor above zero"),
            ("scale = -1.0", "a number from 0 to 1000000"),
            ("offset = \"random\", at_end = \"hold\"", "expected at_end = \"loop\""),
            ("offset = \"rendom\"", "expected a time such as \"30 s\", or \"random\""),
        ] {
            let error = trace(keys).unwrap_err();
            assert!(error.starts_with("x.toml:") && error.contains(part), "{keys}: {error}");
        }
        std::fs::remove_dir_all(directory).unwrap();
    }

    #[test]
    fn the_seed_matters_where_something_is_random() {
        let directory = directory("matters");
        let link = |keys: &str| format!("[link.a]\nrate = \"8 Mb/s\"\n{keys}\n");
        let traced = |keys: &str| format!("[link.a]\nrate = {{ trace = \"lte.csv\"{keys} }}\n");
        let synthetic = |keys: &str| format!("[link.a]\nrate = {{ synthetic = \"lte\", mean = \"8 Mb/s\"{keys} }}\n");
        let event = "[[event]]\nat = \"1 s\"\nlink = \"a\"\nloss = \"1 %\"\n";
        for (matters, text) in [
            (false, link("")),
            (false, link("loss = { kind = \"every-nth\", n = 50 }")),
            (false, traced("")),
            (false, traced(", offset = \"2 s\"")),
            (false, synthetic(", seed = 3")),
            (true, link("loss = \"1 %\"")),
            (true, link("queue = { kind = \"red\", limit = \"64 kB\" }")),
            (true, link("rtt = \"20 ms\"\njitter = { kind = \"uniform\", half_width = \"1 ms\" }")),
            (true, link("duplication = \"1 %\"")),
            (true, traced(", offset = \"random\"")),
            (true, format!("trace_offset = \"random\"\n{}", traced(""))),
            (true, synthetic("")),
            (true, link(event)),
            (true, link("[[session]]\nstart_spread = \"1 s\"")),
        ] {
            assert_eq!(scenario(&directory, &text).unwrap().seed_matters(), matters, "{text}");
        }
        std::fs::remove_dir_all(directory).unwrap();
    }
}
