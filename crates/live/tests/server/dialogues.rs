//! Dialogues with the server, packet by packet, without the operating system.

use crate::answer::{Answer, content};
use anabranch_live::{Application, Host, Limits, Opened, Progress, Reply, Server};
use anabranch_segment::{Flags, MptcpOption, Segment, SynOptions};
use anabranch_stack::Config;
use anabranch_stack::congestion::CongestionControl;
use anabranch_stack::connection::{Choice, PathConfig, Protocol};
use anabranch_stack::external::{ExternalParts, Kind};
use anabranch_stack::options::{OptionError, Options};
use anabranch_stack::path_policy::{self, PathPolicy};
use anabranch_stack::scheduler::{Decision, Scheduler, Trigger, View};
use anabranch_units::{Duration, Instant, PathId, SeqNumber};
use anabranch_wire::{decode, encode};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

const CLIENT: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 1, 0, 2));
const SERVER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 99, 0, 1));
const PATH: PathId = PathId(0);
const PORT: u16 = 7000;
const CLIENT_PORT: u16 = 40_000;

fn ms(n: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(n)
}

fn server(answer: u64) -> Server<impl FnMut(Opened) -> Answer, Answer> {
    server_with(Limits::default(), answer)
}

fn server_with(limits: Limits, len: u64) -> Server<impl FnMut(Opened) -> Answer, Answer> {
    let path = PathConfig { id: PATH, local: SERVER, remote: CLIENT, mtu: 1500, backup: false, metered: false };
    let mut config = Config::new(Protocol::Mptcp, vec![path]);
    config.local_port = PORT;
    Server::new(config, limits, move |_| Answer::new(len)).expect("a valid configuration")
}

/// A segment of the client.
fn client(flags: Flags, seq: u32, ack: SeqNumber) -> Segment {
    let mut segment = Segment::new(flags);
    (segment.source_port, segment.destination_port) = (CLIENT_PORT, PORT);
    (segment.seq, segment.ack, segment.window) = (SeqNumber(seq), ack, 65_535);
    segment
}

fn syn() -> Segment {
    let options = SynOptions { mss: 1460, window_scale: Some(7), sack_permitted: true };
    Segment { syn: Some(options), ..client(Flags::SYN, 100, SeqNumber(0)) }
}

fn say(server: &mut impl Host, now: Instant, segment: &Segment) {
    let mut packet = [0; 2048];
    let len = encode(&mut packet, CLIENT, SERVER, segment, |payload| payload.fill(7)).expect("fits");
    server.receive(now, PATH, &packet[..len]);
}

/// All packets that the server sends now, with their payloads.
fn emitted(server: &mut impl Host, now: Instant) -> Vec<(Segment, Vec<u8>)> {
    let mut packet = [0; 2048];
    let mut segments = Vec::new();
    while let Some((path, len)) = server.poll_transmit(now, &mut packet) {
        assert_eq!(path, PATH);
        let packet = decode(&packet[..len]).expect("the server writes valid packets");
        assert_eq!((packet.source, packet.destination), (SERVER, CLIENT));
        segments.push((packet.segment, packet.payload.to_vec()));
    }
    segments
}

/// A handshake whose round trip takes 20 ms. Returns the server's first sequence number.
fn connect(server: &mut impl Host) -> SeqNumber {
    say(server, ms(0), &syn());
    let segments = emitted(server, ms(0));
    assert_eq!(segments.len(), 1);
    let answer = &segments[0].0;
    assert_eq!((answer.flags, answer.ack), (Flags::SYN | Flags::ACK, SeqNumber(101)));
    assert_eq!((answer.source_port, answer.destination_port), (PORT, CLIENT_PORT));
    say(server, ms(20), &client(Flags::ACK, 101, answer.seq + 1));
    answer.seq + 1
}

fn request(ack: SeqNumber) -> Segment {
    Segment { payload_len: 10, ..client(Flags::ACK, 101, ack) }
}

