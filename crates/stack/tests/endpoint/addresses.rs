//! Addresses, advertised and withdrawn (RFC 8684 section 3.4).

use crate::common::talk::*;
use crate::common::{Pair, Path, secs};
use anabranch_segment::{MptcpOption, RemovedAddresses};
use anabranch_units::PathId;
use std::net::{IpAddr, Ipv6Addr};

const NOTHING: [&str; 0] = [];
const OTHER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 1, 0, 2));

/// The rightmost 64 bits of the HMAC, computed independently.
fn proof_of(signer: u64, other: u64, id: u8, address: &[u8], port: u16) -> u64 {
    let message = [&[id], address, &port.to_be_bytes()].concat();
    u64::from_be_bytes(proof(signer, other, &message)[24..].try_into().unwrap())
}

/// The peer advertises `10.1.0.2`.
fn add_address(id: u8, port: Option<u16>) -> MptcpOption {
    let hmac = proof_of(PEER_KEY, OUR_KEY, id, &[10, 1, 0, 2], port.unwrap_or(0));
    MptcpOption::AddAddress { echo: false, address_id: id, address: OTHER, port, hmac }
}

/// A client that joins only to known addresses of the server, at time 40.
fn shy_client() -> Talk {
    let mut config = two_paths();
    config.join_unannounced = false;
    let mut talk = Talk::connected(config);
    assert_eq!(talk.emitted(), NOTHING, "no join to an address that was not advertised");
    talk
}

#[test]
fn an_address_is_announced_with_its_proof_and_again_until_it_is_echoed() {
    let mut talk = Talk::served(two_paths());
    talk.end.announce_address(at(20), 3, OTHER, None);
    let emitted = talk.emitted_segments();
    let hmac = proof_of(OUR_KEY, PEER_KEY, 3, &[10, 1, 0, 2], 0);
    let expected = MptcpOption::AddAddress { echo: false, address_id: 3, address: OTHER, port: None, hmac };
    assert_eq!((emitted.len(), &emitted[0].1.mptcp), (1, &[expected].into()));
    assert!(emitted[0].1.dss.is_some(), "there is room for both");
    // Three times after 220, 440 and 880 ms; the timeout of the only subflow is 220 ms.
    for due in [240, 680, 1560] {
        assert_eq!(talk.emitted_at(due), ["0 ACK 1 ack 1 data-ack 0 add(3, 10.1.0.2)"]);
    }
    talk.sends_nothing_until(1_000_000);

    let mut talk = Talk::served(two_paths());
    talk.end.announce_address(at(20), 3, OTHER, Some(8080));
    assert_eq!(talk.emitted(), ["0 ACK 1 ack 1 data-ack 0 add(3, 10.1.0.2)"]);
    // The echo of another address does not count.
    let echo = |port| MptcpOption::AddAddress { echo: true, address_id: 3, address: OTHER, port, hmac: 0 };
    talk.deliver(0, peer(1, 1).data_ack(0).option(echo(None)));
    assert_eq!(talk.emitted_at(240).len(), 1);
    talk.deliver(0, peer(1, 1).data_ack(0).option(echo(Some(8080))));
    talk.sends_nothing_until(1_000_000);
}

#[test]
fn a_long_address_takes_the_place_of_everything_else() {
    let mut talk = Talk::served(two_paths());
    let address = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 7);
    talk.end.announce_address(at(20), 4, address.into(), Some(443));
    let emitted = talk.emitted_segments();
    let hmac = proof_of(OUR_KEY, PEER_KEY, 4, &address.octets(), 443);
    let option = MptcpOption::AddAddress { echo: false, address_id: 4, address: address.into(), port: Some(443), hmac };
    assert_eq!((&emitted[0].1.mptcp, emitted[0].1.dss), (&[option].into(), None));
    assert_eq!((emitted[0].1.options_len(), emitted[0].1.timestamps), (32, None));
}

#[test]
fn an_announcement_waits_for_the_connection() {
    let mut talk = Talk::client(paths(1), &[OUR_KEY, 0, 1_000]);
    talk.end.announce_address(at(0), 5, OTHER, None);
    assert_eq!(talk.emitted(), ["0 SYN 0 capable(0)"]);
    talk.wait_until(20);
    talk.syn_ack(0, &[capable(Some(PEER_KEY), None, None)]);
    assert_eq!(talk.emitted(), ["0 ACK 1 ack 1 capable(2)"]);
    talk.wait_until(40);
    talk.deliver(0, peer(1, 1).data_ack(0));
    assert_eq!(talk.emitted_at(40), ["0 ACK 1 ack 1 data-ack 0 add(5, 10.1.0.2)"]);
}

#[test]
fn an_announced_address_is_echoed_and_joined() {
    let mut talk = shy_client();
    talk.deliver(0, peer(1, 1).data_ack(0).option(add_address(2, Some(8080))));
    let emitted = talk.emitted_segments();
    assert_eq!(emitted.iter().map(|(path, _)| *path).collect::<Vec<_>>(), [1, 0]);
    assert_eq!(emitted[0].1.destination_port, 8080);
    let echo = MptcpOption::AddAddress { echo: true, address_id: 2, address: OTHER, port: Some(8080), hmac: 0 };
    assert_eq!(emitted[1].1.mptcp, [echo]);
    // Our echo was lost: it is sent again, and no second join.
    talk.deliver(0, peer(1, 1).data_ack(0).option(add_address(2, Some(8080))));
    assert_eq!(talk.emitted(), ["0 ACK 1 ack 1 data-ack 0 add-echo(2)"]);
}

