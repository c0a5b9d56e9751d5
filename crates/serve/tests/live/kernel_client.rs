//! Our endpoint serves the unmodified kernel over two paths: every byte arrives, both paths are used, and neither
//! the kernel nor tshark reports a fault in our segments.

use crate::common::kernel::{self, Download, MPTCP, TCP};
use crate::common::served::{Case, FOUR_MEGABYTES, Outcome, TEN_MEGABYTES, curl, http_head};
use crate::common::{capture, content, require};
use anabranch_network::{Change, DirectionConfig, Loss, Probability, Reordering};
use anabranch_testnet::requirements::{CURL, MPTCPIZE, NSTAT, TSHARK};
use anabranch_testnet::{Middlebox, Netns, Step, Strip, When, sites::Family};
use anabranch_units::{Duration, LinkDirection, PathId};

/// Over two paths, so that there is one join.
fn download(namespace: &Netns) -> Download {
    kernel::download(namespace, Family::V4.server(), MPTCP, 1)
}

/// Waits for no join.
fn download_at_once(namespace: &Netns) -> Download {
    kernel::download(namespace, Family::V4.server(), MPTCP, 0)
}

#[test]
fn ten_megabytes_over_two_paths() {
    require!(&[NSTAT, TSHARK]);
    let outcome = Case::new("clean").run(download);
    outcome.assert_intact(TEN_MEGABYTES);
    outcome.assert_all_paths_used(0.2);
    outcome.assert_clean();
    outcome.assert_closed_in_order();
    assert!(outcome.result.bits_per_second() > 22e6, "more than one link carries");
}

#[test]
fn a_download_over_ipv6() {
    require!(&[NSTAT, TSHARK]);
    let case = Case { family: Family::V6, len: FOUR_MEGABYTES, ..Case::new("ipv6") };
    let outcome = case.run(|namespace| kernel::download(namespace, Family::V6.server(), MPTCP, 1));
    outcome.assert_intact(FOUR_MEGABYTES);
    outcome.assert_all_paths_used(0.2);
    outcome.assert_clean();
    outcome.assert_closed_in_order();
    assert_eq!(capture::count(&outcome.file, |packet| packet.to.is_some()), 0, "nothing but IPv6");
}

#[test]
fn wide_data_sequence_numbers() {
    require!(&[NSTAT, TSHARK]);
    let case = Case {
        endpoint: Box::new(|config| config.transport.wide_data_seq = true),
        len: FOUR_MEGABYTES,
        ..Case::new("wide")
    };
    let outcome = case.run(download);
    outcome.assert_intact(FOUR_MEGABYTES);
    outcome.assert_all_paths_used(0.2);
    outcome.assert_clean();
    outcome.assert_closed_in_order();
}

#[test]
fn one_percent_of_all_packets_lost() {
    require!(&[NSTAT, TSHARK]);
    let lossy = |link: &mut DirectionConfig| link.loss = Loss::independent(Probability::new(0.01).unwrap());
    let outcome = Case { links: Box::new(lossy), ..Case::new("loss") }.run(download);
    outcome.assert_intact(TEN_MEGABYTES);
    outcome.assert_all_paths_used(0.2);
    outcome.assert_clean();
    outcome.assert_closed();
    let lost =
        |path: &anabranch_testnet::LinkReport| path.stats.down.dropped(anabranch_events::DropCause::Random).packets;
    assert!(outcome.report.paths.iter().all(|path| lost(path) > 10), "the loss was real");
}

#[test]
fn packets_out_of_order() {
    require!(&[NSTAT, TSHARK]);
    let reordering = |link: &mut DirectionConfig| {
        let probability = Probability::new(0.05).unwrap();
        link.reordering = Some(Reordering { share: probability, by: Duration::from_millis(8) });
    };
    let outcome = Case { links: Box::new(reordering), len: FOUR_MEGABYTES, ..Case::new("reordering") }.run(download);
    outcome.assert_intact(FOUR_MEGABYTES);
    outcome.assert_all_paths_used(0.2);
    outcome.assert_clean();
    outcome.assert_closed();
}

