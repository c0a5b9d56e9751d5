//! The table of events compared with itself: what one event says must be what others said of the same data.

use super::tests::scenario;
use super::*;
use anabranch_observation::{Column, EventColumns};

/// One event of the table.
struct Row<'a> {
    events: &'a EventColumns,
    at: usize,
}

impl<'a> Row<'a> {
    fn column(&self, name: &str) -> &'a Column {
        let found = self.events.columns.iter().find(|(own, _)| *own == name);
        &found.unwrap_or_else(|| panic!("no column {name}")).1
    }

    fn word(&self, name: &str) -> Option<&'a str> {
        let Column::Text { words, codes } = self.column(name) else { panic!("{name} is no text") };
        codes[self.at].map(|code| words[code as usize].as_str())
    }

    fn number(&self, name: &str) -> Option<i64> {
        let Column::Integer(values) = self.column(name) else { panic!("{name} has no whole numbers") };
        Some(values[self.at]).filter(|value| *value != EventColumns::NO_INTEGER)
    }

    fn time(&self) -> f64 {
        let Column::Float(values) = self.column("time_s") else { panic!("times are numbers") };
        values[self.at]
    }

    fn is(&self, event: &str, source: &str) -> bool {
        self.word("event") == Some(event) && self.word("source") == Some(source)
    }

    /// Whether this segment has the byte at an offset.
    fn has(&self, offset: i64) -> bool {
        let start = self.number("offset").expect("a segment has an offset");
        (start..start + self.number("bytes").expect("and bytes")).contains(&offset)
    }
}

fn outcome(text: &str) -> Outcome {
    run(&scenario(text), &RunOptions { seed: 1, record_events: true, ..RunOptions::default() }, &mut |_| true)
}

fn rows(outcome: &Outcome) -> Vec<Row<'_>> {
    let events = outcome.events.as_ref().expect("they were recorded");
    (0..events.len()).map(|at| Row { events, at }).collect()
}

/// Two paths that lose packets at random and at their queues, a download, and cross traffic on the first path.
const LOSSY: &str = "duration = \"20 s\"\n[transport]\nreceive_buffer = \"300 kB\"\n\
    [link.a]\ndown = { rate = \"5 Mb/s\", delay = \"15 ms\", queue = \"30 kB\", loss = \"1 %\" }\n\
    up = { rate = \"5 Mb/s\", delay = \"15 ms\", loss = \"1 %\" }\n\
    [link.b]\nrate = \"3 Mb/s\"\nrtt = \"80 ms\"\nqueue = \"30 kB\"\nloss = \"1 %\"\n\
    [[session]]\npaths = [\"a\", \"b\"]\nvideo = { kind = \"bulk\", size = \"3 MB\" }\n[[traffic]]\nkind = \"tcp\"\npath = \"a\"\n";

#[test]
fn what_links_drop_was_sent_before_by_that_subflow_on_that_path() {
    let outcome = outcome(LOSSY);
    let rows = rows(&outcome);
    let drops: Vec<&Row<'_>> = rows.iter().filter(|row| row.word("event") == Some("dropped")).collect();
    let dropped = |sender: &str| drops.iter().filter(|row| row.word("sender") == Some(sender)).count();
    assert!(dropped("session 0/server") > 20 && dropped("session 0/client") > 5, "data and acknowledgments are lost");
    assert!(drops.iter().any(|row| row.word("sender").is_some_and(|sender| !sender.starts_with("session 0"))));
    for row in drops {
        let (sender, path) = (row.word("sender").expect("every packet has a sender"), row.word("path").unwrap());
        assert!(row.word("source").unwrap().starts_with(&format!("{path}/")), "each path is a link of its name");
        let Some(offset) = row.number("offset") else { continue };
        // Rows of links come before those of endpoints of the same time.
        let sent = rows.iter().take_while(|before| before.time() <= row.time()).any(|before| {
            before.is("segment-sent", sender)
                && before.number("subflow") == row.number("subflow")
                && before.word("path") == Some(path)
                && before.number("offset") == Some(offset)
        });
        assert!(sent, "{offset} at {} s", row.time());
    }
}

