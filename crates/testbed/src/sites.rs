//! The scenario's clients and its server as namespaces, and the network between them.

use crate::error::{Doing, TestbedError};
use crate::options::ServerKind;
use anabranch_media::pacing;
use anabranch_scenario::Scenario;
use anabranch_scenario::{DirectionSpec, FlowPlan, TooBig};
use anabranch_stack::connection::{Protocol, Transport};
use anabranch_testnet::sites::{Family, MAX_NUMBER, MAX_PATHS, Plan, Site, SitePath};
use anabranch_testnet::{Far, Netns, Pipes, Route, Topology};
use anabranch_units::PathId;
use std::fs;

/// More clients than this would measure the machine.
const MOST_FLOWS: usize = 16;

/// The largest MTU of a TUN device (`MAX_MTU` of `tun.c`, for IPv4 without an Ethernet header).
const MOST_MTU: u32 = 65_521;

/// The control that a kernel's server uses if it does not have the scenario's; Linux's default.
const KERNEL_DEFAULT: &str = "cubic";

/// A flow's namespace and its configuration.
pub(crate) struct Client {
    pub plan: Plan,
    pub namespace: Netns,
}

/// All namespaces.
pub(crate) struct Sites {
    pub clients: Vec<Client>,
    pub server: Option<Netns>,
    pub network: Topology,
}

/// The scenario's address family, if the testbed can build the scenario.
pub(crate) fn check(scenario: &Scenario, flows: &[FlowPlan], server: ServerKind) -> Result<Family, TestbedError> {
    let refuse = |why: String| Err(TestbedError::Refused { scenario: scenario.name.clone(), why });
    if flows.is_empty() {
        return refuse("it has no session and no cross traffic".into());
    }
    let reports = |direction: &DirectionSpec| direction.too_big == Some(TooBig::Reported);
    if let Some(link) = scenario.links.iter().find(|link| reports(&link.up) || reports(&link.down)) {
        let name = &link.name;
        return refuse(format!("its link {name} reports packets that are too big; here `too_big` is known or silent"));
    }
    let pacing = &scenario.server.response_pacing.name;
    if server == ServerKind::Kernel && pacing != pacing::DEFAULT {
        return refuse(format!(
            "its server paces responses (`server.response_pacing` is {pacing}), which the kernel's does not; take the server {}, or the \
             pacing {}",
            ServerKind::Anabranch.name(),
            pacing::DEFAULT
        ));
    }
    if let Some(position) = scenario.events.iter().position(|event| event.session.is_some()) {
        return refuse(format!("its [[event]] {position} stops a program of a session, which only a simulation does"));
    }
    if flows.len() > MOST_FLOWS {
        return refuse(format!("it has {} connections; up to {MOST_FLOWS} are possible", flows.len()));
    }
    let paths: usize = flows.iter().map(|flow| flow.paths.len()).sum();
    if paths > usize::from(MAX_NUMBER) || flows.iter().any(|flow| flow.paths.len() > usize::from(MAX_PATHS)) {
        return refuse(format!("a kernel opens up to {MAX_PATHS} subflows; a session has more paths"));
    }
    let family = if scenario.paths[0].ip == 6 { Family::V6 } else { Family::V4 };
    if scenario.paths.iter().any(|path| path.ip != scenario.paths[0].ip) {
        return refuse("its paths mix IPv4 and IPv6; all of them must be of one kind".into());
    }
    Ok(family)
}

/// The kernel's names of controls, by ours. The coupled ones are there while `anabranch kernel attach` has attached
/// them to something.
const KERNEL_NAMES: [(&str, &str); 7] = [
    ("newreno", "reno"),
    ("cubic", "cubic"),
    ("bbr", "bbr"),
    ("lia", "anabranch_lia"),
    ("olia", "anabranch_olia"),
    ("balia", "anabranch_balia"),
    ("mcc", "anabranch_mcc"),
];

/// The kernel's name of a control; `None` if this kernel does not have it.
fn kernel_control(name: &str) -> Option<&'static str> {
    let (_, wanted) = KERNEL_NAMES.into_iter().find(|(own, _)| *own == name)?;
    let available = fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap_or_default();
    available.split_whitespace().any(|own| own == wanted).then_some(wanted)
}

