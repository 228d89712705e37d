//! The assignment of actors to shards.
//!
//! A delay between actors on different hosts can be emulated only if it is above the real delay between these hosts.
//! Emulated delays are shortest within a rack, so racks stay together where possible:
//!
//! 1. Each shard gets a range of adjacent nodes in proportion to its weight.
//! 2. With a topology, the cut between two shards moves to the nearest border between two regions, else pods, else
//!    racks, if that border is within an eighth of the smaller shard's share. A shard thus deviates from its share by
//!    at most a quarter.
//! 3. Each shard gets schedulers in proportion to its weight. A scheduler goes to the shard with the nodes next to it
//!    (on its machine, else in its rack, pod or region) while that shard has room, else to the first shard with room.
//!    The scheduler's client goes with it.
//! 4. An auxiliary actor beside a node goes to the shard with this node. The other auxiliary actors are shared in
//!    proportion to the weights.

use std::ops::Range;

use volary_actors::base::Endpoint;
use volary_actors::layout::Layout;
use volary_engine::scenario::Machines;
use volary_netem::{Links, Place};

/// Largest move of a cut, as a fraction of the smaller adjacent shard's share.
const SLACK: f64 = 0.125;
/// Areas that are kept together, narrowest first: machine, rack, pod, region.
const AREAS: [fn(&Place) -> u32; 4] =
    [|place| place.host, |place| place.rack, |place| place.pod, |place| place.zone];

/// Assigns the endpoints to shards in proportion to `weights`; see the module's rules.
///
/// # Panics
/// Without a weight above zero.
pub fn place(machines: &Machines, weights: &[f64]) -> Vec<u16> {
    let Machines { layout, links, beside, .. } = machines;
    let shares = shares(weights);
    let cuts = cuts(layout, links, &shares);
    let nodes: Vec<u16> = (0..layout.nodes()).map(|i| below(&cuts, f64::from(i) + 0.5)).collect();
    let schedulers = schedulers(layout, links, &shares, &nodes);
    let auxiliaries = (0..layout.auxiliaries()).zip(beside).map(|(i, node)| {
        node.map_or_else(|| by_weight(&shares, i, layout.auxiliaries()), |node| nodes[node as usize])
    });
    let coordinators = schedulers.iter().chain(&schedulers);
    coordinators.copied().chain(nodes.iter().copied()).chain(auxiliaries).collect()
}

/// The share of each shard, as a range within 0 to 1.
fn shares(weights: &[f64]) -> Vec<Range<f64>> {
    let total: f64 = weights.iter().sum();
    assert!(total > 0.0, "some weight is above zero");
    let ends = weights.iter().scan(0.0, |sum, weight| {
        let start = *sum;
        *sum += weight / total;
        Some(start..*sum)
    });
    ends.collect()
}

/// The shard of actor `i` of `of` actors that have no place, in proportion to the weights.
fn by_weight(shares: &[Range<f64>], i: u32, of: u32) -> u16 {
    let ends: Vec<f64> = shares.iter().map(|share| share.end).collect();
    below(&ends, (f64::from(i) + 0.5) / f64::from(of))
}

/// The index of the first of `ends` above `at`; the last index if rounding leaves none above.
fn below(ends: &[f64], at: f64) -> u16 {
    ends.partition_point(|&end| end <= at).min(ends.len() - 1) as u16
}

/// The end of each shard's range of nodes.
fn cuts(layout: &Layout, links: &Links, shares: &[Range<f64>]) -> Vec<f64> {
    let nodes = f64::from(layout.nodes());
    // Borders of regions, pods and racks. Machines have no borders to prefer, because each node is a machine of its
    // own.
    let borders = [AREAS[3], AREAS[2], AREAS[1]].map(|area| borders(layout, links, area));
    let beside = shares.iter().zip(shares.iter().skip(1));
    let mut cuts: Vec<f64> = beside
        .map(|(share, next)| {
            let cut = share.end * nodes;
            let slack = SLACK * nodes * (share.end - share.start).min(next.end - next.start);
            let near = borders.iter().filter_map(|borders| nearest(borders, cut));
            near.into_iter().find(|border| (border - cut).abs() <= slack).unwrap_or(cut)
        })
        .collect();
    cuts.push(nodes);
    cuts
}

