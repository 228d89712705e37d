//! Tests of relaxations: comparison with microlp, warm starts, limits, and problems with many ties.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

mod common;

use common::{Instance, Random, Shape, file, random, random_job, read};
use microlp::{ComparisonOp, OptimizationDirection};
use volary_lp::{Basis, Block, Job, Problem, Relaxed, Start, Work, relax, round};

const EXACT: Work = Work { pivots: 20_000, ruins: 100, gap: 0.0 };

/// Sizes of a medium cluster with pending jobs, running jobs and several sets.
const MIDDLE: Shape = Shape { jobs: 30, running: 6, slots: 8, sets: 4, starts: 8, tasks: 6, values: 40 };

/// Optimum of the relaxation as microlp computes it.
fn oracle(problem: &Problem) -> f64 {
    let slots = problem.slots();
    let mut program = microlp::Problem::new(OptimizationDirection::Maximize);
    let mut rows = vec![Vec::new(); problem.capacity().len()];
    for job in problem.jobs() {
        let mut group = Vec::new();
        for block in &job.blocks {
            for start in &block.starts {
                for &set in &block.sets {
                    let share = program.add_var(start.utility, (0.0, f64::INFINITY));
                    group.push((share, 1.0));
                    let first = set as usize * slots;
                    for (slot, demand) in (start.slot as usize..slots).zip(&block.demand) {
                        rows[first + slot].push((share, f64::from(job.tasks) * demand));
                    }
                }
            }
        }
        program.add_constraint(&group, ComparisonOp::Le, 1.0);
    }
    for job in problem.running() {
        let share = program.add_var(-job.price, (0.0, 1.0));
        for (set, &tasks) in job.tasks.iter().enumerate() {
            for (slot, demand) in job.demand.iter().enumerate() {
                rows[set * slots + slot].push((share, -f64::from(tasks) * demand));
            }
        }
    }
    for (row, &nodes) in rows.iter().zip(problem.capacity()) {
        program.add_constraint(row, ComparisonOp::Le, nodes);
    }
    program.solve().unwrap().into_solution().unwrap().objective()
}

/// Checks that a solution is feasible and its bound is above its value.
fn check(problem: &Problem, relaxed: &Relaxed, name: &str) {
    assert!(relaxed.value <= relaxed.bound + 1e-9 * (1.0 + relaxed.bound), "{name}: {relaxed:?}");
    assert!(relaxed.duals.iter().all(|dual| *dual >= 0.0), "{name}");
    let (mut shares, slots) = (relaxed.x.iter(), problem.slots());
    let mut load = vec![0.0; problem.capacity().len()];
    for job in problem.jobs() {
        let mut total = 0.0;
        for block in &job.blocks {
            for &set in &block.sets {
                for start in block.starts.iter().filter(|start| start.utility > 0.0) {
                    let share = *shares.next().unwrap();
                    assert!(share >= 0.0, "{name}");
                    total += share;
                    for (slot, demand) in (start.slot as usize..slots).zip(&block.demand) {
                        load[set as usize * slots + slot] += share * f64::from(job.tasks) * demand;
                    }
                }
            }
        }
        assert!(total <= 1.0 + 1e-9, "{name}");
    }
    for job in problem.running() {
        let share = *shares.next().unwrap();
        assert!((0.0..=1.0 + 1e-9).contains(&share), "{name}");
        for (set, &tasks) in job.tasks.iter().enumerate() {
            for (slot, demand) in job.demand.iter().enumerate() {
                load[set * slots + slot] -= share * f64::from(tasks) * demand;
            }
        }
    }
    for (load, nodes) in load.iter().zip(problem.capacity()) {
        assert!(*load <= nodes + 1e-9 * (1.0 + nodes), "{name}: {load} on {nodes}");
    }
}

