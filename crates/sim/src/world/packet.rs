//! Packets on their routes through the links.

use super::agenda::Agenda;
use anabranch_events::LinkEvent;
use anabranch_network::{Change, Direction};
use anabranch_scenario::Scenario;
use anabranch_scenario::{DirectedLink, directed_links};
use anabranch_segment::Segment;
use anabranch_stack::connection::Transmit;
use anabranch_units::{Instant, LinkDirection, PathId, PerDirection};

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
    pub direction: LinkDirection,
    /// Number of links passed, the current one not counted.
    pub hop: u8,
    /// A report about the segment, with the MTU that it did not fit into; zero for the segment itself.
    pub too_big: u32,
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
    /// Positions of directed links, in the order in which a packet takes them.
    links: PerDirection<Vec<u32>>,
    ip_header: u32,
}

/// All links, each direction one component of the agenda.
pub(super) struct Network {
    links: Vec<DirectedLink<Packet>>,
    routes: Vec<Route>,
    /// The component of the first direction.
    first: usize,
    /// Reports of the endpoints' own interfaces, and how many others there were.
    refused: Vec<Packet>,
    reported: u64,
}

/// Bytes of an IP header without options (RFC 791, RFC 8200).
fn ip_header(version: u8) -> u32 {
    if version == 6 { 40 } else { 20 }
}

impl Network {
    /// The scenario's links. Their components are `first` and following, two per link: down, up.
    pub fn new(scenario: &Scenario, seed: u64, first: usize) -> Self {
        let routes = scenario.paths.iter().map(|path| Route {
            links: PerDirection {
                down: scenario
                    .links_of(path)
                    .into_iter()
                    .rev()
                    .map(|link| position(link, LinkDirection::Down))
                    .collect(),
                up: scenario.links_of(path).into_iter().map(|link| position(link, LinkDirection::Up)).collect(),
            },
            ip_header: ip_header(path.ip),
        });
        Network {
            links: directed_links(scenario, seed),
            routes: routes.collect(),
            first,
            refused: Vec::new(),
            reported: 0,
        }
    }

    /// Number of components of the links.
    pub fn len(&self) -> usize {
        self.links.len()
    }

    /// Sends what an endpoint of this flow transmits. Not inlined, so that the segment is moved as a whole and not
    /// field by field.
    #[inline(never)]
    pub fn enter(
        &mut self,
        now: Instant,
        (flow, direction): (u32, LinkDirection),
        transmit: Transmit,
        agenda: &mut Agenda,
    ) {
        let Transmit { path, segment, .. } = transmit;
        let bytes = segment.len() + self.routes[path.index()].ip_header;
        self.forward(now, Packet { segment, bytes, flow, path, direction, hop: 0, too_big: 0 }, agenda);
    }

    /// Sends a packet into the link of its hop. Inlined, so that the packet is built where the link keeps it.
    #[inline(always)]
    fn forward(&mut self, now: Instant, packet: Packet, agenda: &mut Agenda) {
        let route = &self.routes[packet.path.index()];
        let at = route.links[packet.direction][usize::from(packet.hop)] as usize;
        let link = &mut self.links[at].link;
        if packet.bytes > link.mtu() && link.reports_too_big() {
            return self.refuse(now, at, packet, agenda);
        }
        link.send(now, packet);
        agenda.set(self.first + at, link.next_delivery());
    }

    /// The packet is too big for the link, and its sender gets a report, which takes the way back.
    #[cold]
    fn refuse(&mut self, now: Instant, at: usize, packet: Packet, agenda: &mut Agenda) {
        let mtu = self.links[at].link.mtu();
        let report = report(&packet, mtu, &self.routes[packet.path.index()]);
        let link = &mut self.links[at].link;
        link.send(now, packet);
        agenda.set(self.first + at, link.next_delivery());
        let Some(report) = report else { return };
        if usize::from(report.hop) == self.routes[report.path.index()].links.up.len() {
            // The link is at the sender itself.
            return self.refused.push(report);
        }
        self.reported += 1;
        self.forward(now, report, agenda);
    }

    /// A report to an endpoint about a packet that its own interface did not take.
    pub fn next_refused(&mut self) -> Option<Packet> {
        self.refused.pop()
    }

