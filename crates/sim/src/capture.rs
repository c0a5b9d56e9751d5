//! Packet captures of a simulated run: the packets that `anabranch-wire` would have sent and received.
//!
//! A capture is taken at one end of all connections, as live runs take theirs, and has an interface for each path of
//! the scenario. What the client's end sees shows what arrived and in which order; what the server's end sees shows
//! what was sent, with every retransmission. The simulator has no payload, so a packet ends behind its headers: its
//! length is that of the whole packet, and its TCP checksum that of a payload of zeros.

use crate::world::{Seen, Side, Tap};
use anabranch_scenario::{Scenario, addresses};
use anabranch_segment::{BASE_HEADER_LEN, MAX_OPTIONS_LEN};
use anabranch_units::{Instant, LinkDirection};
use anabranch_wire::capture::{Capture, InterfaceId, PacketDirection};
use anabranch_wire::{EncodeError, encode_headers};
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::io::{self, Write};
use thiserror::Error;

/// The longest headers: IPv6, and TCP with all options.
const MOST_HEADERS: usize = 40 + (BASE_HEADER_LEN + MAX_OPTIONS_LEN) as usize;

/// Hosts in a network of 24 bits: without the network's own address and that of broadcasts.
const HOSTS: u32 = 254;

/// Why a capture is not complete.
#[derive(Debug, Error)]
pub enum CaptureError {
    /// The writer failed.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// IP has no such packet, such as one longer than 65 535 bytes on a link without an MTU.
    #[error("a packet of the run cannot be written: {0}")]
    Encode(#[from] EncodeError),
}

/// Writes captures of a run, one for each end that has a writer; a [`Tap`].
///
/// Interfaces are in the order of the scenario's paths and have their names. The addresses are those of the endpoints.
/// Each connection has a client of its own, which the simulator does not need to tell apart by addresses: the n-th
/// client has the n-th host's address in the network of its path.
pub struct Captures<W: Write> {
    client: Option<Ended<W>>,
    server: Option<Ended<W>>,
    /// The client's and the server's address on each path.
    addresses: Vec<(IpAddr, IpAddr)>,
    /// What went wrong first; nothing is written after it.
    failed: Option<CaptureError>,
}

/// The capture of one end.
struct Ended<W: Write> {
    capture: Capture<W>,
    interfaces: Vec<InterfaceId>,
}

impl<W: Write> Captures<W> {
    /// Captures at the ends that have a writer.
    ///
    /// # Errors
    /// If a writer fails.
    pub fn new(scenario: &Scenario, client: Option<W>, server: Option<W>) -> io::Result<Self> {
        let begin = |out: Option<W>| out.map(|out| Ended::new(scenario, out)).transpose();
        let addresses = scenario.paths.iter().enumerate().map(|(at, path)| addresses(at, path.ip));
        Ok(Captures { client: begin(client)?, server: begin(server)?, addresses: addresses.collect(), failed: None })
    }

    /// Flushes, and gives the writers of the client's and the server's end back.
    ///
    /// # Errors
    /// The first thing that went wrong during the run, or now.
    pub fn finish(self) -> Result<(Option<W>, Option<W>), CaptureError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        let end = |ended: Option<Ended<W>>| ended.map(|ended| ended.capture.finish()).transpose();
        Ok((end(self.client)?, end(self.server)?))
    }

    fn record(&mut self, at: Instant, seen: &Seen<'_>) -> Result<(), CaptureError> {
        let (ended, sends) = match seen.end {
            Side::Client => (&mut self.client, LinkDirection::Up),
            Side::Server => (&mut self.server, LinkDirection::Down),
        };
        let Some(Ended { capture, interfaces }) = ended else { return Ok(()) };
        let (client, server) = self.addresses[seen.path.index()];
        let client = of_client(client, seen.flow as u32);
        let (source, destination) = match seen.direction {
            LinkDirection::Up => (client, server),
            LinkDirection::Down => (server, client),
        };
        let way = if seen.direction == sends { PacketDirection::Outbound } else { PacketDirection::Inbound };
        let mut buffer = [0; MOST_HEADERS];
        let (headers, total) = encode_headers(&mut buffer, source, destination, seen.segment)?;
        capture.beginning(interfaces[seen.path.index()], at, way, &buffer[..headers], total)?;
        Ok(())
    }
}

impl<W: Write> Tap for Captures<W> {
    fn see(&mut self, at: Instant, seen: &Seen<'_>) {
        if self.failed.is_none() {
            self.failed = self.record(at, seen).err();
        }
    }
}

impl<W: Write> Ended<W> {
    fn new(scenario: &Scenario, out: W) -> io::Result<Self> {
        let mut capture = Capture::new(out)?;
        let interfaces = scenario.paths.iter().map(|path| capture.interface(&path.name)).collect::<io::Result<_>>()?;
        Ok(Ended { capture, interfaces })
    }
}