/// Indices of nodes whose area differs from the area of the previous node.
fn borders(layout: &Layout, links: &Links, area: fn(&Place) -> u32) -> Vec<f64> {
    let of = |node: u32| links.place(Endpoint(layout.node(node).0)).map(area);
    (1..layout.nodes()).filter(|&node| of(node) != of(node - 1)).map(f64::from).collect()
}

fn nearest(borders: &[f64], cut: f64) -> Option<f64> {
    let after = borders.partition_point(|&border| border < cut);
    let beside = borders[after.saturating_sub(1)..].iter().take(2);
    beside.copied().min_by(|a, b| (a - cut).abs().total_cmp(&(b - cut).abs()))
}

/// The shard of each scheduler.
fn schedulers(layout: &Layout, links: &Links, shares: &[Range<f64>], nodes: &[u16]) -> Vec<u16> {
    let all = layout.schedulers();
    let first = first_nodes(layout, links);
    let beside = |scheduler: u32| {
        let at = links.place(Endpoint(layout.scheduler(scheduler).0))?;
        AREAS.iter().zip(&first).find_map(|(area, first)| *first.get(area(at) as usize)?)
    };
    let mut room = vec![0u32; shares.len()];
    (0..all).for_each(|i| room[by_weight(shares, i, all) as usize] += 1);
    let mut homes = vec![None; all as usize];
    for (i, home) in (0..).zip(&mut homes) {
        let near = beside(i).map(|node| nodes[node as usize]);
        *home = near.filter(|&shard| room[shard as usize] > 0);
        home.iter().for_each(|&shard| room[shard as usize] -= 1);
    }
    let rest = room.iter().enumerate().flat_map(|(shard, &room)| (0..room).map(move |_| shard as u16));
    let mut rest = rest.collect::<Vec<_>>().into_iter();
    homes.into_iter().map(|home| home.or_else(|| rest.next()).unwrap_or(0)).collect()
}

/// The first node of each area, by kind and number of the area. A topology numbers areas from zero without gaps.
fn first_nodes(layout: &Layout, links: &Links) -> [Vec<Option<u32>>; AREAS.len()] {
    let mut first: [Vec<Option<u32>>; AREAS.len()] = Default::default();
    for node in 0..layout.nodes() {
        let Some(at) = links.place(Endpoint(layout.node(node).0)) else { continue };
        for (area, first) in AREAS.iter().zip(&mut first) {
            let number = area(at) as usize;
            first.resize(first.len().max(number + 1), None);
            first[number].get_or_insert(node);
        }
    }
    first
}

#[cfg(test)]
mod tests {
    use volary_engine::cores::CoreTable;
    use volary_netem::{Groups, TopologyFile};

    use super::*;

    fn machines(layout: Layout, links: Links, beside: Vec<Option<u32>>) -> Machines {
        Machines { cores: CoreTable::of(&layout), layout, links, groups: Groups::default(), beside }
    }

    #[test]
    fn clients_stay_with_their_schedulers_and_shares_follow_the_weights() {
        let all = machines(Layout::new(5, 2, [1; 100]), Links::uniform(), vec![None; 2]);
        let (homes, layout) = (place(&all, &[1.0, 2.0, 1.0]), &all.layout);
        assert_eq!(homes.len(), layout.endpoints() as usize);
        for i in 0..5 {
            assert_eq!(homes[layout.client(i).index()], homes[layout.scheduler(i).index()]);
        }
        let nodes = &homes[layout.node(0).index()..layout.auxiliary(0).index()];
        let count = |shard| nodes.iter().filter(|&&home| home == shard).count();
        assert_eq!((count(0), count(1), count(2)), (25, 50, 25));
        assert!(nodes.is_sorted(), "adjacent nodes stay together");
    }