#[test]
fn what_is_delivered_was_sent_on_its_path_and_follows_what_was_delivered_before() {
    let outcome = outcome(LOSSY);
    let rows = rows(&outcome);
    let mut next = 0;
    let (mut waited, mut paths) = (0, std::collections::BTreeSet::new());
    for row in rows.iter().filter(|row| row.word("source") == Some("session 0/client")) {
        let (event, offset) = (row.word("event"), row.number("offset"));
        if event == Some("out-of-order") {
            waited += 1;
            assert!(offset >= Some(next) || row.number("waiting_bytes") > Some(0));
        }
        if event == Some("delivered") {
            assert_eq!(offset, Some(next), "at {} s", row.time());
            next += row.number("bytes").unwrap();
        }
        if matches!(event, Some("delivered" | "out-of-order")) {
            paths.insert(row.word("path").unwrap());
            let sent = rows[..row.at].iter().rev().any(|before| {
                before.is("segment-sent", "session 0/server")
                    && before.has(offset.unwrap())
                    && before.word("path") == row.word("path")
            });
            assert!(sent, "{offset:?} at {} s", row.time());
        }
    }
    assert_eq!(next, 3_000_000 + anabranch_media::RESPONSE_HEADER_BYTES as i64);
    assert!(waited > 50 && paths.len() == 2, "{waited} events of data out of order on {paths:?}");
}

/// How often each cause of copies occurs. Each copy must be of data that its original subflow was given before, and is
/// followed by its segment: data commits at the window.
fn copies(text: &str) -> std::collections::BTreeMap<String, usize> {
    let outcome = outcome(text);
    let rows: Vec<Row<'_>> =
        rows(&outcome).into_iter().filter(|row| row.word("source") == Some("session 0/server")).collect();
    let (mut causes, mut announced) = (std::collections::BTreeMap::new(), None);
    for (at, row) in rows.iter().enumerate() {
        if row.word("event") == Some("copied") {
            let (original, offset) =
                (row.number("original_subflow").expect("a subflow has it"), row.number("offset").unwrap());
            assert_ne!(Some(original), row.number("subflow"));
            let given = rows[..at].iter().any(|before| {
                before.word("event") == Some("segment-sent")
                    && before.number("subflow") == Some(original)
                    && before.has(offset)
            });
            assert!(given, "{offset} at {} s", row.time());
            *causes.entry(row.word("detail").unwrap().to_string()).or_default() += 1;
            announced = Some((row.number("subflow"), row.number("offset"), row.number("bytes")));
        } else if row.word("event") == Some("segment-sent") {
            let sent = Some((row.number("subflow"), row.number("offset"), row.number("bytes")));
            let copied = matches!(row.word("detail"), Some("reinjection" | "duplicate"));
            assert_eq!(announced.take(), sent.filter(|_| copied), "at {} s", row.time());
        }
    }
    causes
}

#[test]
fn a_copy_says_why_it_is_one_and_of_which_subflow() {
    // A redundant scheduler copies as its rule; a path that is cut times out; a path that is gone is closed.
    let redundant = LOSSY.replace("[transport]\n", "[transport]\nscheduler = \"redundant\"\n");
    assert!(copies(&redundant)["redundant"] > 1_000);
    let cut = format!("{LOSSY}[[event]]\nat = \"1 s\"\nlink = \"b\"\ndown = true\n").replace("20 s", "6 s");
    let causes = copies(&cut);
    assert!(causes["timeout"] > 0 && !causes.contains_key("closed") && !causes.contains_key("redundant"), "{causes:?}");
    let gone = format!("{LOSSY}[[event]]\nat = \"1 s\"\npath = \"b\"\ndown = true\n").replace("20 s", "6 s");
    let causes = copies(&gone);
    assert!(causes["closed"] > 0, "{causes:?}");
    // A window that the slower path fills.
    let window = LOSSY.replace("300 kB", "40 kB").replace("80 ms", "300 ms");
    let causes = copies(&window);
    assert!(causes["window-full"] > 0, "{causes:?}");
}

