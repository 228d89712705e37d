//! The example of 3Sigma (Park's thesis, Fig. 4.5): two jobs, one node, slots of 2.5 minutes.

use volary_lp::{Block, Job, Problem, Start, Work, relax, round};

/// An SLO job with a deadline after 15 minutes, and a best-effort job whose utility falls from 0.2 to 0 over the
/// window.
fn problem(slo: &[f64], demand: &[f64]) -> Problem {
    let job = |name, starts: Vec<Start>| {
        let block = Block { name: 0, sets: vec![0], demand: demand.to_vec(), starts };
        Job { name, tasks: 1, blocks: vec![block] }
    };
    let starts = |utility: &dyn Fn(u32) -> f64| {
        (0..8).map(|slot| Start { slot, utility: utility(slot) }).collect::<Vec<_>>()
    };
    let slo = starts(&|slot| slo[slot as usize]);
    let best_effort = starts(&|slot| 0.2 * (1.0 - f64::from(slot) / 8.0));
    let jobs = vec![job(1, slo), job(2, best_effort)];
    Problem::new(8, vec![1.0; 8], jobs, Vec::new()).expect("the example is valid")
}

/// Checks the slots of both jobs in the plan, and its value.
fn check(problem: &Problem, slots: [u32; 2], value: f64) {
    let plan = round(problem, &relax(problem, None, Work::default()), Work::default());
    assert_eq!(plan.choices.iter().map(|choice| choice.slot).collect::<Vec<_>>(), slots);
    assert!((plan.value - value).abs() < 1e-9, "{plan:?}");
}

#[test]
fn a_job_of_uncertain_length_goes_before_best_effort() {
    // Runtimes are uniform on (0, 10).
    let slo = [1.0, 1.0, 1.0, 0.75, 0.5, 0.25, 0.0, 0.0];
    check(&problem(&slo, &[1.0, 0.75, 0.5, 0.25]), [0, 4], 1.1);
}

#[test]
fn a_job_of_certain_length_waits() {
    // Runtimes are uniform on (2.5, 7.5).
    let slo = [1.0, 1.0, 1.0, 1.0, 0.5, 0.0, 0.0, 0.0];
    check(&problem(&slo, &[1.0, 1.0, 0.5]), [3, 0], 1.2);
}

/// Each of five equal jobs has more tasks than preferred nodes. The relaxed solution starts most of each job there at
/// once, which no plan can do. Nodes are idle, so one job must start at once.
#[test]
fn a_job_is_not_put_off_while_nodes_are_idle() {
    let starts: Vec<Start> =
        (0..20).map(|slot| Start { slot, utility: 0.01 * (1.0 - f64::from(slot) / 20.0) }).collect();
    let block = |name, sets: &[u32], demand: &[f64]| Block {
        name,
        sets: sets.to_vec(),
        demand: demand.to_vec(),
        starts: starts.clone(),
    };
    let job = |(name, preferred): (u64, [u32; 3])| {
        let preferred = block(0, &preferred, &[1.0, 0.47, 0.11, 0.03]);
        let any = block(1, &[0, 1, 2, 3], &[1.0, 0.55, 0.31, 0.11, 0.07, 0.01]);
        Job { name, tasks: 50, blocks: vec![preferred, any] }
    };
    let preferred = [[0, 1, 3], [0, 1, 2], [0, 1, 2], [0, 2, 3], [0, 1, 3]];
    let jobs = (1..).zip(preferred).map(job).collect();
    let problem = Problem::new(20, vec![16.0; 80], jobs, Vec::new()).expect("the example is valid");
    let plan = round(&problem, &relax(&problem, None, Work::default()), Work::default());
    assert!(plan.choices.iter().any(|choice| choice.slot == 0), "{plan:?}");
}