/// Checks value and bound against the optimum.
fn check_optimum(problem: &Problem, relaxed: &Relaxed, optimum: f64, name: &str) {
    check(problem, relaxed, name);
    let scale = 1.0 + optimum;
    assert!(relaxed.value >= optimum - 1e-5 * scale, "{name}: value {}, optimum {optimum}", relaxed.value);
    assert!(relaxed.value <= optimum + 1e-6 * scale, "{name}: value {}, optimum {optimum}", relaxed.value);
    assert!(
        (relaxed.bound - optimum).abs() <= 1e-6 * scale,
        "{name}: bound {}, optimum {optimum}",
        relaxed.bound
    );
}

#[test]
fn microlp_finds_the_same_optimum() {
    let mut numbers = Random(3);
    let mut tight = 0;
    for case in 0..300 {
        let shape = Shape { values: [4, 40, 1_000][case % 3], ..MIDDLE };
        let problem = random(&mut numbers, &shape);
        let relaxed = relax(&problem, None, EXACT);
        check_optimum(&problem, &relaxed, oracle(&problem), &format!("case {case}"));
        tight += u32::from(relaxed.duals.iter().any(|dual| *dual > 1e-6));
    }
    assert!(tight > 100, "only {tight} instances have a binding capacity");
}

/// The problem of the next cycle: a few jobs leave, arrive or change, and capacities change.
fn next(problem: &Problem, numbers: &mut Random, name: u64) -> Problem {
    let (slots, sets) = (problem.slots(), problem.sets());
    let mut jobs: Vec<Job> = problem.jobs().iter().filter(|_| numbers.below(10) > 0).cloned().collect();
    for job in &mut jobs {
        for start in job.blocks.iter_mut().flat_map(|block| &mut block.starts) {
            start.utility -= 0.01 * numbers.part(10);
        }
    }
    for arrival in 0..u64::from(numbers.below(5)) {
        jobs.push(random_job(numbers, name + arrival, slots as u32, sets as u32, &MIDDLE));
    }
    let mut change = |nodes: &f64| (nodes + 0.1 * numbers.part(10) - 0.05).max(0.0);
    let capacity = problem.capacity().iter().map(&mut change).collect();
    let running = problem.running().iter().filter(|_| numbers.below(10) > 0).cloned().collect();
    Problem::new(slots, capacity, jobs, running).unwrap()
}

#[test]
fn warm_starts_reach_the_cold_optimum() {
    let mut numbers = Random(4);
    let (mut cold_pivots, mut warm_pivots) = (0, 0);
    for sequence in 0..30 {
        let mut problem = random(&mut numbers, &MIDDLE);
        let mut basis = Basis::default();
        for cycle in 0..20 {
            let cold = relax(&problem, None, EXACT);
            let warm = relax(&problem, Some(&basis), EXACT);
            check_optimum(&problem, &warm, cold.bound, &format!("sequence {sequence}, cycle {cycle}"));
            cold_pivots += cold.pivots;
            warm_pivots += warm.pivots;
            basis = warm.basis;
            problem = next(&problem, &mut numbers, 2_000 + 10 * cycle);
        }
    }
    assert!(warm_pivots * 2 < cold_pivots, "{warm_pivots} warm and {cold_pivots} cold pivots");
}

#[test]
fn warm_starts_from_bases_of_other_problems_reach_the_optimum() {
    let mut numbers = Random(5);
    let problems: Vec<Problem> = (0..60).map(|_| random(&mut numbers, &MIDDLE)).collect();
    for pair in problems.windows(2) {
        let basis = relax(&pair[0], None, EXACT).basis;
        let (cold, warm) = (relax(&pair[1], None, EXACT), relax(&pair[1], Some(&basis), EXACT));
        check_optimum(&pair[1], &warm, cold.bound, "foreign basis");
    }
}

#[test]
fn an_optimal_basis_needs_no_pivot() {
    let mut numbers = Random(6);
    for _ in 0..50 {
        let problem = random(&mut numbers, &MIDDLE);
        let first = relax(&problem, None, EXACT);
        let again = relax(&problem, Some(&first.basis), EXACT);
        assert_eq!(again.pivots, 0);
        assert!((again.value - first.value).abs() <= 1e-9 * (1.0 + first.value));
    }
}

