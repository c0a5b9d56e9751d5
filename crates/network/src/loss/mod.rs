//! Loss models: which packets are lost.
//!
//! A model is a file, with its parameters as [`LossParameters`], and a line in [`Loss`]. A scenario's table of these
//! parameters, its documentation and the registry follow from them.
//!
//! Whether the k-th packet of a model is lost depends on the stream's seed and name, the model's parameters and k only;
//! never on size, and on time only where the model uses it. So the simulator and the emulator lose the same packets.

mod bernoulli;
mod every_nth;
mod gilbert_elliott;
mod gilbert_elliott_time;

use crate::draws::Probability;
use crate::error::ConfigError;
use anabranch_registry::{Entry, Registry};
use anabranch_units::Instant;
use rand_chacha::ChaCha8Rng;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// Decides for one packet after the other.
pub trait LossModel: Send {
    /// Whether the next packet, at time `now`, is lost. Takes the same amount of randomness for every packet.
    fn lost(&mut self, now: Instant, rng: &mut ChaCha8Rng) -> bool;
}

/// The parameters of a loss model: the keys of `loss = { kind = ... }`, as their type derives them.
pub trait LossParameters: Serialize + DeserializeOwned + JsonSchema {
    /// What the model does, in one sentence.
    const SUMMARY: &'static str;
    /// Where it is defined.
    const SOURCE: &'static str;

    /// The model that loses this share of packets in the long run, with its other parameters at their defaults.
    fn with_rate(rate: Probability) -> Self;

    /// The share of packets lost in the long run, 0 to 1.
    fn long_run_rate(&self) -> f64;

    /// Whether the run's seed decides which packets are lost.
    fn is_random(&self) -> bool;

    /// Where packets are lost.
    fn at(&self) -> LossAt;

    /// Whether the parameters make sense together; their ranges are those of their types.
    ///
    /// # Errors
    /// Names the field, as in `loss.good`.
    fn check(&self) -> Result<(), ConfigError> {
        Ok(())
    }

    /// The model in its initial state; `None` if it never loses a packet.
    fn build(&self) -> Option<Box<dyn LossModel>>;
}

/// Where the loss model stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LossAt {
    /// Before the queue, as netem at the ingress does: lost packets cost the link nothing.
    Entry,
    /// After the server, like a radio. Lost packets have waited in the queue and used the link's time, so loss does not
    /// relieve a bottleneck. The default, because random loss is mostly a radio's.
    #[default]
    Exit,
}

/// Declares the type that is one of several loss models, and their registry. A macro, so that a test can add one.
macro_rules! loss_models {
    (
        $(#[$attribute:meta])*
        $type:ident in $registry:ident { $($kind:literal => $variant:ident($parameters:ty)),* $(,)? }
    ) => {
        anabranch_registry::by_kind! {
            $(#[$attribute])*
            #[derive(Clone, Debug, PartialEq)]
            pub enum $type: "loss model" {
                $(
                    #[doc = concat!("`", $kind, "`")]
                    #[schemars(description = <$parameters as LossParameters>::SUMMARY)]
                    $kind => $variant($parameters),
                )*
            }
        }

        impl $type {
            /// The share of packets lost in the long run, 0 to 1.
            pub fn long_run_rate(&self) -> f64 {
                match self { $($type::$variant(model) => model.long_run_rate()),* }
            }

            /// Whether the run's seed decides which packets are lost.
            pub fn is_random(&self) -> bool {
                match self { $($type::$variant(model) => model.is_random()),* }
            }

            /// Where packets are lost.
            pub fn at(&self) -> LossAt {
                match self { $($type::$variant(model) => model.at()),* }
            }

            /// Whether the parameters make sense together.
            ///
            /// # Errors
            /// Names the field, as in `loss.good`.
            pub fn check(&self) -> Result<(), ConfigError> {
                match self { $($type::$variant(model) => model.check()),* }
            }

            /// The model in its initial state; `None` if it never loses a packet.
            pub fn build(&self) -> Option<Box<dyn LossModel>> {
                match self { $($type::$variant(model) => model.build()),* }
            }
        }

        /// Every loss model that can be chosen by name. A constructor makes one that loses a share of packets in the
        /// long run.
        pub static $registry: Registry<fn(Probability) -> $type> = Registry::new(&[$(
            Entry {
                name: $kind,
                summary: <$parameters as LossParameters>::SUMMARY,
                source: <$parameters as LossParameters>::SOURCE,
                create: |rate| $type::$variant(LossParameters::with_rate(rate)),
            },
        )*]);
    };
}

loss_models! {
    /// Which packets are lost. A share alone stands for independent losses at the exit of the link.
    Loss in LOSS_MODELS {
        "bernoulli" => Bernoulli(bernoulli::Bernoulli),
        "gilbert-elliott" => GilbertElliott(gilbert_elliott::GilbertElliott),
        "every-nth" => EveryNth(every_nth::EveryNth),
        "gilbert-elliott-time" => GilbertElliottTime(gilbert_elliott_time::GilbertElliottTime),
    }
}

pub use bernoulli::Bernoulli;
pub use every_nth::EveryNth;
pub use gilbert_elliott::GilbertElliott;
pub use gilbert_elliott_time::GilbertElliottTime;

impl Loss {
    /// No packet is lost.
    pub const NONE: Loss = Loss::Bernoulli(Bernoulli { share: Probability::ZERO, at: LossAt::Exit });

    /// Independent losses with this probability, at the exit.
    pub fn independent(share: Probability) -> Self {
        Loss::Bernoulli(Bernoulli { share, at: LossAt::Exit })
    }
}

#[cfg(test)]
mod tests;
