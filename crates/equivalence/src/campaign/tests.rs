//! An earlier report with something missing, renamed or no number is refused, whatever it is.

use super::again;
use crate::kernel::Kernel;
use crate::question::Part;
use crate::report::CampaignReport;
use crate::test_cases::{self, TestCase};
use serde_json::{Value, json};

/// The test cases that are quickest to simulate.
fn cases() -> Vec<TestCase> {
    let mut cases = test_cases::all(&[Part::OnOff], true);
    cases.truncate(1);
    cases
}

/// A report of live runs with every key, nulls included, as `validate --json` prints it.
fn report() -> Value {
    let run = |seed: u64| {
        json!({
            "seed": seed, "goodput_bps": 2e6 + seed as f64, "retransmissions": 3.0, "chunk_s": 0.29, "chunk_p90_s": 0.3,
            "first_share": 1.0, "smallest_share": null, "mean_bitrate_bps": null,
            "switches": null, "stalls": 0.0, "drops": [{ "queue": 7, "random": 1 }],
        })
    };
    let case = &cases()[0];
    let found = json!({
        "cell": case, "void": 1, "errors": ["broke off"], "lateness": { "median_s": 3e-5, "p99_s": 2e-4 },
        "live": [run(1), run(2), run(3)],
    });
    let found = again(
        cases(),
        &json!({ "kernel": { "release": "6.12.8", "header_room": 256 }, "cells": [found] }).to_string(),
        None,
    )
    .expect("a report");
    serde_json::from_str(&CampaignReport::of(found).to_json()).expect("JSON")
}

/// Everything in a report that is judged, by its pointer.
fn leaves(value: &Value, at: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(members) => members.iter().for_each(|(key, value)| leaves(value, &format!("{at}/{key}"), found)),
        Value::Array(list) => list.iter().enumerate().for_each(|(i, value)| leaves(value, &format!("{at}/{i}"), found)),
        _ => found.push(at.to_owned()),
    }
}

fn judged(report: &Value) -> Vec<String> {
    let mut found = Vec::new();
    leaves(&report["kernel"], "/kernel", &mut found);
    for part in ["void", "lateness", "live", "cell/part", "cell/name"] {
        let pointer = format!("/cells/0/{part}");
        leaves(report.pointer(&pointer).expect("a part of the report"), &pointer, &mut found);
    }
    found
}

/// The report with the member at a pointer changed.
fn changed(report: &Value, pointer: &str, change: impl FnOnce(&mut serde_json::Map<String, Value>, &str)) -> String {
    let mut report = report.clone();
    let (parent, key) = pointer.rsplit_once('/').expect("a pointer");
    let parent = report.pointer_mut(parent).and_then(Value::as_object_mut).expect("an object");
    change(parent, key);
    report.to_string()
}

#[test]
fn a_report_can_be_judged_again_and_gives_the_same_live_runs() {
    let report = report();
    let campaign = again(cases(), &report.to_string(), None).expect("a report");
    assert_eq!(campaign.kernel, Kernel { release: "6.12.8".into(), header_room: 256 });
    let found = campaign.found;
    assert_eq!((found[0].invalid, found[0].errors.len(), found[0].live.len()), (1, 1, 3));
    assert!(found[0].judgement.is_some());
    let nothing = again(test_cases::all(&[Part::OnePath], true), &report.to_string(), None).expect("other test cases");
    assert!(nothing.found.iter().all(|found| found.judgement.is_none() && found.lateness.is_none()));
}

#[test]
fn each_value_that_is_missing_renamed_or_no_number_is_refused_by_its_key() {
    let report = report();
    let judged = judged(&report);
    assert!(judged.len() >= 2 + 1 + 2 + 3 * 11 + 2, "{judged:?}");
    for pointer in judged {
        let key = pointer.rsplit('/').next().expect("a key").to_owned();
        let refused = |text: &str, how: &str| {
            let error = again(cases(), text, None).err().unwrap_or_else(|| panic!("{pointer} {how}: accepted"));
            assert!(error.contains(&key), "{pointer} {how}: {error}");
        };
        refused(&changed(&report, &pointer, |parent, key| drop(parent.remove(key))), "missing");
        let renamed = |parent: &mut serde_json::Map<String, Value>, key: &str| {
            let value = parent.remove(key).expect("a value");
            parent.insert(format!("{key}_"), value);
        };
        refused(&changed(&report, &pointer, renamed), "renamed");
        let nan =
            |parent: &mut serde_json::Map<String, Value>, key: &str| drop(parent.insert(key.into(), "NaN".into()));
        refused(&changed(&report, &pointer, nan).replace("\"NaN\"", "NaN"), "NaN");
        // What Rust would have written for it.
        let null =
            |parent: &mut serde_json::Map<String, Value>, key: &str| drop(parent.insert(key.into(), Value::Null));
        // What this test case does not compare need not have been observed.
        let compared = !["stalls", "chunk_p90_s", "first_share", "smallest_share"].contains(&&*key);
        let may_be_null = report.pointer(&pointer) == Some(&Value::Null) || !compared;
        if !may_be_null {
            refused(&changed(&report, &pointer, null), "null");
        }
    }
}