#[test]
fn every_limit_leaves_a_feasible_solution_below_its_bound() {
    let mut numbers = Random(7);
    for case in 0..10 {
        let problem = random(&mut numbers, &MIDDLE);
        let optimum = relax(&problem, None, EXACT);
        let basis = relax(&next(&problem, &mut numbers, 2_000), None, EXACT).basis;
        for pivots in 0..=optimum.pivots {
            for start in [None, Some(&basis)] {
                let relaxed = relax(&problem, start, Work { pivots, ..EXACT });
                let name = format!("case {case}, {pivots} pivots");
                check(&problem, &relaxed, &name);
                assert!(relaxed.pivots <= pivots && relaxed.bound >= optimum.value - 1e-9, "{name}");
                let plan = round(&problem, &relaxed, Work { ruins: 5, ..EXACT });
                assert!(plan.value <= relaxed.bound + 1e-9 && plan.excess(&problem) <= 1e-6, "{name}");
            }
        }
        for gap in [0.1, 0.01, 0.001] {
            let relaxed = relax(&problem, None, Work { gap, ..EXACT });
            check(&problem, &relaxed, "gap");
            assert!(
                relaxed.value >= (1.0 - gap) * relaxed.bound - 1e-5,
                "{} {}",
                relaxed.value,
                relaxed.bound
            );
        }
    }
}

#[test]
fn equal_arguments_give_equal_bits() {
    let bits = |values: &[f64]| values.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
    let mut numbers = Random(8);
    for _ in 0..20 {
        let problem = random(&mut numbers, &MIDDLE);
        let (first, second) = (relax(&problem, None, EXACT), relax(&problem.clone(), None, EXACT));
        assert_eq!(bits(&first.x), bits(&second.x));
        assert_eq!(bits(&first.duals), bits(&second.duals));
        assert_eq!(bits(&[first.value, first.bound]), bits(&[second.value, second.bound]));
        assert_eq!(first.basis, second.basis);
        assert_eq!(round(&problem, &first, EXACT), round(&problem, &second, EXACT));
    }
}

/// FNV-1a hash of the bits of all answers to the checked-in instances. It is the same on all machines and at all
/// optimization levels. A change of the method or its parameters changes it.
const BITS: u64 = 0x93d9_ab14_ca52_60cb;

#[test]
fn every_machine_gives_the_same_bits() {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut add = |bits: u64| hash = (hash ^ bits).wrapping_mul(0x0100_0000_01b3);
    for Instance { problem, .. } in read(include_str!("data/instances.txt")) {
        let relaxed = relax(&problem, None, Work::default());
        let plan = round(&problem, &relaxed, Work::default());
        relaxed.x.iter().chain(&relaxed.duals).for_each(|value| add(value.to_bits()));
        [relaxed.value, relaxed.bound, plan.value].iter().for_each(|value| add(value.to_bits()));
    }
    assert_eq!(hash, BITS, "{hash:#018x}");
}

/// A job with a start at each slot.
fn plain(name: u64, tasks: u32, sets: Vec<u32>, demand: Vec<f64>, utility: f64, slots: u32) -> Job {
    let starts = (0..slots).map(|slot| Start { slot, utility }).collect();
    Job { name, tasks, blocks: vec![Block { name: 0, sets, demand, starts }] }
}

#[test]
fn the_method_ends_when_every_ratio_test_ties() {
    // Equal jobs, equal utilities, whole capacities: every ratio test ties.
    for (jobs, nodes) in [(40, 5.0), (40, 0.0), (120, 7.0)] {
        let pending = (0..jobs).map(|name| plain(name, 1, vec![0, 1, 2], vec![1.0, 1.0], 1.0, 6)).collect();
        let problem = Problem::new(6, vec![nodes; 18], pending, Vec::new()).unwrap();
        // Each of three sets has room for three pairs of slots per node.
        let optimum = (jobs as f64).min(9.0 * nodes);
        let relaxed = relax(&problem, None, EXACT);
        assert!(relaxed.pivots < 2_000, "{} pivots", relaxed.pivots);
        check_optimum(&problem, &relaxed, optimum, "ties");
    }
}

