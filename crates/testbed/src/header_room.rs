//! The room for headers with which the running kernel was built.

use crate::error::{Doing, TestbedError};
use crate::inspect::packets_of_buffer;
use anabranch_stack::packet_memory;
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use std::io;
use std::net::{Ipv4Addr, SocketAddr};

/// Values of `MAX_TCP_HEADER` on processors with cache lines of 64 bytes: with drivers of tunnels and wireless
/// networks, as in distributions, and without either or both.
const BUILDS: [u32; 2] = [320, 256];
/// Payload of the segments of the connection that is looked at: Ethernet's, for which the builds differ.
const SEGMENT: u32 = 1_460;

/// Bytes that the running kernel reserves for headers in front of each packet (`MAX_TCP_HEADER`), as in the scenario's
/// `transport.header_room`. It is no setting and is shown nowhere; the size of a new connection's send buffer tells.
///
/// # Errors
/// If no connection can be made over the loopback device, or its send buffer has the size of no known build.
pub fn header_room() -> Result<u32, TestbedError> {
    let (bytes, packets) =
        new_send_buffer().doing("cannot look at the send buffer of a connection over the loopback device")?;
    header_room_of(bytes, packets).ok_or_else(|| {
        let [distribution, slim] = BUILDS.map(|room| send_buffer_of(room, packets));
        TestbedError::Failed(format!(
            "the kernel gives a new TCP connection a send buffer of {bytes} bytes, so the room for headers with which it was built is \
             unknown. Expected: {distribution} or {slim}; the default `net.ipv4.tcp_wmem` is 4096 16384 4194304"
        ))
    })
}

/// The send buffer of a new connection in a kernel of that room for headers: memory for twice so many packets.
fn send_buffer_of(header_room: u32, packets: u32) -> usize {
    2 * packets as usize * packet_memory(SEGMENT, header_room) as usize
}

fn header_room_of(send_buffer: usize, packets: u32) -> Option<u32> {
    BUILDS.into_iter().find(|room| send_buffer_of(*room, packets) == send_buffer)
}

/// The size of the send buffer of a new connection over the loopback device, whose segments are those of Ethernet, and
/// the packets for twice of which it is.
fn new_send_buffer() -> io::Result<(usize, u32)> {
    let socket = || {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP))?;
        socket.set_tcp_mss(SEGMENT)?;
        // Every kernel has it, and it wants memory for twice the window; BBR, which may be the default, for three
        // times.
        socket.set_tcp_congestion(b"reno")?;
        io::Result::Ok(socket)
    };
    let (listener, client) = (socket()?, socket()?);
    listener.bind(&SockAddr::from(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))))?;
    listener.listen(1)?;
    client.connect(&listener.local_addr()?)?;
    Ok((client.send_buffer_size()?, packets_of_buffer(&client)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_send_buffer_of_a_new_connection_tells_the_build() {
        assert_eq!((header_room_of(87_040, 10), header_room_of(46_080, 10)), (Some(320), Some(256)));
        assert_eq!(header_room_of(16_384, 10), None);
        // A kernel that remembers a reordering of 14 packets on the way to this host.
        assert_eq!(header_room_of(69_120, 15), Some(256));
    }

    #[test]
    fn the_running_kernel_is_one_of_the_known_builds() {
        assert!(BUILDS.contains(&header_room().unwrap()));
    }
}
