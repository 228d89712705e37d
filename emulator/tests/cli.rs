//! The binary from the user's side: streams, exit status, files.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

mod common;

use std::fs;

use common::binary::{EXPERIMENT, expect, folder, lines, results};

#[test]
fn a_run_prints_lines_keeps_files_and_resumes() {
    let folder = folder();
    let here = folder.path();
    let (out, err) = expect(here, &["run", "e.toml", "--json", "--check", "--out", "r", "--repeat", "2"], 0);
    let found = lines(&out);
    assert_eq!((found.len(), err.as_str()), (5, ""));
    assert_eq!(found[0]["seed"], 3);
    assert_eq!(found[4]["claims"][0]["verdict"], "holds");
    for file in ["manifest.json", "summary.jsonl", "report.html"] {
        assert!(here.join("r").join(file).exists(), "{file}");
    }
    // The same again needs --resume, and then has nothing to do but gives the same lines.
    let (_, err) = expect(here, &["run", "e.toml", "--out", "r"], 2);
    assert!(err.contains("--resume"), "{err}");
    let (again, _) = expect(here, &["run", "e.toml", "--json", "--out", "r", "--resume", "--repeat", "2"], 0);
    assert_eq!(again, out);
    let (table, _) = expect(here, &["report", "r"], 0);
    assert!(table.contains("sparrow") && table.contains("time passes"), "{table}");
    let (compared, _) = expect(here, &["compare", "r", "r"], 0);
    assert!(compared.contains("response_s"), "{compared}");
}

#[test]
fn shards_together_are_the_whole() {
    let folder = folder();
    let here = folder.path();
    let claim =
        "[[claim]]\nsays = \"both\"\ncheck = [\"random.response_s.mean > 0 * sparrow.response_s.mean\"]\n";
    fs::write(here.join("e.toml"), format!("{EXPERIMENT}\n{claim}")).unwrap();
    let (whole, _) = expect(here, &["run", "e.toml", "--json", "--out", "whole"], 0);
    let (one, _) = expect(here, &["run", "e.toml", "--json", "--out", "a", "--shard", "1/2"], 0);
    assert_eq!(lines(&one).last().unwrap()["claims"][1]["verdict"], "not-tested");
    expect(here, &["run", "e.toml", "--json", "--out", "b", "--shard", "2/2"], 0);
    let (merged, _) = expect(here, &["report", "a", "b", "--json"], 0);
    assert_eq!(results(&merged), results(&whole));
}

#[test]
fn a_failed_claim_is_status_1_only_when_checked() {
    let folder = folder();
    let here = folder.path();
    fs::write(here.join("e.toml"), EXPERIMENT.replace("> 0", "< 0")).unwrap();
    let (out, _) = expect(here, &["run", "e.toml", "--out", "a"], 0);
    assert!(out.contains("fails"), "{out}");
    let (_, err) = expect(here, &["run", "e.toml", "--out", "b", "--check", "--quiet"], 1);
    assert!(err.contains("1 of 1 claims failed"), "{err}");
}

