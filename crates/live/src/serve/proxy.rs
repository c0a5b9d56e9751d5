//! Passing streams to another server and back, without a look at what they say.

use super::Stream;
use std::io;
use std::time::Duration;
use tokio::io::copy_bidirectional_with_sizes;
use tokio::net::TcpStream;

/// An origin that has not answered a SYN for so long is not there.
const PATIENCE: Duration = Duration::from_secs(10);
/// Bytes that are carried at a time, each way.
const CHUNK: usize = 64 << 10;

/// Carries both ways until both have ended. The end of one way is passed on while the other goes on; a slow reader on one side stops
/// the writer on the other; and if one side breaks off, so does the other, with RST.
pub(super) async fn pass(mut client: Stream, origin: &str) -> io::Result<()> {
    let connecting = tokio::time::timeout(PATIENCE, TcpStream::connect(origin));
    // The client's stream is dropped, which is RST, if this fails.
    let mut server = connecting.await.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
    server.set_nodelay(true)?;
    let carried = copy_bidirectional_with_sizes(&mut client, &mut server, CHUNK, CHUNK).await;
    if carried.is_err() {
        // Closing a socket with this lingering time of zero is an RST; otherwise the origin would take the broken stream for
        // a complete one.
        let _ = rustix::net::sockopt::set_socket_linger(&server, Some(Duration::ZERO));
    }
    carried.map(drop)
}
