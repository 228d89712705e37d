//! Bad input: status 2, a message with place and remedy, and nothing left behind.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

mod common;

use std::fs;

use common::binary::{EXPERIMENT, expect, folder};

/// What is changed, what to, further arguments, and words the message must hold.
type Refusal<'a> = (&'a str, &'a str, &'a [&'a str], &'a [&'a str]);

const SYNTHETIC: &str = "[workload.synthetic]\njobs = 60\ntasks = 2\ninterarrival = \"200ms\"";
const DEMAND: &str = "{ exponential = { mean = \"100ms\" } }";
const LINKS: &str = "one_way = \"1ms\"";

fn fault(text: &str) -> String {
    format!("{LINKS}\n[[network.fault]]\n{text}")
}

#[test]
fn nothing_is_left_behind() {
    let folder = folder();
    let here = folder.path();
    fs::write(here.join("bad.tr"), "0.0 2 1.5 1.0 2.0\n1.0 1 3.0 x\n").unwrap();
    // The magic of xz and no more.
    fs::write(here.join("cut.tr.xz"), [0xfd, b'7', b'z', b'X', b'Z', 0, 0, 4]).unwrap();
    let islands = "title = \"t\"\n[[shape.graph.switch]]\nname = \"a\"\nnodes = 2\n\
                   [[shape.graph.switch]]\nname = \"b\"\nnodes = 2\n";
    fs::write(here.join("islands.toml"), islands).unwrap();
    let trace = |name: &str| format!("[workload.trace]\nfile = \"{name}\"");
    let (missing, malformed, cut) = (trace("nowhere.tr"), trace("bad.tr"), trace("cut.tr.xz"));
    let (unknown, client, all) = (
        fault("pause = { who = [\"node:99\"], at = \"1s\", for = \"1s\" }"),
        fault("crash = { who = [\"client:0\"], at = \"1s\" }"),
        fault("crash = { who = [\"all\"], at = \"1s\" }"),
    );
    let refusals: &[Refusal<'_>] = &[
        ("nodes = 8", "nods = 8", &[], &["x.toml:5:1", "did you mean `nodes`?"]),
        (LINKS, "one_way = \"1 parsec\"", &[], &["x.toml:16:11", "network.one_way", "help"]),
        (LINKS, "one_way = 1", &[], &["x.toml:16:11", "a number with its unit"]),
        (LINKS, "one_way = \"-1ms\"", &[], &["x.toml:16:11", "at least zero"]),
        (
            LINKS,
            "one_way = { uniform = { low = nan, high = \"1s\" } }",
            &[],
            &["x.toml:16:", "network.one_way"],
        ),
        (LINKS, "loss = nan", &[], &["x.toml:16:", "network.loss"]),
        (LINKS, "loss = 1.5", &[], &["x.toml:16:8", "1.5"]),
        (LINKS, &unknown, &[], &["network.fault", "node:99"]),
        (LINKS, &client, &[], &["x.toml:18:", "would crash a client", "outside the experiment"]),
        (LINKS, &all, &[], &["x.toml:18:", "would crash a client"]),
        (
            "random = {}",
            "latin-square = { order = 9 }",
            &[],
            &["x.toml:19:", "exceeds the number of servers"],
        ),
        (SYNTHETIC, &missing, &[], &["nowhere.tr", "VOLARY_TRACES"]),
        (SYNTHETIC, &malformed, &[], &["bad.tr:2"]),
        (SYNTHETIC, &cut, &[], &["cut.tr.xz"]),
        ("nodes = 8", "topology = \"islands.toml\"", &[], &["islands.toml:", "no path joins `a` and `b`"]),
        ("random.makespan_s", "rndom.makespan_s", &[], &["unknown policy `rndom`", "did you mean `random`?"]),
        (DEMAND, "{ exponential = { mean = \"0.1\" } }", &[], &["x.toml:13:", "service.demand"]),
        ("seed = 3", "seed = 3", &["--runtime", "hosts"], &["--hosts FILE", "--spawn N"]),
        ("seed = 3", "seed = 3", &["--spawn", "2"], &["--runtime hosts"]),
        ("seed = 3", "seed = 3", &["--set", "run.speed=0"], &["--set:1:11", "run.speed", "between"]),
        ("seed = 3", "seed = 3", &["--set", "run.speed=inf"], &["--set:1:11", "run.speed", "between"]),
        ("seed = 3", "seed = 3", &["--set", "run.speed=nan"], &["--set:1:11", "run.speed", "between"]),
        ("seed = 3", "repeat = \"auto\"", &["--shard", "1/2"], &["--repeat N"]),
    ];
    let mut wrong = Vec::new();
    for (from, to, more, words) in refusals {
        assert!(EXPERIMENT.contains(from), "{from}");
        fs::write(here.join("x.toml"), EXPERIMENT.replace(from, to)).unwrap();
        let args = [&["run", "x.toml", "--out", "r"], *more].concat();
        let output = common::binary::volary(here, &args);
        let err = common::binary::text(&output.stderr);
        let missing: Vec<_> = words.iter().filter(|word| !err.contains(**word)).collect();
        if output.status.code() != Some(2) || !missing.is_empty() || here.join("r").exists() {
            wrong.push(format!("{to:?} {more:?}: {:?}, lacks {missing:?}\n{err}", output.status.code()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn an_output_folder_that_cannot_be_one_is_refused() {
    let folder = folder();
    let here = folder.path();
    fs::write(here.join("busy"), "a file where a folder should be").unwrap();
    for out in ["busy", "busy/below"] {
        let (_, err) = expect(here, &["run", "e.toml", "--quiet", "--out", out], 2);
        assert!(err.contains(out) && err.contains("--out"), "{err}");
    }
    assert_eq!(fs::read_to_string(here.join("busy")).unwrap(), "a file where a folder should be");
}
