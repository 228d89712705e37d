//! Tests of verdicts on claims through the command line.

use std::fs;

use crate::common::binary::{EXPERIMENT, changed, expect, folder, lines};

#[test]
fn claims_of_several_experiments_make_one_markdown_table() {
    let folder = folder();
    let here = folder.path();
    fs::write(here.join("f.toml"), changed(EXPERIMENT, &[("> 0", "< 0")])).unwrap();
    expect(here, "run e.toml --quiet --out a", 0);
    expect(here, "run f.toml --quiet --out b", 0);
    let (table, _) = expect(here, "report a b --markdown", 0);
    let rows: Vec<&str> = table.lines().skip(2).collect();
    let expected = [
        "| ours | 2 | 1 | 0 | 0 | 1 | 0 | 0 | 2 |",
        "",
        "| experiment | runs | origin | claim | verdict |",
        "|---|--:|---|---|---|",
        "| [`e`](e.toml) | 2 | ours | time passes | holds |",
        "| [`f`](f.toml) | 2 | ours | time passes | **fails** in 1 of 2 checks |",
    ];
    assert_eq!(rows, expected, "{table}");
}

/// Two claims of a paper have the right direction; the size of one differs from the published size. A third claim does
/// not state the source of its tolerance.
#[test]
fn claims_of_papers_state_published_sizes_and_sources_of_tolerances() {
    let folder = folder();
    let here = folder.path();
    let claim = |tasks: u32, tolerance: &str| {
        format!(
            "[[claim]]\nsays = \"{tasks} tasks\"\norigin = \"paper\"\n{tolerance}check = [\"random.tasks.finished > 1\"]\n\
             size = [\"random.tasks.finished within 5% of {tasks}\"]\n"
        )
    };
    let (rest, _) = EXPERIMENT.split_once("[[claim]]").unwrap();
    let ours = "tolerance = \"ours\"\n";
    fs::write(here.join("e.toml"), [rest, &claim(120, ours), &claim(80, ours)].concat()).unwrap();
    let (out, _) = expect(here, "run e.toml --check --out r", 0);
    assert!(out.contains("claims, the paper: 1 of 2 hold, 1 other size, 0 fail"), "{out}");
    assert!(out.contains("≈ other size  80 tasks"), "{out}");
    let (table, _) = expect(here, "report r --markdown", 0);
    for row in [
        "| the paper | 2 | 1 | 1 | 1 | 0 | 0 | 0 | 2 |",
        "| the paper | 120 tasks | holds, by our tolerance |",
        "| the paper | 80 tasks | right direction, **other size** in 1 of 1 numbers |",
    ] {
        assert!(table.contains(row), "{table}");
    }
    fs::write(here.join("e.toml"), [rest, &claim(120, "")].concat()).unwrap();
    let (_, err) = expect(here, "plan e.toml", 2);
    assert!(err.contains("the claim `120 tasks` has a tolerance, but does not state its source"), "{err}");
}

/// Claims of a paper about a trace are not tested on other jobs; claims with origin `ours` are tested.
#[test]
fn verdicts_on_generated_jobs_are_marked() {
    let folder = folder();
    let here = folder.path();
    let trace = "[workload.trace]\nfile = \"no.tr\"\njobs = 20\nfallback = \"yahoo-like\"\n";
    let (world, rest) = EXPERIMENT.split_once("[workload").unwrap();
    let (_, rest) = rest.split_once("[network]").unwrap();
    let (rest, _) = rest.split_once("[[claim]]").unwrap();
    let claim = |origin: &str| {
        format!("[[claim]]\nsays = \"time\"\norigin = \"{origin}\"\ncheck = [\"random.makespan_s > 0\"]\n")
    };
    let text = [world, trace, "[network]", rest, &claim("paper"), &claim("ours")].concat();
    fs::write(here.join("e.toml"), text).unwrap();
    let (out, err) = expect(here, "run e.toml --check --out r", 0);
    assert!(out.contains("claims, the paper: 0 of 1 hold, 0 fail, 1 not tested"), "{out}");
    assert!(out.contains("claims, ours: 1 of 1 hold"), "{out}");
    assert!(err.contains("1 of 2 claims could not be tested: a generator replaces the trace"), "{err}");
    let (table, _) = expect(here, "report r --markdown", 0);
    for row in [
        "| the paper | 1 | 0 | 0 | 0 | 0 | 0 | 1 | 0 |",
        "| the paper | time | not tested; on the jobs of a generator, in place of the trace: holds |",
        "| ours | time | holds; on the jobs of a generator: the trace was not found |",
    ] {
        assert!(table.contains(row), "{table}");
    }
    let told = lines(&expect(here, "report r --json", 0).0).pop().unwrap();
    assert_eq!(told["claims"][0]["verdict"], "not-tested");
    assert_eq!(told["claims"][0]["measured"]["random.makespan_s > 0"]["stand_in"], true);
}

