//! The handshake, segment by segment: MP_CAPABLE, MP_JOIN, HMACs, fallback (RFC 8684 sections 3.1, 3.2 and 3.7).

use crate::common::config;
use crate::common::talk::*;
use anabranch_segment::{CapableFlags, Flags, MptcpOption};
use anabranch_stack::connection::Protocol;

const NOTHING: [&str; 0] = [];

fn client() -> Talk {
    Talk::client(two_paths(), &[OUR_KEY, 0, 1_000, 0x4444, 0, 2_000])
}

#[test]
fn a_client_opens_a_connection() {
    let mut talk = client();
    let emitted = talk.emitted_segments();
    let (path, syn) = &emitted[0];
    assert_eq!((emitted.len(), *path, syn.seq.0, syn.ack.0, syn.window), (1, 0, 1_000, 0, 64_240));
    let options = syn.syn.unwrap();
    // 3 MB of window need a scale of 6.
    assert_eq!((options.mss, options.window_scale, options.sack_permitted), (1460, Some(7), true));
    assert_eq!((syn.timestamps.map(|t| t.echo), &syn.mptcp), (Some(0), &[capable(None, None, None)].into()));

    talk.wait_until(20);
    talk.syn_ack(0, &[capable(Some(PEER_KEY), None, None)]);
    let emitted = talk.emitted_segments();
    let third = &emitted[0].1;
    assert_eq!((emitted.len(), third.flags, third.seq.0, third.ack.0), (1, Flags::ACK, 1_001, PEER_ISN[0] + 1));
    assert_eq!(third.mptcp, [capable(Some(OUR_KEY), Some(PEER_KEY), None)]);
    assert_eq!((third.window, third.dss), (64_240_u16.div_ceil(1 << 7), None));

    // The first data repeats the keys and has 24 bytes less of room; the next segments carry DSS.
    talk.end.write(2_000);
    assert_eq!(
        talk.emitted(),
        ["0 ACK 1+1424 ack 1 capable(2, 1424)", "0 ACK 1425+576 ack 1 1424@1425+576 data-ack 0"]
    );
    assert!(talk.end.poll_timeout().is_some_and(|due| due > at(20)));

    // The server sends DSS: now, and only now, does the client join.
    talk.wait_until(40);
    talk.deliver(0, peer(1, 1425).data_ack(1424));
    assert_eq!(talk.emitted(), ["1 SYN 0 join-syn(1)"]);
    talk.deliver(0, peer(1, 2001).data_ack(2000));
    talk.end.write(1_428);
    assert_eq!(talk.emitted(), ["0 ACK 2001+1428 ack 1 2000@2001+1428 data-ack 0"]);
}

#[test]
fn a_client_joins_with_proofs() {
    let mut talk = Talk::connected(two_paths());
    let emitted = talk.emitted_segments();
    let (path, syn) = &emitted[0];
    assert_eq!((emitted.len(), *path, syn.seq.0), (1, 1, 2_000));
    let expected = MptcpOption::JoinSyn { backup: false, address_id: 1, token: token(PEER_KEY), nonce: 0x4444 };
    assert_eq!(syn.mptcp, [expected]);

    talk.wait_until(60);
    let hmac = u64::from_be_bytes(join_proof(PEER_KEY, OUR_KEY, [PEER_NONCE, 0x4444])[..8].try_into().unwrap());
    talk.syn_ack(1, &[MptcpOption::JoinSynAck { backup: false, address_id: 0, hmac, nonce: PEER_NONCE }]);
    let emitted = talk.emitted_segments();
    let hmac: [u8; 20] = join_proof(OUR_KEY, PEER_KEY, [0x4444, PEER_NONCE])[..20].try_into().unwrap();
    assert_eq!((emitted.len(), &emitted[0].1.mptcp), (1, &[MptcpOption::JoinAck { hmac }].into()));

    // Until the fourth segment the third is retransmitted, and data uses the other subflow.
    talk.end.write(1_000);
    assert_eq!(talk.emitted(), ["0 ACK 1+1000 ack 1 0@1+1000 data-ack 0"]);
    talk.deliver(0, peer(1, 1001).data_ack(1000));
    assert_eq!(talk.emitted_at(1_060), ["1 ACK 1 ack 1 join-ack"]);
    assert_eq!(talk.emitted_at(3_060), ["1 ACK 1 ack 1 join-ack"]);
    talk.deliver(1, peer(1, 1).data_ack(1000));
    assert_eq!(talk.emitted(), NOTHING, "the fourth segment is the last of the handshake");
    talk.sends_nothing_until(10_000);
}

