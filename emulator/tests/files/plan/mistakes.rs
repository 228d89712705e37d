//! Tests of the errors of experiments that cannot be planned.

use volary_experiment::config::Overrides;

use super::{GOOD, plan, plan_with};
use crate::common::binary::changed;

fn message(text: &str) -> String {
    match plan(text) {
        Ok(_) => panic!("accepted:\n{text}"),
        Err(error) => error.to_string(),
    }
}

/// A table of changes (from => to), the position of the error, and words that the message must contain.
const MISTAKES: &str = r#"
seed = 7 => sede = 7 | e.toml:2:1 | unknown key `sede` | did you mean `seed`?
cores = 2 => core = 2 | e.toml:6:1 | unknown key `core` | did you mean `cores`?
mean = "100ms" => men = "100ms" | e.toml:11:34 | unknown key `men` | did you mean `mean`?
exponential = { mean = "1s" } => expo = { mean = "1s" } | e.toml:14:12 | unknown name `expo` | exponential
one_way = "1ms" => one_way = "1 parsec" | e.toml:17:11 | network.one_way | unit of time
one_way = "1ms" => one_way = 1 | e.toml:17:11 | network.one_way | a number with its unit
one_way = "1ms" => one_way = true | e.toml:17:11 | network.one_way | write a value, or a distribution such as
one_way = "1ms" => peer_timeout = 1 | e.toml:17:16 | network.peer_timeout | a number with its unit
cores = 2 => cores = "x" | e.toml:6:9 | cluster.cores | a whole number of at least zero
seed = 7 => precision = true | e.toml:2:13 | precision | write a number, without quotes
seed = 7 => seed = 7\n[interference.profile]\nbernoulli = {} | e.toml:3:1 | interference.profile | interference.profile also takes a preset
seed = 7 => source = 1 | e.toml:2:10 | source | put it in quotes
seed = 7 => run.record.jobs = 1 | e.toml:2:19 | run.record.jobs | write true or false, without quotes
mean = "1s" => mean = "-1s" | e.toml:14:35 | service.demand.exponential.mean | at least zero
slowdown = 4 => slowdown = nan | e.toml:21:61 | interference.bernoulli.slowdown
probability = 0.1 => probability = 1.1 | e.toml:21:45 | interference.bernoulli.probability | 1.1
[0.0, 0.01] => [0.0, 1.5] | e.toml:31:24 | 1.5 | network.loss = 1.5
order = 2 => order = 30 | e.toml:24:26 | latin-square | exceeds the number of servers | cluster.nodes
nodes = 10\n => nodes = 0\n | e.toml:5:9 | without nodes | nodes = 1 or more
cores = 2 => cpu = 8 | e.toml:6:7 | cluster.cpu | without `service.cpu` | add cpu to [service]
cores = 2 => memory = "64" | e.toml:6:10 | cluster.memory | is not a size | 64 GiB
cores = 2 => cpu = 0 | e.toml:6:7 | between 0.001 and | a tenth of a core
[service] => [service]\nmemory = "1 GiB" | e.toml:14:10 | without `cluster.memory`
cores = 2 => pods = 3 | e.toml:6:8 | `cluster.pods` is about shared nodes | shared = true
cores = 2 => threshold = 0.5 | e.toml:6:13 | `cluster.threshold` is about shared nodes
cores = 2 => report = "9s" | e.toml:6:10 | `cluster.report` is about shared nodes
cores = 2 => shared = true | e.toml:4:2 | a shared node needs `cpu` | cpu = 8
cores = 2 => cores = 2\nshared = true | e.toml:6:9 | no cores of their own | pods = 110
cores = 2 => shared = true\ncpu = 8\npods = 0 | e.toml:8:8 | without pods | pods = 1 or more
cores = 2 => shared = true\ncpu = 8\nthreshold = 0 | e.toml:8:13 | evict above 0 of its memory | such as 0.95
cores = 2 => shared = true\ncpu = 8\nthreshold = 1.1 | e.toml:8:13 | evict above 1.1 of its memory
cores = 2 => shared = true\ncpu = 8\nthreshold = 1e-7 | e.toml:8:13 | from a millionth to 1
cores = 2 => shared = true\ncpu = 8\nmemory = "0B" | e.toml:8:10 | no copy fits into a node without memory | memory =
cores = 2 => shared = true\ncpu = 8\nreport = "1us" | e.toml:8:10 | 1ms or longer
cores = 2 => shared = true\ncpu = 8\nmemory = "9GiB" | does not relaunch copies that shared nodes evict | cluster.memory
[cluster]\nnodes = 10\ncores = 2 => [run]\nruntime = "local"\nreal = {}\n[cluster]\nnodes = 10\nshared = true\ncpu = 8 | e.toml:6:1 | a real core runs one copy | or cluster.shared
[service] => [service]\nusage = { cpu = 2 } | service.usage | is about shared nodes | cluster.shared = true
nodes = 10\n => | e.toml:4:2 | `cluster` lacks `nodes` | topology
nodes = 10\n => nodes = 10\nkind = [{ nodes = 3 }]\n | e.toml:5:9 | `cluster.kind` states its own `nodes`
nodes = 10\ncores = 2 => kind = [{ nodes = 0 }] | e.toml:5:19 | without nodes | nodes = 1 or more
nodes = 10\ncores = 2 => kind = [{ nodes = 3, cpu = 8 }] | e.toml:5:28 | `cluster.kind.cpu` has no effect without `service.cpu` | add cpu to [service]
seed = 7 => repeat = 0 | e.toml:2:10 | repeat | at least 1
seed = 7 => repeat = "often" | e.toml:2:10 | repeat | auto
seed = 7 => precision = 2.0 | e.toml:2:13 | precision | between 0 and 1
seed = 7 => seed = -7 | e.toml:2:8 | seed
seed = 7 => seed =  | e.toml:2:8 | quoted
seed = 7 => title = "again" | e.toml:2:1 | duplicate key | keep one
title = "two policies"\n => | e.toml:1:1 | the file lacks `title`
demand = { exponential = { mean = "1s" } } => demand = { exponential = "1s" } | e.toml:14: | expected a table of keys | write its mean
interarrival = { exponential = { mean = "100ms" } } => load = 0.5 | e.toml:8: | lacks `interarrival` | `load` and `speedup` scale them
check = ["latin-square.response_s.p50 < sparrow.response_s.p50"] => check = "latin-square.response_s.p50 < 1" | e.toml:36:9 | expected a list | put it in brackets
demand = { exponential = { mean = "1s" } } => | e.toml:13:2 | service.demand | a synthetic workload needs it
sparrow = { probe_ratio = 2 } => sparow = {} | e.toml:27:1 | unknown name `sparow` | did you mean `sparrow`?
probe_ratio = 2 => probe_ration = 2 | e.toml:27:13 | did you mean `probe_ratio`?
sparrow = { probe_ratio = 2 } => latin-square = {} | e.toml:27:1 | two policies are called | label =
sparrow = { probe_ratio = 2 } => sparrow = {}\nlabel = "a b" | e.toml:28:9 | not a label
sparrow = { probe_ratio = 2 } => sparrow = {}\nrandom = {} | e.toml:26:1 | two policies
sparrow = { probe_ratio = 2 } => label = "x" | e.toml:26:1 | no policy is named
"service.correlated" = => "service.corelated" = | e.toml:30:1 | unknown key `corelated` | did you mean `correlated`?
sparrow = { probe_ratio = 2 } => eagle = { srpt = false, rank = "job" } | e.toml:27: | rank: has no effect with srpt = false
[true, false] => [true, "no"] | e.toml:30:31 | true, false, or a share | service.correlated = no
[true, false] => true | e.toml:30:24 | a list
< sparrow => < sparow | e.toml:36:41 | unknown policy `sparow` | did you mean `sparrow`?
sparrow.response_s.p50 => sparrow.respons_s.p50 | e.toml:36:49 | did you mean `response_s`?
p50 < sparrow => p50 << sparrow | e.toml:36:40 | a number or the label
{ "service.correlated" = false } => { "service.corelated" = false } | e.toml:35:32 | unknown swept key | did you mean
" = false } => " = 3 } | e.toml:35:33 | never 3 | true, false
[0.0, 0.01] => [0.01, 0.02, 0.01] | e.toml:31:31 | a value of the sweep of `network.loss` occurs twice | leave out one of them
"network.loss" = [0.0, 0.01] => "network.one_way" = ["200us", "1ms", "0.2ms"] | a value of the sweep of `network.one_way` occurs twice
< sparrow.response_s.p50 => < sparrow.utilization | a time and a count or a share are not comparable | one unit
check = ["latin-square.response_s.p50 < sparrow.response_s.p50"] => check = [] | e.toml:36:9 | the claim has no check
[workload.synthetic]\njobs = 100\ntasks = 4 => [workload.trace]\nfile = "nowhere.tr"\njobs = 4 | e.toml:9:8 | nowhere.tr | VOLARY_TRACES | fallback
[service] => [workload.yahoo-like]\n[service] | e.toml:13:11 | workload | exactly one
[interference] => [interference]\nprofile = "no.toml" | e.toml:21:11 | no.toml | cannot read
[interference] => [[interference.injection]]\nprofile = "no.toml"\nat = "1s"\n[interference] | e.toml:21:11 | no.toml | cannot read
[interference] => [[interference.injection]]\nprofile = { bernouli = {} }\nat = "1s"\n[interference] | e.toml:21:13 | unknown key `bernouli` | did you mean `bernoulli`?
[interference] => [[interference.injection]]\nprofile = { scope = "node" }\nat = "1s"\n[interference] | e.toml:21: | not exactly one process is named
[interference] => [[interference.injection]]\nprofile = { profile = "a.toml" }\nat = "1s"\n[interference] | e.toml:21: | a profile cannot name another profile
[interference] => [[interference.injection]]\nprofile = { bernoulli = { slot = "1s", probability = 1, slowdown = 2 }, injection = [] }\nat = "1s"\nfor = "0s"\n[interference] | e.toml:23:7 | it is zero | write for example "5s"
[interference] => [[interference.injection]]\nprofile = { bernoulli = { slot = "1s", probability = 1, slowdown = 2 } }\nat = "1s"\nuntil = "2s"\n[interference] | e.toml:23:1 | unknown key `until`
[interference] => [[interference.injection]]\nprofile = { bernoulli = { slot = "1s", probability = 1, slowdown = 2 } }\nfor = "1s"\n[interference] | `at`
[interference] => [[interference.injection]]\nprofile = { bernoulli = { slot = "1s", probability = 1, slowdown = 2 } }\nat = "1s"\ncores = "18-20"\n[interference] | e.toml:23:9 | there is no core 20 | cores are 0 to 19
[interference] => [[interference.injection]]\nprofile = { bernoulli = { slot = "1s", probability = 1, slowdown = 2 } }\nat = "1s"\ncores = "5-3"\n[interference] | e.toml:23:9 | runs backwards | write 3-5
[interference] => [[interference.injection]]\nprofile = { bernoulli = { slot = "1s", probability = 1, slowdown = 2 } }\nat = "1s"\nwho = ["nodes:5-50"]\n[interference] | e.toml:23:7 | `nodes:5-50` names no node of this cluster | there are 10
[interference] => [[interference.injection]]\nprofile = { bernoulli = { slot = "1s", probability = 1, slowdown = 2 } }\nat = "1s"\nwho = ["schedulers"]\n[interference] | e.toml:23:7 | `schedulers` names no node of this cluster
[interference] => [[interference.injection]]\nprofile = { bernoulli = { slot = "1s", probability = 1, slowdown = 2 } }\nat = "1s"\nfor = "2s"\nwho = ["node:3"]\n[[interference.injection]]\nprofile = { bernoulli = { slot = "1s", probability = 1, slowdown = 3 } }\nat = "2s"\ncores = "7"\n[interference] | e.toml:27:6 | the injection with at = "1s" is in effect on cores 7 at 2s | let one end before the other begins
[interference] => [run]\nuntil = "5s"\n[[interference.injection]]\nprofile = { bernoulli = { slot = "1s", probability = 1, slowdown = 2 } }\nat = "5s"\n[interference] | e.toml:24:6 | the run ends at 5s, before this injection begins | raise run.until
[interference] => [[network.fault]]\ncrash = { who = ["nodes:5-50"], at = "1s" }\n[interference] | e.toml:21: | network.fault | nodes:5-50
[interference] => [[network.fault]]\ncrash = { who = ["node:1", "client:0"], at = "1s" }\n[interference] | e.toml:21: | "client:0" would crash a client | outside the experiment
[interference] => [[network.fault]]\ncrash = { who = ["all"], at = "1s" }\n[interference] | e.toml:21: | "all" would crash a client
[interference] => [[network.fault]]\ncrash = { who = ["nodes:1-2", "nod:1"], at = "1s" }\n[interference] | e.toml:21: | `nod:1` names nothing here | did you mean `node`?
[interference] => [[network.fault]]\npartition = { a = ["nodes"], b = ["xyz"], at = "1s", for = "1s" }\n[interference] | e.toml:21: | `xyzs` names nothing here | known kinds are all, client, node, rack, scheduler
"#;

