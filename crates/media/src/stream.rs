//! The transport as an application sees it: a reliable stream of bytes in both directions, in counts.

/// One end of a connection. No bytes travel, only how many.
///
/// A player has the client's end, an HTTP server the server's. The host (the simulator, or the live driver) calls the
/// application when there is news; the application calls these methods from within.
pub trait Stream {
    /// Bytes that arrived in order and were not read yet.
    fn readable(&self) -> u64;

    /// Takes up to `max` of them and says how many it took. What is taken opens the receive window.
    fn read(&mut self, max: u64) -> u64;

    /// Appends bytes to what the peer will receive. It always takes all of them: the send buffer is the transport's
    /// matter.
    fn write(&mut self, bytes: u64);

    /// Takes back up to `bytes` of what was written last and did not leave yet; says how many. A stream that cannot do that
    /// takes back none.
    fn withdraw(&mut self, _bytes: u64) -> u64 {
        0
    }

    /// Closes the connection at once and opens another one to the same server, which takes its place; whether it did. What was
    /// readable is gone. What is written from here on leaves when the new connection stands.
    fn reopen(&mut self) -> bool {
        false
    }

    /// Says that nothing more will be written. The other direction stays open.
    fn finish(&mut self);

    /// Whether the peer has finished and everything that it had written was read.
    fn is_finished(&self) -> bool;
}
