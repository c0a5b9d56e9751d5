//! Checks the algorithms that a scenario names, with their options, and the buffers of `[transport]`.

use super::check::{Checker, Result};
use super::mistake::Mistake;
use anabranch_stack::connection::{Choice, Transport};
use anabranch_stack::options::OptionError;
use anabranch_stack::{congestion, path_policy, scheduler};
use anabranch_units::Bytes;

/// The smallest buffer with which a connection of full segments still moves.
const SMALLEST_BUFFER: Bytes = Bytes(4_096);

pub(super) fn check_transport(transport: &Transport, steps: &[&str], checker: &Checker<'_>) -> Result<()> {
    let names = scheduler::REGISTRY.names();
    check_choice(&transport.scheduler, ("scheduler", "scheduler"), names, steps, checker, |choice| {
        scheduler::create(&choice.name, &choice.options).err()
    })?;
    let names = path_policy::REGISTRY.names();
    check_choice(&transport.path_policy, ("path_policy", "path policy"), names, steps, checker, |choice| {
        path_policy::create(&choice.name, &choice.options).err()
    })?;
    check_congestion_control(&transport.congestion_control, steps, checker)?;
    check_buffers(transport, steps, checker)
}

pub(super) fn check_congestion_control(choice: &Choice, steps: &[&str], checker: &Checker<'_>) -> Result<()> {
    let names = congestion::REGISTRY.names();
    let key = ("congestion_control", "congestion control");
    check_choice(choice, key, names, steps, checker, |choice| {
        congestion::create(&choice.name, &choice.options, 0).err()
    })
}

/// The name must be registered, and the algorithm must take its options: it is tried at once, so that a mistake has its
/// line.
fn check_choice(
    choice: &Choice,
    (key, what): (&'static str, &str),
    names: impl Iterator<Item = &'static str>,
    steps: &[&str],
    checker: &Checker<'_>,
    create: impl Fn(&Choice) -> Option<OptionError>,
) -> Result<()> {
    let steps = [steps, &[key]].concat();
    let names: Vec<&str> = names.collect();
    if !names.contains(&choice.name.as_str()) {
        let steps = [&steps[..], &["name"]].concat();
        return Err(Mistake::unknown(what, &choice.name, names).at(checker.at(&steps)));
    }
    match create(choice) {
        None => Ok(()),
        Some(error) => {
            let steps = [&steps[..], &[error.option.as_str()]].concat();
            checker.wrong(&steps, error.to_string(), "")
        }
    }
}

fn check_buffers(transport: &Transport, steps: &[&str], checker: &Checker<'_>) -> Result<()> {
    let (initial, max) = (transport.receive_buffer.initial, transport.receive_buffer.max);
    let sizes: [(&[&str], Bytes); 3] = [
        (&["receive_buffer", "initial"], initial),
        (&["receive_buffer", "max"], max),
        (&["send_buffer"], transport.send_buffer),
    ];
    for (key, size) in sizes {
        if size < SMALLEST_BUFFER {
            let message = format!("`{}` is {} B", key.join("."), size.0);
            return checker.wrong(&[steps, key].concat(), message, format!("at least {} B", SMALLEST_BUFFER.0));
        }
    }
    if max < initial {
        let message = format!("`max` of receive_buffer ({} B) is less than `initial` ({} B)", max.0, initial.0);
        return checker.wrong(&[steps, &["receive_buffer", "max"]].concat(), message, "initial <= max");
    }
    Ok(())
}