#[test]
fn a_request_is_answered_with_the_bytes_of_the_application() {
    let mut server = server(3000);
    let first = connect(&mut server);
    emitted(&mut server, ms(20));
    say(&mut server, ms(21), &request(first));
    let segments = emitted(&mut server, ms(21));
    let bytes: Vec<u8> = segments.iter().flat_map(|(_, payload)| payload.clone()).collect();
    assert_eq!(bytes, (0..3000).map(content).collect::<Vec<_>>());
    assert_eq!(segments[0].0.seq, first);
    assert!(segments.iter().all(|(segment, _)| segment.ack == SeqNumber(111)));
    assert_eq!(server.counters().accepted, 1);
}

#[test]
fn the_handshake_measures_the_round_trip() {
    let mut server = server(5000);
    let first = connect(&mut server);
    emitted(&mut server, ms(20));
    say(&mut server, ms(21), &request(first));
    assert!(emitted(&mut server, ms(21)).len() > 3);
    // All of it is lost. With a known round trip of 20 ms, a tail-loss probe is sent after little more than two of
    // them; without, nothing would be sent for a second.
    let probe = server.poll_timeout().expect("data is under way");
    assert!(probe >= ms(61) && probe <= ms(71), "{probe}");
    server.handle_timeout(probe);
    assert_eq!(emitted(&mut server, probe).len(), 1);
}

#[test]
fn a_segment_of_no_connection_gets_rst() {
    let mut server = server(1);
    say(&mut server, ms(0), &client(Flags::ACK, 5, SeqNumber(77)));
    let segments = emitted(&mut server, ms(0));
    assert_eq!((segments.len(), segments[0].0.flags, segments[0].0.seq), (1, Flags::RST, SeqNumber(77)));

    let lone = Segment { payload_len: 9, ..client(Flags::FIN, 5, SeqNumber(0)) };
    say(&mut server, ms(1), &lone);
    let segments = emitted(&mut server, ms(1));
    assert_eq!((segments[0].0.flags, segments[0].0.ack), (Flags::RST | Flags::ACK, SeqNumber(15)));

    say(&mut server, ms(2), &client(Flags::RST, 5, SeqNumber(0)));
    assert!(emitted(&mut server, ms(2)).is_empty(), "RST is never answered");
    // Another port than the listening one.
    say(&mut server, ms(3), &Segment { destination_port: 1, ..syn() });
    assert!(emitted(&mut server, ms(3))[0].0.flags.contains(Flags::RST));
    assert_eq!((server.counters().accepted, server.counters().unknown), (0, 4));
}

#[test]
fn a_retransmitted_syn_opens_no_second_connection() {
    let mut server = server(1);
    for at in [0, 1000] {
        say(&mut server, ms(at), &syn());
        assert!(emitted(&mut server, ms(at)).iter().all(|(segment, _)| segment.flags == Flags::SYN | Flags::ACK));
    }
    assert_eq!((server.counters().accepted, server.half_open(), server.connections().count()), (1, 1, 0));
}

#[test]
fn garbage_is_counted_and_forgotten() {
    let mut server = server(1);
    for len in 0..200 {
        server.receive(ms(0), PATH, &vec![0x45; len]);
    }
    assert!(emitted(&mut server, ms(0)).is_empty());
    assert_eq!((server.counters().undecodable, server.connections().count()), (200, 0));
}

#[test]
fn a_flood_of_strangers_gets_a_bounded_number_of_answers() {
    let mut server = server(1);
    for port in 0..1000 {
        say(&mut server, ms(0), &Segment { source_port: port, ..client(Flags::ACK, 5, SeqNumber(1)) });
    }
    let answers = emitted(&mut server, ms(0)).len();
    assert!((1..100).contains(&answers), "{answers}");
    assert_eq!((server.counters().unknown, server.poll_timeout()), (1000, None));
}

#[test]
fn resets_are_limited_in_a_second() {
    let limits = Limits { resets_per_second: 10, ..Limits::default() };
    let mut server = server_with(limits, 1);
    let mut answers = [0; 3];
    for at in 1000..4000 {
        say(&mut server, ms(at), &client(Flags::ACK, 5, SeqNumber(1)));
        answers[(at / 1000 - 1) as usize] += emitted(&mut server, ms(at)).len();
    }
    assert_eq!(answers, [10, 10, 10]);
}

