//! The placement of actors on hosts, and quantities derived from it.

use std::net::Ipv4Addr;

use volary_actors::base::CoreSet;
use volary_actors::base::{Endpoint as Place, Time};
use volary_engine::scenario::Machines;
use volary_engine::world::World;
use volary_experiment::storage::manifest::{HostRecord, HostShard};

use super::net::Host;
use crate::real_time::placement::place;

/// The host of each endpoint. Controller and agents compute the same result.
pub(crate) fn homes(world: &World, members: &[Host]) -> Vec<u16> {
    placed(world.machines(), members)
}

/// The host of each endpoint of these machines.
pub(super) fn placed(machines: &Machines, members: &[Host]) -> Vec<u16> {
    let weights: Vec<f64> = members.iter().map(|member| f64::from(member.weight)).collect();
    place(machines, &weights)
}

/// The hosts of agents on this machine, before their ports are known.
pub(super) fn loopback(count: u16) -> Vec<Host> {
    (1..=count).map(|i| Host::new(format!("local{i}"), (Ipv4Addr::LOCALHOST, i).into())).collect()
}

/// Records of hosts that hold no actors yet.
pub(super) fn nothing_held(members: &[Host]) -> Vec<HostRecord> {
    let record = |member: &Host| HostRecord {
        name: member.name.clone(),
        address: member.address,
        weight: f64::from(member.weight),
        held: Vec::new(),
        lost: Vec::new(),
    };
    members.iter().map(record).collect()
}

/// The actors that each host holds in a run.
pub(crate) fn held(members: &[Host], world: &World, run: &str) -> Vec<HostRecord> {
    let (homes, layout) = (homes(world, members), world.layout());
    let mut records = nothing_held(members);
    for (shard, record) in (0u16..).zip(&mut records) {
        let nodes = (0..layout.nodes()).filter(|&node| homes[layout.node(node).index()] == shard);
        let schedulers = (0..layout.schedulers()).filter(|&i| homes[layout.scheduler(i).index()] == shard);
        let extras = (0..layout.auxiliaries()).filter(|&i| homes[layout.auxiliary(i).index()] == shard);
        let (nodes, schedulers) = (nodes.collect::<CoreSet>(), schedulers.collect::<CoreSet>());
        let (nodes, schedulers) = (nodes.to_string(), schedulers.to_string());
        let extras: CoreSet = extras.collect();
        let named = format!("{}s {extras}", world.point().policy.auxiliary());
        let extras = if extras.is_empty() { String::new() } else { named };
        record.held = vec![HostShard { shard, nodes, schedulers, extras, runs: vec![run.to_owned()] }];
    }
    records
}

/// The cores of a host.
pub(crate) fn cores_of(world: &World, homes: &[u16], host: u16) -> impl Iterator<Item = u32> {
    let layout = world.layout();
    let home = move |core: u32| homes[layout.endpoint(layout.worker_of_core(core)).index()];
    (0..layout.workers()).filter(move |&core| home(core) == host)
}

/// For each host, the time from which the experiment's own faults have crashed all of its actors for good, if any.
pub(crate) fn dead_from(world: &World, homes: &[u16], hosts: usize) -> Vec<Option<Time>> {
    let mut dead: Vec<Option<Time>> = vec![Some(Time::ZERO); hosts];
    for (endpoint, home) in homes.iter().enumerate() {
        let gone =
            world.faults().crashes().iter().find(|c| c.who == Place(endpoint as u32) && c.restart.is_none());
        let host = &mut dead[*home as usize];
        *host = host.zip(gone).map(|(sofar, crash)| sofar.max(crash.at));
    }
    dead
}

/// The emulated time that the slowest host with live actors has reached. A host whose actors are all down for good is
/// left out: if it were lost, the others would wait until its connection times out.
pub(crate) fn slowest(progress: &[Time], dead: &[Option<Time>]) -> Time {
    let busy = |(at, gone): &(&Time, &Option<Time>)| gone.is_none_or(|gone| **at < gone);
    progress.iter().zip(dead).filter(busy).map(|(at, _)| *at).min().unwrap_or(Time::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_without_live_actors_is_not_waited_for() {
        let progress = [Time(50), Time(20), Time(70)];
        assert_eq!(slowest(&progress, &[None, Some(Time(30)), None]), Time(20), "it has work until 30");
        assert_eq!(slowest(&progress, &[None, Some(Time(20)), None]), Time(50));
        assert_eq!(slowest(&progress[..1], &[Some(Time::ZERO)]), Time::MAX);
    }
}
