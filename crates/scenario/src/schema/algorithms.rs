//! Checks the algorithms that a scenario names, with their options, and the buffers and windows of `[transport]`.

use super::checker::{Checker, Result};
use super::mistake::Mistake;
use super::tables::Server;
use anabranch_media::pacing;
use anabranch_stack::connection::{Choice, Failover, Transport};
use anabranch_stack::external::{self, Kind};
use anabranch_stack::options::OptionError;
use anabranch_stack::{congestion, path_policy, scheduler};
use anabranch_units::Bytes;

/// The smallest buffer with which a connection of full segments still moves.
const SMALLEST_BUFFER: Bytes = Bytes(4_096);

pub(super) fn check_transport(transport: &mut Transport, steps: &[&str], checker: &Checker<'_>) -> Result<()> {
    let names: Vec<_> = scheduler::REGISTRY.names().collect();
    let key = Key { kind: Some(Kind::Scheduler), key: "scheduler", what: "scheduler", names };
    check_choice(&mut transport.scheduler, &key, steps, checker, |choice| external::scheduler(choice).err())?;
    let names: Vec<_> = path_policy::REGISTRY.names().collect();
    let key = Key { kind: Some(Kind::PathPolicy), key: "path_policy", what: "path policy", names };
    check_choice(&mut transport.path_policy, &key, steps, checker, |choice| external::path_policy(choice).err())?;
    check_congestion_control(&mut transport.congestion_control, steps, checker)?;
    check_buffers(transport, steps, checker)?;
    check_windows(transport, steps, checker)
}

pub(super) fn check_congestion_control(choice: &mut Choice, steps: &[&str], checker: &Checker<'_>) -> Result<()> {
    let names: Vec<_> = congestion::REGISTRY.names().collect();
    let key = Key { kind: Some(Kind::CongestionControl), key: "congestion_control", what: "congestion control", names };
    check_choice(choice, &key, steps, checker, |choice| external::congestion_control(choice, 0).err())
}

pub(super) fn check_server(server: &mut Server, checker: &Checker<'_>) -> Result<()> {
    let names: Vec<_> = pacing::REGISTRY.names().collect();
    let key = Key { kind: None, key: "response_pacing", what: "response pacing", names };
    check_choice(&mut server.response_pacing, &key, &["server"], checker, |choice| {
        pacing::create(&choice.name, &choice.options).err()
    })
}

/// A key that takes the choice of an algorithm.
struct Key {
    /// Of algorithms that the caller of the reader may have, too.
    kind: Option<Kind>,
    key: &'static str,
    what: &'static str,
    /// What is in the registry.
    names: Vec<&'static str>,
}

/// The name must be registered or known to the caller of the reader, which is attached then, and the algorithm must
/// take its options: it is tried at once, so that a mistake has its line.
fn check_choice(
    choice: &mut Choice,
    key: &Key,
    steps: &[&str],
    checker: &Checker<'_>,
    create: impl Fn(&Choice) -> Option<OptionError>,
) -> Result<()> {
    let steps = [steps, &[key.key]].concat();
    let name_steps = [&steps[..], &["name"]].concat();
    if !key.names.contains(&choice.name.as_str()) {
        let parts = checker.external.map(|external| &external.parts);
        let known = |kind| parts.filter(|parts| parts.knows(kind, &choice.name));
        let Some(parts) = key.kind.and_then(known) else {
            return Err(Mistake::unknown(key.what, &choice.name, key.names.iter().copied()).at(checker.at(&name_steps)));
        };
        choice.attach(parts.clone());
    }
    match create(choice) {
        None => Ok(()),
        // The fault is the algorithm's and not that of one of its options.
        Some(error) if error.option == "name" => checker.wrong(&name_steps, error.message, ""),
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

/// A receiver with `subflow_windows` drops data that it has acknowledged on the subflow. Only the timer of
/// `failover = "upstream"` sends that again soon.
fn check_windows(transport: &Transport, steps: &[&str], checker: &Checker<'_>) -> Result<()> {
    if transport.subflow_windows && transport.failover != Failover::Upstream {
        let message = "`subflow_windows = true` needs `failover = \"upstream\"`";
        let remedy = "`failover = \"upstream\"` or `subflow_windows = false`";
        return checker.wrong(&[steps, &["failover"]].concat(), message, remedy);
    }
    Ok(())
}