    #[test]
    fn a_shard_without_weight_gets_no_actors() {
        let homes = place(&machines(Layout::new(1, 0, [1; 10]), Links::uniform(), Vec::new()), &[0.0, 1.0]);
        assert!(homes.iter().all(|&home| home == 1));
    }

    #[test]
    fn auxiliary_actors_are_placed_with_their_nodes() {
        let beside = vec![Some(9), Some(0), None, None];
        let all = machines(Layout::new(1, 4, [1; 10]), Links::uniform(), beside);
        let homes = place(&all, &[1.0, 1.0]);
        assert_eq!(homes[all.layout.auxiliary(0).index()..], [1, 0, 1, 1], "two have no place of their own");
    }

    /// Homes of the schedulers and of the nodes of a topology.
    fn homes(shape: &str, schedulers: u32, weights: &[f64]) -> (Vec<u16>, Vec<u16>) {
        let delays = "[link.rack]\none_way = \"1ms\"\n[link.fabric]\none_way = \"2ms\"\n";
        let file: TopologyFile =
            toml::from_str(&format!("title = \"t\"\ncores = 1\n{shape}\n{delays}")).unwrap();
        let topology = file.resolve(1).unwrap();
        let layout = Layout::new(schedulers, 0, topology.cores().iter().copied());
        let seats = (0..schedulers).map(|i| topology.seat(i, schedulers));
        let places = seats.clone().chain(seats).chain(topology.nodes().iter().copied()).collect();
        let homes = place(&machines(layout.clone(), topology.links(places), Vec::new()), weights);
        let (first, node) = (layout.scheduler(0).index(), layout.node(0).index());
        (homes[first..node].to_vec(), homes[node..].to_vec())
    }

    fn sizes(homes: &[u16]) -> Vec<usize> {
        homes.chunk_by(|a, b| a == b).map(<[u16]>::len).collect()
    }

    #[test]
    fn cuts_between_shards_keep_racks_together_within_the_slack() {
        let racks =
            |racks: u32, each: u32| format!("[shape.leaf-spine]\nracks = {racks}\nnodes_per_rack = {each}");
        // Thirds would end within racks of two nodes: after 33.3 and 66.7 nodes.
        assert_eq!(sizes(&homes(&racks(50, 2), 1, &[1.0; 3]).1), [34, 32, 34]);
        assert_eq!(sizes(&homes(&racks(8, 10), 1, &[3.0, 1.0]).1), [60, 20]);
        // The borders of racks are further from the cuts than an eighth of a share.
        assert_eq!(sizes(&homes(&racks(4, 10), 1, &[1.0; 3]).1), [13, 14, 13]);
    }

    #[test]
    fn cuts_prefer_borders_of_pods_to_borders_of_racks() {
        // Four pods of two racks of two nodes. The first cut is at 6, where a rack ends, the second at 7.5, near 8.
        let (pods, pod) = ("[shape.fat-tree]\nk = 4", "[link.pod]\none_way = \"1ms\"");
        let of = |weights: &[f64]| sizes(&homes(&format!("{pods}\n{pod}"), 1, weights).1);
        assert_eq!(of(&[3.0, 5.0]), [6, 10], "a pod's border is too far");
        assert_eq!(of(&[7.5, 8.5]), [8, 8]);
        assert_eq!(of(&[1.0, 1.0, 1.0, 1.0]), [4, 4, 4, 4]);
    }

    #[test]
    fn schedulers_go_next_to_their_nodes_while_there_is_room() {
        let with = |placement: &str| {
            let shape = "[shape.leaf-spine]\nracks = 4\nnodes_per_rack = 4";
            homes(&format!("placement = {placement}\n{shape}"), 4, &[1.0; 4]).0
        };
        assert_eq!(with("\"spread\""), [0, 1, 2, 3]);
        assert_eq!(
            with("{ racks = [\"rack:3\", \"rack:1\"] }"),
            [1, 3, 0, 2],
            "two would stand in each rack"
        );
    }
}
