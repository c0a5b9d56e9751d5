//! `cbbr`: BBR for the subflows of one connection, which together take about what one BBR would at a bottleneck that
//! they share.
//!
//! ```text
//! queue        every round trip of a round is above 1.2 r, and more than 2 packets longer than r
//! shared       others use the queue, or did shortly before; agnostic: they do not react to losses (`competition.rs`)
//! share        w = b_i / Σ b over the subflows with data in flight, while there is a queue or it is shared; 1 otherwise
//! probing      g_p = 1 ± w²/4          window  g_w = 1 + w
//! ceiling      h = 0.7 · the most packets in flight, after a round trip with 3 losses and more than 2 %;
//!              h + w² after any other one; none above 3 b · r, or among loss-agnostic flows     [packets]
//! round trip   a sample within 1.03 r + 0.5 ms keeps r; ProbeRtt keeps half of b · r in flight, and begins if r is 5 s
//!              old and another subflow is in ProbeRtt
//! pace         counts the headers of packets, as links do, while there is no queue and none is shared, and among loss-agnostic flows
//! Startup      ends after a round trip with 3 losses, or with no round trip below 1.5 r
//! ```
//! Without a queue there is nothing to share: a subflow that is alone on its link, or whose link is not full, is BBR.
//! With a queue the window leaves room for w bandwidth-delay products of queue, so that the subflows together build the
//! queue of one BBR; and they probe for bandwidth less than they would alone. The ceiling keeps a shallow queue from
//! overflowing in each cycle. BBR paces some 5 % below the bandwidth, because its rate counts payload alone. That lets
//! queues shrink, but where there is no queue it leaves the link idle.
//! One subflow's ProbeRtt alone does not empty a queue that another fills: both would overestimate the round trip, by
//! up to 45 % next to NewReno, see no queue, and take the share of two.
//! Both rules would leave nearly everything to a BBR at the same bottleneck, which does not answer losses and fills
//! what others leave. So they do not apply to a queue that such flows keep. And where the queue is shared with
//! loss-based flows, these are given time to grow again after a loss, before the subflows take what became free.
//!
//! Options: `pace = "full"` counts headers at all times, `ceiling = false` has no ceiling, and `competition = false`
//! does not ask who else uses the queue. They are there to measure what these rules cost and save
//! (docs/validation/one-pipe.md).
//!
//! Source: rules of our own upon BBR version 1 (`mod.rs`). The weights resemble those of RFC 6356; the ceiling follows
//! `inflight_hi` of draft-ietf-ccwg-bbr, whose constants for losses and reductions it takes.

use super::competition::Competition;
use super::rules::Rules;
use super::v3::PROBE_RTT_GAIN;
use super::{Bbr, MIN_WINDOW, Pace};
use crate::congestion::{Ack, BUFFERED_WINDOWS, Entry, Siblings};
use crate::view::SubflowView;
use anabranch_units::Duration;

pub(in crate::congestion) const ENTRY: Entry = Entry {
    name: "cbbr",
    summary: "BBR whose subflows share one BBR's part of a common bottleneck, and react to heavy loss.",
    source: "ours, upon Cardwell et al., ACM Queue 2016, and draft-ietf-ccwg-bbr: docs/validation/one-pipe.md",
    create: |options, seed| {
        options.expect_only(&["pace", "ceiling", "competition"])?;
        let drains = options.word("pace", &["drains", "full"])? == "drains";
        let reacts_to_heavy_loss = options.flag("ceiling", true)?;
        let competition = options.flag("competition", true)?.then(Competition::default);
        let coupling = Coupling { drains, reacts_to_heavy_loss, competition, ..Coupling::default() };
        Ok(Box::new(Bbr::coupled(seed, coupling)))
    },
};

impl Bbr<Coupling> {
    fn coupled(seed: u64, coupling: Coupling) -> Self {
        Bbr { paced: Pace::Packets, reacts_to_losses: true, ..Bbr::new(seed, coupling) }
    }
}