#[test]
fn a_wrong_proof_in_the_answer_resets_the_join_and_nothing_else() {
    let mut talk = Talk::connected(two_paths());
    talk.emitted();
    talk.syn_ack(1, &[MptcpOption::JoinSynAck { backup: false, address_id: 0, hmac: 1, nonce: PEER_NONCE }]);
    assert_eq!(talk.emitted(), ["1 RST|ACK 1 ack 1 reset(MptcpError)"]);
    talk.end.write(10);
    assert_eq!(talk.emitted(), ["0 ACK 1+10 ack 1 0@1+10 data-ack 0"]);
    talk.deliver(0, peer(1, 11).data_ack(10));
    // A second later the path manager tries again.
    assert_eq!(talk.emitted_at(1_040), ["1 SYN 0 join-syn(1)"]);
}

#[test]
fn a_server_answers_and_takes_the_first_data_with_the_keys() {
    let mut talk = Talk::server(two_paths(), &[OUR_KEY, 0, 1_000], &[capable(None, None, None)], |_| {});
    assert_eq!(talk.emitted(), ["0 SYN|ACK 0 ack 1 capable(1)"]);
    // Retransmitted after 1, 2, 4 seconds, or when the SYN arrives again.
    assert_eq!(talk.emitted_at(1_000), ["0 SYN|ACK 0 ack 1 capable(1)"]);
    assert_eq!(talk.emitted_at(3_000), ["0 SYN|ACK 0 ack 1 capable(1)"]);
    let keys = capable(Some(PEER_KEY), Some(OUR_KEY), None);
    talk.deliver(0, peer(1, 1).option(keys));
    assert_eq!(talk.emitted(), NOTHING, "the acknowledgment of the client's first data brings DSS");
    assert!(talk.end.is_multipath());
    talk.sends_nothing_until(4_000);
    let placed = talk.deliver(0, peer(1, 1).payload(300).option(capable(Some(PEER_KEY), Some(OUR_KEY), Some(300))));
    assert_eq!(placed.map(|p| (p.stream_offset, p.len)), Some((0, 300)));
    assert_eq!(talk.emitted(), ["0 ACK 1 ack 301 data-ack 300"]);
    talk.sends_nothing_until(100_000);
}

#[test]
fn the_third_segment_may_be_lost_if_data_brings_the_keys() {
    let mut talk = Talk::server(two_paths(), &[OUR_KEY, 0, 1_000], &[capable(None, None, None)], |_| {});
    talk.emitted();
    let keys = capable(Some(PEER_KEY), Some(OUR_KEY), Some(300));
    assert!(talk.deliver(0, peer(1, 1).payload(300).option(keys)).is_some());
    assert_eq!(talk.emitted(), ["0 ACK 1 ack 301 data-ack 300"]);
}

#[test]
fn a_server_takes_a_join_with_the_right_proof() {
    let mut talk = Talk::served(two_paths());
    talk.join_syn(1, 2, token(OUR_KEY));
    let emitted = talk.emitted_segments();
    let nonce = talk.nonce;
    let hmac = u64::from_be_bytes(join_proof(OUR_KEY, PEER_KEY, [nonce, PEER_NONCE])[..8].try_into().unwrap());
    let expected = MptcpOption::JoinSynAck { backup: false, address_id: 1, hmac, nonce };
    assert_eq!((emitted.len(), emitted[0].0, &emitted[0].1.mptcp), (1, 1, &[expected].into()));
    talk.wait_until(40);
    // Data before the HMAC is not accepted.
    assert!(talk.deliver(1, peer(1, 1).data(0, 100)).is_none());
    assert_eq!(talk.emitted(), NOTHING);
    talk.join_ack(1);
    assert_eq!(talk.emitted(), ["1 ACK 1 ack 1 data-ack 0"]);
    // That was lost, so the third arrives again.
    talk.join_ack(1);
    assert_eq!(talk.emitted(), ["1 ACK 1 ack 1 data-ack 0"]);
    assert!(talk.deliver(1, peer(1, 1).data(0, 100)).is_some());
}

#[test]
fn the_fourth_segment_of_a_join_leaves_before_data() {
    let mut talk = Talk::served(two_paths());
    talk.end.write(100_000);
    talk.join_syn(1, 2, token(OUR_KEY));
    talk.emitted();
    talk.wait_until(40);
    talk.join_ack(1);
    let payloads: Vec<_> = talk.emitted_segments().iter().map(|(path, segment)| (*path, segment.payload_len)).collect();
    assert_eq!(payloads[..2], [(1, 0), (1, 1_428)]);
}

