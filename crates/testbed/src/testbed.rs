//! The testbed: building, running, taking down.

use crate::apps::{Opener, Site};
use crate::client::ModelClient;
use crate::error::{Doing, TestbedError};
use crate::kernel::Service;
use crate::network::{interface_events, links, script};
use crate::options::Options;
use crate::pacing::{FlowPacing, FlowViewer, Pacing};
use crate::report::{self, Machine, Seen};
use crate::servers::{Director, Servers};
use crate::shared_flow::{Fixed, SharedFlow};
use crate::sites::{self, Client, Sites};
use crate::socket::Dialer;
use anabranch_live::{Clock, End, Limits, Tap};
use anabranch_observation::{Ended, Keep, Observer, Outcome, Waiting, is_stuck, observers};
use anabranch_scenario::{FlowPlan, Scenario, plan};
use anabranch_stack::Config;
use anabranch_testnet::requirements::missing;
use anabranch_testnet::sites::Family;
use anabranch_testnet::{Emulator, Netns, run_before_others};
use anabranch_units::{Duration, Instant, PathId};
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

/// The server's port for programs.
const PROGRAM_PORT: u16 = 80;
/// The port of the first flow's server if the client is one of our players; the others follow.
const FIRST_PORT: u16 = 8000;
/// Interval of the checks of a run.
const LOOK_INTERVAL: std::time::Duration = std::time::Duration::from_millis(20);

/// Time for a program's connections to close after it: several round trips.
const CLOSING_TIME: Duration = Duration::from_millis(500);

/// Results of an emulator's thread.
struct Emulated {
    servers: Servers,
    report: anabranch_testnet::EmulatorReport,
    realtime: bool,
}

/// A running testbed. Dropping it takes it down.
pub struct Testbed {
    scenario: Scenario,
    options: Options,
    clock: Clock,
    family: Family,
    flows: Vec<Arc<SharedFlow>>,
    sources: Vec<String>,
    notes: Vec<String>,
    stop: Arc<AtomicBool>,
    emulator: Option<JoinHandle<io::Result<Emulated>>>,
    workers: Vec<JoinHandle<()>>,
    // Last, so that no device and no socket is left when they are removed.
    clients: Arc<Vec<Client>>,
    server: Option<Netns>,
}

impl Testbed {
    /// Builds and starts the scenario: time runs from now on, and the scenario's players begin at their start times.
    ///
    /// # Errors
    /// If the machine lacks a requirement, the scenario has an unsupported property, or the operating system refuses.
    pub fn start(scenario: &Scenario, options: &Options) -> Result<Self, TestbedError> {
        let scenario = &*scenario.of_seed(options.seed);
        let lacking = missing(&[]);
        if !lacking.is_empty() {
            return Err(TestbedError::Missing(lacking));
        }
        Netns::sweep().doing("cannot look for namespaces that crashed runs left")?;
        let plans = plan(scenario, options.seed);
        let observed = |number| report::observed(options, number);
        // Plans with reducers are for simulations alone.
        let keep = Keep { events: options.record_events, forecasts: false, account: false };
        let (observers, sources) = observers(scenario, &plans, keep, observed);
        let family = sites::check(scenario, &plans, options.server)?;
        let Sites { clients, server, network } =
            sites::build(scenario, &plans, family, options.server, links(scenario, options.seed))?;
        let tap = tap(scenario, options, &clients, &plans)?;
        let mut testbed = Testbed {
            scenario: scenario.clone(),
            options: options.clone(),
            clock: Clock::new(),
            family,
            flows: Vec::new(),
            sources,
            notes: Vec::new(),
            stop: Arc::default(),
            emulator: None,
            workers: Vec::new(),
            clients: Arc::new(clients),
            server,
        };
        let pacing = Pacing::of(scenario, options.content.as_deref());
        let mut servers = Servers::new(pacing.clone());
        let mut players = Vec::new();
        for (number, (plan, observer)) in plans.into_iter().zip(observers).enumerate() {
            players.extend(testbed.add(number, plan, observer, &mut servers, pacing.as_ref())?);
        }
        let director = Director {
            flows: testbed.flows.clone(),
            warm_up: (!scenario.warm_up.is_zero()).then(|| Instant::ZERO + scenario.warm_up),
            next_sample: Instant::ZERO + scenario.sample_interval,
        };
        let emulator =
            Emulator::of(testbed.clock, network, servers, script(scenario), tap).doing("cannot write a capture")?;
        testbed.emulator = Some(testbed.run_emulator(emulator, director));
        testbed.watch_interfaces();
        for (number, player) in players {
            testbed.play_on_a_thread(number, player)?;
        }
        Ok(testbed)
    }

