//! Which host holds what.

use volary_actors::base::{Endpoint as Place, Time};

use super::protocol::Member;
use crate::runtime::live::placement::place;
use crate::storage::hosts::{Held, HostRecord, ranges};
use volary_engine::world::World;

/// Which host each endpoint lives on. Controller and agents come to the same.
pub(crate) fn homes(world: &World, members: &[Member]) -> Vec<u16> {
    let weights: Vec<f64> = members.iter().map(|member| member.weight).collect();
    place(world.layout(), &world.machines().links, &weights)
}

/// The hosts of a run before anything is placed on them.
pub(crate) fn nothing_held(members: &[Member]) -> Vec<HostRecord> {
    let record = |member: &Member| HostRecord {
        name: member.name.clone(),
        address: member.address,
        weight: member.weight,
        held: Vec::new(),
        lost: Vec::new(),
    };
    members.iter().map(record).collect()
}

/// What each host holds in a cell.
pub(crate) fn held(members: &[Member], world: &World, cell: &str) -> Vec<HostRecord> {
    let (homes, layout) = (homes(world, members), world.layout());
    let mut records = nothing_held(members);
    for (shard, record) in (0u16..).zip(&mut records) {
        let nodes = (0..layout.nodes()).filter(|&node| homes[layout.node(node).index()] == shard);
        let schedulers = (0..layout.schedulers()).filter(|&i| homes[layout.scheduler(i).index()] == shard);
        let (nodes, schedulers) = (ranges(nodes), ranges(schedulers));
        record.held = vec![Held { shard, nodes, schedulers, cells: vec![cell.to_owned()] }];
    }
    records
}

/// The cores of a host.
pub(crate) fn cores(world: &World, members: &[Member], host: u16) -> impl Iterator<Item = u32> {
    let (homes, layout) = (homes(world, members), world.layout());
    let home = move |core: u32| homes[layout.endpoint(layout.worker_of_core(core)).index()];
    (0..layout.workers()).filter(move |&core| home(core) == host)
}

/// From when on every actor of a host is down for good, by the experiment's own faults.
pub(crate) fn doomed(world: &World, members: &[Member]) -> Vec<Option<Time>> {
    let homes = homes(world, members);
    let mut doomed: Vec<Option<Time>> = vec![Some(Time::ZERO); members.len()];
    for (endpoint, home) in homes.into_iter().enumerate() {
        let gone =
            world.faults().crashes().iter().find(|c| c.who == Place(endpoint as u32) && c.restart.is_none());
        let host = &mut doomed[home as usize];
        *host = host.zip(gone).map(|(sofar, crash)| sofar.max(crash.at));
    }
    doomed
}

/// How far the slowest of the hosts that still have something to do has come. One whose actors are all down for good
/// holds nobody up: if it died as well, its silence would otherwise stop all others until it is given up.
pub(crate) fn slowest(progress: &[Time], doomed: &[Option<Time>]) -> Time {
    let busy = |(at, gone): &(&Time, &Option<Time>)| gone.is_none_or(|gone| **at < gone);
    progress.iter().zip(doomed).filter(busy).map(|(at, _)| *at).min().unwrap_or(Time::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_without_life_holds_nobody_up() {
        let progress = [Time(50), Time(20), Time(70)];
        assert_eq!(slowest(&progress, &[None, Some(Time(30)), None]), Time(20), "it has work until 30");
        assert_eq!(slowest(&progress, &[None, Some(Time(20)), None]), Time(50));
        assert_eq!(slowest(&progress[..1], &[Some(Time::ZERO)]), Time::MAX);
    }
}
