//! Processor time per gigabit without an emulator: two namespaces with two pairs of virtual interfaces between them, to
//! one kernel client.
//!
//! All work of the machine counts, that of the kernel's interrupts included, so nothing else may run.

use crate::common::kernel;
use crate::common::site::start;
use crate::{OPEN, TRANSFER, Zeros, answer_with_zeros, load, median};
use anabranch_serve::{Content, Listen, Options};
use anabranch_stack::connection::Choice;
use anabranch_testnet::Netns;
use std::fmt::Write;
use std::time::Instant;

const ROUNDS: usize = 5;
const PATHS: u16 = 2;

/// What an interface may be given.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Interfaces {
    /// Packets of up to 64 kB, which the receiving interface is given as they are.
    TakeAll,
    /// Packets as they are on the network. The kernel cuts up larger ones that it forwards.
    TakePackets,
}

/// The client's and the server's namespace. Where the server is ours, it is behind a TUN device for each path.
fn namespaces(interfaces: Interfaces, ours: bool) -> (Netns, Netns) {
    let namespace = |label| {
        let made = Netns::create(label).expect("a namespace");
        let settings = [
            ("net/mptcp/enabled", "1"),
            ("net/ipv4/conf/all/rp_filter", "0"),
            ("net/ipv4/conf/default/rp_filter", "0"),
            ("net/ipv4/tcp_no_metrics_save", "1"),
            ("net/ipv4/tcp_congestion_control", "reno"),
            ("net/ipv4/ip_forward", "1"),
        ];
        made.sysctl(&settings).expect("settings");
        made
    };
    let (client, server) = (namespace("client"), namespace("server"));
    let address = OPEN.family.server();
    let mut at_client = format!("link set lo up\nmptcp limits set subflows {PATHS} add_addr_accepted 0\n");
    let mut at_server = String::from("link set lo up\n");
    if !ours {
        let _ = writeln!(at_server, "addr add {address}/32 dev lo");
    }
    for n in 1..=PATHS {
        let peer = server.name();
        let _ = write!(
            at_client,
            "link add ct{n} type veth peer name st{n} netns {peer}\n\
             addr add 10.{n}.0.2/24 dev ct{n}\n\
             link set ct{n} up\n\
             rule add from 10.{n}.0.2 lookup 10{n}\n\
             route add {address} via 10.{n}.0.1 dev ct{n} src 10.{n}.0.2 table 10{n}\n\
             mptcp endpoint add 10.{n}.0.2 dev ct{n} subflow\n"
        );
        if n == 1 {
            let _ = writeln!(at_client, "route add {address} via 10.1.0.1 dev ct1 src 10.1.0.2");
        }
        let _ = write!(
            at_server,
            "addr add 10.{n}.0.1/24 dev st{n}\n\
             link set st{n} up\n"
        );
        if ours {
            let _ = write!(
                at_server,
                "tuntap add dev srv{n} mode tun\n\
                 link set srv{n} up\n\
                 route add {address} dev srv{n} table 20{n}\n\
                 rule add iif st{n} lookup 20{n} pref 20{n}\n"
            );
        }
    }
    client.ip(&at_client).expect("the client's devices");
    server.ip(&at_server).expect("the server's devices");
    if interfaces == Interfaces::TakePackets {
        for n in 1..=PATHS {
            let device = format!("st{n}");
            let status = server.command("ethtool").args(["-K", &device, "tso", "off", "gso", "off"]).status();
            assert!(status.expect("ethtool is installed").success(), "the offloads of {device} cannot be turned off");
        }
    }
    (client, server)
}

/// Processor time of the whole machine, interrupts included, in seconds.
fn busy() -> f64 {
    let text = std::fs::read_to_string("/proc/stat").expect("Linux has it");
    let fields = text.lines().next().expect("a first line").split_whitespace().skip(1);
    // user, nice, system, idle, iowait, irq, softirq
    let ticks: Vec<f64> = fields.take(7).map(|field| field.parse().expect("a number")).collect();
    let spent = ticks.iter().enumerate().filter(|(place, _)| ![3, 4].contains(place)).map(|(_, ticks)| ticks);
    spent.sum::<f64>() / rustix::param::clock_ticks_per_second() as f64
}

/// Mb/s, and processor seconds per gigabit.
fn measure(client: &Netns) -> (f64, f64) {
    let (before, began) = (busy(), Instant::now());
    let bytes = client.run(load::download).expect("the namespace can be entered");
    assert!(bytes >= TRANSFER, "{bytes}");
    let (seconds, gigabits) = (began.elapsed().as_secs_f64(), bytes as f64 * 8.0 / 1e9);
    kernel::assert_mptcp_held(client);
    (gigabits * 1000.0 / seconds, (busy() - before) / gigabits)
}

fn ours(zeros: &Zeros, interfaces: Interfaces) -> (f64, f64) {
    let (client, server) = namespaces(interfaces, true);
    let listen = |n| Listen { device: format!("srv{n}"), address: OPEN.family.server(), metered: false };
    let mut options = Options::new((1..=PATHS).map(listen).collect(), Content::Root(zeros.0.clone()));
    options.port = kernel::PORT;
    options.congestion_control = Choice::of("newreno");
    let serving = start(&server, options);
    let measured = measure(&client);
    for path in serving.status().paths {
        eprintln!("    {}: {:?}, refused {}, {:?}", path.device, path.sent, path.refused, path.segments);
    }
    measured
}

fn kernels(interfaces: Interfaces) -> (f64, f64) {
    let (client, server) = namespaces(interfaces, false);
    let serving = answer_with_zeros(&server);
    let measured = measure(&client);
    serving.join().expect("it ends with its client");
    measured
}

/// Both servers in turn, so that changes of the machine affect both.
pub fn compare() {
    let zeros = Zeros::new(TRANSFER);
    for (interfaces, name) in [(Interfaces::TakePackets, "offloads off"), (Interfaces::TakeAll, "offloads on")] {
        let (mut ratios, mut our, mut their) = (Vec::new(), Vec::new(), Vec::new());
        for round in 1..=ROUNDS {
            let ((rate, cpu), (kernel_rate, kernel_cpu)) = (ours(&zeros, interfaces), kernels(interfaces));
            println!(
                "{name}, round {round}: ours {rate:.0} Mb/s, {cpu:.3} CPU s per Gbit; the kernel's {kernel_rate:.0} Mb/s, {kernel_cpu:.3}"
            );
            our.push(cpu);
            their.push(kernel_cpu);
            ratios.push(cpu / kernel_cpu);
        }
        let (our, their, ratio) = (median(&mut our), median(&mut their), median(&mut ratios));
        println!("{name}, medians: ours {our:.3} CPU s per Gbit, the kernel's {their:.3}, ratio {ratio:.2}");
    }
}