    /// Adds a flow with its server; returns its player and its number unless a program is its client.
    fn add(
        &mut self,
        number: usize,
        plan: FlowPlan,
        observer: Observer,
        servers: &mut Servers,
        pacing: Option<&Pacing>,
    ) -> Result<Option<(usize, ModelClient)>, TestbedError> {
        let program = self.options.is_program(number);
        let port = if program { PROGRAM_PORT } else { FIRST_PORT + number as u16 };
        let ends: Vec<PathId> = self.clients[number].plan.paths.iter().map(|path| path.id).collect();
        let (mptcp, (control, note)) = (sites::is_multipath(&plan), sites::serving_control(&plan));
        let config = self.config(&plan, &ends, port);
        let fixed = Fixed {
            name: plan.name,
            start: plan.start,
            is_session: plan.is_session,
            paths: plan.paths,
            ends,
            hints: plan.hints,
            program,
            port,
            clock: self.clock,
            sample_interval: self.scenario.sample_interval,
        };
        let flow = Arc::new(SharedFlow::new(fixed, observer));
        self.flows.push(flow.clone());
        let viewer = Arc::new(FlowViewer::new(&plan.content));
        let pacer = pacing.map(|pacing| FlowPacing { pacing: pacing.clone(), viewer });
        let site = match program {
            true => Site::Web(self.options.content.clone()),
            false => Site::Model(plan.exchanges.clone()),
        };
        let opener = Opener { flow: flow.clone(), site, pacer };
        match &self.server {
            None => {
                let failed = |error| TestbedError::Failed(format!("{}: {error}", flow.name));
                servers.add(flow.clone(), config, limits(), opener).map_err(failed)?;
            }
            Some(namespace) => {
                self.notes.extend(note);
                let family = self.family;
                let service = Service { flow: flow.clone(), opener, family, mptcp, congestion_control: control };
                self.workers.push(service.start(namespace)?);
            }
        }
        let server = SocketAddr::from((self.family.server(), port));
        let dialer = Dialer { server, mptcp, exchanges: plan.exchanges };
        Ok((!program).then(|| (number, ModelClient { flow, player: plan.player, dialer })))
    }

    /// The endpoint of a flow's server with the testbed's addresses.
    fn config(&self, plan: &FlowPlan, ends: &[PathId], port: u16) -> Config {
        let mut config = plan.server.clone();
        for (path, end) in config.paths.iter_mut().zip(ends) {
            (path.local, path.remote) = (self.family.server(), self.family.client(*end));
        }
        config.local_port = port;
        config
    }

    fn run_emulator(
        &self,
        mut emulator: Emulator<Servers>,
        mut director: Director,
    ) -> JoinHandle<io::Result<Emulated>> {
        let stop = self.stop.clone();
        std::thread::spawn(move || {
            let realtime = run_before_others();
            emulator.run(&stop, |servers, now| {
                director.tick(servers, now);
                false
            })?;
            drop(director);
            let (servers, report) = emulator.finish()?;
            Ok(Emulated { servers, report, realtime })
        })
    }