#[test]
fn packets_twice() {
    require!(&[NSTAT, TSHARK]);
    let twice = |link: &mut DirectionConfig| link.duplication = Probability::new(0.05).unwrap();
    let outcome = Case { links: Box::new(twice), len: FOUR_MEGABYTES, ..Case::new("duplication") }.run(download);
    outcome.assert_intact(FOUR_MEGABYTES);
    outcome.assert_all_paths_used(0.2);
    outcome.assert_clean();
    outcome.assert_closed();
}

#[test]
fn packets_with_a_flipped_bit() {
    require!(&[NSTAT, TSHARK]);
    let corrupting = |_| Middlebox { corruption: Probability::new(0.01).unwrap(), ..Middlebox::default() };
    let outcome = Case { middlebox: Box::new(corrupting), ..Case::new("corruption") }.run(download);
    outcome.assert_intact(TEN_MEGABYTES);
    outcome.assert_all_paths_used(0.2);
    kernel::assert_mptcp_held(&outcome.namespace);
    outcome.assert_closed();
    // Both ends received corrupted packets, and accepted none of them: those whose IP version is hit are refused before
    // they count.
    let middleboxes = || outcome.report.paths.iter().map(|path| path.middlebox);
    let up: u64 = middleboxes().map(|counts| counts.up.corrupted).sum();
    let down: u64 = middleboxes().map(|counts| counts.down.corrupted).sum();
    assert!(up > 10 && down > 50, "{:?}", outcome.report.paths);
    let bad_tcp = kernel::counter(&outcome.namespace, "TcpInCsumErrors");
    assert!(bad_tcp > 40 && bad_tcp <= down, "{bad_tcp} of {down}");
    assert!(outcome.server.undecodable > 5 && outcome.server.undecodable <= up, "{:?}", outcome.server);
}

/// After a middlebox removed the options: every byte arrived, by plain TCP over the initial path, and in order to the
/// end.
fn assert_fell_back(outcome: &Outcome<Download>) {
    outcome.assert_intact(FOUR_MEGABYTES);
    let counters = kernel::mptcp_counters(&outcome.namespace);
    assert_eq!(counters["MPTcpExtMPJoinSynTx"], 0, "{counters:?}");
    assert_eq!((outcome.received[1], outcome.server.accepted), (0, 1));
    let middlebox = outcome.report.paths[0].middlebox;
    assert!(middlebox.down.stripped + middlebox.up.stripped > 0);
    capture::assert_well_formed(&outcome.file);
    outcome.assert_closed_in_order();
}

#[test]
fn options_stripped_from_the_handshake_on() {
    require!(&[NSTAT, TSHARK]);
    let stripping = |_| Middlebox { strip: Strip::Everywhere, ..Middlebox::default() };
    let outcome =
        Case { middlebox: Box::new(stripping), len: FOUR_MEGABYTES, ..Case::new("strip-all") }.run(download_at_once);
    assert_fell_back(&outcome);
    let fell_back = kernel::mptcp_counters(&outcome.namespace)["MPTcpExtMPCapableFallbackSYNACK"];
    assert_eq!(fell_back, 1, "the kernel learnt it from the SYN/ACK");
}

#[test]
fn options_stripped_behind_the_handshake() {
    require!(&[NSTAT, TSHARK]);
    let stripping = |_| Middlebox { strip: Strip::BehindHandshake, ..Middlebox::default() };
    let outcome =
        Case { middlebox: Box::new(stripping), len: FOUR_MEGABYTES, ..Case::new("strip-late") }.run(download_at_once);
    assert_fell_back(&outcome);
    assert_eq!(
        kernel::mptcp_counters(&outcome.namespace)["MPTcpExtMPCapableSYNACKRX"],
        1,
        "MPTCP was agreed on at first"
    );
}

