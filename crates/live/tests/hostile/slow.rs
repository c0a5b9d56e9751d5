//! Clients that request and do not read.

use crate::answer::Answer;
use crate::rogue::Rogue;
use crate::world::{World, world, world_of};
use crate::{EVIL, LEN, disturb, heap, wait};
use anabranch_live::{Limits, Opened};
use anabranch_segment::{Flags, Segment};
use anabranch_units::Duration;
use std::net::{IpAddr, Ipv4Addr};

#[test]
fn a_window_that_stays_closed() {
    const ROGUES: u16 = 100;
    const SECONDS: u32 = 900;
    let limits = Limits { stall: Duration::from_secs(3600), ..Limits::default() };
    let mut world = world(limits, LEN);
    let before = heap::held();
    let rogues: Vec<_> = (1..=ROGUES).map(|port| Rogue::connect_with(&mut world, EVIL, port, 0)).collect();
    rogues.iter().for_each(|rogue| rogue.ask(&mut world));
    assert!(
        world.to_attackers.iter().all(|(_, _, segment)| segment.payload_len == 0),
        "nothing is sent into a closed window"
    );
    disturb(&mut world, |_| {});
    // For a quarter of an hour they answer every probe, and send nothing more.
    let mut probes = 0;
    for _ in 0..SECONDS {
        wait(&mut world, 1000);
        for rogue in &rogues {
            for emitted in world.emitted(EVIL, rogue.port) {
                probes += 1;
                assert!(emitted.payload_len == 0 && !emitted.flags.contains(Flags::RST), "{emitted:?}");
                rogue.say(&mut world, &Segment { dss: Some(rogue.data_ack(0)), ..rogue.segment(10) });
            }
        }
        world.to_attackers = Vec::new();
    }
    let (held, alive) = (heap::held() - before, world.server.connections().count());
    eprintln!("{probes} probes, {held} bytes, {alive} connections");
    // With such a limit a client may keep its window closed for as long as it answers; it only must not use much
    // memory.
    assert_eq!(alive, usize::from(ROGUES));
    assert!((10..SECONDS / 5).contains(&(probes / u32::from(ROGUES))), "probes become rarer: {probes}");
    assert!(held < i64::from(ROGUES) * (32 << 10), "{held} bytes");
}

/// Acknowledges the data that the server has sent to a rogue, or a part of it; returns the number of bytes.
fn acknowledge<F: FnMut(Opened) -> Answer>(world: &mut World<F>, rogue: &mut Rogue, taken: &mut u64, most: u64) -> u64 {
    let emitted = world.emitted(EVIL, rogue.port);
    let new = emitted.iter().map(|segment| u64::from(segment.payload_len)).sum::<u64>().min(most);
    *taken += new;
    rogue.ack = rogue.ack + new as u32;
    rogue.say(world, &Segment { dss: Some(rogue.data_ack(*taken)), ..rogue.segment(10) });
    new
}

#[test]
fn those_who_ask_and_never_read_lose_their_place() {
    const ROGUES: u16 = 50;
    let limits = Limits { connections: usize::from(ROGUES) + 1, ..Limits::default() };
    let mut world = world(limits, LEN);
    let mut rogues: Vec<_> = (1..=ROGUES).map(|port| Rogue::connect(&mut world, EVIL, port)).collect();
    rogues.iter().for_each(|rogue| rogue.ask(&mut world));
    disturb(&mut world, |_| {});
    // All but the first acknowledge everything and read nothing; the first reads a little now and then.
    let seconds = limits.stall.as_nanos() / 1_000_000_000;
    let mut taken = 0;
    for second in 0..seconds + 5 {
        wait(&mut world, 1000);
        for rogue in &mut rogues[1..] {
            world.emitted(EVIL, rogue.port);
            rogue.say(&mut world, &Segment { dss: Some(rogue.data_ack(0)), ..rogue.segment(10) });
        }
        if second % 20 == 0 {
            acknowledge(&mut world, &mut rogues[0], &mut taken, 1000);
        }
    }
    assert!(taken > 2000, "{taken}");
    assert_eq!(world.server.counters().stalled, u64::from(ROGUES) - 1);
    assert_eq!(world.server.connections().count(), 1, "who takes something may stay");
}

#[test]
fn a_slow_client_gets_all_of_an_answer_whose_writer_is_gone() {
    let limits = Limits { closing: Duration::from_secs(5), ..Limits::default() };
    let mut world = world_of(limits, || Answer::leaving(100_000));
    let mut rogue = Rogue::connect(&mut world, EVIL, 1);
    rogue.ask(&mut world);
    let (base, mut sent, mut taken) = (rogue.ack, 0, 0);
    while taken < 100_000 {
        for segment in world.emitted(EVIL, 1) {
            sent = sent.max(u64::from((segment.seq + segment.payload_len).0.wrapping_sub(base.0)).min(100_000));
        }
        taken = sent.min(taken + 5000);
        rogue.ack = base + taken as u32;
        rogue.say(&mut world, &Segment { dss: Some(rogue.data_ack(taken)), ..rogue.segment(10) });
        assert!(world.now.as_nanos() < 60_000_000_000, "it took {taken} bytes");
        wait(&mut world, 1000);
        assert_eq!(
            world.server.connections().filter(|(connection, _)| !connection.is_closed()).count(),
            1,
            "at {taken}"
        );
    }
    wait(&mut world, 6000);
    assert_eq!(world.server.connections().count(), 0, "who never ends its side is dropped");
}

#[test]
fn those_who_never_ask_keep_no_client_out() {
    let limits = Limits::default();
    let mut world = world(limits, LEN);
    let addresses = [1, 2, 3, 4].map(|last| IpAddr::V4(Ipv4Addr::new(10, 66, 0, last)));
    let mut ports = 1..;
    let mut connect = |world: &mut World<_>, address| Rogue::connect(world, address, ports.next().expect("a port"));
    // The first of each address asks, the others only complete their handshakes: the server is full.
    let places: Vec<_> = (0..limits.connections).map(|i| addresses[i % addresses.len()]).collect();
    let rogues: Vec<_> = places.iter().map(|address| connect(&mut world, *address)).collect();
    rogues[..addresses.len()].iter().for_each(|rogue| rogue.ask(&mut world));
    assert_eq!(world.server.gauges().open as usize, limits.connections);
    disturb(&mut world, |_| {});
    let counters = world.server.counters();
    assert_eq!((counters.silent, counters.refused), (1, 0), "{counters:?}");
    // The oldest silent one got RST; those before it had asked.
    let reset = |world: &mut World<_>, rogue: &Rogue| {
        world.emitted(rogue.address, rogue.port).iter().any(|segment| segment.flags.contains(Flags::RST))
    };
    let ended: Vec<_> = (0..rogues.len()).filter(|i| reset(&mut world, &rogues[*i])).collect();
    assert_eq!(ended, [addresses.len()]);
    // A forged SYN takes no client's place.
    world.forge(crate::PATH, EVIL, &crate::rogue::syn(60_000));
    assert_eq!(world.server.counters().silent, 1);
}

#[test]
fn a_server_full_of_requests_answers_no_syn() {
    const PLACES: u16 = 8;
    let limits = Limits { connections: usize::from(PLACES), ..Limits::default() };
    let mut world = world(limits, LEN);
    for port in 1..=PLACES {
        Rogue::connect(&mut world, EVIL, port).ask(&mut world);
    }
    world.to_attackers.clear();
    world.forge(crate::PATH, EVIL, &crate::rogue::syn(100));
    let counters = world.server.counters();
    assert_eq!((counters.silent, counters.refused), (0, 1), "{counters:?}");
}
