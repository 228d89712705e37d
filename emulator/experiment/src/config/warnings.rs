//! Warnings about experiments that are valid but probably not intended.

use std::collections::BTreeSet;

use volary_actors::base::{JobId, Span, Time};
use volary_actors::catalog::Catalog;
use volary_actors::policies::Caches;
use volary_engine::cores::RunLength;
use volary_engine::scenario::{PolicyEntry, Resolved};
use volary_engine::workload::{Gossip, Workload, WorkloadSpec};
use volary_netem::FaultSpec;

use super::error::listed;
use super::file::{RunSection, RuntimeKind};
use crate::number;

/// Number of mean task durations above which a threshold is longer than most stragglers.
const LONG: f64 = 10.0;

/// The shortest slots of interference that real cores can follow in real time.
const SHORTEST_SLOT: Span = Span::from_millis(10);

/// Warnings about a policy in this world, with `classes` classes of jobs and tasks of `mean_task` seconds: the policy's
/// own remarks, and remarks that depend on the rest of the experiment.
pub(super) fn of_policy(
    entry: &PolicyEntry,
    world: &Resolved,
    classes: usize,
    mean_task: f64,
    (runtime, seed): (RuntimeKind, u64),
) -> Vec<String> {
    let remarks =
        entry.spec.remarks(&entry.spec.layout(world.cluster.under(&entry.spec).layout(seed)), classes);
    let named = remarks.into_iter().map(|remark| format!("policy `{}`: {remark}", entry.label()));
    let without = |key: Option<&str>, why: &str| {
        key.map(|key| format!("policy `{}`: {key} has no effect {why}", entry.label()))
    };
    let (traits, network) = (entry.spec.traits(), &world.network);
    let is_lossy = runtime == RuntimeKind::Hosts || network.expect_loss || network.loss.mean() > 0.0;
    let lossless = without(
        traits.lossless.filter(|_| is_lossy),
        "where datagrams can be lost, as between hosts and with network.loss; leave it out",
    );
    let oracle = traits.oracle.filter(|_| runtime != RuntimeKind::Virtual);
    let oracle = without(oracle, "in real time, where no actor has a view of all others; set another value");
    named.chain(of_patience(entry, mean_task)).chain(lossless).chain(oracle).collect()
}

/// Warns about a policy that inspects copies only after they have ended, and so does nothing in this world.
fn of_patience(entry: &PolicyEntry, mean: f64) -> Option<String> {
    let patience = entry.spec.traits().patience?.as_secs_f64();
    (patience > LONG * mean).then(|| {
        let times = number::short(patience / mean);
        let (name, patience, mean) = (entry.label(), number::seconds(patience), number::seconds(mean));
        format!(
            "policy `{name}` judges no copy before it has run for {patience}, and tasks take {mean} on average: it \
             helps only tasks that take over {times} times as long; shorten its times, or lower its `scale`"
        )
    })
}

/// Warns about slots that are too short for the interference on real cores.
pub(super) fn of_cores(world: &Resolved, run: &RunSection) -> Option<String> {
    run.burning()?;
    let slot = world.interference.as_ref()?.table.slot()?.as_secs_f64() / run.speed;
    (slot < SHORTEST_SLOT.as_secs_f64()).then(|| {
        format!(
            "interference comes in slots of {} of real time, and threads take turns every 2 ms: the achieved \
            interference will differ from the requested one; \
             make slots {} or longer, or lower run.speed",
            number::seconds(slot),
            number::seconds(SHORTEST_SLOT.as_secs_f64())
        )
    })
}

/// Warns about kinds in `service.sensitivity` that no interference of the experiment has.
pub(super) fn of_kinds(world: &Resolved) -> Option<String> {
    let injected = world.injections.iter().map(|injection| &injection.spec.profile);
    let all = injected.chain(world.interference.as_ref().map(|profile| &profile.table));
    let kinds: Vec<&str> = all.filter_map(|table| table.kind.as_deref()).collect();
    let suffers = world.service.sensitivity.values().flat_map(|kinds| kinds.keys());
    let missing: BTreeSet<&str> = suffers.map(String::as_str).filter(|kind| !kinds.contains(kind)).collect();
    (!missing.is_empty()).then(|| {
        format!(
            "service.sensitivity has no effect for {}, because no interference is of that kind; write \
             interference.kind, or the key `kind` of the profile",
            listed(missing)
        )
    })
}

