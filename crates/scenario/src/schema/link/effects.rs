//! What else happens to packets: loss, jitter, reordering.

use super::super::document::{Node, Value};
use super::super::reader::{Complaint, Reader, Result, read_quantity};
use super::probability;
use crate::quantity::{Ratio, read_ratio, read_time, write_ratio, write_time};
use anabranch_network::{JitterConfig, LOSS_MODELS, LossAt, LossConfig};
use anabranch_units::Duration;
use core::num::NonZeroU32;

/// Which packets are lost.
#[derive(Clone, Debug, PartialEq)]
pub struct Loss {
    /// The model.
    pub model: LossModel,
    /// Where it stands.
    pub at: LossAt,
}

/// The models, with their parameters as the scenario writes them.
#[derive(Clone, Debug, PartialEq)]
pub enum LossModel {
    /// None.
    None,
    /// Each with the same probability, independently.
    Bernoulli(Ratio),
    /// In bursts.
    GilbertElliott {
        /// From the good state to the bad one, per packet.
        good_to_bad: Ratio,
        /// And back.
        bad_to_good: Ratio,
        /// Loss in the good state.
        loss_in_good: Ratio,
        /// Loss in the bad state.
        loss_in_bad: Ratio,
    },
    /// Every n-th.
    EveryNth(NonZeroU32),
    /// In bursts that last for a time.
    GilbertElliottTime {
        /// The mean length of a good state.
        good: Duration,
        /// The mean length of a bad state.
        bad: Duration,
        /// Loss in the good state.
        loss_in_good: Ratio,
        /// Loss in the bad state.
        loss_in_bad: Ratio,
    },
}

impl Loss {
    /// Independent losses after the server.
    pub(crate) fn bernoulli(share: Ratio) -> Self {
        let model = if share == Ratio::ZERO { LossModel::None } else { LossModel::Bernoulli(share) };
        Loss { model, at: LossAt::default() }
    }

    /// As the network takes it.
    pub(crate) fn config(&self) -> LossConfig {
        match self.model {
            LossModel::None => LossConfig::None,
            LossModel::Bernoulli(share) => LossConfig::Bernoulli(probability(share)),
            LossModel::GilbertElliott { good_to_bad, bad_to_good, loss_in_good, loss_in_bad } => {
                LossConfig::GilbertElliott {
                    good_to_bad: probability(good_to_bad),
                    bad_to_good: probability(bad_to_good),
                    loss_in_good: probability(loss_in_good),
                    loss_in_bad: probability(loss_in_bad),
                }
            }
            LossModel::EveryNth(n) => LossConfig::EveryNth(n),
            LossModel::GilbertElliottTime { good, bad, loss_in_good, loss_in_bad } => LossConfig::GilbertElliottTime {
                good,
                bad,
                loss_in_good: probability(loss_in_good),
                loss_in_bad: probability(loss_in_bad),
            },
        }
    }

    pub(in super::super) fn write(&self) -> String {
        let at = AT[usize::from(self.at == LossAt::Exit)];
        let model = match self.model {
            LossModel::None => format!("kind = \"bernoulli\", share = \"{}\"", write_ratio(Ratio::ZERO)),
            LossModel::Bernoulli(share) => format!("kind = \"bernoulli\", share = \"{}\"", write_ratio(share)),
            LossModel::GilbertElliott { good_to_bad, bad_to_good, loss_in_good, loss_in_bad } => format!(
                "kind = \"gilbert-elliott\", good_to_bad = \"{}\", bad_to_good = \"{}\", loss_in_good = \"{}\", \
                 loss_in_bad = \"{}\"",
                write_ratio(good_to_bad),
                write_ratio(bad_to_good),
                write_ratio(loss_in_good),
                write_ratio(loss_in_bad)
            ),
            LossModel::EveryNth(n) => format!("kind = \"every-nth\", n = {n}"),
            LossModel::GilbertElliottTime { good, bad, loss_in_good, loss_in_bad } => format!(
                "kind = \"gilbert-elliott-time\", good = \"{}\", bad = \"{}\", loss_in_good = \"{}\", \
                 loss_in_bad = \"{}\"",
                write_time(good),
                write_time(bad),
                write_ratio(loss_in_good),
                write_ratio(loss_in_bad)
            ),
        };
        format!("{{ {model}, at = \"{at}\" }}")
    }
}