#[test]
fn an_address_without_the_right_proof_is_ignored() {
    let mut talk = shy_client();
    let MptcpOption::AddAddress { hmac, .. } = add_address(2, None) else { unreachable!() };
    for (id, port, hmac) in [(2, None, hmac ^ 1), (3, None, hmac), (2, Some(80), hmac)] {
        let option = MptcpOption::AddAddress { echo: false, address_id: id, address: OTHER, port, hmac };
        talk.deliver(0, peer(1, 1).data_ack(0).option(option));
        assert_eq!(talk.emitted(), NOTHING);
    }
    talk.sends_nothing_until(100_000);
}

#[test]
fn a_withdrawn_address_is_left_until_it_is_advertised_again() {
    let mut talk = shy_client();
    talk.deliver(0, peer(1, 1).data_ack(0).option(add_address(2, None)));
    assert_eq!(talk.emitted().len(), 2);
    let hmac = join_proof(PEER_KEY, OUR_KEY, [PEER_NONCE, talk.nonce]);
    let hmac = u64::from_be_bytes(hmac[..8].try_into().unwrap());
    talk.syn_ack(1, &[MptcpOption::JoinSynAck { backup: false, address_id: 2, hmac, nonce: PEER_NONCE }]);
    talk.emitted();
    talk.deliver(1, peer(1, 1).data_ack(0));
    talk.emitted();
    assert_eq!(talk.end.views().len(), 2);
    let gone = MptcpOption::RemoveAddress(RemovedAddresses::new(&[2]).unwrap());
    talk.deliver(0, peer(1, 1).data_ack(0).option(gone));
    assert_eq!((talk.end.views().len(), talk.emitted().len()), (1, 0));
    talk.sends_nothing_until(100_000);
    talk.deliver(0, peer(1, 1).data_ack(0).option(add_address(2, None)));
    assert_eq!(talk.emitted(), ["1 SYN 0 join-syn(1)", "0 ACK 1 ack 1 data-ack 0 add-echo(2)"]);
}

#[test]
fn a_withdrawn_address_is_no_longer_advertised_and_its_removal_is_sent_four_times() {
    let mut talk = Talk::served(two_paths());
    talk.end.announce_address(at(20), 3, OTHER, None);
    talk.emitted();
    talk.end.withdraw_address(at(talk.now), 3);
    let gone = ["0 ACK 1 ack 1 data-ack 0 remove([3])"];
    assert_eq!(talk.emitted(), gone);
    // It has no echo, so it is retransmitted at the pace of ADD_ADDR.
    for due in [240, 680, 1560] {
        assert_eq!(talk.emitted_at(due), gone);
    }
    talk.sends_nothing_until(100_000);
}

#[test]
fn an_address_that_comes_back_is_no_longer_withdrawn() {
    let mut talk = Talk::served(two_paths());
    talk.join(1, 2);
    let now = at(talk.now);
    talk.end.handle_path_change(now, PathId(1), false);
    assert_eq!(talk.emitted(), ["0 ACK 1 ack 1 data-ack 0 remove([1])"]);
    talk.end.handle_path_change(now, PathId(1), true);
    assert_eq!(
        talk.emitted(),
        ["0 ACK 1 ack 1 data-ack 0 add(1, 10.1.0.1)"],
        "the server cannot join, so it advertises"
    );
    assert_eq!(talk.emitted_at(talk.now + 220), ["0 ACK 1 ack 1 data-ack 0 add(1, 10.1.0.1)"]);
    // Then a client joins from there.
    let mut talk = Talk::connected(two_paths());
    talk.emitted();
    talk.end.handle_path_change(at(40), PathId(1), false);
    assert_eq!(talk.emitted(), ["0 ACK 1 ack 1 data-ack 0 remove([1])"]);
    talk.end.handle_path_change(at(40), PathId(1), true);
    assert_eq!(talk.emitted(), ["1 SYN 0 join-syn(1)"]);
    talk.sends_nothing_until(1_040);
}

#[test]
fn a_server_whose_interface_comes_back_is_joined_again() {
    let mut server = two_paths();
    for path in &mut server.paths {
        std::mem::swap(&mut path.local, &mut path.remote);
    }
    let mut net = Pair::new(two_paths(), server, vec![Path::symmetric(5, 10), Path::symmetric(5, 20)], 4);
    net.to_send = 20_000_000;
    net.paths.iter_mut().for_each(|path| path.down.queue = 60_000);
    net.run_until(secs(1), |_| false);
    let change = |net: &mut Pair, up| {
        let now = net.now;
        net.server().handle_path_change(now, PathId(1), up);
        net.flush();
    };
    net.paths[1].cut();
    change(&mut net, false);
    net.run_until(secs(4), |_| false);
    assert_eq!((net.client.views().len(), net.server().views().len()), (1, 1));
    net.paths[1].heal();
    change(&mut net, true);
    net.run_until(secs(5), |_| false);
    assert_eq!((net.client.views().len(), net.server().views().len()), (2, 2));
}

#[test]
fn a_flood_of_announcements_is_bounded() {
    let mut talk = shy_client();
    for id in 0..=255u8 {
        let hmac = proof_of(PEER_KEY, OUR_KEY, id, &[10, 1, id, 9], 0);
        let address = [10, 1, id, 9].into();
        let option = MptcpOption::AddAddress { echo: false, address_id: id, address, port: None, hmac };
        talk.deliver(0, peer(1, 1).data_ack(0).option(option));
    }
    assert_eq!(talk.emitted().len(), 8, "echoes");
}
