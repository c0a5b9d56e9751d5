use super::*;
use crate::Error;
use anabranch_network::loss::Bernoulli;
use anabranch_network::{Change, ConstantConfig, Loss, LossAt, QueueConfig, TokenBucketConfig};
use anabranch_stack::connection::{Commit, Failover, Protocol};
use anabranch_units::{Bandwidth, Bytes, Duration, LinkDirection, Ratio};
use proptest::prelude::*;

/// The design's example, with algorithms that every version has.
const EXAMPLE: &str = r#"
schema = 1
question = "Does staying on a path help when the short path is lossy?"
duration = "700 s"

[transport]
protocol = "mptcp"
scheduler = "min-rtt"
congestion_control = "newreno"

[link.wifi]
rtt = "50 ms"
rate = "2 Mb/s"
queue = "64 kB"
loss = "2 %"
[link.lte]
down = { rate = "2 Mb/s", delay = "50 ms", queue = "64 kB" }
up   = { rate = "1 Mb/s", delay = "50 ms" }
mtu = 1500
overhead = "14 B"

[path.wifi]
links = ["wifi"]
[path.lte]
links = ["lte"]

[[session]]
paths = ["wifi", "lte"]
video = { kind = "progressive", size = "409 MB", rate = "5.24 Mb/s", fps = 24 }
player = { kind = "vlc" }
count = 1
start = "0 s"

[[traffic]]
kind = "tcp"
path = "wifi"
congestion_control = "newreno"

[[event]]
at = "120 s"
link = "wifi"
down = true
"#;

fn example(overrides: &[(&str, &str)]) -> Result<Scenario, Error> {
    let overrides: Vec<_> = overrides.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect();
    load(EXAMPLE, "example.toml", None, &overrides)
}

/// The error of the example with one line changed, and the number of that line.
fn broken(line: &str, by: &str) -> (Error, usize) {
    let number = EXAMPLE.lines().position(|l| l == line).unwrap_or_else(|| panic!("no line `{line}`")) + 1;
    let text = EXAMPLE.replacen(line, by, 1);
    (load(&text, "broken.toml", None, &[]).expect_err(by), number)
}

#[test]
fn the_design_s_example_means_what_it_says() {
    let scenario = example(&[]).unwrap();
    let [wifi, lte] = &scenario.links[..] else { panic!() };
    assert_eq!((wifi.down.delay, wifi.up.delay), (Some(Duration::from_millis(25)), Some(Duration::from_millis(25))));
    assert_eq!((wifi.down.rate.clone(), wifi.up.rate.clone()), (mbps(2), mbps(2)));
    assert_eq!(wifi.down.loss, bernoulli(20_000_000, LossAt::Exit));
    assert_eq!(wifi.up.loss, Some(Loss::NONE));
    assert_eq!((lte.down.rate.clone(), lte.up.rate.clone()), (mbps(2), mbps(1)));
    assert_eq!((lte.up.overhead, lte.down.overhead, lte.up.mtu), (Some(14), Some(14), Some(1500)));
    assert_eq!(queue_of(&lte.up), QueueConfig::drop_tail_bytes(64_000));
    assert_eq!(scenario.transport.protocol, Protocol::Mptcp);
    let [event] = &scenario.events[..] else { panic!() };
    assert_eq!(event.at, Duration::from_secs(120));
    let action = event.action(&scenario);
    assert_eq!(action, Action::Link { link: 0, cut: Some(true), down: None, up: None });
    assert_eq!(
        LinkDirection::BOTH.map(|direction| action.changes(direction)),
        [[Change::Up(false)], [Change::Up(false)]]
    );
    assert_eq!(scenario.paths_of(&scenario.sessions[0]), [0, 1]);
}

fn mbps(n: u64) -> Option<Rate> {
    Some(Rate::Constant(ConstantConfig { rate: Bandwidth::from_mbps(n) }))
}

fn bernoulli(share: u64, at: LossAt) -> Option<Loss> {
    Some(Loss::Bernoulli(Bernoulli { share: Ratio(share).into(), at }))
}

fn queue_of(direction: &DirectionSpec) -> QueueConfig {
    direction.queue.clone().expect("a link has a queue")
}