/// The spellings of [`LossAt`].
const AT: [&str; 2] = ["entry", "exit"];

pub(super) fn read_loss(file: &str, node: &Node) -> Result<Loss> {
    if !matches!(node.value, Value::Table(_)) {
        return read_quantity(file, "loss", node, read_ratio).map(Loss::bernoulli);
    }
    let any = Reader::unchecked(file, node, "link.loss", "loss")?;
    let names = || LOSS_MODELS.iter().map(|model| model.name);
    let Some((kind, at)) = any.text("kind")? else {
        return any.missing("kind", &format!("one of {}", names().collect::<Vec<_>>().join(", ")));
    };
    let (r, model) = match kind {
        "bernoulli" => {
            let r = Reader::new(file, node, "link.loss.bernoulli", "loss")?;
            let share = required_share(&r, "share")?;
            (r, Loss::bernoulli(share).model)
        }
        "gilbert-elliott" => {
            let r = Reader::new(file, node, "link.loss.gilbert-elliott", "loss")?;
            let model = LossModel::GilbertElliott {
                good_to_bad: required_share(&r, "good_to_bad")?,
                bad_to_good: required_share(&r, "bad_to_good")?,
                loss_in_good: r.quantity_or_default("loss_in_good", read_ratio)?,
                loss_in_bad: r.quantity_or_default("loss_in_bad", read_ratio)?,
            };
            (r, model)
        }
        "every-nth" => {
            let r = Reader::new(file, node, "link.loss.every-nth", "loss")?;
            let Some(n) = r.integer("n", 1..=u64::from(u32::MAX))? else {
                return r.missing("n", "a whole number of at least 1");
            };
            (r, LossModel::EveryNth(NonZeroU32::new(n as u32).expect("it is at least 1")))
        }
        "gilbert-elliott-time" => {
            let r = Reader::new(file, node, "link.loss.gilbert-elliott-time", "loss")?;
            let model = LossModel::GilbertElliottTime {
                good: required_time(&r, "good")?,
                bad: required_time(&r, "bad")?,
                loss_in_good: r.quantity_or_default("loss_in_good", read_ratio)?,
                loss_in_bad: r.quantity_or_default("loss_in_bad", read_ratio)?,
            };
            (r, model)
        }
        other => return Err(Complaint::unknown("loss model", other, names()).at(file, at)),
    };
    let at = if r.word("at", &AT)? == "entry" { LossAt::Entry } else { LossAt::Exit };
    Ok(Loss { model, at })
}

fn required_share(r: &Reader<'_>, key: &str) -> Result<Ratio> {
    match r.quantity(key, read_ratio)? {
        Some(share) => Ok(share),
        None => r.missing(key, "a share such as \"2 %\""),
    }
}

/// A time above zero.
fn required_time(r: &Reader<'_>, key: &str) -> Result<Duration> {
    match r.quantity(key, read_time)? {
        Some(time) if !time.is_zero() => Ok(time),
        _ => {
            let at = r.node(key).map_or(r.at, |node| &node.at);
            let problem = format!("loss has no `{key}` above zero");
            r.fail(Complaint::new(problem, "the mean length of the state, such as \"100 ms\""), at)
        }
    }
}

/// How far delays vary.
#[derive(Clone, Debug, PartialEq)]
pub struct Jitter {
    config: JitterConfig,
}

impl Jitter {
    /// As the network takes it.
    pub(crate) fn config(&self) -> JitterConfig {
        self.config
    }

