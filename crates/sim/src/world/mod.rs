//! The simulation: links, endpoints, players and a schedule, processed in the order of their timeouts.
//!
//! Every component has one timeout. The simulation takes the earliest one (ties: the lower component, in the order
//! schedule, links, endpoints, sampler), processes what is due, and all its consequences: a packet that arrives goes to
//! its endpoint, the endpoint's application reads the available data, and the segments that the endpoint then sends
//! enter their first links. Nothing happens between, so time jumps from timeout to timeout.

mod agenda;
mod busy_links;
#[cfg(test)]
mod dash_tests;
mod dial;
#[cfg(test)]
mod event_tests;
mod flow;
mod pacing;
mod packet;
#[cfg(test)]
mod random;
mod side;
#[cfg(test)]
mod tests;

use agenda::Agenda;
use anabranch_events::{Carried, Log, TransportEvent};
use anabranch_observation::Observed;
use anabranch_observation::{
    Ended, Engine, EventRow, Facts, Keep, Outcome, Over, Waiting, gather, is_stuck, link_metrics, observers,
};
use anabranch_scenario::{Action, DirectedLink, Scenario, plan};
use anabranch_segment::Segment;
use anabranch_stack::connection::Transmit;
use anabranch_units::{Duration, Instant, LinkDirection, PathId};
use busy_links::BusyLinks;
use flow::Flow;
use pacing::Pacing;
use packet::{Network, Packet};

pub use side::Side;

/// Options of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunOptions {
    /// Seed of all random numbers: the same seed gives the same run.
    pub seed: u64,
    /// Whether to keep every event and make a table of them.
    pub record_events: bool,
    /// Whether to keep the forecast of every path switch, which [some reducers
    /// read](anabranch_observation::reducers::read_forecasts).
    pub record_forecasts: bool,
    /// Whether to keep account of where the link time of each session goes.
    pub account: bool,
}

/// Sees every segment that an endpoint sends or receives.
pub trait Tap {
    /// A segment left an endpoint, or arrived at it, at its interface on a path.
    fn see(&mut self, at: Instant, seen: &Seen<'_>);
}

/// A segment at the interface of an endpoint. Its direction is that of the links: up from the client, down to it.
#[derive(Clone, Copy, Debug)]
pub struct Seen<'a> {
    /// The position of its connection among those of [`plan`].
    pub flow: usize,
    /// The endpoint.
    pub end: Side,
    /// The path.
    pub path: PathId,
    /// The direction in which it goes.
    pub direction: LinkDirection,
    /// The segment.
    pub segment: &'a Segment,
}

/// Interval of the progress reports, in simulated time.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(1);

/// More timeouts than this at one instant are an endless loop, not a busy network.
const MOST_WAKES_AT_ONE_INSTANT: u64 = 50_000_000;

/// The component of the schedule; the links follow, then the endpoints, then the sampler.
const SCHEDULE: usize = 0;

/// Simulates a scenario. `progress` gets the simulated seconds about once per simulated second, and ends the run by
/// returning false.
///
/// # Panics
/// If the scenario was not made by [`load`](anabranch_scenario::load), a component misbehaves, or a link loses count of
/// packets.
pub fn run(scenario: &Scenario, options: &RunOptions, progress: &mut dyn FnMut(f64) -> bool) -> Outcome {
    run_with(scenario, options, progress, None)
}

/// The same, with a tap at the interfaces of all endpoints. The tap changes nothing of the run.
///
/// # Panics
/// As [`run`].
pub fn run_with(
    scenario: &Scenario,
    options: &RunOptions,
    progress: &mut dyn FnMut(f64) -> bool,
    tap: Option<&mut dyn Tap>,
) -> Outcome {
    let scenario = scenario.of_seed(options.seed);
    let mut world = World::new(&scenario, options);
    // A closure, so that the tap's lifetime may be shortened to the scenario's.
    world.tap = tap.map(|tap| tap as &mut dyn Tap);
    let ended = world.run(progress);
    world.finish(ended)
}

/// A scheduled action.
enum Scheduled {
    /// An event of the scenario, by position.
    Event(usize),
    /// The warm-up ends: counting begins.
    WarmUpOver,
}