#[test]
fn options_stripped_on_the_second_path_only() {
    require!(&[NSTAT, TSHARK]);
    let stripping =
        |path| Middlebox { strip: if path == 1 { Strip::Everywhere } else { Strip::Nothing }, ..Middlebox::default() };
    let outcome =
        Case { middlebox: Box::new(stripping), len: FOUR_MEGABYTES, ..Case::new("strip-second") }.run(download_at_once);
    outcome.assert_intact(FOUR_MEGABYTES);
    // The join failed, the connection did not.
    let counters = kernel::mptcp_counters(&outcome.namespace);
    assert_eq!((counters["MPTcpExtMPCapableSYNACKRX"], counters["MPTcpExtMPJoinSynAckRx"]), (1, 0), "{counters:?}");
    assert!(counters["MPTcpExtMPJoinSynTx"] > 0, "{counters:?}");
    assert!(capture::mptcp_options(&outcome.file)[&2] > 1000, "the first path speaks MPTCP to the end");
    capture::assert_well_formed(&outcome.file);
}

#[test]
fn everything_at_once_over_three_paths() {
    require!(&[NSTAT, TSHARK]);
    let bad = |link: &mut DirectionConfig| {
        link.loss = Loss::independent(Probability::new(0.03).unwrap());
        link.duplication = Probability::new(0.02).unwrap();
        link.reordering = Some(Reordering { share: Probability::new(0.02).unwrap(), by: Duration::from_millis(6) });
    };
    let len = 4_000_000;
    let case = Case { links: Box::new(bad), delays: vec![5, 10, 30], len, ..Case::new("everything") };
    let outcome = case.run(|namespace| kernel::download(namespace, Family::V4.server(), MPTCP, 2));
    outcome.assert_intact(len);
    outcome.assert_all_paths_used(0.02);
    outcome.assert_clean();
    outcome.assert_closed();
}

fn cut_and_restored(path: u16) -> Vec<Step> {
    let switch = |when, up| Step { when, path: PathId(path), directions: &LinkDirection::BOTH, change: Change::Up(up) };
    vec![switch(When::Delivered(3_000_000), false), switch(When::After(Duration::from_secs(2)), true)]
}

#[test]
fn the_second_path_cut_and_restored() {
    require!(&[NSTAT, TSHARK]);
    let outcome = Case { script: cut_and_restored(1), ..Case::new("cut-second") }.run(download);
    outcome.assert_intact(TEN_MEGABYTES);
    outcome.assert_all_paths_used(0.05);
    outcome.assert_clean();
    outcome.assert_closed();
}

#[test]
fn the_initial_path_cut_and_restored() {
    require!(&[NSTAT, TSHARK]);
    let outcome = Case { script: cut_and_restored(0), ..Case::new("cut-initial") }.run(download);
    outcome.assert_intact(TEN_MEGABYTES);
    outcome.assert_all_paths_used(0.05);
    outcome.assert_clean();
    outcome.assert_closed();
}

#[test]
fn a_client_that_speaks_plain_tcp() {
    require!(&[NSTAT, TSHARK]);
    let case = Case { len: FOUR_MEGABYTES, ..Case::new("plain-tcp") };
    let outcome = case.run(|namespace| kernel::download(namespace, Family::V4.server(), TCP, 0));
    outcome.assert_intact(FOUR_MEGABYTES);
    capture::assert_well_formed(&outcome.file);
    assert_eq!(capture::mptcp_options(&outcome.file).len(), 0, "no MPTCP option to a client that knows none");
    assert_eq!((outcome.server.undecodable, outcome.server.unsendable), (0, 0));
    outcome.assert_closed_in_order();
}

