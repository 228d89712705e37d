//! Link classes of a topology. In shapes without listed links, distance alone decides. A graph, which lists its
//! switches and links, has a class for every pair of switches.

use volary_actors::base::{DistributionSpec, Span};

use super::file::{GraphLink, GraphShape, Ground, LinkClasses, Shape};
use crate::config::Loss;
use crate::error::Error;
use crate::links::{LinkClass, LinkSpec, Scheme};
use crate::units::Probability;

/// Class number of links within one machine.
pub(super) const HOST: u16 = 0;

/// The classes of a shape with the levels machine, rack, pod and region.
pub(super) fn tree(
    shape: &Shape,
    link: &LinkClasses,
    ground: &Ground,
) -> Result<(Vec<LinkClass>, Scheme), Error> {
    let (name, levels) = match shape {
        Shape::Star(_) => ("a star", &["rack"][..]),
        Shape::LeafSpine(_) => ("a leaf-spine", &["rack", "fabric"][..]),
        Shape::FatTree(_) => ("a fat tree", &["rack", "pod", "fabric"][..]),
        Shape::Regions(_) | Shape::Graph(_) => ("a set of regions", &["rack", "fabric", "region"][..]),
    };
    let given =
        [("rack", &link.rack), ("pod", &link.pod), ("fabric", &link.fabric), ("region", &link.region)];
    let mut classes = vec![host(link)];
    let mut number = [None; 4];
    for (level, (key, spec)) in given.iter().enumerate() {
        let wanted = levels.contains(key);
        match spec {
            Some(spec) if wanted => number[level] = Some(add(&mut classes, key, format!("link.{key}"), spec)),
            None if wanted && *key != "region" => {
                return Err(Error::at(
                    format!("link.{key}"),
                    format!("{name} needs this table, which is missing"),
                    format!("add `[link.{key}]` with `one_way`"),
                ));
            }
            Some(_) => {
                return Err(Error::at(
                    format!("link.{key}"),
                    format!("{name} has no such links"),
                    format!("remove it; {name} has {}", levels.join(", ")),
                ));
            }
            None => {}
        }
    }
    if !link.between.is_empty() && !levels.contains(&"region") {
        return Err(Error::at("link.between", format!("{name} has no regions"), "remove the table"));
    }
    let [rack, pod, fabric, region] = number;
    let within = fabric.or(rack).unwrap_or(HOST);
    let between = between(link, ground, &mut classes, within, region)?;
    Ok((classes, Scheme { host: HOST, rack, pod, zones: ground.zones.len() as u32, between }))
}

/// The class of every pair of regions, row by row.
fn between(
    link: &LinkClasses,
    ground: &Ground,
    classes: &mut Vec<LinkClass>,
    within: u16,
    default: Option<u16>,
) -> Result<Vec<u16>, Error> {
    let zones = ground.zones.len();
    let mut table = vec![None; zones * zones];
    for zone in 0..zones {
        table[zone * zones + zone] = Some(within);
    }
    for (i, entry) in link.between.iter().enumerate() {
        let key = format!("link.between[{i}].regions");
        let [a, b] = entry.regions.each_ref().map(|name| find(&ground.zones, name, &key));
        let (a, b) = (a?, b?);
        if a == b {
            return Err(Error::at(
                key,
                "the entry joins a region to itself",
                "use `[link.fabric]` for links within a region",
            ));
        }
        if table[a * zones + b].is_some() {
            return Err(Error::at(key, "these regions are joined already", "remove one of the entries"));
        }
        let name = format!("{} - {}", entry.regions[0], entry.regions[1]);
        let number = add(classes, &name, format!("link.between[{i}].link"), &entry.link);
        table[a * zones + b] = Some(number);
        table[b * zones + a] = Some(number);
    }
    let default_used = table.iter().any(Option::is_none);
    if default.is_some() && !default_used {
        return Err(Error::at("link.region", "all pairs of regions have a `between`", "remove the table"));
    }
    let joined = table.iter().enumerate().map(|(at, class)| {
        class.or(default).ok_or_else(|| {
            let (a, b) = (&ground.zones[at / zones], &ground.zones[at % zones]);
            Error::at(
                "link.between",
                format!("no link joins `{a}` and `{b}`"),
                format!(
                    "add `[[link.between]]` with `regions = [\"{a}\", \"{b}\"]`, or `[link.region]` for all"
                ),
            )
        })
    });
    joined.collect()
}

/// The index of a name among names.
pub(super) fn find(names: &[String], name: &str, key: &str) -> Result<usize, Error> {
    let position = names.iter().position(|known| known == name);
    position.ok_or_else(|| Error::unknown(key, name, format!("known are {}", names.join(", "))))
}

fn add(classes: &mut Vec<LinkClass>, name: &str, key: String, spec: &LinkSpec) -> u16 {
    classes.push(class(name, key, spec, false));
    classes.len() as u16 - 1
}

fn class(name: &str, key: String, spec: &LinkSpec, local: bool) -> LinkClass {
    LinkClass {
        name: name.to_owned(),
        key,
        one_way: vec![spec.one_way.clone()],
        loss: spec.loss,
        rate: spec.rate,
        buffer: spec.buffer,
        local,
    }
}

/// The links within one machine, which are perfect unless the file says otherwise.
pub(super) fn host(link: &LinkClasses) -> LinkClass {
    let perfect = LinkSpec {
        one_way: DistributionSpec::Constant(Span::ZERO),
        loss: Some(Loss::NONE),
        rate: None,
        buffer: None,
    };
    class("host", "link.host".to_owned(), link.host.as_ref().unwrap_or(&perfect), true)
}

/// Maximum number of switches. Each pair of switches has a class, and the number of classes is limited.
const MOST_SWITCHES: usize = 256;