#[test]
fn every_mistake_is_located_and_has_a_remedy() {
    for mistake in MISTAKES.trim().lines() {
        let mut words = mistake.split(" | ");
        let (from, to) = words.next().unwrap().split_once(" =>").unwrap();
        let [from, to] = [from, to.strip_prefix(' ').unwrap_or(to)].map(|text| text.replace("\\n", "\n"));
        let text = message(&changed(GOOD, &[(&from, &to)]));
        let missing: Vec<_> = words.chain([" = help: "]).filter(|word| !text.contains(word)).collect();
        assert!(missing.is_empty(), "{mistake} lacks {missing:?}\n{text}");
    }
}

/// Only Pigeon has masters, so faults may name masters only if Pigeon is a policy of the experiment.
#[test]
fn faults_at_masters_need_a_policy_that_has_them() {
    let with = |who: &str, policy: &str| {
        let fault = format!("[[network.fault]]\ncrash = {{ who = [\"{who}\"], at = \"1s\" }}\n");
        let policy = format!("sparrow = {{ probe_ratio = 2 }}\n\n{policy}");
        changed(
            GOOD,
            &[
                ("[interference]", &format!("{fault}[interference]")),
                ("sparrow = { probe_ratio = 2 }\n", &policy),
            ],
        )
    };
    let pigeon = "[[policy]]\npigeon = { group = 5, reserved = 0.0 }\n";
    let standby = "[[policy]]\npigeon = { group = 5, reserved = 0.0, standby = true }\nlabel = \"standby\"\n";
    plan(&with("master:7", &format!("{pigeon}{standby}"))).unwrap();
    for who in ["master:3", "masters", "masters:1-2"] {
        let experiment = plan(&with(who, pigeon)).unwrap();
        let text = volary_experiment::config::describe::text(&experiment, None);
        assert!(text.contains("(4 masters)"), "{text}");
    }
    for (who, policy, words) in [
        (
            "master:3",
            "",
            &[
                "e.toml:21:",
                "`master:3` names nothing here",
                "no policy of this experiment has masters",
                "pigeon",
            ][..],
        ),
        ("mastr:3", pigeon, &["`mastr:3` names nothing here", "did you mean `master`?"][..]),
        ("master:4", pigeon, &["`master:4` names nothing here", "there are 4 masters, 0 to 3"][..]),
    ] {
        let text = message(&with(who, policy));
        assert!(words.iter().all(|word| text.contains(word)), "{who}: {text}");
    }
}