/// Warns about faults that multiply delays, if no link has a delay.
pub(super) fn of_factors(world: &Resolved) -> Option<String> {
    let delayed = world.cluster.topology.is_some() || world.network.one_way.mean() > 0.0;
    let idle =
        |fault: &FaultSpec| matches!(fault, FaultSpec::Degrade(degrade) if degrade.delay_factor != 1.0);
    let at = world.network.fault.iter().position(idle).filter(|_| !delayed)?;
    Some(format!(
        "network.fault[{at}].degrade.delay_factor has no effect, because messages have no delay that it could \
         multiply; set network.one_way"
    ))
}

/// Mean work of a task, s: from the distributions of the workload, or over the jobs of a trace or generator; CPU-time
/// where nodes are shared.
pub(super) fn mean_task(world: &Resolved, jobs: &Workload) -> f64 {
    match (&world.workload, &world.service.demand) {
        (WorkloadSpec::Mix(mix), _) => mix.mean_work() / mix.mean_tasks(),
        (_, Some(demand)) => demand.mean(),
        (_, None) => jobs.total_work() / jobs.total_tasks() as f64,
    }
}

/// Bounds of the length of a run on cores of this capacity. The lower bound is the last arrival; the upper bound adds
/// the time to do all work and the longest critical path.
pub(super) fn run_length(world: &Resolved, jobs: &Workload, seed: u64) -> RunLength {
    if let Some(lasts) = world.workload.gossip().map(Gossip::lasts) {
        return RunLength { least: lasts, most: lasts };
    }
    let capacity = world.cluster.capacity(seed);
    let all = || (0..jobs.jobs()).map(JobId);
    let arrived = all().map(|job| jobs.job(job).arrival).max().unwrap_or(Time::ZERO).since(Time::ZERO);
    let longest = (0..jobs.chains()).map(|chain| jobs.critical_path(chain)).max().unwrap_or(Span::ZERO);
    let work = Span::from_secs_f64(jobs.total_work() / capacity);
    RunLength { least: arrived, most: arrived + longest + work }
}

/// Warns if all jobs arrive, or `until` ends the run, within the first period of snapshots.
pub(super) fn of_snapshots(entry: &PolicyEntry, run: RunLength, until: Option<Span>) -> Option<String> {
    let Caches::Snapshots { every, .. } = entry.spec.traits().caches else { return None };
    let last = until.map_or(run.least, |until| run.least.min(until));
    (every > last).then(|| {
        let [every, last] = [every, last].map(|span| number::seconds(span.as_secs_f64()));
        format!(
            "policy `{}`: a node sends a heartbeat every {every}, and all jobs arrive within {last}: schedulers decide \
             before the first heartbeat of some nodes, and the age of information omits these nodes; shorten `heartbeat`",
            entry.label()
        )
    })
}

/// Warns about classes of jobs without a job under the first seed.
pub(super) fn of_classes(jobs: &Workload, seed: u64) -> Option<String> {
    let empty = jobs.empty_classes();
    (jobs.chains() > 0 && !empty.is_empty()).then(|| {
        format!(
            "no job of seed {seed} is of class {}, which therefore has no results; see the cutoff, or the weights of classes",
            listed(empty)
        )
    })
}

/// Warns about a limit on the run that is reached before most jobs arrive.
pub(super) fn of_limit(until: Span, jobs: &Workload) -> Option<String> {
    let all = jobs.chains();
    let first = |chain| jobs.job(JobId(jobs.jobs_of(chain).start)).arrival.since(Time::ZERO);
    let arrived = (0..all).filter(|&chain| first(chain) <= until).count() as u32;
    (2 * arrived < all).then(|| {
        format!("run.until, {until}, ends the run before most jobs arrive: {arrived} of {all} arrive")
    })
}

