//! Our endpoint as the server: one listener for each flow, since each may have its own scheduler and controls.

use crate::apps::Opener;
use crate::client::next_multiple;
use crate::pacing::Pacing;
use crate::shared_flow::SharedFlow;
use anabranch_live::{Application, Counters, Host, Limits, Opened, Server};
use anabranch_stack::Config;
use anabranch_stack::options::OptionError;
use anabranch_units::{Instant, PathId};
use std::collections::VecDeque;
use std::sync::Arc;

type Open = Box<dyn FnMut(Opened) -> Box<dyn Application + Send> + Send>;

/// The listener of one flow. Its paths have the scenario's numbers.
struct Listener {
    flow: Arc<SharedFlow>,
    server: Server<Open, Box<dyn Application + Send>>,
    /// Number of connections that have got the scenario's hints.
    instructed: usize,
}

/// All listeners. Each path of the emulator belongs to one flow.
#[derive(Default)]
pub(crate) struct Servers {
    listeners: Vec<Listener>,
    /// For each of the emulator's paths, its flow and its number in the scenario.
    routes: Vec<(usize, PathId)>,
    /// Listeners that may have packets to send.
    active: VecDeque<usize>,
    pacing: Option<Pacing>,
}

impl Servers {
    /// No listener yet; `pacing`: of all of them, if responses are paced.
    pub fn new(pacing: Option<Pacing>) -> Self {
        Servers { pacing, ..Servers::default() }
    }

    /// Adds the listener of a flow, whose configuration has the scenario's path numbers.
    pub fn add(
        &mut self,
        flow: Arc<SharedFlow>,
        config: Config,
        limits: Limits,
        opener: Opener,
    ) -> Result<(), OptionError> {
        let number = self.listeners.len();
        let open: Open = Box::new(move |opened: Opened| opener.open(Some((number, opened.id))));
        let server = Server::new(config, limits, open)?;
        for (end, path) in flow.ends.iter().zip(&flow.paths) {
            let at = end.index();
            if self.routes.len() <= at {
                self.routes.resize(at + 1, (0, PathId(0)));
            }
            self.routes[at] = (number, PathId(*path as u16));
        }
        self.listeners.push(Listener { flow, server, instructed: 0 });
        Ok(())
    }

    /// The counters of each listener.
    pub fn counters(&self) -> Vec<Counters> {
        self.listeners.iter().map(|listener| listener.server.counters()).collect()
    }

    /// Passes the scenario's hints about the application to new connections.
    pub fn instruct(&mut self) {
        for Listener { flow, server, instructed } in &mut self.listeners {
            let open = usize::from(flow.state().connections);
            if open > *instructed {
                *instructed = open;
                server.connections().for_each(|(connection, _)| connection.set_hints(flow.hints));
            }
        }
    }

    /// Makes every connection emit the state of its subflows.
    pub fn sample(&mut self, now: Instant) {
        for (connection, application) in self.listeners.iter_mut().flat_map(|listener| listener.server.connections()) {
            connection.sample(now);
            application.observe(connection.log());
        }
    }

    /// Connections whose responses are to be sent faster or slower get to know it.
    fn pace(&mut self, now: Instant) {
        let changed = self.pacing.as_ref().map(Pacing::take_changed).unwrap_or_default();
        for (listener, connection) in changed {
            self.listeners[listener].server.wake(now, connection);
            self.touch(listener);
        }
    }

    fn touch(&mut self, listener: usize) {
        if !self.active.contains(&listener) {
            self.active.push_back(listener);
        }
    }

    /// The emulator's number of a flow's path.
    fn end_of(&self, listener: usize, path: PathId) -> PathId {
        let flow = &self.listeners[listener].flow;
        let at = flow.paths.iter().position(|own| PathId(*own as u16) == path);
        at.map_or(path, |at| flow.ends[at])
    }
}

impl Host for Servers {
    fn receive(&mut self, now: Instant, path: PathId, packet: &[u8]) {
        let Some(&(listener, path)) = self.routes.get(path.index()) else { return };
        self.listeners[listener].server.receive(now, path, packet);
        self.touch(listener);
        self.pace(now);
    }

    fn handle_timeout(&mut self, now: Instant) {
        for at in 0..self.listeners.len() {
            if self.listeners[at].server.poll_timeout().is_some_and(|due| due <= now) {
                self.listeners[at].server.handle_timeout(now);
                self.touch(at);
            }
        }
        self.pace(now);
    }

    fn poll_transmit(&mut self, now: Instant, buffer: &mut [u8]) -> Option<(PathId, usize)> {
        while let Some(&listener) = self.active.front() {
            if let Some((path, len)) = self.listeners[listener].server.poll_transmit(now, buffer) {
                return Some((self.end_of(listener, path), len));
            }
            self.active.pop_front();
        }
        None
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.listeners.iter().filter_map(|listener| listener.server.poll_timeout()).min()
    }
}

/// Scheduled actions of a run.
pub(crate) struct Director {
    pub flows: Vec<Arc<SharedFlow>>,
    pub warm_up: Option<Instant>,
    pub next_sample: Instant,
}

impl Director {
    /// Runs the due actions.
    pub fn tick(&mut self, servers: &mut Servers, now: Instant) {
        servers.instruct();
        if self.warm_up.is_some_and(|at| at <= now) {
            self.warm_up = None;
            self.flows.iter().for_each(|flow| flow.observer().end_warm_up(now));
        }
        if now >= self.next_sample {
            let Some(interval) = self.flows.first().map(|flow| flow.sample_interval) else { return };
            self.next_sample = next_multiple(now, interval);
            self.flows.iter().for_each(|flow| flow.observer().begin_sample(now));
            servers.sample(now);
        }
    }
}