/// The least round trip of a round exceeds the path's by this factor where there is a queue,
const QUEUED: f64 = 1.2;
/// and by the time that the path takes for this many packets. The path's own round trip is that of a handshake, whose
/// segments are short. A full packet takes one packet's time longer, and an acknowledgment of two packets reports the
/// first one of them another packet's time later: on a slow link that alone exceeds the factor.
const QUEUED_PACKETS: f64 = 2.0;
/// The same where Startup has filled the pipe.
const OVERFULL: f64 = 1.5;
/// So many packets lost in a round trip are more than chance, if they are more than this share of all.
const HEAVY_PACKETS: u32 = 3;
const HEAVY_SHARE: f64 = 0.02;
/// What remains of the data in flight after heavy loss (`BBRBeta` of draft-ietf-ccwg-bbr).
const CUT: f64 = 0.7;
/// Packets by which the ceiling of a subflow without siblings rises in a round trip: as many as NewReno's window. With
/// 4, the subflows together took half as much again from one CUBIC at a queue of one bandwidth-delay product.
const RISE: f64 = 1.0;
/// Bandwidth-delay products above which a ceiling means nothing: the window is at most 2, and some packets for bursts.
const LIFTED: f64 = 3.0;
/// A sample this near to the least round trip shows that this still holds.
const NEAR: f64 = 1.03;
const NEAR_BY: Duration = Duration::from_micros(500);

/// What acknowledgments of one round trip showed.
#[derive(Clone, Copy, Debug, Default)]
struct Round {
    least_rtt: Option<Duration>,
    lost: u32,
    delivered: u32,
    /// The most packets in flight.
    peak: u32,
}

impl Round {
    fn observe(&mut self, ack: &Ack) {
        self.least_rtt = [self.least_rtt, ack.rtt].into_iter().flatten().min();
        self.lost = self.lost.saturating_add(ack.lost);
        self.delivered = self.delivered.saturating_add(ack.delivered);
        self.peak = self.peak.max(ack.prior_in_flight);
    }

    /// The least round trip over the path's, if both are known.
    fn stretch(&self, min_rtt: Option<Duration>) -> Option<f64> {
        self.least_rtt.zip(min_rtt).map(|(rtt, least)| rtt.as_secs_f64() / least.as_secs_f64())
    }

    fn lost_heavily(&self) -> bool {
        let all = f64::from(self.lost) + f64::from(self.delivered);
        self.lost >= HEAVY_PACKETS && f64::from(self.lost) > HEAVY_SHARE * all
    }
}

/// The state that `cbbr` has in addition to BBR's.
#[derive(Clone, Copy, Debug)]
struct Coupling {
    /// w: the part of the connection's bandwidth.
    weight: f64,
    /// h: the most packets in flight.
    ceiling: Option<f64>,
    round: Round,
    /// The last round trip showed a queue.
    queued: bool,
    /// Who else uses the queue; without the option `competition` that is not asked.
    competition: Option<Competition>,
    /// Option `pace`: the pace leaves headers out while there is a queue, which drains it.
    drains: bool,
    /// Option `ceiling`: heavy loss limits the data in flight.
    reacts_to_heavy_loss: bool,
}

impl Default for Coupling {
    fn default() -> Self {
        Coupling {
            weight: 1.0,
            ceiling: None,
            round: Round::default(),
            queued: false,
            competition: Some(Competition::default()),
            drains: true,
            reacts_to_heavy_loss: true,
        }
    }
}

impl Rules for Coupling {
    const PROBE_RTT_GAIN: f64 = PROBE_RTT_GAIN;
    // When a path fails, the data in its buffer has to be sent again: a smaller buffer costs less.
    const BUFFERED_WINDOWS: u32 = BUFFERED_WINDOWS;

    fn observe(&mut self, ack: &Ack) {
        self.round.observe(ack);
    }

    fn on_round_end(&mut self, min_rtt: Option<Duration>, pipe: f64, siblings: Siblings<'_>) -> bool {
        self.end_round(min_rtt, pipe, share(siblings))
    }

    fn renews(&self, least: Duration, sample: Duration) -> bool {
        sample <= least.mul_f64(NEAR) + NEAR_BY
    }