#[test]
fn the_receiver_s_window_is_an_event_when_it_halves_doubles_closes_or_opens() {
    let text = "duration = \"8 s\"\n[transport]\nreceive_buffer = \"40 kB\"\n[link.a]\nrate = \"5 Mb/s\"\nrtt = \"50 ms\"\n\
        queue = \"100 kB\"\n[[session]]\nvideo = { kind = \"bulk\", size = \"2 MB\" }\n\
        [[event]]\nat = \"1 s\"\nsession = 0\nreads = false\n[[event]]\nat = \"3 s\"\nsession = 0\nreads = true\n";
    let outcome = outcome(text);
    let rows = rows(&outcome);
    let windows: Vec<(f64, i64, i64)> = rows
        .iter()
        .filter(|row| row.is("window-advertised", "session 0/client"))
        .map(|row| (row.time(), row.number("window_bytes").unwrap(), row.number("end_offset").unwrap()))
        .collect();
    for pair in windows.windows(2) {
        let ((_, before, _), (_, after, _)) = (pair[0], pair[1]);
        assert!(after >= 2 * before || before >= 2 * after, "{before} to {after}");
    }
    let closed: Vec<f64> = windows.iter().filter(|(_, window, _)| *window == 0).map(|(at, ..)| *at).collect();
    assert!(!closed.is_empty() && closed.iter().all(|at| (1.0..3.0).contains(at)), "{windows:?}");
    let opened = windows.iter().find(|(at, ..)| *at >= 3.0).expect("it opens again");
    assert!(opened.0 < 3.1 && opened.1 > 10_000, "{windows:?}");
    // Nothing is sent beyond what is allowed.
    let (mut end, mut last) = (0, 0);
    for row in &rows {
        if row.is("window-advertised", "session 0/client") && row.number("window_bytes") == Some(0) {
            end = row.number("end_offset").unwrap();
        } else if row.is("segment-sent", "session 0/server") && row.time() < 3.0 {
            last = last.max(row.number("offset").unwrap() + row.number("bytes").unwrap());
        }
    }
    assert_eq!(last, end, "the sender used the window to its end");
}

/// The decisions about new data: each with its rows, one for each subflow. Every segment with new data must follow one
/// that says so.
fn decisions<'a>(rows: &'a [Row<'a>]) -> Vec<Vec<&'a Row<'a>>> {
    let mut decisions: Vec<Vec<&Row<'_>>> = Vec::new();
    let (mut announced, mut last) = (None, None);
    for row in rows.iter().filter(|row| row.word("source") == Some("session 0/server")) {
        if row.word("event") == Some("considered") {
            // Subflows are listed in their order.
            if last.is_none_or(|last| last >= row.number("subflow")) {
                decisions.push(Vec::new());
            }
            last = Some(row.number("subflow"));
            decisions.last_mut().expect("there is one").push(row);
            if row.word("detail") == Some("chosen") {
                announced = Some((row.number("subflow"), row.number("offset"), row.number("bytes")));
            } else {
                assert_eq!(row.number("bytes"), Some(0));
            }
            continue;
        }
        last = None;
        if row.word("event") == Some("segment-sent") && row.word("detail") == Some("new") {
            let sent = Some((row.number("subflow"), row.number("offset"), row.number("bytes")));
            assert_eq!(announced.take(), sent, "at {} s", row.time());
        }
    }
    decisions
}

fn float(row: &Row<'_>, name: &str) -> f64 {
    let Column::Float(values) = row.column(name) else { panic!("{name} has numbers") };
    values[row.at]
}

