//! Tests of bad input: status 2, a message with place and remedy, and no files left behind.

use std::fs;

use crate::common::binary::{EXPERIMENT, changed, command, expect, expect_of, folder, lacks, text, volary};

const SYNTHETIC: &str = "[workload.synthetic]\njobs = 60\ntasks = 2\ninterarrival = \"200ms\"";
const LINKS: &str = "one_way = \"1ms\"";
const STAR: &str = "title = \"s\"\nshape = { star = { nodes = 3 } }\n[link.rack]\none_way = \"1ms\"\n";

#[test]
fn refused_commands_leave_no_files() {
    let folder = folder();
    let here = folder.path();
    fs::write(here.join("bad.tr"), "0.0 2 1.5 1.0 2.0\n1.0 1 3.0 x\n").unwrap();
    // The file has the header of an xz file without content.
    fs::write(here.join("cut.tr.xz"), [0xfd, b'7', b'z', b'X', b'Z', 0, 0, 4]).unwrap();
    let islands = "title = \"t\"\n[[shape.graph.switch]]\nname = \"a\"\nnodes = 2\n\
                   [[shape.graph.switch]]\nname = \"b\"\nnodes = 2\n";
    fs::write(here.join("islands.toml"), islands).unwrap();
    let trace = |name: &str| format!("[workload.trace]\nfile = \"{name}\"");
    let (missing, malformed, cut) = (trace("nowhere.tr"), trace("bad.tr"), trace("cut.tr.xz"));
    let good = trace("good.tr");
    // The rows are the change (from, to), further arguments, and words that the message must contain.
    for (from, to, more, words) in [
        ("nodes = 8", "nods = 8", "", "x.toml:5:1 | did you mean `nodes`?"),
        (LINKS, "one_way = { uniform = { low = nan, high = \"1s\" } }", "", "x.toml:16: | network.one_way"),
        (LINKS, "loss = nan", "", "x.toml:16: | network.loss"),
        (SYNTHETIC, &missing, "", "nowhere.tr | VOLARY_TRACES"),
        (SYNTHETIC, &malformed, "", "bad.tr:2 | correct line 2 of `bad.tr` | `volary trace describe bad.tr`"),
        (
            SYNTHETIC,
            &good,
            "--set workload.trace.file=bad.tr",
            "--set:1:21 | bad.tr:2 | correct line 2 of `bad.tr`",
        ),
        (SYNTHETIC, &cut, "", "cut.tr.xz | correct `cut.tr.xz`, or name another trace"),
        ("nodes = 8", "topology = \"islands.toml\"", "", "islands.toml: | no path joins `a` and `b`"),
        ("", "", "--runtime hosts", "--hosts FILE | --spawn N"),
        ("", "", "--spawn 2", "--runtime hosts"),
        ("", "", "--set run.speed=0", "--set:1:11 | run.speed | between"),
        ("", "", "--set run.speed=inf", "--set:1:11 | run.speed | between"),
        ("", "", "--set run.speed=nan", "--set:1:11 | run.speed | between"),
        ("seed = 3", "repeat = \"auto\"", "--slice 1/2", "--repeat N"),
        ("", "", "--set run.measure.from=120%", "--set:1: | 120 % of the jobs is not between 0 % and 100 %"),
        ("", "", "--set run.measure.from=1h", "none of 60 jobs arrives in the window | let `until` be later"),
        (
            "",
            "",
            "--set run.measure={from=\"9s\",until=\"3s\"}",
            "run.measure | none of 60 jobs | let `until` be later",
        ),
        ("", "", "--set run.measure.from=9s --set run.until=8s", "the window begins at 9s | raise run.until"),
        ("", "", "--set run.measure.form=9s", "run.measure | `form` | from"),
        ("", "", "--set run.measure=auto", "needs 100 jobs that finish, not 60 | give bounds"),
        ("", "", "--set run.measure=some", "auto | bounds such as"),
        ("", "", "--set run.measure=auto --runtime local", "two equal runs | give bounds"),
        ("title = \"small\"", "title = \"\\u001b]0;x\"", "", "x.toml:1:9 | control character, U+001B"),
        ("says = \"time passes\"", "says = \"\\u202eon\"", "", "x.toml:25:8 | control character, U+202E"),
        (LINKS, "one_way = { empirical = { file = \"/dev/zero\" } }", "", "/dev/zero | pipe or device"),
        (
            LINKS,
            "one_way = \"1ms\"\n[actors]\nhandling = { schedular = \"1ms\" }",
            "",
            "x.toml:18: | `schedular` is neither a role of actors nor a kind of message | did you mean `scheduler`?",
        ),
        (LINKS, "one_way = \"1ms\"\n[actors]\nhandling = { node = \"-1ms\" }", "", "x.toml:18: | -1ms"),
        (LINKS, "one_way = \"1ms\"\n[actors]\non = \"cores\"", "", "x.toml:17: | `actors` lacks `handling`"),
    ] {
        fs::write(here.join("x.toml"), changed(EXPERIMENT, &[(from, to)])).unwrap();
        let (_, err) = expect(here, &format!("run x.toml --out r {more}"), 2);
        assert_eq!(lacks(&err, words, 0), Vec::<&str>::new(), "{to} {more}\n{err}");
        assert!(!here.join("r").exists(), "{to} {more} leaves a folder behind");
    }
}