/// Warns about a timeline that ends before the first job arrives.
pub(super) fn of_timeline(shown: Span, jobs: &Workload) -> Option<String> {
    let first = (0..jobs.jobs()).map(|job| jobs.job(JobId(job)).arrival).min()?.since(Time::ZERO);
    (shown > Span::ZERO && first >= shown).then(|| {
        let [first, shown] = [first, shown].map(|span| number::seconds(span.as_secs_f64()));
        format!(
            "the first job arrives after {first}, and timelines show the first {shown} of a run, so timelines are empty; lengthen \
             run.record.timeline"
        )
    })
}

/// Warns about faults and injections that begin when the run is over.
pub(super) fn of_disturbances(world: &Resolved, run: RunLength, until: Option<Span>) -> Vec<String> {
    let last = until.map_or(run.most, |until| run.most.min(until));
    let late = world.disturbances().filter(|&(_, at)| at > last);
    let says = |(key, at): (String, Span)| {
        let [at, last] = [at, last].map(|span| number::seconds(span.as_secs_f64()));
        format!("{key} begins after {at}, and the run should be over by {last}: give it an earlier `at`")
    };
    late.map(says).collect()
}

/// Warnings about a point before it is run, with remedies.
pub(super) fn of_world(world: &Resolved) -> impl Iterator<Item = String> {
    let silent = (world.network.loss.mean() >= 1.0).then(|| {
        "network.loss loses everything: no message ever arrives, and no job can finish; lower it, or for bursts set r, \
         the probability that a burst of losses ends, above 0"
            .to_owned()
    });
    let mut means: Vec<(String, f64)> = world
        .service
        .demand
        .iter()
        .map(|distribution| ("service.demand".to_owned(), distribution.mean()))
        .collect();
    let drawn = match &world.workload {
        WorkloadSpec::Synthetic(spec) => {
            means.push(("workload.synthetic.tasks".to_owned(), spec.tasks.mean()));
            Some(("workload.synthetic.interarrival", spec.jobs, &spec.interarrival))
        }
        WorkloadSpec::Mix(mix) => {
            for (key, stage) in mix.stages() {
                means.push((format!("{key}.demand"), stage.demand.mean()));
                means.push((format!("{key}.tasks"), stage.tasks.mean()));
            }
            Some(("workload.mix.interarrival", mix.jobs, &mix.interarrival))
        }
        WorkloadSpec::Trace(_)
        | WorkloadSpec::YahooLike(_)
        | WorkloadSpec::ClouderaLike(_)
        | WorkloadSpec::Gossip(_) => None,
    };
    means.extend(drawn.map(|(key, _, gap)| (key.to_owned(), gap.mean())));
    let at_once = drawn.filter(|(_, jobs, gap)| *jobs > 1 && gap.mean() == 0.0).map(|(key, ..)| {
        format!("{key} is always 0: all jobs arrive at once, and response times grow with the number of jobs")
    });
    let endless = means.into_iter().filter(|(_, mean)| mean.is_infinite()).map(|(key, _)| {
        format!(
            "{key} has no mean: a few draws decide every result, and other seeds give other results; cut its tail, or write a \
             shape above 1"
        )
    });
    silent.into_iter().chain(at_once).chain(endless).chain(divided(world))
}

/// Warns about a partition of a gossip group that lasts to the end of the run.
fn divided(world: &Resolved) -> Option<String> {
    let gossip = world.workload.gossip()?;
    let end = gossip.lasts();
    let lasts = |fault: &FaultSpec| matches!(fault, FaultSpec::Partition(of) if of.at + of.lasting >= end && of.at < end);
    let at = world.network.fault.iter().position(lasts)?;
    let (what, longer) = match &gossip.updates {
        Some(_) => ("coverage and ages", "workload.gossip.drain"),
        None => ("false deaths", "workload.gossip.duration"),
    };
    Some(format!(
        "network.fault[{at}], a partition, lasts to the end of the run: its two sides exchange no messages from then \
         on, which {what} include; end it earlier, or lengthen {longer}"
    ))
}

