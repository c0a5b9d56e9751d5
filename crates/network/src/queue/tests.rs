use super::*;
use crate::Streams;

#[test]
fn every_registered_queue_is_valid_has_its_limit_and_admits_into_emptiness() {
    for kind in QUEUES {
        for limit in [QueueLimit::Bytes(64_000), QueueLimit::Packets(50), QueueLimit::Packets(1)] {
            let config = (kind.create)(limit);
            assert_eq!(config.limit(), limit, "{}", kind.name);
            config.validate(1500).unwrap_or_else(|error| panic!("{} {limit:?}: {error}", kind.name));
            let mut queue = config.build(1500, Bandwidth::from_mbps(2), Streams::new(1, kind.name).stream("queue"));
            assert!(queue.admit(Instant::ZERO, Backlog::default(), 1500), "{}", kind.name);
            let full = Backlog { packets: 50, bytes: 64_000 };
            assert!(!queue.admit(Instant::ZERO, full, 1500), "{}", kind.name);
        }
    }
}

/// A queue that is a file and a line: what the file has is in `small_only`, the line is the second one of [`Extended`].
mod small_only {
    use super::*;
    use anabranch_units::text;
    use serde::Deserialize;

    /// A queue without large packets.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
    pub struct SmallOnly {
        /// The capacity.
        pub limit: QueueLimit,
        /// The largest packet that may wait, in bytes.
        #[serde(default = "ethernet", deserialize_with = "text::whole::<1, 65535, _, _>")]
        #[schemars(range(min = 1, max = 65_535))]
        pub largest: u32,
    }

    fn ethernet() -> u32 {
        1500
    }

    impl QueueParameters for SmallOnly {
        const SUMMARY: &'static str = "Drops packets that are larger than a size.";
        const SOURCE: &'static str = "this test";

        fn with_limit(limit: QueueLimit) -> Self {
            SmallOnly { limit, largest: ethernet() }
        }

        fn limit(&self) -> QueueLimit {
            self.limit
        }

        fn build(&self, _: u32, _: Bandwidth, _: ChaCha8Rng) -> Box<dyn Queue> {
            Box::new(self.clone())
        }
    }

    impl Queue for SmallOnly {
        fn admit(&mut self, _: Instant, waiting: Backlog, bytes: u32) -> bool {
            bytes <= self.largest && self.limit.admits(waiting, bytes)
        }
    }
}

queues! {
    /// A queue of the program, and one more.
    Extended in EXTENDED {
        "drop-tail" => DropTail(DropTailConfig),
        "small-only" => SmallOnly(small_only::SmallOnly),
    }
}

#[test]
fn a_new_queue_is_a_file_and_a_line() {
    // The registry knows it.
    let entry = EXTENDED.find("small-only").unwrap();
    assert_eq!((entry.summary, entry.source), ("Drops packets that are larger than a size.", "this test"));
    // It has a table in scenarios, which is written as it is read.
    let made = (entry.create)(QueueLimit::Packets(2));
    let written = serde_json::to_value(&made).unwrap();
    assert_eq!(written, serde_json::json!({ "kind": "small-only", "limit": "2 packets", "largest": 1500 }));
    let read = |keys| serde_json::from_value::<Extended>(serde_json::json!({ "small-only": keys }));
    assert_eq!(read(serde_json::json!({ "limit": "2 packets" })).unwrap(), made);
    let wrong = read(serde_json::json!({ "limit": "2 packets", "largest": 0 })).unwrap_err().to_string();
    assert!(wrong.contains("a whole number from 1 to 65535"), "{wrong}");
    // Its keys are documented, with their ranges.
    let schema = schemars::schema_for!(Extended).to_value();
    let keys = &schema["$defs"]["SmallOnly"]["properties"];
    assert_eq!((&keys["largest"]["minimum"], &keys["largest"]["maximum"]), (&1.into(), &65_535.into()));
    assert_eq!(keys["largest"]["description"], "The largest packet that may wait, in bytes.");
    assert_eq!(schema["oneOf"][1]["description"], "Drops packets that are larger than a size.");
    assert_eq!(schema["oneOf"][1]["properties"]["kind"]["const"], "small-only");
    // It decides which packets wait.
    let mut queue = made.build(1500, Bandwidth::from_mbps(2), Streams::new(1, "test").stream("queue"));
    let two = Backlog { packets: 2, bytes: 3000 };
    let mut admits = |waiting, bytes| queue.admit(Instant::ZERO, waiting, bytes);
    assert!(admits(Backlog::default(), 1500) && !admits(Backlog::default(), 1501) && !admits(two, 1500));
    let mut complete = made.clone();
    complete.complete();
    assert_eq!(complete, made);
    assert_eq!((made.limit(), made.is_random(), made.check()), (QueueLimit::Packets(2), false, Ok(())));
}