struct World<'a> {
    scenario: &'a Scenario,
    seed: u64,
    agenda: Agenda,
    network: Network,
    flows: Vec<Flow>,
    /// Scheduled actions in order, and the number of those done.
    schedule: Vec<(Instant, Scheduled)>,
    happened: usize,
    /// Whether the client's interface on each path is up.
    interfaces: Vec<bool>,
    next_progress: Instant,
    now: Instant,
    /// The events of the connection that is being called; empty between calls.
    log: Log<TransportEvent>,
    /// Data packets that arrived at an endpoint.
    data_packets: u64,
    /// Packets sent by endpoints, arrived at one, and arrived at an interface that was down.
    counts: Counts,
    /// The links' rows of the table of events, and the names of all sources.
    rows: Option<Vec<EventRow>>,
    sources: Vec<String>,
    tap: Option<&'a mut dyn Tap>,
    /// Only where the run keeps account.
    busy_links: Option<BusyLinks>,
    /// Whether observers follow what endpoints are like after each step.
    follows: bool,
    /// Only where the server paces responses.
    pacing: Option<Pacing>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counts {
    sent: u64,
    arrived: u64,
    lost_at_interface: u64,
}

impl<'a> World<'a> {
    fn new(scenario: &'a Scenario, options: &RunOptions) -> Self {
        let mut network = Network::new(scenario, options.seed, SCHEDULE + 1);
        let plans = plan(scenario, options.seed);
        let keep =
            Keep { events: options.record_events, forecasts: options.record_forecasts, account: options.account };
        let (observers, sources) = observers(scenario, &plans, keep, |_| Observed::EVERYTHING);
        let flows = plans.into_iter().zip(observers).map(|(plan, observer)| Flow::new(plan, observer, options.seed));
        let mut flows: Vec<_> = flows.collect();
        if options.record_events {
            network.keep_dropped();
        }
        let busy_links = options.account.then(|| BusyLinks::new(&mut network, &flows));
        let pacing = Pacing::new(scenario, &mut flows);
        let events = scenario.events.iter().enumerate();
        let mut schedule: Vec<_> = events.map(|(i, event)| (Instant::ZERO + event.at, Scheduled::Event(i))).collect();
        if !scenario.warm_up.is_zero() {
            schedule.push((Instant::ZERO + scenario.warm_up, Scheduled::WarmUpOver));
        }
        schedule.sort_by_key(|(at, _)| *at);
        let mut world = World {
            agenda: Agenda::new(2 + network.len() + 2 * flows.len()),
            interfaces: vec![true; scenario.paths.len()],
            scenario,
            seed: options.seed,
            network,
            flows,
            schedule,
            happened: 0,
            next_progress: Instant::ZERO,
            now: Instant::ZERO,
            log: Log::default(),
            data_packets: 0,
            counts: Counts::default(),
            rows: options.record_events.then(Vec::new),
            sources,
            tap: None,
            busy_links,
            follows: options.account || options.record_events,
            pacing,
        };
        world.plan_schedule();
        for flow in 0..world.flows.len() {
            world.agenda.set(world.component(flow, Side::Client), world.flows[flow].start);
        }
        world.agenda.set(world.sampler(), Instant::ZERO + scenario.sample_interval);
        world
    }

    fn component(&self, flow: usize, side: Side) -> usize {
        SCHEDULE + 1 + self.network.len() + 2 * flow + side.index()
    }

    fn sampler(&self) -> usize {
        SCHEDULE + 1 + self.network.len() + 2 * self.flows.len()
    }

    fn run(&mut self, progress: &mut dyn FnMut(f64) -> bool) -> Ended {
        let end = Instant::ZERO + self.scenario.duration;
        let (links, sampler) = (SCHEDULE + 1 + self.network.len(), self.sampler());
        let mut wakes = 0;
        loop {
            let (now, component) = self.agenda.next();
            if now > end {
                self.now = end;
                return Ended::Duration;
            }
            wakes = if now == self.now { wakes + 1 } else { 0 };
            assert!(wakes < MOST_WAKES_AT_ONE_INSTANT, "component {component} does not let time go on at {now}");
            self.now = now;
            if component == SCHEDULE {
                self.follow_schedule(now);
            } else if component < links {
                self.handle_link_timeout(now, component);
            } else if component < sampler {
                self.handle_endpoint_timeout(now, component);
            } else if let Some(ended) = self.sample(now, progress) {
                return ended;
            }
        }
    }

