//! Policies in other languages: round robin in shell, programs that misbehave, and programs that change.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::Value;

use crate::common::binary::{EXPERIMENT, changed, expect, finished, folder, lacks, results};

/// The greeting of a central program, as a line of shell.
const HELLO: &str = r#"read -r line; echo '{"hello":{"protocol":1,"level":"central"}}'"#;

/// The experiment with a program besides `random`. Paths in the command are relative to the experiment's folder.
fn with_program(command: &str, more: &str) -> String {
    let program = format!("external = {{ command = {command}{more} }}");
    changed(EXPERIMENT, &[("sparrow = {}", &program), (", \"sparrow.jobs.finished == 60\"", "")])
}

fn script(folder: &Path, name: &str, text: &str) {
    let path = folder.join(name);
    fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn a_shell_script_gives_the_results_of_the_built_in_round_robin() {
    let folder = folder();
    let text = include_str!("../../examples/shell/round_robin.sh");
    script(folder.path(), "round_robin.sh", text);
    let file = with_program("[\"./round_robin.sh\"]", "");
    let crash =
        "one_way = \"1ms\"\n[[network.fault]]\ncrash = { who = [\"node:1\"], at = \"2s\", for = \"30s\" }";
    let pieces = [("random = {}", "round-robin = {}"), ("random.makespan_s > 0", "0 < 1")];
    let file = changed(&changed(&file, &pieces), &[("one_way = \"1ms\"", crash)]);
    fs::write(folder.path().join("x.toml"), file).unwrap();
    let (out, _) = expect(folder.path(), "run x.toml --out r --json", 0);
    let [ours, theirs, ..] = &results(&out)[..] else { panic!("{out}") };
    let both = |key: &str| [ours[key]["finished"].as_u64(), theirs[key]["finished"].as_u64()];
    assert_eq!((both("jobs"), both("tasks")), ([Some(60); 2], [Some(120); 2]));
    let p50 = |line: &Value| line["response_s"]["p50"].as_f64().unwrap();
    assert!((p50(ours) / p50(theirs) - 1.0).abs() < 0.2, "{out}");
}

#[test]
fn a_program_that_fails_ends_its_run_and_no_other() {
    let folder = folder();
    let here = folder.path();
    script(here, "ends", "read -r line; echo told >&2; exit 3");
    script(here, "other", r#"read -r line; echo '{"hello":{"protocol":9,"level":"central"}}'"#);
    script(here, "actor", r#"read -r line; echo '{"hello":{"protocol":1,"level":"actor"}}'"#);
    script(here, "half", &format!("{HELLO}; read -r line; printf '{{\"do\":'"));
    script(
        here,
        "twice",
        // Both lines are written at once: a second line after the next request would be taken for the answer to that
        // request.
        &format!("{HELLO}; read -r line; printf '{{}}\\n{{}}\\n'; read -r line"),
    );
    script(here, "floods", &format!("{HELLO}; read -r line; tr '\\0' x < /dev/zero"));
    script(here, "complains", &format!("{HELLO}; read -r line; yes >&2"));
    script(here, "hangs", &format!("trap '' TERM; {HELLO}; read -r line; sleep 1000"));
    script(here, "children", &format!("sleep 1000 & echo $! > child; {HELLO}; read -r line; exit 4"));
    for (command, more, words) in [
        ("[\"./ends\"]", "", "it ended (exit status: 3) | it complained: told"),
        ("[\"./other\"]", "", "it uses protocol 9, and this volary uses 1: update one"),
        ("[\"./actor\"]", "", "it decides at level \"actor\", and the experiment has level \"central\""),
        ("[\"./half\"]", "", "it ended (exit status: 0) instead of answering"),
        ("[\"./twice\"]", "", "it wrote more than one line"),
        ("[\"./floods\"]", "", "longer than 64 MiB"),
        ("[\"./hangs\"]", ", patience = \"300ms\"", "it did not answer within 300ms, the policy's patience"),
        ("[\"./complains\"]", ", patience = \"5s\"", "it did not answer within 5s | it complained: y"),
        ("[\"./children\"]", "", "it ended (exit status: 4)"),
    ] {
        fs::write(here.join("x.toml"), with_program(command, more)).unwrap();
        let (out, err) = expect(here, "run x.toml --out r", 3);
        assert_eq!(lacks(&err, words, 0), Vec::<&str>::new(), "{command}: {err}");
        assert_eq!(finished(&here.join("r")).len(), 1, "{command}: {out}");
        fs::remove_dir_all(here.join("r")).unwrap();
    }
    let child = fs::read_to_string(here.join("child")).unwrap();
    let stat = fs::read_to_string(format!("/proc/{}/stat", child.trim())).unwrap_or_default();
    assert!(stat.is_empty() || stat.contains(" Z "), "a child of a program still runs: {stat}");
}

#[test]
fn mistakes_in_the_table_of_a_program_are_refused_before_the_run() {
    let folder = folder();
    let here = folder.path();
    for (command, more, words) in [
        ("[]", "", "x.toml: | names no program | command = [\"python3\", \"mine.py\"]"),
        ("[\"true\"]", ", processes = \"each\"", "\"each\" needs several schedulers"),
        ("[\"true\"]", ", level = \"actor\", decision = \"1ms\"", "only programs of level \"central\""),
        ("[\"true\"]", ", files = [\"gone.py\"]", "gone.py | relative to the folder of the experiment file"),
        ("[\"true\"]", ", patience = \"0s\"", "patience: must be"),
        ("[\"true\"]", ", level = \"node\"", "unknown name `node` | expected `central` or `actor`"),
    ] {
        fs::write(here.join("x.toml"), with_program(command, more)).unwrap();
        let (_, err) = expect(here, "plan x.toml", 2);
        assert_eq!(lacks(&err, words, 0), Vec::<&str>::new(), "{command} {more}\n{err}");
    }
    fs::write(here.join("plain.sh"), "exit 0\n").unwrap();
    for (command, words) in
        [("nowhere", "cannot start `nowhere` | PATH"), ("./plain.sh", "`./plain.sh` | chmod +x")]
    {
        fs::write(here.join("x.toml"), with_program(&format!("[{command:?}]"), "")).unwrap();
        let (_, err) = expect(here, "run x.toml --out r", 2);
        assert_eq!(lacks(&err, words, 0), Vec::<&str>::new(), "{err}");
        assert!(!here.join("r").exists(), "{command} leaves a folder behind");
    }
}

#[test]
fn a_central_program_uses_one_of_several_schedulers_and_the_table_says_so() {
    let folder = folder();
    let here = folder.path();
    script(here, "mine.sh", include_str!("../../examples/shell/round_robin.sh"));
    let crash = "one_way = \"1ms\"\n[[network.fault]]\ncrash = { who = [\"scheduler:2\"], at = \"2s\", for = \"1s\" }";
    let several = [("nodes = 8", "nodes = 8\nschedulers = 3"), ("one_way = \"1ms\"", crash)];
    fs::write(here.join("x.toml"), changed(&with_program("[\"./mine.sh\"]", ""), &several)).unwrap();
    fs::write(here.join("one.toml"), with_program("[\"./mine.sh\"]", "")).unwrap();
    let (out, _) = expect(here, "run x.toml --out r", 0);
    assert!(out.contains("one central scheduler instead of 3: external"), "{out}");
    let of = |file: &str| {
        let (out, _) = expect(here, &format!("run {file} --out {file}.r --json --policy external"), 0);
        results(&out)[0]["engine"].clone()
    };
    assert_eq!(of("x.toml"), of("one.toml"));
    let notes = fs::read_to_string(here.join("r/report.html")).unwrap();
    assert!(
        notes.contains("network.fault[0], a crash of scheduler:2, did not concern this policy"),
        "{notes}"
    );
}

#[test]
fn resuming_repeats_the_runs_of_a_program_that_has_changed() {
    let folder = folder();
    let here = folder.path();
    let text = include_str!("../../examples/shell/round_robin.sh");
    script(here, "mine.sh", text);
    fs::write(here.join("table"), "1").unwrap();
    fs::write(here.join("x.toml"), with_program("[\"./mine.sh\"]", ", files = [\"table\"]")).unwrap();
    expect(here, "run x.toml --out r", 0);
    let before = finished(&here.join("r"));
    let changed_ids = |what: &str| {
        expect(here, "run x.toml --out r --resume", 0);
        let now = finished(&here.join("r"));
        let kept = now.iter().filter(|id| before.contains(id)).count();
        assert_eq!((now.len(), kept), if what.is_empty() { (2, 2) } else { (2, 1) }, "{what}");
    };
    changed_ids("");
    fs::write(here.join("table"), "2").unwrap();
    changed_ids("a listed file");
    fs::write(here.join("table"), "1").unwrap();
    script(here, "mine.sh", &format!("{text}# changed"));
    changed_ids("the script");
}

#[test]
fn a_program_whose_runs_of_one_seed_differ_gives_a_warning() {
    let folder = folder();
    let text = include_str!("../../examples/shell/round_robin.sh");
    // The second process begins with another node.
    let count = "next=$(cat count 2>/dev/null || echo 0); echo $((next + 1)) > count";
    script(folder.path(), "mine.sh", &changed(text, &[("next=0", count)]));
    fs::write(folder.path().join("x.toml"), with_program("[\"./mine.sh\"]", "")).unwrap();
    let (_, err) = expect(folder.path(), "run x.toml --out r", 0);
    assert!(err.contains("external: two runs of seed 3 differ"), "{err}");
}

/// The start of a shell script. `misbehave` does what its argument names; the script calls it with `$1` at request
/// number `$2`. `$3` is the level of the program.
const MISBEHAVES: &str = r#"#!/bin/sh
misbehave() {
  case $1 in
    ends) exit 3 ;;
    is-killed) kill -9 $$ ;;
    ends-with-a-child) sleep 1000 & exit 4 ;;
    half) printf '{"do":'; exit 0 ;;
    nonsense) echo what; read -r line ;;
    twice) printf '{}\n{}\n'; read -r line ;;
    floods) tr '\0' x < /dev/zero ;;
    floods-with-lines) yes '{}' ;;
    complains) yes >&2 ;;
    hangs) trap '' TERM HUP INT; sleep 1000 ;;
    closes) exec >&-; sleep 1000 ;;
    no-such-node) echo '{"do":[{"do":"launch","job":0,"task":0,"node":99}]}'; read -r line ;;
    no-such-job) echo '{"do":[{"do":"launch","job":9999,"task":0,"node":0}]}'; read -r line ;;
  esac
}
"#;

