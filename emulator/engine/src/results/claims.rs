//! Claims with their verdicts.

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Findings;

/// Origin of a claim. Verdicts are counted by origin because they answer different questions.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// The text, a figure or a table of one of the papers that the experiments reproduce.
    Paper,
    /// The text, a figure or a table of another paper, such as the paper on a baseline (Hawk, LATE, Mantri).
    OtherPaper,
    /// Outputs that the authors published beside a paper. The runs behind them may differ from those that the text
    /// describes.
    Outputs,
    /// A number of a paper to which a parameter of the experiment was fitted: agreement is no evidence.
    Fitted,
    /// This project's own statement.
    #[default]
    Ours,
}

impl Origin {
    /// Short name of the origin, for tables.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Paper => "the paper",
            Self::OtherPaper => "other papers",
            Self::Outputs => "authors' outputs",
            Self::Fitted => "fitted to a paper",
            Self::Ours => "ours",
        }
    }
}

/// Source of the tolerance or range that a claim of a paper is judged by.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Tolerance {
    /// The paper states a tolerance or a range.
    Paper,
    /// This project chose the tolerance.
    Ours,
}

/// Verdict on a claim: among the verdicts on its comparisons, the last in the order below.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Every comparison holds in every cell it applies to.
    Holds,
    /// Right direction, other size: every `check` holds, but a comparison with a published number (`size`) fails.
    OtherSize,
    /// A comparison could not be judged, for example because a number was not measured.
    NotTested,
    /// Some `check` fails.
    Fails,
}

impl Verdict {
    /// The verdict on one comparison; `is_size` for a comparison with a published number.
    pub const fn of(holds: Option<bool>, is_size: bool) -> Self {
        match holds {
            None => Self::NotTested,
            Some(true) => Self::Holds,
            Some(false) if is_size => Self::OtherSize,
            Some(false) => Self::Fails,
        }
    }

    /// The verdict within a sentence.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::OtherSize => "other size",
            Self::NotTested => "not tested",
            Self::Fails => "fails",
        }
    }
}

/// A claim with its verdict: a line of `claims.jsonl`, and an element of the last line of `--json`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ClaimResult {
    /// The statement of the claim, in words.
    pub says: String,
    /// Origin of the claim.
    #[serde(default)]
    pub origin: Origin,
    /// Source of the claim's tolerance, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tolerance: Option<Tolerance>,
    /// Verdict on the claim.
    pub verdict: Verdict,
    /// The numbers of each comparison, by its text and cell, in the order of the sweep: `left` and `right`, or `along`
    /// a swept key, and `holds`. `size` marks comparisons with published numbers, which decide only between `holds` and
    /// `other-size`. With several seeds, `half_width` is half the width of the 95 % interval of the difference, paired
    /// by seed, and `within_noise` says that chance could decide the comparison. `unit` is `s` or `share`, absent for
    /// plain numbers. `degraded` marks the use of a degraded run, `injected` the use of a run with injected
    /// interference. `stand_in` marks generated jobs in place of a missing trace. Such jobs decide only this project's
    /// claims; for other claims `on_generated` is the outcome of the comparison. `why` lists why a comparison is not
    /// judged: missing numbers, or unequal injections.
    pub measured: Findings,
}

impl ClaimResult {
    /// Whether other seeds could give another verdict: a comparison that the verdict needs to hold is within the noise
    /// of its replications, or all failed comparisons are.
    pub fn is_within_noise(&self) -> bool {
        let unsure = |numbers: &&Value| numbers["within_noise"] == true;
        let of = |size: bool| self.measured.values().filter(move |numbers| (numbers["size"] == true) == size);
        let fails_by_noise = |size: bool| {
            let failed = || of(size).filter(|numbers| numbers["holds"] == false);
            failed().next().is_some() && failed().all(|numbers| unsure(&numbers))
        };
        match self.verdict {
            Verdict::Holds => self.measured.values().any(|numbers| unsure(&numbers)),
            Verdict::OtherSize => of(false).any(|numbers| unsure(&numbers)) || fails_by_noise(true),
            Verdict::Fails => fails_by_noise(false),
            Verdict::NotTested => false,
        }
    }

    /// Whether the verdict rests on one seed, so that its noise is unknown.
    pub fn has_one_seed(&self) -> bool {
        let judged = |numbers: &Value| numbers["holds"].is_boolean() && numbers.get("within_noise").is_none();
        self.verdict != Verdict::NotTested && self.measured.values().any(judged)
    }

    /// The verdict on generated jobs in place of a missing trace. `None` for this project's own claims, and for claims
    /// with a comparison on other jobs.
    pub fn on_generated(&self) -> Option<Verdict> {
        let judged = self.measured.values().map(|numbers| {
            numbers["on_generated"].as_bool().map(|holds| Verdict::of(Some(holds), numbers["size"] == true))
        });
        judged.collect::<Option<Vec<_>>>()?.into_iter().max()
    }