    fn joins_probe_rtt(&self, siblings: Siblings<'_>) -> bool {
        let own = siblings.own().id;
        siblings.coupled().any(|subflow| subflow.id != own && subflow.seeks_min_rtt)
    }

    fn pacing_gain(&self, gain: f64) -> f64 {
        1.0 + (gain - 1.0) * self.weight * self.weight
    }

    fn window_gain(&self, gain: f64) -> f64 {
        1.0 + (gain - 1.0) * self.weight
    }

    fn paces_whole_packets(&self) -> bool {
        !self.drains || self.is_loss_agnostic() || !(self.queued || self.is_shared())
    }

    fn limit(&self, cwnd: u32) -> u32 {
        self.ceiling.map_or(cwnd, |ceiling| cwnd.min(ceiling as u32)).max(MIN_WINDOW)
    }
}

impl Coupling {
    fn is_shared(&self) -> bool {
        self.competition.as_ref().is_some_and(Competition::is_shared)
    }

    fn is_loss_agnostic(&self) -> bool {
        self.competition.as_ref().is_some_and(Competition::is_loss_agnostic)
    }

    /// A round trip ended; the path's own one is `min_rtt`, its bandwidth-delay product `pipe` packets. Returns whether
    /// the pipe was full.
    fn end_round(&mut self, min_rtt: Option<Duration>, pipe: f64, share: f64) -> bool {
        let round = std::mem::take(&mut self.round);
        let stretch = round.stretch(min_rtt);
        self.queued = stretch.is_some_and(|stretch| stretch > QUEUED && (stretch - 1.0) * pipe > QUEUED_PACKETS);
        if let Some(competition) = &mut self.competition {
            competition.end_round(stretch.filter(|_| self.queued).map(|stretch| stretch - 1.0), round.lost > 0);
        }
        self.weight = if self.queued || self.is_shared() { share } else { 1.0 };
        if self.is_loss_agnostic() {
            self.ceiling = None;
        } else if self.reacts_to_heavy_loss && round.lost_heavily() {
            self.ceiling = Some(CUT * f64::from(round.peak));
        } else {
            let risen = self.ceiling.map(|ceiling| ceiling + RISE * self.weight * self.weight);
            self.ceiling = risen.filter(|ceiling| *ceiling <= LIFTED * pipe);
        }
        round.lost >= HEAVY_PACKETS || stretch.is_some_and(|stretch| stretch > OVERFULL)
    }
}

