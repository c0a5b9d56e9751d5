//! What the links of sessions whose link time is accounted for were busy with.

use super::flow::Flow;
use super::packet::{Network, Packet};
use anabranch_network::Departed;
use anabranch_observation::Passed;
use anabranch_units::Instant;

/// The links that limit the paths of accounted sessions.
#[derive(Default)]
pub(super) struct BusyLinks {
    links: Vec<BusyLink>,
}

struct BusyLink {
    /// Position among the directed links.
    at: usize,
    /// Flows by position, and the position of their path among their own. Of two paths of a flow over one link the
    /// first counts.
    users: Vec<(usize, usize)>,
    departed: Vec<Departed<Packet>>,
}

impl BusyLinks {
    /// Observes the links of all flows with an account.
    pub fn new(network: &mut Network, flows: &[Flow]) -> Self {
        let mut links: Vec<BusyLink> = Vec::new();
        for (number, flow) in flows.iter().enumerate().filter(|(_, flow)| flow.observer.account.is_some()) {
            for (position, path) in flow.paths().iter().enumerate() {
                let at = network.slowest_downlink(*path);
                network.link(at).observe_departures();
                match links.iter_mut().find(|link| link.at == at) {
                    Some(link) if link.users.iter().any(|(user, _)| *user == number) => {}
                    Some(link) => link.users.push((number, position)),
                    None => links.push(BusyLink { at, users: vec![(number, position)], departed: Vec::new() }),
                }
            }
        }
        BusyLinks { links }
    }

    /// Enters everything until `now` in the accounts.
    pub fn settle(&mut self, now: Instant, network: &mut Network, flows: &mut [Flow], interfaces: &[bool]) {
        for link in &mut self.links {
            let direction = network.link(link.at);
            direction.advance(now);
            let (serving_since, up) = (direction.serving_since(), direction.is_up());
            link.departed.extend(direction.drain_departures());
            for &(number, position) in &link.users {
                let path = flows[number].paths()[position];
                let Some(account) = &mut flows[number].observer.account else { continue };
                let passed = link.departed.iter().map(|departed| of_flow(departed, number));
                account.settle(now, position, passed, serving_since, up && interfaces[path.index()]);
            }
            link.departed.clear();
        }
    }
}

/// A packet as it counts for a flow.
fn of_flow(departed: &Departed<Packet>, number: usize) -> Passed {
    let Departed { packet, began, at, dropped } = departed;
    let segment = &packet.segment;
    let mapping = segment.dss.and_then(|dss| dss.mapping);
    let position = mapping.map_or(segment.seq.0, |mapping| {
        let dsn = mapping.dsn;
        dsn.value as u32
    });
    Passed {
        foreign: (packet.flow as usize != number).then_some(packet.flow),
        payload: (position, segment.payload_len),
        began: *began,
        at: *at,
        dropped: *dropped,
    }
}
