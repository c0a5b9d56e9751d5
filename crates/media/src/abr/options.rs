//! Options of the bitrate rules.

use crate::given::first_unknown;
use anabranch_units::{Duration, text};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which of dash.js's two throughput-or-buffer rules applies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Strategy {
    /// One or the other, by the level of the buffer (`abrDynamic`, the default since 2.6).
    #[default]
    Dynamic,
    /// Only BOLA.
    Bola,
    /// Only the throughput.
    Throughput,
}

/// How BOLA caps a switch upwards by the throughput of the last media segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BolaCap {
    /// Not at all (BOLA-BASIC, BOLA-FINITE).
    None,
    /// No more than one representation above the throughput (BOLA-U, the default).
    BolaU,
    /// None above the throughput, and a pause instead, for fewer oscillations (BOLA-O).
    BolaO,
}

/// Options of the rules. Nothing said: the rule's own default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct AbrOptions {
    /// dash.js: the rule that decides: `dynamic` (by the level of the buffer; the default), `bola` or `throughput`.
    pub strategy: Option<Strategy>,
    /// dash.js: the buffer to hold (`stableBufferTime`, `bufferTimeDefault`).
    #[serde(skip)]
    pub stable_buffer: Option<Duration>,
    /// dash.js 5: whether dropped pictures lower the representation.
    pub dropped_frames: Option<bool>,
    /// dash.js 5: measure by the times of progress events, as a browser does without the Resource Timing API (content
    /// of another origin that does not allow it).
    pub progress_timing: Option<bool>,
    /// `fixed`: the rank of the representation, counted from 0, the lowest; the highest allowed one where absent.
    #[serde(deserialize_with = "text::whole_option::<0, 10000, _, _>")]
    #[schemars(range(max = 10000))]
    pub representation: Option<usize>,
    /// `bba-0`, `bola`, `robust-mpc`: what the buffer can hold.
    #[serde(skip)]
    pub capacity: Option<Duration>,
    /// `bola`: take account of the video's beginning and end (BOLA-FINITE).
    pub finite: Option<bool>,
    /// `bola`: how the last throughput caps a switch upwards: `bola-u` (at most one representation above it; the
    /// default), `bola-o` (none above it, with pauses) or `none` (the default if `finite` is false).
    pub cap: Option<BolaCap>,
    /// `bola`: whether it abandons downloads; as `finite` where absent.
    pub abandon: Option<bool>,
    /// `rate`, `robust-mpc`: the number of media segments that the estimate of the throughput covers.
    #[serde(deserialize_with = "text::whole_option::<0, 10000, _, _>")]
    #[schemars(range(max = 10000))]
    pub samples: Option<usize>,
    /// `rate`: the part of the estimate that is used.
    #[serde(deserialize_with = "text::number_option::<0, 1000000000, _>")]
    #[schemars(range(min = 0, max = 1000000000))]
    pub safety: Option<f64>,
    /// `robust-mpc`: the number of media segments that it plans ahead.
    #[serde(deserialize_with = "text::whole_option::<0, 10000, _, _>")]
    #[schemars(range(max = 10000))]
    pub horizon: Option<usize>,
    /// `robust-mpc`: the penalty for a second of stall, in kbit/s of quality.
    #[serde(deserialize_with = "text::number_option::<0, 1000000000, _>")]
    #[schemars(range(min = 0, max = 1000000000))]
    pub stall_penalty: Option<f64>,
    /// `robust-mpc`: the penalty for a change of quality by one kbit/s, in kbit/s.
    #[serde(deserialize_with = "text::number_option::<0, 1000000000, _>")]
    #[schemars(range(min = 0, max = 1000000000))]
    pub switch_penalty: Option<f64>,
}

/// An option that does not apply to the rule or is out of range.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AbrOptionError {
    /// The rule has no such option.
    #[error("bitrate rule `{rule}` has no option `{option}`")]
    Unknown {
        /// Name of the rule.
        rule: &'static str,
        /// Name of the option.
        option: String,
    },
    /// The value is out of range.
    #[error("bitrate rule `{rule}`: option `{option}` must be {expected}")]
    OutOfRange {
        /// Name of the rule.
        rule: &'static str,
        /// Name of the option.
        option: &'static str,
        /// The valid range.
        expected: &'static str,
    },
}

impl AbrOptions {
    /// Refuses options that are not among `known`.
    pub(super) fn expect_only(&self, rule: &'static str, known: &[&str]) -> Result<(), AbrOptionError> {
        match first_unknown(self, known) {
            Some(option) => Err(AbrOptionError::Unknown { rule, option }),
            None => Ok(()),
        }
    }
}

/// `value` if it passes, or the error with the valid range.
pub(super) fn check<T: Copy>(
    rule: &'static str,
    option: &'static str,
    expected: &'static str,
    value: T,
    passes: impl Fn(T) -> bool,
) -> Result<T, AbrOptionError> {
    if passes(value) { Ok(value) } else { Err(AbrOptionError::OutOfRange { rule, option, expected }) }
}