/// The control with which a kernel serves a flow, and a note if it is not the scenario's.
pub(crate) fn serving_control(flow: &FlowPlan) -> (String, Option<String>) {
    let name = &flow.transport.congestion_control.name;
    match kernel_control(name) {
        Some(known) => (known.to_owned(), None),
        None => {
            let note = format!(
                "{}: this kernel has no congestion control `{name}`; it serves with {KERNEL_DEFAULT}",
                flow.name
            );
            (KERNEL_DEFAULT.to_owned(), Some(note))
        }
    }
}

/// The default and the largest memory of a receive buffer (`tcp_rmem`), in bytes.
fn receive_memory_of(flow: &FlowPlan, family: Family) -> (u64, u64) {
    let headers = if family == Family::V6 { 60 } else { 40 };
    // A kernel's data sequence numbers are wide.
    let transport = Transport { wide_data_seq: true, ..flow.transport.clone() };
    transport.receive_memory(flow.server.paths[0].mtu.saturating_sub(headers))
}

/// Kernel parameters for the configuration of a flow's endpoints.
fn settings(flow: &FlowPlan, family: Family) -> Vec<(&'static str, String)> {
    let t = &flow.transport;
    let (first, most) = receive_memory_of(flow, family);
    let receive = format!("4096 {first} {most}");
    let flag = |on: bool| if on { "1" } else { "0" }.to_owned();
    vec![
        // The client's control, whose requests are short. A namespace may not choose every control; a server's sockets
        // may.
        ("net/ipv4/tcp_congestion_control", "reno".to_owned()),
        ("net/ipv4/tcp_rmem", receive),
        ("net/ipv4/tcp_wmem", format!("4096 {} {}", 16_384.min(t.send_buffer.0), t.send_buffer.0)),
        ("net/ipv4/tcp_timestamps", flag(t.timestamps)),
        ("net/ipv4/tcp_slow_start_after_idle", flag(t.idle_restart)),
    ]
}

/// Builds the namespaces of the flows. Each flow gets the emulator's next paths; the server of the first flow
/// determines the settings that a kernel's server has only once.
pub(crate) fn build(
    scenario: &Scenario,
    flows: &[FlowPlan],
    family: Family,
    server: ServerKind,
    links: Vec<Pipes>,
) -> Result<Sites, TestbedError> {
    let mut number = 0;
    let mut plans = Vec::new();
    for flow in flows {
        let path = |(i, at): (usize, &usize)| {
            let mtu = flow.server.paths[i].mtu.min(MOST_MTU);
            SitePath { id: PathId(number + i as u16), mtu, backup: scenario.paths[*at].backup }
        };
        let paths: Vec<_> = flow.paths.iter().enumerate().map(path).collect();
        number += paths.len() as u16;
        let plan = Plan { family, paths, settings: settings(flow, family), initial_window: None };
        plans.push(plan);
    }
    let far = match server {
        ServerKind::Anabranch => None,
        ServerKind::Kernel => {
            let plan = Plan {
                paths: plans.iter().flat_map(|plan| plan.paths.clone()).collect(),
                initial_window: Some(flows[0].transport.initial_window),
                ..plans[0].clone()
            };
            Some(plan.server().doing("cannot set up the server's namespace")?)
        }
    };
    let (server, far_devices) = match far {
        Some(Site { devices, namespace }) => (Some(namespace), devices.into_iter().map(Far::Device).collect()),
        None => (None, Vec::new()),
    };
    let mut far_devices = far_devices.into_iter();
    let (mut clients, mut paths) = (Vec::new(), Vec::new());
    for (flow, plan) in flows.iter().zip(plans) {
        let Site { devices, namespace } = plan.client().doing("cannot set up a client's namespace")?;
        for (device, at) in devices.into_iter().zip(&flow.paths) {
            let far = far_devices.next().unwrap_or(Far::Host);
            paths.push(Route { client: device, far, links: scenario.links_of(&scenario.paths[*at]) });
        }
        clients.push(Client { plan, namespace });
    }
    Ok(Sites { clients, server, network: Topology { links, paths } })
}

/// Whether the client's sockets use Multipath TCP.
pub(crate) fn is_multipath(flow: &FlowPlan) -> bool {
    flow.transport.protocol == Protocol::Mptcp
}
