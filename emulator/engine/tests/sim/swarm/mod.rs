//! Drawn worlds: a seed draws cluster or topology, policy, load, delay and its correlation, loss, duplication,
//! reordering, rate and buffer, crashes, partitions, pauses, bursts. The faults heal; then every job must have
//! finished exactly once and the accounts must balance.
//!
//! The seeds follow from the commit, `VOLARY_SWARM_COMMIT`, so that every push tries others. `VOLARY_SWARM_SEEDS=5000
//! cargo test -p volary-engine --test sim swarm` tries more; `VOLARY_SWARM_SEED=17` repeats one.

mod draw;
mod faults;
mod parameters;

use std::env::var;
use std::panic::catch_unwind;

use crate::common::run;
use draw::experiment;

/// Seeds that are tried, in two tests that run at once.
const SEEDS: u64 = 300;

fn check(seed: u64) {
    let text = experiment(seed);
    eprintln!("seed {seed}\n{text}");
    let measured = run(&text);
    let summary = &measured.summary;
    let (jobs, tasks, copies) = (summary.jobs, summary.tasks, summary.copies);
    assert_eq!(
        jobs.submitted, jobs.finished,
        "every fault heals, so every job finishes\n{text}{measured:#?}"
    );
    assert_eq!((jobs.unfinished, jobs.failed), (0, 0), "{text}");
    assert_eq!(copies.started, copies.finished + copies.preempted + copies.lost, "{text}");
    assert_eq!(tasks.submitted, tasks.finished, "{text}");
    assert_eq!(measured.jobs.len() as u64, jobs.submitted);
    if seed.is_multiple_of(10) {
        let again = run(&text).summary.engine.order_hash;
        assert_eq!(summary.engine.order_hash, again, "the same seed, another order\n{text}");
    }
}

/// The first seed: from the hash of the commit, or always the same one.
fn first() -> u64 {
    let commit = var("VOLARY_SWARM_COMMIT").ok().filter(|commit| !commit.is_empty());
    commit.map_or(0, |commit| {
        let digits = commit.get(..8).and_then(|digits| u64::from_str_radix(digits, 16).ok());
        digits.expect("VOLARY_SWARM_COMMIT is the hash of a commit")
    })
}

/// Tries every other seed from the first or second on: `VOLARY_SWARM_SEEDS` in all, or the single `VOLARY_SWARM_SEED`.
fn check_half(half: u64) {
    let number = |name: &str| var(name).ok().map(|text| text.parse::<u64>().unwrap());
    let (first, count) = number("VOLARY_SWARM_SEED")
        .map_or_else(|| (first(), number("VOLARY_SWARM_SEEDS").unwrap_or(SEEDS)), |seed| (seed, 1));
    let seeds = (first + half..first + count).step_by(2);
    let failed: Vec<_> = seeds.filter(|&seed| catch_unwind(|| check(seed)).is_err()).collect();
    let repeat = |seed| format!("VOLARY_SWARM_SEED={seed} cargo test -p volary-engine --test sim swarm");
    let commands: Vec<_> = failed.into_iter().map(repeat).collect();
    assert!(commands.is_empty(), "{} seeds failed; to repeat one:\n{}", commands.len(), commands.join("\n"));
}

#[test]
fn every_job_finishes_exactly_once() {
    check_half(0);
}

#[test]
fn every_job_finishes_exactly_once_under_the_other_seeds() {
    check_half(1);
}
