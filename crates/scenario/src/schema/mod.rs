//! How a scenario is read: text to tree ([`document`], [`overrides`]), short to long form ([`expand`]), tree to structs
//! ([`deserialize`], [`tables`]), structs to a checked scenario ([`check`]). No step goes back.
//!
//! A key is declared once, as a field in [`tables`] (`[transport]` in `anabranch_stack`, options of players in
//! `anabranch_media`). Its documentation, its default, the resolved scenario and the JSON Schema follow from that.

mod algorithms;
mod check;
mod checker;
mod content;
mod deserialize;
mod document;
mod expand;
mod files;
mod json_schema;
mod mistake;
mod overrides;
mod page;
mod rates;
mod short_forms;
mod tables;

#[cfg(test)]
mod dash_tests;
#[cfg(test)]
mod link_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod warning_tests;

pub use check::MOST_RECORDED;
pub use json_schema::json_schema;
pub use page::page;
pub use tables::{
    Action, Bulk, Dash, DirectionSpec, Event, Fps, LatencyUse, Link, Offset, Path, Player, Progressive, Rate, SCHEMA,
    Scenario, Session, Starts, Statistics, TooBig, Trace, Traffic, TrafficKind, Video,
};

use crate::error::Error;
use crate::warning::{Warning, WarningKind};
use anabranch_media::abr::ExternalRules;
use anabranch_stack::external::ExternalParts;
use checker::Checker;
use document::Node;
use files::Files;
use mistake::Mistake;
use std::path::Path as FilePath;
use std::sync::Arc;

/// Reads a scenario. `name` stands in messages and results; files that it names are looked up in `directory`; overrides
/// are dotted keys and values, as `--set` takes them.
///
/// # Errors
/// The first mistake, with its place.
pub fn load(
    text: &str,
    name: &str,
    directory: Option<&FilePath>,
    overrides: &[(String, String)],
) -> Result<Scenario, Error> {
    load_with(text, name, directory, overrides, None)
}

/// Parts that are in no registry, by the names that a scenario may use for them. The simulator and the crates below it
/// do not know how they are made.
#[derive(Clone, Debug)]
pub struct External {
    /// Schedulers, path policies and congestion controls.
    pub parts: Arc<dyn ExternalParts>,
    /// Bitrate rules.
    pub rules: Arc<dyn ExternalRules>,
}

/// As [`load`], with parts that are in no registry.
///
/// # Errors
/// As [`load`].
pub fn load_with(
    text: &str,
    name: &str,
    directory: Option<&FilePath>,
    overrides: &[(String, String)],
    external: Option<&External>,
) -> Result<Scenario, Error> {
    load_tree(document::parse(text, name)?, name, directory, overrides, external)
}

/// The same for a text that a program wrote from a dictionary: its mistakes name keys, `session[0].video.rate`, because
/// no user has seen its lines. Files that it names are looked up in the current directory.
///
/// # Errors
/// As [`load`].
pub fn load_dictionary(
    text: &str,
    name: &str,
    overrides: &[(String, String)],
    external: Option<&External>,
) -> Result<Scenario, Error> {
    let mut root = document::parse(text, name)?;
    root.cite_keys("");
    load_tree(root, name, None, overrides, external)
}

fn load_tree(
    mut root: Node,
    name: &str,
    directory: Option<&FilePath>,
    overrides: &[(String, String)],
    external: Option<&External>,
) -> Result<Scenario, Error> {
    for (key, value) in overrides {
        overrides::apply(&mut root, key, value)?;
    }
    read(root, name, directory, external).map_err(|mistake| mistake.into_error(name))
}

fn read(
    mut root: Node,
    name: &str,
    directory: Option<&FilePath>,
    external: Option<&External>,
) -> Result<Scenario, Mistake> {
    check::check_version(&root)?;
    expand::expand(&mut root)?;
    let mut scenario: Scenario = deserialize::from_node(&root)?;
    scenario.name = name.to_string();
    let mut checker = Checker { root: &root, files: Files::of_folder(directory), external, warnings: Vec::new() };
    check::check(&mut scenario, &mut checker)?;
    scenario.warnings = checker.warnings.into_iter().map(|(kind, mistake)| warning(kind, mistake, name)).collect();
    Ok(scenario)
}

fn warning(kind: WarningKind, mistake: Mistake, name: &str) -> Warning {
    let error = mistake.into_error(name);
    Warning { kind, place: error.place(), message: error.message }
}
