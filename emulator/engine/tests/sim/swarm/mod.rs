//! Drawn experiments: a seed draws cluster or topology, policy and parameters, load, distributions of work and
//! arrivals, classes and stages, delays and their correlation, loss, duplication, reordering, rate and buffer, crashes,
//! partitions, pauses, bursts. The faults heal; then every job must have finished, and the checks of [`checks`] must
//! hold. One of the experiments that fail is shrunk and printed.
//!
//! The seeds follow from the commit, `VOLARY_SWARM_COMMIT`, so that every push tries new seeds.
//! `VOLARY_SWARM_SEEDS=5000 cargo test -p volary-engine --test sim swarm` tries more; `VOLARY_SWARM_SEED=17` repeats
//! one; `VOLARY_SWARM_POLICY=pigeon` skips the seeds that draw another policy.

mod checks;
mod draw;
mod edges;
mod faults;
mod inputs;
mod parameters;
mod seeds;
mod shrink;
mod survivors;

use std::cell::Cell;
use std::env::var;
use std::panic::{set_hook, take_hook};
use std::sync::Once;

pub(crate) use checks::{Again, Flaw, check, valid};
pub(crate) use draw::experiment;
use edges::at_edges;
pub(crate) use seeds::{first, number};
use shrink::smallest;

/// The folder of the topologies that are drawn.
const TOPOLOGIES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/sim/swarm/topologies");
/// Number of seeds that are tried, in two tests that run at once.
const SEEDS: u64 = 300;

/// The second execution of a seed, which costs as much as the first.
const fn again(seed: u64) -> Again {
    match seed % 8 {
        0 | 3 => Again::Replay,
        1 | 6 => Again::TwoShards,
        2 | 5 => Again::Hosts,
        7 => Again::SameSeed,
        _ => Again::Nothing,
    }
}

/// The error that the experiment of a seed shows, if any.
fn broken(text: &str, again: Again) -> Option<String> {
    match check(text, again) {
        Ok(()) => None,
        Err(Flaw::Broken(why)) => Some(why),
        Err(Flaw::Invalid(why)) => panic!("only experiments that can be run are drawn: {why}\n{text}"),
    }
}

/// Tries every second seed, from the first (`half` 0) or the second (1) on, of `VOLARY_SWARM_SEEDS` seeds or of the
/// single `VOLARY_SWARM_SEED`.
fn check_half(half: u64) {
    let (first, count) = number("VOLARY_SWARM_SEED")
        .map_or_else(|| (first(), number("VOLARY_SWARM_SEEDS").unwrap_or(SEEDS)), |seed| (seed, 1));
    let seeds = (first + half..first + count).step_by(2);
    let policy = var("VOLARY_SWARM_POLICY");
    let wanted = |text: &str| policy.as_ref().is_ok_and(|name| is_of(text, name)) || policy.is_err();
    let drawn = seeds.map(|seed| (seed, at_edges(seed))).filter(|(_, text)| wanted(text));
    let failed: Vec<_> = drawn.filter_map(|(seed, text)| Some((seed, broken(&text, again(seed))?))).collect();
    let Some((seed, why)) = failed.first() else { return };
    eprintln!("{}", at_edges(*seed));
    let fails = |text: &str| matches!(check(text, again(*seed)), Err(Flaw::Broken(_)));
    let small = quietly(|| smallest(&at_edges(*seed), fails));
    let command = |(seed, why): &(u64, String)| {
        let line = why.lines().next().unwrap_or_default();
        format!("VOLARY_SWARM_SEED={seed} cargo test -p volary-engine --test sim swarm # {line}")
    };
    let commands: Vec<_> = failed.iter().map(command).collect();
    panic!(
        "{} seeds failed, the first because: {why}\nThe smallest experiment found that fails:\n{small}\nTo repeat:\n{}",
        failed.len(),
        commands.join("\n")
    );
}

/// Whether an experiment is of a policy, however its table is written.
fn is_of(text: &str, policy: &str) -> bool {
    text.contains(&format!("\n{policy} = ")) || text.contains(&format!("[policy.{policy}]"))
}

thread_local! {
    static QUIET: Cell<bool> = const { Cell::new(false) };
}

/// Runs `work` without printing panics of this thread.
pub(crate) fn quietly<T>(work: impl FnOnce() -> T) -> T {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let shown = take_hook();
        set_hook(Box::new(move |panic| {
            if !QUIET.get() {
                shown(panic);
            }
        }));
    });
    QUIET.set(true);
    let done = work();
    QUIET.set(false);
    done
}

#[test]
fn every_job_finishes_exactly_once() {
    check_half(0);
}

#[test]
fn every_job_finishes_exactly_once_under_the_other_seeds() {
    check_half(1);
}
