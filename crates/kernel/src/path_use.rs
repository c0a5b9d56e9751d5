//! Path use by a path policy of `anabranch-stack`: subflows that it forbids become backups by MP_PRIO, which the
//! kernel's scheduler respects.
//!
//! The policy gets the windows and round trips that the programs write. Between two changes of a subflow's flag lie at
//! least
//! [`HOLD`]: a change is seen by the peer, too, and a path that is at the edge must not flap.

use crate::netlink::PathManager;
use crate::table::Subflow;
use crate::{KernelError, attachments};
use anabranch_stack::options::Options;
use anabranch_stack::path_policy::{PathPolicy, create};
use anabranch_stack::view::{Packets, SubflowView};
use anabranch_units::{Duration, Instant};
use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The shortest time between two changes of a subflow.
const HOLD: Duration = Duration::from_secs(5);
/// How often the table is read: the sampling period of PUD.
const PERIOD: std::time::Duration = std::time::Duration::from_millis(100);
/// Which path manager new connections of this namespace get, newer name first.
const SETTINGS: [(&str, &str); 2] =
    [("/proc/sys/net/mptcp/path_manager", "userspace"), ("/proc/sys/net/mptcp/pm_type", "1")];

/// A decision that was carried out.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// The subflow as it was then.
    pub subflow: Subflow,
    /// Whether it may carry new data.
    pub used: bool,
}

/// The path policy of all connections of this namespace that have a coupled control.
#[derive(Debug)]
pub struct PathUse {
    file_system: PathBuf,
    policy: String,
    options: Options,
    manager: PathManager,
    namespace: u32,
    began: std::time::Instant,
    connections: BTreeMap<u32, Connection>,
}

#[derive(Debug)]
struct Connection {
    policy: Box<dyn PathPolicy>,
    /// Whether each subflow is used, and since when, by its number.
    flags: BTreeMap<u32, (bool, Instant)>,
}

fn view(subflow: &Subflow) -> SubflowView {
    let rtt = Duration::from_secs_f64(subflow.rtt_s);
    let idle = SubflowView::idle(subflow.number as u16, subflow.mss, Packets::from_f64(subflow.window), rtt);
    SubflowView { in_flight: subflow.in_flight, ..idle }
}

impl Connection {
    /// The changes that the policy wants now.
    fn decide(&mut self, now: Instant, subflows: &[Subflow]) -> Vec<Decision> {
        let views: Vec<_> = subflows.iter().map(view).collect();
        let allowed = self.policy.decide(now, &views);
        self.flags.retain(|number, _| subflows.iter().any(|subflow| subflow.number == *number));
        let mut changes = Vec::new();
        for (position, subflow) in subflows.iter().enumerate() {
            let used = allowed.contains(position);
            let (flag, since) = self.flags.entry(subflow.number).or_insert((true, Instant::ZERO));
            if *flag != used && (*since == Instant::ZERO || now.since(*since) >= HOLD) {
                (*flag, *since) = (used, now);
                changes.push(Decision { subflow: subflow.clone(), used });
            }
        }
        changes
    }
}

impl PathUse {
    /// Begins with the connections of this network namespace.
    ///
    /// # Errors
    /// If there is no such policy, or the namespace's path manager is not the one of user space.
    pub fn begin(file_system: &Path, policy: &str, options: Options) -> Result<Self, KernelError> {
        create(policy, &options).map_err(|error| KernelError::Input(error.message))?;
        let read = |path: &str| std::fs::read_to_string(path).ok();
        let ready = SETTINGS.iter().any(|(path, wanted)| read(path).is_some_and(|text| text.trim() == *wanted));
        if !ready {
            let message = "MP_PRIO of single subflows needs the path manager of user space in this namespace; \
                           sysctl net.mptcp.path_manager=userspace (net.mptcp.pm_type=1 before Linux 6.16)";
            return Err(KernelError::Machine(message.into()));
        }
        let namespace = std::fs::metadata("/proc/thread-self/ns/net")
            .map_err(|error| KernelError::refused("cannot find this network namespace", error))?;
        Ok(PathUse {
            file_system: file_system.to_owned(),
            policy: policy.to_owned(),
            options,
            manager: PathManager::open()?,
            namespace: namespace.ino() as u32,
            began: std::time::Instant::now(),
            connections: BTreeMap::new(),
        })
    }

    /// Waits for the next tick, and decides; returns what was changed.
    ///
    /// # Errors
    /// If the table cannot be read.
    pub fn tick(&mut self) -> Result<Vec<Decision>, KernelError> {
        std::thread::sleep(PERIOD);
        self.manager.drain();
        let now = Instant::ZERO + Duration::from_nanos(self.began.elapsed().as_nanos() as u64);
        let mut done = Vec::new();
        let connections = self.subflows()?;
        self.connections.retain(|token, _| connections.contains_key(token));
        for (token, subflows) in connections {
            let connection = self.connections.entry(token).or_insert_with(|| Connection {
                policy: create(&self.policy, &self.options).expect("it was created before"),
                flags: BTreeMap::new(),
            });
            done.extend(connection.decide(now, &subflows));
        }
        // A subflow that has just closed is no fault.
        done.retain(|decision| self.carry_out(decision).is_ok());
        Ok(done)
    }

    /// Lets every subflow carry data again.
    pub fn end(self) {
        let Ok(connections) = self.subflows() else { return };
        for subflow in connections.into_values().flatten() {
            let flag =
                self.connections.get(&subflow.token).and_then(|connection| connection.flags.get(&subflow.number));
            if flag.is_some_and(|(used, _)| !used) {
                let _ = self.carry_out(&Decision { subflow, used: true });
            }
        }
    }

    fn carry_out(&self, decision: &Decision) -> rustix::io::Result<()> {
        let Decision { subflow, used } = decision;
        self.manager.set_backup(subflow.token, subflow.local, subflow.remote, !used)
    }

    /// The subflows of each connection of this namespace.
    fn subflows(&self) -> Result<BTreeMap<u32, Vec<Subflow>>, KernelError> {
        let mut found: BTreeMap<u32, Vec<Subflow>> = BTreeMap::new();
        let all = attachments(&self.file_system)?.into_iter().flat_map(|attachment| attachment.subflows);
        for subflow in all.filter(|subflow| subflow.namespace == self.namespace) {
            found.entry(subflow.token).or_default().push(subflow);
        }
        Ok(found)
    }
}