/// The address of the client of this connection, in the network of the first client's. Further networks of IPv4 differ
/// in the second byte, which is zero for the first 255 paths.
fn of_client(first: IpAddr, flow: u32) -> IpAddr {
    match first {
        IpAddr::V4(address) => {
            let further = ((flow / HOSTS) << 16) | (flow % HOSTS);
            IpAddr::V4(Ipv4Addr::from(u32::from(address).wrapping_add(further)))
        }
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from(u128::from(address) + u128::from(flow))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{RunOptions, run, run_with};
    use anabranch_scenario::load;
    use std::collections::BTreeSet;

    const TEXT: &str = "schema = 1\nduration = \"5 s\"\n[link.wifi]\nrtt = \"30 ms\"\nrate = \"3 Mb/s\"\nloss = \"1 %\"\n\
        [link.lte]\nrtt = \"60 ms\"\nrate = \"2 Mb/s\"\n[path.lte]\nlinks = [\"lte\"]\nip = 6\n[path.wifi]\n\
        links = [\"wifi\"]\n[[session]]\ncount = 2\nvideo = { kind = \"bulk\" }\n";

    fn captured() -> (Vec<u8>, Vec<u8>) {
        let scenario = load(TEXT, "test", None, &[]).unwrap();
        let mut captures = Captures::new(&scenario, Some(Vec::new()), Some(Vec::new())).unwrap();
        run_with(&scenario, &RunOptions::default(), &mut |_| true, Some(&mut captures));
        let (client, server) = captures.finish().unwrap();
        (client.unwrap(), server.unwrap())
    }

    /// Counts packets with payload and without, as they were sent or arrived.
    #[derive(Default)]
    struct Counter {
        sent: u64,
        arrived: u64,
        flows: BTreeSet<usize>,
    }

    impl Tap for Counter {
        fn see(&mut self, _: Instant, seen: &Seen<'_>) {
            let sends = (seen.end == Side::Client) == (seen.direction == LinkDirection::Up);
            *(if sends { &mut self.sent } else { &mut self.arrived }) += 1;
            self.flows.insert(seen.flow);
        }
    }

    #[test]
    fn a_tap_sees_every_packet_and_changes_nothing() {
        let scenario = load(TEXT, "test", None, &[]).unwrap();
        let mut counter = Counter::default();
        let options = RunOptions::default();
        let tapped = run_with(&scenario, &options, &mut |_| true, Some(&mut counter)).metrics;
        let links = |count: fn(&anabranch_observation::LinkMetrics) -> u64| tapped.links.iter().map(count).sum::<u64>();
        assert_eq!(counter.sent, links(|link| link.packets_sent));
        assert_eq!(counter.arrived, links(|link| link.packets));
        assert!(counter.arrived < counter.sent, "one link loses packets");
        assert_eq!(counter.flows, BTreeSet::from([0, 1]));
        let plain = run(&scenario, &options, &mut |_| true).metrics;
        assert_eq!(plain.to_json(None), tapped.to_json(None));
    }

    #[test]
    fn the_same_run_gives_the_same_captures() {
        let (client, server) = captured();
        assert!(client != server && client.len() > 100_000, "{} bytes", client.len());
        assert_eq!((client, server), captured());
    }

    #[test]
    fn each_client_has_an_address_of_its_own() {
        let first = IpAddr::from([10, 0, 1, 1]);
        assert_eq!(of_client(first, 0), first);
        assert_eq!(of_client(first, 253), IpAddr::from([10, 0, 1, 254]));
        assert_eq!(of_client(first, 254), IpAddr::from([10, 1, 1, 1]));
        let (six, _) = addresses(1, 6);
        let distinct: BTreeSet<_> = (0..1000).flat_map(|flow| [of_client(first, flow), of_client(six, flow)]).collect();
        assert_eq!(distinct.len(), 2000);
    }

    #[test]
    fn what_a_writer_says_ends_the_capture_and_not_the_run() {
        /// Has room for the beginning of a file.
        struct Small(usize);
        impl Write for Small {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                self.0 = self.0.checked_sub(bytes.len()).ok_or(io::ErrorKind::StorageFull)?;
                Ok(bytes.len())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let scenario = load(TEXT, "test", None, &[]).unwrap();
        let mut captures = Captures::new(&scenario, None, Some(Small(10_000))).unwrap();
        let outcome = run_with(&scenario, &RunOptions::default(), &mut |_| true, Some(&mut captures));
        assert!(outcome.metrics.packets > 1000);
        let Err(CaptureError::Io(error)) = captures.finish() else { panic!("the file has no room") };
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    }
}