#[test]
fn problems_without_content_have_empty_plans() {
    let jobs = || vec![plain(1, 2, vec![0], vec![1.0], 1.0, 3)];
    let cases = [
        ("no job", vec![1.0; 3], Vec::new(), 0.0),
        ("no capacity", vec![0.0; 3], jobs(), 0.0),
        ("no set", Vec::new(), Vec::new(), 0.0),
        ("no option", vec![1.0; 3], vec![Job { name: 1, tasks: 1, blocks: Vec::new() }], 0.0),
        ("no utility", vec![1.0; 3], vec![plain(1, 1, vec![0], vec![1.0], 0.0, 3)], 0.0),
        ("no demand", vec![0.0; 3], vec![plain(1, 1, vec![0], Vec::new(), 1.0, 3)], 1.0),
        ("no set to run on", vec![1.0; 3], vec![plain(1, 1, Vec::new(), vec![1.0], 1.0, 3)], 0.0),
        ("one job", vec![2.0; 3], jobs(), 1.0),
    ];
    for (name, capacity, jobs, value) in cases {
        let problem = Problem::new(3, capacity, jobs, Vec::new()).unwrap();
        let relaxed = relax(&problem, None, EXACT);
        check(&problem, &relaxed, name);
        assert!((relaxed.value - value).abs() < 1e-9 && (relaxed.bound - value).abs() < 1e-9, "{name}");
        let plan = round(&problem, &relaxed, EXACT);
        assert!((plan.value - value).abs() < 1e-9, "{name}: {plan:?}");
    }
}

/// Checks relaxation and rounding of instances whose optimum is known; returns the rounded plans' gaps.
fn check_instances(instances: &[Instance]) -> Vec<f64> {
    let gap = |instance: &Instance| {
        let Instance { name, problem, optimum } = instance;
        let relaxed = relax(problem, None, EXACT);
        check_optimum(problem, &relaxed, *optimum, name);
        let plan = round(problem, &relaxed, Work { ruins: 500, ..EXACT });
        assert!(plan.excess(problem) <= 1e-6, "{name}");
        1.0 - plan.value / relaxed.bound
    };
    instances.iter().map(gap).collect()
}

#[test]
fn checked_in_instances_reach_the_optimum_of_highs() {
    let gaps = check_instances(&read(include_str!("data/instances.txt")));
    assert_eq!(gaps.len(), 15);
    let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
    assert!(mean <= 0.025, "{mean}");
}

#[test]
#[ignore = "needs the instances that VOLARY_LP names"]
fn large_instances_reach_the_optimum_of_highs() {
    let single = ["30x12x1", "100x24x1", "200x24x1", "400x48x1", "100x24x4", "128x20x4", "200x24x4"];
    let gaps: Vec<f64> = single.iter().flat_map(|name| check_instances(&file(name))).collect();
    assert!(gaps.iter().sum::<f64>() / 7.0 <= 0.02, "{gaps:?}");
    assert_eq!(check_instances(&file("robust36")).len(), 36);
}

#[test]
#[ignore = "needs the instances that VOLARY_LP names"]
fn large_instances_in_sequence_start_warm() {
    let instances = file("seq128x20x4");
    assert_eq!(instances.len(), 40);
    let mut basis = Basis::default();
    let (mut pivots, mut gaps) = (0, 0.0);
    for (cycle, Instance { name, problem, optimum }) in instances.iter().enumerate() {
        let exact = relax(problem, Some(&basis), EXACT);
        check_optimum(problem, &exact, *optimum, name);
        let relaxed = relax(problem, Some(&basis), Work::default());
        check(problem, &relaxed, name);
        assert!(relaxed.value >= 0.999 * relaxed.bound - 1e-5, "{name}");
        let plan = round(problem, &relaxed, Work::default());
        assert!(plan.excess(problem) <= 1e-6, "{name}");
        gaps += 1.0 - plan.value / relaxed.bound;
        pivots += if cycle > 0 { relaxed.pivots } else { 0 };
        basis = relaxed.basis;
    }
    assert!(gaps / 40.0 <= 0.02, "{}", gaps / 40.0);
    assert!(pivots / 39 <= 400, "{pivots}");
}