    /// Number of reports sent over links.
    pub fn reported(&self) -> u64 {
        self.reported
    }

    /// The next packet that has arrived at its endpoint over the link of this component; it stays in the link until
    /// [`Network::remove_arrival`]. Packets that have only arrived at their next link are forwarded. Call until it
    /// returns `None`.
    #[inline]
    pub fn peek_arrival(&mut self, now: Instant, component: usize, agenda: &mut Agenda) -> Option<&Packet> {
        let at = component - self.first;
        let next = self.links[at].link.next_delivery();
        if next > now {
            agenda.set(component, next);
            return None;
        }
        while let Some(packet) = self.links[at].link.peek_delivery(now) {
            let hops = self.routes[packet.path.index()].links.up.len();
            if usize::from(packet.hop) + 1 == hops {
                return self.links[at].link.arrived();
            }
            if let Some(mut packet) = self.links[at].link.poll_delivery(now) {
                packet.hop += 1;
                self.forward(now, packet, agenda);
            }
        }
        agenda.set(component, self.links[at].link.next_delivery());
        None
    }

    /// Removes the packet that [`Network::peek_arrival`] returned.
    #[inline]
    pub fn remove_arrival(&mut self, component: usize) {
        self.links[component - self.first].link.remove_delivery();
    }

    /// Changes a direction of a link.
    pub fn change(
        &mut self,
        now: Instant,
        (link, direction): (usize, LinkDirection),
        changes: Vec<Change>,
        agenda: &mut Agenda,
    ) {
        let at = position(link, direction) as usize;
        let link = &mut self.links[at].link;
        for change in changes {
            link.change(now, change);
        }
        agenda.set(self.first + at, link.next_delivery());
    }

    /// Whether a link of the path is cut in either direction.
    pub fn is_cut(&self, path: PathId) -> bool {
        let PerDirection { down, up } = &self.routes[path.index()].links;
        up.iter().chain(down).any(|at| !self.links[*at as usize].link.is_up())
    }

    /// The position of the direction of a path that limits its data, the slowest downlink, among all directed links.
    pub fn slowest_downlink(&self, path: PathId) -> usize {
        let down = self.routes[path.index()].links.down.iter().map(|at| *at as usize);
        down.min_by_key(|at| self.links[*at].link.mean_rate()).expect("a path has a link")
    }

    /// A direction of a link, by its position.
    pub fn link(&mut self, at: usize) -> &mut Direction<Packet> {
        &mut self.links[at].link
    }

    /// From here on, [`Network::drain_logs`] has the packets that were dropped.
    pub fn keep_dropped(&mut self) {
        self.links.iter_mut().for_each(|link| link.link.keep_dropped());
    }

    /// Drains the events of the links since the last call, each drop with its packet where they are kept.
    pub fn drain_logs(&mut self, mut see: impl FnMut(usize, Instant, LinkEvent, Option<Packet>)) {
        for (at, link) in self.links.iter_mut().enumerate() {
            for (when, event, packet) in link.link.drain_drops() {
                see(at, when, event, packet);
            }
        }
    }

    /// Takes the packet that leaves a link next, which then arrives nowhere; gives the time.
    #[cfg(test)]
    pub fn take_next_delivery(&mut self) -> Instant {
        let link = self.links.iter_mut().map(|link| &mut link.link).min_by_key(|link| link.next_delivery());
        let link = link.expect("a network has links");
        let at = link.next_delivery();
        link.poll_delivery(at).expect("a packet is under way");
        at
    }

    /// Every direction of every link, with its counters as of `now`.
    pub fn directed_links(&mut self, now: Instant) -> impl Iterator<Item = &DirectedLink<Packet>> {
        self.links.iter_mut().map(move |link| {
            link.link.advance(now);
            &*link
        })
    }
}