#[test]
fn a_task_that_fits_nowhere_is_refused() {
    let text = message(&changed(GOOD, &[("cores = 2", "cpu = 8"), ("[service]", "[service]\ncpu = 9")]));
    assert!(
        text.contains("e.toml:14:7") && text.contains("lower service.cpu, or raise cluster.cpu"),
        "{text}"
    );
}

#[test]
fn an_experiment_without_a_policy_is_refused() {
    let without = GOOD.split("[[policy]]").next().unwrap();
    let said = message(without);
    assert!(said.contains("the file lacks `policy`"), "{said}");
    let said = message(&changed(without, &[("seed = 7", "seed = 7\npolicy = []")]));
    assert!(said.contains("e.toml:3:10") && said.contains("no policy"), "{said}");
}

#[test]
fn errors_in_overrides_point_into_the_override() {
    for (set, words) in [
        ("service.corelated=true", &["--set:1:1", "did you mean `correlated`?"][..]),
        ("network.loss=2", &["--set:1:14"][..]),
        ("policy.sparow.probe_ratio=2", &["--set:1:1", "did you mean `policy.sparrow`?"][..]),
    ] {
        let overrides = Overrides { set: vec![set.into()], ..Overrides::default() };
        let text = plan_with(GOOD, &overrides).unwrap_err().to_string();
        assert!(words.iter().all(|word| text.contains(word)), "{set}: {text}");
    }
    let overrides = Overrides { policies: vec!["sparow".into()], ..Overrides::default() };
    let text = plan_with(GOOD, &overrides).unwrap_err().to_string();
    assert!(text.contains("--policy") && text.contains("did you mean `sparrow`?"), "{text}");
}