#[test]
fn a_path_per_link_is_made_where_none_is_written() {
    let text =
        "schema = 1\nduration = \"1 s\"\n[link.b]\nrate = \"1 Mb/s\"\n[link.a]\nrate = \"1 Mb/s\"\n[[session]]\n";
    let scenario = load(text, "x", None, &[]).unwrap();
    let names: Vec<_> = scenario.paths.iter().map(|p| p.name.as_str()).collect();
    assert_eq!(names, ["b", "a"]);
    assert_eq!(scenario.sessions[0].paths, ["b", "a"]);
    assert_eq!(scenario.sessions[0].player.kind, "bulk");
}

/// A line of the example, what stands there instead, a part of the message, a part of the expectation, the nearest
/// name.
type WrongLine = (&'static str, &'static str, &'static str, &'static str, Option<&'static str>);

const WRONG_LINES: &[WrongLine] = &[
    ("player = { kind = \"vlc\" }", "player = 3", "`player` is an integer", "", None),
    ("player = { kind = \"vlc\" }", "player = \"vcl\"", "player `vcl`", "vlc", Some("vlc")),
    ("scheduler = \"min-rtt\"", "scheduler = { x = 3 }", "no `name`", "a table with `name`", None),
    ("scheduler = \"min-rtt\"", "initial_window = 2000", "`initial_window` is 2000", "from 1 to 1000", None),
    ("scheduler = \"min-rtt\"", "pacing = 1", "`pacing` is an integer", "true or false", None),
    (
        "scheduler = \"min-rtt\"",
        "failover = \"legacy\"\nkernel = \"upstream\"",
        "`subflow_windows = true` needs `failover = \"upstream\"`",
        "or `subflow_windows = false`",
        None,
    ),
    ("scheduler = \"min-rtt\"", "kernel = \"upstraem\"", "`upstraem`", "legacy, upstream", Some("upstream")),
    ("paths = [\"wifi\", \"lte\"]", "paths = \"wifi\"", "`paths` is a text", "a list of names", None),
    ("queue = \"64 kB\"", "queue = { kind = \"red\" }", "queue has no `limit`", "100 packets", None),
    ("mtu = 1500", "mtu = 70000", "`mtu` is 70000", "from 0 to 65575", None),
    ("loss = \"2 %\"", "down = true", "`down` is true or false", "a table", None),
    ("rate = \"2 Mb/s\"", "raet = \"2 Mb/s\"", "unknown key in [link.wifi]: `raet`", "rate", Some("rate")),
    ("rate = \"2 Mb/s\"", "rate = \"2 Mbps\"", "`Mbps` in `2 Mbps` is no unit", "Mb/s", Some("Mb/s")),
    ("rate = \"2 Mb/s\"", "rate = \"-2 Mb/s\"", "negative", "a rate", None),
    ("rate = \"2 Mb/s\"", "rate = 2", "no unit", "a rate", None),
    ("rate = \"2 Mb/s\"", "rate = true", "`rate` is true or false", "a rate", None),
    ("rtt = \"50 ms\"", "rtt = \"50 kB\"", "`kB`", "a time", None),
    ("loss = \"2 %\"", "loss = \"200 %\"", "more than all", "a share", None),
    ("queue = \"64 kB\"", "queue = \"100 B\"", "cannot hold one packet", "", None),
    ("queue = \"64 kB\"", "queue = { kind = \"redd\", limit = \"64 kB\" }", "queue `redd`", "drop-tail", Some("red")),
    ("scheduler = \"min-rtt\"", "scheduler = \"minrtt\"", "scheduler `minrtt`", "min-rtt", Some("min-rtt")),
    ("scheduler = \"min-rtt\"", "path_policy = \"full-mash\"", "path policy `full-mash`", "pud", Some("full-mesh")),
    ("scheduler = \"min-rtt\"", "scheduler = { name = \"min-rtt\", x = 1 }", "option `x`", "", None),
    ("congestion_control = \"newreno\"", "congestion_control = \"reno\"", "congestion control `reno`", "newreno", None),
    ("protocol = \"mptcp\"", "protocol = \"mtcp\"", "`protocol`: `mtcp`", "mptcp, tcp", Some("mptcp")),
    ("links = [\"wifi\"]", "links = [\"wify\"]", "link `wify`", "wifi, lte", Some("wifi")),
    ("paths = [\"wifi\", \"lte\"]", "paths = [\"wifi\", \"let\"]", "path `let`", "wifi, lte", Some("lte")),
    ("paths = [\"wifi\", \"lte\"]", "paths = [\"wifi\", \"wifi\"]", "stands twice", "once", None),
    ("player = { kind = \"vlc\" }", "player = { kind = \"vcl\" }", "player `vcl`", "vlc", Some("vlc")),
    ("player = { kind = \"vlc\" }", "player = { kind = \"bulk\" }", "needs a number of bytes", "", None),
    ("player = { kind = \"vlc\" }", "player = { kind = \"vlc\", duration = \"3 s\" }", "option `duration`", "", None),
    ("count = 1", "count = 0", "`count` is 0", "1", None),
    (
        "loss = \"2 %\"",
        "jitter = { kind = \"percentiles\", p50 = \"2 ms\", p99 = \"1 ms\", p999 = \"3 ms\" }",
        "out of order",
        "p50 <= p99",
        None,
    ),
    ("start = \"0 s\"", "strat = \"0 s\"", "`strat`", "start", Some("start")),
    ("path = \"wifi\"", "path = \"wi-fi\"", "path `wi-fi`", "wifi", Some("wifi")),
    ("link = \"wifi\"", "link = \"lta\"", "link `lta`", "lte", Some("lte")),
    ("duration = \"700 s\"", "duration = \"0 s\"", "zero", "above zero", None),
    ("schema = 1", "schema = 2", "schema 2", "schema = 1", None),
    ("[[traffic]]", "[[trafic]]", "`trafic`", "traffic", Some("traffic")),
    ("down = true", "dwon = true", "`dwon`", "down", Some("down")),
    ("at = \"120 s\"", "at = 120", "no unit", "a time", None),
    ("count = 1", "count = = 1", "no valid TOML", "", None),
];

#[test]
fn each_mistake_names_its_line_what_was_expected_and_the_nearest_name() {
    for &(line, by, message, expected, nearest) in WRONG_LINES {
        let (error, number) = broken(line, by);
        assert_eq!((error.file.as_str(), error.line), ("broken.toml", number), "{by}: {error}");
        assert!(error.column > 0, "{by}: {error}");
        assert!(error.message.contains(message), "{by}: {error}");
        assert!(error.expected.contains(expected), "{by}: {error}");
        assert_eq!(error.nearest.as_deref(), nearest, "{by}: {error}");
        assert_eq!(error.to_string().lines().count(), 1, "{error}");
    }
}

#[test]
fn a_scenario_without_a_path_or_a_session_is_refused() {
    let error = |text| load(text, "x", None, &[]).unwrap_err();
    assert!(error("schema = 1\nduration = \"1 s\"\n[[session]]\n").message.contains("no path"));
    let text = "schema = 1\nduration = \"1 s\"\n[link.a]\nrate = \"1 Mb/s\"\n";
    assert!(error(text).message.contains("no session"));
    assert!(error("").message.contains("no `schema`"));
    assert!(
        error("schema = 1\nduration = \"1 s\"\n[link.a]\nrtt = \"1 ms\"\n[[session]]").message.contains("no `rate`")
    );
}

#[test]
fn more_paths_than_a_connection_can_have_subflows_are_refused() {
    let listed = vec!["\"wifi\""; 65].join(", ");
    let (error, line) = broken("paths = [\"wifi\", \"lte\"]", &format!("paths = [{listed}]"));
    assert_eq!(error.line, line);
    assert!(error.message.contains("has 65 paths") && error.expected.contains("at most 64"), "{error}");
}

#[test]
fn what_excludes_each_other_says_which_of_them_to_leave_out() {
    let both = r#"[{at = "1 s", link = "wifi", path = "wifi", down = true}]"#;
    let error = example(&[("event", both)]).unwrap_err();
    assert!(error.message.contains("both `link` and `path`"), "{error}");
    assert!(error.expected.contains("leave out `path`") && error.expected.contains("or `link`"), "{error}");
    let error = example(&[("link.wifi.delay", "5 ms")]).unwrap_err();
    assert!(error.message.contains("both `rtt` and `delay`"), "{error}");
    assert!(error.expected.contains("leave out `delay`") && error.expected.contains("leave out `rtt`"), "{error}");
}

#[test]
fn an_event_that_makes_a_link_unusable_is_refused_where_it_stands() {
    let (error, line) = broken("down = true", "queue = \"100 B\"");
    // The event's table begins three lines above.
    assert_eq!(error.line, line - 3);
    assert!(error.message.contains("link `wifi`"), "{error}");
}

#[test]
fn an_event_of_a_session_stops_its_programs() {
    let action = |by: &str| -> Result<_, Error> {
        let text = EXAMPLE.replacen("link = \"wifi\"\ndown = true", by, 1);
        let scenario = load(&text, "x", None, &[])?;
        let Action::Session { session, reads, writes } = scenario.events[0].action(&scenario) else { panic!("{by}") };
        Ok((session, reads, writes))
    };
    assert_eq!(action("session = 0\nreads = false").unwrap(), (0, Some(false), None));
    assert_eq!(action("session = 0\nreads = true\nwrites = false").unwrap(), (0, Some(true), Some(false)));
    for (by, message) in [
        ("session = 0", "reads"),
        ("session = 1\nreads = false", "`session` is 1, but the scenario has 1"),
        ("session = 0\nloss = \"1 %\"", "an event of a session cannot change `loss`"),
        ("session = 0\nlink = \"wifi\"\nreads = false", "both `session` and `link`"),
        ("link = \"wifi\"\nreads = false", "`reads` without `session`"),
        ("path = \"wifi\"\nwrites = false", "an event of a path cannot change `writes`"),
    ] {
        let error = action(by).expect_err(by);
        assert!(error.message.contains(message), "{by}: {error}");
    }
}

#[test]
fn overrides_are_read_as_toml_and_else_as_text() {
    let scenario = example(&[
        ("transport.congestion_control", "newreno"),
        ("transport.protocol", "\"tcp\""),
        ("link.wifi.loss", "\"1 %\""),
        ("link.wifi.down.rate", "7 Mb/s"),
        ("link.lte.queue", "50 packets"),
        ("link.lte.mtu", "1400"),
        ("session.0.player.kind", "vlc-2"),
        ("session.0.count", "3"),
        ("event.0.at", "9 s"),
    ])
    .unwrap();
    let [wifi, lte] = &scenario.links[..] else { panic!() };
    assert_eq!(scenario.transport.protocol, Protocol::Tcp);
    assert_eq!(wifi.down.loss, bernoulli(10_000_000, LossAt::Exit));
    assert_eq!((wifi.down.rate.clone(), wifi.up.rate.clone()), (mbps(7), mbps(2)));
    // The downlink has its own queue; the uplink follows the link.
    assert_eq!(queue_of(&lte.up), QueueConfig::drop_tail_packets(50));
    assert_eq!(queue_of(&lte.down), QueueConfig::drop_tail_bytes(64_000));
    assert_eq!((lte.up.mtu, lte.down.mtu), (Some(1400), Some(1400)));
    assert_eq!(scenario.sessions[0].player.kind, "vlc-2");
    assert_eq!(scenario.sessions[0].starts.count, 3);
    assert_eq!(scenario.events[0].at, Duration::from_secs(9));
}

#[test]
fn mistakes_in_overrides_name_the_override() {
    let error = |key, value| example(&[(key, value)]).unwrap_err();
    let e = error("transport.schedular", "min-rtt");
    assert_eq!((e.file.as_str(), e.line), ("--set transport.schedular=min-rtt", 0));
    assert_eq!(e.nearest.as_deref(), Some("scheduler"));
    let e = error("link.wify.rate", "1 Mb/s");
    assert_eq!((e.file.as_str(), e.nearest.as_deref()), ("--set link.wify.rate=1 Mb/s", Some("wifi")));
    assert!(error("session.4.count", "1").message.contains("`4` is no position"));
    assert!(error("session.x", "1").message.contains("`x` is no position"));
    assert!(error("link..rate", "1").message.contains("no dotted key"));
    assert_eq!(error("link.wifi.rate", "fast").file, "--set link.wifi.rate=fast");
    assert!(error("session.0.video.kind", "bulk").message.contains("unknown key in video"));
}

#[test]
fn a_short_form_opens_for_an_override_of_its_option() {
    let e = example(&[("transport.scheduler.x", "1")]).unwrap_err();
    assert!(e.message.contains("option `x`"), "{e}");
    let scenario = example(&[("link.wifi.loss.at", "entry"), ("link.wifi.rate.burst", "9 kB")]).unwrap();
    let wifi = &scenario.links[0].down;
    assert_eq!(wifi.loss, bernoulli(20_000_000, LossAt::Entry));
    let (rate, burst, peak) = (Bandwidth::from_mbps(2), Bytes(9_000), Bandwidth::INFINITE);
    assert_eq!(wifi.rate, Some(Rate::TokenBucket(TokenBucketConfig { rate, burst, peak })));
}

#[test]
fn sessions_may_differ_in_their_transport() {
    let text = EXAMPLE.replacen("count = 1", "transport = { protocol = \"tcp\", pacing = true }", 1);
    let scenario = load(&text, "x", None, &[]).unwrap();
    let own = scenario.transport_of(&scenario.sessions[0]);
    assert_eq!((own.protocol, own.pacing), (Protocol::Tcp, true));
    assert_eq!(own.congestion_control, scenario.transport.congestion_control);
    assert_eq!(scenario.transport.protocol, Protocol::Mptcp);
    assert_eq!(load(&scenario.resolved(), "x", None, &[]), Ok(scenario));
}

#[test]
fn the_kernel_says_what_is_meant_where_nothing_else_is_said() {
    let text = EXAMPLE.replacen("scheduler = \"min-rtt\"\n", "", 1);
    let with = |overrides: &[(&str, &str)]| {
        let overrides: Vec<_> = overrides.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect();
        load(&text, "x", None, &overrides).unwrap()
    };
    assert_eq!(with(&[("transport.kernel", "legacy")]), with(&[]));
    let upstream = with(&[("transport.kernel", "upstream")]);
    let t = &upstream.transport;
    assert_eq!((t.scheduler.name.as_str(), t.commit, t.failover), ("linux", Commit::IntoBuffer, Failover::Upstream));
    assert!(t.subflow_windows && !t.opportunistic_retransmission && !t.penalisation && t.wide_data_seq);
    assert_eq!(t.congestion_control.name, "newreno", "what the scenario says holds");
    let mixed =
        with(&[("transport.kernel", "upstream"), ("transport.scheduler", "blest"), ("transport.penalisation", "true")]);
    assert_eq!((mixed.transport.scheduler.name.as_str(), mixed.transport.penalisation), ("blest", true));
    assert_eq!(load(&upstream.resolved(), "x", None, &[]), Ok(upstream), "a resolved scenario needs no kernel");
}

#[test]
fn a_trace_is_read_from_the_folder_of_the_scenario() {
    let directory = std::env::temp_dir().join(format!("anabranch-scenario-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    std::fs::write(directory.join("wifi.csv"), "0,1000\n1,2000\n").unwrap();
    std::fs::write(directory.join("bad.csv"), "0,1000\n1,x\n").unwrap();
    let trace = |file: &str| format!("rate = {{ trace = \"{file}\", format = \"columns\", unit = \"B/s\" }}");
    let with = |file: &str| EXAMPLE.replacen("rate = \"2 Mb/s\"", &trace(file), 1);
    let read = |file: &str| load(&with(file), "x.toml", Some(&directory), &[]);
    let scenario = read("wifi.csv").unwrap();
    assert_eq!(scenario.links[0].down.config().rate.mean(), Bandwidth::from_bps(12_000));
    assert_eq!(load(&scenario.resolved(), "x.toml", None, &[]), Ok(scenario));
    assert!(read("bad.csv").unwrap_err().message.contains("bad.csv:2: column 1: \"x\" is no rate"));
    let missing = read("none.csv").unwrap_err();
    assert!(missing.line > 0 && missing.message.contains("none.csv"), "{missing}");
    std::fs::remove_dir_all(&directory).unwrap();
}

#[test]
fn every_default_of_the_reference_can_be_read() {
    // A minimal scenario takes all defaults, so a malformed one would panic here.
    let text = "schema = 1\nduration = \"1 s\"\n[link.a]\nrate = { rate = \"1 Mb/s\", burst = \"3 kB\" }\n\
        loss = { kind = \"gilbert-elliott\", good_to_bad = \"1 %\", bad_to_good = \"1 %\" }\n\
        [[session]]\nvideo = { kind = \"progressive\", size = \"1 MB\", rate = \"1 Mb/s\" }\n\
        [[traffic]]\npath = \"a\"\ncongestion_control = \"newreno\"\n";
    let scenario = load(text, "x", None, &[]).unwrap();
    assert_eq!(load(&scenario.resolved(), "x", None, &[]), Ok(scenario));
}

fn quantity(unit: &'static str, most: u64) -> impl Strategy<Value = String> {
    (1..=most, 0u32..1000).prop_map(move |(n, part)| format!("{n}.{part:03} {unit}"))
}

fn queue() -> impl Strategy<Value = String> {
    prop_oneof![
        (65_536u64..10_000_000).prop_map(|n| format!("\"{n} B\"")),
        (1u64..5000).prop_map(|n| format!("\"{n} packets\"")),
        (100u64..500).prop_map(|n| format!(
            "{{ kind = \"red\", limit = \"{n} packets\", min = \"20 packets\", max_probability = \"{}.5 %\" }}",
            n % 90
        )),
        (100u64..500).prop_map(|n| format!("{{ kind = \"codel\", limit = \"{n} kB\", target = \"{n} us\" }}")),
    ]
}

fn loss() -> impl Strategy<Value = String> {
    prop_oneof![
        (0u32..=99, 0u32..10_000_000).prop_map(|(n, part)| format!("\"{n}.{part:07} %\"")),
        (1u32..100_000).prop_map(|n| format!("{{ kind = \"every-nth\", n = {n}, at = \"entry\" }}")),
        (1u32..100_000, 1u32..100_000).prop_map(|(good, bad)| format!(
            "{{ kind = \"gilbert-elliott-time\", good = \"{good} us\", bad = \"{bad} ms\", loss_in_bad = \"70 %\" }}"
        )),
        (1u32..99, 1u32..99).prop_map(|(p, r)| format!(
            "{{ kind = \"gilbert-elliott\", good_to_bad = \"0.{p:02} %\", bad_to_good = \"{r} %\" }}"
        )),
    ]
}

prop_compose! {
    fn link_body()(
        rate in quantity("Mb/s", 1000), rtt in quantity("ms", 500), queue in queue(), loss in loss(),
        up in quantity("kb/s", 1000), dup in quantity("%", 20), shape in 1.0f64..50.0, reorders: bool, mtu in 100u32..9000,
    ) -> String {
        format!(
            "rate = \"{rate}\"\nrtt = \"{rtt}\"\nqueue = {queue}\nloss = {loss}\nup = {{ rate = \"{up}\" }}\nmtu = {mtu}\n\
             duplication = \"{dup}\"\njitter = {{ kind = \"gamma\", mean = \"1 ms\", shape = {shape:?}, reorders = {reorders} }}\n\
             reordering = {{ share = \"{dup}\", by = \"{rtt}\" }}\n"
        )
    }
}

proptest! {
    #[test]
    fn a_resolved_scenario_reads_as_the_same_one(
        links in proptest::collection::vec(link_body(), 1..4),
        events in proptest::collection::vec((0u32..100, 0usize..3, loss(), any::<Option<bool>>()), 0..4),
        question in "\\PC{0,20}",
        backup: bool,
        metered: bool,
    ) {
        let mut text = format!("schema = 1\nduration = \"9 s\"\nquestion = {}\n", toml::Value::String(question));
        for (i, body) in links.iter().enumerate() {
            text += &format!("[link.l{i}]\n{body}[path.p{i}]\nlinks = [\"l{i}\"]\nbackup = {backup}\nmetered = {metered}\n");
        }
        text += "[[session]]\nvideo = { kind = \"progressive\", size = \"1 MB\", rate = \"1 Mb/s\", fps = \"24000/1001\" }\n";
        text += "player = { kind = \"vlc-2\", caching = \"300 ms\" }\n[[session]]\nstart = \"1 s\"\n";
        text += "[[traffic]]\npath = \"p0\"\ncongestion_control = \"newreno\"\nstop = \"2 s\"\n";
        for (at, link, loss, cut) in &events {
            let link = link % links.len();
            text += &format!("[[event]]\nat = \"{at} ms\"\nlink = \"l{link}\"\nloss = {loss}\nup = {{ rate = \"{}.5 kb/s\" }}\n", at + 1);
            text += &cut.map_or("delay = \"7 ms\"\n".to_string(), |cut| format!("down = {cut}\n"));
        }
        let scenario = load(&text, "x", None, &[]);
        prop_assert!(scenario.is_ok(), "{}\n{text}", scenario.unwrap_err());
        let scenario = scenario.unwrap();
        let resolved = scenario.resolved();
        let again = load(&resolved, "x", None, &[]);
        prop_assert!(again.is_ok(), "{}\n{resolved}", again.unwrap_err());
        prop_assert_eq!(&again.unwrap(), &scenario);
    }
}

#[test]
fn a_table_in_an_override_merges_into_the_one_that_is_there() {
    let merged = example(&[("transport", "{ scheduler = \"ecf\" }")]).unwrap();
    assert_eq!(merged, example(&[("transport.scheduler", "ecf")]).unwrap());
    assert_ne!(merged, example(&[]).unwrap());
    let deep = [("link", "{ wifi = { queue = { limit = \"100 kB\" } }, lte = { down = { rate = \"3 Mb/s\" } } }")];
    let dotted = [("link.wifi.queue.limit", "100 kB"), ("link.lte.down.rate", "3 Mb/s")];
    assert_eq!(example(&deep).unwrap(), example(&dotted).unwrap());
    let error = example(&[("link", "{ wify = { loss = \"1 %\" } }")]).unwrap_err();
    assert_eq!((error.message.as_str(), error.nearest.as_deref()), ("unknown link `wify`", Some("wifi")));
}

#[test]
fn a_table_of_another_kind_and_a_list_replace_what_is_there() {
    let bulk = example(&[("session.0.video", "{ kind = \"bulk\" }"), ("session.0.player", "bulk")]).unwrap();
    assert!(matches!(bulk.sessions[0].video, Video::Bulk(Bulk { size: None })));
    let codel = example(&[("link.wifi.queue", "{ kind = \"codel\", limit = \"100 packets\" }")]).unwrap();
    assert_ne!(codel.links[0], example(&[]).unwrap().links[0]);
    let synthetic = example(&[("link.wifi", "{ rate = { synthetic = \"lte\", mean = \"2 Mb/s\" } }")]).unwrap();
    assert!(matches!(synthetic.links[0].down.rate, Some(Rate::Synthetic(_))));
    let scheduler = example(&[("transport", "{ scheduler = { name = \"tr-sty\" } }")]).unwrap();
    assert_eq!(scheduler.transport.scheduler.name, "tr-sty");
    let paths = example(&[("session.0", "{ paths = [\"lte\"] }")]).unwrap();
    assert_eq!(paths.sessions[0].paths, ["lte"]);
    let emptied = example(&[("transport", "{}")]).unwrap();
    assert_eq!(emptied.transport.congestion_control.name, "cubic", "`{{}}` empties a table");
}

#[test]
fn mistakes_in_a_dictionary_name_keys() {
    let wrong = |line: &str, by: &str| {
        load_dictionary(&EXAMPLE.replacen(line, by, 1), "scenario", &[], None).expect_err(by).to_string()
    };
    let place = |text: String| text.split(": ").next().unwrap_or_default().to_string();
    for (line, by, way) in [
        ("kind = \"vlc\"", "kind = \"vcl\"", "session[0].player.kind"),
        ("rate = \"2 Mb/s\"", "rate = \"2 Mbps\"", "link.wifi.rate"),
        ("rate = \"2 Mb/s\"", "raet = \"2 Mb/s\"", "link.wifi.raet"),
        ("paths = [\"wifi\", \"lte\"]", "paths = [\"wifi\", \"let\"]", "session[0].paths[1]"),
        ("at = \"120 s\"", "at = 120", "event[0].at"),
    ] {
        assert_eq!(place(wrong(line, by)), format!("scenario, key `{way}`"));
    }
    assert_eq!(place(wrong("schema = 1", "")), "scenario");
    assert_eq!(load_dictionary(EXAMPLE, "example.toml", &[], None), example(&[]));
}
