//! The claims' JSON, for `anabranch reproduce --json`.

use super::reproduction::{ClaimRow, Reproduction, Under};
use super::streaming::Quantity;
use super::verdict::{Finding, Outcome};
use serde_json::{Value, json};

/// A paper's rows. Field names are a contract: scripts depend on them.
pub fn rows(measured: &Reproduction) -> Value {
    let row = |row: &ClaimRow| {
        let claim = &row.claim;
        json!({
            "paper": measured.paper.name(),
            "id": claim.id,
            "claim": claim.claim,
            "criterion": claim.criterion,
            "seeds": row.seeds,
            "verdict": claim.verdict().word(),
            "findings_that_hold": claim.holding(),
            "why": row.why(),
            "findings": claim.findings.iter().map(finding).collect::<Vec<_>>(),
            "measured": row.quantities.iter().map(quantity).collect::<Vec<_>>(),
            "under": row.under.iter().map(under).collect::<Vec<_>>(),
            "depends_on": row.flips().map(|under| under.variant).collect::<Vec<_>>(),
        })
    };
    measured.rows.iter().map(row).collect()
}

fn finding(finding: &Finding) -> Value {
    json!({ "text": finding.text, "holds": finding.holds(), "decided": finding.outcome != Outcome::Undecided })
}

/// NaN and infinity become null.
fn quantity(quantity: &Quantity) -> Value {
    json!({
        "what": quantity.what,
        "paper": Some(quantity.paper).filter(|paper| !paper.is_empty()),
        "mean": quantity.ours.mean,
        "half_width": quantity.ours.half,
        "seeds": quantity.ours.count,
    })
}

fn under(under: &Under) -> Value {
    json!({
        "variant": under.variant,
        "seeds": under.seeds,
        "verdict": under.verdict.word(),
        "findings_that_hold": under.holding,
    })
}
