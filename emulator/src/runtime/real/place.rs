//! Which actors live on which shard.

use volary_actors::layout::Layout;

/// Spreads the endpoints over shards in proportion to `weights`: a scheduler with its client, and nodes in runs
/// of neighbours, so that racks are split as little as possible.
///
/// # Panics
/// Without a weight above zero.
#[must_use]
pub fn place(layout: &Layout, weights: &[f64]) -> Vec<u16> {
    let total: f64 = weights.iter().sum();
    assert!(total > 0.0, "somebody must have room");
    let bounds: Vec<f64> = weights
        .iter()
        .scan(0.0, |sum, weight| {
            *sum += weight / total;
            Some(*sum)
        })
        .collect();
    let share = |i: u32, of: u32| {
        let at = (f64::from(i) + 0.5) / f64::from(of);
        bounds.iter().position(|&bound| at < bound).unwrap_or(weights.len() - 1) as u16
    };
    let (schedulers, nodes, extras) = (layout.schedulers(), layout.nodes(), layout.extras());
    let schedule = |i| share(i, schedulers);
    let clients = (0..schedulers).map(schedule);
    let schedulers = (0..schedulers).map(schedule);
    let nodes = (0..nodes).map(|i| share(i, nodes));
    let extras = (0..extras).map(|i| share(i, extras));
    clients.chain(schedulers).chain(nodes).chain(extras).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_stay_with_their_schedulers_and_shares_follow_the_weights() {
        let layout = Layout::new(5, 2, [1; 100]);
        let homes = place(&layout, &[1.0, 2.0, 1.0]);
        assert_eq!(homes.len(), layout.endpoints() as usize);
        for i in 0..5 {
            assert_eq!(homes[layout.client(i).index()], homes[layout.scheduler(i).index()]);
        }
        let nodes = &homes[layout.node(0).index()..layout.extra(0).index()];
        let count = |shard| nodes.iter().filter(|&&home| home == shard).count();
        assert_eq!((count(0), count(1), count(2)), (25, 50, 25));
        assert!(nodes.is_sorted(), "neighbours stay together");
    }

    #[test]
    fn a_shard_without_weight_gets_nothing() {
        let homes = place(&Layout::new(1, 0, [1; 10]), &[0.0, 1.0]);
        assert!(homes.iter().all(|&home| home == 1));
    }
}