/// Errors in a topology's links are reported at their place in the topology.
#[test]
fn a_mistake_in_a_topology_is_reported_in_its_file() {
    let folder = folder();
    let here = folder.path();
    fs::write(here.join("buffer.toml"), format!("{STAR}buffer = \"1 kB\"\n")).unwrap();
    let region =
        |name: &str| format!("[[shape.regions.region]]\nname = \"{name}\"\nracks = 1\nnodes_per_rack = 2\n");
    let links = "title = \"s\"\n[link]\nrack = { one_way = \"1ms\" }\nfabric = { one_way = \"1ms\" }\n";
    let slow = "[[link.between]]\nregions = [\"a\", \"b\"]\nlink = { one_way = \"200000d\" }\n";
    fs::write(here.join("slow.toml"), [links, slow, &region("a"), &region("b")].concat()).unwrap();
    for (name, words) in [
        ("buffer.toml", ["buffer.toml:5:10", "link.rack.buffer", "no rate"]),
        ("slow.toml", ["slow.toml:7:20", "link.between[0].link.one_way", "a year"]),
    ] {
        let topology = format!("topology = \"{name}\"");
        let text = changed(EXPERIMENT, &[("nodes = 8", &topology), (LINKS, "")]);
        fs::write(here.join("x.toml"), text).unwrap();
        let (_, err) = expect(here, "run x.toml", 2);
        assert!(words.iter().all(|word| err.contains(word)), "{words:?}\n{err}");
    }
}