#[test]
fn packets_for_others_are_not_answered() {
    let mut server = server(1);
    let mut packet = [0; 2048];
    let other = IpAddr::V4(std::net::Ipv4Addr::new(10, 99, 0, 2));
    let len = encode(&mut packet, CLIENT, other, &syn(), |_| {}).expect("fits");
    server.receive(ms(0), PATH, &packet[..len]);
    assert!(emitted(&mut server, ms(0)).is_empty());
    assert_eq!((server.counters().misdirected, server.counters().accepted), (1, 0));
}

#[test]
fn the_oldest_half_open_connection_makes_room() {
    let mut server = server_with(Limits { half_open: 3, ..Limits::default() }, 1);
    let mut numbers = Vec::new();
    for port in 1..=4 {
        say(&mut server, ms(0), &Segment { source_port: port, ..syn() });
        numbers.push(emitted(&mut server, ms(0))[0].0.seq + 1);
    }
    assert_eq!((server.half_open(), server.counters().displaced), (3, 1));
    // The first is dropped, the last is accepted.
    say(&mut server, ms(1), &Segment { source_port: 1, ..client(Flags::ACK, 101, numbers[0]) });
    assert_eq!(emitted(&mut server, ms(1))[0].0.flags, Flags::RST);
    say(&mut server, ms(1), &Segment { source_port: 4, ..client(Flags::ACK, 101, numbers[3]) });
    assert!(emitted(&mut server, ms(1)).iter().all(|(segment, _)| segment.flags == Flags::ACK));
    assert_eq!((server.half_open(), server.connections().count()), (2, 1));
}

#[test]
fn beyond_the_limit_no_connection_is_accepted() {
    let mut server = server_with(Limits { connections: 1, ..Limits::default() }, 1);
    let first = connect(&mut server);
    // A client that asks for something keeps its place.
    say(&mut server, ms(20), &Segment { payload_len: 10, ..client(Flags::ACK, 101, first) });
    emitted(&mut server, ms(20));
    say(&mut server, ms(21), &Segment { source_port: 1, ..syn() });
    assert!(emitted(&mut server, ms(21)).is_empty());
    assert_eq!((server.counters().refused, server.connections().count()), (1, 1));
    server.abort_all(ms(22));
    assert_eq!(emitted(&mut server, ms(22)).len(), 1, "RST");
    say(&mut server, ms(23), &Segment { source_port: 1, ..syn() });
    assert_eq!(emitted(&mut server, ms(23)).len(), 1, "there is room again");
    server.stop_accepting();
    say(&mut server, ms(24), &Segment { source_port: 2, ..syn() });
    assert!(emitted(&mut server, ms(24)).is_empty());
}

#[test]
fn a_silent_client_is_given_up() {
    let mut server = server_with(Limits { idle: Duration::from_secs(10), ..Limits::default() }, 1);
    let first = connect(&mut server);
    emitted(&mut server, ms(20));
    // A segment arrives after 5 s, and none from then on.
    say(&mut server, ms(5000), &client(Flags::ACK, 101, first));
    emitted(&mut server, ms(5000));
    let mut ended = None;
    while let Some(at) = server.poll_timeout().filter(|_| ended.is_none()) {
        server.handle_timeout(at);
        ended = emitted(&mut server, at).iter().any(|(segment, _)| segment.flags.contains(Flags::RST)).then_some(at);
    }
    assert_eq!(ended, Some(ms(15_000)));
    assert_eq!((server.connections().count(), server.counters().closed, server.poll_timeout()), (0, 1, None));
}