#[test]
fn a_join_with_a_wrong_proof_is_reset() {
    let mut talk = Talk::served(two_paths());
    talk.join_syn(1, 2, token(OUR_KEY));
    talk.emitted();
    talk.deliver(1, peer(1, 1).option(MptcpOption::JoinAck { hmac: [7; 20] }));
    assert_eq!(talk.emitted(), ["1 RST|ACK 1 ack 1 reset(Prohibited)"]);
    talk.deliver(0, peer(1, 1).data(0, 50));
    assert_eq!(talk.emitted(), ["0 ACK 1 ack 51 data-ack 50"], "the connection lives");
    assert_eq!(talk.end.views().len(), 1);
}

#[test]
fn a_join_of_another_connection_and_a_segment_of_no_subflow_are_refused() {
    let mut talk = Talk::served(two_paths());
    talk.join_syn(1, 2, token(OUR_KEY) ^ 1);
    assert_eq!(talk.emitted(), ["1 RST|ACK 0 ack 1 reset(MptcpError)"]);
    assert_eq!(talk.end.views().len(), 1);
    talk.deliver(1, peer(1, 77).data(0, 100));
    assert_eq!(talk.emitted(), ["1 RST 77"]);
    // A reset is not answered, lest two ends reset each other for ever.
    talk.deliver(1, peer(1, 77).flags(Flags::RST));
    assert_eq!(talk.emitted(), NOTHING);
}

#[test]
fn a_syn_is_retransmitted_with_doubling_pauses_and_then_given_up() {
    let mut talk = client();
    assert_eq!(talk.emitted(), ["0 SYN 0 capable(0)"]);
    for due in [1, 3] {
        assert_eq!(talk.emitted_at(due * 1000), ["0 SYN 0 capable(0)"]);
    }
    // A middlebox may not let the option pass.
    for due in [7, 15, 31, 63] {
        assert_eq!(talk.emitted_at(due * 1000), ["0 SYN 0"]);
    }
    talk.sends_nothing_until(200_000);
    assert!(talk.end.is_closed());
}

#[test]
fn the_number_of_multipath_offers_is_configurable() {
    for (retries, offers) in [(0, 1), (1, 2), (128, 7)] {
        let mut config = two_paths();
        config.transport.capable_retries = retries;
        let mut talk = Talk::client(config, &[OUR_KEY, 0, 1_000]);
        let mut emitted = talk.emitted();
        [1, 3, 7, 15, 31, 63].iter().for_each(|due| emitted.extend(talk.emitted_at(due * 1000)));
        assert_eq!(emitted.iter().filter(|emitted| emitted.contains("capable")).count(), offers);
    }
}

#[test]
fn an_answer_to_a_syn_without_the_option_means_plain_tcp_whatever_its_options() {
    let mut talk = client();
    talk.emitted();
    for due in [1, 3, 7] {
        talk.emitted_at(due * 1000);
    }
    // The answer to an earlier SYN was late.
    talk.syn_ack(0, &[capable(Some(PEER_KEY), None, None)]);
    assert_eq!((talk.emitted(), talk.end.is_multipath()), (vec!["0 ACK 1 ack 1".to_string()], false));
    talk.end.write(10);
    assert_eq!(talk.emitted(), ["0 ACK 1+10 ack 1"]);
}

/// MP_CAPABLE with other flags than ours.
fn flagged(flags: CapableFlags, sender_key: Option<u64>) -> MptcpOption {
    MptcpOption::Capable { version: 1, flags, sender_key, receiver_key: None, data_len: None, checksum: None }
}

#[test]
fn a_peer_that_insists_on_checksums_gets_plain_tcp() {
    let checksums = CapableFlags { checksum_required: true, ..CAPABLE };
    let mut talk = Talk::server(two_paths(), &[OUR_KEY, 0, 1_000], &[flagged(checksums, None)], |_| {});
    assert_eq!(talk.emitted(), ["0 SYN|ACK 0 ack 1"]);
    let mut talk = client();
    talk.emitted();
    talk.syn_ack(0, &[flagged(checksums, Some(PEER_KEY))]);
    assert_eq!((talk.emitted(), talk.end.is_multipath()), (vec!["0 ACK 1 ack 1".to_string()], false));
}

#[test]
fn a_server_that_wants_no_joins_at_its_address_gets_none() {
    // Both paths lead to the server's one address.
    let mut config = two_paths();
    config.paths[1].remote = config.paths[0].remote;
    for (deny, expected) in [(false, vec!["1 SYN 0 join-syn(1)"]), (true, vec![])] {
        let mut talk = Talk::client(config.clone(), &[OUR_KEY, 0, 1_000, 0x4444, 0, 2_000]);
        talk.emitted();
        talk.syn_ack(0, &[flagged(CapableFlags { deny_join_initial: deny, ..CAPABLE }, Some(PEER_KEY))]);
        talk.emitted();
        talk.deliver(0, peer(1, 1).data_ack(0));
        assert_eq!(talk.emitted(), expected);
    }
}

