//! Forwarding of streams to another server and back, without inspection.

use super::Stream;
use std::io;
use std::time::Duration;
use tokio::io::copy_bidirectional_with_sizes;
use tokio::net::TcpStream;

/// Time for an origin to answer a SYN.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Bytes copied at a time in each direction.
const CHUNK: usize = 64 << 10;

/// Copies both directions until both have ended. The end of one direction is passed on while the other continues; a
/// slow reader on one side stops the writer on the other; and an abort of one side aborts the other with RST.
pub(super) async fn pass(mut client: Stream, origin: &str) -> io::Result<()> {
    let connecting = tokio::time::timeout(CONNECT_TIMEOUT, TcpStream::connect(origin));
    // The client's stream is dropped, which is RST, if this fails.
    let mut server = connecting.await.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
    server.set_nodelay(true)?;
    let carried = copy_bidirectional_with_sizes(&mut client, &mut server, CHUNK, CHUNK).await;
    if carried.is_err() {
        // Closing a socket with a lingering time of zero sends RST; otherwise the origin would take the aborted stream
        // for a complete one.
        let _ = rustix::net::sockopt::set_socket_linger(&server, Some(Duration::ZERO));
    }
    carried.map(drop)
}
