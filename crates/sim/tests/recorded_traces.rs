//! Every format of the recorded traces next to the project drives whole DASH sessions, where they are present.

use anabranch_observation::{Ended, Metrics};
use anabranch_scenario::load;
use anabranch_sim::{RunOptions, run};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

const TRACES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data/traces");

/// The files of a folder with this ending, in order; nothing where the recordings are absent.
fn files(folder: &str, ending: &str) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(Path::new(TRACES).join(folder)) else {
        assert!(std::env::var_os("ANABRANCH_REQUIRE_DATA").is_none_or(|v| v != "1"), "no recorded traces {folder}");
        eprintln!("skipped: no recorded traces {folder} here");
        return Vec::new();
    };
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.to_string_lossy().ends_with(ending) && !path.to_string_lossy().contains("LICENSE"));
    files.sort();
    files
}

/// A minute of video over links with these downlinks, after which the session must have played all of it.
fn session(links: &[String], name: &str) -> Metrics {
    let mut text = String::from("schema = 1\nduration = \"4000 s\"\n");
    for (i, rate) in links.iter().enumerate() {
        let fixed = "rtt = \"40 ms\"\nrate = \"20 Mb/s\"\nqueue = \"100 packets\"";
        text += &format!("[link.path{i}]\n{fixed}\ndown = {{ rate = {rate} }}\n");
    }
    text +=
        "[[session]]\nvideo = { kind = \"dash\", ladder = \"bbb-2s\", duration = \"60 s\" }\nplayer = \"dash.js-5\"\n";
    let scenario = load(&text, name, None, &[]).unwrap_or_else(|error| panic!("{error}"));
    let metrics = run(&scenario, &RunOptions::default(), &mut |_| true).metrics;
    assert_eq!(metrics.ended, Ended::Finished, "{name}: {:?}", metrics.sessions[0].viewer);
    assert!((metrics.sessions[0].viewer.as_ref().unwrap().played_s - 60.0).abs() < 1e-6, "{name}");
    metrics
}

fn rate(file: &Path, more: &str) -> String {
    format!("{{ trace = \"{}\"{more} }}", file.display())
}

#[test]
fn each_format_drives_a_session() {
    let formats = [
        ("mahimahi", "n", ""),
        ("mahimahi", ".up", ""),
        ("sabre/4Glogs", ".json", ", latency = \"round-trip\""),
        ("sabre/3Glogs", ".json", ", latency = \"round-trip\""),
        ("sabre/hd_fs", ".json", ", latency = \"one-way\""),
        ("sabre/sd_fs", ".json", ""),
        ("solis_wifi", ".txt", ", unit = \"Mb/s\""),
        ("lumos_4g5g", ".txt", ", unit = \"Mb/s\""),
        ("starlink_cellular", ".csv", ", rate_column = \"starlink_mbps\""),
        ("paired_wifi_cellular", "_wifi.csv", ", unit = \"B/s\""),
        ("paired_wifi_cellular", "_cellular.csv", ", unit = \"B/s\""),
    ];
    for (folder, ending, more) in formats {
        for file in files(folder, ending).iter().take(3) {
            session(&[rate(file, more)], &file.to_string_lossy());
        }
    }
}

#[test]
fn columns_of_one_table_drive_several_paths_at_once() {
    let tables = files("starlink_cellular", ".csv");
    for file in tables.iter().filter(|file| file.to_string_lossy().contains("drive_")).take(3) {
        let links = [1, 2, 4].map(|column| rate(file, &format!(", column = {column}, offset = \"30 s\"")));
        let metrics = session(&links, &file.to_string_lossy());
        assert!(metrics.sessions[0].transport.subflows.iter().all(|subflow| subflow.bytes > 0));
    }
}

#[test]
fn recorded_pairs_drive_two_paths_from_any_offset() {
    for wifi in files("paired_wifi_cellular", "_wifi.csv").iter().take(6) {
        let cellular = PathBuf::from(wifi.to_string_lossy().replace("_wifi.csv", "_cellular.csv"));
        for offset in [0, 70] {
            let more = format!(", unit = \"B/s\", offset = \"{offset} s\", duration = \"90 s\"");
            let metrics = session(&[rate(wifi, &more), rate(&cellular, &more)], &wifi.to_string_lossy());
            // A player that abandons a request reconnects, so that a path can have several subflows.
            let subflows = &metrics.sessions[0].transport.subflows;
            let paths: BTreeSet<_> = subflows.iter().filter(|subflow| subflow.bytes > 0).map(|s| &s.path).collect();
            assert_eq!(paths.len(), 2);
        }
    }
}
