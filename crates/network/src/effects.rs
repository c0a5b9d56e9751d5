//! Effects after the server: random loss, duplication, and variation of the delay.

use crate::config::{DirectionConfig, Reordering};
use crate::draws::{Probability, Streams};
use crate::jitter::Jitter;
use crate::loss::{Loss, LossAt, LossModel};
use anabranch_units::{Duration, Instant};
use rand_chacha::ChaCha8Rng;

/// A loss model with its stream.
pub(crate) struct Losses {
    model: Option<Box<dyn LossModel>>,
    rng: Box<ChaCha8Rng>,
}

impl Losses {
    pub(crate) fn new(config: &Loss, streams: &Streams) -> Self {
        Losses { model: config.build(), rng: Box::new(streams.stream("loss")) }
    }

    /// Sets another model, which continues in the same stream.
    pub(crate) fn change(&mut self, config: &Loss) {
        self.model = config.build();
    }

    #[inline]
    pub(crate) fn decide(&mut self, now: Instant) -> bool {
        self.model.as_mut().is_some_and(|model| model.lost(now, &mut self.rng))
    }
}

/// The random effects on the packet in service. They are drawn when service begins, so that the link knows when
/// the packet will arrive.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Fate {
    pub(crate) lost: bool,
    pub(crate) duplicated: bool,
    /// Whether it may be overtaken or overtake.
    pub(crate) unordered: bool,
    /// Its deviation from the link's delay, in nanoseconds.
    pub(crate) wander: i64,
}

/// All effects at the exit, apart from the constant delay.
pub(crate) struct Effects {
    loss: Losses,
    /// Stays where it was when the model changes.
    loss_at: LossAt,
    duplication: Probability,
    jitter: Option<Jitter>,
    reordering: Option<Reordering>,
    /// No effect is configured: the common case, which should cost nothing.
    idle: bool,
    duplication_rng: Box<ChaCha8Rng>,
    jitter_rng: Box<ChaCha8Rng>,
    reordering_rng: Box<ChaCha8Rng>,
}

impl Effects {
    pub(crate) fn new(config: &DirectionConfig, streams: &Streams) -> Self {
        let stream = |effect| Box::new(streams.stream(effect));
        let mut effects = Effects {
            loss: Losses::new(&config.loss, streams),
            loss_at: config.loss.at(),
            duplication: config.duplication,
            jitter: config.jitter,
            reordering: config.reordering,
            idle: false,
            duplication_rng: stream("duplication"),
            jitter_rng: stream("jitter"),
            reordering_rng: stream("reordering"),
        };
        effects.note_idleness();
        effects
    }

    fn note_idleness(&mut self) {
        let loses = self.loss.model.is_some() && self.loss_at == LossAt::Exit;
        self.idle =
            !loses && self.duplication == Probability::ZERO && self.jitter.is_none() && self.reordering.is_none();
    }

    pub(crate) fn change_loss(&mut self, config: &Loss) {
        self.loss.change(config);
        self.note_idleness();
    }

    pub(crate) fn change_duplication(&mut self, probability: Probability) {
        self.duplication = probability;
        self.note_idleness();
    }

    pub(crate) fn change_jitter(&mut self, jitter: Option<Jitter>) {
        self.jitter = jitter;
        self.note_idleness();
    }

    pub(crate) fn change_reordering(&mut self, reordering: Option<Reordering>) {
        self.reordering = reordering;
        self.note_idleness();
    }

    /// Whether an entering packet is lost at once.
    #[inline]
    pub(crate) fn lost_at_entry(&mut self, now: Instant) -> bool {
        self.loss_at == LossAt::Entry && self.loss.decide(now)
    }

    /// Whether a packet may overtake an earlier one.
    #[inline]
    pub(crate) fn may_reorder(&self) -> bool {
        !self.idle && (self.reordering.is_some() || self.jitter.is_some_and(|jitter| jitter.reorders()))
    }

    /// How far a packet's delay can be below the link's delay.
    pub(crate) fn reach_below(&self) -> Duration {
        self.jitter.map_or(Duration::ZERO, |jitter| jitter.reach_below())
    }

    /// Draws the effects on the packet whose transmission begins.
    #[inline]
    pub(crate) fn draw(&mut self, now: Instant) -> Fate {
        if self.idle { Fate::default() } else { self.draw_each(now) }
    }

    /// Every configured effect draws for every packet, lost or not, so that none changes another's draws.
    fn draw_each(&mut self, now: Instant) -> Fate {
        let lost = self.loss_at == LossAt::Exit && self.loss.decide(now);
        let duplicated = self.duplication != Probability::ZERO && self.duplication.draw(&mut self.duplication_rng);
        let mut fate = Fate { lost, duplicated, unordered: false, wander: 0 };
        if let Some(jitter) = self.jitter {
            fate.wander = jitter.draw(&mut self.jitter_rng);
            fate.unordered = jitter.reorders();
        }
        if let Some(reordering) = self.reordering
            && reordering.share.draw(&mut self.reordering_rng)
        {
            fate.wander = fate.wander.saturating_add_unsigned(reordering.by.as_nanos());
            fate.unordered = true;
        }
        fate
    }
}
