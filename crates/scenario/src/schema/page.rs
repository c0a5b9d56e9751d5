//! `docs/reference/scenario.md`: every key with its default and meaning, from the tables' structs.

use super::json_schema::{Key, kinds, reference};
use super::short_forms::{FILLED_IN, LONG_KEYS, SHORT_KEYS};
use std::fmt::Write;

/// The page's introduction.
const OPENING: &str = "\
# The scenario

A scenario is a TOML file that describes a network, the sessions that use it, and timed events. `anabranch run FILE` runs it.
`--set KEY=VALUE` changes a key, whose name is dotted from the top level (`transport.scheduler=gr-sty`, `link.wifi.loss=\"2 %\"`,
`session.0.player.kind=vlc`). A run folder has the resolved scenario, in which every default is written out.

Quantities carry their unit as text: `\"2 Mb/s\"`, `\"50 ms\"`, `\"2 %\"`, `\"409 MB\"`, `\"64 kB\"`; k, M and G are powers of 1000, Ki and Mi
of 1024. An unknown key, a wrong unit or an impossible value is refused with its file and line. `anabranch list` prints the names of
schedulers, congestion controls, path policies, players, queues, loss models and synthetic rates.

The column *default* is empty where a key is required, where the meaning states the default, or where the key may be absent.

This page is generated from the doc comments of the schema (`make docs`). A test compares it with them.
";

/// A part of the page.
enum Section {
    /// The keys of these types, under this title.
    Tables(&'static str, &'static [&'static str]),
    /// The kinds of table that may stand under this key, which are the variants of this type.
    Kinds(&'static str, &'static str),
}
use Section::{Kinds, Tables};

/// The page's order.
const SECTIONS: &[Section] = &[
    Tables("The top level", &["Scenario"]),
    Tables("`[transport]`", &["Transport"]),
    Tables("`[transport] receive_buffer = { ... }`", &["ReceiveBuffer"]),
    Tables("`[link.NAME]`, and `down = { ... }`, `up = { ... }` in it", &["DirectionSpec", "Link"]),
    Tables("`rate = { ... }`: a token bucket", &["TokenBucket"]),
    Tables("`rate = { trace = ... }`: a recorded rate", &["Trace"]),
    Tables("`rate = { synthetic = ... }`: a synthetic rate", &["Synthetic"]),
    Kinds("queue", "Queue"),
    Kinds("loss", "Loss"),
    Kinds("jitter", "Jitter"),
    Tables("`reordering = { ... }`", &["Reordering"]),
    Tables("`[path.NAME]`", &["Path"]),
    Tables("`[server]`", &["Server"]),
    Tables("`[[session]]`", &["Session"]),
    Kinds("video", "Video"),
    Tables("`player = { ... }`", &["Player"]),
    Tables("`statistics = { ... }`", &["Statistics"]),
    Tables("`[[traffic]]`", &["Traffic"]),
    Tables("`[[event]]`", &["Event"]),
];

/// Types whose keys are not those of a table of their own on the page: the constant rate, which is written as a single
/// value.
#[cfg(test)]
const WITHOUT_TITLE: [&str; 1] = ["Constant"];

/// The page in Markdown.
pub fn page() -> String {
    let mut page = OPENING.to_string();
    for section in SECTIONS {
        match section {
            Tables(title, types) => write_section(&mut page, title, types),
            Kinds(key, type_name) => {
                for kind in kinds(type_name) {
                    let title = format!("`{key} = {{ kind = \"{}\" }}`\n\n{}", kind.name, kind.meaning);
                    write_section(&mut page, &title, &[kind.table]);
                }
            }
        }
    }
    page
}

fn write_section(page: &mut String, title: &str, types: &[&str]) {
    let _ = write!(page, "\n## {title}\n\n| key | default | meaning |\n|---|---|---|\n");
    for type_name in types {
        for short in SHORT_KEYS.iter().filter(|short| short.table == *type_name) {
            write_row(page, short.key, None, short.meaning);
        }
        let keys = reference(type_name);
        keys.iter().filter(|key| !LONG_KEYS.contains(&key.name)).for_each(|key| write_key(page, type_name, key));
    }
}

fn write_key(page: &mut String, type_name: &str, key: &Key) {
    let required = key.required && !FILLED_IN.contains(&type_name);
    let meaning = if required { format!("{} Required.", key.meaning) } else { key.meaning.clone() };
    write_row(page, key.name, key.default.as_deref(), &meaning);
}

fn write_row(page: &mut String, key: &str, default: Option<&str>, meaning: &str) {
    let default = default.map_or(String::new(), |text| format!("`{text}`"));
    let meaning = meaning.replace('|', "\\|");
    let _ = writeln!(page, "| `{key}` | {default} | {meaning} |");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_table_has_its_place_and_every_key_a_meaning() {
        let schema = crate::json_schema();
        for (name, definition) in schema["$defs"].as_object().expect("there are tables") {
            let has_keys = definition.get("properties").is_some();
            let titled = SECTIONS.iter().any(|section| match section {
                Tables(_, types) => types.contains(&name.as_str()),
                Kinds(_, type_name) => kinds(type_name).iter().any(|kind| kind.table == name),
            });
            assert_eq!(has_keys && !WITHOUT_TITLE.contains(&name.as_str()), titled, "{name}");
            for key in reference(name) {
                assert!(key.meaning.contains(['.', ':']), "{name}.{}: {:?}", key.name, key.meaning);
            }
        }
    }

    #[test]
    fn the_page_in_the_documentation_is_this_one() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/scenario.md");
        let written = std::fs::read_to_string(path).expect("docs/reference/scenario.md");
        assert!(
            written == page(),
            "regenerate: cargo run -p anabranch-scenario --example scenario_page > docs/reference/scenario.md"
        );
    }
}