    /// Starts the thread that changes the interfaces at the scenario's times.
    fn watch_interfaces(&mut self) {
        let events = interface_events(&self.scenario);
        if events.is_empty() {
            return;
        }
        let (clients, flows, clock, stop) = (self.clients.clone(), self.flows.clone(), self.clock, self.stop.clone());
        self.workers.push(std::thread::spawn(move || {
            for (at, path, up) in events {
                while clock.now() < at {
                    if stop.load(Ordering::Relaxed) {
                        return;
                    }
                    let left = std::time::Duration::from_nanos(at.since(clock.now()).as_nanos());
                    std::thread::sleep(left.min(LOOK_INTERVAL));
                }
                for (client, flow) in clients.iter().zip(&flows) {
                    let Some(own) = flow.paths.iter().position(|own| *own == path) else { continue };
                    if let Err(error) = client.plan.set_interface(&client.namespace, flow.ends[own], up) {
                        flow.fail(format!("{}: {error}", flow.name));
                    }
                }
            }
        }));
    }

    fn play_on_a_thread(&mut self, number: usize, player: ModelClient) -> Result<(), TestbedError> {
        let flow = player.flow.clone();
        let task =
            self.clients[number].namespace.inside(move || player.run()).doing("cannot enter a client's namespace")?;
        self.workers.push(std::thread::spawn(move || {
            if let Err(error) = task() {
                flow.fail(format!("{}: cannot enter the client's namespace: {error}", flow.name));
            }
        }));
        Ok(())
    }

    /// The namespace of the first session's client, for `ip netns exec`.
    pub fn namespace(&self) -> &str {
        self.clients[0].namespace.name()
    }

    /// URL of the first session's server: `/bytes/N` there is N bytes, and the rest are files of [`Options::content`].
    pub fn url(&self) -> String {
        format!("http://{}", SocketAddr::from((self.family.server(), self.flows[0].port)))
    }

    /// The time since the run began.
    pub fn elapsed(&self) -> Duration {
        self.clock.now().since(Instant::ZERO)
    }

    /// The reason for which the run is over, if it is. A program's session is never over before the scenario's
    /// duration: the caller knows when the program ends.
    ///
    /// # Errors
    /// If a part of the testbed failed.
    pub fn poll(&self) -> Result<Option<Ended>, TestbedError> {
        if self.emulator.as_ref().is_none_or(JoinHandle::is_finished) {
            return Err(TestbedError::Failed("the emulator ended before its time".into()));
        }
        let sessions: Vec<_> = self.flows.iter().filter(|flow| flow.is_session).collect();
        let states: Vec<_> = self.flows.iter().map(|flow| flow.state().clone()).collect();
        if let Some(why) = states.iter().find_map(|state| state.failure.clone()) {
            return Err(TestbedError::Failed(why));
        }
        if self.elapsed() >= self.scenario.duration {
            return Ok(Some(Ended::Duration));
        }
        if sessions.is_empty() {
            return Ok(None);
        }
        if sessions.iter().all(|flow| flow.state().finished.is_some()) {
            return Ok(Some(Ended::Finished));
        }
        let stuck = sessions.iter().all(|flow| flow.state().over) || self.is_stuck(&sessions);
        Ok(stuck.then_some(Ended::Stuck))
    }

    /// Nothing arrived for so long that nothing will. A program's session is never stuck.
    fn is_stuck(&self, sessions: &[&Arc<SharedFlow>]) -> bool {
        let last_event = self.scenario.events.last().map_or(Instant::ZERO, |event| Instant::ZERO + event.at);
        let sessions = sessions.iter().filter(|flow| !flow.state().over).map(|flow| Waiting {
            last_arrival: Instant::from_nanos(flow.last_arrival.load(Ordering::Relaxed)),
            starved: !flow.program && flow.starved.load(Ordering::Relaxed),
            cut_off: false,
        });
        is_stuck(self.clock.now(), last_event, self.scenario.stuck_after, sessions)
    }

