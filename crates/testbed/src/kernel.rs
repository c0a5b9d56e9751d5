//! A kernel as the server: its sockets in a namespace of their own, and our applications on them.

use crate::apps::Opener;
use crate::client::next_multiple;
use crate::error::{Doing, TestbedError};
use crate::flow::{Flow, SUBFLOWS_PER_CONNECTION};
use crate::inspect::{Subflow, subflows};
use crate::socket::{new_socket, wait};
use crate::sockopt::unacknowledged;
use anabranch_events::{Log, TransportEvent};
use anabranch_live::testnet::Family;
use anabranch_live::{Application, Netns, Progress};
use anabranch_observation::SenderCounts;
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
    pub flow: Arc<Flow>,
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
                    let _ = connection.serve(self.opener.open());
                    connection.watch.look(self.flow.clock.now(), &connection.socket);
                });
            }
        });
    }
}

/// One accepted connection.
struct Connection<'a> {
    socket: Socket,
    watch: Watch<'a>,
    /// Bytes announced by the application, and bytes accepted by the socket.
    announced: u64,
    sent: u64,
    progress: Progress,
    finishing: bool,
}

impl<'a> Connection<'a> {
    fn new(flow: &'a Flow, family: Family, socket: Socket, peer: IpAddr) -> Self {
        let watch = Watch::new(flow, family, peer);
        Connection { socket, watch, announced: 0, sent: 0, progress: Progress::default(), finishing: false }
    }

    fn serve(&mut self, mut application: Box<dyn Application + Send>) -> io::Result<()> {
        self.socket.set_nonblocking(true)?;
        self.socket.set_tcp_nodelay(true)?;
        let mut buffer = vec![0; CHUNK];
        while !self.watch.flow.stopped() {
            self.receive(&mut *application, &mut buffer);
            self.progress.acked = self.sent - unacknowledged(&self.socket).unwrap_or(0).min(self.sent);
            self.progress.unsent = self.announced - self.sent;
            let reply = application.poll(self.progress);
            if self.progress.closed || reply.abort {
                return Ok(());
            }
            self.announced = self.announced + reply.bytes - reply.withdraw.min(self.progress.unsent);
            self.finishing |= reply.finish;
            self.send(&*application, &mut buffer)?;
            if self.finishing && self.sent == self.announced {
                if self.progress.ended {
                    return self.socket.shutdown(std::net::Shutdown::Write);
                }
                self.finishing = false;
                self.socket.shutdown(std::net::Shutdown::Write)?;
            }
            self.watch.look(self.watch.flow.clock.now(), &self.socket);
            wait(&self.socket, !self.progress.ended, self.sent < self.announced, LOOK_INTERVAL.as_nanos())?;
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

    fn send(&mut self, application: &dyn Application, buffer: &mut [u8]) -> io::Result<()> {
        while self.sent < self.announced {
            let len = (self.announced - self.sent).min(CHUNK as u64) as usize;
            application.fill(self.sent, &mut buffer[..len]);
            match self.socket.write(&buffer[..len]) {
                Ok(sent) => self.sent += sent as u64,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// Reads the kernel's counters of a connection and reports them to the flow's observer.
struct Watch<'a> {
    flow: &'a Flow,
    family: Family,
    peer: IpAddr,
    /// Offset of its subflows' numbers.
    shift: u16,
    next_look: Instant,
    next_sample: Instant,
}

impl<'a> Watch<'a> {
    fn new(flow: &'a Flow, family: Family, peer: IpAddr) -> Self {
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
