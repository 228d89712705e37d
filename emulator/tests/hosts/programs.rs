//! Policies in other languages on hosts: an agent starts only programs that its operator has allowed.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::Value;

use crate::cluster::Cluster;
use crate::common::binary::{expect, folder, lines};

const PROGRAM: &str = include_str!("../../examples/shell/round_robin.sh");
const EXPERIMENT: &str = r#"title = "program"
seed = 5
[cluster]
nodes = 6
[workload.synthetic]
jobs = 40
tasks = 3
interarrival = { exponential = { mean = "100ms" } }
[service]
demand = { exponential = { mean = "100ms" } }
[network]
one_way = "10ms"
loss = 0.02
[[policy]]
external = { command = ["./round_robin.sh"], name = "mine" }
"#;

fn write(folder: &std::path::Path) {
    fs::write(folder.join("x.toml"), EXPERIMENT).unwrap();
    fs::write(folder.join("round_robin.sh"), PROGRAM).unwrap();
    fs::set_permissions(folder.join("round_robin.sh"), fs::Permissions::from_mode(0o755)).unwrap();
}

fn finished(out: &str) -> Value {
    lines(out).remove(0)["jobs"]["finished"].clone()
}

#[test]
fn a_program_runs_in_real_time_and_on_agents_that_volary_starts() {
    let folder = folder();
    write(folder.path());
    for runtime in ["local", "hosts --spawn 2"] {
        let name = runtime.split(' ').next().unwrap();
        let args = format!("run x.toml --runtime {runtime} --json --quiet --out {name}");
        assert_eq!(finished(&expect(folder.path(), &args, 0).0), 40, "{runtime}");
    }
}

#[test]
fn an_agent_refuses_programs_that_its_operator_has_not_allowed() {
    let mut cluster = Cluster::start("");
    write(cluster.path());
    let run = "run x.toml --runtime hosts --hosts ids/hosts.toml --json --quiet --out";
    let (_, err) = expect(cluster.path(), &format!("{run} refused"), 3);
    assert!(err.contains("allows no program `mine`") && err.contains("--policy mine=/path"), "{err}");
    let allowed = format!("--policy mine={}", cluster.path().join("round_robin.sh").display());
    cluster.restart(&allowed);
    assert_eq!(finished(&expect(cluster.path(), &format!("{run} allowed"), 0).0), 40);
}

/// Schedulers that greet a node with each task, and nodes that answer: messages of the program's own.
const GREETS: &str = r#"#!/bin/sh
while IFS= read -r line; do
  case $line in
  '{"hello":'*)
    echo '{"hello":{"protocol":1,"level":"actor","nodes":true,"messages":[{"name":"ping","class":"stream","fields":["u32"]}]}}'
    continue
    ;;
  esac
  orders=
  case $line in
  *'"actor":"scheduler:'*)
    while [ "$line" != "${line#*'"event":"job","job":'}" ]; do
      line=${line#*'"event":"job","job":'}
      job=${line%%,*}
      for task in 0 1 2; do
        orders="$orders,{\"do\":\"launch\",\"job\":$job,\"task\":$task,\"node\":$((job % 6))}"
      done
      orders="$orders,{\"do\":\"send\",\"to\":\"node:$((job % 6))\",\"name\":\"ping\",\"values\":[$job]}"
    done
    ;;
  *'"event":"message","from":"'*)
    from=${line#*'"from":"'}
    orders=",{\"do\":\"send\",\"to\":\"${from%%\"*}\",\"name\":\"ping\",\"values\":[7]}"
    ;;
  esac
  echo "{\"do\":[${orders#,}]}"
done
"#;

#[test]
fn messages_of_a_program_pass_between_hosts() {
    let folder = folder();
    write(folder.path());
    fs::write(folder.path().join("round_robin.sh"), GREETS).unwrap();
    let file = EXPERIMENT
        .replace("name = \"mine\"", "level = \"actor\"")
        .replace("nodes = 6", "nodes = 6\nschedulers = 2");
    fs::write(folder.path().join("x.toml"), file).unwrap();
    let (out, _) = expect(folder.path(), "run x.toml --runtime hosts --spawn 2 --json --quiet --out r", 0);
    let line = lines(&out).remove(0);
    assert_eq!(
        (&line["jobs"]["finished"], &line["messages"]["by_kind"]["custom.stream.0"]),
        (&40.into(), &80.into())
    );
}