/// The report about a packet that the next link of its route does not take, on its way back: the IP header, that of
/// ICMP, and what is quoted, which is 8 bytes behind the packet's own IP header over IPv4 (RFC 792), and as much as
/// fits over IPv6 (RFC 4443).
fn report(packet: &Packet, mtu: u32, route: &Route) -> Option<Packet> {
    const ICMP_HEADER: u32 = 8;
    if packet.too_big > 0 {
        // No report about a report (RFC 1122 section 3.2.2).
        return None;
    }
    let quoted = if route.ip_header == ip_header(6) {
        packet.bytes.min(1_280 - route.ip_header - ICMP_HEADER)
    } else {
        route.ip_header + 8
    };
    // Of the quoted segment the receiver of the report needs ports, number and length.
    let mut segment = Segment::new(packet.segment.flags);
    (segment.source_port, segment.destination_port) = (packet.segment.destination_port, packet.segment.source_port);
    (segment.seq, segment.payload_len) = (packet.segment.seq, packet.bytes);
    Some(Packet {
        segment,
        bytes: route.ip_header + ICMP_HEADER + quoted,
        flow: packet.flow,
        path: packet.path,
        direction: match packet.direction {
            LinkDirection::Up => LinkDirection::Down,
            LinkDirection::Down => LinkDirection::Up,
        },
        hop: (route.links.up.len() - usize::from(packet.hop)) as u8,
        too_big: mtu,
    })
}

/// The position of a direction of a link among all directed links.
fn position(link: usize, direction: LinkDirection) -> u32 {
    2 * link as u32 + direction.index() as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use LinkDirection::{Down, Up};
    use anabranch_segment::Flags;
    use anabranch_units::Duration;

    fn network(text: &str) -> (Network, Agenda) {
        let text = format!("schema = 1\nduration = \"1 s\"\n{text}\n[[session]]\n");
        let scenario = anabranch_scenario::load(&text, "x", None, &[]).unwrap();
        (Network::new(&scenario, 1, 0), Agenda::new(2 * scenario.links.len()))
    }

    /// Runs until no packet is in flight and returns the arrivals.
    fn arrivals(network: &mut Network, agenda: &mut Agenda) -> Vec<(u64, u32, LinkDirection)> {
        let mut seen = Vec::new();
        loop {
            let (now, component) = agenda.next();
            if now == Instant::FAR_FUTURE {
                return seen;
            }
            while let Some(packet) = network.peek_arrival(now, component, agenda) {
                seen.push((now.as_nanos() / 1_000, packet.flow, packet.direction));
                network.remove_arrival(component);
            }
        }
    }

    fn packet(path: u16, payload: u32) -> Transmit {
        let segment = Segment { payload_len: payload, ..Segment::new(Flags::ACK) };
        Transmit { path: PathId(path), segment, stream_offset: 0 }
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
        network.enter(Instant::ZERO, (1, Down), packet(0, 960), &mut agenda);
        network.enter(Instant::ZERO, (2, Up), packet(0, 960), &mut agenda);
        let seen = arrivals(&mut network, &mut agenda);
        assert_eq!(seen, [(2_000 + 7_000 + 1_000 + 5_000, 1, Down), (1_000 + 5_000 + 8_000 + 9_000, 2, Up)]);
    }

    #[test]
    fn paths_that_share_a_link_share_its_queue() {
        let (mut network, mut agenda) =
            network("[link.a]\nrate = \"8 Mb/s\"\n[path.p]\nlinks = [\"a\"]\n[path.q]\nlinks = [\"a\"]\nip = 6");
        network.enter(Instant::ZERO, (1, Down), packet(0, 960), &mut agenda);
        network.enter(Instant::ZERO, (2, Down), packet(1, 940), &mut agenda);
        assert_eq!(arrivals(&mut network, &mut agenda), [(1_000, 1, Down), (2_000, 2, Down)]);
    }

    #[test]
    fn a_cut_link_keeps_nothing() {
        let (mut network, mut agenda) = network("[link.a]\nrate = \"8 Mb/s\"\nrtt = \"20 ms\"");
        network.enter(Instant::ZERO, (1, Down), packet(0, 960), &mut agenda);
        let cut = Instant::ZERO + Duration::from_micros(500);
        network.change(cut, (0, Down), vec![Change::Up(false)], &mut agenda);
        assert_eq!(arrivals(&mut network, &mut agenda), []);
        let mut drops = 0;
        network.drain_logs(|_, _, event, _| drops += usize::from(matches!(event, LinkEvent::Dropped { .. })));
        assert_eq!(drops, 1);
    }
}