#[test]
fn an_error_shows_the_line_and_a_caret_like_a_compiler() {
    let text = message(&changed(GOOD, &[("cores = 2", "core = 2")]));
    assert_eq!(
        text,
        "unknown key `core`\n --> e.toml:6:1\n  |\n6 | core = 2\n  | ^^^^ expected `nodes`, `cores`, \
         `schedulers`, `request_rate`, `topology`, `speed`, `cpu`, `memory`, `shared`, `pods`, `threshold`, `report` and \
         1 more\n  |\n  = help: did you mean `cores`?"
    );
}

#[test]
fn settings_that_3sigma_cannot_plan_are_refused() {
    let plain = "title = \"t\"\n[cluster]\nnodes = 4\n[workload.synthetic]\njobs = 10\ntasks = 1\ninterarrival = \"1s\"\n\
                 [service]\ndemand = \"1s\"\n";
    let with = |cluster: &str, policy: &str| {
        plain.replace("[cluster]\n", &format!("[cluster]\n{cluster}")) + "[[policy]]\n" + policy
    };
    for (policy, words) in [
        ("3sigma = { slots = 0 }", "slots: must be between 1 and"),
        ("3sigma = { cycle = \"0s\" }", "cycle: must be 1us or longer, not 0ns"),
        ("3sigma = { slot = \"0s\" }", "slot: must be 1us or longer, not 0ns"),
        (
            "3sigma = { slots = 3, slot = \"500ms\" }",
            "slots: 3 slots of 500ms are shorter than the cycle of 2s",
        ),
        ("3sigma = { threshold = 1.5 }", "threshold: must be between 0 and 1, not 1.5"),
        ("3sigma = { price = 0.5 }", "price: must be between 1 and"),
        ("3sigma = { best_effort = 0.0 }", "best_effort: must be between"),
        ("3sigma = { estimates = \"exact\" }", "`distribution`, `point`, `perfect`"),
        ("3sigma = { over = \"maybe\" }", "`adaptive`, `always`"),
        ("3sigma = { decide = { base = \"1s\" } }", "decide`: invalid type: table"),
        ("prio = { cycle = \"0s\" }", "cycle: must be 1us or longer, not 0ns"),
    ] {
        let error = message(&with("schedulers = 1\n", policy));
        assert!(error.contains(words), "{policy}: {error}");
    }
}