/// The own part of the bandwidth of all subflows that have data in flight. A subflow counts with the latest rate at
/// which packets arrived; one without data keeps that rate but takes nothing now.
fn share(siblings: Siblings<'_>) -> f64 {
    let own = siblings.own();
    let rate = |subflow: &SubflowView| subflow.delivery_rate().unwrap_or(0.0);
    let mine = rate(own);
    let busy = siblings.coupled().filter(|s| s.id != own.id && s.in_flight > 0 && !s.potentially_failed);
    let others: f64 = busy.map(rate).sum();
    if mine > 0.0 { mine / (mine + others) } else { 1.0 }
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::{ack, assert_near, view};
    use super::super::Mode;
    use super::super::network::Network;
    use super::*;
    use crate::view::Delivered;

    const MIN_RTT: Option<Duration> = Some(Duration::from_millis(100));

    /// A round trip of two acknowledgments with 50 packets each, this least round trip in seconds, and this many
    /// losses.
    fn round(coupling: &mut Coupling, rtt: f64, lost: u32, share: f64) -> bool {
        let first = Ack { lost, prior_in_flight: 120, ..ack(1.0, 50, rtt + 0.01) };
        coupling.round.observe(&first);
        coupling.round.observe(&Ack { lost: 0, prior_in_flight: 90, ..ack(1.1, 50, rtt) });
        coupling.end_round(MIN_RTT, 60.0, share)
    }

    #[test]
    fn a_round_trip_that_is_two_packets_longer_shows_no_queue() {
        let mut coupling = Coupling::default();
        let mut end_round = |rtt| {
            coupling.round.observe(&ack(1.0, 4, rtt));
            coupling.end_round(MIN_RTT, 5.0, 0.5);
            coupling.queued
        };
        // The path takes 20 ms for each of the 5 packets of its bandwidth-delay product.
        assert!(!end_round(0.139));
        assert!(end_round(0.141));
    }

    #[test]
    fn a_subflow_takes_its_share_only_where_there_is_a_queue() {
        let mut coupling = Coupling::default();
        round(&mut coupling, 0.119, 0, 0.25);
        assert_eq!((coupling.pacing_gain(1.25), coupling.window_gain(2.0)), (1.25, 2.0));
        round(&mut coupling, 0.121, 0, 0.25);
        // A quarter of a quarter of a quarter.
        assert_eq!((coupling.pacing_gain(1.25), coupling.window_gain(2.0)), (1.015625, 1.25));
        assert_eq!((coupling.pacing_gain(0.75), coupling.pacing_gain(1.0)), (0.984375, 1.0));
    }

    #[test]
    fn heavy_loss_sets_a_ceiling_that_rises_again_and_is_lifted() {
        let mut coupling = Coupling::default();
        round(&mut coupling, 0.2, 2, 0.5);
        assert_eq!(coupling.limit(1_000), 1_000, "two packets may be chance");
        round(&mut coupling, 0.2, 3, 0.5);
        // 0.7 of the 120 packets in flight.
        assert_eq!(coupling.limit(1_000), 84);
        let mut loss_agnostic = Coupling { reacts_to_heavy_loss: false, ..Coupling::default() };
        round(&mut loss_agnostic, 0.2, 3, 0.5);
        assert_eq!(loss_agnostic.limit(1_000), 1_000);
        (0..4).for_each(|_| assert!(round(&mut coupling, 0.2, 0, 0.5)));
        assert_eq!(coupling.limit(1_000), 85, "the square of one half, four times");
        round(&mut coupling, 0.1, 0, 0.5);
        assert_eq!(coupling.limit(1_000), 86, "a packet where there is no queue");
        (0..94).for_each(|_| assert!(!round(&mut coupling, 0.1, 0, 0.5)));
        assert_eq!(coupling.limit(1_000), 180);
        round(&mut coupling, 0.1, 0, 0.5);
        assert_eq!(coupling.limit(1_000), 1_000, "181 packets are more than three times 60");
    }

    #[test]
    fn the_pace_counts_headers_while_there_is_no_queue() {
        let mut coupling = Coupling::default();
        assert!(coupling.paces_whole_packets());
        round(&mut coupling, 0.121, 0, 1.0);
        assert!(!coupling.paces_whole_packets());
        coupling.drains = false;
        assert!(coupling.paces_whole_packets());
        coupling.drains = true;
        round(&mut coupling, 0.119, 0, 1.0);
        assert!(coupling.paces_whole_packets());
    }

    #[test]
    fn a_shared_queue_is_remembered_and_a_loss_agnostic_one_is_answered() {
        let mut coupling = Coupling::default();
        (0..31).for_each(|_| assert!(round(&mut coupling, 0.2, 3, 0.5)));
        assert_eq!(coupling.limit(1_000), 84);
        assert!(!coupling.paces_whole_packets());
        let mut steep = coupling;
        // For 32 round trips the queue did not change, in spite of the losses.
        round(&mut coupling, 0.2, 3, 0.5);
        assert_eq!(coupling.limit(1_000), 1_000);
        assert!(coupling.paces_whole_packets());
        assert_eq!(coupling.window_gain(2.0), 1.5, "the subflows share it nevertheless");
        // It became shorter, and then there is none.
        round(&mut steep, 0.16, 0, 0.5);
        round(&mut steep, 0.1, 0, 0.5);
        assert!(!steep.paces_whole_packets());
        assert_eq!(steep.window_gain(2.0), 1.5);
        assert_eq!(steep.limit(1_000), 84);
        let mut alone = Coupling { competition: None, ..Coupling::default() };
        (0..40).for_each(|_| assert!(round(&mut alone, 0.2, 3, 0.5)));
        assert!(!alone.paces_whole_packets());
        round(&mut alone, 0.1, 0, 0.5);
        assert!(alone.paces_whole_packets());
        assert_eq!(alone.window_gain(2.0), 2.0);
    }

    #[test]
    fn losses_or_a_long_queue_end_startup() {
        assert!(!round(&mut Coupling::default(), 0.15, 2, 1.0));
        assert!(round(&mut Coupling::default(), 0.15, 3, 1.0));
        assert!(round(&mut Coupling::default(), 0.151, 0, 1.0));
    }

    #[test]
    fn samples_near_the_least_round_trip_renew_it() {
        let (coupling, least) = (Coupling::default(), Duration::from_millis(100));
        assert!(coupling.renews(least, Duration::from_micros(103_500)));
        assert!(!coupling.renews(least, Duration::from_micros(103_501)));
    }

    #[test]
    fn the_share_counts_subflows_with_data_in_flight_by_what_arrives() {
        let at_rate = |id, packets| SubflowView {
            delivery: Delivered { packets, interval: Duration::from_secs(1) },
            ..view(id, 10.0, 0.1)
        };
        let idle = SubflowView { in_flight: 0, ..at_rate(2, 500) };
        let failed = SubflowView { potentially_failed: true, ..at_rate(3, 500) };
        let all = [at_rate(0, 100), at_rate(1, 300), idle, failed, view(4, 10.0, 0.1)];
        assert_near(share(Siblings::new(&all, 0)), 0.25, 1e-12);
        assert_near(share(Siblings::new(&all, 1)), 0.75, 1e-12);
        assert_near(share(Siblings::new(&all, 2)), 500.0 / 900.0, 1e-12);
        assert_near(share(Siblings::new(&all, 4)), 1.0, 1e-12);
    }

    #[test]
    fn coupled_but_alone_it_finds_the_bandwidth_and_needs_no_probe_of_the_round_trip() {
        let mut network = Network::with(Bbr::coupled(5, Coupling::default()), 2000.0, 0.05);
        network.run(3.0, |_| {});
        let before = network.delivered;
        network.run(23.0, |n| {
            let probes_bandwidth = matches!(n.bbr.mode, Mode::ProbeBw { .. });
            assert!(probes_bandwidth, "each cycle drains the queue, which renews the least round trip");
        });
        assert!((network.delivered - before) as f64 > 0.98 * 20.0 * 2000.0);
    }

    #[test]
    fn a_subflow_whose_least_round_trip_is_5_s_old_joins_the_probe_of_another() {
        let probes_at = |seeks_min_rtt| {
            let mut network = Network::with(Bbr::coupled(5, Coupling::default()), 2000.0, 0.05);
            network.run(3.0, |_| {});
            // No sample is near the least round trip from now on.
            network.base = 0.06;
            network.sibling = Some(SubflowView { seeks_min_rtt, in_flight: 0, ..view(1, 4.0, 0.05) });
            let (mut began, mut ended) = (None, None);
            network.run(20.0, |n| match (n.window.seeks_min_rtt, began) {
                (true, None) => began = Some(n.now),
                (false, Some(_)) if ended.is_none() => ended = Some(n.now),
                _ => {}
            });
            (began.unwrap(), ended.unwrap())
        };
        let (alone, _) = probes_at(false);
        let (joined, ended) = probes_at(true);
        assert_near(alone - joined, 5.0, 0.02);
        assert!((0.2..0.3).contains(&(ended - joined)), "200 ms, after the window has drained: {ended} s");
    }

    #[test]
    fn coupled_it_keeps_half_a_pipe_where_the_round_trip_must_be_probed() {
        let mut network = Network::with(Bbr::coupled(5, Coupling::default()), 2000.0, 0.05);
        network.run(3.0, |_| {});
        // The route became longer, so that no sample is near the least round trip.
        network.base = 0.06;
        let mut least = u32::MAX;
        network.run(14.0, |n| {
            if matches!(n.bbr.mode, Mode::ProbeRtt { .. }) {
                least = least.min(n.window.cwnd.floor());
            }
        });
        // Half of 2000 packets/s times 60.5 ms, the least round trip of the acknowledgment that finds it expired.
        assert!((60..=61).contains(&least), "{least} packets");
        assert_near(network.bbr.min_rtt.unwrap().as_secs_f64(), 0.0605, 0.02);
    }
}