/// Of decisions that had a choice, in how many the chosen subflow has the least value of a column; and how many there
/// are.
fn least_of(decisions: &[Vec<&Row<'_>>], column: &str) -> (usize, usize) {
    let (mut least, mut all) = (0, 0);
    for decision in decisions {
        let Some(chosen) = decision.iter().find(|row| row.word("detail") == Some("chosen")) else { continue };
        let passed_over: Vec<f64> = decision
            .iter()
            .filter(|row| row.word("detail") == Some("passed-over"))
            .map(|row| float(row, column))
            .collect();
        all += usize::from(!passed_over.is_empty());
        let is_least = passed_over.iter().all(|other| float(chosen, column) <= *other);
        least += usize::from(is_least && !passed_over.is_empty());
    }
    (least, all)
}

#[test]
fn a_decision_about_new_data_says_how_the_scheduler_saw_each_subflow() {
    // A chunk begins while both paths are idle.
    let chunks = LOSSY.replace("video = { kind = \"bulk\", size = \"3 MB\" }", "video = { kind = \"bulk\", size = \"150 kB\" }\nplayer = { kind = \"on-off\", interval = \"1 s\", duration = \"18 s\" }");
    let with =
        |scheduler| outcome(&chunks.replace("[transport]\n", &format!("[transport]\nscheduler = \"{scheduler}\"\n")));
    let by_rtt = with("min-rtt");
    let rows_by_rtt = rows(&by_rtt);
    let decided = decisions(&rows_by_rtt);
    let (least, all) = least_of(&decided, "srtt_s");
    assert!(all > 100 && least == all, "{least} of {all} choose the lowest round trip");
    assert!(decided.iter().flatten().all(|row| row.number("subflow").is_some() && row.word("path").is_some()));
    assert!(decided.iter().flatten().all(|row| float(row, "arrival_s").is_nan()), "min-rtt makes no forecast");

    let by_arrival = with("earliest");
    let rows_by_arrival = rows(&by_arrival);
    let decided = decisions(&rows_by_arrival);
    let (least, all) = least_of(&decided, "arrival_s");
    assert!(all > 100 && least == all, "{least} of {all} choose the earliest arrival");
    // It waits where another subflow, which has no room now, is faster.
    let waits = decided.iter().filter(|decision| decision.iter().all(|row| row.word("detail") != Some("chosen")));
    assert!(waits.clone().count() > 3);
    let has = |decision: &[&Row<'_>], what| decision.iter().any(|row| row.word("detail") == Some(what));
    assert!(waits.into_iter().all(|decision| has(decision, "passed-over")), "it could have sent");
}

#[test]
fn reasons_of_decisions_change_no_decision() {
    for scheduler in ["earliest", "joined", "sttf", "viewer-buffer", "min-rtt"] {
        let text = LOSSY.replace("[transport]\n", &format!("[transport]\nscheduler = \"{scheduler}\"\n"));
        let options = |record_events| RunOptions { seed: 1, record_events, ..RunOptions::default() };
        let metrics = |record| run(&scenario(&text), &options(record), &mut |_| true).metrics;
        assert_eq!(format!("{:?}", metrics(true)), format!("{:?}", metrics(false)), "{scheduler}");
    }
}

#[test]
fn a_window_that_decays_while_idle_is_an_event() {
    let text = "duration = \"20 s\"\n[transport]\nidle_restart = true\n[link.a]\nrate = \"20 Mb/s\"\nrtt = \"50 ms\"\n\
        queue = \"300 kB\"\n[[session]]\nplayer = { kind = \"on-off\", interval = \"4 s\", duration = \"16 s\" }\n\
        video = { kind = \"bulk\", size = \"400 kB\" }\n";
    let with = outcome(text);
    let rows_with = rows(&with);
    let server: Vec<&Row<'_>> = rows_with.iter().filter(|row| row.word("source") == Some("session 0/server")).collect();
    let mut decays = 0;
    for (at, row) in server.iter().enumerate().filter(|(_, row)| row.word("event") == Some("window-decayed")) {
        decays += 1;
        assert_eq!((row.word("detail"), row.word("path")), (Some("idle"), Some("a")));
        let to = float(row, "decayed_packets");
        assert!(float(row, "cwnd_packets") > to && to >= 10.0, "down to the initial window");
        let sent = |row: &&&Row<'_>| row.word("event") == Some("segment-sent");
        let before = server[..at].iter().rev().find(sent).expect("it has sent before");
        assert!(row.time() - before.time() > 0.2, "a retransmission timeout is 200 ms at least");
        let burst = server[at..].iter().filter(sent).take_while(|sent| sent.time() < row.time() + 0.05).count();
        assert!(burst as f64 <= to, "{burst} packets left within a round trip, and the window is {to}");
    }
    assert!(decays >= 3, "one for each pause");
    let without = outcome(&text.replace("idle_restart = true", "idle_restart = false"));
    assert!(rows(&without).iter().all(|row| row.word("event") != Some("window-decayed")));
}
