//! `docs/reference/scenario.md`: the reference as a page.

use super::reference::{self, Key};
use std::fmt::Write;

/// What stands before the tables: the reference has keys, the page also says what they are for.
const OPENING: &str = "\
# The scenario

A scenario is a TOML file that describes a network, who watches over it, and what happens meanwhile. `anabranch run FILE` runs it;
`--set KEY=VALUE` changes a key, dotted from the top (`transport.scheduler=gr-sty`, `link.wifi.loss=\"2 %\"`,
`session.0.player.kind=vlc`). Run folders hold the resolved scenario, with every default written out.

Quantities carry their unit as text: `\"2 Mb/s\"`, `\"50 ms\"`, `\"2 %\"`, `\"409 MB\"`, `\"64 kB\"`; k, M and G are powers of 1000, Ki and Mi
of 1024. An unknown key, a wrong unit or an impossible value is refused with its file and line. `anabranch list` names schedulers, congestion
controls, path policies, players, queues, loss models and synthetic rates.

This page is generated from the schema (`cargo run -p anabranch-scenario --example scenario_page > docs/reference/scenario.md`); a test compares.
";

/// The titles of the kinds of table, in the page's order. A kind that is not here would be missing, which a test notices.
const SECTIONS: &[(&str, &str)] = &[
    ("scenario", "The top level"),
    ("transport", "`[transport]`"),
    ("transport.receive_buffer", "`[transport] receive_buffer = { ... }`"),
    ("link", "`[link.NAME]`"),
    ("link.direction", "`[link.NAME] down = { ... }`, `up = { ... }`"),
    ("link.default", "Defaults of a direction of a link"),
    ("link.rate", "`rate = { ... }`: a token bucket"),
    ("link.trace", "`rate = { trace = ... }`: a recorded rate"),
    ("link.synthetic", "`rate = { synthetic = ... }`: a made-up rate"),
    ("link.queue", "`queue = { ... }`"),
    ("link.queue.drop-tail", "`queue = { kind = \"drop-tail\" }`"),
    ("link.queue.red", "`queue = { kind = \"red\" }`"),
    ("link.queue.codel", "`queue = { kind = \"codel\" }`"),
    ("link.loss.bernoulli", "`loss = { kind = \"bernoulli\" }`"),
    ("link.loss.gilbert-elliott", "`loss = { kind = \"gilbert-elliott\" }`"),
    ("link.loss.every-nth", "`loss = { kind = \"every-nth\" }`"),
    ("link.loss.gilbert-elliott-time", "`loss = { kind = \"gilbert-elliott-time\" }`"),
    ("link.jitter.uniform", "`jitter = { kind = \"uniform\" }`"),
    ("link.jitter.normal", "`jitter = { kind = \"normal\" }`"),
    ("link.jitter.gamma", "`jitter = { kind = \"gamma\" }`"),
    ("link.jitter.percentiles", "`jitter = { kind = \"percentiles\" }`"),
    ("link.reordering", "`reordering = { ... }`"),
    ("path", "`[path.NAME]`"),
    ("session", "`[[session]]`"),
    ("video.progressive", "`video = { kind = \"progressive\" }`"),
    ("video.dash", "`video = { kind = \"dash\" }`"),
    ("video.bulk", "`video = { kind = \"bulk\" }`"),
    ("player", "`player = { ... }`"),
    ("statistics", "`statistics = { ... }`"),
    ("traffic", "`[[traffic]]`"),
    ("event", "`[[event]]`"),
];

/// The page in Markdown.
pub fn page() -> String {
    let mut page = OPENING.to_string();
    for (section, title) in SECTIONS {
        let _ = write!(page, "\n## {title}\n\n| key | default | meaning |\n|---|---|---|\n");
        reference::all().filter(|key| key.section == *section).for_each(|key| write_row(&mut page, key));
    }
    page
}

fn write_row(page: &mut String, key: &Key) {
    let default = key.default.map_or(String::new(), |text| format!("`{text}`"));
    let meaning = key.meaning.replace('|', "\\|");
    let _ = writeln!(page, "| `{}` | {default} | {meaning} |", key.key);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_table_has_its_place() {
        for key in reference::all() {
            assert!(SECTIONS.iter().any(|(section, _)| *section == key.section), "{} has no title", key.section);
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
