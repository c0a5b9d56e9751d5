//! The programs in this kernel: attached to connections between namespaces of the tests, detached under load, and
//! removed without a trace.
//!
//! Controls have one name for the whole machine, so the tests take turns.

#![cfg(target_os = "linux")]

mod common;

use anabranch_kernel::{
    Attachment, Control, KernelError, MAX_SUBFLOWS, PathUse, Selection, attach, attachments, checks, detach, draining,
};
use anabranch_stack::options::{Options, Value};
use anabranch_testnet::sites::Family;
use anabranch_units::PathId;
use common::{LONGEST, Machine, Network, PORT, Protocol, wait_until, wait_until_freed};
use std::collections::BTreeSet;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Ends the test early, with the reason on stderr, where the machine cannot run it.
macro_rules! require {
    () => {
        if anabranch_testnet::requirements::skips_test(&[]) {
            return;
        }
        let missing = checks::missing();
        assert!(missing.is_empty(), "the programs were built for a machine that cannot run them: {missing:?}");
    };
}

fn on_port() -> Selection {
    Selection { cgroup: None, port: Some(PORT), max_subflows: MAX_SUBFLOWS }
}

fn only(machine: &Machine) -> Attachment {
    let mut all = attachments(machine.file_system()).expect("a status");
    assert_eq!(all.len(), 1);
    all.remove(0)
}

/// Waits until the last slot is free: sockets close a moment after their connection.
fn wait_until_idle(machine: &Machine) -> Attachment {
    wait_until("every slot is free", || only(machine).subflows.is_empty());
    only(machine)
}

/// Nothing of ours is in the kernel any more.
fn assert_clean(machine: &Machine) {
    wait_until_freed(LONGEST);
    assert!(attachments(machine.file_system()).expect("a status").is_empty());
    let names = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").expect("a list");
    assert!(!names.contains("anabranch_"), "{names}");
}

const BYTES: u64 = 2_000_000;

#[test]
fn subflows_of_a_port_get_each_control_and_free_their_slots() {
    require!();
    let machine = Machine::take();
    let network = Network::new(2);
    for control in Control::ALL {
        attach(machine.file_system(), control, &on_port()).expect("attached");
        let download = network.download(Protocol::Mptcp, PORT, BYTES);
        wait_until("both subflows have a slot", || only(&machine).subflows.len() == 2);
        let during = only(&machine);
        assert_eq!(during.control, control);
        assert!(during.subflows.iter().all(|subflow| subflow.token == during.subflows[0].token), "{during:?}");
        assert!(during.subflows.iter().all(|subflow| subflow.local.1 == PORT && subflow.window >= 1.0), "{during:?}");
        assert_eq!(download.join(), BYTES);
        let after = wait_until_idle(&machine);
        assert_eq!((after.totals.claimed, after.totals.released, after.totals.degraded), (2, 2, 0), "{control:?}");
        assert_eq!(detach(machine.file_system(), None).expect("detached"), [control]);
        assert_clean(&machine);
    }
}

#[test]
fn other_ports_and_plain_tcp_keep_what_they_have() {
    require!();
    let machine = Machine::take();
    let network = Network::new(2);
    attach(machine.file_system(), Control::Lia, &on_port()).expect("attached");
    for (protocol, port) in [(Protocol::Mptcp, PORT + 1), (Protocol::Tcp, PORT)] {
        assert_eq!(network.download(protocol, port, 300_000).join(), 300_000);
    }
    assert_eq!(only(&machine).totals.claimed, 0);
    // The same would hold if nothing were selected at all. A short download may end before its second subflow begins.
    let download = network.download(Protocol::Mptcp, PORT, BYTES);
    wait_until("both subflows have a slot", || only(&machine).totals.claimed == 2);
    assert_eq!(download.join(), BYTES);
    assert_eq!(only(&machine).totals.claimed, 2);
    detach(machine.file_system(), None).expect("detached");
    assert_clean(&machine);
}

#[test]
fn a_cgroup_means_the_connections_of_its_processes_at_both_ends() {
    require!();
    let machine = Machine::take();
    let network = Network::new(2);
    let cgroup = common::Cgroup::create();
    attach(
        machine.file_system(),
        Control::Balia,
        &Selection { cgroup: Some(cgroup.path().into()), port: None, ..on_port() },
    )
    .expect("attached");
    assert_eq!(only(&machine).cgroup.as_deref(), Some(cgroup.path()));
    assert_eq!(network.download(Protocol::Mptcp, PORT, 300_000).join(), 300_000);
    assert_eq!(only(&machine).totals.claimed, 0, "this process is not in the cgroup yet");
    cgroup.enter();
    // Accepted connections belong to the cgroup in which their listening socket was opened.
    let download = network.download(Protocol::Mptcp, PORT + 1, BYTES);
    wait_until("both ends of both subflows have a slot", || only(&machine).subflows.len() == 4);
    let tokens: BTreeSet<_> = only(&machine).subflows.iter().map(|subflow| subflow.token).collect();
    assert_eq!(tokens.len(), 2, "each end is a connection of its own");
    assert_eq!(download.join(), BYTES);
    drop(cgroup);
    let after = wait_until_idle(&machine);
    assert_eq!((after.totals.claimed, after.totals.released), (4, 4), "two subflows at each end");
    detach(machine.file_system(), None).expect("detached");
    assert_clean(&machine);
}