    /// The flow and the side of an endpoint's component.
    fn endpoint(&self, component: usize) -> (usize, Side) {
        let endpoint = component - (SCHEDULE + 1 + self.network.len());
        (endpoint / 2, if endpoint.is_multiple_of(2) { Side::Client } else { Side::Server })
    }

    /// A timer of an endpoint may be due: the agenda has a lower bound. If none is, only the agenda is set again.
    fn handle_endpoint_timeout(&mut self, now: Instant, component: usize) {
        let (flow, side) = self.endpoint(component);
        let due = self.flows[flow].next_timeout(side);
        if due > now {
            return self.agenda.set(component, due);
        }
        self.flows[flow].lend_log(side, &mut self.log);
        self.flows[flow].handle_timeout(now, side);
        self.pump(now, flow, side);
    }

    /// Packets have passed the link of this component, and with it all links of their path.
    #[inline]
    fn handle_link_timeout(&mut self, now: Instant, component: usize) {
        while let Some(packet) = self.network.peek_arrival(now, component, &mut self.agenda) {
            if packet.direction == LinkDirection::Down && !self.interfaces[packet.path.index()] {
                self.counts.lost_at_interface += 1;
                self.network.remove_arrival(component);
                continue;
            }
            self.counts.arrived += 1;
            let side = Side::receiver(packet.direction);
            let flow = packet.flow as usize;
            if packet.too_big > 0 {
                self.flows[flow].lend_log(side, &mut self.log);
                self.flows[flow].too_big(now, side, packet.path, &packet.segment, packet.too_big);
                self.network.remove_arrival(component);
                self.pump(now, flow, side);
                continue;
            }
            if let Some(tap) = &mut self.tap {
                let Packet { path, direction, ref segment, .. } = *packet;
                tap.see(now, &Seen { flow, end: side, path, direction, segment });
            }
            let has_data = packet.segment.payload_len > 0;
            self.data_packets += u64::from(has_data);
            self.flows[flow].lend_log(side, &mut self.log);
            self.flows[flow].receive(now, side, packet.path, &packet.segment);
            self.network.remove_arrival(component);
            if has_data && self.flows[flow].begin_reading(side) {
                self.transmit_before_reading(now, flow, side);
            }
            self.pump(now, flow, side);
        }
    }

    /// Processes the consequences of an event at an end of a flow, which was lent the log before.
    #[inline]
    fn pump(&mut self, now: Instant, flow: usize, side: Side) {
        let component = self.component(flow, side);
        self.flows[flow].run_application(now, side);
        if side == Side::Server
            && let Some(pacing) = &mut self.pacing
        {
            pacing.after_application(now, flow, &mut self.flows);
        }
        self.transmit(now, flow, side);
        if self.follows {
            self.follow_end(now, flow, side);
        } else {
            self.flows[flow].drain_events(side, &mut self.log);
        }
        let end = &mut self.flows[flow];
        let (planned, next) = (self.agenda.time(component), end.next_timeout(side));
        // Nearly every packet moves a timer to a later time. That is found when the planned time comes.
        if next < planned || planned <= now {
            self.agenda.set(component, next);
        }
    }

    #[cold]
    fn transmit_before_reading(&mut self, now: Instant, flow: usize, side: Side) {
        self.transmit(now, flow, side);
    }

    /// An end of a flow sends what it has to send. Inlined, as each packet needs it.
    #[inline(always)]
    fn transmit(&mut self, now: Instant, flow: usize, side: Side) {
        let end = &mut self.flows[flow];
        let of = (flow as u32, side.sends());
        end.transmit(now, side, &mut |transmit| {
            self.counts.sent += 1;
            if side == Side::Client && !self.interfaces[transmit.path.index()] {
                self.counts.lost_at_interface += 1;
                return true;
            }
            if let Some(tap) = &mut self.tap {
                let Transmit { path, ref segment, .. } = transmit;
                tap.see(now, &Seen { flow, end: side, path, direction: of.1, segment });
            }
            self.network.enter(now, of, transmit, &mut self.agenda);
            true
        });
        while let Some(report) = self.network.next_refused() {
            end.too_big(now, side, report.path, &report.segment, report.too_big);
            end.transmit(now, side, &mut |transmit| {
                self.counts.sent += 1;
                self.network.enter(now, of, transmit, &mut self.agenda);
                true
            });
        }
    }