#[test]
fn a_retransmitted_fin_is_acknowledged_after_the_end() {
    let limits = Limits { time_wait: Duration::from_secs(30), ..Limits::default() };
    let mut server = server_with(limits, 100);
    let first = connect(&mut server);
    emitted(&mut server, ms(20));
    say(&mut server, ms(21), &request(first));
    let segments = emitted(&mut server, ms(21));
    let fin = &segments.last().expect("an answer").0;
    assert!(fin.flags.contains(Flags::FIN));
    let end = fin.seq + fin.sequence_len();
    say(&mut server, ms(40), &client(Flags::ACK | Flags::FIN, 111, end));
    let last = emitted(&mut server, ms(40)).pop().expect("an acknowledgment").0;
    assert_eq!((last.ack, server.connections().count(), server.time_waits()), (SeqNumber(112), 0, 1));
    // That was lost, so the client retransmits its FIN; and it gets the same answer, not RST.
    say(&mut server, ms(300), &client(Flags::ACK | Flags::FIN, 111, end));
    let again = emitted(&mut server, ms(300)).pop().expect("an acknowledgment").0;
    assert_eq!((again.flags, again.seq, again.ack), (Flags::ACK, end, SeqNumber(112)));
    say(&mut server, ms(310), &client(Flags::ACK, 112, end));
    say(&mut server, ms(311), &client(Flags::RST, 112, end));
    say(&mut server, ms(312), &syn());
    let answers = emitted(&mut server, ms(312));
    assert_eq!((answers.len(), answers[0].0.flags), (1, Flags::ACK), "an old SYN only gets the final acknowledgment");
    // A new connection from the same port begins after the old numbers.
    say(&mut server, ms(400), &Segment { seq: SeqNumber(5000), ..syn() });
    assert_eq!(emitted(&mut server, ms(400))[0].0.flags, Flags::SYN | Flags::ACK);
    assert_eq!((server.time_waits(), server.counters().accepted, server.counters().unknown), (0, 2, 0));
}

#[test]
fn an_end_is_forgotten_in_time() {
    let limits = Limits { time_wait: Duration::from_secs(1), ..Limits::default() };
    let mut server = server_with(limits, 1);
    let first = connect(&mut server);
    emitted(&mut server, ms(20));
    say(&mut server, ms(21), &request(first));
    let fin = emitted(&mut server, ms(21)).pop().expect("an answer").0;
    let end = fin.seq + fin.sequence_len();
    say(&mut server, ms(40), &client(Flags::ACK | Flags::FIN, 111, end));
    emitted(&mut server, ms(40));
    say(&mut server, ms(1041), &client(Flags::ACK | Flags::FIN, 111, end));
    assert_eq!(emitted(&mut server, ms(1041))[0].0.flags, Flags::RST);
    assert_eq!(server.time_waits(), 0);
}

/// Reads no more than a given number of bytes, and sends nothing.
struct Reluctant(std::rc::Rc<std::cell::Cell<u64>>);

impl Application for Reluctant {
    fn wants(&self) -> u64 {
        self.0.get()
    }

    fn receive(&mut self, bytes: &[u8]) {
        self.0.set(self.0.get() - bytes.len() as u64);
    }

    fn poll(&mut self, _: Progress) -> Reply {
        Reply::default()
    }

    fn fill(&self, _: u64, _: &mut [u8]) {}
}

#[test]
fn an_application_that_does_not_read_stops_its_client() {
    let wanted = std::rc::Rc::new(std::cell::Cell::new(1000));
    let name = std::cell::Cell::new(None);
    let path = PathConfig { id: PATH, local: SERVER, remote: CLIENT, mtu: 1500, backup: false, metered: false };
    let mut config = Config::new(Protocol::Mptcp, vec![path]);
    config.local_port = PORT;
    let open = |opened: Opened| {
        name.set(Some(opened.id));
        Reluctant(wanted.clone())
    };
    let mut server = Server::new(config, Limits { memory: 40_000, ..Limits::default() }, open).unwrap();
    let first = connect(&mut server);
    assert!(emitted(&mut server, ms(20)).is_empty(), "the client's first data is what the server acknowledges first");
    let mut window = 1000;
    let (mut sent, mut at) = (0u32, 21);
    // The client sends as long as the window lets it.
    while sent < 1_000_000 && window >= 1000 {
        say(&mut server, ms(at), &Segment { payload_len: 1000, ..client(Flags::ACK, 101 + sent, first) });
        sent += 1000;
        at += 50;
        server.handle_timeout(ms(at));
        if let Some((segment, _)) = emitted(&mut server, ms(at)).last() {
            window = (u64::from(segment.window) << 7) + u64::from(segment.ack.0 - 101) - u64::from(sent);
        }
    }
    assert_eq!(wanted.get(), 0);
    assert!((15_000..25_000).contains(&sent), "half of 40 kB may wait, and the application took one: {sent}");
    // It continues when the application does.
    wanted.set(1 << 20);
    server.wake(ms(at), name.get().expect("it was opened"));
    let update = emitted(&mut server, ms(at)).pop().expect("a window update").0;
    assert_eq!((1 << 20) - wanted.get(), u64::from(sent) - 1000, "it has read the rest");
    assert!(u64::from(update.window) << 7 > 10_000 && update.ack == SeqNumber(101 + sent), "{update:?}");
}

