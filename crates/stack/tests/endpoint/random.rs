//! Random networks, transports and failures. A case is one number from which everything in it is drawn.
//!
//! Whatever happens, every byte arrives exactly once and in order, windows stay at or above one packet, packets
//! are conserved; and once the network heals, the transfer makes progress to its end.
//!
//! A failure prints the command that replays its case.

use crate::common::{Pair, Path, Pipe, Seeded, config, secs};
use anabranch_stack::connection::{Choice, Commit, Failover, Protocol, ReceiveBuffer, Writer};
use anabranch_stack::{Config, congestion, path_policy, scheduler};
use anabranch_units::{Bandwidth, Bytes, Duration, Instant, PathId};
use std::num::NonZeroU32;

/// After this the network is whole, and stays so.
const HEALED_AT: Instant = Instant::from_nanos(40_000_000_000);
/// Back-off after an outage reaches a minute or two; then the rest must flow.
const MUST_END_BY: u64 = 1_500;

impl Seeded {
    fn pipe(&mut self) -> Pipe {
        let rate = Bandwidth::from_bps(self.pick(&[200_000, 1_000_000, 2_000_000, 10_000_000, 50_000_000]));
        let mut pipe = Pipe::new(rate, Duration::from_micros(200 + self.below(150_000)));
        pipe.queue = self.pick(&[6_000, 20_000, 64_000, 500_000]);
        pipe.loss = self.pick(&[0.0, 0.0, 0.005, 0.02, 0.1]);
        pipe.duplication = self.pick(&[0.0, 0.0, 0.01]);
        if self.one_in(4) {
            pipe.shuffle = Duration::from_micros(1 + self.below(30_000));
        }
        pipe
    }

    fn transport(&mut self, paths: usize) -> Config {
        let protocol = if self.one_in(8) { Protocol::Tcp } else { Protocol::Mptcp };
        let mut config = config(protocol, paths);
        config.transport.scheduler = Choice::of(self.pick(&scheduler::REGISTRY).name);
        let control = |draw: &mut Seeded| {
            Choice::of(congestion::REGISTRY[draw.below(congestion::REGISTRY.len() as u64) as usize].name)
        };
        config.transport.congestion_control = control(self);
        if self.one_in(4) {
            config.path_congestion_control = vec![(PathId(0), control(self))];
        }
        config.transport.commit = self.pick(&[Commit::AtWindow, Commit::AtWindow, Commit::IntoBuffer]);
        config.transport.writer = self.pick(&[Writer::WhenWritable, Writer::AtOnce]);
        config.transport.failover = self.pick(&[Failover::Legacy, Failover::Upstream]);
        config.transport.path_policy = Choice::of(self.pick(&path_policy::REGISTRY).name);
        config.transport.opportunistic_retransmission = !self.one_in(3);
        config.transport.penalisation = !self.one_in(3);
        config.transport.idle_restart = !self.one_in(3);
        config.transport.timestamps = !self.one_in(5);
        config.transport.wide_data_seq = self.one_in(3);
        config.mtu_discovery = self.one_in(3);
        if paths > 1 && self.one_in(4) {
            let last = paths - 1;
            config.paths[last].backup = true;
        }
        config
    }
}

fn run_case(case: u64) -> Result<(), String> {
    let mut draw = Seeded(case);
    let paths = 1 + draw.below(4) as usize;
    let mut server = draw.transport(paths);
    // Drawn apart, so that cases stay what they were.
    let upstream = server.transport.failover == Failover::Upstream;
    server.transport.subflow_windows = upstream && Seeded(case.rotate_left(32)).one_in(2);
    server.withheld_interval = Seeded(!case).pick(&[None, None, NonZeroU32::new(3), NonZeroU32::new(50)]);
    let mut client = server.clone();
    let (initial, max) = (draw.pick(&[8_000, 65_535]), draw.pick(&[65_535, 1_000_000]));
    client.transport.receive_buffer = ReceiveBuffer { initial: Bytes(initial), max: Bytes(max) };
    let routes = (0..paths).map(|_| Path { up: draw.pipe(), down: draw.pipe() }).collect();
    let bytes = draw.pick(&[1u64, 1_428, 20_000, 300_000, 2_000_000]);
    let t = &server.transport;
    let described = format!(
        "{bytes} bytes over {paths} paths, {:?}, {}, {}, {:?}, {:?}, subflow windows: {}",
        t.protocol, t.scheduler.name, t.congestion_control.name, t.commit, t.failover, t.subflow_windows
    );
    let mut net = Pair::new(client, server, routes, case);
    net.to_send = bytes;
    let closes = draw.one_in(2);
    if draw.one_in(2) || closes {
        net.ask(draw.pick(&[0, 1, 400, 5_000, 200_000]), closes);
    }
    let abort_at = draw.one_in(12).then(|| draw.below(12));

    let mut at = Instant::ZERO;
    let mut round = 0;
    while at < HEALED_AT {
        round += 1;
        if abort_at == Some(round) {
            return abort(&mut net, &mut draw);
        }
        at += Duration::from_millis(100 + draw.below(6_000));
        if run_checked(&mut net, at.min(HEALED_AT), bytes)? {
            break;
        }
        disturb(&mut net, &mut draw);
    }
    heal(&mut net);
    let mut ended = false;
    while !ended && net.now < secs(MUST_END_BY) {
        let until = (net.now + Duration::from_secs(1)).min(secs(MUST_END_BY));
        ended = run_checked(&mut net, until, bytes)?;
    }
    if !ended {
        return Err(format!(
            "no end: {} bytes arrived of {described}; {:?}\n{:?}",
            net.received, net.server, net.client
        ));
    }
    if closes { close(&mut net) } else { Ok(()) }
}