/// A table of impossible values of the right type: a `--set`, and words that the message must contain. Each message
/// must have a remedy and point at its place.
const IMPOSSIBLE: &str = r#"
seed=-1 | whole number
repeat=0 | at least 1
repeat=4000000000 | 8000000000 runs are more than 1000000
precision=0 | between 0 and 1
precision=nan | between 0 and 1
cluster.nodes=0 | without nodes
cluster.nodes=-1 | whole number
cluster.nodes=8.5 | whole number
cluster.nodes=70000000 | more than a run can hold
cluster.cores=0 | without cores
cluster.cores=4000000000 | more than a run can hold
cluster.schedulers=0 | needs a scheduler
cluster.schedulers=4000000000 | more than a run can hold
cluster.speed=0 | no core has speed 0
cluster.speed=-1 | at least zero
cluster.speed=nan | NaN
cluster.speed=0.0001 | no core has speed 0.0001 | between 0.01 and 10000
cluster.speed=1e9 | no core has speed 1000000000
cluster.speed={uniform={low=0,high=2}} | no core has speed 0
workload.synthetic.jobs=0 | 0 jobs | between 1 and 100000000
workload.synthetic.jobs=0.5 | whole number
workload.synthetic.jobs=4000000000 | between 1 and 100000000
workload.synthetic.tasks=0 | cannot have 0 tasks | at least 1
workload.synthetic.tasks=0.4 | cannot have 0.4 tasks
workload.synthetic.tasks=2.5 | cannot have 2.5 tasks | whole numbers
workload.synthetic.tasks=-1 | at least zero
workload.synthetic.tasks=inf | finite
workload.synthetic.tasks=1e300 | lighter tail
workload.synthetic.tasks={uniform={low=0,high=4}} | cannot have 0 tasks
workload.synthetic.tasks={exponential={mean=0.3}} | cannot have 0.3 tasks
workload.synthetic.tasks={pareto={scale=0.5,shape=2}} | cannot have 0.5 tasks
workload.synthetic.tasks={empirical={values=[1,2.5]}} | cannot have 2.5 tasks
workload.synthetic.interarrival=100000d | interarrival | 584 years
workload.synthetic.interarrival=-1s | at least zero
workload={yahoo-like={jobs=4000000000}} | between 1 and 100000000
workload={yahoo-like={jobs=0}} | 0 jobs
workload={yahoo-like={jobs=10,speedup=0}} | positive number
workload={yahoo-like={jobs=10,speedup=nan}} | positive number
workload.synthetic.speedup=0 | positive number
workload.synthetic.load=0 | workload.synthetic.load: must be a positive number
workload.synthetic.load=nan | workload.synthetic.load: must be a positive number
workload={yahoo-like={load=0.5,speedup=2}} | keep one of the two
workload={yahoo-like={jobs=1,load=0.5}} | is not known
workload.synthetic.slo={share=1.5,slack=1} | a share from 0 to 1 | write 0.5 for half of them
workload.synthetic.slo={share=-0.1,slack=1} | a share from 0 to 1
workload.synthetic.slo={share=true} | lacks `slack`
workload.synthetic.slo={slack=1} | workload.synthetic.slo.share | share = 0.5
workload.synthetic.slo={share=true,work=0.5,slack=1} | workload.synthetic.slo.work | keep one
workload.synthetic.slo={share=true,load=0.5,slack=1} | workload.synthetic.slo.load | keep one
workload.synthetic.slo={load=-1.0,slack=1} | workload.synthetic.slo.load | positive number
workload.synthetic.slo={load=nan,slack=1} | workload.synthetic.slo.load | positive number
workload.synthetic.slo={load=9.0,slack=1} | workload.synthetic.slo.load | all jobs together offer
workload.synthetic.slo={share=true,slack=[]} | workload.synthetic.slo.slack | the list is empty
workload.synthetic.slo={share=true,slack=-1.5} | workload.synthetic.slo.slack | before the arrival
workload.synthetic.slo={share=true,slack=[0.2,nan]} | workload.synthetic.slo.slack | NaN
workload.synthetic.slo={share=true,slack="20%"} | a list of numbers
workload.synthetic.slo={share=true,slack={uniform={low=-1.0,high=1.0}}} | at least zero
workload.synthetic.slo={share=true,slack=1,preference={kinds=9,of=3,slowdown=1.5}} | workload.synthetic.slo.preference.kinds | 8 nodes cannot be of 9 kinds | add nodes
workload.synthetic.slo={share=true,slack=1,preference={kinds=0,of=0,slowdown=1.5}} | workload.synthetic.slo.preference.kinds | between 1 and 32
workload.synthetic.slo={share=true,slack=1,preference={kinds=4,of=5,slowdown=1.5}} | workload.synthetic.slo.preference.of | cannot prefer 5 of 4
workload.synthetic.slo={share=true,slack=1,preference={kinds=4,of=0,slowdown=1.5}} | workload.synthetic.slo.preference.of | cannot prefer 0 of 4
workload.synthetic.slo={share=true,slack=1,preference={kinds=4,of=3,slowdown=0.5}} | workload.synthetic.slo.preference.slowdown | at least 1
workload.synthetic.slo={share=true,slack=1,preference={kinds=4,of=3,slowdown=inf}} | workload.synthetic.slo.preference.slowdown | at least 1
workload.synthetic={jobs=9,tasks=1,interarrival="1s",deadline_slack=1,slo={share=true,slack=1}} | workload.synthetic.deadline_slack | keep one
workload.synthetic={jobs=9,tasks=9,interarrival="1s",gang=true} | job 0 has 9 tasks | 8 cores | workload.synthetic.filter = true
workload.synthetic={jobs=9,tasks=9,interarrival="1s",gang=true,filter=true,pretrain=3} | every job that is not history has more tasks than the 8 cores
run.until=40m | minutes are "40min"
workload.synthetic={jobs=9,tasks=9,interarrival="1s",gang=true,filter=true} | every job has more tasks than the 8 cores
workload={yahoo-like={jobs=500,load=0.5,gang=true}} | tasks that start together | workload.yahoo-like.filter = true
workload.synthetic.filter=true | workload.synthetic.filter | write gang = true
workload.synthetic.pretrain=60 | workload.synthetic.pretrain | 60 of 60 jobs are history
workload.synthetic.pretrain=-1 | whole number
workload.synthetic.synchronous=0 | workload.synthetic.synchronous | without steps | leave the key out
workload.synthetic.synchronous=4_000_000 | workload.synthetic.synchronous | are more than 100000000 steps
workload.synthetic={jobs=1,tasks=1000,interarrival="1s",synchronous=5_000_000} | workload.synthetic.synchronous | over 4294967295 tasks in 5000000 steps | lower one of the numbers
service.demand=0s | no copy would have any work
service.demand={exponential={mean="0s"}} | no copy would have any work
service.demand={empirical={values=["0s","0s"]}} | no copy would have any work
service.demand=200000d | 292 years
service.correlated=2 | from 0 to 1
service.sensitivity={long={cache=2}} | service.sensitivity.long | the classes are short
service.sensitivity={short={cache=-0.5}} | service.sensitivity.short.cache | not -0.5 | 1 changes nothing
service.estimate={error=0} | every estimate would be zero
network.loss=-0.1 | probability
network.one_way=200000d | more than a year
network.rate=0 Mbit/s | is a rate of zero
network.rate=1e300 Gbit/s | above every possible rate
network={rate="1 Mbit/s",buffer="1e300 GB"} | is too large
network={one_way="1ms",reorder=0.5,reorder_by="0s"} | holds no datagram back
network.peer_timeout=0s | unreachable at once
network.rto=0s | without end
network.fault=[{pause={who=["node:0"],at="1s",for="0s"}}] | `for` is zero
network.fault=[{degrade={a=["node:0"],at="1s",for="1s",delay_factor=-1}}] | between 0 and
network.fault=[{degrade={a=["node:0"],at="1s",for="1s",delay_factor=inf}}] | between 0 and
interference={bernoulli={slot="0s",probability=0.5,slowdown=2}} | a slot must last
interference={bernoulli={slot="1ns",probability=0.5,slowdown=2}} | a slot must last 1us
interference={bernoulli={slot="1s",probability=nan,slowdown=2}} | not a probability
interference={bernoulli={slot="1s",probability=0.5,slowdown=0.5}} | speed the core up
interference={bernoulli={slot="1s",probability=0.5,slowdown=1e300}} | is above 1e12
interference={renewal={gap="1ns",burst="1ns",slowdown=2}} | less than 1us
interference={scripted={slot="1s",rows=[],slowdown=2}} | lists no slot
interference={scripted={slot="1s",rows=[[]],slowdown=2,repeat=true}} | lists no slot
interference={scripted={slot="1s",rows=[[2]],slowdown=2}} | write 0
interference={bernoulli={slot="1s",probability=0.5,slowdown=2},from="5s",until="5s"} | not earlier
interference={bernoulli={slot="1s",probability=0.5,slowdown=2},affected=1.5} | not a probability
interference={trace={rows=[{unit=0,start="1s",end="1s",slowdown=2}]}} | ends at
policy.sparrow.probe_ratio=0 | between 1 and 1000
policy.sparrow.probe_ratio=nan | not a finite number
policy.sparrow.probe_timeout=0s | 1us or longer
policy.sparrow.group=-1 | whole number
policy=[{pigeon={group=0},label="sparrow"},{random={}}] | group: must be between 1 and
policy=[{pigeon={reserved=1.0},label="sparrow"},{random={}}] | at least 0 and below 1
policy=[{pigeon={reserved=nan},label="sparrow"},{random={}}] | not a finite number
policy=[{pigeon={weight=1},label="sparrow"},{random={}}] | must be 2 or more
policy=[{pigeon={weight="strct"},label="sparrow"},{random={}}] | a whole number from 2 on, or "strict"
policy=[{pigeon={lengths="100ms"},label="sparrow"},{random={}}] | a single group
policy=[{pigeon={push="0s"},label="sparrow"},{random={}}] | push: must be 1us or longer
policy=[{pigeon={declare_after="0s"},label="sparrow"},{random={}}] | declare_after: must be 1us or longer
policy=[{pigeon={group=1,master_on_worker=true},label="sparrow"},{random={}}] | no worker beside its master
policy=[{pigeon={phantom_reserved=true,master_on_worker=true},label="sparrow"},{random={}}] | remove one
run.until=0s | end before it begins
run.record.timeline_cores=-1 | whole number
run.record.timeline_messages=-1 | whole number
run.record.timeline_messages=5000000000 | whole number
cluster={topology="speed.toml"} | speed.toml:1:9 | speed 1000000000 | between 0.01 and 10000
cluster={topology="cores.toml"} | cores.toml:1:9 | without cores
cluster={topology="none.toml"} | none.toml:2: | must be at least 1
"#;

