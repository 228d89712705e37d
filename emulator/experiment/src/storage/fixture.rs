//! Synthetic measurements and a manifest for the tests of files, tables and pages.

use serde_json::{Value, json};
use volary_engine::results::{
    Applied, Brief, CacheRow, Cell, CopyCounts, CopyEnd, CopyRow, CoreRow, Distribution, Engine, Injected,
    JobCounts, JobRow, JobTimes, LoadRow, Measured, MessageRow, Messages, SCHEMA, Summary, TaskCounts,
};

use super::manifest::{Manifest, RunState};

/// An injection by two hosts.
pub fn injected() -> Injected {
    let applied = |host: &str, cores: &str| Applied {
        host: host.into(),
        cores: cores.into(),
        from_s: 2.0,
        until_s: 4.5,
        ended: "its time was over".into(),
        cut: false,
        degraded: Some(0.25),
    };
    Injected {
        id: "00000000000000aa".into(),
        profile: [("bernoulli".to_owned(), json!({"slot": "100ms", "probability": 0.25, "slowdown": 4.0}))]
            .into(),
        seed: 12_345,
        targets: vec!["nodes:0-5".into()],
        hosts: vec![applied("h1", "0-1,3"), applied("h2", "4-5")],
    }
}

/// Deterministic pseudo-random draws in 0..1.
pub(crate) struct Draws(u64);

impl Draws {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as f64 / (1u64 << 31) as f64
    }
}

/// A run in which every response is `scale` times an exponential draw plus a start-up time. Equal seeds have equal
/// draws.
pub fn measured(policy: &str, cell: &[(&str, Value)], seed: u64, scale: f64, count: u32) -> Measured {
    let mut draws = Draws::new(seed);
    let jobs: Vec<JobRow> = (0..count)
        .map(|job| {
            let longest = 0.2 - (1.0 - draws.next()).ln();
            let response = scale * (longest + 0.05) * (1.0 + 9.0 * f64::from(draws.next() < 0.03));
            JobRow {
                job,
                arrival: f64::from(job) * 0.02,
                wait: (response - longest).max(0.0),
                response,
                longest,
                alone: None,
                tasks: 10,
                class: if job % 10 == 0 { "long" } else { "short" }.into(),
            }
        })
        .collect();
    let (timeline, bursts) = timeline(seed, scale);
    let summary = summary(policy, cell, seed, &jobs);
    let notes = vec![format!("{policy}: probes are sent twice per task")];
    let messages = messages(&timeline);
    Measured {
        summary,
        jobs,
        copies: timeline.clone(),
        sampled_one_in: 10,
        slow: Vec::new(),
        timeline,
        timeline_nodes: (0..8).map(|core| core / 2).collect(),
        messages,
        messages_left_out: 3,
        load: (0..20).map(load).collect(),
        bursts,
        looks: looks(seed),
        decisions: Vec::new(),
        deliveries: Vec::new(),
        cores: stretches(),
        notes,
    }
}

fn summary(policy: &str, cell: &[(&str, Value)], seed: u64, jobs: &[JobRow]) -> Summary {
    let responses: Vec<f64> = jobs.iter().map(|job| job.response).filter(|s| s.is_finite()).collect();
    let finished = responses.len() as u64;
    let submitted = jobs.len() as u64;
    let started = 12 * submitted;
    let by_kind = [("probe", 20), ("launch", 12), ("claim", 20), ("finished", 10), ("cancel", 2)];
    Summary {
        experiment: "paper/fig6".into(),
        policy: policy.into(),
        cell: cell.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect::<Cell>(),
        runtime: "virtual".into(),
        seed,
        jobs: JobCounts { submitted, finished, failed: 0, unfinished: submitted - finished },
        tasks: TaskCounts { submitted: 10 * submitted, finished: 10 * finished },
        copies: CopyCounts {
            started,
            finished: 10 * submitted,
            preempted: 2 * submitted,
            lost: 0,
            in_progress: 0,
            wasted_work_s: submitted as f64,
            in_progress_s: 0.0,
            busy_s: 11.0 * submitted as f64,
            suspensions: 3 * submitted,
            suspended_s: 0.5 * submitted as f64,
        },
        times: JobTimes {
            response_s: Distribution::of(responses),
            wait_s: Brief { mean: 0.02, p50: 0.01, p90: 0.1, p99: 0.2 },
            job_wait_s: Brief::of(jobs.iter().map(|job| job.wait)),
            bounded_slowdown: Brief::of(jobs.iter().filter_map(|job| job.bounded_slowdown(10.0))),
            slowdown: Brief { p50: 1.2, p99: 9.0, ..Brief::of(jobs.iter().filter_map(JobRow::slowdown)) },
            longest_s: Brief::of(jobs.iter().map(|job| job.longest)),
            over_10x: 0.05,
            unqueued: None,
        },
        makespan_s: 0.02 * submitted as f64,
        drain_s: 0.5,
        throughput_per_s: 2.0,
        utilization: 0.7,
        goodput: 0.6,
        messages: Messages {
            total: 64 * submitted,
            dropped: 3,
            recovery: 1,
            bytes: 80 * 64 * submitted,
            by_kind: by_kind.map(|(kind, each)| (kind.to_owned(), each * submitted)).into(),
        },
        engine: Engine {
            events: 1_000 * submitted,
            order_hash: format!("{seed:016x}"),
            cpu_s: 1.5,
            planning_cpu_s: None,
            wall_s: 1.6,
            peak_rss_bytes: 50_000_000,
        },
        ..Summary::default()
    }
}

