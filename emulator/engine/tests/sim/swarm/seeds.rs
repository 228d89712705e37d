//! The seeds that are tried.

use std::env::var;

/// A number in the environment.
pub(crate) fn number(name: &str) -> Option<u64> {
    var(name).ok().map(|text| text.parse().expect("a number"))
}

/// The first seed, which follows from the hash of the commit or is a constant.
pub(crate) fn first() -> u64 {
    let commit = var("VOLARY_SWARM_COMMIT").ok().filter(|commit| !commit.is_empty());
    commit.map_or(0, |commit| {
        let digits = commit.get(..8).and_then(|digits| u64::from_str_radix(digits, 16).ok());
        digits.expect("VOLARY_SWARM_COMMIT is the hash of a commit")
    })
}
