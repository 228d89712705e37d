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
    /// The text, a figure or a table of one of the papers that the experiments reproduce.
    Paper,
    /// The same of another paper: of a baseline, such as Hawk, LATE or Mantri, by its own authors.
    OtherPaper,
    /// Outputs that the authors of a paper published beside it: what they ran, which the text may describe otherwise.
    Outputs,
    /// A paper, of a number that a parameter of the experiment was fitted to: that it agrees shows nothing.
    Fitted,
    /// This project.
    #[default]
    Ours,
}

impl Origin {
    /// Whose statement it is.
    pub const fn whose(self) -> &'static str {
        match self {
            Self::Paper => "paper's text",
            Self::OtherPaper => "other papers' text",
            Self::Outputs => "authors' outputs",
            Self::Fitted => "fitted to a paper",
            Self::Ours => "ours",
        }
    }
}

/// Whose tolerance or band a claim of a paper is judged by.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Tolerance {
    /// The paper's: it states how far a number may be off, or a range.
    Paper,
    /// This project's.
    Ours,
}

/// Verdict on a claim. Of the verdicts on its parts the greatest decides.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Every comparison holds in every cell it applies to.
    Holds,
    /// Right direction, other size: every `check` holds, and a comparison with published numbers, of `size`, fails.
    OtherSize,
    /// A number it needs was not measured.
    NotTested,
    /// Some `check` fails.
    Fails,
}

/// A claim with its verdict: a line of `claims.jsonl`, and an element of the last line of `--json`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ClaimResult {
    /// The statement.
    pub says: String,
    /// Where it comes from.
    #[serde(default)]
    pub origin: Origin,
    /// Whose tolerance the claim is judged by, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tolerance: Option<Tolerance>,
    /// The verdict.
    pub verdict: Verdict,
    /// The numbers compared, by the text of the comparison and the cell, in the order of the sweep: `left` and
    /// `right`, or `along` a swept key, and whether it `holds`; `size` if published numbers are compared, which decide
    /// between `holds` and `other-size` only; with several seeds also the `half_width` of the 95 %
    /// interval of the difference, paired by seed, and whether that is `within_noise`; the `unit` of these (`s` or
    /// `share`; absent for plain numbers); `degraded` where a run that it looks at did not do what was asked;
    /// `injected` where one was injected into; `stand_in` where a generator stood in for a trace that was not found,
    /// on which only claims of ours are tested; `why` where the comparison is not judged, a list: what is missing, or
    /// into which of the runs interference was injected and not equally into the others.
    pub measured: Findings,
}

impl ClaimResult {
    /// Whether other seeds could well have given another verdict: some comparison that must hold for it is within the
    /// noise of its replications, or every comparison that it fails by is.
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

    /// Whether it rests on one seed, so that its noise is not known.
    pub fn is_of_one_seed(&self) -> bool {
        let judged = |numbers: &Value| numbers["holds"].is_boolean() && numbers.get("within_noise").is_none();
        self.verdict != Verdict::NotTested && self.measured.values().any(judged)
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

/// Verdicts on the claims of one origin. A claim counts once.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Tally {
    /// Claims that hold beyond noise, as far as that is known.
    pub holds: usize,
    /// Claims whose direction is right and whose size is another one, beyond noise.
    #[serde(default)]
    pub other_size: usize,
    /// Claims that fail beyond noise.
    pub fails: usize,
    /// Claims whose verdict is within noise, whichever it is.
    pub within_noise: usize,
    /// Claims that were not tested.
    pub not_tested: usize,
    /// Those of `holds` that are judged by a tolerance of this project, not of the paper.
    #[serde(default)]
    pub our_tolerance: usize,
    /// Claims of all verdicts but `not-tested` that rest on one seed, so that their noise is not known.
    #[serde(default)]
    pub one_seed: usize,
}

impl Tally {
    /// The verdicts on claims, by their origin.
    pub fn by_origin<'a>(claims: impl IntoIterator<Item = &'a ClaimResult>) -> BTreeMap<Origin, Self> {
        let mut tallies: BTreeMap<Origin, Self> = BTreeMap::new();
        for claim in claims {
            let tally = tallies.entry(claim.origin).or_default();
            tally.one_seed += usize::from(claim.is_of_one_seed());
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

    /// The two comparisons are a check and one with a published number: whether each holds, and is within noise.
    #[test]
    fn a_verdict_is_within_noise_if_the_comparisons_that_decide_it_are() {
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
    fn a_claim_counts_once_and_within_noise_counts_for_no_side() {
        let sure = claim(Verdict::Holds, [(false, true, false); 2]);
        let unsure = claim(Verdict::Holds, [(false, true, true); 2]);
        let tally = Tally::by_origin([&sure, &unsure])[&Origin::Paper];
        assert_eq!(tally, Tally { holds: 1, our_tolerance: 1, within_noise: 1, ..Tally::default() });
        assert_eq!(tally.claims(), 2);
        assert_eq!(tally.to_string(), "1 of 2 hold, 0 fail, 1 within noise, 0 not tested");
    }
}