#[cfg(test)]
mod tests {
    use crate::config::{Experiment, Overrides};

    const TEXT: &str = r#"title = "t"
cluster.nodes = 1
workload.synthetic = { jobs = 3, tasks = 1, interarrival = "9s" }
service.demand = "1s"
interference.bernoulli = { slot = "50ms", probability = 0.1, slowdown = 2 }
run = { runtime = "local", real = {} }
[[policy]]
random = {}
"#;

    /// The warnings about an experiment on 100 nodes with one job of three stages of 10 s.
    fn of_stages(after: &str, more: &str) -> Vec<String> {
        let later = format!("{{ tasks = 1, demand = \"10s\"{after} }}");
        let stages = format!("[{{ tasks = 1, demand = \"10s\" }}, {later}, {later}]");
        let mix = format!(
            "workload.mix = {{ jobs = 1, interarrival = \"1s\", class = [{{ name = \"a\", weight = 1, stages = {stages} }}] }}"
        );
        let old =
            "workload.synthetic = { jobs = 3, tasks = 1, interarrival = \"9s\" }\nservice.demand = \"1s\"";
        let text = TEXT.replace(old, &mix).replace("nodes = 1", "nodes = 100") + more;
        Experiment::plan("t.toml", &text, &Overrides::default()).unwrap().warnings
    }

    #[test]
    fn the_expected_length_of_a_run_adds_up_dependent_stages() {
        let fault = "[[network.fault]]\npause = { who = [\"node:0\"], at = \"20s\", for = \"1s\" }\n";
        for (after, is_late) in [("", false), (", after = []", true)] {
            let found = of_stages(after, fault);
            assert_eq!(found.iter().any(|warning| warning.contains("begins after")), is_late, "{found:?}");
        }
    }

    #[test]
    fn a_claim_on_stages_gives_a_warning_if_no_stage_waits_for_another() {
        let claim = "[[claim]]\nsays = \"it shows\"\ncheck = [\"random.graphs.share > 0\"]\n";
        for (after, warns) in [("", false), (", after = [0]", false), (", after = []", true)] {
            let found = of_stages(after, claim);
            let why = "several stages, one of which waits for another";
            assert_eq!(found.iter().any(|warning| warning.contains(why)), warns, "{found:?}");
        }
    }

    #[test]
    fn unintended_settings_give_warnings() {
        let pareto = "{ pareto = { scale = \"1s\", shape = 0.9 } }";
        let (demand, gap) =
            (format!("service.demand={pareto}"), format!("workload.synthetic.interarrival={pareto}"));
        let late =
            "policy `late` judges no copy before it has run for 60.0\u{202f}s, and tasks take 1.00\u{202f}s";
        let short = "interference comes in slots of 9.00\u{202f}ms of real time, and threads";
        let slot = "interference.bernoulli.slot=9ms";
        for (policy, set, begins) in [
            ("random = {}", &[][..], None),
            ("random = {}", &[demand.as_str()], Some("service.demand has no mean")),
            ("random = {}", &[gap.as_str()], Some("workload.synthetic.interarrival has no mean")),
            (
                "random = {}",
                &["workload.synthetic.interarrival=0s"],
                Some("workload.synthetic.interarrival is always 0"),
            ),
            (
                "random = {}",
                &["network.loss={gilbert-elliott={p=0.1,r=0}}"],
                Some("network.loss loses everything"),
            ),
            (
                "random = {}",
                &["run.until=1ms"],
                Some("run.until, 1ms, ends the run before most jobs arrive: "),
            ),
            ("random = {}", &["run.until=20s"], None),
            (
                "random = {}",
                &["workload.synthetic.slo={share=1,slack=[0,1]}"],
                Some("workload.synthetic.slo.slack leaves "),
            ),
            ("random = {}", &["workload.synthetic.slo={share=1,slack=0.1}"], None),
            (
                "random = {}",
                &["workload.synthetic.deadline_slack=0"],
                Some("workload.synthetic.deadline_slack leaves 3 of 3 jobs no time"),
            ),
            (
                "random = {}",
                &["workload.synthetic.interarrival=11s"],
                Some("the first job arrives after 11.0\u{202f}s, and timelines show the first 10.0\u{202f}s"),
            ),
            (
                "random = {}",
                &["network.fault=[{pause={who=[\"node:0\"],at=\"8h\",for=\"1s\"}}]"],
                Some("network.fault[0] begins after 8.00\u{202f}h, and the run should be over by 31"),
            ),
            ("late = {}", &[], Some(late)),
            ("late = { scale = 0.01 }", &[], None),
            ("hadoop2 = {}", &[], None),
            (
                "3sigma = { shift = 0.2 }",
                &[],
                Some("policy `3sigma`: shift has no effect without estimates = \"normal\""),
            ),
            ("3sigma = { cov = 0.3 }", &[], Some("policy `3sigma`: cov has no effect without")),
            ("3sigma = { estimates = \"normal\", cov = 0.3 }", &[], None),
            ("random = {}", &[slot], Some(short)),
            ("random = {}", &[slot, "run.real.kernel=none"], None),
        ] {
            warned(policy, set, begins);
        }
    }

