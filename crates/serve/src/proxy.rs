//! Forwarding of streams to another server and back, without inspection.

use super::Stream;
use super::stream::{Reader, Writer};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::{ReadHalf, WriteHalf};

/// Time for an origin to answer a SYN.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Time for a client to read what it has acknowledged, before an origin's RST is passed on. Linux discards the unread
/// bytes of a Multipath TCP connection that is aborted.
const READING_TIME: Duration = Duration::from_millis(500);
/// Bytes copied at a time in each direction.
const CHUNK: usize = 64 << 10;

/// Bytes that were passed on.
#[derive(Debug, Default)]
pub(super) struct Passed {
    /// From the client.
    pub(super) received: AtomicU64,
    /// To it.
    pub(super) sent: AtomicU64,
}

/// Copies both directions until both have ended, and counts the bytes. The end of one direction is passed on while the
/// other continues; a slow reader on one side stops the writer on the other; and an abort of one side aborts the other
/// with RST.
///
/// An origin that does not read on may still have an answer under way, as one that closes its connection with the
/// answer and does not wait for the client's last words: its kernel sends RST for these. The client gets all that the
/// origin had sent before.
///
/// With `announces`, the origin is first sent the client's address.
///
/// # Errors
/// If a direction did not come to its end.
pub(super) async fn pass(client: Stream, origin: &str, announces: bool, passed: &Passed) -> io::Result<()> {
    let connecting = tokio::time::timeout(CONNECT_TIMEOUT, TcpStream::connect(origin));
    // The client's stream is dropped, which is RST, if this fails.
    let mut server = connecting.await.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
    server.set_nodelay(true)?;
    if announces {
        server.write_all(&announcement(client.remote(), client.local())).await?;
    }
    let (from_client, to_client) = client.halves();
    let (from_origin, to_origin) = server.split();
    let conversation = Conversation::default();
    let up = conversation.carry_up(from_client, to_origin, &passed.received);
    let down = conversation.carry_down(from_origin, to_client, &passed.sent);
    let carried = tokio::try_join!(up, down).map(drop);
    if carried.is_err() {
        // Closing a socket with a lingering time of zero sends RST; otherwise the origin would take the aborted stream
        // for a complete one.
        let _ = rustix::net::sockopt::set_socket_linger(&server, Some(Duration::ZERO));
    }
    carried
}

/// What one direction has to know of the other.
#[derive(Debug, Default)]
struct Conversation {
    /// The origin's stream has ended, and the client has it.
    answered: AtomicBool,
    /// Wakes the direction from the client, which only waits for that.
    answering_ends: tokio::sync::Notify,
}

impl Conversation {
    /// Carries the client's bytes. Those that the origin does not take are discarded until its answer has ended.
    async fn carry_up(&self, mut from: Reader<'_>, mut to: WriteHalf<'_>, count: &AtomicU64) -> io::Result<()> {
        let mut nowhere = tokio::io::sink();
        match carry(&mut from, &mut to, count).await {
            Ok(()) => Ok(()),
            Err(Side::Source(error)) => Err(error),
            Err(Side::Target(_)) if self.answered.load(Ordering::Acquire) => Ok(()),
            Err(Side::Target(_)) => tokio::select! {
                discarded = tokio::io::copy(&mut from, &mut nowhere) => discarded.map(drop),
                () = self.answering_ends.notified() => Ok(()),
            },
        }
    }

    /// Carries the origin's bytes. If the origin breaks off, the client first gets what there is.
    async fn carry_down(&self, mut from: ReadHalf<'_>, mut to: Writer<'_>, count: &AtomicU64) -> io::Result<()> {
        match carry(&mut from, &mut to, count).await {
            Ok(()) => {
                self.answered.store(true, Ordering::Release);
                self.answering_ends.notify_one();
                Ok(())
            }
            Err(Side::Source(error)) => {
                to.acknowledged().await;
                tokio::time::sleep(READING_TIME).await;
                Err(error)
            }
            Err(Side::Target(error)) => Err(error),
        }
    }
}

/// Which side ended a direction before its time.
#[derive(Debug)]
enum Side {
    Source(io::Error),
    Target(io::Error),
}

/// Copies one direction with its end.
async fn carry(
    from: &mut (impl AsyncRead + Unpin),
    to: &mut (impl AsyncWrite + Unpin),
    count: &AtomicU64,
) -> Result<(), Side> {
    let mut buffer = vec![0; CHUNK];
    loop {
        let n = from.read(&mut buffer).await.map_err(Side::Source)?;
        if n == 0 {
            return to.shutdown().await.map_err(Side::Target);
        }
        to.write_all(&buffer[..n]).await.map_err(Side::Target)?;
        count.fetch_add(n as u64, Ordering::Relaxed);
    }
}

/// The header of version 2 of the PROXY protocol (haproxy.org, `proxy-protocol.txt`, section 2.2): a signature, version
/// and command, family and transport, the length of the rest, both addresses, both ports.
fn announcement(client: SocketAddr, server: SocketAddr) -> Vec<u8> {
    const SIGNATURE: &[u8; 12] = b"\r\n\r\n\0\r\nQUIT\n";
    /// Version 2, command PROXY.
    const COMMAND: u8 = 0x21;
    /// TCP over IPv4, and over IPv6.
    const TCP4: u8 = 0x11;
    const TCP6: u8 = 0x21;
    let mut addresses = Vec::with_capacity(36);
    let family = match (client.ip(), server.ip()) {
        (IpAddr::V4(client), IpAddr::V4(server)) => {
            addresses.extend(client.octets());
            addresses.extend(server.octets());
            TCP4
        }
        (client, server) => {
            let wide = |address| match address {
                IpAddr::V4(v4) => v4.to_ipv6_mapped(),
                IpAddr::V6(v6) => v6,
            };
            addresses.extend(wide(client).octets());
            addresses.extend(wide(server).octets());
            TCP6
        }
    };
    addresses.extend(client.port().to_be_bytes());
    addresses.extend(server.port().to_be_bytes());
    let mut header = SIGNATURE.to_vec();
    header.extend([COMMAND, family]);
    header.extend((addresses.len() as u16).to_be_bytes());
    header.extend(addresses);
    header
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_of_the_proxy_protocol_is_that_of_its_specification() {
        let header = announcement("10.1.0.2:40000".parse().unwrap(), "10.99.0.1:443".parse().unwrap());
        let expected = [
            0x0d, 0x0a, 0x0d, 0x0a, 0x00, 0x0d, 0x0a, 0x51, 0x55, 0x49, 0x54, 0x0a, 0x21, 0x11, 0, 12, 10, 1, 0, 2, 10,
            99, 0, 1, 0x9c, 0x40, 0x01, 0xbb,
        ];
        assert_eq!(header, expected);
        let header = announcement("[fd00:1::2]:40000".parse().unwrap(), "[fd00:99::1]:443".parse().unwrap());
        assert_eq!((header.len(), header[13], header[15], header[16], header[47]), (52, 0x21, 36, 0xfd, 1));
    }
}
