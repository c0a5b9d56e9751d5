//! Measures the claims of whole papers: a row per claim, with its verdict, what it rests on, and how it changes with the
//! assumptions.

use super::forecasts::{self, Areas};
use super::streaming::{self, Quantity, dash, mptcp_plus};
use super::study::{HANDOFF, STICKY, Study, cells};
use super::verdict::{Claim, Verdict};
use super::{Tick, VARIANTS, explanations, handoff, sticky};

/// A paper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Paper {
    /// Sticky schedulers: S1 to S11.
    Sticky,
    /// Handoff: H1 to H10.
    Handoff,
    /// MPTCP+: P1 to P11.
    MptcpPlus,
    /// Performance of DASH over Multipath TCP: D1 to D9.
    Dash,
}

impl Paper {
    /// All papers in the order of reports.
    pub const ALL: [Paper; 4] = [Paper::Sticky, Paper::Handoff, Paper::MptcpPlus, Paper::Dash];

    /// Title in headings.
    pub fn title(self) -> &'static str {
        match self {
            Paper::Sticky => "Sticky schedulers",
            Paper::Handoff => "Handoff",
            Paper::MptcpPlus => "MPTCP+",
            Paper::Dash => "Performance of DASH over Multipath TCP",
        }
    }

    /// The paper of that name.
    pub fn find(name: &str) -> Option<Paper> {
        Paper::ALL.into_iter().find(|paper| paper.name() == name)
    }

    /// Name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Paper::Sticky => "sticky",
            Paper::Handoff => "handoff",
            Paper::MptcpPlus => "mptcp-plus",
            Paper::Dash => "dash",
        }
    }
}

/// Runs work whose parallel parts use `jobs` threads.
///
/// # Panics
/// If the system grants no threads.
pub fn on_threads<R: Send>(jobs: usize, work: impl FnOnce() -> R + Send) -> R {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(jobs).build().expect("the system grants threads");
    pool.install(work)
}

/// Amount of measurement.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// Seeds of each condition, at least two: an interval needs them.
    pub seeds: u64,
    /// Whether the assumptions are varied too.
    pub sensitivity: bool,
}

/// Most seeds of a variant: it only has to show whether a verdict changes.
const VARIANT_SEEDS: u64 = 4;
/// Seeds of the forecasts, which record every event, at most.
const FORECAST_SEEDS: u64 = 3;

/// The first variant of each paper.
const AS_SHIPPED: &str = "as shipped";

/// A claim's verdict under another assumption.
#[derive(Clone, Debug)]
pub struct Under {
    /// Name of the changed assumption.
    pub variant: &'static str,
    /// Number of seeds.
    pub seeds: u64,
    /// The verdict then.
    pub verdict: Verdict,
    /// Number of findings that are as claimed.
    pub holding: usize,
}

/// A claim with its verdict.
#[derive(Clone, Debug)]
pub struct ClaimRow {
    /// The claim with its findings.
    pub claim: Claim,
    /// Number of seeds.
    pub seeds: u64,
    /// Measured values, beside the paper's where it gives them.
    pub quantities: Vec<Quantity>,
    /// Under other assumptions, behind the shipped ones with as many seeds; empty where these were not varied.
    pub under: Vec<Under>,
}

impl ClaimRow {
    /// The explanation of the verdict in one sentence.
    pub fn why(&self) -> &'static str {
        explanations::of(self.claim.id, self.claim.verdict())
    }

    /// The variants that change the verdict.
    pub fn flips(&self) -> impl Iterator<Item = &Under> {
        let shipped = self.under.first().map(|under| under.verdict);
        self.under.iter().filter(move |under| Some(under.verdict) != shipped)
    }
}

/// Results of a paper.
pub struct Reproduction {
    /// The paper.
    pub paper: Paper,
    /// Its claims.
    pub rows: Vec<ClaimRow>,
    /// The measurements behind the rows.
    pub details: Details,
}

/// The measurements themselves, of the shipped scenarios.
pub enum Details {
    /// A video in VLC; with the forecasts of the sticky schedulers' paper.
    Vlc(Box<Study>, Vec<Areas>),
    /// A video in dash.js.
    Streaming(streaming::Study),
}