/// The kinds of misbehaviour, with words of the error message. A program that only `stays` finishes its run, and is
/// killed afterwards.
const MISDEEDS: [(&str, &str); 15] = [
    ("ends", "it ended (exit status: 3)"),
    ("is-killed", "it ended (signal: 9)"),
    ("ends-with-a-child", "it ended (exit status: 4)"),
    ("half", "it ended (exit status: 0) instead of answering"),
    ("nonsense", "its answer must be an object"),
    ("twice", "it wrote "),
    ("floods", "longer than 64 MiB"),
    ("floods-with-lines", "it wrote "),
    ("complains", "it did not answer within 300ms"),
    ("hangs", "it did not answer within 300ms"),
    ("closes", "it closed its output"),
    ("no-such-node", "there is no node 99"),
    ("no-such-job", "there is no task 0 of job 9999"),
    ("nothing", ""),
    ("stays", ""),
];

/// Processes that run in a folder.
fn processes_in(folder: &Path) -> Vec<String> {
    let folder = folder.canonicalize().unwrap();
    let entries = fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
    let here = entries.filter(|path| fs::read_link(path.join("cwd")).is_ok_and(|cwd| cwd == folder));
    here.map(|path| fs::read_to_string(path.join("cmdline")).unwrap_or_default()).collect()
}

