//! Packets on their routes through the links.

use super::agenda::Agenda;
use anabranch_events::LinkEvent;
use anabranch_network::{Change, Direction};
use anabranch_scenario::Scenario;
use anabranch_scenario::{DirectedLink, directed_links};
use anabranch_segment::Segment;
use anabranch_units::{Instant, PathId};

/// A segment in its IP packet.
#[derive(Clone, Debug)]
pub(super) struct Packet {
    pub segment: Segment,
    /// Size with the IP header.
    pub bytes: u32,
    /// Number of its flow.
    pub flow: u32,
    /// Its route.
    pub path: PathId,
    /// Whether it goes to the client.
    pub down: bool,
    /// Number of links passed, the current one not counted.
    pub hop: u8,
}

impl anabranch_network::Packet for Packet {
    #[inline]
    fn bytes(&self) -> u32 {
        self.bytes
    }

    fn duplicate(&self) -> Self {
        self.clone()
    }
}

/// The links of one path.
struct Route {
    /// Positions of directions, in the order in which a packet to the server and one to the client takes them.
    up: Vec<u32>,
    down: Vec<u32>,
    ip_header: u32,
}

/// All links, each direction one component of the agenda.
pub(super) struct Network {
    directions: Vec<DirectedLink<Packet>>,
    routes: Vec<Route>,
    /// The component of the first direction.
    first: usize,
}

/// Bytes of an IP header without options (RFC 791, RFC 8200).
fn ip_header(version: u8) -> u32 {
    if version == 6 { 40 } else { 20 }
}

impl Network {
    /// The scenario's links. Their components are `first` and following, two per link: down, up.
    pub fn new(scenario: &Scenario, seed: u64, first: usize) -> Self {
        let routes = scenario.paths.iter().map(|path| Route {
            up: scenario.links_of(path).into_iter().map(|link| down_direction(link) + 1).collect(),
            down: scenario.links_of(path).into_iter().rev().map(down_direction).collect(),
            ip_header: ip_header(path.ip),
        });
        Network { directions: directed_links(scenario, seed), routes: routes.collect(), first }
    }

    /// Number of components of the links.
    pub fn len(&self) -> usize {
        self.directions.len()
    }

    /// Sends a segment from an endpoint.
    #[inline]
    pub fn enter(
        &mut self,
        now: Instant,
        (flow, down): (u32, bool),
        path: PathId,
        segment: Segment,
        agenda: &mut Agenda,
    ) {
        let bytes = segment.len() + self.routes[path.index()].ip_header;
        self.forward(now, Packet { segment, bytes, flow, path, down, hop: 0 }, agenda);
    }

    /// Sends a packet into the link of its hop.
    #[inline]
    fn forward(&mut self, now: Instant, packet: Packet, agenda: &mut Agenda) {
        let route = &self.routes[packet.path.index()];
        let way = if packet.down { &route.down } else { &route.up };
        let at = way[usize::from(packet.hop)] as usize;
        let direction = &mut self.directions[at].direction;
        direction.send(now, packet);
        agenda.set(self.first + at, direction.poll_timeout().unwrap_or(Instant::FAR_FUTURE));
    }

    /// The next packet that has arrived at its endpoint over the link of this component; it stays in the link until
    /// [`Network::remove_arrival`]. Packets that have only arrived at their next link are forwarded. Call until it returns `None`.
    #[inline]
    pub fn peek_arrival(&mut self, now: Instant, component: usize, agenda: &mut Agenda) -> Option<&Packet> {
        let at = component - self.first;
        while let Some(packet) = self.directions[at].direction.peek_delivery(now) {
            let hops = self.routes[packet.path.index()].up.len();
            if usize::from(packet.hop) + 1 == hops {
                return self.directions[at].direction.peek_delivery(now);
            }
            if let Some(mut packet) = self.directions[at].direction.poll_delivery(now) {
                packet.hop += 1;
                self.forward(now, packet, agenda);
            }
        }
        let next = self.directions[at].direction.poll_timeout();
        agenda.set(component, next.unwrap_or(Instant::FAR_FUTURE));
        None
    }

    /// Removes the packet that [`Network::peek_arrival`] returned.
    #[inline]
    pub fn remove_arrival(&mut self, component: usize) {
        self.directions[component - self.first].direction.remove_delivery();
    }

    /// Changes a direction of a link.
    pub fn change(&mut self, now: Instant, link: usize, down: bool, changes: Vec<Change>, agenda: &mut Agenda) {
        let at = down_direction(link) as usize + usize::from(!down);
        let direction = &mut self.directions[at].direction;
        for change in changes {
            direction.change(now, change);
        }
        agenda.set(self.first + at, direction.poll_timeout().unwrap_or(Instant::FAR_FUTURE));
    }

