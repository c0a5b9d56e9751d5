//! A kernel as the server: its sockets in a namespace of their own, and our applications on them.

use crate::apps::Opener;
use crate::client::next_multiple;
use crate::error::{Doing, TestbedError};
use crate::inspect::{Subflow, subflows};
use crate::shared_flow::{SUBFLOWS_PER_CONNECTION, SharedFlow};
use crate::socket::{new_socket, wait};
use crate::sockopt::unacknowledged;
use anabranch_events::{Log, TransportEvent};
use anabranch_live::{Application, Progress};
use anabranch_observation::SenderCounts;
use anabranch_testnet::Netns;
use anabranch_testnet::sites::Family;
use anabranch_units::{Duration, Instant, PathId, SubflowId};
use socket2::{SockAddr, Socket};
use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::thread::JoinHandle;

/// Interval of the checks for a stop and of the reads of the counters, without other activity.
const LOOK_INTERVAL: Duration = Duration::from_millis(10);

/// Connections that wait to be accepted.
const BACKLOG: i32 = 128;

/// Bytes moved at once.
const CHUNK: usize = 1 << 16;

/// Parameters of a kernel's service of one flow.
pub(crate) struct Service {
    pub flow: Arc<SharedFlow>,
    pub opener: Opener,
    pub family: Family,
    pub mptcp: bool,
    pub congestion_control: String,
}

impl Service {
    /// Listens in the server's namespace and serves on threads of its own until the flow is stopped.
    pub fn start(self, server: &Netns) -> Result<JoinHandle<()>, TestbedError> {
        let address = SocketAddr::from((self.family.server(), self.flow.port));
        let doing = || format!("cannot serve {} from the kernel", self.flow.name);
        let bound = server.run(|| {
            let socket = new_socket(address, self.mptcp)?;
            socket.set_reuse_address(true)?;
            // Every subflow of an accepted connection inherits it.
            socket.set_tcp_congestion(self.congestion_control.as_bytes())?;
            socket.bind(&SockAddr::from(address))?;
            socket.listen(BACKLOG)?;
            io::Result::Ok(socket)
        });
        let listener = bound.and_then(|bound| bound).doing(doing())?;
        Ok(std::thread::spawn(move || self.serve(&listener)))
    }

    fn serve(&self, listener: &Socket) {
        std::thread::scope(|scope| {
            while !self.flow.stopped() {
                let ready = wait(listener, true, false, LOOK_INTERVAL.as_nanos());
                if !ready.is_ok_and(|ready| ready.readable) {
                    continue;
                }
                let Ok((socket, address)) = listener.accept() else { continue };
                let peer = address.as_socket().map_or(self.family.server(), |address| address.ip());
                scope.spawn(move || {
                    let mut connection = Connection::new(&self.flow, self.family, socket, peer);
                    // A client's abort concerns only the client.
                    let _ = connection.serve(self.opener.open(None));
                    connection.watch.look(self.flow.clock.now(), &connection.socket);
                });
            }
        });
    }
}

/// The bytes of an application on their way into a socket.
#[derive(Default)]
struct Output {
    /// Bytes announced by the application.
    announced: u64,
    /// Bytes accepted by the socket.
    sent: u64,
    /// The socket had no room, and has not said since that it can be written.
    blocked: bool,
}

impl Output {
    fn unsent(&self) -> u64 {
        self.announced - self.sent
    }