    /// Whether a check was made on generated jobs because the trace was not found.
    pub fn has_stand_in(&self) -> bool {
        self.measured.values().any(|numbers| numbers["stand_in"] == true)
    }

    /// Whether the verdict rests on a degraded real-time run.
    pub fn is_degraded(&self) -> bool {
        self.rests_on("degraded")
    }

    /// Whether the verdict rests on runs into which interference was injected, equally into all compared runs.
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

/// Verdicts on the claims of one origin. Each claim is counted in exactly one of the first five fields.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Tally {
    /// Claims that hold, beyond noise where the noise is known.
    pub holds: usize,
    /// Claims with the right direction and another size, beyond noise where the noise is known.
    #[serde(default)]
    pub other_size: usize,
    /// Claims that fail, beyond noise where the noise is known.
    pub fails: usize,
    /// Claims whose verdict, of any kind, is within noise.
    pub within_noise: usize,
    /// Claims that were not tested.
    pub not_tested: usize,
    /// Part of `holds` that is judged by a tolerance of this project instead of the paper's.
    #[serde(default)]
    pub our_tolerance: usize,
    /// Tested claims that rest on one seed, so that their noise is unknown.
    #[serde(default)]
    pub one_seed: usize,
}

impl Tally {
    /// The verdicts on claims, by their origin.
    pub fn by_origin<'a>(claims: impl IntoIterator<Item = &'a ClaimResult>) -> BTreeMap<Origin, Self> {
        let mut tallies: BTreeMap<Origin, Self> = BTreeMap::new();
        for claim in claims {
            let tally = tallies.entry(claim.origin).or_default();
            tally.one_seed += usize::from(claim.has_one_seed());
            match claim.verdict {
                _ if claim.is_within_noise() => tally.within_noise += 1,
                Verdict::Holds => {
                    tally.holds += 1;
                    tally.our_tolerance += usize::from(claim.tolerance == Some(Tolerance::Ours));
                }
                Verdict::OtherSize => tally.other_size += 1,
                Verdict::Fails => tally.fails += 1,
                Verdict::NotTested => tally.not_tested += 1,
            }
        }
        tallies
    }

    /// The number of claims.
    pub const fn claims(&self) -> usize {
        self.holds + self.other_size + self.fails + self.within_noise + self.not_tested
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} hold", self.holds, self.claims())?;
        if self.other_size > 0 {
            write!(f, ", {} other size", self.other_size)?;
        }
        write!(f, ", {} fail", self.fails)?;
        if self.within_noise > 0 {
            write!(f, ", {} within noise", self.within_noise)?;
        }
        write!(f, ", {} not tested", self.not_tested)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn claim(verdict: Verdict, measured: [(bool, bool, bool); 2]) -> ClaimResult {
        let numbers = measured.iter().enumerate().map(|(i, &(size, holds, noise))| {
            (i.to_string(), json!({ "size": size, "holds": holds, "within_noise": noise }))
        });
        let (origin, tolerance) = (Origin::Paper, Some(Tolerance::Ours));
        ClaimResult { says: "s".into(), origin, tolerance, verdict, measured: numbers.collect() }
    }

    /// Each case has a check and a comparison with a published number, each written as (holds, within noise).
    #[test]
    fn a_verdict_is_within_noise_if_its_deciding_comparisons_are() {
        for (verdict, check, size, expected) in [
            (Verdict::Holds, (true, false), (true, true), true),
            (Verdict::OtherSize, (true, false), (false, false), false),
            (Verdict::OtherSize, (true, false), (false, true), true),
            (Verdict::OtherSize, (true, true), (false, false), true),
            (Verdict::Fails, (false, false), (false, true), false),
            (Verdict::Fails, (false, true), (false, false), true),
            (Verdict::NotTested, (true, true), (true, true), false),
        ] {
            let claim = claim(verdict, [(false, check.0, check.1), (true, size.0, size.1)]);
            assert_eq!(claim.is_within_noise(), expected, "{claim:?}");
        }
    }

    #[test]
    fn a_claim_within_noise_counts_neither_as_holding_nor_as_failing() {
        let sure = claim(Verdict::Holds, [(false, true, false); 2]);
        let unsure = claim(Verdict::Holds, [(false, true, true); 2]);
        let tally = Tally::by_origin([&sure, &unsure])[&Origin::Paper];
        assert_eq!(tally, Tally { holds: 1, our_tolerance: 1, within_noise: 1, ..Tally::default() });
        assert_eq!(tally.claims(), 2);
        assert_eq!(tally.to_string(), "1 of 2 hold, 0 fail, 1 within noise, 0 not tested");
    }
}