#[test]
fn impossible_values_are_refused() {
    let folder = folder();
    let here = folder.path();
    fs::write(here.join("speed.toml"), format!("speed = 1e9\n{STAR}")).unwrap();
    fs::write(here.join("cores.toml"), format!("cores = 0\n{STAR}")).unwrap();
    fs::write(here.join("none.toml"), changed(STAR, &[("nodes = 3", "nodes = 0")])).unwrap();
    for row in IMPOSSIBLE.trim().lines() {
        let set = row.split(" | ").next().unwrap();
        let (_, err) = expect_of(command(here).args(["plan", "e.toml", "--set", set]), 2);
        assert_eq!(lacks(&err, &format!("{row} |  --> |  = help: "), 1), Vec::<&str>::new(), "{row}\n{err}");
    }
}

/// Keys of different sections may contradict each other.
#[test]
fn contradictions_about_gangs_and_kinds_are_refused() {
    let folder = folder();
    let kinds = "cluster={kind=[{nodes=2,cores=2},{nodes=2}]}";
    let slo = "workload.synthetic.slo={share=true,slack=1,preference={kinds=2,of=1,slowdown=2}}";
    for (first, second, words) in [
        (kinds, slo, "`workload.synthetic.slo.preference`: | [[cluster.kind]] | leave out `preference`"),
        ("workload.synthetic.gang=true", "service.homogeneous=0.5", "service.homogeneous | equal work"),
        ("workload.synthetic.gang=true", "service.correlated=false", "service.correlated | equal work"),
    ] {
        let args = ["plan", "e.toml", "--set", first, "--set", second];
        let (_, err) = expect_of(command(folder.path()).args(args), 2);
        let words = format!("{words} |  --> |  = help: ");
        assert_eq!(lacks(&err, &words, 0), Vec::<&str>::new(), "{first} {second}\n{err}");
    }
}