#[test]
fn a_full_table_leaves_subflows_with_newreno() {
    require!();
    let machine = Machine::take();
    let network = Network::new(2);
    attach(machine.file_system(), Control::Olia, &Selection { max_subflows: 1, ..on_port() }).expect("attached");
    let download = network.download(Protocol::Mptcp, PORT, BYTES);
    wait_until("a subflow finds no slot", || only(&machine).totals.degraded == 1);
    assert_eq!(download.join(), BYTES);
    let after = wait_until_idle(&machine).totals;
    assert_eq!((after.claimed, after.released, after.degraded), (1, 1, 1));
    // The slot is free again for the next connection.
    assert_eq!(network.download(Protocol::Mptcp, PORT, 10_000).join(), 10_000);
    assert_eq!(wait_until_idle(&machine).totals.claimed, 2);
    detach(machine.file_system(), None).expect("detached");
    assert_clean(&machine);
}

/// Detaches in the middle of downloads; a connection keeps its program until it closes.
fn detach_under_load(times: usize) {
    let machine = Machine::take();
    let network = Network::new(2);
    let before = common::kernel_log();
    for round in 0..times {
        let control = Control::ALL[round % Control::ALL.len()];
        attach(machine.file_system(), control, &on_port()).expect("attached");
        let download = network.download(Protocol::Mptcp, PORT, 500_000);
        wait_until("a subflow has a slot", || !only(&machine).subflows.is_empty());
        assert_eq!(detach(machine.file_system(), Some(control)).expect("detached"), [control]);
        assert!(!draining(machine.file_system()).is_empty(), "the download ended before the control was detached");
        // A connection that begins now has the kernel's default.
        assert_eq!(network.download(Protocol::Mptcp, PORT, 10_000).join(), 10_000);
        assert_eq!(download.join(), 500_000);
        assert_clean(&machine);
    }
    common::assert_no_warning(&before);
}

#[test]
fn detaching_under_load_ends_no_connection_and_leaves_nothing() {
    require!();
    detach_under_load(8);
}

#[test]
#[ignore = "takes minutes; `make slow` runs it"]
fn detaching_under_load_two_hundred_times_leaves_nothing() {
    require!();
    detach_under_load(200);
}

#[test]
fn wrong_selections_attach_nothing() {
    require!();
    let machine = Machine::take();
    let refused = |selection| match attach(machine.file_system(), Control::Mcc, &selection) {
        Err(KernelError::Input(message)) => message,
        other => panic!("{other:?}"),
    };
    let message = refused(Selection { port: None, ..on_port() });
    assert!(message.contains("never attached to all connections"), "{message}");
    let message = refused(Selection { cgroup: Some("/proc/self".into()), port: None, ..on_port() });
    assert!(message.starts_with("/proc/self is no cgroup"), "{message}");
    assert_clean(&machine);
    attach(machine.file_system(), Control::Mcc, &on_port()).expect("attached");
    assert_eq!(refused(on_port()), "mcc is attached already; anabranch kernel detach mcc first");
    let elsewhere = machine.another_file_system();
    match attach(&elsewhere.path, Control::Mcc, &on_port()) {
        Err(KernelError::Input(message)) => {
            let remedy =
                format!("anabranch kernel detach mcc --bpf-file-system {} first", machine.file_system().display());
            assert_eq!(message, format!("anabranch_mcc is attached already; {remedy}"));
        }
        other => panic!("{other:?}"),
    }
    drop(elsewhere);
    // A refused second time changes nothing.
    assert_eq!(only(&machine).control, Control::Mcc);
    assert_eq!(detach(machine.file_system(), Some(Control::Lia)).expect("nothing"), []);
    assert_eq!(detach(machine.file_system(), None).expect("detached"), [Control::Mcc]);
    assert_clean(&machine);
}

#[test]
fn what_a_killed_test_leaves_is_removed_by_the_next_test() {
    require!();
    let machine = Machine::take();
    let left = machine.another_file_system();
    attach(&left.path, Control::Lia, &on_port()).expect("attached");
    std::mem::forget(left);
    drop(machine);
    assert_clean(&Machine::take());
}