/// Stretches of two cores that are 5 % slower than asked; one core is degraded at intervals.
fn stretches() -> Vec<CoreRow> {
    let stretch = |core: u32, i: u32| {
        let (start, asked) = (0.1 * f64::from(i), if core == 0 && i % 3 == 2 { 4.0 } else { 1.0 });
        CoreRow { core, start, end: start + 0.1, asked, had: 0.08, done: 0.08 / asked / 1.05 }
    };
    (0..2).flat_map(|core| (0..9).map(move |i| stretch(core, i))).collect()
}

/// Ten samples of the caches of two receivers.
fn looks(seed: u64) -> Vec<CacheRow> {
    let mut draws = Draws::new(seed ^ 0xfff);
    let look = |i: u32| {
        let (age, error) = (draws.next(), draws.next());
        CacheRow {
            time: f64::from(i / 2),
            receiver: i % 2,
            age,
            age_max: 2.0 * age,
            out_of_sync: 0.5,
            versions: 3.0,
            information: 2.0,
            error,
            bias: error - 0.5,
            error_max: 3.0 * error,
            in_flight: u64::from(i),
        }
    };
    (0..20).map(look).collect()
}

/// Degraded intervals: core, start, end and slowdown.
type Bursts = Vec<(u32, f64, f64, f64)>;

/// The timeline of ten seconds of eight cores, each degraded for about two of these seconds.
fn timeline(seed: u64, scale: f64) -> (Vec<CopyRow>, Bursts) {
    let mut draws = Draws::new(seed ^ 0xff);
    let (mut rows, mut bursts) = (Vec::new(), Vec::new());
    for core in 0..8 {
        bursts.extend(
            (0..10).filter(|_| draws.next() < 0.2).map(|s| (core, f64::from(s), f64::from(s) + 1.0, 10.0)),
        );
        let mut start = 0.0;
        while start < 10.0 {
            let end = start + scale * (0.05 + draws.next());
            let end_kind = match (10.0 * draws.next()) as u32 {
                0 => CopyEnd::Second,
                1 => CopyEnd::Preempted,
                2 => CopyEnd::Suspended,
                3 if draws.next() < 0.2 => CopyEnd::Lost,
                _ => CopyEnd::First,
            };
            rows.push(CopyRow {
                job: rows.len() as u32 / 4,
                task: core,
                attempt: 0,
                core,
                start,
                end,
                end_kind,
            });
            start = end + 0.1 * draws.next();
        }
    }
    (rows, bursts)
}

/// Two messages for every copy: its launch, and the report of its end. Each takes a millisecond. Nodes have two cores.
fn messages(timeline: &[CopyRow]) -> Vec<MessageRow> {
    let pair = |row: &CopyRow| {
        let (scheduler, node) = ("scheduler 0".to_owned(), format!("node {}", row.core / 2));
        let launch = MessageRow {
            sent: row.start - 0.001,
            delivered: row.start,
            from: scheduler.clone(),
            to: node.clone(),
            kind: "launch.row".into(),
            job: Some(row.job),
        };
        let (sent, delivered) = (row.end, row.end + 0.001);
        let kind = "launch.completed".into();
        [launch.clone(), MessageRow { sent, delivered, from: node, to: scheduler, kind, ..launch }]
    };
    let mut messages: Vec<_> = timeline.iter().flat_map(pair).collect();
    messages.sort_by(|a, b| a.delivered.total_cmp(&b.delivered));
    messages
}

fn load(sample: u32) -> LoadRow {
    LoadRow { time: 0.5 * f64::from(sample), waiting: u64::from(sample % 5), busy: sample % 9 }
}

/// A manifest for the runs `cells`.
pub fn manifest(cells: &[&str]) -> Manifest {
    Manifest {
        schema: SCHEMA,
        version: "0.1.0".into(),
        experiment: "paper/fig6".into(),
        title: "Latin square against Sparrow under interference".into(),
        source: Some("the paper, section VI, Fig. 6".into()),
        runtime: "virtual".into(),
        seed: 12_345,
        world: Vec::new(),
        loads: Vec::new(),
        spec: json!({"title": "Latin square", "cluster": {"nodes": 100}}),
        argv: vec!["volary".into(), "run".into(), "fig6.toml".into()],
        hosts: None,
        clock_error_s: None,
        injections: [].into(),
        runs: cells.iter().map(|&id| id.to_owned()).collect(),
        slices: None,
        origins: Vec::new(),
        state: RunState::Running,
        started: "2024-01-01T00:00:00Z".into(),
        ended: None,
    }
}