/// A run starts with a warning if its deadlines are impossible or missing, or if gangs are left out.
#[test]
fn unusual_deadlines_and_gangs_give_warnings() {
    let folder = folder();
    let jobs = "jobs=60,interarrival=\"200ms\",";
    for (keys, words) in [
        ("tasks=2,slo={share=true,slack=[-0.1,1]}", "no time but their run time until the deadline"),
        ("tasks=2,slo={share=0,slack=1}", "no job has drawn a deadline, so all are best-effort"),
        (
            "tasks={uniform={low=1,high=12}},gang=true,filter=true",
            "jobs have more tasks than the 8 cores of the cluster and were left out",
        ),
    ] {
        let set = format!("workload.synthetic={{{jobs}{keys}}}");
        let (out, _) = expect_of(command(folder.path()).args(["plan", "e.toml", "--set", &set]), 0);
        assert!(out.contains(words), "{keys}: {out}");
    }
}

/// A run starts with a warning if groups do not divide the workers, or workers are reserved without long jobs.
#[test]
fn unusual_groups_give_warnings() {
    let folder = folder();
    for (pigeon, words) in [
        ("group=100", "one group of 8 workers, fewer than `group`"),
        ("group=3", "the last of 3 groups has 2 workers, the first 3"),
        ("group=4", "write `reserved = 0`, or state the workload's `cutoff`"),
        ("group=4,phantom_reserved=true", "`phantom_reserved` gives 8 workers 9 cores"),
    ] {
        let set = format!("policy=[{{pigeon={{{pigeon}}},label=\"sparrow\"}},{{random={{}}}}]");
        let (out, _) = expect_of(command(folder.path()).args(["plan", "e.toml", "--set", &set]), 0);
        assert!(out.contains(words), "{pigeon}: {out}");
    }
}