    #[test]
    fn a_partition_of_a_gossip_group_that_does_not_end_is_warned_about() {
        for (lasting, warns) in [("4s", false), ("6s", true)] {
            let text = format!(
                "title = \"g\"\ncluster.nodes = 3\nworkload.gossip = {{ updates.every = \"1s\", duration = \"10s\" }}\n\
                 [[network.fault]]\npartition = {{ a = [\"node:0\"], at = \"5s\", for = \"{lasting}\" }}\n\
                 [[policy]]\npush = {{}}\n"
            );
            let found = Experiment::plan("g.toml", &text, &Overrides::default()).unwrap().warnings;
            let why = "network.fault[0], a partition, lasts to the end of the run";
            assert_eq!(found.iter().any(|warning| warning.starts_with(why)), warns, "{found:?}");
        }
    }

    #[test]
    fn parameters_without_effect_in_a_runtime_are_warned_about() {
        let ranked = "murmuration = { order = \"srjf\", rank = \"job-left-oracle\" }";
        let rank = "policy `murmuration`: rank has no effect in real time, where no actor has a view of";
        warned(ranked, &[], Some(rank));
        warned(ranked, &["run.runtime=virtual"], None);
        let silent = "yaq-d = { silent = true }";
        warned(silent, &[], None);
        warned(
            silent,
            &["run.runtime=hosts"],
            Some("policy `yaq-d`: silent has no effect where datagrams can be lost"),
        );
    }

    /// Asserts that a policy with these keys gives one warning, which starts with `begins`; with `None`, that the
    /// policy gives no warning.
    fn warned(policy: &str, set: &[&str], begins: Option<&str>) {
        let overrides =
            Overrides { set: set.iter().map(|&set| set.to_owned()).collect(), ..Overrides::default() };
        let text = TEXT.replace("random = {}", policy);
        let found = Experiment::plan("t.toml", &text, &overrides).unwrap().warnings;
        assert_eq!(found.len(), usize::from(begins.is_some()), "{policy}: {found:?}");
        assert!(begins.is_none_or(|begins| found[0].starts_with(begins)), "{policy}: {found:?}");
    }

