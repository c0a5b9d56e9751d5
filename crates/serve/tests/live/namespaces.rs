//! Namespaces and devices are created and removed with their owners.

use anabranch_live::Tun;
use anabranch_testnet::Netns;
use std::net::UdpSocket;
use std::time::{Duration, Instant};

fn exists(name: &str) -> bool {
    std::path::Path::new("/run/netns").join(name).exists()
}

#[test]
fn a_namespace_vanishes_with_its_owner_even_after_a_panic() {
    crate::common::require!(&[]);
    let first = Netns::create("drop me!").unwrap();
    let second = Netns::create("drop me!").unwrap();
    assert_ne!(first.name(), second.name());
    assert!(first.name().ends_with("-dropme"), "{}", first.name());
    let name = first.name().to_owned();
    assert!(exists(&name));
    let panicked = std::thread::spawn(move || {
        let _owner = first;
        panic!("on purpose");
    });
    assert!(panicked.join().is_err());
    assert!(!exists(&name));
    let name = second.name().to_owned();
    drop(second);
    assert!(!exists(&name));
}

#[test]
fn a_sweep_removes_what_a_dead_process_left_and_nothing_else() {
    crate::common::require!(&[]);
    let alive = Netns::create("alive").unwrap();
    // A process that has ended, so that its id is unused.
    let mut child = std::process::Command::new("true").spawn().unwrap();
    child.wait().unwrap();
    let orphan = format!("anabranch-{}-0-orphan", child.id());
    assert!(std::process::Command::new("ip").args(["netns", "add", &orphan]).status().unwrap().success());
    assert!(Netns::sweep().unwrap() >= 1);
    assert!(!exists(&orphan));
    assert!(exists(alive.name()));
}

#[test]
fn settings_apply_inside_only() {
    crate::common::require!(&[]);
    let read = || std::fs::read_to_string("/proc/sys/net/ipv4/ip_default_ttl").unwrap().trim().to_owned();
    let outside = read();
    let namespace = Netns::create("sysctl").unwrap();
    namespace.sysctl(&[("net/ipv4/ip_default_ttl", "77")]).unwrap();
    assert_eq!(namespace.run(read).unwrap(), "77");
    assert_eq!(read(), outside);
    let error = namespace.sysctl(&[("net/ipv4/no_such_thing", "1")]).unwrap_err();
    assert!(error.to_string().contains("net/ipv4/no_such_thing"), "{error}");
    let error = namespace.ip("link set lo up\nlink set nonsense up\n").unwrap_err();
    assert!(error.to_string().contains("nonsense"), "{error}");
}

#[test]
fn packets_pass_through_a_device_both_ways() {
    crate::common::require!(&[]);
    let namespace = Netns::create("tun").unwrap();
    let open = |name: &str| namespace.run(|| Tun::open(name)).unwrap();
    assert!(open("a-name-that-is-too-long").is_err());
    let tun = open("t0").unwrap();
    let mut buffer = [0; 2048];
    assert_eq!(tun.read(&mut buffer).unwrap(), None);
    assert!(!tun.write(&[0x45; 40]).unwrap(), "a device that is down refuses packets");
    namespace.sysctl(&[("net/ipv6/conf/all/disable_ipv6", "1")]).unwrap();
    namespace.ip("addr add 10.7.0.2/24 dev t0\nlink set t0 up\n").unwrap();

    let socket = namespace.run(|| UdpSocket::bind("10.7.0.2:7000").unwrap()).unwrap();
    socket.send_to(b"to the device", "10.7.0.1:9").unwrap();
    let deadline = Instant::now() + Duration::from_secs(2);
    let len = loop {
        match tun.read(&mut buffer).unwrap() {
            Some(len) if buffer[9] == 17 => break len,
            _ => assert!(Instant::now() < deadline, "no packet came"),
        }
    };
    assert_eq!(&buffer[len - 13..len], b"to the device");

    // The same packet back: addresses and ports swapped leave both checksums as they are.
    let packet = &mut buffer[..len];
    let (source, destination): (Vec<u8>, Vec<u8>) = (packet[12..16].to_vec(), packet[16..20].to_vec());
    packet[12..16].copy_from_slice(&destination);
    packet[16..20].copy_from_slice(&source);
    let (source, destination): (Vec<u8>, Vec<u8>) = (packet[20..22].to_vec(), packet[22..24].to_vec());
    packet[20..22].copy_from_slice(&destination);
    packet[22..24].copy_from_slice(&source);
    assert!(tun.write(packet).unwrap());
    socket.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
    let mut received = [0; 64];
    let (len, from) = socket.recv_from(&mut received).unwrap();
    assert_eq!((&received[..len], from.to_string().as_str()), (b"to the device".as_slice(), "10.7.0.1:9"));
}