/// Both applications have finished, and the network is whole: both ends close, and then have nothing left to do.
fn close(net: &mut Pair) -> Result<(), String> {
    heal(net);
    let until = net.now + Duration::from_secs(400);
    let quiet = |net: &mut Pair| {
        let ends = net.server.iter().chain([&net.client]);
        ends.into_iter().all(|end| end.is_over() && end.poll_timeout().is_none())
    };
    if net.run_until(until, quiet) {
        return Ok(());
    }
    Err(format!("the ends do not close: {:?}\n{:?}", net.server, net.client))
}

/// One end aborts. The other one learns of it unless every segment with the reset is lost; in any case nothing panics,
/// and the end that aborted sends nothing more.
fn abort(net: &mut Pair, draw: &mut Seeded) -> Result<(), String> {
    heal(net);
    let now = net.now;
    let client_aborts = net.server.is_none() || draw.one_in(2);
    let end = if client_aborts { &mut net.client } else { net.server.as_mut().expect("checked") };
    end.abort(now);
    net.run_until(now + Duration::from_secs(10), |_| false);
    let (one, other) = (&net.client, net.server.as_ref());
    let ended = |end: &anabranch_stack::Connection| end.is_over() && end.poll_timeout().is_none();
    let aborted = if client_aborts { Some(one) } else { other };
    match aborted.filter(|end| !ended(end)) {
        Some(end) => Err(format!("it aborted, but goes on: {end:?}")),
        None => Ok(()),
    }
}

/// Runs and checks the invariants. True when the client has everything.
fn run_checked(net: &mut Pair, until: Instant, bytes: u64) -> Result<bool, String> {
    let ended = net.run_until(until, |net| net.received == bytes && net.client.peer_finished());
    // More bytes than were sent would be duplicates; the last check of the case is that there are not fewer.
    if net.received > bytes {
        return Err(format!("{} bytes read of {bytes}", net.received));
    }
    if net.server.iter().chain([&net.client]).any(|end| end.has_false_acknowledgments()) {
        return Err("an honest peer is taken for one that lies".into());
    }
    for view in net.server.iter().chain([&net.client]).flat_map(|end| end.views()) {
        if view.cwnd.floor() < 1 {
            return Err(format!("a window of {} packets", view.cwnd.as_f64()));
        }
    }
    for pipe in net.paths.iter().flat_map(|path| [&path.up, &path.down]) {
        if pipe.sent + pipe.duplicated != pipe.delivered + pipe.dropped + pipe.in_flight() {
            return Err("packets are not conserved".into());
        }
    }
    for end in net.server.iter_mut().chain([&mut net.client]) {
        end.log().drain().for_each(drop);
    }
    Ok(ended)
}

fn disturb(net: &mut Pair, draw: &mut Seeded) {
    let at = draw.below(net.paths.len() as u64) as usize;
    let now = net.now;
    match draw.below(7) {
        0 => net.paths[at].cut(),
        1 => net.paths[at].heal(),
        2 => net.paths[at].down.up = false,
        3 => net.paths[at].up.loss = 0.3,
        // Larger packets are lost until the end, with or without a report. Without either way to learn of it nothing
        // would arrive.
        5 if net.server_config.mtu_discovery => {
            net.paths[at].down.mtu = draw.pick(&[552, 700, 1280, 1400, 1500]);
            net.paths[at].down.reports = draw.one_in(2);
        }
        4 => net.client_sleeps = !net.client_sleeps,
        // An interface that vanishes in the midst of the first handshake takes the connection with it, as it should.
        _ if net.client.is_multipath() && net.received > 0 => {
            net.paths[at].cut();
            net.client.handle_path_change(now, PathId(at as u16), false);
        }
        _ => {}
    }
}

fn heal(net: &mut Pair) {
    let now = net.now;
    net.client_sleeps = false;
    net.read();
    for at in 0..net.paths.len() {
        let path = &mut net.paths[at];
        for pipe in [&mut path.up, &mut path.down] {
            (pipe.up, pipe.loss, pipe.duplication, pipe.shuffle) = (true, 0.0, 0.0, Duration::ZERO);
        }
        net.client.handle_path_change(now, PathId(at as u16), true);
    }
}

fn run_cases(cases: impl Iterator<Item = u64>) {
    for case in cases {
        let outcome = std::panic::catch_unwind(|| run_case(case));
        let failure = match outcome {
            Ok(Ok(())) => continue,
            Ok(Err(message)) => message,
            Err(panic) => panic.downcast_ref::<String>().cloned().unwrap_or_else(|| "panicked".into()),
        };
        panic!(
            "case {case}: {failure}\nreplay: ANABRANCH_CASE={case} cargo test -p anabranch-stack --test endpoint one_case -- --ignored --nocapture"
        );
    }
}

#[test]
fn random_networks_deliver_every_byte_once() {
    run_cases(0..500);
}

/// A link smaller than packets that are smaller than full ones, and a pair of packets that pacing separates while the
/// window is full.
#[test]
fn networks_that_showed_faults_deliver_every_byte_once() {
    run_cases([1_000_012, 1_001_712].into_iter());
}

#[test]
#[ignore = "slow suite: 10 000 cases"]
fn ten_thousand_random_networks_deliver_every_byte_once() {
    run_cases(1_000_000..1_010_000);
}

#[test]
#[ignore = "replays one case: set ANABRANCH_CASE"]
fn one_case() {
    if let Ok(case) = std::env::var("ANABRANCH_CASE") {
        run_cases(std::iter::once(case.parse().expect("ANABRANCH_CASE is a number")));
    }
}
