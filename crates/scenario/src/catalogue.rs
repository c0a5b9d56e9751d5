//! What ships with the program: scenarios, and the registries as data.

use anabranch_media::content::LADDERS;
use anabranch_media::{PLAYERS, abr, pacing};
use anabranch_network::{LOSS_MODELS, QUEUES, SYNTHETIC_KINDS};
use anabranch_registry::Registry;
use anabranch_stack::{congestion, path_policy, scheduler};

/// A scenario that ships with the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shipped {
    /// Its name on the command line.
    pub name: &'static str,
    /// Its text.
    pub text: &'static str,
}

macro_rules! shipped {
    ($($name:literal),* $(,)?) => {
        &[$(Shipped { name: $name, text: include_str!(concat!("../../../scenarios/", $name, ".toml")) }),*]
    };
}

/// Every shipped scenario.
pub const SCENARIOS: &[Shipped] = shipped![
    "sticky/base",
    "sticky/3p-50",
    "sticky/3p-150",
    "handoff/limited",
    "handoff/limited-handoff",
    "handoff/large",
    "handoff/large-handoff",
    "handoff/cellular",
    "handoff/cellular-handoff",
    "bulk/one-path",
    "bulk/two-paths",
    "bulk/three-paths",
    "fairness/shared-bottleneck",
    "conext/scenario-a",
    "conext/scenario-b",
    "conext/scenario-c",
    "dash/ratio-1-1",
    "dash/ratio-1-2",
    "dash/ratio-1-3",
    "dash/ratio-1-4",
    "dash/ratio-1-5",
    "dash/tcp-2000",
    "dash/tcp-1667",
    "dash/four-viewers",
    "viewers/four",
    "viewers/eight",
    "viewers/unlike",
    "viewers/apart",
    "viewers/metered",
    "viewers/beside-tcp",
    "mptcp-plus/ratio-0.49",
    "mptcp-plus/ratio-0.87",
    "mptcp-plus/500-500",
    "mptcp-plus/grid",
    "mptcp-plus/one-segment",
    "mobile/wifi-lte",
    "mobile/walk",
    "one-pipe/5g-blockage",
    "one-pipe/chunks",
    "one-pipe/chunks-1-5",
    "one-pipe/pipe",
    "one-pipe/silent-cut",
];

/// The shipped scenario of that name.
pub fn scenario(name: &str) -> Option<&'static Shipped> {
    SCENARIOS.iter().find(|scenario| scenario.name == name)
}

impl Shipped {
    /// What the scenario wants to know. Nothing else of the scenario is read: to list names must not take the time of
    /// synthesising rates.
    pub fn question(&self) -> String {
        #[derive(serde::Deserialize)]
        struct Heading {
            question: String,
        }
        toml::from_str(self.text).map_or_else(|_| String::new(), |heading: Heading| heading.question)
    }
}

/// A line of a registry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Item {
    /// Its name in scenarios and on the command line.
    pub name: &'static str,
    /// What it does, in one sentence.
    pub summary: &'static str,
    /// Where it is defined.
    pub source: &'static str,
}

fn items<C>(registry: &Registry<C>) -> Vec<Item> {
    registry.iter().map(|entry| Item { name: entry.name, summary: entry.summary, source: entry.source }).collect()
}

/// Every scheduler.
pub fn schedulers() -> Vec<Item> {
    items(&scheduler::REGISTRY)
}

/// Every congestion control.
pub fn congestion_controls() -> Vec<Item> {
    items(&congestion::REGISTRY)
}

/// Every path policy.
pub fn path_policies() -> Vec<Item> {
    items(&path_policy::REGISTRY)
}

/// Every way to pace responses.
pub fn response_pacings() -> Vec<Item> {
    items(&pacing::REGISTRY)
}

/// Every player.
pub fn players() -> Vec<Item> {
    items(&PLAYERS)
}

/// Every bitrate rule.
pub fn abr_rules() -> Vec<Item> {
    items(&abr::REGISTRY)
}

/// Every shipped ladder of representations.
pub fn ladders() -> Vec<Item> {
    items(&LADDERS)
}

/// Every queue.
pub fn queues() -> Vec<Item> {
    items(&QUEUES)
}

/// Every loss model.
pub fn loss_models() -> Vec<Item> {
    items(&LOSS_MODELS)
}

/// Every kind of network that has a synthetic rate.
pub fn synthetic_rates() -> Vec<Item> {
    items(&SYNTHETIC_KINDS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shipped_scenario_reads_and_asks_its_question_first() {
        for shipped in SCENARIOS {
            let scenario = crate::load(shipped.text, shipped.name, None, &[]).unwrap_or_else(|e| panic!("{e}"));
            assert!(scenario.question.ends_with('?'), "{}", shipped.name);
            let second = shipped.text.lines().nth(1).unwrap_or("");
            assert!(second.starts_with("question = "), "{}", shipped.name);
            let again = crate::load(&scenario.resolved(), shipped.name, None, &[]);
            assert_eq!(again.as_ref(), Ok(&scenario), "{}", shipped.name);
        }
    }

    #[test]
    fn the_list_holds_every_file_of_the_folder() {
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios");
        let mut found = Vec::new();
        for group in std::fs::read_dir(root).unwrap() {
            let group = group.unwrap();
            let name = group.file_name().into_string().unwrap();
            for file in std::fs::read_dir(group.path()).into_iter().flatten() {
                let file = file.unwrap().file_name().into_string().unwrap();
                found.extend(file.strip_suffix(".toml").map(|stem| format!("{name}/{stem}")));
            }
        }
        let mut listed: Vec<_> = SCENARIOS.iter().map(|scenario| scenario.name.to_string()).collect();
        found.sort();
        listed.sort();
        assert_eq!(found, listed);
    }

    #[test]
    fn registries_have_unique_names_and_say_what_they_are() {
        for list in [
            schedulers(),
            congestion_controls(),
            path_policies(),
            response_pacings(),
            players(),
            abr_rules(),
            ladders(),
            queues(),
            loss_models(),
            synthetic_rates(),
        ] {
            assert!(!list.is_empty());
            for (i, item) in list.iter().enumerate() {
                assert!(list[..i].iter().all(|other| other.name != item.name), "{}", item.name);
                assert!(item.summary.ends_with('.') && !item.source.is_empty(), "{}", item.name);
            }
        }
    }
}