/// Unusual but possible settings are accepted: batches of jobs, slots without bursts, links without buffer.
#[test]
fn unusual_but_possible_settings_are_accepted() {
    let folder = folder();
    for set in [
        "workload.synthetic.interarrival=0s",
        "workload.synthetic.tasks={exponential={mean=2}}",
        "workload.synthetic.cutoff=0s",
        "workload.synthetic.deadline_slack=1e300",
        "service.demand={normal={mean=\"0s\",std=\"100ms\"}}",
        "network={one_way=\"20s\"}",
        "network={rate=\"1 Mbit/s\",buffer=\"0 B\"}",
        "interference={bernoulli={slot=\"1us\",probability=0.5,slowdown=2}}",
        "interference={bernoulli={slot=\"1s\",probability=0,slowdown=2}}",
        "interference={bernoulli={slot=\"1s\",probability=0.5,slowdown={lognormal={median=2,sigma=1e3}}}}",
        "interference={scripted={slot=\"1s\",rows=[[0,0]],slowdown=2}}",
        "run.record.timeline_cores=4000000000",
        "run.record.tasks_one_in=0",
    ] {
        let run = ["run", "e.toml", "--quiet", "--out", "r", "--set", set];
        expect_of(command(folder.path()).args(run), 0);
        fs::remove_dir_all(folder.path().join("r")).unwrap();
    }
}

#[test]
fn an_unusable_output_folder_is_refused() {
    let folder = folder();
    let here = folder.path();
    fs::write(here.join("busy"), "a file where a folder should be").unwrap();
    for out in ["busy", "busy/below"] {
        let (_, err) = expect(here, &format!("run e.toml --quiet --out {out}"), 2);
        assert!(err.contains(out) && err.contains("--out"), "{err}");
    }
    assert_eq!(fs::read_to_string(here.join("busy")).unwrap(), "a file where a folder should be");
    // A folder with other files is also refused, since results would be mixed with these files.
    fs::create_dir(here.join("mine")).unwrap();
    fs::write(here.join("mine/notes.txt"), "mine").unwrap();
    expect(here, "run e.toml --quiet --out r", 0);
    for command in
        ["run e.toml --quiet", "report r", "run e.toml --resume=auto", "validate e.toml --runtimes virtual"]
    {
        let (_, err) = expect(here, &format!("{command} --out mine"), 2);
        assert_eq!(
            lacks(&err, "mine is not a study directory | not empty | notes.txt | --out", 0),
            Vec::<&str>::new(),
            "{err}"
        );
    }
    assert_eq!(fs::read_dir(here.join("mine")).unwrap().count(), 1, "the folder must stay unchanged");
}

