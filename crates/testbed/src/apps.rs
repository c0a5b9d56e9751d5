//! Applications of the servers: the same ones on our endpoint and on the kernel's sockets.

use crate::http::{FILLER, Web};
use crate::pacing::{End, FlowPacing, Paced};
use crate::shared_flow::SharedFlow;
use anabranch_events::{Log, TransportEvent};
use anabranch_live::{Application, Progress, Reply};
use anabranch_media::{Exchanges, HttpServer, Stream};
use anabranch_units::SubflowId;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Creates an application for each connection of a flow.
#[derive(Clone)]
pub(crate) struct Opener {
    pub flow: Arc<SharedFlow>,
    pub site: Site,
    /// If responses are paced.
    pub pacer: Option<FlowPacing>,
}

/// What is served.
#[derive(Clone)]
pub(crate) enum Site {
    /// Sizes of messages, to one of our players.
    Model(Exchanges),
    /// The files of a folder, to a program that speaks HTTP.
    Web(Option<PathBuf>),
}

impl Opener {
    /// An application for a connection that was just opened; `end`: the connection, if our endpoint has it.
    pub fn open(&self, end: Option<End>) -> Box<dyn Application + Send> {
        let flow = &self.flow;
        let paced = self.pacer.as_ref().and_then(|pacer| pacer.open(flow, end));
        match &self.site {
            Site::Model(exchanges) => {
                let http = flow.take_successor().unwrap_or_else(|| HttpServer::new(exchanges.clone()));
                Box::new(Observed::new(flow, Counted::new(http, paced)))
            }
            Site::Web(root) => Box::new(Observed::new(flow, Web::new(root.clone(), paced))),
        }
    }
}

/// An application with an observed connection.
struct Observed<A> {
    flow: Arc<SharedFlow>,
    application: A,
    /// Offset of its subflows' numbers.
    shift: u16,
    acked: u64,
}

impl<A: Application> Observed<A> {
    fn new(flow: &Arc<SharedFlow>, application: A) -> Self {
        let shift = flow.connected(flow.clock.now());
        Observed { flow: flow.clone(), application, shift, acked: 0 }
    }
}

impl<A> Drop for Observed<A> {
    fn drop(&mut self) {
        let mut state = self.flow.state();
        state.open = state.open.saturating_sub(1);
    }
}

impl<A: Application> Application for Observed<A> {
    fn wants(&self) -> u64 {
        self.application.wants()
    }

    fn receive(&mut self, bytes: &[u8]) {
        self.application.receive(bytes);
    }

    fn poll(&mut self, progress: Progress) -> Reply {
        // A program does not report what it read; the bytes acknowledged by its kernel are the closest measure.
        if self.flow.program && progress.acked > self.acked {
            let bytes = progress.acked - self.acked;
            self.acked = progress.acked;
            self.flow.bytes.fetch_add(bytes, Ordering::Relaxed);
            self.flow.delivered(self.flow.clock.now(), bytes);
        }
        self.application.poll(progress)
    }

    fn fill(&self, offset: u64, buffer: &mut [u8]) {
        self.application.fill(offset, buffer);
    }

    fn observe(&mut self, log: &mut Log<TransportEvent>) {
        if self.shift == 0 {
            return self.flow.observer().see_sender(log);
        }
        let mut moved = Log::default();
        for (at, event) in log.drain() {
            moved.emit(at, event.map_subflows(|subflow| SubflowId(subflow.0.saturating_add(self.shift))));
        }
        self.flow.observer().see_sender(&mut moved);
    }
}

/// The server of the simulator, which handles sizes only: the lengths of its messages come from the client's exchanges.
struct Counted {
    http: HttpServer,
    /// Bytes received and not read.
    unread: u64,
    ended: bool,
    paced: Option<Paced>,
}

impl Counted {
    fn new(mut http: HttpServer, paced: Option<Paced>) -> Self {
        if paced.is_some() {
            http.keep_answers();
        }
        Counted { http, unread: 0, ended: false, paced }
    }
}

/// A connection as the server of the simulator sees it.
struct Side<'a> {
    unread: &'a mut u64,
    ended: bool,
    /// Bytes that can be withdrawn of those written earlier.
    unsent: u64,
    reply: Reply,
}

impl Stream for Side<'_> {
    fn readable(&self) -> u64 {
        *self.unread
    }

    fn read(&mut self, max: u64) -> u64 {
        let taken = max.min(*self.unread);
        *self.unread -= taken;
        taken
    }

    fn write(&mut self, bytes: u64) {
        self.reply.bytes += bytes;
    }

    fn withdraw(&mut self, bytes: u64) -> u64 {
        let just_written = bytes.min(self.reply.bytes);
        self.reply.bytes -= just_written;
        let earlier = (bytes - just_written).min(self.unsent);
        self.unsent -= earlier;
        self.reply.withdraw += earlier;
        just_written + earlier
    }

    fn finish(&mut self) {
        self.reply.finish = true;
    }

    fn is_finished(&self) -> bool {
        self.ended && *self.unread == 0
    }
}

impl Application for Counted {
    fn receive(&mut self, bytes: &[u8]) {
        self.unread += bytes.len() as u64;
    }

    fn poll(&mut self, progress: Progress) -> Reply {
        self.ended |= progress.ended;
        let Counted { http, unread, ended, paced } = self;
        let mut side = Side { unread, ended: *ended, unsent: progress.unsent, reply: Reply::default() };
        if *side.unread > 0 || side.ended {
            http.on_readable(&mut side);
        }
        side.reply.leave = progress.closed;
        let follow = |paced: &mut Paced| paced.follow(&progress, http);
        (side.reply.pace_cap, side.reply.buffered_until) = paced.as_mut().map_or((None, None), follow);
        side.reply
    }

    fn fill(&self, _offset: u64, buffer: &mut [u8]) {
        buffer.fill(FILLER);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_media::{Exchange, HttpClient};

    /// A client's end that only counts.
    #[derive(Default)]
    struct Near(u64);

    impl Stream for Near {
        fn readable(&self) -> u64 {
            0
        }
        fn read(&mut self, _: u64) -> u64 {
            0
        }
        fn write(&mut self, bytes: u64) {
            self.0 += bytes;
        }
        fn finish(&mut self) {}
        fn is_finished(&self) -> bool {
            false
        }
    }

    #[test]
    fn a_cancelled_response_is_taken_back_as_far_as_it_has_not_left() {
        let exchanges = Exchanges::new();
        let (mut client, mut server) =
            (HttpClient::new(exchanges.clone()), Counted::new(HttpServer::new(exchanges), None));
        let mut near = Near::default();
        client.request(&mut near, Exchange { request: 100, response_header: 10, body: 1000, media: None, cmcd: None });
        server.receive(&[0; 100]);
        assert_eq!(server.poll(Progress::default()).bytes, 1010);
        // The client has begun to read, or it would have nothing to cancel.
        client.cancel(&mut near);
        server.receive(&vec![0; near.0 as usize - 100]);
        let reply = server.poll(Progress { unsent: 300, ..Progress::default() });
        assert_eq!((reply.withdraw, reply.bytes), (300, 0));
    }
}