    pub(in super::super) fn write(&self) -> String {
        use anabranch_network::Jitter as J;
        let kind = match self.config.jitter {
            J::Uniform { half_width } => format!("kind = \"uniform\", half_width = \"{}\"", write_time(half_width)),
            J::Normal { deviation } => format!("kind = \"normal\", deviation = \"{}\"", write_time(deviation)),
            J::Gamma { mean, shape } => format!("kind = \"gamma\", mean = \"{}\", shape = {shape:?}", write_time(mean)),
            J::Percentiles { p50, p99, p999 } => {
                let times = [("p50", p50), ("p99", p99), ("p999", p999)];
                let times = times.map(|(key, time)| format!("{key} = \"{}\"", write_time(time)));
                format!("kind = \"percentiles\", {}", times.join(", "))
            }
        };
        format!("{{ {kind}, reorders = {} }}", self.config.reorders)
    }
}

/// The largest shape that is told from a constant.
const MOST_SHAPE: f64 = 1e6;

pub(super) fn read_jitter(file: &str, node: &Node) -> Result<Jitter> {
    use anabranch_network::Jitter as J;
    let any = Reader::unchecked(file, node, "link.jitter", "jitter")?;
    let kinds = ["uniform", "normal", "gamma", "percentiles"];
    let Some((kind, at)) = any.text("kind")? else {
        return any.missing("kind", &format!("one of {}", kinds.join(", ")));
    };
    let time = |r: &Reader<'_>, key: &str| match r.quantity(key, read_time)? {
        Some(time) => Ok(time),
        None => r.missing(key, "a time such as \"2 ms\""),
    };
    let (r, jitter) = match kind {
        "uniform" => {
            let r = Reader::new(file, node, "link.jitter.uniform", "jitter")?;
            let jitter = J::Uniform { half_width: time(&r, "half_width")? };
            (r, jitter)
        }
        "normal" => {
            let r = Reader::new(file, node, "link.jitter.normal", "jitter")?;
            let jitter = J::Normal { deviation: time(&r, "deviation")? };
            (r, jitter)
        }
        "gamma" => {
            let r = Reader::new(file, node, "link.jitter.gamma", "jitter")?;
            let Some(shape) = r.number("shape", 1.0..=MOST_SHAPE)? else {
                return r.missing("shape", "a number from 1");
            };
            let jitter = J::Gamma { mean: time(&r, "mean")?, shape };
            (r, jitter)
        }
        "percentiles" => {
            let r = Reader::new(file, node, "link.jitter.percentiles", "jitter")?;
            let [p50, p99, p999] = [time(&r, "p50")?, time(&r, "p99")?, time(&r, "p999")?];
            if !(p50 <= p99 && p99 <= p999) {
                return r
                    .fail(Complaint::new("the percentiles of jitter are out of order", "p50 <= p99 <= p999"), r.at);
            }
            (r, J::Percentiles { p50, p99, p999 })
        }
        other => return Err(Complaint::unknown("jitter", other, kinds).at(file, at)),
    };
    Ok(Jitter { config: JitterConfig { jitter, reorders: r.flag("reorders")? } })
}

/// Packets that are held back, so that others overtake them.
#[derive(Clone, Debug, PartialEq)]
pub struct Reordering {
    /// Which share.
    pub share: Ratio,
    /// For how long.
    pub by: Duration,
}

impl Reordering {
    /// As the network takes it.
    pub(crate) fn config(&self) -> anabranch_network::Reordering {
        anabranch_network::Reordering { probability: probability(self.share), extra: self.by }
    }

    pub(in super::super) fn write(&self) -> String {
        format!("{{ share = \"{}\", by = \"{}\" }}", write_ratio(self.share), write_time(self.by))
    }
}

pub(super) fn read_reordering(file: &str, node: &Node) -> Result<Reordering> {
    let r = Reader::new(file, node, "link.reordering", "reordering")?;
    let share = required_share(&r, "share")?;
    match r.quantity("by", read_time)? {
        Some(by) => Ok(Reordering { share, by }),
        None => r.missing("by", "for how long a packet is held back, such as \"10 ms\""),
    }
}
