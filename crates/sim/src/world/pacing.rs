//! The server's pacing of responses: what it knows of its viewers, and the caps of their connections.

use super::flow::Flow;
use anabranch_media::Answer;
use anabranch_media::pacing::{Moment, ResponsePacing, Viewer, create};
use anabranch_scenario::Scenario;
use anabranch_units::Instant;
use std::collections::VecDeque;

/// One server for all sessions.
pub(super) struct Pacing {
    policy: Box<dyn ResponsePacing>,
    viewers: Vec<Viewer>,
    services: Vec<Service>,
}

/// The responses of a session that are being sent.
#[derive(Default)]
struct Service {
    due: VecDeque<Answer>,
    /// Bytes acknowledged on the present connection, and on earlier ones.
    acked: u64,
    before: u64,
    left: bool,
}

impl Pacing {
    /// None if the scenario's server paces nothing.
    ///
    /// # Panics
    /// If the scenario was not made by [`load`](anabranch_scenario::load).
    pub fn new(scenario: &Scenario, flows: &mut [Flow]) -> Option<Self> {
        let choice = &scenario.server.response_pacing;
        let policy = create(&choice.name, &choice.options).expect("the choice was checked")?;
        flows.iter_mut().for_each(|flow| flow.http.keep_answers());
        let viewers = flows.iter().map(|flow| Viewer::new(flow.video.clone())).collect();
        Some(Pacing { policy, viewers, services: flows.iter().map(|_| Service::default()).collect() })
    }

    /// The server of this flow has read what there is: notes what is asked for and what has arrived.
    pub fn after_application(&mut self, now: Instant, flow: usize, flows: &mut [Flow]) {
        let end = &mut flows[flow];
        let service = &mut self.services[flow];
        let Some(acked) = end.served().map(|connection| connection.acked()) else { return };
        if acked < service.acked {
            // Another connection, whose responses are numbered from zero.
            service.before += service.acked;
            service.due.clear();
        }
        service.acked = acked;
        self.viewers[flow].delivered = service.before + acked;
        // A response may have been cut short after it was written.
        let written = end.http.written();
        while self.services[flow].due.front().is_some_and(|answer| answer.end.min(written) <= acked) {
            let answer = self.services[flow].due.pop_front();
            if answer.is_some_and(|answer| answer.media.is_some())
                && let Some(response) = self.viewers[flow].completed(now)
            {
                self.decide(now, flows, Moment::Delivered(flow, response));
            }
        }
        while let Some(answer) = flows[flow].http.next_answer() {
            self.services[flow].due.push_back(answer);
            if let Some(segment) = answer.media {
                self.viewers[flow].requested(now, segment, answer.bytes);
                self.decide(now, flows, Moment::Requested(flow));
            }
        }
        let first = self.services[flow].due.front();
        if first.is_some_and(|answer| answer.media.is_some() && acked > answer.end - answer.bytes) {
            self.viewers[flow].began(now);
        }
        let over =
            flows[flow].finished().is_some() || flows[flow].served().is_some_and(|served| served.peer_finished());
        if over && !self.services[flow].left {
            self.services[flow].left = true;
            self.decide(now, flows, Moment::Left(flow));
        }
    }

    fn decide(&mut self, now: Instant, flows: &mut [Flow], moment: Moment) {
        self.policy.decide(now, &mut self.viewers, &moment);
        for (flow, viewer) in flows.iter_mut().zip(&self.viewers) {
            if let Some(connection) = flow.served() {
                connection.set_pace_cap(viewer.pace);
            }
        }
    }
}