    /// The same as draining the events, with what the accounts and the table of events need to know of this moment.
    #[cold]
    fn follow_end(&mut self, now: Instant, flow: usize, side: Side) {
        self.settle_accounts(now);
        self.flows[flow].drain_events(side, &mut self.log);
        self.flows[flow].note_end(now, side);
        // While the subflows are there that sent what was dropped.
        if self.rows.is_some() {
            self.drain_links();
        }
    }

    fn settle_accounts(&mut self, now: Instant) {
        if let Some(links) = &mut self.busy_links {
            links.settle(now, &mut self.network, &mut self.flows, &self.interfaces);
        }
    }

    fn plan_schedule(&mut self) {
        let next = self.schedule.get(self.happened).map_or(Instant::FAR_FUTURE, |(at, _)| *at);
        self.agenda.set(SCHEDULE, next);
    }

    fn follow_schedule(&mut self, now: Instant) {
        while let Some((_, what)) = self.schedule.get(self.happened).filter(|(at, _)| *at <= now) {
            self.happened += 1;
            match what {
                Scheduled::WarmUpOver => self.flows.iter_mut().for_each(|flow| flow.observer.end_warm_up(now)),
                Scheduled::Event(position) => {
                    let scenario = self.scenario;
                    self.apply(now, &scenario.events[*position].action(scenario));
                }
            }
        }
        self.plan_schedule();
    }

    fn apply(&mut self, now: Instant, action: &Action<'_>) {
        self.settle_accounts(now);
        match action {
            Action::Link { link, .. } => {
                for direction in LinkDirection::BOTH {
                    self.network.change(now, (*link, direction), action.changes(direction), &mut self.agenda);
                }
            }
            Action::Session { session, reads, writes } => self.switch_programs(now, *session, *reads, *writes),
            Action::Path { path, down } => {
                self.interfaces[*path] = !down;
                for flow in 0..self.flows.len() {
                    self.flows[flow].lend_log(Side::Client, &mut self.log);
                    self.flows[flow].interface_changed(now, PathId(*path as u16), !down);
                    self.pump(now, flow, Side::Client);
                }
            }
        }
        // Which links are up has changed.
        self.settle_accounts(now);
    }

    /// Programs of a session stop or go on, and with them what their endpoints have to do.
    fn switch_programs(&mut self, now: Instant, session: usize, reads: Option<bool>, writes: Option<bool>) {
        for flow in self.scenario.flows_of(session) {
            if let Some(reads) = reads {
                self.flows[flow].lend_log(Side::Client, &mut self.log);
                self.flows[flow].set_reads(reads);
                self.pump(now, flow, Side::Client);
            }
            if let Some(writes) = writes {
                self.flows[flow].lend_log(Side::Server, &mut self.log);
                self.flows[flow].set_writes(now, writes);
                self.pump(now, flow, Side::Server);
            }
        }
    }

    /// Takes a sample, and checks whether the run is over.
    fn sample(&mut self, now: Instant, progress: &mut dyn FnMut(f64) -> bool) -> Option<Ended> {
        for flow in &mut self.flows {
            flow.sample(now, &mut self.log);
        }
        self.drain_links();
        self.agenda.set(self.sampler(), Instant::FAR_FUTURE);
        let anything_to_come = self.anything_to_come();
        self.agenda.set(self.sampler(), now + self.scenario.sample_interval);
        if let Some(ended) = self.is_over(now, anything_to_come) {
            return Some(ended);
        }
        if now >= self.next_progress {
            self.next_progress = now + PROGRESS_INTERVAL;
            if !progress(now.as_secs_f64()) {
                return Some(Ended::Stopped);
            }
        }
        None
    }

    /// Whether a component has a timeout. What the agenda has of endpoints are lower bounds, so the timer may run no
    /// more.
    fn anything_to_come(&mut self) -> bool {
        let (first, end) = (SCHEDULE + 1 + self.network.len(), self.sampler());
        loop {
            let (planned, component) = self.agenda.next();
            if planned == Instant::FAR_FUTURE || !(first..end).contains(&component) {
                return planned != Instant::FAR_FUTURE;
            }
            let (flow, side) = self.endpoint(component);
            let due = self.flows[flow].next_timeout(side);
            self.agenda.set(component, due);
            if due != Instant::FAR_FUTURE {
                return true;
            }
        }
    }