#[test]
fn a_server_without_multipath_gets_plain_tcp() {
    let mut talk = client();
    talk.emitted();
    talk.syn_ack(0, &[]);
    assert_eq!(talk.emitted(), ["0 ACK 1 ack 1"]);
    talk.end.write(1_448);
    assert_eq!(talk.emitted(), ["0 ACK 1+1448 ack 1"]);
    talk.deliver(0, peer(1, 1449));
    assert_eq!((talk.end.acked(), talk.end.is_multipath()), (1_448, false));
    talk.sends_nothing_until(100_000);
}

#[test]
fn a_client_without_multipath_gets_plain_tcp() {
    let mut talk = Talk::server(two_paths(), &[OUR_KEY, 0, 1_000], &[], |_| {});
    assert_eq!(talk.emitted(), ["0 SYN|ACK 0 ack 1"]);
    talk.deliver(0, peer(1, 1).payload(100));
    assert_eq!((talk.end.readable(), talk.emitted()), (100, vec!["0 ACK 1 ack 101".to_string()]));
    talk.join_syn(1, 2, token(OUR_KEY));
    assert_eq!(talk.emitted(), ["1 RST|ACK 0 ack 1 reset(MptcpError)"], "no joins to plain TCP");
}

#[test]
fn a_third_segment_without_keys_means_plain_tcp() {
    let mut talk = Talk::server(two_paths(), &[OUR_KEY, 0, 1_000], &[capable(None, None, None)], |_| {});
    talk.emitted();
    talk.deliver(0, peer(1, 1));
    assert!(!talk.end.is_multipath());
    talk.end.write(100);
    assert_eq!(talk.emitted(), ["0 ACK 1+100 ack 1"]);
}

#[test]
fn a_first_answer_without_dss_means_plain_tcp() {
    let mut talk = client();
    talk.emitted();
    talk.syn_ack(0, &[capable(Some(PEER_KEY), None, None)]);
    talk.emitted();
    talk.end.write(100);
    assert_eq!(talk.emitted(), ["0 ACK 1+100 ack 1 capable(2, 100)"]);
    // A middlebox removed the option from the acknowledgment.
    talk.deliver(0, peer(1, 101));
    assert_eq!((talk.end.acked(), talk.end.is_multipath()), (100, false));
    talk.end.write(100);
    assert_eq!(talk.emitted(), ["0 ACK 101+100 ack 1"]);
    assert!(talk.deliver(0, peer(1, 201).payload(50)).is_some_and(|placed| placed.stream_offset == 0));
}

#[test]
fn plain_tcp_neither_offers_nor_takes_multipath() {
    let mut talk = Talk::client(config(Protocol::Tcp, 2), &[OUR_KEY, 0, 1_000]);
    assert_eq!(talk.emitted(), ["0 SYN 0"]);
    talk.syn_ack(0, &[]);
    assert_eq!(talk.emitted(), ["0 ACK 1 ack 1"]);
    let mut talk = Talk::server(config(Protocol::Tcp, 2), &[OUR_KEY, 0, 9], &[capable(None, None, None)], |_| {});
    assert_eq!(talk.emitted(), ["0 SYN|ACK 0 ack 1"]);
}

#[test]
fn only_what_the_peer_offered_is_agreed_to() {
    let bare = |syn: &mut anabranch_segment::Segment| {
        syn.syn.as_mut().unwrap().window_scale = None;
        syn.syn.as_mut().unwrap().sack_permitted = false;
        syn.timestamps = None;
    };
    let mut talk = Talk::server(two_paths(), &[OUR_KEY, 0, 1_000], &[], bare);
    let syn_ack = talk.emitted_segments().remove(0).1;
    let options = syn_ack.syn.unwrap();
    assert_eq!((options.window_scale, options.sack_permitted, syn_ack.timestamps), (None, false, None));
    talk.deliver(0, peer(1, 1));
    talk.end.write(10_000);
    let first = talk.emitted_segments().remove(0).1;
    assert_eq!((first.payload_len, first.window), (1_460, 64_240), "not scaled");
    // Nor does it send SACK blocks.
    talk.deliver(0, peer(101, 1).payload(100));
    assert_eq!(talk.emitted(), ["0 ACK 10001 ack 1"]);
}

#[test]
fn a_client_that_finishes_at_once_waits_for_option_space() {
    let mut talk = client();
    talk.emitted();
    talk.end.finish();
    talk.syn_ack(0, &[capable(Some(PEER_KEY), None, None)]);
    assert_eq!(talk.emitted(), ["0 ACK 1 ack 1 capable(2)"]);
    talk.deliver(0, peer(1, 1).data_ack(0));
    assert_eq!(talk.emitted(), ["1 SYN 0 join-syn(1)", "0 ACK 1 ack 1 0@0+1 fin data-ack 0"]);
}
