//! The contract of every registered controller, checked on arbitrary sequences of events.

use super::REGISTRY;
use super::contract::any_life;
use crate::options::{Options, Value};
use proptest::prelude::*;

proptest! {
    #[test]
    fn every_controller_keeps_a_sane_window_and_repeats_itself(life in any_life(), seed in any::<u64>()) {
        for entry in REGISTRY {
            let trace = || life.lead((entry.create)(&Options::default(), seed).unwrap());
            prop_assert_eq!(trace(), trace(), "{} is not deterministic", entry.name);
        }
    }
}

#[test]
fn names_are_unique_and_begin_with_the_documented_ones() {
    let names: Vec<_> = REGISTRY.iter().map(|entry| entry.name).collect();
    let documented = ["newreno", "cubic", "compound", "lia", "olia", "balia", "wvegas", "bbr", "mcc", "cbbr", "bbr3"];
    assert!(names.starts_with(&documented), "scripts depend on these names: {names:?}");
    for entry in REGISTRY {
        assert_eq!(REGISTRY.find(entry.name).map(|found| found.summary), Some(entry.summary));
        assert!(entry.summary.ends_with('.') && !entry.source.is_empty());
    }
    assert!(REGISTRY.find("no-such-controller").is_none());
}

#[test]
fn unknown_options_and_wrong_values_are_refused() {
    for entry in REGISTRY {
        let options = Options::new(vec![("no-such-option".into(), Value::Flag(true))]);
        let error = (entry.create)(&options, 0).expect_err(entry.name);
        assert_eq!(error.option, "no-such-option");
    }
    for (name, option) in [("cubic", "constants"), ("cubic", "hystart"), ("mcc", "gamma_unit"), ("wvegas", "drain")] {
        let options = Options::new(vec![(option.into(), Value::Text("no-such-word".into()))]);
        let error = (REGISTRY.find(name).unwrap().create)(&options, 0).expect_err(option);
        assert_eq!(error.option, option);
    }
}
