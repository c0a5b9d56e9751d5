//! Forwarding of streams to another server and back, without inspection.

use super::Stream;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;
use tokio::io::{AsyncWriteExt, copy_bidirectional_with_sizes};
use tokio::net::TcpStream;

/// Time for an origin to answer a SYN.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Bytes copied at a time in each direction.
const CHUNK: usize = 64 << 10;

/// Copies both directions until both have ended. The end of one direction is passed on while the other continues; a
/// slow reader on one side stops the writer on the other; and an abort of one side aborts the other with RST. With
/// `announces`, the origin is first sent the client's address. Returns the bytes from the client and to it.
pub(super) async fn pass(mut client: Stream, origin: &str, announces: bool) -> io::Result<(u64, u64)> {
    let connecting = tokio::time::timeout(CONNECT_TIMEOUT, TcpStream::connect(origin));
    // The client's stream is dropped, which is RST, if this fails.
    let mut server = connecting.await.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
    server.set_nodelay(true)?;
    if announces {
        server.write_all(&announcement(client.remote(), client.local())).await?;
    }
    let carried = copy_bidirectional_with_sizes(&mut client, &mut server, CHUNK, CHUNK).await;
    if carried.is_err() {
        // Closing a socket with a lingering time of zero sends RST; otherwise the origin would take the aborted stream
        // for a complete one.
        let _ = rustix::net::sockopt::set_socket_linger(&server, Some(Duration::ZERO));
    }
    carried
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