#[test]
fn a_failed_claim_gives_status_1_only_with_check() {
    let folder = folder();
    let here = folder.path();
    fs::write(here.join("e.toml"), changed(EXPERIMENT, &[("> 0", "< 0")])).unwrap();
    let (out, _) = expect(here, "run e.toml --out a", 0);
    assert!(out.contains("fails"), "{out}");
    let (_, err) = expect(here, "run e.toml --out b --check --quiet", 1);
    assert!(err.contains("1 of 1 claim failed"), "{err}");
}

#[test]
fn untested_claims_are_reported_with_check() {
    let folder = folder();
    let here = folder.path();
    let swept = "[sweep]\n\"service.correlated\" = [true, false]\n[[claim]]\nsays = \"apart\"\n\
                 when = { \"service.correlated\" = false }\ncheck = [\"random.makespan_s > 0\"]\n";
    fs::write(here.join("e.toml"), format!("{EXPERIMENT}{swept}")).unwrap();
    let run = |out: &str| expect(here, &format!("run e.toml --quiet --check --out {out}"), 0).1;
    assert_eq!(run("a"), "");
    let left_out = " WARN 1 of 2 claims could not be tested: --policy, --set or --slice leaves out runs that these claims compare\n";
    assert_eq!(run("b --policy random"), left_out);
    assert_eq!(run("c --set service.correlated=true"), left_out);
    fs::write(
        here.join("e.toml"),
        changed(EXPERIMENT, &[("random.makespan_s", "random.staleness.error_s.p50")]),
    )
    .unwrap();
    let known = " WARN the claim `time passes` cannot be tested: `random` keeps no caches, so its results have no \
                 `staleness.error_s.p50`\n";
    let (plan, said) = expect(here, "plan e.toml", 0);
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>().join(" ");
    assert!(words(&plan).contains(&words(known).replace("WARN", "warning")), "{plan}");
    assert_eq!(said, "", "a plan prints the warning only on stderr");
    let unmeasured = " WARN 1 of 1 claim could not be tested: a number in these claims was not measured\n";
    assert_eq!(run("d"), format!("{known}{unmeasured}"));
}

#[test]
fn the_findings_of_a_claim_are_in_the_order_of_the_sweep() {
    let folder = folder();
    let here = folder.path();
    let swept = "[sweep]\n\"cluster.nodes\" = [9, 10, 8]\n[[claim]]\nsays = \"never\"\n\
                 check = [\"random.makespan_s < 0\"]\n";
    fs::write(here.join("e.toml"), format!("{EXPERIMENT}{swept}")).unwrap();
    let (out, _) = expect(here, "run e.toml --out r", 0);
    let listed = |out: &str| -> Vec<String> {
        let nodes = out.lines().filter_map(|line| line.split_once("random.makespan_s < 0 [cluster.nodes="));
        nodes.map(|(_, rest)| rest.split(']').next().unwrap().to_owned()).collect()
    };
    assert_eq!(listed(&out), ["9", "10", "8"]);
    let (again, _) = expect(here, "report r", 0);
    assert_eq!(listed(&again), ["9", "10", "8"]);
}