    /// Waits until the run is over. `progress` gets the seconds at intervals, and ends the run by returning false.
    ///
    /// # Errors
    /// If a part of the testbed failed.
    pub fn play(&self, progress: &mut dyn FnMut(f64) -> bool) -> Result<Ended, TestbedError> {
        loop {
            if let Some(ended) = self.poll()? {
                return Ok(ended);
            }
            if !progress(self.elapsed().as_secs_f64()) {
                return Ok(Ended::Stopped);
            }
            std::thread::sleep(LOOK_INTERVAL);
        }
    }

    /// Takes everything down and gives what was observed, with [`live`](anabranch_observation::Metrics::live) in its
    /// metrics. `ended` is what [`Testbed::play`] gave, or what the caller knows of its program.
    ///
    /// # Errors
    /// If the emulator failed, or a capture could not be completed.
    pub fn finish(mut self, ended: Ended) -> Result<Outcome, TestbedError> {
        let now = self.clock.now();
        if ended == Ended::Finished
            && let Some(flow) = self.flows.iter().find(|flow| flow.program)
        {
            flow.state().finished.get_or_insert(now);
            self.wait_for_closing(flow);
        }
        // The kernel's counters of open sockets are read before these are closed.
        self.stop_workers();
        let emulated = self.stop_emulator().unwrap_or_else(|| Err(io::Error::other("it was not running")));
        let Emulated { servers, report, realtime } = emulated.doing("the emulator failed")?;
        let counters = servers.counters();
        report::check_conservation(&self.scenario, &report)?;
        drop(servers);
        let flows = std::mem::take(&mut self.flows).into_iter().filter_map(Arc::into_inner);
        let seen = Seen {
            ended,
            end: now,
            report,
            counters,
            flows: flows.collect(),
            sources: std::mem::take(&mut self.sources),
        };
        let notes = std::mem::take(&mut self.notes);
        let settings = self.clients[0].plan.settings.clone();
        Ok(report::outcome(&self.scenario, &self.options, seen, Machine { realtime, notes, settings }))
    }

    /// Waits for a program's connections to close: their last acknowledgments are in flight.
    fn wait_for_closing(&self, flow: &SharedFlow) {
        let begin = self.clock.now();
        while flow.state().open > 0 && self.clock.now().since(begin) < CLOSING_TIME {
            std::thread::sleep(LOOK_INTERVAL);
        }
    }

    fn stop_workers(&mut self) {
        self.flows.iter().for_each(|flow| flow.stop.store(true, Ordering::Relaxed));
        for worker in self.workers.drain(..) {
            // A panic was already printed.
            let _ = worker.join();
        }
    }

    fn stop_emulator(&mut self) -> Option<io::Result<Emulated>> {
        self.stop.store(true, Ordering::Relaxed);
        let joined = self.emulator.take()?.join();
        Some(joined.unwrap_or_else(|_| Err(io::Error::other("it panicked"))))
    }
}

impl Drop for Testbed {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.stop_workers();
        self.stop_emulator();
    }
}

/// Limits without effect: one client's connections are not a flood.
fn limits() -> Limits {
    // Buffers are the scenario's, and so are the lengths of outages and pauses.
    Limits { memory: u64::MAX, stall: Duration::MAX, ..Limits::default() }
}

/// A capture for each path of each client, if captures were requested.
fn tap(scenario: &Scenario, options: &Options, clients: &[Client], plans: &[FlowPlan]) -> Result<Tap, TestbedError> {
    let Some(directory) = &options.capture else { return Ok(Tap::none()) };
    let doing = |path: &PathBuf| format!("cannot write captures to {}", path.display());
    std::fs::create_dir_all(directory).doing(doing(directory))?;
    let mut files = Vec::new();
    for (plan, client) in plans.iter().zip(clients) {
        for (path, _) in plan.paths.iter().zip(&client.plan.paths) {
            let name = &scenario.paths[*path].name;
            let name = if plans.len() == 1 { name.clone() } else { format!("{}-{name}", plan.name.replace(' ', "-")) };
            files.push(directory.join(format!("{name}.pcapng")));
        }
    }
    Tap::files(&files, End::Client).doing(doing(directory))
}
