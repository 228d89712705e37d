//! Comparability of runs by the interference that was injected into them.

use std::collections::BTreeMap;

use super::{Applied, Injected, Summary};
use volary_actors::base::CoreSet;

impl Injected {
    /// Whether one schedule could contain both injections: the same profile and seed on the same cores, from the same
    /// time until the same time. An injection that the end of its run cut short equals a longer injection.
    fn is_like(&self, other: &Self) -> bool {
        self.profile == other.profile
            && self.seed == other.seed
            && self.cores() == other.cores()
            && self.hosts.iter().all(|mine| other.hosts.iter().all(|theirs| mine.is_when(theirs)))
    }

    /// The cores of all hosts.
    fn cores(&self) -> CoreSet {
        let cores = self.hosts.iter().map(|applied| applied.cores.parse().unwrap_or_default());
        cores.fold(CoreSet::default(), |all, some| all.union(&some))
    }
}

impl Applied {
    /// Whether both injections began and ended at the same times, as far as both runs lasted.
    fn is_when(&self, other: &Self) -> bool {
        let goes_on = |cut: &Self, other: &Self| cut.cut && other.until_s >= cut.until_s;
        self.from_s == other.from_s
            && (self.until_s == other.until_s || goes_on(self, other) || goes_on(other, self))
    }
}

/// Names the first two runs of one seed into which interference was injected unequally, so that they cannot be
/// compared. `None` if there are no such runs.
pub fn unequal_injections<'a>(runs: impl IntoIterator<Item = &'a Summary>) -> Option<String> {
    let mut first: BTreeMap<u64, &Summary> = BTreeMap::new();
    for run in runs {
        let other = *first.entry(run.seed).or_insert(run);
        let (a, b) = (&other.injections, &run.injections);
        let whose = match (a.is_empty(), b.is_empty()) {
            _ if a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.is_like(b)) => continue,
            (false, true) => format!("into {} and not into {}", other.name(), run.name()),
            (true, false) => format!("into {} and not into {}", run.name(), other.name()),
            (_, _) => format!("differently into {} and into {}", other.name(), run.name()),
        };
        return Some(format!("interference was injected {whose}"));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(policy: &str, seed: u64, injections: &[Injected]) -> Summary {
        Summary { policy: policy.into(), seed, injections: injections.to_vec(), ..Summary::default() }
    }

    /// One injection: the cores of each host, from, until, and whether the end of the run cut it.
    fn injected(cores: &[&str], [from_s, until_s]: [f64; 2], cut: bool) -> Injected {
        let applied = |cores: &&str| Applied {
            host: "h".into(),
            cores: (*cores).into(),
            from_s,
            until_s,
            ended: String::new(),
            cut,
            degraded: None,
        };
        Injected {
            id: "1".into(),
            profile: [("scope".to_owned(), "core".into())].into(),
            seed: 7,
            targets: Vec::new(),
            hosts: cores.iter().map(applied).collect(),
        }
    }

    fn said(a: &[&Injected], b: &[&Injected]) -> Option<String> {
        let [a, b] = [a, b].map(|all| all.iter().copied().cloned().collect::<Vec<_>>());
        unequal_injections(&[run("a", 1, &a), run("b", 1, &b)])
    }

    #[test]
    fn runs_are_comparable_if_one_schedule_could_contain_their_injections() {
        let one = injected(&["0-3", "4-7"], [2.0, 5.0], false);
        assert_eq!(said(&[], &[]), None);
        assert_eq!(said(&[&one], &[&one]), None);
        let other = Injected { id: "2".into(), targets: vec!["nodes:0-7".into()], ..one.clone() };
        assert_eq!(said(&[&one], &[&other]), None, "the same cores, however they are called");
        let moved = injected(&["0-7"], [2.0, 5.0], false);
        assert_eq!(said(&[&one], &[&moved]), None, "one host has all cores");
        for (what, odd) in [
            ("some milliseconds later", injected(&["0-7"], [2.004, 5.0], false)),
            ("longer", injected(&["0-7"], [2.0, 5.1], false)),
            ("other cores", injected(&["0-6"], [2.0, 5.0], false)),
            ("another seed", Injected { seed: 8, ..one.clone() }),
            ("another profile", Injected { profile: BTreeMap::new(), ..one.clone() }),
        ] {
            let why = "interference was injected differently into a, seed 1 and into b, seed 1";
            assert_eq!(said(&[&one], &[&odd]).as_deref(), Some(why), "{what}");
        }
        assert!(said(&[&one, &one], &[&one]).is_some());
    }

    #[test]
    fn a_cut_injection_equals_a_longer_injection() {
        let whole = injected(&["0"], [2.0, 5.0], false);
        let cut = injected(&["0"], [2.0, 3.5], true);
        assert_eq!(said(&[&whole], &[&cut]), None);
        assert_eq!(said(&[&cut], &[&whole]), None);
        let never = injected(&["0"], [2.0, 2.0], true);
        assert_eq!(said(&[&whole], &[&never]), None, "the run was over before it began");
        assert!(said(&[&injected(&["0"], [2.0, 3.0], false)], &[&cut]).is_some(), "it ended while both ran");
    }

    #[test]
    fn seeds_are_compared_separately_and_the_run_without_an_injection_is_named() {
        let one = [injected(&["0"], [2.0, 5.0], false)];
        let runs = [run("a", 1, &one), run("b", 1, &one), run("a", 2, &[]), run("b", 2, &[])];
        assert_eq!(unequal_injections(&runs), None);
        let why = Some("interference was injected into b, seed 2 and not into a, seed 2".to_owned());
        assert_eq!(unequal_injections(&[run("a", 2, &[]), run("b", 2, &one)]), why);
        assert_eq!(unequal_injections(&[run("b", 2, &one), run("a", 2, &[])]), why);
    }
}
