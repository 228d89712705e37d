//! What can be run but can hardly be meant.

use super::plan::Resolved;
use crate::workload::WorkloadSpec;

/// What to say of a point before it is run, in words with a remedy.
pub(super) fn doubts(world: &Resolved) -> impl Iterator<Item = String> {
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
    use crate::spec::{Experiment, Overrides};

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
}