impl Effort {
    fn variants<'a, V>(&self, all: &'a [V]) -> &'a [V] {
        if self.sensitivity { &all[1..] } else { &[] }
    }

    fn variant_seeds(&self) -> u64 {
        self.seeds.min(VARIANT_SEEDS)
    }

    /// Number of calls of `tick` during [`Effort::reproduce`].
    pub fn ticks(&self, paper: Paper) -> u64 {
        let (conditions, variants, more) = match paper {
            Paper::Sticky => {
                let forecasts = cells(STICKY).count() as u64 * self.seeds.min(FORECAST_SEEDS);
                (cells(STICKY).count(), self.variants(&VARIANTS).len(), forecasts)
            }
            Paper::Handoff => (cells(HANDOFF).count(), self.variants(&VARIANTS).len(), 0),
            Paper::MptcpPlus => (
                mptcp_plus::conditions().len(),
                self.variants(&mptcp_plus::VARIANTS).len(),
                mptcp_plus::FRIENDLINESS_TICKS,
            ),
            Paper::Dash => (dash::conditions().len(), self.variants(&dash::VARIANTS).len(), 0),
        };
        conditions as u64 * (self.seeds + variants as u64 * self.variant_seeds()) + more
    }

    /// Measures a paper's claims; `None` if `tick` ended it.
    pub fn reproduce(&self, paper: Paper, tick: Tick<'_>) -> Option<Reproduction> {
        match paper {
            Paper::Sticky | Paper::Handoff => self.vlc(paper, tick),
            Paper::MptcpPlus | Paper::Dash => self.streaming(paper, tick),
        }
    }

    fn vlc(&self, paper: Paper, tick: Tick<'_>) -> Option<Reproduction> {
        let sticky = paper == Paper::Sticky;
        let group = if sticky { STICKY } else { HANDOFF };
        let judge = |study: &Study| if sticky { sticky::claims(study) } else { handoff::claims(study) };
        let shipped = Study::run(VARIANTS[0], group, self.seeds, tick)?;
        let mut rows = self.rows(judge(&shipped), &[]);
        if self.sensitivity {
            self.add(&mut rows, AS_SHIPPED, judge(&shipped.first(self.variant_seeds())));
        }
        for variant in self.variants(&VARIANTS) {
            let study = Study::run(*variant, group, self.variant_seeds(), tick)?;
            self.add(&mut rows, variant.name, judge(&study));
        }
        let areas = if sticky { forecasts::measure(self.seeds.min(FORECAST_SEEDS), tick)? } else { Vec::new() };
        if sticky {
            let seeds = self.seeds.min(FORECAST_SEEDS);
            let row = ClaimRow { claim: forecasts::claim(&areas), seeds, quantities: Vec::new(), under: Vec::new() };
            // S10 goes between S9 and S11.
            rows.insert(rows.len() - 1, row);
        }
        Some(Reproduction { paper, rows, details: Details::Vlc(Box::new(shipped), areas) })
    }

    fn streaming(&self, paper: Paper, tick: Tick<'_>) -> Option<Reproduction> {
        let dash = paper == Paper::Dash;
        let (conditions, variants) = match dash {
            true => (dash::conditions(), &dash::VARIANTS[..]),
            false => (mptcp_plus::conditions(), &mptcp_plus::VARIANTS[..]),
        };
        // P9 is not about the shipped scenarios, so that no variant changes it.
        let friendliness = if dash { None } else { Some(mptcp_plus::measure_friendliness(self.seeds, tick)?) };
        let judge = |study: &streaming::Study| match &friendliness {
            None => dash::claims(study),
            Some(friendliness) => mptcp_plus::claims(study, friendliness.clone()),
        };
        let shipped = streaming::Study::run(&conditions, variants[0], self.seeds, tick)?;
        let quantities = if dash { dash::quantities(&shipped) } else { mptcp_plus::quantities(&shipped) };
        let mut rows = self.rows(judge(&shipped), &quantities);
        if self.sensitivity {
            self.add(&mut rows, AS_SHIPPED, judge(&shipped.first(self.variant_seeds())));
        }
        for variant in self.variants(variants) {
            let study = streaming::Study::run(&conditions, *variant, self.variant_seeds(), tick)?;
            self.add(&mut rows, variant.name, judge(&study));
        }
        Some(Reproduction { paper, rows, details: Details::Streaming(shipped) })
    }

    fn rows(&self, claims: Vec<Claim>, quantities: &[Quantity]) -> Vec<ClaimRow> {
        let row = |claim: Claim| {
            let own = quantities.iter().filter(|quantity| quantity.claim == claim.id).cloned().collect();
            ClaimRow { claim, seeds: self.seeds, quantities: own, under: Vec::new() }
        };
        claims.into_iter().map(row).collect()
    }

    fn add(&self, rows: &mut [ClaimRow], variant: &'static str, claims: Vec<Claim>) {
        for (row, claim) in rows.iter_mut().zip(claims) {
            let (verdict, holding) = (claim.verdict(), claim.holding());
            row.under.push(Under { variant, seeds: self.variant_seeds(), verdict, holding });
        }
    }
}