/// Joins every pair of switches by the path of least mean delay.
pub(super) fn graph(graph: &GraphShape, link: &LinkClasses) -> Result<(Vec<LinkClass>, Scheme), Error> {
    let LinkClasses { host: _, rack, pod, fabric, region, between } = link;
    if [rack, pod, fabric, region].iter().any(|class| class.is_some()) || !between.is_empty() {
        return Err(Error::at(
            "link",
            "a graph has links of its own",
            "describe them in `[[shape.graph.link]]`; only `[link.host]` may stand here",
        ));
    }
    let count = graph.switch.len();
    if count > MOST_SWITCHES {
        return Err(Error::at(
            "shape.graph.switch",
            format!("{count} switches are too many to list"),
            format!("stay below {MOST_SWITCHES}, or use `leaf-spine`, `fat-tree` or `regions`"),
        ));
    }
    let edges = edges(graph)?;
    let mut classes = vec![host(link)];
    let mut between = vec![HOST; count * count];
    for a in 0..count {
        let paths = shortest(a, &edges, count);
        for b in a..count {
            let path = paths.path(b).ok_or_else(|| {
                let (a, b) = (&graph.switch[a].name, &graph.switch[b].name);
                Error::at(
                    "shape.graph.link",
                    format!("no path joins `{a}` and `{b}`"),
                    format!("add a `[[shape.graph.link]]` that leads to `{b}`"),
                )
            })?;
            let number = classes.len() as u16;
            classes.push(joined(graph, a, b, &path));
            between[a * count + b] = number;
            between[b * count + a] = number;
        }
    }
    let scheme = Scheme { host: HOST, rack: None, pod: None, zones: count as u32, between };
    Ok((classes, scheme))
}

/// A link seen from one of its ends.
#[derive(Clone, Copy)]
struct Edge {
    to: usize,
    link: usize,
    mean: f64,
}

/// The links of each switch.
fn edges(graph: &GraphShape) -> Result<Vec<Vec<Edge>>, Error> {
    let names: Vec<_> = graph.switch.iter().map(|switch| switch.name.clone()).collect();
    let mut edges = vec![Vec::new(); names.len()];
    for (i, link) in graph.link.iter().enumerate() {
        let key = format!("shape.graph.link[{i}]");
        let ends = link.between.each_ref().map(|name| find(&names, name, &format!("{key}.between")));
        let [a, b] = ends;
        let (a, b) = (a?, b?);
        let mean = link.one_way.mean();
        if !mean.is_finite() {
            return Err(Error::at(
                format!("{key}.one_way"),
                "a distribution without a mean cannot be part of a shortest path",
                "use a distribution with a mean, such as a Pareto distribution of shape above 1",
            ));
        }
        if a == b {
            return Err(Error::at(format!("{key}.between"), "both ends are equal", "name two switches"));
        }
        edges[a].push(Edge { to: b, link: i, mean });
        edges[b].push(Edge { to: a, link: i, mean });
    }
    Ok(edges)
}

/// The shortest paths from one switch.
struct Paths {
    /// The last edge of the path to each switch: its start, and its link.
    last: Vec<Option<(usize, usize)>>,
    from: usize,
}

/// Dijkstra's algorithm without a heap, because there are few switches. Among equal paths the one whose switches come
/// first in the file wins, so the result is the same on every machine.
fn shortest(from: usize, edges: &[Vec<Edge>], count: usize) -> Paths {
    let mut distance = vec![f64::INFINITY; count];
    let mut done = vec![false; count];
    let mut last = vec![None; count];
    distance[from] = 0.0;
    loop {
        let open = (0..count).filter(|&i| !done[i] && distance[i].is_finite());
        let Some(here) = open.min_by(|&i, &j| distance[i].total_cmp(&distance[j])) else { break };
        done[here] = true;
        for edge in &edges[here] {
            let through = distance[here] + edge.mean;
            if through < distance[edge.to] {
                distance[edge.to] = through;
                last[edge.to] = Some((here, edge.link));
            }
        }
    }
    Paths { last, from }
}

impl Paths {
    /// The links on the path to a switch; `None` if there is no path.
    fn path(&self, to: usize) -> Option<Vec<usize>> {
        let mut links = Vec::new();
        let mut here = to;
        while here != self.from {
            let (before, link) = self.last[here]?;
            links.push(link);
            here = before;
        }
        Some(links)
    }
}

/// The link between machines at two switches. Delays add up, survival probabilities multiply, and the slowest link
/// limits the rate.
fn joined(graph: &GraphShape, a: usize, b: usize, path: &[usize]) -> LinkClass {
    let links: Vec<&GraphLink> = path.iter().map(|&link| &graph.link[link]).collect();
    let mean = |&link: &usize| graph.link[link].one_way.mean();
    let slowest = path.iter().copied().max_by(|a, b| mean(a).total_cmp(&mean(b)));
    let key =
        slowest.map_or_else(|| format!("shape.graph.switch[{a}]"), |i| format!("shape.graph.link[{i}]"));
    let (a, b) = (&graph.switch[a], &graph.switch[b]);
    let mut one_way = vec![a.access.clone(), b.access.clone()];
    one_way.extend(links.iter().map(|link| link.one_way.clone()));
    let lost = 1.0 - links.iter().map(|link| 1.0 - link.loss.get()).product::<f64>();
    let loss = Probability::new(lost).filter(|p| !p.is_zero()).map(Loss::Bernoulli);
    let rate = links.iter().filter_map(|link| link.rate).min();
    let name = if a.name == b.name { a.name.clone() } else { format!("{} - {}", a.name, b.name) };
    LinkClass { name, key, one_way, loss, rate, buffer: None, local: false }
}