#[test]
fn curl_under_mptcpize() {
    require!(&[NSTAT, TSHARK, CURL, MPTCPIZE]);
    let case = Case { head: http_head(FOUR_MEGABYTES), len: FOUR_MEGABYTES, ..Case::new("curl") };
    let outcome = case.run(|namespace| curl(namespace, Family::V4, 1));
    outcome.assert_intact(FOUR_MEGABYTES);
    outcome.assert_all_paths_used(0.2);
    outcome.assert_clean();
    outcome.assert_closed_in_order();
}

#[test]
fn a_reader_that_closes_the_window() {
    require!(&[NSTAT, TSHARK]);
    let len = 600_000;
    let case = Case { len, ..Case::new("slow-reader") };
    let outcome = case.run(|namespace| kernel::download_slowly(namespace, Family::V4.server(), MPTCP, 1));
    outcome.assert_intact(len);
    outcome.assert_clean();
    outcome.assert_closed_in_order();
    let closed =
        capture::count(&outcome.file, |packet| packet.window == Some(0) && packet.to == Some(Family::V4.server()));
    assert!(closed > 0, "the window was closed at times");
}

#[test]
fn a_client_that_leaves_in_the_middle() {
    require!(&[NSTAT, TSHARK]);
    let outcome =
        Case::new("leaves").run(|namespace| kernel::download_part(namespace, Family::V4.server(), MPTCP, 1_000_000));
    assert!(outcome.result >= 1_000_000 && outcome.result < TEN_MEGABYTES);
    let fast_closes =
        capture::count(&outcome.file, |packet| packet.mptcp.contains(&7) && packet.to == Some(Family::V4.server()));
    assert!(fast_closes > 0, "the kernel aborted");
    assert_eq!((outcome.server.accepted, outcome.server.closed), (1, 1));
    capture::assert_well_formed(&outcome.file);
}

/// Checks each of these, a few at once: they wait for their links most of the time.
fn for_each<T: Sync>(all: &[T], check: impl Fn(&T) + Sync) {
    const AT_ONCE: usize = 3;
    for some in all.chunks(AT_ONCE) {
        std::thread::scope(|scope| some.iter().for_each(|one| drop(scope.spawn(|| check(one)))));
    }
}

#[test]
fn every_scheduler() {
    require!(&[NSTAT, TSHARK]);
    for_each(&anabranch_stack::scheduler::REGISTRY[..], |entry| {
        let len = 2_000_000;
        let case = Case { len, scheduler: entry.name, ..Case::new(entry.name) };
        let outcome = case.run(download);
        outcome.assert_intact(len);
        outcome.assert_clean();
        outcome.assert_closed();
    });
}

#[test]
fn every_congestion_control() {
    require!(&[NSTAT, TSHARK]);
    for_each(&anabranch_stack::congestion::REGISTRY[..], |entry| {
        let len = 2_000_000;
        let case = Case { len, congestion_control: entry.name, ..Case::new(entry.name) };
        let outcome = case.run(download);
        outcome.assert_intact(len);
        outcome.assert_clean();
        outcome.assert_closed_in_order();
    });
}

#[test]
fn twenty_clients_at_once() {
    require!(&[NSTAT, TSHARK]);
    let len = 300_000;
    let outcome = Case { len, ..Case::new("twenty") }.run(|namespace| {
        std::thread::scope(|scope| {
            let clients: Vec<_> = (0..20).map(|_| scope.spawn(|| download_at_once(namespace))).collect();
            clients.into_iter().map(|client| client.join().unwrap()).collect::<Vec<_>>()
        })
    });
    let digest = content::digest(&[], len);
    assert!(outcome.result.iter().all(|d| (d.bytes, d.error, d.sha256) == (len, None, digest)));
    kernel::assert_mptcp_held(&outcome.namespace);
    capture::assert_well_formed(&outcome.file);
    let server = outcome.server;
    assert_eq!((server.accepted, server.closed, server.undecodable, server.unsendable), (20, 20, 0, 0));
}