/// Handshakes of the clients at these ports, whose last segments, with so many bytes of a request, all arrive after the
/// last SYN.
fn connect_at_once(server: &mut impl Host, ports: &[u16], payload_len: u32) -> Vec<SeqNumber> {
    for port in ports {
        say(server, ms(0), &Segment { source_port: *port, ..syn() });
    }
    let numbers: Vec<_> = emitted(server, ms(0)).iter().map(|(segment, _)| segment.seq + 1).collect();
    assert_eq!(numbers.len(), ports.len());
    for (port, first) in ports.iter().zip(&numbers) {
        say(server, ms(20), &Segment { source_port: *port, payload_len, ..client(Flags::ACK, 101, *first) });
    }
    numbers
}

#[test]
fn a_burst_does_not_exceed_the_limit_of_connections() {
    let mut server = server_with(Limits { connections: 2, ..Limits::default() }, 1);
    connect_at_once(&mut server, &[1, 2, 3, 4, 5], 10);
    let resets: Vec<_> =
        emitted(&mut server, ms(20)).into_iter().filter(|(s, _)| s.flags.contains(Flags::RST)).collect();
    assert_eq!(resets.iter().map(|(segment, _)| segment.destination_port).collect::<Vec<_>>(), [3, 4, 5]);
    assert_eq!((server.counters().refused, server.connections().count()), (3, 2));
    // The places of those that were refused are free.
    server.abort_all(ms(21));
    emitted(&mut server, ms(21));
    assert_eq!(server.gauges().open, 0);
    say(&mut server, ms(22), &Segment { source_port: 6, ..syn() });
    assert_eq!(emitted(&mut server, ms(22)).len(), 1);
}

#[test]
fn clients_that_ask_for_nothing_give_way_oldest_first() {
    let mut server = server_with(Limits { connections: 2, ..Limits::default() }, 1);
    connect_at_once(&mut server, &[1, 2, 3, 4, 5], 0);
    let resets: Vec<_> =
        emitted(&mut server, ms(20)).into_iter().filter(|(s, _)| s.flags.contains(Flags::RST)).collect();
    assert_eq!(resets.iter().map(|(segment, _)| segment.destination_port).collect::<Vec<_>>(), [1, 2, 3]);
    assert_eq!((server.counters().silent, server.counters().refused, server.connections().count()), (3, 0, 2));
}

#[test]
fn one_address_does_not_get_all_connections() {
    let mut server = server_with(Limits { per_address: 2, ..Limits::default() }, 1);
    connect_at_once(&mut server, &[1, 2, 3], 0);
    emitted(&mut server, ms(20));
    assert_eq!((server.counters().refused, server.connections().count()), (1, 2));
    say(&mut server, ms(21), &Segment { source_port: 4, ..syn() });
    assert!(emitted(&mut server, ms(21)).is_empty());
    server.abort_all(ms(22));
    emitted(&mut server, ms(22));
    say(&mut server, ms(23), &Segment { source_port: 5, ..syn() });
    assert_eq!(emitted(&mut server, ms(23)).len(), 1, "the address has connections left again");
}

#[test]
fn connections_that_all_have_data_send_the_same_number_of_bytes() {
    const PORTS: [u16; 4] = [1, 2, 3, 4];
    /// What one connection may be ahead of another: a turn and a packet.
    const AHEAD: usize = (16 << 10) + 1500;
    let mut server = server(50_000_000);
    let mut acked = connect_at_once(&mut server, &PORTS, 0);
    emitted(&mut server, ms(20));
    for (port, first) in PORTS.iter().zip(&acked) {
        say(&mut server, ms(20), &Segment { source_port: *port, ..request(*first) });
    }
    // Windows grow in slow start, and those of the first two twice as long.
    let mut now = ms(20);
    for round in 0..7 {
        for (segment, payload) in emitted(&mut server, now) {
            let at = usize::from(segment.destination_port) - 1;
            acked[at] = segment.seq + payload.len() as u32;
        }
        now += Duration::from_millis(20);
        for (at, port) in PORTS.iter().enumerate().filter(|(at, _)| *at < 2 || round < 6) {
            say(&mut server, now, &Segment { source_port: *port, ..client(Flags::ACK, 111, acked[at]) });
        }
    }
    let (mut sent, mut packet) = ([0; PORTS.len()], [0; 2048]);
    // Fewer packets than one window has.
    for _ in 0..200 {
        let (_, len) = server.poll_transmit(now, &mut packet).expect("windows are open");
        let segment = decode(&packet[..len]).expect("valid").segment;
        sent[usize::from(segment.destination_port) - 1] += len;
    }
    let open = [sent[0], sent[1]];
    assert!(open[0].abs_diff(open[1]) <= AHEAD && open[0] > 50_000, "{sent:?}");
}