/// The sizes of gangs depend on the seed, so all seeds are checked before the first run.
#[test]
fn a_gang_that_fits_nowhere_is_refused_under_any_seed() {
    let folder = folder();
    let here = folder.path();
    let tasks = "tasks = { exponential = { mean = 2 } }\ngang = true";
    fs::write(here.join("g.toml"), changed(EXPERIMENT, &[("tasks = 2", tasks)])).unwrap();
    let said = |args: &str| text(&volary(here, &format!("plan g.toml {args}")).stderr);
    let fits = (3..200).find(|seed| said(&format!("--seed {seed}")).is_empty()).unwrap();
    let bad = (fits + 1..400).find(|seed| !said(&format!("--seed {seed}")).is_empty()).unwrap();
    let repeat = bad - fits + 1;
    assert_eq!(said(&format!("--seed {fits} --repeat {}", repeat - 1)), "");
    for command in ["plan", "run"] {
        let (_, err) = expect(here, &format!("{command} g.toml --seed {fits} --repeat {repeat}"), 2);
        let words = format!(
            "start together | 8 cores | workload.synthetic.filter = true | with seed {bad} |  --> g.toml"
        );
        assert_eq!(lacks(&err, &words, 0), Vec::<&str>::new(), "{err}");
    }
    assert!(!here.join("runs").exists());
}

/// A table like [`IMPOSSIBLE`], for an experiment without jobs.
const IMPOSSIBLE_GOSSIP: &str = r#"
workload.gossip.topology={edges={values=[[0,1],[2,3]]}} | not connected | no path joins members 0 and 2 | add edges
workload.gossip.topology={edges={values=[[0,5]]}} | 0–5 names a member above 4 | between members 0 to 4
workload.gossip.topology={regular=3} | there is no graph | an even one if that number is odd
workload.gossip.topology={regular=6} | there is no graph | below the number of members
workload.gossip.topology={edges={file="none.txt"}} | cannot read none.txt
workload.gossip.topology={edges={file="odd.txt"}} | odd.txt:2 | the two members
workload.gossip.topology={edges={file="split.txt"}} | no path joins members 0 and 2
workload.gossip.updates.every=0s | a microsecond or longer | every = "1s"
workload.gossip.updates.bytes=0 | a message cannot have 0 bytes | bytes = 10_000
workload.gossip.updates.bytes=9 | no link has a rate | network.uplink
workload.gossip.updates.at={member=5} | no member 5 | members are 0 to 4
workload.gossip.duration=0s | the measured part would be empty
run.until=1s | updates are measured until | shorten workload.gossip.duration
run.real={} | no tasks that could burn cores
cluster={kind=[{nodes=5,cores=4}]} | about jobs
policy.push.fan_out=5 | no member has 5 neighbours | write 4 or less
policy.push.period=0s | period: must be 1us or longer
policy=[{sparrow={}}] | schedules jobs | write push, pull, push-pull or flood
policy=[{swim={}}] | spread no updates | leave out workload.gossip.updates
workload.gossip={duration="9s"} | members have no updates to spread | write workload.gossip.updates
workload={yahoo-like={}} | gossips and runs no jobs | [workload.gossip]
cluster.cores=2 | about jobs | leave the key out
cluster.schedulers=2 | its source
service.demand=1s | no copies | leave [service] out
interference.bernoulli={slot="1s",probability=0.1,slowdown=2} | slows cores down | actors.on = "cores"
"#;

#[test]
fn gossip_that_cannot_run_is_refused_with_a_remedy() {
    let folder = folder();
    let here = folder.path();
    let text = "title = \"g\"\n[cluster]\nnodes = 5\n[workload.gossip]\nupdates = { every = \"1s\" }\n\
                duration = \"10s\"\n[[policy]]\npush = {}\n";
    fs::write(here.join("g.toml"), text).unwrap();
    fs::write(here.join("odd.txt"), "0 1\n1 to 2\n").unwrap();
    fs::write(here.join("split.txt"), "# a comment\n0 1\n2,3\n").unwrap();
    for row in IMPOSSIBLE_GOSSIP.trim().lines() {
        let set = row.split(" | ").next().unwrap();
        let (_, err) = expect_of(command(here).args(["plan", "g.toml", "--set", set]), 2);
        assert_eq!(lacks(&err, row, 1), Vec::<&str>::new(), "{row}\n{err}");
        assert!(err.contains("help: "), "{row}\n{err}");
    }
}
