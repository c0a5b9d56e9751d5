//! Traces and synthetic rates as a scenario names them.

use crate::schema::{LatencyUse, Rate, Scenario, Trace};
use crate::{Error, WarningKind, load};
use anabranch_network::{Change, DelayConfig, RateConfig};
use anabranch_units::{Bandwidth, Duration, LinkDirection};
use std::path::{Path, PathBuf};

/// A folder of files that goes away.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str, files: &[(&str, &[u8])]) -> Self {
        let path = std::env::temp_dir().join(format!("anabranch-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        for (file, content) in files {
            std::fs::write(path.join(file), content).unwrap();
        }
        Folder(path)
    }

    fn load(&self, text: &str) -> Result<Scenario, Error> {
        read(text, Some(&self.0))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What is left behind in a folder for temporary files does no harm.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn read(links: &str, directory: Option<&Path>) -> Result<Scenario, Error> {
    load(&format!("schema = 1\nduration = \"9 s\"\n{links}\n[[session]]\n"), "x.toml", directory, &[])
}

fn trace(rate: &Option<Rate>) -> &Trace {
    match rate {
        Some(Rate::Trace(trace)) => trace,
        other => panic!("{other:?}"),
    }
}

/// The rates of a table in Mb/s, each with its length in seconds.
fn steps(rate: &Option<Rate>) -> Vec<(f64, f64)> {
    match rate.as_ref().expect("a link has a rate").config() {
        RateConfig::Table(steps) => {
            steps.iter().map(|(length, rate)| (length.as_secs_f64(), rate.as_bps() as f64 / 1e6)).collect()
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_pair_of_traces_begins_at_the_scenario_s_offset_and_wraps_around() {
    let (wifi, lte) = (b"t,mbps\n0,1\n1,2\n2,3\n".as_slice(), b"t\tmbps\n5\t7\n6\t8\n7\t9\n8\t10\n".as_slice());
    let folder = Folder::new("pair", &[("wifi.csv", wifi), ("lte.tsv", lte)]);
    let links = "trace_offset = \"1500 ms\"\n[link.wifi]\nrate = { trace = \"wifi.csv\", duration = \"3 s\" }\n\
        [link.lte]\nrate = { trace = \"lte.tsv\", duration = \"3 s\" }\n\
        [link.own]\nrate = { trace = \"wifi.csv\", offset = \"2 s\" }";
    let scenario = folder.load(links).unwrap();
    let rates = scenario.links.iter().map(|link| steps(&link.down.rate)).collect::<Vec<_>>();
    assert_eq!(rates[0], [(0.5, 2.0), (1.0, 3.0), (1.0, 1.0), (0.5, 2.0)]);
    assert_eq!(rates[1], [(0.5, 8.0), (1.0, 9.0), (1.0, 10.0), (0.5, 7.0)]);
    assert_eq!(rates[2], [(1.0, 3.0), (1.0, 1.0), (1.0, 2.0)]);
    assert_eq!(scenario.links[0].up.rate, scenario.links[0].down.rate);
    // The resolved scenario states each trace's own offset.
    assert_eq!(load(&scenario.resolved(), "x.toml", None, &[]), Ok(scenario));
}

#[test]
fn a_recorded_latency_adds_to_the_delay_if_asked() {
    let json = br#"[{"duration_ms": 1000, "bandwidth_kbps": 5000, "latency_ms": 40},
                    {"duration_ms": 1000, "bandwidth_kbps": 6000, "latency_ms": 60}]"#;
    let folder = Folder::new("latency", &[("a.json", json), ("b.csv", b"t,mbps\n0,1\n")]);
    let link = |more: &str| format!("[link.a]\ndelay = \"10 ms\"\nrate = {{ trace = \"a.json\"{more} }}");
    let delays = |more: &str| {
        let scenario = folder.load(&link(more)).unwrap();
        assert_eq!(load(&scenario.resolved(), "x.toml", None, &[]).as_ref(), Ok(&scenario));
        match scenario.links[0].down.config().delay {
            DelayConfig::Constant(delay) => vec![delay.as_millis()],
            DelayConfig::Table(steps) => steps.iter().map(|(_, delay)| delay.as_millis()).collect(),
        }
    };
    assert_eq!(delays(""), [10]);
    assert_eq!(delays(", latency = \"round-trip\""), [30, 40]);
    assert_eq!(delays(", latency = \"one-way\""), [50, 70]);
    assert_eq!(delays(", latency = \"one-way\", offset = \"1 s\""), [70, 50]);
    let error = folder.load("[link.a]\nrate = { trace = \"b.csv\", latency = \"one-way\" }").unwrap_err();
    assert!(error.message.contains("no latency") && error.line == 4 && error.column > 20, "{error}");
}

#[test]
fn an_event_s_trace_brings_its_latency_and_a_delay_ends_it() {
    let json = br#"[{"duration_ms": 1000, "bandwidth_kbps": 5000, "latency_ms": 40}]"#;
    let folder = Folder::new("event", &[("a.json", json)]);
    let text = "[link.a]\nrtt = \"8 ms\"\nrate = \"1 Mb/s\"\n[[event]]\nat = \"1 s\"\nlink = \"a\"\n\
        rate = { trace = \"a.json\", latency = \"round-trip\" }\n[[event]]\nat = \"2 s\"\nlink = \"a\"\ndelay = \"3 ms\"";
    let scenario = folder.load(text).unwrap();
    let delays = scenario.events.iter().map(|event| {
        event.action(&scenario).changes(LinkDirection::Down).into_iter().find_map(|change| match change {
            Change::Delay(delay) => Some(delay.shortest().as_millis()),
            _ => None,
        })
    });
    assert_eq!(delays.collect::<Vec<_>>(), [Some(20), Some(3)]);
    assert_eq!(load(&scenario.resolved(), "x.toml", None, &[]), Ok(scenario));
}

#[test]
fn formats_are_recognised_or_named() {
    let files: [(&str, &[u8]); 3] = [
        ("m", b"\xef\xbb\xbf1\r\n2\r\n"),
        ("c", b"\xef\xbb\xbf0;5\r\n1;6\r\n"),
        ("j", b"[{\"duration_ms\":1,\"bandwidth_kbps\":2}]"),
    ];
    let folder = Folder::new("formats", &files);
    let mean = |said: &str| {
        let mut scenario = folder.load(&format!("[link.a]\nrate = {{ {said} }}")).unwrap_or_else(|e| panic!("{e}"));
        let mut again = load(&scenario.resolved(), "x.toml", None, &[]).unwrap();
        // So slow a link is warned of, where its rate is written.
        for scenario in [&mut again, &mut scenario] {
            assert!(scenario.warnings.drain(..).all(|warning| warning.kind != WarningKind::EventAfterEnd));
        }
        assert_eq!(again, scenario);
        scenario.links[0].down.config().rate.mean().as_bps()
    };
    assert_eq!([mean("trace = \"m\""), mean("trace = \"m\", format = \"mahimahi\"")], [12_000_000; 2]);
    assert_eq!(
        [mean("trace = \"c\", unit = \"kb/s\""), mean("trace = \"c\", format = \"columns\", unit = \"B/s\"")],
        [5500, 44]
    );
    assert_eq!([mean("trace = \"j\""), mean("trace = \"j\", format = \"json\", at_end = \"hold\"")], [2000; 2]);
}

#[test]
fn each_kind_of_mistake_names_the_trace_its_line_and_what_is_right() {
    // (the file's content, what the scenario says besides, the place, part of the message, part of the expectation)
    let cases: [(&[u8], &str, &str, &str, &str); 22] = [
        (b"", "unit = \"b/s\"", ":", "no line holds numbers", "a time and a rate on each line"),
        (b"", "format = \"mahimahi\"", ":", "no packet is ever delivered", "mahimahi"),
        (b"[]", "", ":", "the list is empty", "a list of objects"),
        (b"0,1\n1,-5\n", "unit = \"b/s\"", ":2: column 1:", "is -5", "not negative"),
        (b"1\n-5\n", "format = \"mahimahi\"", ":2:", "\"-5\" is no time in milliseconds", "mahimahi"),
        (b"[\n{\"duration_ms\": 1, \"bandwidth_kbps\": -5}]", "", ":2:", "`bandwidth_kbps` is -5", "not negative"),
        (b"0,1\n2,1\n1,1\n", "unit = \"b/s\"", ":3: column 0:", "before the previous", "ascending"),
        (b"3\n2\n", "format = \"mahimahi\"", ":2:", "before the previous", "mahimahi"),
        (b"0,1\n1,NaN\n", "unit = \"b/s\"", ":2: column 1:", "is NaN", "finite"),
        (b"1\nNaN\n", "format = \"mahimahi\"", ":2:", "\"NaN\"", "mahimahi"),
        (b"[{\"duration_ms\": 1,\n\"bandwidth_kbps\": NaN}]", "", ":2:", "expected", "a list of objects"),
        (b"0,1\n1,1e300\n", "unit = \"b/s\"", ":2: column 1:", "impossible; is it in another unit", "finite"),
        (b"1\n99999999999999\n", "format = \"mahimahi\"", ":2:", "\"99999999999999\"", "mahimahi"),
        (b"[{\"duration_ms\": 1, \"bandwidth_kbps\": 1e30}]", "", ":1:", "impossible", "finite"),
        (
            b"0 1\n1\n",
            "unit = \"b/s\"",
            ":2:",
            "the line has 1 fields, where others have 2",
            "the same number of fields",
        ),
        (
            b"0,1\n1,2\n",
            "unit = \"b/s\", column = 5",
            ":",
            "there is no column 5: the table has 2 columns",
            "from 0 to 1",
        ),
        (b"[{\"duration_ms\": 1, \"rate\": 2}]", "", ":1:", "unknown field `rate`", "`bandwidth_kbps`"),
        (b"0,1\n\x00\x01\x02", "unit = \"b/s\"", ":2:", "no text: it holds the byte 0x00", "UTF-8"),
        (b"\x1f\x8b\x08\x00", "", ":1:", "no text: it holds the byte 0x1f", "unpack"),
        (b"0,1\n1,2\n", "", ":", "in which unit", "one of b/s"),
        (b"0,1\n1,2\n", "format = \"mahimahi\"", ":1:", "is no time in milliseconds", "this looks like columns"),
        (b"1\n2\n", "unit = \"b/s\"", ":", "no time column: give an interval", "`interval` (--interval)"),
    ];
    for (content, said, place, message, expected) in cases {
        let folder = Folder::new("mistakes", &[("bad.txt", content)]);
        let rate = if said.is_empty() { String::new() } else { format!(", {said}") };
        let error = folder.load(&format!("[link.a]\nrate = {{ trace = \"bad.txt\"{rate} }}")).unwrap_err();
        assert_eq!((error.file.as_str(), error.line), ("x.toml", 4), "{error}");
        assert!(error.message.contains(&format!("bad.txt{place} ")), "{error}");
        assert!(error.message.contains(message), "{error}");
        assert!(error.expected.contains(expected), "{error}");
        assert_eq!(error.to_string().lines().count(), 1, "{error}");
    }
}

#[test]
fn impossible_parts_of_a_trace_are_refused() {
    let folder = Folder::new("parts", &[("a", b"500\n1000\n")]);
    let error =
        |said: &str| folder.load(&format!("[link.a]\nrate = {{ trace = \"a\", {said} }}")).unwrap_err().to_string();
    assert!(error("duration = \"0 s\"").contains("no packet is ever delivered"), "{}", error("duration = \"0 s\""));
    assert!(error("duration = \"400 ms\"").contains("no packet is ever delivered"));
    assert!(error("duration = \"100000 h\"").contains("more than 20000000 entries"));
    assert!(error("at_end = \"hold\"").contains("always repeats"));
    assert!(error("at_end = \"lop\"").contains("did you mean `loop`?"));
    assert!(error("latency = \"oneway\"").contains("did you mean `one-way`?"));
    assert!(error("format = \"mahimahy\"").contains("did you mean `mahimahi`?"));
}

#[test]
fn a_synthetic_rate_has_the_kind_s_parameters_but_for_those_that_are_given() {
    let link = |said: &str| read(&format!("[link.a]\nrate = {{ {said} }}"), None);
    let scenario = link("synthetic = \"lte\", mean = \"12 Mb/s\", outage = \"0 s\", spread = 2, seed = 7").unwrap();
    let Some(Rate::Synthetic(synthetic)) = &scenario.links[0].down.rate else { panic!() };
    let usual = (anabranch_network::SYNTHETIC_KINDS.find("lte").unwrap().create)();
    let model = synthetic.model();
    assert_eq!((model.spread, model.outage, model.headroom), (2.0, Duration::ZERO, usual.headroom));
    assert_eq!((synthetic.mean, synthetic.seed), (Bandwidth::from_mbps(12), Some(7)));
    assert_eq!(synthetic.period, Duration::from_secs(3600));
    assert_eq!(scenario.links[0].up.rate, scenario.links[0].down.rate);
    assert_eq!(load(&scenario.resolved(), "x.toml", None, &[]), Ok(scenario));
    let error = |said: &str| link(said).unwrap_err().to_string();
    assert!(error("synthetic = \"let\", mean = \"1 Mb/s\"").contains("did you mean `lte`?"));
    assert!(error("synthetic = \"lte\"").contains("no `mean`"));
    assert_eq!(
        error("synthetic = \"lte\", mean = \"1 Mb/s\", period = \"10 ms\""),
        "x.toml:4:55: `period` is 10 ms, not between a second and a week"
    );
    assert!(error("synthetic = \"lte\", mean = \"1 Mb/s\", noise = -1").contains("`noise` is -1"));
    assert!(error("synthetic = \"lte\", mean = \"1 Mb/s\", correlation_time = \"0 s\"").contains("above zero"));
    assert!(error("synthetic = \"lte\", mean = \"1 Mb/s\", spraed = 1").contains("did you mean `spread`?"));
}

#[test]
fn a_latency_may_be_left_out() {
    let folder = Folder::new("unused", &[("a.csv", b"t,mbps\n0,1\n")]);
    let scenario = folder.load("[link.a]\nrate = { trace = \"a.csv\" }").unwrap();
    assert_eq!(trace(&scenario.links[0].down.rate).latency, LatencyUse::Ignore);
}

#[test]
fn endpoints_know_the_mtu_unless_a_link_hides_it() {
    let first = |links: &str| {
        let plan = crate::plan(&read(links, None).unwrap(), 1).remove(0);
        (plan.server.paths[0].mtu, plan.client.paths[0].mtu, plan.server.mtu_discovery)
    };
    let link = "[link.a]\nrate = \"9 Mb/s\"\nmtu = 1400\n";
    assert_eq!(first(link), (1400, 1400, false));
    assert_eq!(first(&format!("{link}too_big = \"known\"\n")), (1400, 1400, false));
    for too_big in ["reported", "silent"] {
        assert_eq!(first(&format!("{link}too_big = \"{too_big}\"\n")), (1500, 1500, true));
        // The other link of the path says what the interfaces take.
        let two = "[link.b]\nrate = \"9 Mb/s\"\nmtu = 1450\n[path.p]\nlinks = [\"a\", \"b\"]\n";
        assert_eq!(first(&format!("{link}too_big = \"{too_big}\"\n{two}")), (1450, 1450, true));
    }
    // A link that changes its MTU during the run.
    let event = "[[event]]\nat = \"2 s\"\nlink = \"a\"\nmtu = 1300\ntoo_big = \"silent\"\n";
    assert_eq!(first(&format!("{link}{event}")), (1400, 1400, true));
    let error = read(&format!("{link}too_big = \"dropped\"\n"), None).unwrap_err().to_string();
    assert!(error.contains("too_big") && error.contains("silent"), "{error}");
}

#[test]
fn an_override_that_changes_nothing_because_each_direction_has_its_own_is_refused() {
    let link = "[link.wifi]\nrate = \"2 Mb/s\"\ndown = { loss = \"1 %\", rate = \"3 Mb/s\", delay = \"4 ms\" }\n";
    let overridden = |keys: &[(&str, &str)], more: &str| {
        let text = format!("schema = 1\nduration = \"9 s\"\n{link}{more}\n[[session]]\n");
        let keys: Vec<_> =
            keys.iter().map(|(key, value)| (format!("link.wifi.{key}"), format!("\"{value}\""))).collect();
        load(&text, "x.toml", None, &keys).map(|_| ()).map_err(|error| error.to_string())
    };
    let up = "up = { rate = \"1 Mb/s\", delay = \"3 ms\" }";
    for (key, value, more, message) in [
        ("loss", "5 %", "", "`loss` has no effect, because `down` has its own; expected `down.loss` in its place"),
        ("rate", "9 Mb/s", up, "`rate` has no effect, because `up` and `down` have their own; expected `up.rate` and"),
        ("rtt", "9 ms", up, "`rtt` has no effect, because `up` and `down` have their own; expected `up.delay` and"),
    ] {
        let error = overridden(&[(key, value)], more).unwrap_err();
        assert!(error.contains(message) && error.contains(&format!("link.wifi.{key}")), "{error}");
    }
    // The uplink takes it; and a later override is nearer on purpose.
    assert_eq!(overridden(&[("rate", "9 Mb/s")], ""), Ok(()));
    assert_eq!(overridden(&[("queue", "9 kB"), ("down.queue", "5 kB"), ("up.queue", "4 kB")], ""), Ok(()));
}
