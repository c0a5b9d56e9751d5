use super::*;
use crate::Streams;
use anabranch_units::Duration;

/// Every model at the rate that was asked for, and the same losses again from the same seed.
#[test]
fn registered_models_lose_what_was_asked_and_repeat() {
    for kind in LOSS_MODELS {
        for rate in [0.005, 0.02, 0.2] {
            let config = (kind.create)(Probability::new(rate).unwrap());
            assert!((config.long_run_rate() / rate - 1.0).abs() < 1e-7, "{} {rate}", kind.name);
            const PACKETS: usize = 1_000_000;
            let fates = |seed| -> Vec<bool> {
                let mut rng = Streams::new(seed, kind.name).stream("loss");
                let mut model = config.build().unwrap();
                // Half a burst apart, where bursts have a length in time.
                let at = |n| Instant::ZERO + Duration::from_millis(10 * n);
                (1..=PACKETS as u64).map(|n| model.lost(at(n), &mut rng)).collect()
            };
            let lost = fates(1).iter().filter(|lost| **lost).count() as f64;
            // Bursts of mean length 2 widen the standard deviation of the count by less than the factor 2.
            let deviation = 2.0 * (PACKETS as f64 * rate).sqrt();
            assert!((lost - PACKETS as f64 * rate).abs() < 4.0 * deviation, "{} {rate}: {lost}", kind.name);
            assert_eq!(fates(1), fates(1));
        }
    }
}

/// A model that is a file and a line: what the file has is in `first_of_n`, the line is the second one of [`Extended`].
mod first_of_n {
    use super::*;
    use anabranch_units::text;

    /// The opposite of `every-nth`.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
    pub struct FirstOfN {
        /// Of n packets, the first is lost.
        #[serde(deserialize_with = "text::whole::<2, 1000, _, _>")]
        #[schemars(range(min = 2, max = 1000))]
        pub n: u32,
        /// Where packets are lost.
        #[serde(default)]
        pub at: LossAt,
    }

    struct State(u32, u32);

    impl LossModel for State {
        fn lost(&mut self, _: Instant, _: &mut ChaCha8Rng) -> bool {
            let State(n, seen) = self;
            let lost = *seen % *n == 0;
            *seen += 1;
            lost
        }
    }

    impl LossParameters for FirstOfN {
        const SUMMARY: &'static str = "Loses the first of n packets.";
        const SOURCE: &'static str = "this test";

        fn with_rate(rate: Probability) -> Self {
            FirstOfN { n: (1.0 / rate.as_f64()) as u32, at: LossAt::Exit }
        }

        fn long_run_rate(&self) -> f64 {
            1.0 / f64::from(self.n)
        }

        fn is_random(&self) -> bool {
            false
        }

        fn at(&self) -> LossAt {
            self.at
        }

        fn build(&self) -> Option<Box<dyn LossModel>> {
            Some(Box::new(State(self.n, 0)))
        }
    }
}

loss_models! {
    /// The models of the program, one of them and one more.
    Extended in EXTENDED {
        "every-nth" => EveryNth(EveryNth),
        "first-of-n" => FirstOfN(first_of_n::FirstOfN),
    }
}

#[test]
fn a_new_model_is_a_file_and_a_line() {
    // The registry knows it.
    let entry = EXTENDED.find("first-of-n").unwrap();
    assert_eq!((entry.summary, entry.source), ("Loses the first of n packets.", "this test"));
    // It has a table in scenarios, which is written as it is read.
    let made = (entry.create)(Probability::new(0.25).unwrap());
    let written = serde_json::to_value(&made).unwrap();
    assert_eq!(written, serde_json::json!({ "kind": "first-of-n", "n": 4, "at": "exit" }));
    let read = |n: u32| serde_json::from_value::<Extended>(serde_json::json!({ "first-of-n": { "n": n } }));
    assert_eq!(read(4).unwrap(), made);
    assert!(read(1).unwrap_err().to_string().contains("a whole number from 2 to 1000"));
    // Its keys are documented, with their ranges.
    let schema = schemars::schema_for!(Extended).to_value();
    let keys = &schema["$defs"]["FirstOfN"]["properties"];
    assert_eq!((&keys["n"]["minimum"], &keys["n"]["maximum"]), (&2.into(), &1000.into()));
    assert_eq!(keys["n"]["description"], "Of n packets, the first is lost.");
    assert_eq!(schema["oneOf"][1]["description"], "Loses the first of n packets.");
    assert_eq!(schema["oneOf"][1]["properties"]["kind"]["const"], "first-of-n");
    // It loses packets.
    let mut rng = Streams::new(1, "test").stream("loss");
    let mut model = made.build().unwrap();
    let lost: Vec<_> = (0..8).filter(|_| model.lost(Instant::ZERO, &mut rng)).collect();
    assert_eq!(lost, [0, 4]);
    assert_eq!((made.long_run_rate(), made.is_random(), made.at(), made.check()), (0.25, false, LossAt::Exit, Ok(())));
}