#[test]
fn clients_of_a_server_that_was_killed_are_reset() {
    let mut server = server(1);
    let orphan = format!("0 {SERVER}:{PORT} {CLIENT}:{CLIENT_PORT} 00000000000000ff").parse().expect("an orphan");
    let elsewhere = format!("0 10.99.0.7:{PORT} {CLIENT}:{CLIENT_PORT} -").parse().expect("an orphan");
    server.reset_orphans(ms(0), &[orphan, elsewhere]);
    let at = server.poll_timeout().expect("something to do");
    server.handle_timeout(at);
    let questions = emitted(&mut server, at);
    assert_eq!(questions.len(), 1, "addresses of others are left alone");
    assert_eq!((questions[0].0.flags, questions[0].0.destination_port), (Flags::ACK, CLIENT_PORT));
    // The client's numbers, as RFC 9293 has it answer a segment out of its window.
    say(&mut server, at, &client(Flags::ACK, 500, SeqNumber(900)));
    let resets = emitted(&mut server, at);
    assert_eq!((resets.len(), resets[0].0.seq), (1, SeqNumber(900)));
    assert!(resets[0].0.flags.contains(Flags::RST));
    assert!(matches!(resets[0].0.mptcp[0], MptcpOption::FastClose { receiver_key: 0xff }));
    // The client opens a new connection from the same port.
    say(&mut server, at, &syn());
    assert_eq!(emitted(&mut server, at)[0].0.flags, Flags::SYN | Flags::ACK);
}

#[test]
fn a_request_over_tcp_with_a_closed_window_draws_probes_at_growing_intervals() {
    let mut server = server(100_000);
    let first = connect(&mut server);
    emitted(&mut server, ms(20));
    say(&mut server, ms(21), &Segment { window: 0, ..request(first) });
    let mut sent: Vec<_> = emitted(&mut server, ms(21)).into_iter().map(|(segment, _)| (ms(21), segment)).collect();
    while let Some(at) = server.poll_timeout().filter(|at| *at <= ms(4021)) {
        server.handle_timeout(at);
        sent.extend(emitted(&mut server, at).into_iter().map(|(segment, _)| (at, segment)));
    }
    assert!((2..=6).contains(&sent.len()), "{sent:?}");
    assert!(sent.iter().all(|(_, segment)| segment.payload_len <= 1), "{sent:?}");
    // The window opens, and data is sent.
    say(&mut server, ms(4022), &client(Flags::ACK, 111, first));
    assert!(emitted(&mut server, ms(4022)).iter().any(|(segment, _)| segment.payload_len > 1000));
}

/// A host whose schedulers cannot be made while `refuses`, and fail at their `fails_at`th decision.
#[derive(Debug, Default)]
struct Authors {
    refuses: AtomicBool,
    fails_at: u64,
    failed: Arc<AtomicBool>,
    of_connection: bool,
}

/// Sends on the first candidate until it fails.
#[derive(Debug)]
struct Fails {
    left: u64,
    failed: Arc<AtomicBool>,
}

impl Scheduler for Fails {
    fn decide(&mut self, view: &View<'_>, _: Trigger) -> Decision {
        self.left = self.left.saturating_sub(1);
        self.failed.fetch_or(self.left == 0, Relaxed);
        let candidate = view.candidates.iter().next().filter(|_| self.left > 0);
        candidate.map_or(Decision::Wait { until: None }, |subflow| Decision::Send { subflow, bytes: 1460 })
    }
}