#[test]
fn impossible_settings_of_kairos_and_compared_policies_are_refused() {
    let cutoff = GOOD.replace("jobs = 100", "cutoff = \"2s\"\njobs = 100");
    let with = |text: &str, policy: &str| {
        text.replace("sparrow = { probe_ratio = 2 }", &format!("label = \"sparrow\"\n{policy}"))
    };
    for (policy, words) in [
        ("kairos = { quantum = \"0s\" }", "quantum: must be 1us or longer, not 0ns"),
        ("kairos = { interval = \"0s\" }", "interval: must be 1us or longer, not 0ns"),
        ("kairos = { stretch = 0.5 }", "stretch: must be between 1 and"),
        ("kairos = { attained = \"cpu\" }", "`time` or `work`"),
        ("las-sparrow = { quantum = \"0s\" }", "quantum: must be 1us or longer, not 0ns"),
        ("las-sparrow = { stretch = 2 }", "unknown key `stretch`"),
        ("murmuration = { order = \"las\", quantum = \"0s\" }", "quantum: must be 1us or longer, not 0ns"),
        ("murmuration = { quantum = \"1s\" }", "has no effect with order = \"fcfs\"; add order = \"las\""),
        (
            "murmuration = { order = \"srjf\", quantum = \"1s\" }",
            "quantum: has no effect with order = \"srjf\"",
        ),
        (
            "murmuration = { order = \"las\", bypass = 5 }",
            "bypass: has no effect with order = \"las\"; add order = \"srjf\"",
        ),
        ("murmuration = { order = \"las\", wait = \"clock\" }", "use wait = \"per-core\" or \"work\""),
        ("yarn-fifo = { heartbeat = \"0s\" }", "heartbeat: must be 1us or longer, not 0ns"),
        ("big-c = { short_share = 1.0 }", "short_share: must be above 0 and below 1, not 1"),
        ("big-c = { short_share = 0.0 }", "short_share: must be above 0 and below 1, not 0"),
        ("big-c = { short_share = 1.5 }", "short_share: must be above 0 and below 1, not 1.5"),
        ("big-c = { short_share = -0.5 }", "short_share: must be above 0 and below 1, not -0.5"),
        ("big-c = { monitor = \"0s\" }", "monitor: must be 1us or longer, not 0ns"),
    ] {
        let error = message(&with(&cutoff, policy));
        assert!(error.contains(words), "{policy}: {error}");
    }
    // `queue = 0` is valid: a node then holds as many tasks as it has cores. A node without cores is refused.
    assert!(plan(&with(&cutoff, "kairos = { queue = 0 }")).is_ok());
    let error = message(&with(&cutoff, "kairos = { queue = 0 }").replace("cores = 2", "cores = 0"));
    assert!(error.contains("without cores"), "{error}");
    let error = message(&with(GOOD, "big-c = {}"));
    assert!(
        error.contains("short_share: all jobs of this workload are short") && error.contains("`cutoff`"),
        "{error}"
    );
    for policy in ["kairos", "yarn-fifo", "big-c"] {
        assert!(plan(&with(&cutoff, &format!("{policy} = {{}}"))).is_ok(), "{policy}");
    }
}

#[test]
fn a_quantum_no_longer_than_a_preemption_is_refused() {
    let text = |quantum: &str| {
        GOOD.replace("[service]", "[service]\npreemption = \"50ms\"").replace(
            "sparrow = { probe_ratio = 2 }",
            &format!("label = \"sparrow\"\ngang = {{ quantum = \"{quantum}\" }}"),
        )
    };
    let error = message(&text("50ms"));
    assert!(error.contains("quantum: service.preemption, 50ms, uses up all 50ms"), "{error}");
    assert!(plan(&text("51ms")).is_ok());
}
