//! The server's pacing of responses: what it knows of its viewers, and the caps of their connections.

use super::flow::Flow;
use anabranch_media::pacing::{Pacer, Progress, create};
use anabranch_scenario::Scenario;
use anabranch_units::Instant;

/// One server for all sessions. The connection of a flow has the flow's number, and so has its viewer.
pub(super) struct Pacing(Pacer);

impl Pacing {
    /// None if the scenario's server paces nothing.
    ///
    /// # Panics
    /// If the scenario was not made by [`load`](anabranch_scenario::load).
    pub fn new(scenario: &Scenario, flows: &mut [Flow]) -> Option<Self> {
        let choice = &scenario.server.response_pacing;
        let policy = create(&choice.name, &choice.options).expect("the choice was checked")?;
        let mut pacer = Pacer::new(policy);
        for flow in flows {
            flow.http.keep_answers();
            let (viewer, connection) = (pacer.add_viewer(flow.video.clone()), pacer.open());
            pacer.assign(Instant::ZERO, connection, viewer);
        }
        Some(Pacing(pacer))
    }

    /// The server of this flow has read what there is: notes what is asked for and what has arrived.
    pub fn after_application(&mut self, now: Instant, flow: usize, flows: &mut [Flow]) {
        let end = &mut flows[flow];
        let finished = end.finished().is_some();
        let Some(served) = end.served() else { return };
        let (acked, over) = (served.acked(), finished || served.peer_finished());
        let regrouped = self.0.note_delays(now, flow, served.queueing_delays());
        let progress = Progress { acked, written: end.http.written(), over };
        let answers = std::iter::from_fn(|| end.http.next_answer());
        if !self.0.progress(now, flow, progress, answers) && !regrouped {
            return;
        }
        for (at, flow) in flows.iter_mut().enumerate() {
            if let Some(connection) = flow.served() {
                connection.set_pace_cap(self.0.pace(at));
                connection.set_buffered_until(self.0.buffered_until(at));
            }
        }
    }
}
