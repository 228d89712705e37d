//! The drawn experiments that can be run, and that a scheduler and a node survive.

use volary_engine::scenario::Point;
use volary_engine::shard::Placement;
use volary_engine::workload::NoTraces;
use volary_engine::world::World;

/// The world of a point, or the reason for which it is not run.
pub(crate) fn survivors(point: &Point, seed: u64) -> Result<World, String> {
    point.policy.check(&point.resolved.cluster.layout(0))?;
    let world = World::build(point, seed, &NoTraces).map_err(|error| error.to_string())?;
    let layout = world.layout();
    if point.policy.traits().time_slice.is_some_and(|(_, slice)| slice <= point.resolved.service.preemption) {
        return Err("preemption uses up the time slice".to_owned());
    }
    let crashes = world.faults().crashes();
    let survives = |who| !crashes.iter().any(|crash| crash.who.0 == who && crash.restart.is_none());
    if !(0..layout.schedulers()).any(|index| survives(layout.scheduler(index).0)) {
        return Err("no scheduler comes back".to_owned());
    }
    if !(0..layout.nodes()).any(|index| survives(layout.node(index).0)) {
        return Err("no node comes back".to_owned());
    }
    world.parts(Placement::ALONE, true).map_err(|error| error.to_string())?;
    Ok(world)
}
