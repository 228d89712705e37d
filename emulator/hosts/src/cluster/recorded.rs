//! Replay of recorded interference: each emulated node gets the recording of the host that holds the node.

use std::path::Path;

use volary_engine::scenario::Machines;
use volary_experiment::config::Experiment;
use volary_experiment::control::Fleet;

use super::error::HostsError;
use super::net::{Host, Hosts};
use super::placement::{loopback, placed};

/// A change of an experiment, written like an argument of `--set`. It gives the nodes of each host the interference
/// recorded in `NAME.csv` in `folder`, where NAME is the host's name. The cores take the recorded CPUs in turn and
/// repeat the recording; from the second turn on, cores start at a random time of the recording.
///
/// # Errors
/// When the hosts file or a recording cannot be read, when the experiment schedules injections of its own, and when its
/// cells place nodes differently.
pub fn as_recorded(experiment: &Experiment, fleet: &Fleet, folder: &Path) -> Result<String, HostsError> {
    let members = match fleet {
        Fleet::Hosts { file, .. } => Hosts::load(file)?.hosts,
        Fleet::Spawn(count) => loopback(*count),
    };
    let refuse = |why: &str| Err(HostsError::Recorded(why.to_owned()));
    let points = &experiment.points;
    if points.iter().any(|point| !point.resolved.injections.is_empty()) {
        return refuse(
            "the experiment schedules injections, which would add to the recordings; leave them out",
        );
    }
    let held = points.iter().map(|point| {
        let machines = point.resolved.cluster.machines(&point.policy, experiment.seed);
        nodes(&machines, &members)
    });
    let mut held: Vec<_> = held.collect();
    held.dedup();
    let [held] = &held[..] else {
        return refuse(
            "the cells of the sweep differ in the nodes that a host holds; choose one cell: --set cluster.nodes=N",
        );
    };
    let injection = |(member, nodes): (&Host, &Option<(u32, u32)>)| {
        let (first, last) = (*nodes)?;
        let file = folder.join(format!("{}.csv", member.name));
        let found = file.canonicalize().map_err(|error| {
            let (name, file) = (&member.name, file.display());
            let help = format!("on {name}, `volary profile record --out {name}.csv` records it");
            HostsError::Recorded(format!("{file}: {error}\n  = help: {help}"))
        });
        let injection = |file: std::path::PathBuf| {
            let file = toml::Value::from(file.display().to_string());
            let trace = format!("{{ file = {file}, spread = true, repeat = true }}");
            format!("{{ profile = {{ trace = {trace} }}, who = [\"nodes:{first}-{last}\"], at = \"0s\" }}")
        };
        Some(found.map(injection))
    };
    let injections = members.iter().zip(held).filter_map(injection).collect::<Result<Vec<_>, _>>()?;
    Ok(format!("interference.injection=[{}]", injections.join(", ")))
}

/// The first and the last node that each host holds, if it holds any.
fn nodes(machines: &Machines, members: &[Host]) -> Vec<Option<(u32, u32)>> {
    let (homes, layout) = (placed(machines, members), &machines.layout);
    let of = |host: usize| {
        let mut nodes =
            (0..layout.nodes()).filter(|&node| usize::from(homes[layout.node(node).index()]) == host);
        let first = nodes.next()?;
        Some((first, nodes.next_back().unwrap_or(first)))
    };
    (0..members.len()).map(of).collect()
}
