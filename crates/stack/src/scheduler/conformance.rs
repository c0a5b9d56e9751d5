//! The contract of every scheduler in the registry, checked on arbitrary sequences of views.

use super::contract::any_case;
use super::testing::options;
use super::{AVOID_RECOVERY, REGISTRY, Scheduler, create};
use crate::options::{Options, Value};
use proptest::prelude::*;

/// A way to make a scheduler: its name and options.
type Variant = (&'static str, Vec<(&'static str, Value)>);

/// Every scheduler with its defaults and with each other value of its options, with and without the common wrapper.
fn variants() -> Vec<Variant> {
    let text = |value: &str| Value::Text(value.into());
    let mut variants: Vec<Variant> = REGISTRY.iter().map(|entry| (entry.name, vec![])).collect();
    variants.extend([
        ("linux", vec![("burst", text("kept"))]),
        ("round-robin", vec![("num_segments", Value::Number(3.0))]),
        ("round-robin", vec![("cwnd_limited", Value::Flag(false))]),
        ("blest", vec![("formula", text("paper"))]),
        ("ecf", vec![("deviation", text("kernel"))]),
        ("tr-sty", vec![("tr_sense", text("analysis"))]),
        ("earliest", vec![("waiting", Value::Flag(false))]),
        ("earliest", vec![("copies", Value::Flag(false))]),
        ("earliest", vec![("failover", Value::Flag(false))]),
        ("joined", vec![("arrival", Value::Flag(false))]),
        ("joined", vec![("rate", Value::Flag(false))]),
        ("joined", vec![("waiting", Value::Flag(false)), ("copies", Value::Flag(false))]),
        ("joined", vec![("stickiness", Value::Flag(false)), ("recovery", Value::Flag(false))]),
        ("joined", vec![("window", Value::Flag(false)), ("failover", Value::Flag(false))]),
        ("reinject-deadline", vec![("factor", Value::Number(2.0)), ("floor_ms", Value::Number(0.0))]),
        ("peekaboo", vec![("learning", Value::Number(0.0))]),
    ]);
    let wrapped: Vec<Variant> = variants
        .iter()
        .cloned()
        .map(|(name, mut entries)| {
            entries.push((AVOID_RECOVERY, Value::Flag(true)));
            (name, entries)
        })
        .collect();
    variants.extend(wrapped);
    variants
}

fn make((name, entries): &Variant) -> Box<dyn Scheduler> {
    create(name, &options(entries)).expect("a valid variant")
}

#[test]
fn names_are_unique_and_begin_with_the_documented_ones() {
    let names: Vec<_> = REGISTRY.iter().map(|entry| entry.name).collect();
    let documented = "min-rtt, linux, round-robin, redundant, blest, ecf, gr-sty, tp-sty, tr-sty, largest-window, highest-rate, earliest, sttf, redundant-idle, reinject-deadline, peekaboo, joined";
    assert!(names.join(", ").starts_with(documented), "scripts depend on these names: {names:?}");
    let unique: std::collections::BTreeSet<_> = names.iter().collect();
    assert_eq!(unique.len(), names.len());
}

#[test]
fn every_entry_says_what_it_does_and_where_it_is_defined() {
    for entry in REGISTRY {
        assert!(entry.summary.ends_with('.') && !entry.source.is_empty(), "{}", entry.name);
        assert!(entry.name.chars().all(|c| c.is_ascii_lowercase() || c == '-'), "{}", entry.name);
    }
}

#[test]
fn unknown_names_and_options_are_refused() {
    let error = create("min-rt", &Options::default()).unwrap_err();
    assert!(error.message.contains("min-rtt, linux, round-robin"), "{error}");
    for entry in REGISTRY {
        let stray = options(&[("no_such_option", Value::Flag(true))]);
        assert_eq!(create(entry.name, &stray).unwrap_err().option, "no_such_option");
        let wrong_type = options(&[(AVOID_RECOVERY, Value::Number(1.0))]);
        assert_eq!(create(entry.name, &wrong_type).unwrap_err().option, AVOID_RECOVERY);
        assert!(
            (entry.create)(&options(&[(AVOID_RECOVERY, Value::Flag(true))])).is_err(),
            "only `create` knows the wrapper"
        );
    }
}

proptest! {
    #[test]
    fn every_scheduler_keeps_the_contract(case in any_case()) {
        for variant in variants() {
            case.check(&|| make(&variant)).map_err(|error| TestCaseError::fail(format!("{variant:?}: {error}")))?;
        }
    }
}