    fn is_over(&self, now: Instant, anything_to_come: bool) -> Option<Ended> {
        let mut sessions = self.flows.iter().filter(|flow| flow.is_session).peekable();
        // Without a viewer, cross traffic runs for the whole duration.
        sessions.peek()?;
        if sessions.clone().all(|flow| flow.finished().is_some()) {
            return Some(Ended::Finished);
        }
        let over = sessions.clone().all(Flow::is_over);
        (over || !anything_to_come || self.is_stuck(now)).then_some(Ended::Stuck)
    }

    /// Whether no unfinished session can receive anything any more, as far as that can be known.
    fn is_stuck(&self, now: Instant) -> bool {
        let last_event = self.schedule.last().map_or(Instant::ZERO, |(at, _)| *at);
        let sessions = self.flows.iter().filter(|flow| flow.is_session && !flow.is_over()).map(|flow| Waiting {
            last_arrival: flow.last_arrival(),
            starved: flow.is_starved(),
            cut_off: flow.paths().iter().all(|path| self.is_dead(*path)),
        });
        is_stuck(now, last_event, self.scenario.stuck_after, sessions)
    }

    /// Whether no packet passes on this path.
    fn is_dead(&self, path: PathId) -> bool {
        !self.interfaces[path.index()] || self.network.is_cut(path)
    }

    fn drain_links(&mut self) {
        let (rows, flows) = (&mut self.rows, &self.flows);
        self.network.drain_logs(|direction, at, event, packet| {
            if let Some(rows) = rows {
                let carried = packet.map(|packet| carried(&packet, flows));
                rows.push(EventRow::link(at, direction as u32, event, carried));
            }
        });
    }

    /// Checks that each link knows where its packets are, and that what endpoints sent has arrived, was dropped or is
    /// in a link.
    ///
    /// # Errors
    ///
    /// What does not add up: then none of the run's numbers can be believed.
    fn check_conservation(&mut self) -> Result<(), String> {
        let (mut gone, mut duplicated) = (0, 0);
        for DirectedLink { name, direction, link } in self.network.directed_links(self.now) {
            link.check_conservation()
                .map_err(|imbalance| format!("link {name} ({direction}) lost count of packets: {imbalance}"))?;
            gone += link.stats().dropped_in_total().packets + link.inside().packets;
            duplicated += link.stats().duplicated.packets;
        }
        let Counts { mut sent, arrived, lost_at_interface } = self.counts;
        sent += self.network.reported();
        if sent + duplicated == arrived + lost_at_interface + gone {
            return Ok(());
        }
        Err(format!(
            "packets are not conserved: {sent} sent and {duplicated} copies, but {arrived} arrived, {lost_at_interface} were \
             lost at interfaces, and {gone} were dropped or are in a link"
        ))
    }

    fn finish(mut self, ended: Ended) -> Outcome {
        let now = self.now;
        self.settle_accounts(now);
        self.drain_links();
        if let Err(imbalance) = self.check_conservation() {
            panic!("{imbalance}");
        }
        let facts = Facts {
            engine: Engine::Sim,
            seed: self.seed,
            ended,
            end: now,
            packets: self.data_packets,
            links: self
                .network
                .directed_links(now)
                .map(|DirectedLink { name, direction, link }| {
                    link_metrics(name, *direction, link.stats(), link.inside())
                })
                .collect(),
        };
        let flows = self.flows.into_iter().map(|flow| Over {
            is_session: flow.is_session,
            bytes: flow.bytes_read(),
            finished: flow.finished(),
            observer: flow.observer,
        });
        gather(self.scenario, facts, flows.collect(), self.rows.map(|rows| (rows, self.sources)))
    }
}

/// What a packet carried, and for whom.
fn carried(packet: &Packet, flows: &[Flow]) -> Carried {
    let flow = &flows[packet.flow as usize];
    let side = Side::receiver(packet.direction).other();
    // A report of a router is none of an endpoint's segments.
    let origin = flow.origin_of(side, packet.path, &packet.segment).filter(|_| packet.too_big == 0);
    Carried {
        sender: format!("{}/{}", flow.observer.name, side.name()),
        path: packet.path,
        subflow: origin.map(|(subflow, _)| subflow),
        offset: origin.and_then(|(_, offset)| offset),
    }
}
