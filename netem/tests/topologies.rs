//! Tests of topology files: the shipped files, every shape, and every error.

use std::collections::BTreeMap;
use std::path::Path;

use volary_actors::base::{Endpoint, Time};
use volary_netem::{Fabric, Faults, Groups, Network, Place, Topology, TopologyFile};

fn parse(text: &str) -> TopologyFile {
    toml::from_str(text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn resolve(text: &str) -> Topology {
    parse(text).resolve(1).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn refused(text: &str) -> String {
    parse(text).resolve(1).expect_err(text).to_string()
}

fn shipped(name: &str) -> Topology {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../topologies").join(name);
    resolve(&std::fs::read_to_string(path).expect("the shipped file is readable"))
}

/// Places of `schedulers` coordinators, followed by those of all nodes.
fn places(topology: &Topology, schedulers: u32) -> Vec<Place> {
    let seats = (0..schedulers).map(|i| topology.seat(i, schedulers));
    seats.chain(topology.nodes().iter().copied()).collect()
}

/// Number of pairs of nodes by class name, counted one by one.
fn counted(topology: &Topology) -> BTreeMap<String, u64> {
    let n = topology.nodes().len() as u32;
    let links = topology.links(topology.nodes().to_vec());
    let mut count = BTreeMap::new();
    for a in 0..n {
        for b in a + 1..n {
            let class = links.class(Endpoint(a), Endpoint(b));
            assert_eq!(class, links.class(Endpoint(b), Endpoint(a)), "classes have no direction");
            *count.entry(links.classes()[class].name.clone()).or_insert(0) += 1;
        }
    }
    count
}

#[test]
fn shipped_topologies_resolve_and_carry_messages() {
    for (name, nodes, cores, racks) in [
        ("star.toml", 100, 400, 1),
        ("leaf-spine.toml", 2000, 40 * 40 * 8 + 10 * 40 * 4, 50),
        ("fat-tree.toml", 1024, 4096, 128),
        ("regions.toml", 600, 4800, 30),
    ] {
        let topology = shipped(name);
        let facts = topology.describe();
        assert_eq!((facts.nodes, facts.cores, facts.racks), (nodes, cores, racks), "{name}");
        let pairs: BTreeMap<_, _> =
            facts.classes.iter().filter(|c| c.pairs > 0).map(|c| (c.name.clone(), c.pairs)).collect();
        assert_eq!(pairs, counted(&topology), "{name}");
        let places = places(&topology, 3);
        let endpoints = places.len() as u32;
        let mut fabric =
            Fabric::new(&Network::default(), topology.links(places), endpoints, 3, Faults::default(), 1)
                .unwrap();
        for dst in 1..endpoints {
            fabric.route(Time::ZERO, Endpoint(0), Endpoint(dst), volary_actors::base::Class::Stream, 100);
        }
        assert_eq!(fabric.stats().stream.delivered, u64::from(endpoints) - 1, "{name}");
    }
}

const LINKS: &str = "[link.rack]\none_way = '1ms'\n[link.fabric]\none_way = '3ms'\n";

fn leaf_spine(top: &str, rest: &str) -> String {
    format!("title = 't'\n{top}\n[shape.leaf-spine]\nracks = 4\nnodes_per_rack = 5\n{LINKS}{rest}")
}

#[test]
fn groups_set_cores_and_speeds() {
    let rest = "
        [[group]]
        name = 'big'
        on = ['rack:1', 'node:0']
        cores = 16
        [[group]]
        name = 'slow'
        on = ['nodes:7-11']
        speed = { uniform = { low = 0.4, high = 0.6 } }";
    let topology = resolve(&leaf_spine("cores = 2", rest));
    let big: Vec<_> = (0..20).filter(|&n| topology.cores()[n] == 16).collect();
    assert_eq!(big, [0, 5, 6, 7, 8, 9]);
    let slow: Vec<_> = (0..20).filter(|&n| topology.speeds()[n] < 1.0).collect();
    assert_eq!(slow, [7, 8, 9, 10, 11]);
    assert!(slow.windows(2).all(|pair| topology.speeds()[pair[0]] != topology.speeds()[pair[1]]));
    assert_eq!(topology, resolve(&leaf_spine("cores = 2", rest)), "speeds come from the seed");
    let facts = topology.describe();
    assert_eq!(facts.cores, 6 * 16 + 14 * 2);
    assert_eq!(facts.groups.iter().map(|g| (g.nodes, g.cores)).collect::<Vec<_>>(), [(6, 96), (5, 52)]);
}

#[test]
fn placement_decides_the_links_of_coordinators() {
    let class = |placement: &str, scheduler: u32, node: u32| {
        let topology = resolve(&leaf_spine(placement, ""));
        let places = places(&topology, 2);
        let links = topology.links(places);
        links.classes()[links.class(Endpoint(scheduler), Endpoint(2 + node))].name.clone()
    };
    assert_eq!(class("placement = 'frontends'", 0, 0), "fabric");
    assert_eq!(class("placement = 'spread'", 0, 0), "host");
    assert_eq!(class("placement = 'spread'", 1, 10), "host");
    assert_eq!(class("placement = 'spread'", 1, 11), "rack");
    assert_eq!(class("placement = 'spread'", 1, 9), "fabric");
    assert_eq!(class("placement = { racks = ['rack:2'] }", 0, 12), "rack");
    assert_eq!(class("placement = { racks = ['rack:2'] }", 1, 4), "fabric");
    let star = resolve("title = 't'\n[shape.star]\nnodes = 3\n[link.rack]\none_way = '1ms'");
    let links = star.links(places(&star, 2));
    assert_eq!(links.classes()[links.class(Endpoint(0), Endpoint(1))].name, "rack");
}

#[test]
fn regions_are_targets_with_their_frontends() {
    let topology = shipped("regions.toml");
    let places = places(&topology, 3);
    let mut groups = Groups::new(places.len() as u32);
    topology.name(&mut groups, &places, Endpoint(3));
    let ireland = groups.resolve(&"region:ireland".parse().unwrap()).unwrap();
    assert_eq!(ireland[0], Endpoint(1), "the region's frontend is its first endpoint");
    assert_eq!(ireland[1..], (203..403).map(Endpoint).collect::<Vec<_>>());
    assert_eq!(groups.resolve(&"rack:10".parse().unwrap()).unwrap(), ireland[1..21]);
}

#[test]
fn messages_in_a_graph_take_the_shortest_path() {
    let graph = "
        title = 't'
        placement = { racks = ['rack:core'] }
        [[shape.graph.switch]]
        name = 'a'
        nodes = 2
        access = '1ms'
        [[shape.graph.switch]]
        name = 'core'
        [[shape.graph.switch]]
        name = 'b'
        nodes = 3
        [[shape.graph.link]]
        between = ['a', 'core']
        one_way = '10ms'
        loss = 0.5
        rate = '5 Mbit/s'
        [[shape.graph.link]]
        between = ['core', 'b']
        one_way = '20ms'
        loss = 0.5
        rate = '3 Mbit/s'
        [[shape.graph.link]]
        between = ['a', 'b']
        one_way = '31ms'";
    let facts = resolve(graph).describe();
    let class = facts.classes.iter().find(|class| class.name == "a - b").unwrap();
    assert!((class.one_way_mean_s - 0.031).abs() < 1e-12, "{class:?}");
    assert_eq!((class.loss, class.rate.as_deref(), class.pairs), (Some(0.75), Some("3 Mbit/s"), 6));
    let within = facts.classes.iter().find(|class| class.name == "a").unwrap();
    assert_eq!((within.one_way_mean_s, within.pairs), (0.002, 1));
    let direct = resolve(&graph.replace("31ms", "29ms")).describe();
    let class = direct.classes.iter().find(|class| class.name == "a - b").unwrap();
    assert!(
        (class.one_way_mean_s - 0.030).abs() < 1e-12 && class.loss.is_none(),
        "the direct link is shorter now"
    );
    let cut = graph
        .replace("between = ['core', 'b']", "between = ['core', 'a']")
        .replace("['a', 'b']", "['a', 'core']");
    assert!(refused(&cut).starts_with("shape.graph.link: no path joins `a` and `b`"), "{}", refused(&cut));
}

#[test]
fn errors_name_the_key_and_the_remedy() {
    let star = |rest: &str| format!("title = 't'\n[shape.star]\nnodes = 3\n{rest}");
    let fat =
        |k: u32| format!("title = 't'\n[shape.fat-tree]\nk = {k}\n[link.pod]\none_way = '2ms'\n{LINKS}");
    let regions = |rest: &str| {
        let region =
            |name| format!("[[shape.regions.region]]\nname = '{name}'\nracks = 1\nnodes_per_rack = 2\n");
        format!("title = 't'\n{}{}{LINKS}{rest}", region("x"), region("y"))
    };
    for (text, says) in [
        (star(""), "link.rack: a star needs this table, which is missing"),
        (star(LINKS), "link.fabric: a star has no such links"),
        (star("[link.rack]\none_way = '1ms'").replace("= 3", "= 0"), "shape.star.nodes: must be at least 1"),
        (
            fat(3),
            "shape.fat-tree.k: 3 ports cannot be half uplinks and half downlinks; write an even number, such as 4",
        ),
        (fat(2000), "shape: 2000000000 nodes are too many"),
        (regions(""), "link.between: no link joins `x` and `y`"),
        (
            regions("[[link.between]]\nregions = ['x', 'z']\nlink = { one_way = '9ms' }"),
            "link.between[0].regions: `z` names nothing here; known are x, y",
        ),
        (
            regions(
                "[[link.between]]\nregions = ['y', 'x']\nlink = { one_way = '9ms' }\n[link.region]\none_way = '1s'",
            ),
            "link.region: all pairs of regions have a `between`",
        ),
        (regions("").replace("'y'", "'x'"), "shape.regions.region: two entries are called `x`"),
        (
            leaf_spine("", "[[group]]\nname = 'g'\non = ['rack:9']"),
            "group[0].on: `rack:9` names nothing here; there are 4",
        ),
        (leaf_spine("cores = 0", ""), "cores: a node without cores"),
        (leaf_spine("speed = 0.0", ""), "speed: node 0 has speed 0"),
        (leaf_spine("placement = { racks = ['rack:7'] }", ""), "placement.racks: `rack:7` names nothing"),
        (leaf_spine("", "[link.pod]\none_way = '1ms'"), "link.pod: a leaf-spine has no such links"),
    ] {
        let error = refused(&text);
        assert!(error.starts_with(says), "asked: {says}\n  got: {error}");
    }
}

#[test]
fn network_keys_that_a_topology_overrides_are_refused() {
    let topology = resolve(&leaf_spine("", ""));
    let network = |text: &str| toml::from_str::<Network>(text).unwrap();
    let fabric = |text: &str| {
        let places = places(&topology, 1);
        let endpoints = places.len() as u32;
        Fabric::new(&network(text), topology.links(places), endpoints, 1, Faults::default(), 1).map(|_| ())
    };
    assert!(
        fabric("one_way = '1ms'").unwrap_err().to_string().starts_with("network.one_way: every link class")
    );
    fabric("loss = 0.1\nrate = '1 Gbit/s'").expect("keys that classes omit come from the network");
    let wrong = Fabric::new(&network(""), topology.links(places(&topology, 1)), 7, 1, Faults::default(), 1);
    assert!(
        wrong.unwrap_err().to_string().starts_with("topology: resolved for 21 endpoints, but the run has 7")
    );
}

#[test]
fn syntax_errors_of_topologies_point_at_their_line() {
    for (text, line) in [
        (star_with("one_way = 'soon'"), 5),
        (star_with("one_way = '1ms'\nloss = 5.0"), 6),
        (star_with("one_way = '1ms'\nrate = '0 Mbit/s'"), 6),
        (star_with("one_way = '1ms'\nspeed = 3"), 6),
    ] {
        let error = toml::from_str::<TopologyFile>(&text).expect_err(&text);
        let at = text[..error.span().expect("the error has a span").start].lines().count().max(1);
        let starts_line = text[..error.span().expect("the error has a span").start].ends_with('\n');
        assert_eq!(at + usize::from(starts_line), line, "{error}");
    }
}

fn star_with(rack: &str) -> String {
    format!("title = 't'\n[shape.star]\nnodes = 3\n[link.rack]\n{rack}\n")
}