    #[test]
    fn claims_on_numbers_that_a_policy_never_has_are_warned_about() {
        let warnings = |policy: &str, check: &str| {
            let claim = format!("[[claim]]\nsays = \"it shows\"\ncheck = [\"{check}\"]\n");
            let text = TEXT.replace("random = {}", policy) + &claim;
            Experiment::plan("t.toml", &text, &Overrides::default()).unwrap().warnings
        };
        let claim = "the claim `it shows` cannot be tested";
        for (policy, check, why) in [
            ("sparrow = {}", "sparrow.response_s.p50 < 1", None),
            (
                "sparrow = {}",
                "1 < sparrow.staleness.version_age.p50",
                Some("`sparrow` keeps no caches, so its results have no `staleness.version_age.p50`"),
            ),
            ("murmuration = {}", "murmuration.staleness.version_age.p50 < 1", None),
            (
                "murmuration = {}",
                "murmuration.staleness.age_of_information_s.p50 < 1",
                Some("`murmuration` sends updates and no snapshots, so its results have no `staleness.age"),
            ),
            ("yaq-d = {}", "yaq-d.staleness.age_of_information_s.p50 < 1", None),
            (
                "yaq-d = {}",
                "yaq-d.staleness.bias_s < 1",
                Some("`yaq-d` sends snapshots, which have no error"),
            ),
            ("eagle = {}", "eagle.staleness.regret_s.p50 < 1", Some("`eagle` keeps one state")),
            (
                "peacock = {}\n[sweep]\n\"policy.peacock.form\" = [\"elastic\", \"threshold\"]",
                "peacock.staleness.conflicts < 1",
                Some("`peacock` keeps one state"),
            ),
            (
                "peacock = { form = \"threshold\" }",
                "peacock.staleness.conflicts < 1",
                Some("`peacock` keeps no"),
            ),
            (
                "random = {}",
                "random.unqueued > 0.5",
                Some("`unqueued` is measured only if run.record.unqueued is set"),
            ),
            ("random = {}", "random.deadlines.miss_rate < 0.1", Some("no job has a deadline")),
            ("random = {}", "random.shared.evictions == 0", Some("nodes are not shared")),
            ("random = {}", "random.planning.solved > 0", Some("`random` does not plan")),
            ("random = {}", "random.engine.planning_cpu_s > 0", Some("`random` does not plan")),
            ("prio = {}", "prio.planning.solved > 0", None),
        ] {
            let found = warnings(policy, check);
            let said = why.map(|why| format!("{claim}: {why}"));
            assert_eq!(found.iter().any(|warning| warning.starts_with(claim)), said.is_some(), "{found:?}");
            assert!(
                said.is_none_or(|said| found.iter().any(|warning| warning.starts_with(&said))),
                "{found:?}"
            );
        }
    }

    #[test]
    fn claims_on_caches_that_are_not_observed_are_warned_about() {
        let claim = "[[claim]]\nsays = \"it shows\"\ncheck = [\"yaq-d.staleness.regret_s.p50 < 1\"]\n";
        let text = TEXT.replace("random", "yaq-d").replace("real = {}", "record.staleness = \"0s\"") + claim;
        let found = Experiment::plan("t.toml", &text, &Overrides::default()).unwrap().warnings;
        let said =
            "the claim `it shows` cannot be tested: run.record.staleness = \"0s\" leaves caches unobserved";
        assert!(found.iter().any(|warning| warning == said), "{found:?}");
    }

    #[test]
    fn a_period_of_observation_beyond_the_run_is_warned_about() {
        for (every, warns) in [("500s", true), ("5s", false), ("0s", false)] {
            let text = TEXT.replace("run = {", &format!("run = {{ record = {{ staleness = \"{every}\" }},"));
            let found = Experiment::plan("t.toml", &text, &Overrides::default()).unwrap().warnings;
            assert_eq!(
                found.iter().any(|warning| warning.starts_with("run.record.staleness is")),
                warns,
                "{found:?}"
            );
        }
    }

    #[test]
    fn the_patience_of_a_policy_is_compared_with_the_task_durations_of_a_trace() {
        let synthetic = TEXT.lines().find(|line| line.starts_with("workload")).unwrap();
        let text = TEXT.replace(synthetic, "workload.trace.file = \"a.tr\"").replace("random", "late");
        let text = text.replace("service.demand = \"1s\"\n", "");
        for (job, warns) in [("0 2 3 2 4\n", true), ("0 2 3000 2000 4000\n", false)] {
            let planned = Experiment::plan_beside(("a.tr", job), &text, &Overrides::default());
            let found = planned.unwrap().warnings;
            let said = "policy `late` judges no copy before it has run for 60.0\u{202f}s, and tasks take 3.00\u{202f}s";
            assert_eq!(found.iter().any(|warning| warning.starts_with(said)), warns, "{found:?}");
        }
    }

