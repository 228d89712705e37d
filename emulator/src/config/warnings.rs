//! Warnings about experiments that are valid but probably not intended.

use volary_actors::base::Span;

use super::file::RunSection;
use crate::number;
use volary_engine::scenario::PolicyEntry;
use volary_engine::scenario::Resolved;
use volary_engine::workload::WorkloadSpec;

/// A threshold this many times the mean task is longer than most stragglers.
const LONG: f64 = 10.0;

/// The shortest slots of interference that real cores can follow in real time.
const SHORTEST_SLOT: Span = Span::from_millis(10);

/// Warns about a policy that inspects copies later than they end, and so does nothing in this world.
pub(super) fn of_policy(entry: &PolicyEntry, world: &Resolved) -> Option<String> {
    let patience = entry.spec.patience()?.as_secs_f64();
    let mean = world.service.demand.as_ref()?.mean();
    (patience > LONG * mean).then(|| {
        let (name, patience, mean) = (entry.label(), number::seconds(patience), number::seconds(mean));
        format!(
            "policy `{name}` learns of a copy after {patience}, and tasks take {mean} on average: it helps those only \
             that take over {LONG} times as long; lower its `scale`"
        )
    })
}

/// Warns about slots that are too short for the interference on real cores.
pub(super) fn of_cores(world: &Resolved, run: &RunSection) -> Option<String> {
    run.burning()?;
    let slot = world.interference.as_ref()?.table.slot()?.as_secs_f64() / run.speed;
    (slot < SHORTEST_SLOT.as_secs_f64()).then(|| {
        format!(
            "interference comes in slots of {} of real time, and threads take turns every 2 ms: what is achieved will not be what is asked; \
             make slots {} or longer, or lower run.speed",
            number::seconds(slot),
            number::seconds(SHORTEST_SLOT.as_secs_f64())
        )
    })
}

/// Warnings about a point before it is run, with remedies.
pub(super) fn of_world(world: &Resolved) -> impl Iterator<Item = String> {
    let silent = (world.network.loss.mean() >= 1.0).then(|| {
        "network.loss loses everything: no message ever arrives, and no job can finish; lower it, or for bursts set r, \
         the probability that a bad spell ends, above 0"
            .to_owned()
    });
    let synthetic = match &world.workload {
        WorkloadSpec::Synthetic(synthetic) => Some(synthetic),
        WorkloadSpec::Trace(_) | WorkloadSpec::YahooLike(_) | WorkloadSpec::ClouderaLike(_) => None,
    };
    let at_once = synthetic.filter(|spec| spec.jobs > 1 && spec.interarrival.mean() == 0.0).map(|_| {
        "workload.synthetic.interarrival is always 0: all jobs arrive at once, and response times grow with their number"
            .to_owned()
    });
    let means = [
        ("service.demand", world.service.demand.as_ref().map(|law| law.mean())),
        ("workload.synthetic.tasks", synthetic.map(|spec| spec.tasks.mean())),
        ("workload.synthetic.interarrival", synthetic.map(|spec| spec.interarrival.mean())),
    ];
    let endless = means.into_iter().filter(|(_, mean)| mean.is_some_and(f64::is_infinite)).map(|(key, _)| {
        format!(
            "{key} has no mean: a few draws decide every result, and other seeds give others; cut its tail, or write a \
             shape above 1"
        )
    });
    silent.into_iter().chain(at_once).chain(endless)
}

#[cfg(test)]
mod tests {
    use crate::config::{Experiment, Overrides};

    #[test]
    fn what_can_hardly_be_meant_is_said() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("doubtful.toml");
        let warnings = |demand: &str, gap: &str, loss: &str| {
            let text = format!(
                "title = \"t\"\n[cluster]\nnodes = 2\n[workload.synthetic]\njobs = 3\ntasks = 1\ninterarrival = {gap}\n\
                 [service]\ndemand = {demand}\n[network]\nloss = {loss}\n[[policy]]\nrandom = {{}}\n"
            );
            std::fs::write(&file, text).unwrap();
            Experiment::load(&file, &Overrides::default()).unwrap().warnings
        };
        assert!(warnings("\"1s\"", "\"1s\"", "0.5").is_empty());
        let pareto = "{ pareto = { scale = \"1s\", shape = 0.9 } }";
        let stuck = "{ gilbert-elliott = { p = 0.1, r = 0 } }";
        for (demand, gap, loss, begins) in [
            (pareto, "\"1s\"", "0", "service.demand has no mean"),
            ("\"1s\"", pareto, "0", "workload.synthetic.interarrival has no mean"),
            ("\"1s\"", "\"0s\"", "0", "workload.synthetic.interarrival is always 0"),
            ("\"1s\"", "\"1s\"", stuck, "network.loss loses everything"),
        ] {
            let said = warnings(demand, gap, loss);
            assert!(said.len() == 1 && said[0].starts_with(begins), "{said:?}");
        }
    }

    #[test]
    fn what_comes_too_late_and_what_is_too_short_is_said() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("doubtful.toml");
        let warnings = |policy: &str, slot: &str, real: &str| {
            let text = format!(
                "title = \"t\"\n[cluster]\nnodes = 1\n[workload.synthetic]\njobs = 3\ntasks = 1\ninterarrival = \"9s\"\n\
                 [service]\ndemand = \"1s\"\n[interference]\nbernoulli = {{ slot = \"{slot}\", probability = 0.1, \
                 slowdown = 2 }}\n[run]\nruntime = \"local\"\n[run.real]\n{real}\n[[policy]]\n{policy}\n"
            );
            std::fs::write(&file, text).unwrap();
            Experiment::load(&file, &Overrides::default()).unwrap().warnings
        };
        for (policy, slot, real, begins) in [
            (
                "late = {}",
                "50ms",
                "",
                "policy `late` learns of a copy after 60.0\u{202f}s, and tasks take 1.00\u{202f}s",
            ),
            (
                "random = {}",
                "9ms",
                "",
                "interference comes in slots of 9.00\u{202f}ms of real time, and threads",
            ),
        ] {
            let said = warnings(policy, slot, real);
            assert!(said.len() == 1 && said[0].starts_with(begins), "{said:?}");
        }
        for (policy, slot, real) in [
            ("late = { scale = 0.01 }", "50ms", ""),
            ("hadoop2 = {}", "50ms", ""),
            ("random = {}", "9ms", "kernel = \"none\""),
        ] {
            assert!(warnings(policy, slot, real).is_empty(), "{policy}");
        }
    }
}
