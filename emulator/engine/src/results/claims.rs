//! Claims with their verdicts.

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Findings;

/// Where a claim comes from: verdicts on different origins answer different questions, and are counted apart.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// The text, a figure or a table of a paper.
    Paper,
    /// Outputs that the authors of a paper published beside it: what they ran, which the text may describe otherwise.
    Outputs,
    /// This project.
    #[default]
    Ours,
}

impl Origin {
    /// Whose statement it is.
    pub const fn whose(self) -> &'static str {
        match self {
            Self::Paper => "paper's text",
            Self::Outputs => "authors' outputs",
            Self::Ours => "ours",
        }
    }
}

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

/// A claim with its verdict: a line of `claims.jsonl`, and an element of the last line of `--json`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ClaimResult {
    /// The statement.
    pub says: String,
    /// Where it comes from.
    #[serde(default)]
    pub origin: Origin,
    /// The verdict.
    pub verdict: Verdict,
    /// The numbers compared, by the text of the comparison and the cell, in the order of the sweep: `left` and
    /// `right`, or `along` a swept key, and whether it `holds`; with several seeds also the `half_width` of the 95 %
    /// interval of the difference, paired by seed, and whether that is `within_noise`; the `unit` of these (`s` or
    /// `share`; absent for plain numbers); `degraded` where a run that it looks at did not do what was asked;
    /// `injected` where one was injected into; `stand_in` where a generator stood in for a trace that was not found,
    /// on which only claims of ours are tested; `why` where the comparison is not judged, a list: what is missing, or
    /// into which of the runs interference was injected and not equally into the others.
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

    /// Whether a check was made on generated jobs because the trace was not found.
    pub fn has_stand_in(&self) -> bool {
        self.measured.values().any(|numbers| numbers["stand_in"] == true)
    }

    /// Whether the verdict rests on a real-time run that did not do what was asked.
    pub fn is_degraded(&self) -> bool {
        self.rests_on("degraded")
    }

    /// Whether the verdict rests on runs into which interference was injected, equally into all that are compared.
    pub fn is_injected(&self) -> bool {
        self.rests_on("injected")
    }

    fn rests_on(&self, mark: &str) -> bool {
        self.verdict != Verdict::NotTested && self.measured.values().any(|numbers| numbers[mark] == true)
    }
}

/// The last line of `--json`, when the experiment has claims.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClaimsLine {
    /// Every claim with its verdict.
    pub claims: Vec<ClaimResult>,
    /// Verdicts by the origin of the claim.
    #[serde(default)]
    pub tallies: BTreeMap<Origin, Tally>,
}

/// Verdicts on the claims of one origin.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Tally {
    /// Claims that hold.
    pub holds: usize,
    /// Claims that fail.
    pub fails: usize,
    /// Claims that were not tested.
    pub not_tested: usize,
    /// Claims that hold or fail within noise, which are in `holds` or `fails` too.
    pub within_noise: usize,
}

impl Tally {
    /// The verdicts on claims, by their origin.
    pub fn by_origin<'a>(claims: impl IntoIterator<Item = &'a ClaimResult>) -> BTreeMap<Origin, Self> {
        let mut tallies: BTreeMap<Origin, Self> = BTreeMap::new();
        for claim in claims {
            let tally = tallies.entry(claim.origin).or_default();
            match claim.verdict {
                Verdict::Holds => tally.holds += 1,
                Verdict::Fails => tally.fails += 1,
                Verdict::NotTested => tally.not_tested += 1,
            }
            tally.within_noise += usize::from(claim.is_within_noise());
        }
        tallies
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { holds, fails, not_tested, within_noise } = self;
        write!(f, "{holds} of {} hold, {fails} fail, {not_tested} not tested", holds + fails + not_tested)?;
        match within_noise {
            0 => Ok(()),
            _ => write!(f, "; {within_noise} within noise"),
        }
    }
}