#[test]
fn bad_input_is_status_2_and_explained_on_stderr() {
    let folder = folder();
    let here = folder.path();
    fs::write(here.join("bad.toml"), EXPERIMENT.replace("nodes = 8", "node = 8")).unwrap();
    for (args, words) in [
        (
            &["run", "bad.toml"][..],
            &["error: unknown key `node`", "bad.toml:5:1", "did you mean `nodes`?"][..],
        ),
        (&["plan", "nowhere.toml"], &["cannot read nowhere.toml"]),
        (&["plan", "f.toml"], &["cannot read f.toml"]),
        (&["run", "e.toml", "--policy", "sparow"], &["--policy", "did you mean `sparrow`?"]),
        (&["run", "e.toml", "--set", "network.los=1"], &["--set:1:1", "did you mean `loss`?"]),
        (&["run", "e.toml", "--runtime", "hosts"], &["--spawn N"]),
        (&["run", "e.toml", "--runtime", "vitual"], &["expected virtual, local or hosts"]),
        (&["run", "e.toml", "--shard", "3/2"], &["I/N"]),
        (&["run", "e.toml", "--repeat", "0"], &["at least 1"]),
        (&["run"], &["EXPERIMENT"]),
        (&["policies", "sparow"], &["did you mean `sparrow`?"]),
        (&["report", "e.toml"], &["not a run directory"]),
        (&["profile", "show", "e.toml"], &["e.toml"]),
        (&["topology", "show", "e.toml"], &["e.toml:24:3", "unknown key `claim`"]),
        (&["trace", "describe", "no.tr"], &["no.tr"]),
        (&["schema", "nothing"], &["experiment"]),
        (&["certs", "c"], &["--host"]),
        (&["certs", "c", "--host", "h1"], &["NAME=ADDRESS:PORT"]),
        (&["certs", "c", "--host", "h1=here:1"], &["`here:1` is no address", "10.77.0.2:4433"]),
        (&["certs", "c", "--host", "controller=10.0.0.1:1"], &["`controller` is the controller's"]),
        (&["certs", "c", "--host", "h1=10.0.0.1:1", "--days", "0"], &["--days"]),
    ] {
        let (out, err) = expect(here, args, 2);
        assert!(out.is_empty(), "{args:?}: {out}");
        for word in words {
            assert!(err.contains(word), "{args:?} lacks {word:?}\n{err}");
        }
    }
    assert!(!here.join("runs").exists());
}

#[test]
fn certs_makes_identities_once_and_says_what_to_do() {
    let folder = folder();
    let here = folder.path();
    let hosts = ["--host", "h1=10.0.0.1:4433", "--host", "h2=10.0.0.2:4433"];
    let (out, err) = expect(here, &[&["certs", "lab", "--days", "7"], &hosts[..]].concat(), 0);
    assert!(out.starts_with("valid until 2") && err.is_empty(), "{out}{err}");
    let said: Vec<_> = out.lines().skip(1).collect();
    assert_eq!(
        said,
        [
            "  lab/controller",
            "  lab/h1",
            "  lab/h2",
            "copy each host's folder to it and start `volary agent --listen ADDR --identity FOLDER`;",
            "then `volary run EXPERIMENT --runtime hosts --hosts lab/hosts.toml`",
        ]
    );
    let file = fs::read_to_string(here.join("lab/hosts.toml")).unwrap();
    assert!(file.contains("name = \"h2\"\naddress = \"10.0.0.2:4433\"\n"), "{file}");
    let (_, err) = expect(here, &["certs", "lab", "--host", "h3=10.0.0.3:4433"], 2);
    assert!(err.contains("lab exists and is not overwritten"), "{err}");
}

#[test]
fn everything_else_answers_on_stdout() {
    let folder = folder();
    let here = folder.path();
    fs::write(here.join("p.toml"), "bernoulli = { slot = \"1s\", probability = 0.5, slowdown = 2 }\n")
        .unwrap();
    fs::write(here.join("t.tr"), "0.0 2 1.5 1.0 2.0\n1.0 1 3.0 3.0\n").unwrap();
    let star = "title = \"s\"\nshape = { star = { nodes = 3 } }\n[link.rack]\none_way = \"1ms\"\n";
    fs::write(here.join("s.toml"), star).unwrap();
    for (args, words) in [
        (&["plan", "e.toml"][..], "1 cell × 2 policies"),
        (&["plan", "e.toml", "--json"], "\"offered\""),
        (&["policies"], "latin-square"),
        (&["policies", "latin-square"], "order"),
        (&["policies", "--json"], "\"parameters\""),
        (&["schema", "experiment"], "\"interarrival\""),
        (&["schema", "results"], "\"response_s\""),
        (&["profile", "show", "p.toml", "--until", "4s"], "throughput"),
        (&["profile", "show", "p.toml", "--json"], "start_s"),
        (&["topology", "show", "s.toml"], "3 nodes"),
        (&["trace", "describe", "t.tr"], "2"),
        (&["trace", "convert", "t.tr", "u.tr.gz"], "2 jobs, 3 tasks"),
        (&["completions", "bash"], "_volary"),
        (&["--version"], "volary"),
    ] {
        let (out, err) = expect(here, args, 0);
        assert!(out.contains(words) && err.is_empty(), "{args:?}\n{out}\n{err}");
    }
    assert!(here.join("u.tr.gz").exists());
}
