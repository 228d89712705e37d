//! Link classes of shapes in which distance alone decides.

use volary_actors::base::{DistributionSpec, Span};

use super::file::{LinkClasses, Shape};
use super::shape::Ground;
use crate::config::Loss;
use crate::error::Error;
use crate::links::{LinkClass, LinkSpec, Scheme};

/// Class number of links within one machine.
pub(super) const HOST: u16 = 0;

/// The classes of a shape whose levels are machine, rack, pod, region.
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
                    format!("{name} needs it and it is missing"),
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
    if levels.len() < 3 && !link.between.is_empty()
        || matches!(shape, Shape::FatTree(_)) && !link.between.is_empty()
    {
        return Err(Error::at("link.between", format!("{name} has no regions"), "remove it"));
    }
    let [rack, pod, fabric, region] = number;
    let within = fabric.or(rack).unwrap_or(HOST);
    let between = between(link, ground, &mut classes, within, region)?;
    Ok((classes, Scheme { host: HOST, rack, pod, zones: ground.zones.len() as u32, between }))
}

/// The class of each two regions, row by row.
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
                "a region and itself",
                "`[link.fabric]` is about links within a region",
            ));
        }
        if table[a * zones + b].is_some() {
            return Err(Error::at(key, "these two are joined already", "remove one of the two entries"));
        }
        let name = format!("{} - {}", entry.regions[0], entry.regions[1]);
        let number = add(classes, &name, format!("link.between[{i}].link"), &entry.link);
        table[a * zones + b] = Some(number);
        table[b * zones + a] = Some(number);
    }
    let default_used = table.iter().any(Option::is_none);
    if default.is_some() && !default_used {
        return Err(Error::at("link.region", "every two regions have a `between`", "remove it"));
    }
    let joined = table.iter().enumerate().map(|(at, class)| {
        class.or(default).ok_or_else(|| {
            let (a, b) = (&ground.zones[at / zones], &ground.zones[at % zones]);
            Error::at(
                "link.between",
                format!("nothing joins `{a}` and `{b}`"),
                format!(
                    "add `[[link.between]]` with `regions = [\"{a}\", \"{b}\"]`, or `[link.region]` for all"
                ),
            )
        })
    });
    joined.collect()
}

/// The position of a name among names.
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

/// Links within one machine: perfect, unless the file says otherwise.
pub(super) fn host(link: &LinkClasses) -> LinkClass {
    let perfect = LinkSpec {
        one_way: DistributionSpec::Constant(Span::ZERO),
        loss: Some(Loss::NONE),
        rate: None,
        buffer: None,
    };
    class("host", "link.host".to_owned(), link.host.as_ref().unwrap_or(&perfect), true)
}
