//! Claims with their verdicts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Findings;

/// Verdict on a claim.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Every comparison holds in every cell it applies to.
    Holds,
    /// Some comparison fails.
    Fails,
    /// A number it needs was not measured.
    NotTested,
}

/// A claim with its verdict, as the last line of `--json` lists them.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ClaimResult {
    /// The statement.
    pub says: String,
    /// The verdict.
    pub verdict: Verdict,
    /// The numbers compared, by the text of the comparison and the cell, in the order of the sweep: `left` and
    /// `right`, or `along` a swept key, and whether it `holds`; with several seeds also the `half_width` of the 95 %
    /// interval of the difference, paired by seed, and whether that is `within_noise`; `degraded` where a run that
    /// it looks at did not do what was asked, or was injected into.
    pub measured: Findings,
}

impl ClaimResult {
    /// Whether other seeds could well have given the other verdict: some comparison of a claim that holds is
    /// within the noise of its replications, or every comparison that makes it fail is.
    pub fn is_within_noise(&self) -> bool {
        let unsure = |numbers: &Value| numbers["within_noise"] == true;
        let failed = || self.measured.values().filter(|numbers| numbers["holds"] == false);
        match self.verdict {
            Verdict::Holds => self.measured.values().any(unsure),
            Verdict::Fails => failed().next().is_some() && failed().all(unsure),
            Verdict::NotTested => false,
        }
    }

    /// Whether the verdict rests on a real-time run that did not do what was asked, or was injected into.
    pub fn is_degraded(&self) -> bool {
        self.verdict != Verdict::NotTested
            && self.measured.values().any(|numbers| numbers["degraded"] == true)
    }
}

/// The last line of `--json` and of `summary.jsonl`, when the experiment has claims.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClaimsLine {
    /// Every claim with its verdict.
    pub claims: Vec<ClaimResult>,
}
