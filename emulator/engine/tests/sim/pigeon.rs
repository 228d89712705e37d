//! Pigeon compared with its paper's analysis, and its cost in messages.

use volary_engine::results::Measured;

use crate::common::{one_task, run, with};

/// The probability that a task finds an idle worker among `workers` at load `rho`, equation 1: one minus Erlang's C.
fn task_unqueued(workers: u32, rho: f64) -> f64 {
    let load = f64::from(workers) * rho;
    // The sum of load^k / k! over load^n / n!, from its largest term on.
    let (mut term, mut sum) = (1.0, 0.0);
    for k in (1..=workers).rev() {
        term *= f64::from(k) / load;
        sum += term;
    }
    1.0 - 1.0 / (1.0 + (1.0 - rho) * sum)
}

/// The mean wait of a task, in task times, equation 2.
fn task_wait(workers: u32, rho: f64) -> f64 {
    (1.0 - task_unqueued(workers, rho)) / (f64::from(workers) * (1.0 - rho))
}

/// The share of jobs of `tasks` equal tasks that do not wait, equation 3.
fn equal_tasks_unqueued(workers: u32, rho: f64, tasks: i32) -> f64 {
    task_unqueued(workers, rho).powi(tasks)
}

/// The share of jobs of equal tasks that do not wait under Sparrow with two probes a task, equation 4.
fn sparrow_unqueued(rho: f64, tasks: u32) -> f64 {
    // The logarithm of C(2F, i).
    let (probes, mut choose, mut sum) = (2 * tasks, 0.0f64, 0.0);
    for idle in 0..=probes {
        if idle >= tasks {
            let busy = (probes - idle) as i32;
            sum += choose.exp() * (1.0 - rho).powi(idle as i32) * rho.powi(busy);
        }
        choose += f64::from(probes - idle).ln() - f64::from(idle + 1).ln();
    }
    sum
}

/// The share of jobs of exponential tasks that do not wait, equation 6.
fn job_unqueued(workers: u32, rho: f64) -> f64 {
    task_unqueued(workers, rho) * (-task_wait(workers, rho)).exp()
}

fn near(value: f64, expected: f64, what: &str) {
    assert!((value - expected).abs() <= 2e-5 * expected + 1e-6, "{what}: {value} instead of {expected}");
}

/// Equations 1, 2 and 6 of the paper hold.
#[test]
fn shares_and_waits_of_a_group_equal_equations_1_2_and_6() {
    for (workers, rho, task, wait, job) in [
        (50, 0.8, 0.913047, 0.008695, 0.905143),
        (50, 0.9, 0.636136, 0.072773, 0.591486),
        (100, 0.8, 0.980354, 0.000982, 0.979391),
        (100, 0.9, 0.783060, 0.021694, 0.766255),
        (200, 0.8, 0.998623, 0.000034, 0.998589),
    ] {
        near(task_unqueued(workers, rho), task, "equation 1");
        near(task_wait(workers, rho), wait, "equation 2");
        near(job_unqueued(workers, rho), job, "equation 6");
    }
}

/// Equations 3 and 4 of the paper hold.
#[test]
fn shares_of_equal_tasks_equal_equations_3_and_4() {
    for (tasks, rho, expected) in [
        (50, 0.4, 0.98324),
        (50, 0.5, 0.53980),
        (50, 0.6, 0.027099),
        (100, 0.4, 0.99832),
        (100, 0.5, 0.52817),
        (100, 0.6, 0.0026354),
    ] {
        near(sparrow_unqueued(rho, tasks), expected, "equation 4");
    }
    for (workers, tasks, rho, expected) in [
        (100, 50, 0.7, 0.97729),
        (100, 50, 0.8, 0.37080),
        (100, 50, 0.9, 4.895e-6),
        (100, 100, 0.7, 0.95510),
        (100, 100, 0.8, 0.13749),
        (200, 100, 0.8, 0.87128),
        (200, 100, 0.9, 4.90e-5),
    ] {
        let value = equal_tasks_unqueued(workers, rho, tasks);
        assert!((value - expected).abs() <= 1e-3 * expected, "equation 3: {value} instead of {expected}");
    }
}

fn messages(run: &Measured, kind: &str) -> u64 {
    let json = serde_json::to_value(&run.summary).unwrap();
    json["messages"]["by_kind"][kind].as_u64().unwrap_or(0)
}

