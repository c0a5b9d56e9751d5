//! Dialogues with the server, packet by packet; no operating system in sight.

use anabranch_live::{Application, Host, Reply, Server};
use anabranch_segment::{Flags, Segment, SynOptions};
use anabranch_stack::Config;
use anabranch_stack::connection::{PathConfig, Protocol};
use anabranch_units::{Duration, Instant, PathId, SeqNumber};
use anabranch_wire::{decode, encode};
use std::net::IpAddr;

const CLIENT: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 1, 0, 2));
const SERVER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 99, 0, 1));
const PATH: PathId = PathId(0);
const PORT: u16 = 7000;
const CLIENT_PORT: u16 = 40_000;

/// Answers whatever comes with so many bytes.
struct Answer(u64);

impl Application for Answer {
    fn receive(&mut self, _: &[u8]) -> Reply {
        Reply { bytes: self.0, finish: true }
    }

    fn fill(&self, offset: u64, buffer: &mut [u8]) {
        buffer.iter_mut().zip(offset..).for_each(|(byte, at)| *byte = at as u8);
    }
}

fn ms(n: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(n)
}

fn server(answer: u64) -> Server<impl FnMut() -> Answer, Answer> {
    let path = PathConfig { id: PATH, local: SERVER, remote: CLIENT, mtu: 1500, backup: false };
    let mut config = Config::new(Protocol::Mptcp, vec![path]);
    config.local_port = PORT;
    Server::new(config, move || Answer(answer)).expect("a valid configuration")
}

/// A segment of the client's.
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

/// Everything that the server has to say now, with its payload.
fn hear(server: &mut impl Host, now: Instant) -> Vec<(Segment, Vec<u8>)> {
    let mut packet = [0; 2048];
    let mut heard = Vec::new();
    while let Some((path, len)) = server.poll_transmit(now, &mut packet) {
        assert_eq!(path, PATH);
        let packet = decode(&packet[..len]).expect("the server writes valid packets");
        assert_eq!((packet.source, packet.destination), (SERVER, CLIENT));
        heard.push((packet.segment, packet.payload.to_vec()));
    }
    heard
}

/// A handshake whose round trip takes 20 ms. Returns the server's first sequence number.
fn connect(server: &mut impl Host) -> SeqNumber {
    say(server, ms(0), &syn());
    let heard = hear(server, ms(0));
    assert_eq!(heard.len(), 1);
    let answer = &heard[0].0;
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
    hear(&mut server, ms(20));
    say(&mut server, ms(21), &request(first));
    let heard = hear(&mut server, ms(21));
    let bytes: Vec<u8> = heard.iter().flat_map(|(_, payload)| payload.clone()).collect();
    assert_eq!(bytes, (0..3000u32).map(|at| at as u8).collect::<Vec<_>>());
    assert_eq!(heard[0].0.seq, first);
    assert!(heard.iter().all(|(segment, _)| segment.ack == SeqNumber(111)));
    assert_eq!(server.counters().accepted, 1);
}

#[test]
fn the_handshake_measures_the_round_trip() {
    let mut server = server(5000);
    let first = connect(&mut server);
    hear(&mut server, ms(20));
    say(&mut server, ms(21), &request(first));
    assert!(hear(&mut server, ms(21)).len() > 3);
    // Everything of it is lost. With a round trip of 20 ms known, a probe of the tail leaves after little more than two of
    // them; without, nothing would leave for a second.
    let probe = server.poll_timeout().expect("data is under way");
    assert!(probe >= ms(61) && probe <= ms(71), "{probe}");
    server.handle_timeout(probe);
    assert_eq!(hear(&mut server, probe).len(), 1);
}

#[test]
fn a_segment_of_no_connection_gets_rst() {
    let mut server = server(1);
    say(&mut server, ms(0), &client(Flags::ACK, 5, SeqNumber(77)));
    let heard = hear(&mut server, ms(0));
    assert_eq!((heard.len(), heard[0].0.flags, heard[0].0.seq), (1, Flags::RST, SeqNumber(77)));

    let lone = Segment { payload_len: 9, ..client(Flags::FIN, 5, SeqNumber(0)) };
    say(&mut server, ms(1), &lone);
    let heard = hear(&mut server, ms(1));
    assert_eq!((heard[0].0.flags, heard[0].0.ack), (Flags::RST | Flags::ACK, SeqNumber(15)));

    say(&mut server, ms(2), &client(Flags::RST, 5, SeqNumber(0)));
    assert!(hear(&mut server, ms(2)).is_empty(), "RST is never answered");
    // Another port than the one that is listened on.
    say(&mut server, ms(3), &Segment { destination_port: 1, ..syn() });
    assert!(hear(&mut server, ms(3))[0].0.flags.contains(Flags::RST));
    assert_eq!((server.counters().accepted, server.counters().unknown), (0, 4));
}

#[test]
fn a_repeated_syn_opens_no_second_connection() {
    let mut server = server(1);
    for at in [0, 1000] {
        say(&mut server, ms(at), &syn());
        assert!(hear(&mut server, ms(at)).iter().all(|(segment, _)| segment.flags == Flags::SYN | Flags::ACK));
    }
    assert_eq!((server.counters().accepted, server.connections().count()), (1, 1));
}

#[test]
fn garbage_is_counted_and_forgotten() {
    let mut server = server(1);
    for len in 0..200 {
        server.receive(ms(0), PATH, &vec![0x45; len]);
    }
    assert!(hear(&mut server, ms(0)).is_empty());
    assert_eq!((server.counters().undecodable, server.connections().count()), (200, 0));
}

#[test]
fn a_flood_of_strangers_gets_a_bounded_number_of_answers() {
    let mut server = server(1);
    for port in 0..1000 {
        say(&mut server, ms(0), &Segment { source_port: port, ..client(Flags::ACK, 5, SeqNumber(1)) });
    }
    let answers = hear(&mut server, ms(0)).len();
    assert!((1..100).contains(&answers), "{answers}");
    assert_eq!((server.counters().unknown, server.poll_timeout()), (1000, None));
}