    #[test]
    fn heartbeats_after_the_arrivals_are_warned_about() {
        for (heartbeat, until, warns) in
            [("200s", "", true), ("2s", "", false), ("15s", "", false), ("15s", "until = \"12s\", ", true)]
        {
            let policy = format!("yaq-d = {{ heartbeat = \"{heartbeat}\" }}");
            let text = TEXT.replace("random = {}", &policy).replace("run = {", &format!("run = {{ {until}"));
            let found = Experiment::plan("t.toml", &text, &Overrides::default()).unwrap().warnings;
            let said = "policy `yaq-d`: a node sends a heartbeat every ";
            assert_eq!(found.iter().any(|warning| warning.starts_with(said)), warns, "{found:?}");
        }
    }

    #[test]
    fn classes_without_jobs_are_warned_about() {
        let synthetic = TEXT.lines().find(|line| line.starts_with("workload")).unwrap();
        let jobs = ("a.tr", "0 2 3 2 4\n1 1 20 20\n");
        for (cutoff, said) in [
            ("10s", None),
            ("100s", Some("no job of seed 1 is of class `long`, which therefore has no results")),
            ("1s", Some("no job of seed 1 is of class `short`, which therefore has no results")),
        ] {
            let trace = format!("workload.trace = {{ file = \"a.tr\", cutoff = \"{cutoff}\" }}");
            let text = TEXT.replace(synthetic, &trace).replace("service.demand = \"1s\"\n", "");
            let found = Experiment::plan_beside(jobs, &text, &Overrides::default()).unwrap().warnings;
            let about = found.iter().find(|warning| warning.starts_with("no job of seed "));
            assert_eq!(about.is_some(), said.is_some(), "{found:?}");
            assert!(about.zip(said).is_none_or(|(about, said)| about.starts_with(said)), "{found:?}");
        }
    }

    #[test]
    fn a_trace_that_does_not_match_the_run_is_warned_about() {
        let nodes = "[sweep]\n\"cluster.nodes\" = [1, 2]\n";
        let lacks = "interference.trace names 1 unit that the cluster lacks, up to number 1; the cluster \
                     has 1 core, numbered from 0";
        let epoch = "interference.trace begins at 1700000000s, as by a clock that counts from 1970, and the run is \
                     over by 31s: no core is ever degraded; times count from the start of the run, and `offset = \
                     \"1700000000s\"` begins the trace there";
        let over = "interference.trace covers 0s to 2s of 27s: afterwards all cores are healthy; `repeat = true` starts \
                    it again";
        for (rows, keys, sweep, expected) in [
            ("0 0 99 2", "", "", vec![]),
            ("0 0 2 2", "", "", vec![over.to_owned()]),
            ("0 0 2 2", ", repeat = true", "", vec![]),
            ("0 1700000000 1700000060 2", "", "", vec![epoch.to_owned()]),
            ("0 1700000000 1700000060 2", ", offset = \"1699999990s\"", "", vec![]),
            ("0 0 99 2\n1 0 99 2", "", nodes, vec![format!("{lacks} (in 1 of 2 cells)")]),
        ] {
            let trace = format!("interference.trace = {{ file = \"b.txt\"{keys} }}\n");
            let text = TEXT.replace("run = { runtime = \"local\", real = {} }\n", "");
            let bernoulli = text.lines().find(|line| line.starts_with("interference")).unwrap();
            let text = text.replace(&format!("{bernoulli}\n"), &trace) + sweep;
            let planned = Experiment::plan_beside(("b.txt", rows), &text, &Overrides::default());
            let experiment = planned.unwrap();
            assert_eq!(experiment.warnings, expected, "{rows}");
            let plan = crate::config::describe::text(&experiment, None);
            assert!(plan.contains("interference  trace of ") && !plan.contains("rows ="), "{plan}");
        }
    }
}
