//! Tests of mixes of classes of jobs in experiment files: valid mixes, and errors.

use std::fs;

use volary_experiment::config::load::load;
use volary_experiment::config::{Experiment, Overrides};

use super::plan;
use crate::common::binary::changed;

/// An experiment with a mix of two classes; one class has two stages.
const MIX: &str = r#"title = "a mix"
seed = 7

[cluster]
nodes = 10

[workload.mix]
jobs = 100
interarrival = { exponential = { mean = "4s" } }

[[workload.mix.class]]
name = "pair"
weight = 0.5
stages = [
  { tasks = 15, demand = "1s" },
  { tasks = 5, demand = { exponential = { mean = "2s" } } },
]
alone = "4s"

[[workload.mix.class]]
name = "single"
weight = 1.5
stages = [{ tasks = { uniform = { low = 1, high = 9 } }, demand = "5s" }]
long = true

[[policy]]
random = {}

[[claim]]
says = "pairs end"
check = ["random.classes.pair.response_s.p50 < 1000"]
"#;

fn message(text: &str) -> String {
    match plan(text) {
        Ok(_) => panic!("accepted:\n{text}"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn the_load_of_a_mix_follows_from_its_distributions() {
    let experiment = plan(MIX).unwrap();
    assert_eq!(experiment.warnings, [] as [&str; 0]);
    let found = load(&experiment.points[0].resolved, 7, &experiment.traces()).unwrap();
    // Jobs of both classes bring 25 s of work each; one job arrives every 4 s, and there are 10 cores.
    assert!((found.offered - 0.625).abs() < 1e-9, "{found:?}");
}

#[test]
fn doubtful_mixes_give_warnings() {
    for (from, to, words) in [
        ("{ exponential = { mean = \"4s\" } }", "\"0s\"", "workload.mix.interarrival is always 0"),
        (
            "demand = \"1s\"",
            "demand = { pareto = { scale = \"1s\", shape = 0.9 } }",
            "workload.mix.class[0].stages[0].demand has no mean",
        ),
        (
            "random = {}\n",
            "random = {}\n\n[[policy]]\nlate = {}\n",
            "policy `late` judges no copy before it has run for 60",
        ),
    ] {
        let text = changed(MIX, &[(from, to)]);
        let warnings = plan(&text).unwrap().warnings;
        assert_eq!(warnings.len(), 1, "{to}: {warnings:?}");
        assert!(warnings[0].starts_with(words), "{to}: {warnings:?}");
    }
}

/// A table of changes (from => to), the position of the error, and words that the message must contain.
const MISTAKES: &str = r#"
[[policy]] => [service]\ndemand = "1s"\n[[policy]] | e.toml:27:10 | `service.demand`: the stages of a mix | leave the key out
stages = [{ tasks = { uniform = { low = 1, high = 9 } }, demand = "5s" }] => stages = [] | e.toml:23:10 | class[1].stages`: 0 stages | write for example
weight = 1.5 => weight = -1.5 | e.toml:22:10 | at least zero, not -1.5 | a share such as 0.3
alone = "4s" => alone = "0s" | e.toml:18:9 | slowdown over 0 is undefined | or leave it out
name = "single" => name = "pair" | e.toml:21:8 | two classes are called `pair` | another name
name = "single" => name = "1 s" | e.toml:21:8 | is not a valid class name | letters, digits
name = "single"\n => | e.toml:20: | `workload.mix.class[1]` lacks `name` | add `name = …`
weight = 1.5\n => | e.toml:20: | `workload.mix.class[1]` lacks `weight` | add `weight = …`
tasks = 5, => | e.toml:16: | `workload.mix.class.stages[1]` lacks `tasks` | add `tasks = …`
tasks = 5 => tasks = 0.5 | e.toml:16:13 | class[0].stages[1].tasks`: a job cannot have 0.5 tasks | at least 1
tasks = 5 => taks = 5 | e.toml:16:5 | unknown key `taks` | did you mean `tasks`?
demand = "1s" => demand = "0s" | e.toml:15:26 | class[0].stages[0].demand`: no copy would have any work | write for example
jobs = 100 => jobs = 0 | e.toml:8:8 | 0 jobs | write for example
jobs = 100 => jobs = 100_000_000 | e.toml:8:8 | more than 100000000 stages | lower their number
demand = "5s" => demand = "200000d" | e.toml:11: | 292 years | lower the work
weight = 0.5 => weight = 0.5\nnames = 0 | e.toml:14:9 | 0 names are not between 1 and the number of jobs, 100 | write for example 20
weight = 0.5 => weight = 0.5\nnames = 101 | e.toml:14:9 | 101 names are not between 1 and the number of jobs, 100
weight = 0.5 => weight = 0.5\nnames = 4\nusers = 5 | e.toml:15:9 | 5 users are not between 1 and the number of names, 4 | write fewer
weight = 0.5 => weight = 0.5\nnames = 4\nspread = -1 | e.toml:15:10 | -1 is not between 0 and 10 | such as 0.2
weight = 0.5 => weight = 0.5\nnames = 4\nrecurrence = 1.5 | e.toml:15:14 | a share from 0 to 1
weight = 0.5 => weight = 0.5\nrecurrence = 0.5 | e.toml:14:14 | jobs that share names, and the class has none | names = 20
weight = 0.5 => weight = 0.5\nname_s = 4 | e.toml:14:1 | unknown key `name_s` | did you mean `names`?
classes.pair => classes.pairs | e.toml:31:26 | unknown class of jobs `pairs` | did you mean `pair`?
[workload.mix]\njobs = 100 => [workload.mix]\nclasses.pair.weight = 2\njobs = 100 | e.toml:8:1 | names a file of classes | workload.mix.class.NAME.KEY
[workload.mix]\njobs = 100 => [workload.mix]\ncutoff = "1s"\njobs = 100 | e.toml:8:1 | unknown key `cutoff` | known here: jobs
"#;

#[test]
fn every_mistake_in_a_mix_is_located_and_has_a_remedy() {
    for mistake in MISTAKES.trim().lines() {
        let mut words = mistake.split(" | ");
        let (from, to) = words.next().unwrap().split_once(" =>").unwrap();
        let [from, to] = [from, to.strip_prefix(' ').unwrap_or(to)].map(|text| text.replace("\\n", "\n"));
        let text = message(&changed(MIX, &[(&from, &to)]));
        let missing: Vec<_> = words.chain([" = help: "]).filter(|word| !text.contains(word)).collect();
        assert!(missing.is_empty(), "{mistake} lacks {missing:?}\n{text}");
    }
    let none = message(&changed(MIX, &[("weight = 0.5", "weight = 0"), ("weight = 1.5", "weight = 0.0")]));
    assert!(none.contains("e.toml:13:10") && none.contains("the weights sum to 0"), "{none}");
}

/// The values of empirical distributions of stages come from files beside the experiment.
#[test]
fn empirical_distributions_of_stages_are_read_from_files() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("mix.toml");
    fs::write(folder.path().join("sizes.txt"), "2\n4 # tasks\n").unwrap();
    fs::write(&file, changed(MIX, &[("tasks = 15", "tasks = { empirical = { file = \"sizes.txt\" } }")]))
        .unwrap();
    let experiment = Experiment::load(&file, &Overrides::default()).unwrap();
    let found = load(&experiment.points[0].resolved, 7, &experiment.traces()).unwrap();
    // A quarter of the jobs bring 3 s + 10 s instead of 15 s + 10 s.
    assert!((found.offered - 0.55).abs() < 1e-9, "{found:?}");
}

/// A mix may take its classes from another file. Errors in the file are reported at their place in that file.
#[test]
fn a_mix_can_take_its_classes_from_another_file() {
    let folder = tempfile::tempdir().unwrap();
    let classes = |text: &str| {
        let own: String = text.split_once("[[workload.mix.class]]").unwrap().1.into();
        let (own, rest) = own.split_once("[[policy]]").unwrap();
        let file = format!("[[workload.mix.class]]{own}").replace("workload.mix.class", "class");
        let head = text.split_once("[[workload.mix.class]]").unwrap().0;
        (file, format!("{head}classes = \"c.toml\"\n\n[[policy]]{rest}"))
    };
    let (file, text) = classes(MIX);
    let said = |file: &str, text: &str| {
        fs::write(folder.path().join("c.toml"), file).unwrap();
        fs::write(folder.path().join("e.toml"), text).unwrap();
        Experiment::load(&folder.path().join("e.toml"), &Overrides::default()).map_err(|e| e.to_string())
    };
    let (own, read) = (plan(MIX).unwrap(), said(&file, &text).unwrap());
    assert_eq!(own.points[0].resolved.digest, read.points[0].resolved.digest);
    for (file, text, words) in [
        (changed(&file, &[("weight = 0.5", "weigth = 0.5")]), text.clone(), ["c.toml:3:", "`weight`"]),
        (format!("jobs = 1\n{file}"), text.clone(), ["c.toml:1:1", "nothing else"]),
        (
            "shape = 3\n".to_owned(),
            text.clone(),
            ["is a topology, not a file of classes", "volary topology show"],
        ),
        (String::new(), text.clone(), ["e.toml:", "0 classes are not between"]),
        (file.clone(), changed(&text, &[("c.toml", "d.toml")]), ["cannot read", "d.toml"]),
        (
            file.clone(),
            changed(MIX, &[("[workload.mix]", "[workload.mix]\nclasses = \"c.toml\"")]),
            ["keep one", "e.toml:8:"],
        ),
    ] {
        let error = said(&file, &text).unwrap_err();
        assert!(words.iter().all(|word| error.contains(word)), "{words:?}\n{error}");
    }
}
