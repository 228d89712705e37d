//! Tests of round trips, schemas and unknown keys of the configuration types.

use volary_netem::{Network, TopologyFile};

const EVERY_KEY: &str = "
one_way = { gamma = { shape = 100.0, mean = '10ms' } }
correlation = 0.3
loss = { gilbert-elliott = { p = 0.01, r = 0.2, good_loss = 0.001, bad_loss = 0.9 } }
duplicate = 0.01
reorder = 0.02
reorder_by = { exponential = { mean = '3ms' } }
rate = '100 Mbit/s'
buffer = '256 KiB'
rto = '80ms'
peer_timeout = '5s'
[[fault]]
partition = { a = ['schedulers'], b = ['nodes:3-9', 'rack:2'], at = '1s', for = '2s', one_way = true }
[[fault]]
crash = { who = ['node:3'], at = '1s' }
[[fault]]
pause = { who = ['region:virginia'], at = '1s', for = '100ms' }
[[fault]]
degrade = { a = ['all'], b = ['node:1'], at = '1s', for = '2s', delay_factor = 4.0, loss = 0.1 }
";

#[test]
fn networks_round_trip_through_toml() {
    for text in ["", "loss = 0.25\none_way = '3ms'", EVERY_KEY] {
        let network: Network = toml::from_str(text).unwrap();
        let written = toml::to_string(&network).unwrap();
        assert_eq!(toml::from_str::<Network>(&written).unwrap(), network, "{written}");
    }
    assert_eq!(toml::from_str::<Network>("").unwrap(), Network::default());
}

#[test]
fn unknown_keys_and_wrong_values_name_their_line() {
    for (text, line, says) in [
        ("one_way = '1ms'\nlos = 0.1", 2, "unknown field `los`"),
        ("loss = { gilbert = { p = 0.1, r = 0.1 } }", 1, "gilbert-elliott"),
        ("loss = { gilbert-elliott = { p = 0, r = 0 } }", 1, "the chain never leaves its state"),
        ("one_way = '1ms'\nrate = '10 Mbps'", 2, "100 Mbit/s"),
        ("rate = '1 Mbit/s'\nbuffer = 9", 2, "a length of time or a number of bytes"),
        (
            "[[fault]]\npartition = { a = ['nodes:9-3'], at = '1s', for = '1s' }",
            2,
            "the range runs backwards",
        ),
        ("[[fault]]\ncrash = { who = ['node:1'], at = '1s', until = '2s' }", 2, "unknown field `until`"),
        ("[[fault]]\nexplode = { who = ['node:1'], at = '1s' }", 2, "unknown variant `explode`"),
        ("duplicate = 1.5", 1, "1.5 % is written 0.015"),
    ] {
        let error = toml::from_str::<Network>(text).expect_err(text).to_string();
        assert!(error.contains(&format!("line {line}")) && error.contains(says), "{says}: {error}");
    }
}

#[test]
fn topologies_round_trip_through_toml() {
    for text in [
        include_str!("../../topologies/star.toml"),
        include_str!("../../topologies/leaf-spine.toml"),
        include_str!("../../topologies/fat-tree.toml"),
        include_str!("../../topologies/regions.toml"),
    ] {
        let file: TopologyFile = toml::from_str(text).unwrap();
        let written = toml::to_string(&file).unwrap();
        assert_eq!(toml::from_str::<TopologyFile>(&written).unwrap(), file, "{written}");
    }
}

#[test]
fn schemas_contain_every_key() {
    let schema = format!("{:?}", schemars::schema_for!(Network));
    for key in
        ["one_way", "gilbert-elliott", "reorder_by", "peer_timeout", "partition", "delay_factor", "\"for\""]
    {
        assert!(schema.contains(key), "{key}");
    }
    let schema = format!("{:?}", schemars::schema_for!(TopologyFile));
    for key in ["leaf-spine", "nodes_per_rack", "placement", "frontends", "between", "access"] {
        assert!(schema.contains(key), "{key}");
    }
}
