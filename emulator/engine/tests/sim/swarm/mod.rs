//! A seed draws everything: cluster or topology, policy, load, delay and its correlation, loss, duplication,
//! reordering, rate and buffer, crashes, partitions, pauses, bursts. The faults heal; then every job must have
//! finished exactly once and the books must close.
//!
//! `VOLARY_SWARM_SEEDS=5000 cargo test -p volary-engine --test sim swarm` looks further; `VOLARY_SWARM_SEED=17` replays
//! one.

mod draw;
mod faults;

use std::panic::catch_unwind;

use crate::common::run;
use draw::experiment;

fn check(seed: u64) {
    let text = experiment(seed);
    eprintln!("seed {seed}\n{text}");
    let measured = run(&text).remove(0);
    let summary = &measured.summary;
    let (jobs, tasks, copies) = (summary.jobs, summary.tasks, summary.copies);
    assert_eq!(jobs.submitted, jobs.finished + jobs.failed + jobs.unfinished, "{text}");
    assert_eq!(copies.started, copies.finished + copies.preempted + copies.lost, "{text}");
    assert_eq!(
        jobs.unfinished + jobs.failed,
        0,
        "every fault heals, so every job can finish\n{text}{measured:#?}"
    );
    assert_eq!(tasks.submitted, tasks.finished, "{text}");
    if seed.is_multiple_of(10) {
        let again = run(&text).remove(0);
        let hashes = [summary, &again.summary].map(|summary| &summary.engine.order_hash);
        assert_eq!(hashes[0], hashes[1], "the same seed, another order\n{text}");
    }
    assert_eq!(measured.jobs.len() as u64, jobs.submitted);
}

/// Seeds of one part in four: `VOLARY_SWARM_SEEDS` in all, or the single `VOLARY_SWARM_SEED` in the first part.
fn check_part(part: u64) {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let all = number("VOLARY_SWARM_SEEDS").unwrap_or(2000);
    let seeds = match number("VOLARY_SWARM_SEED") {
        Some(seed) if part == 0 => seed..seed + 1,
        Some(_) => 0..0,
        None => part * all / 4..(part + 1) * all / 4,
    };
    let failed: Vec<u64> = seeds.filter(|&seed| catch_unwind(|| check(seed)).is_err()).collect();
    assert!(failed.is_empty(), "replay with VOLARY_SWARM_SEED=N; seeds that failed: {failed:?}");
}

#[test]
fn every_job_finishes_exactly_once_first_quarter() {
    check_part(0);
}

#[test]
fn every_job_finishes_exactly_once_second_quarter() {
    check_part(1);
}

#[test]
fn every_job_finishes_exactly_once_third_quarter() {
    check_part(2);
}

#[test]
fn every_job_finishes_exactly_once_last_quarter() {
    check_part(3);
}
