//! Recorded pairs of WiFi and cellular links drive two paths from start to end.

use anabranch_observation::Outcome;
use anabranch_scenario::load;
use anabranch_sim::{RunOptions, run};
use std::path::{Path, PathBuf};

/// Where the recordings are, if they are: next to the workspace, not in it, because they have no licence to be passed
/// on.
fn recordings() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/traces/paired_wifi_cellular");
    if folder.is_dir() {
        return Some(folder);
    }
    assert!(
        std::env::var_os("ANABRANCH_REQUIRE_DATA").is_none_or(|v| v != "1"),
        "no recordings in {}",
        folder.display()
    );
    println!("skipped: there are no recordings in {}", folder.display());
    None
}

/// The names of the recordings that have both halves, in order.
fn pairs(folder: &Path) -> Vec<String> {
    let names = folder.read_dir().expect("a readable folder").map(|entry| entry.expect("an entry").file_name());
    let names = names.filter_map(|name| Some(name.to_str()?.strip_suffix("_wifi.csv")?.to_string()));
    let mut names: Vec<String> = names.filter(|name| folder.join(format!("{name}_cellular.csv")).is_file()).collect();
    names.sort();
    names
}

/// A minute and a half over both links; seconds and bytes per second stand in the files.
fn simulate(folder: &Path, pair: &str, paths: &str) -> Outcome {
    let link = |name: &str, rtt: &str| {
        format!(
            "[link.{name}]\nrtt = \"{rtt}\"\nrate = {{ trace = \"{pair}_{name}.csv\", format = \"columns\", unit = \"B/s\" }}\n\
             queue = \"256 kB\"\n"
        )
    };
    let text = format!(
        "schema = 1\nduration = \"90 s\"\n[transport]\ncongestion_control = \"cubic\"\n{}{}[[session]]\npaths = [{paths}]\n",
        link("wifi", "20 ms"),
        link("cellular", "60 ms")
    );
    let scenario = load(&text, pair, Some(folder), &[]).unwrap_or_else(|error| panic!("{error}"));
    run(&scenario, &RunOptions { seed: 1, ..RunOptions::default() }, &mut |_| true)
}

/// What a recording offers in the first 90 seconds, bits per second: its samples last a second each, and it loops.
fn offered(folder: &Path, file: &str) -> f64 {
    let text = std::fs::read_to_string(folder.join(file)).expect("the recording");
    let rate = |line: &str| line.split(',').nth(1).and_then(|field| field.trim().parse::<f64>().ok());
    let rates: Vec<f64> = text.lines().filter_map(rate).collect();
    rates.iter().cycle().take(90).sum::<f64>() * 8.0 / 90.0
}

/// Checks that a pair drives both paths for the whole time.
fn drive(folder: &Path, pair: &str) {
    let outcome = simulate(folder, pair, "\"wifi\", \"cellular\"");
    let session = &outcome.metrics.sessions[0];
    assert_eq!(outcome.metrics.sim_seconds, 90.0, "{pair}");
    let offers = ["wifi", "cellular"].map(|link| offered(folder, &format!("{pair}_{link}.csv")));
    let got: f64 = session.transport.subflows.iter().map(|subflow| subflow.goodput_bps).sum();
    println!("{pair}: offered {:.2?} Mb/s, got {:.2}", offers.map(|bps| bps / 1e6), got / 1e6);
    assert!(got < offers.iter().sum::<f64>(), "{pair}: more than the links offered");
    for (link, offer) in ["wifi", "cellular"].into_iter().zip(offers) {
        let on_path = session.transport.subflows.iter().filter(|subflow| subflow.path == link);
        let used: f64 = on_path.map(|subflow| subflow.goodput_bps).sum();
        // A link that stands still for long has its subflow in back-off; one that offers megabits must be used.
        assert!(offer < 1e6 || used > 0.3 * offer, "{pair}: {used:.0} of {offer:.0} b/s on {link}");
    }
}

#[test]
fn a_recorded_pair_of_each_place_drives_two_paths_from_start_to_end() {
    let Some(folder) = recordings() else { return };
    let all = pairs(&folder);
    assert!(!all.is_empty(), "{} has no pair", folder.display());
    // The number of the place stands before the underscore, that of the trial behind it.
    all.iter().filter(|pair| pair.ends_with("_1")).for_each(|pair| drive(&folder, pair));
}

#[test]
#[ignore = "slow suite: all trials of each place"]
fn every_recorded_pair_drives_two_paths_from_start_to_end() {
    let Some(folder) = recordings() else { return };
    pairs(&folder).iter().for_each(|pair| drive(&folder, pair));
}

/// Two paths carry more than the better one alone, on the whole.
#[test]
#[ignore = "slow suite: three downloads for each place"]
fn two_recorded_paths_carry_more_than_one() {
    let Some(folder) = recordings() else { return };
    let goodput = |pair: &str, paths: &str| simulate(&folder, pair, paths).metrics.sessions[0].transport.goodput_bps;
    let (mut both, mut best) = (0.0, 0.0);
    for pair in pairs(&folder).iter().filter(|pair| pair.ends_with("_2")) {
        both += goodput(pair, "\"wifi\", \"cellular\"");
        best += goodput(pair, "\"wifi\"").max(goodput(pair, "\"cellular\""));
    }
    assert!(both > 1.05 * best, "{both:.0} b/s over both, {best:.0} over the better one");
}