/// Programs that misbehave at different requests, beside others that do not, in clusters and networks with faults.
#[test]
fn a_program_that_misbehaves_ends_only_its_run_and_leaves_no_process() {
    let worlds: u32 = std::env::var("VOLARY_PROGRAM_WORLDS").map_or(2, |count| count.parse().unwrap());
    let round_robin = include_str!("../../examples/shell/round_robin.sh");
    let stays = "[ \"$1\" = stays ] || exit 0; trap '' TERM HUP INT; exec sleep 1000";
    let text = changed(
        round_robin,
        &[
            ("#!/bin/sh\n", MISBEHAVES),
            (r#""level":"central""#, r#""level":"'"$3"'""#),
            ("  orders=\n", "  asked=$((asked + 1)); [ $asked -eq \"$2\" ] && misbehave \"$1\"\n  orders=\n"),
        ],
    );
    for world in 0..worlds {
        let folder = folder();
        let here = folder.path();
        script(here, "mine.sh", &format!("{text}{stays}"));
        // Levels, numbers of processes, requests, nodes and losses vary with different periods, so that many
        // combinations occur.
        let (actor, each) = (world % 2 == 1, world % 4 == 3);
        let level = if actor { "actor" } else { "central" };
        let policy = |(misdeed, _): (&str, &str)| {
            let command = format!("[\"./mine.sh\", {misdeed:?}, \"{}\", {level:?}]", 1 + world % 5);
            let each = if each { ", processes = \"each\"" } else { "" };
            let soon = if ["hangs", "complains"].contains(&misdeed) { ", patience = \"300ms\"" } else { "" };
            format!(
                "[[policy]]\nlabel = {misdeed:?}\nexternal = {{ command = {command}, level = {level:?}{each}{soon} }}\n"
            )
        };
        let policies: String = MISDEEDS.into_iter().map(policy).collect();
        let (schedulers, nodes) = (if actor { 3 } else { 1 }, 2 + world % 7);
        let loss = f64::from(world % 3) / 10.0;
        let file = format!(
            "title = \"misdeeds\"\nseed = {world}\n[cluster]\nnodes = {nodes}\nschedulers = {schedulers}\n\
             [workload.synthetic]\njobs = 40\ntasks = 2\ninterarrival = \"200ms\"\n\
             [service]\ndemand = {{ exponential = {{ mean = \"100ms\" }} }}\n\
             [network]\none_way = \"1ms\"\nloss = {loss}\n\
             [[network.fault]]\ncrash = {{ who = [\"node:1\"], at = \"2s\", for = \"30s\" }}\n{policies}"
        );
        fs::write(here.join("x.toml"), &file).unwrap();
        let (out, err) = expect(here, "run x.toml --out r --json", 3);
        let missing: Vec<_> = MISDEEDS.into_iter().filter(|(_, words)| !err.contains(words)).collect();
        assert_eq!(missing, [], "{file}\n{err}");
        let ended: Vec<_> = results(&out).iter().map(|run| run["jobs"]["finished"].as_u64()).collect();
        assert_eq!(ended, [Some(40); 2], "{file}\n{out}\n{err}");
        assert_eq!(processes_in(here), Vec::<String>::new(), "{file}");
    }
}