/// Bytes that arrive on the second path in a second.
fn flow_of_second_path(network: &Network) -> u64 {
    let before = network.received(2);
    std::thread::sleep(Duration::from_secs(1));
    network.received(2) - before
}

#[test]
#[ignore = "a download of twenty seconds; `make slow` runs it"]
fn a_slow_path_becomes_a_backup_and_carries_data_again_at_the_end() {
    require!();
    let machine = Machine::take();
    let network = Network::of(&[(8, 10), (1, 40)]);
    let userspace = network.server().sysctl(&[("net/mptcp/path_manager", "userspace")]);
    userspace.or_else(|_| network.server().sysctl(&[("net/mptcp/pm_type", "1")])).expect("a path manager");
    attach(machine.file_system(), Control::Lia, &on_port()).expect("attached");
    // Ten samples instead of 150, so that the first decision comes after a second.
    let options = Options::new(vec![("n".into(), Value::Number(10.0))]);
    let begin = || PathUse::begin(machine.file_system(), "pud", options);
    let mut paths = network.server().run(begin).expect("a namespace").expect("path use");
    let download = network.download(Protocol::Mptcp, PORT, 20_000_000);
    let decision = loop {
        let decisions = paths.tick().expect("a table");
        if let Some(decision) = decisions.into_iter().next() {
            break decision;
        }
        assert!(!only(&machine).subflows.is_empty(), "the download ended without a decision");
    };
    assert!(!decision.used, "{decision:?}");
    assert_eq!(decision.subflow.remote.0, Family::V4.client(PathId(1)), "{decision:?}");
    // What was queued on it drains first.
    wait_until("the backup receives next to nothing", || flow_of_second_path(&network) < 5_000);
    assert!(!only(&machine).subflows.is_empty(), "the download ended meanwhile");
    paths.end();
    wait_until("it carries data again", || flow_of_second_path(&network) > 30_000);
    assert_eq!(download.join(), 20_000_000);
    wait_until_idle(&machine);
    detach(machine.file_system(), None).expect("detached");
    assert_clean(&machine);
}

#[test]
fn path_use_needs_the_path_manager_of_user_space() {
    require!();
    let machine = Machine::take();
    let network = Network::new(1);
    let begin = |policy: &'static str| {
        let begin = || PathUse::begin(machine.file_system(), policy, Options::default());
        network.server().run(begin).expect("a namespace").expect_err("refused")
    };
    assert!(matches!(begin("pudd"), KernelError::Input(_)));
    let KernelError::Machine(message) = begin("pud") else { panic!("it is the machine's") };
    assert!(message.contains("sysctl net.mptcp.path_manager=userspace"), "{message}");
}

/// Names the file system to the process that is killed.
const VICTIM: &str = "ANABRANCH_KERNEL_VICTIM";

#[test]
#[ignore = "a process that another test kills"]
fn attaches_and_detaches_until_it_is_killed() {
    let Some(file_system) = std::env::var_os(VICTIM) else { return };
    let file_system = std::path::Path::new(&file_system);
    loop {
        attach(file_system, Control::Lia, &on_port()).expect("attached");
        detach(file_system, None).expect("detached");
    }
}

/// Kills a process at different moments of its work, and returns how often something was left.
fn kill_at_work(times: u64) -> u32 {
    let machine = Machine::take();
    let mut incomplete = 0;
    for round in 0..times {
        let mut victim = Command::new(std::env::current_exe().expect("this program"))
            .args(["--exact", "attaches_and_detaches_until_it_is_killed", "--ignored"])
            .env(VICTIM, machine.file_system())
            .stdout(Stdio::null())
            .spawn()
            .expect("this program starts");
        std::thread::sleep(Duration::from_millis(150 + 7 * round));
        victim.kill().expect("it runs until it is killed");
        victim.wait().expect("it ended");
        incomplete += u32::from(machine.has_pins());
        if round % 2 == 0 {
            let _ = detach(machine.file_system(), None).expect("detached");
        } else {
            match attach(machine.file_system(), Control::Lia, &on_port()) {
                // The victim was killed between the two commands.
                Err(KernelError::Input(message)) => assert!(message.contains("attached already"), "{message}"),
                other => other.expect("attached"),
            }
            assert_eq!(detach(machine.file_system(), None).expect("detached"), [Control::Lia]);
        }
        assert_clean(&machine);
    }
    incomplete
}

#[test]
fn what_a_killed_process_leaves_is_removed_by_the_next_command() {
    require!();
    kill_at_work(5);
}

#[test]
#[ignore = "takes ten seconds; `make slow` runs it"]
fn what_a_process_leaves_that_was_killed_twenty_times_is_removed() {
    require!();
    assert!(kill_at_work(20) > 0, "no kill left anything to remove");
}