impl ExternalParts for Authors {
    fn knows(&self, kind: Kind, _: &str) -> bool {
        kind == Kind::Scheduler
    }

    fn scheduler(&self, name: &str, _: &Options) -> Result<Box<dyn Scheduler>, OptionError> {
        if self.refuses.load(Relaxed) {
            return Err(OptionError { option: "name".into(), message: format!("`{name}` raised an exception") });
        }
        Ok(Box::new(Fails { left: self.fails_at, failed: self.failed.clone() }))
    }

    fn path_policy(&self, name: &str, options: &Options) -> Result<Box<dyn PathPolicy>, OptionError> {
        path_policy::create(name, options)
    }

    fn congestion_control(&self, name: &str, _: &Options, _: u64) -> Result<Box<dyn CongestionControl>, OptionError> {
        Err(OptionError { option: "name".into(), message: format!("there is no `{name}`") })
    }

    fn for_connection(&self, client: SocketAddr) -> Option<Arc<dyn ExternalParts>> {
        assert_eq!(client.ip(), CLIENT);
        let refuses = AtomicBool::new(self.refuses.load(Relaxed));
        // Of the clients only the first one's scheduler fails.
        let fails_at = if client.port() == CLIENT_PORT { self.fails_at } else { u64::MAX };
        Some(Arc::new(Authors { refuses, fails_at, failed: Arc::default(), of_connection: true }))
    }

    fn has_failed(&self) -> bool {
        assert!(self.of_connection, "a failure is a connection's");
        self.failed.load(Relaxed)
    }
}

fn server_of(authors: &Arc<Authors>) -> Server<impl FnMut(Opened) -> Answer, Answer> {
    let path = PathConfig { id: PATH, local: SERVER, remote: CLIENT, mtu: 1500, backup: false, metered: false };
    let mut config = Config::new(Protocol::Mptcp, vec![path]);
    config.local_port = PORT;
    config.transport.scheduler = Choice::of("authors:Fails");
    config.transport.scheduler.attach(authors.clone());
    let open = |_| Answer::new(100_000);
    Server::new(config, Limits::default(), open).expect("a scheduler can be made")
}

#[test]
fn a_syn_whose_parts_cannot_be_made_is_refused_with_rst() {
    let authors = Arc::new(Authors { fails_at: u64::MAX, ..Authors::default() });
    let mut server = server_of(&authors);
    authors.refuses.store(true, Relaxed);
    say(&mut server, ms(0), &syn());
    let segments = emitted(&mut server, ms(0));
    assert_eq!(segments.len(), 1);
    assert_eq!((segments[0].0.flags, segments[0].0.ack), (Flags::RST | Flags::ACK, SeqNumber(101)));
    let counters = server.counters();
    assert_eq!((counters.unmade, counters.accepted, counters.failed, server.half_open()), (1, 0, 0, 0));
    authors.refuses.store(false, Relaxed);
    connect(&mut server);
    assert_eq!((server.counters().unmade, server.counters().accepted), (1, 1));
}

#[test]
fn a_connection_of_which_a_part_fails_is_reset_and_others_go_on() {
    let authors = Arc::new(Authors { fails_at: 4, ..Authors::default() });
    let mut server = server_of(&authors);
    let numbers = connect_at_once(&mut server, &[CLIENT_PORT, CLIENT_PORT + 1], 0);
    emitted(&mut server, ms(20));
    say(&mut server, ms(21), &request(numbers[0]));
    let segments = emitted(&mut server, ms(21));
    let sent: u32 = segments.iter().map(|(segment, _)| segment.payload_len).sum();
    assert_eq!(sent, 3 * 1460, "three decisions");
    assert!(segments.last().expect("segments").0.flags.contains(Flags::RST));
    assert_eq!((server.counters().failed, server.connections().count()), (1, 1));
    let from_other = |segment: Segment| Segment { source_port: CLIENT_PORT + 1, ..segment };
    say(&mut server, ms(22), &from_other(request(numbers[1])));
    let sent: u32 = emitted(&mut server, ms(22)).iter().map(|(segment, _)| segment.payload_len).sum();
    assert!(sent > 9000, "the whole first window: {sent}");
    assert_eq!(server.counters().failed, 1);
}