    /// Writes everything, or until the socket has no room. Then nothing more is written until `poll` says that the
    /// socket can be written, as ordinary servers do: the kernel takes data again long before, but says so only once a
    /// third of its buffer is free.
    fn send(&mut self, mut socket: &Socket, application: &dyn Application, buffer: &mut [u8]) -> io::Result<()> {
        while !self.blocked && self.unsent() > 0 {
            let len = self.unsent().min(CHUNK as u64) as usize;
            application.fill(self.sent, &mut buffer[..len]);
            match socket.write(&buffer[..len]) {
                Ok(sent) => self.sent += sent as u64,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.blocked = true,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Waits until the socket can be written, if that is what this waits for, or read, as selected; or `nanos`
    /// nanoseconds.
    fn wait(&mut self, socket: &Socket, read: bool, nanos: u64) -> io::Result<()> {
        let ready = wait(socket, read, self.blocked, nanos)?;
        self.blocked &= !ready.writable;
        Ok(())
    }
}

/// One accepted connection.
struct Connection<'a> {
    socket: Socket,
    watch: Watch<'a>,
    output: Output,
    progress: Progress,
    finishing: bool,
}

impl<'a> Connection<'a> {
    fn new(flow: &'a SharedFlow, family: Family, socket: Socket, peer: IpAddr) -> Self {
        let watch = Watch::new(flow, family, peer);
        Connection { socket, watch, output: Output::default(), progress: Progress::default(), finishing: false }
    }

    fn serve(&mut self, mut application: Box<dyn Application + Send>) -> io::Result<()> {
        self.socket.set_nonblocking(true)?;
        self.socket.set_tcp_nodelay(true)?;
        let mut buffer = vec![0; CHUNK];
        while !self.watch.flow.stopped() {
            self.receive(&mut *application, &mut buffer);
            let sent = self.output.sent;
            self.progress.acked = sent - unacknowledged(&self.socket).unwrap_or(0).min(sent);
            self.progress.unsent = self.output.unsent();
            let reply = application.poll(self.progress);
            if self.progress.closed || reply.abort {
                return Ok(());
            }
            self.output.announced += reply.bytes;
            self.output.announced -= reply.withdraw.min(self.progress.unsent);
            self.finishing |= reply.finish;
            self.output.send(&self.socket, &*application, &mut buffer)?;
            if self.finishing && self.output.unsent() == 0 {
                if self.progress.ended {
                    return self.socket.shutdown(std::net::Shutdown::Write);
                }
                self.finishing = false;
                self.socket.shutdown(std::net::Shutdown::Write)?;
            }
            self.watch.look(self.watch.flow.clock.now(), &self.socket);
            self.output.wait(&self.socket, !self.progress.ended, LOOK_INTERVAL.as_nanos())?;
        }
        Ok(())
    }

    fn receive(&mut self, application: &mut dyn Application, buffer: &mut [u8]) {
        while !self.progress.ended {
            match self.socket.read(buffer) {
                Ok(0) => self.progress.ended = true,
                Ok(read) => application.receive(&buffer[..read]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(_) => {
                    self.progress.closed = true;
                    return;
                }
            }
        }
    }
}

/// Reads the kernel's counters of a connection and reports them to the flow's observer.
struct Watch<'a> {
    flow: &'a SharedFlow,
    family: Family,
    peer: IpAddr,
    /// Offset of its subflows' numbers.
    shift: u16,
    next_look: Instant,
    next_sample: Instant,
}

impl<'a> Watch<'a> {
    fn new(flow: &'a SharedFlow, family: Family, peer: IpAddr) -> Self {
        // Counted by the application that is opened for the connection.
        let shift = flow.state().connections.saturating_mul(SUBFLOWS_PER_CONNECTION);
        Watch { flow, family, peer, shift, next_look: Instant::ZERO, next_sample: Instant::ZERO }
    }

    fn look(&mut self, now: Instant, socket: &Socket) {
        if now < self.next_look {
            return;
        }
        self.next_look = now + LOOK_INTERVAL;
        let mut log = Log::default();
        let sampling = now >= self.next_sample;
        if sampling {
            self.next_sample = next_multiple(now, self.flow.sample_interval);
        }
        let mut counted = Vec::new();
        for subflow in subflows(socket, self.peer) {
            let name = SubflowId(subflow.id.saturating_add(self.shift));
            let Some(path) = self.path_of(subflow.remote) else { continue };
            if self.flow.state().subflows.insert(name) {
                log.emit(now, TransportEvent::SubflowOpened { subflow: name, path, rtt: subflow.srtt });
            }
            if sampling {
                log.emit(now, sample_of(name, &subflow));
            }
            counted.push((name, counts_of(&subflow)));
        }
        let mut observer = self.flow.observer();
        observer.see_sender(&mut log);
        counted.into_iter().for_each(|(name, counts)| observer.count_sender(name, counts));
    }

    /// The scenario's path of a client's address.
    fn path_of(&self, remote: IpAddr) -> Option<PathId> {
        let at = self.flow.ends.iter().position(|end| self.family.client(*end) == remote.to_canonical())?;
        Some(PathId(self.flow.paths[at] as u16))
    }
}

fn counts_of(subflow: &Subflow) -> SenderCounts {
    let Subflow { bytes, segments, retransmissions, timeouts, .. } = *subflow;
    SenderCounts { bytes, segments, retransmissions, timeouts }
}

fn sample_of(name: SubflowId, subflow: &Subflow) -> TransportEvent {
    TransportEvent::Sample {
        subflow: name,
        cwnd: f64::from(subflow.cwnd),
        ssthresh: f64::from(subflow.ssthresh),
        in_flight: subflow.in_flight,
        srtt: subflow.srtt,
        acked: subflow.acked,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_live::Reply;
    use socket2::{Domain, Protocol, Type};
    use std::net::Ipv4Addr;

    /// An application that has written all it wants.
    struct Filler;

    impl Application for Filler {
        fn receive(&mut self, _bytes: &[u8]) {}

        fn poll(&mut self, _progress: Progress) -> Reply {
            Reply::default()
        }

        fn fill(&self, _offset: u64, buffer: &mut [u8]) {
            buffer.fill(b'.');
        }
    }

    /// Two ends of a TCP connection over the loopback device with small fixed buffers, so that little fills them.
    fn pair() -> io::Result<(Socket, Socket)> {
        let socket = || Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP));
        let (listener, client) = (socket()?, socket()?);
        listener.set_recv_buffer_size(1 << 15)?;
        listener.set_send_buffer_size(1 << 17)?;
        listener.bind(&SockAddr::from(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))))?;
        listener.listen(1)?;
        client.set_recv_buffer_size(1 << 15)?;
        client.connect(&listener.local_addr()?)?;
        let (server, _) = listener.accept()?;
        server.set_nonblocking(true)?;
        client.set_nonblocking(true)?;
        Ok((server, client))
    }

    #[test]
    fn what_found_no_room_is_written_once_a_third_of_the_buffer_is_free() {
        let (server, mut client) = pair().expect("a connection over the loopback device");
        let mut output = Output { announced: 10 << 20, ..Output::default() };
        let (mut written, mut buffer) = (Vec::new(), vec![0; CHUNK]);
        output.send(&server, &Filler, &mut buffer).expect("a write");
        assert!(output.blocked && output.unsent() > 0);
        // The client takes a little at a time, and the server looks after each.
        for _ in 0..200 {
            let _ = client.read(&mut [0; 8 << 10]);
            output.wait(&server, false, 1_000_000).expect("a wait");
            let before = output.sent;
            output.send(&server, &Filler, &mut buffer).expect("a write");
            if output.sent > before {
                written.push(output.sent - before);
            }
        }
        // Of the memory a third, in which packets and their descriptions lie; at least a sixth of what was asked for.
        let least = (server.send_buffer_size().expect("a size") / 6) as u64;
        assert!(written.len() >= 3 && written.iter().all(|bytes| *bytes >= least), "{written:?}, at least {least}");
    }
}
