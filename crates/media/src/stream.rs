//! The application's interface to the transport: a reliable stream of bytes in both directions, in counts.

/// One end of a connection. Only the numbers of bytes are transferred.
///
/// A player has the client's end, an HTTP server the server's. The host (the simulator, or the live driver) calls the
/// application on events; the application calls these methods from within.
pub trait Stream {
    /// Bytes that arrived in order and were not read yet.
    fn readable(&self) -> u64;

    /// Reads up to `max` of them and returns how many were read. Reading opens the receive window.
    fn read(&mut self, max: u64) -> u64;

    /// Appends bytes for the peer. All of them are accepted: the transport manages the send buffer.
    fn write(&mut self, bytes: u64);

    /// Bytes written for which the send buffer has had no room yet: a program that blocks has not written them. A
    /// stream that cannot withdraw has none.
    fn unbuffered(&self) -> u64 {
        0
    }

    /// Withdraws up to `bytes` of those written last and not yet sent; returns how many. A stream without this ability
    /// withdraws none.
    fn withdraw(&mut self, _bytes: u64) -> u64 {
        0
    }

    /// Closes the connection at once and opens another one to the same server in its place; returns whether it did.
    /// Unread bytes are lost. Bytes written from here on are sent when the new connection is established.
    fn reopen(&mut self) -> bool {
        false
    }

    /// Ends this direction of the stream. The other direction stays open.
    fn finish(&mut self);

    /// Whether the peer has ended its stream and all of it was read.
    fn is_finished(&self) -> bool;
}