    /// Whether a link of the path is cut in either direction.
    pub fn is_cut(&self, path: PathId) -> bool {
        let route = &self.routes[path.index()];
        route.up.iter().chain(&route.down).any(|at| !self.directions[*at as usize].direction.is_up())
    }

    /// Drains the events of the links since the last call.
    pub fn drain_logs(&mut self, mut see: impl FnMut(usize, Instant, LinkEvent)) {
        for (at, link) in self.directions.iter_mut().enumerate() {
            for (when, event) in link.direction.log().drain() {
                see(at, when, event);
            }
        }
    }

    /// Every direction: the link's name, whether it is the downlink, and its counters as of `now`.
    pub fn directions(&mut self, now: Instant) -> impl Iterator<Item = (&str, bool, &Direction<Packet>)> {
        self.directions.iter_mut().map(move |link| {
            link.direction.advance(now);
            (link.link.as_str(), link.down, &link.direction)
        })
    }
}

/// The position of a link's downlink; its uplink follows.
fn down_direction(link: usize) -> u32 {
    2 * link as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_segment::Flags;
    use anabranch_units::Duration;

    fn network(text: &str) -> (Network, Agenda) {
        let text = format!("schema = 1\nduration = \"1 s\"\n{text}\n[[session]]\n");
        let scenario = anabranch_scenario::load(&text, "x", None, &[]).unwrap();
        (Network::new(&scenario, 1, 0), Agenda::new(2 * scenario.links.len()))
    }

    /// Runs until no packet is in flight and returns the arrivals.
    fn arrivals(network: &mut Network, agenda: &mut Agenda) -> Vec<(u64, u32, bool)> {
        let mut seen = Vec::new();
        loop {
            let (now, component) = agenda.next();
            if now == Instant::FAR_FUTURE {
                return seen;
            }
            while let Some(packet) = network.peek_arrival(now, component, agenda) {
                seen.push((now.as_nanos() / 1_000, packet.flow, packet.down));
                network.remove_arrival(component);
            }
        }
    }

    fn segment(payload: u32) -> Segment {
        Segment { payload_len: payload, ..Segment::new(Flags::ACK) }
    }

    #[test]
    fn a_packet_is_small_enough_to_be_copied_without_a_call() {
        assert!(size_of::<Packet>() <= 128, "{} bytes", size_of::<Packet>());
    }

    #[test]
    fn a_packet_takes_every_link_of_its_path_in_both_directions() {
        let (mut network, mut agenda) = network(
            "[link.a]\nrate = \"8 Mb/s\"\nrtt = \"10 ms\"\n[link.b]\ndown = { rate = \"4 Mb/s\", delay = \"7 ms\" }\n\
             up = { rate = \"1 Mb/s\", delay = \"9 ms\" }\n[path.p]\nlinks = [\"a\", \"b\"]",
        );
        // 960 bytes of payload, 20 of TCP and 20 of IP: 1 ms at 8 Mb/s, 2 ms at 4 Mb/s, 8 ms at 1 Mb/s.
        network.enter(Instant::ZERO, (1, true), PathId(0), segment(960), &mut agenda);
        network.enter(Instant::ZERO, (2, false), PathId(0), segment(960), &mut agenda);
        let seen = arrivals(&mut network, &mut agenda);
        assert_eq!(seen, [(2_000 + 7_000 + 1_000 + 5_000, 1, true), (1_000 + 5_000 + 8_000 + 9_000, 2, false)]);
    }

    #[test]
    fn paths_that_share_a_link_share_its_queue() {
        let (mut network, mut agenda) =
            network("[link.a]\nrate = \"8 Mb/s\"\n[path.p]\nlinks = [\"a\"]\n[path.q]\nlinks = [\"a\"]\nip = 6");
        network.enter(Instant::ZERO, (1, true), PathId(0), segment(960), &mut agenda);
        network.enter(Instant::ZERO, (2, true), PathId(1), segment(940), &mut agenda);
        assert_eq!(arrivals(&mut network, &mut agenda), [(1_000, 1, true), (2_000, 2, true)]);
    }

    #[test]
    fn a_cut_link_keeps_nothing() {
        let (mut network, mut agenda) = network("[link.a]\nrate = \"8 Mb/s\"\nrtt = \"20 ms\"");
        network.enter(Instant::ZERO, (1, true), PathId(0), segment(960), &mut agenda);
        let cut = Instant::ZERO + Duration::from_micros(500);
        network.change(cut, 0, true, vec![Change::Up(false)], &mut agenda);
        assert_eq!(arrivals(&mut network, &mut agenda), []);
        let mut drops = 0;
        network.drain_logs(|_, _, event| drops += usize::from(matches!(event, LinkEvent::Dropped { .. })));
        assert_eq!(drops, 1);
    }
}