/// F tasks over N masters cause at most min(F, N) messages with tasks. Each task causes three more messages: to run it,
/// with its result, and about an idle worker.
#[test]
fn a_job_causes_no_more_messages_than_the_formula() {
    for (tasks, masters) in [(3, 10), (10, 10), (95, 10)] {
        let set = format!("workload.synthetic.tasks={tasks}");
        let run = run(&with(&one_task(40, 2, "pigeon = { group = 4 }", ""), &[&set]));
        assert_eq!(messages(&run, "group.tasks"), masters.min(tasks));
        for kind in ["group.run", "launch.completed"] {
            assert_eq!(messages(&run, kind), tasks, "{kind}");
        }
        assert!(messages(&run, "group.idle") <= tasks);
        assert_eq!(run.summary.messages.recovery, 0);
    }
}

/// With a standby, the tasks of a crashed master run again after the peer timeout (5 s) and two round trips. Without a
/// standby a worker takes over. A master that restarts before that asks for the open tasks.
#[test]
fn a_crash_of_the_master_delays_jobs_and_loses_none() {
    let crash = |who: &str, lasting: &str| {
        format!("[[network.fault]]\ncrash = {{ who = [{who}], at = \"1.005s\"{lasting} }}")
    };
    for (policy, faults, longest) in [
        ("pigeon = { standby = true }", crash("\"master:0\"", ""), 1.0 + 5.0 + 0.05),
        ("pigeon = { standby = true }", crash("\"masters\"", ""), 1.0 + 5.0 + 6.25 + 0.1),
        ("pigeon = {}", crash("\"masters\"", ""), 1.0 + 5.0 + 6.25 + 0.1),
        ("pigeon = {}", crash("\"masters\"", ", for = \"1s\""), 1.0 + 1.0 + 1.05),
        ("pigeon = { group = 4 }", crash("\"masters\"", ", for = \"1s\""), 1.0 + 1.0 + 1.05),
    ] {
        let run = run(&one_task(8, 1, policy, &faults));
        let (jobs, response) = (run.summary.jobs, run.jobs[0].response);
        assert_eq!((jobs.finished, jobs.submitted), (1, 1), "{policy}, {faults}");
        assert!(response <= longest, "{policy}, {faults}: {response} s, at most {longest}");
    }
}

/// The master of two nodes is down for good, and a node becomes master. The other node crashes and comes back, or is
/// cut off. Then the first node crashes for good. Both orders are tried, since the new master is random.
#[test]
fn a_worker_that_is_master_takes_back_nodes_that_it_had_given_up() {
    let world = |faults: String| {
        format!(
            r#"
            seed = 5
            [cluster]
            nodes = 2
            cores = 1
            schedulers = 2
            [workload.synthetic]
            jobs = 60
            tasks = 2
            interarrival = "2s"
            [service]
            demand = "1500ms"
            [network]
            one_way = "10ms"
            [[network.fault]]
            crash = {{ who = ["masters"], at = "1s" }}
            {faults}
            [[policy]]
            pigeon = {{}}
            "#
        )
    };
    for (gone, then) in [(0, 1), (1, 0)] {
        let left = format!(
            r#"[[network.fault]]
            crash = {{ who = ["node:{gone}"], at = "20s", for = "15s" }}
            [[network.fault]]
            crash = {{ who = ["node:{then}"], at = "60s" }}"#
        );
        let cut = format!(
            r#"[[network.fault]]
            partition = {{ a = ["node:{gone}"], b = ["node:{then}", "schedulers"], at = "2s", for = "30s" }}
            [[network.fault]]
            crash = {{ who = ["node:{then}"], at = "60s" }}"#
        );
        for faults in [left, cut] {
            let run = run(&world(faults.clone()));
            assert_eq!(run.summary.jobs.finished, 60, "{faults}");
        }
    }
}

/// Jobs have one task on one group. The share of jobs that do not wait, and the mean wait, equal those of M/M/n.
#[test]
fn single_tasks_wait_as_in_an_m_m_n_queue() {
    let text = r#"
        seed = 9
        [cluster]
        nodes = 10
        [workload.synthetic]
        jobs = 200_000
        tasks = 1
        interarrival = { exponential = { mean = "12500us" } }
        [service]
        demand = { exponential = { mean = "100ms" } }
        [network]
        one_way = "0s"
        [[policy]]
        pigeon = { group = 10, reserved = 0.0 }
        "#;
    let run = run(text);
    let waited = run.jobs.iter().filter(|job| job.response - job.longest > 1e-6).count();
    let unqueued = 1.0 - waited as f64 / run.jobs.len() as f64;
    let (expected, wait) = (task_unqueued(10, 0.8), 0.1 * task_wait(10, 0.8));
    assert!((unqueued - expected).abs() < 0.02 * expected, "{unqueued} instead of {expected}");
    let mean = run.summary.times.wait_s.mean;
    assert!((mean - wait).abs() < 0.06 * wait, "{mean} s instead of {wait} s");
}
