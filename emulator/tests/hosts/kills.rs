//! Processes that are killed during an injection. They leave nothing behind, and the other processes serve the next
//! run. In every other round copies burn real cores.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::thread::sleep;
use std::time::{Duration, Instant};

use volary_actors::base::Rng;

use crate::cluster::{Cluster, LONG, PATIENCE, finish, inject, interrupt, kill};

/// Slots of several slowdowns.
const PROFILE: &str =
    r#"markov = { slot = "20ms", p_on = 0.3, p_off = 0.2, slowdown = { uniform = { low = 2, high = 6 } } }"#;

/// Resources of a process: its threads except those of the tokio pool, with name, CPUs and nice value; and its sockets.
#[derive(PartialEq, Eq, Debug)]
struct Footprint {
    threads: BTreeSet<(String, String, String)>,
    sockets: usize,
}

impl Footprint {
    fn of(agent: u32) -> Option<Self> {
        let process = PathBuf::from(format!("/proc/{agent}"));
        let mut threads = BTreeSet::new();
        for task in fs::read_dir(process.join("task")).ok()?.flatten() {
            // A thread may end in between.
            let Ok(status) = fs::read_to_string(task.path().join("status")) else { continue };
            let Ok(stat) = fs::read_to_string(task.path().join("stat")) else { continue };
            let line =
                |key: &str| status.lines().find_map(|line| line.strip_prefix(key)).unwrap_or_default().trim();
            // Nice is the 17th field after the name, which is in brackets.
            let nice = stat.rsplit(')').next()?.split_whitespace().nth(16)?.to_owned();
            let name = line("Name:").to_owned();
            if !name.starts_with("tokio-") {
                threads.insert((name, line("Cpus_allowed_list:").to_owned(), nice));
            }
        }
        let open =
            fs::read_dir(process.join("fd")).ok()?.flatten().filter_map(|fd| fs::read_link(fd.path()).ok());
        let sockets = open.filter(|to| to.to_string_lossy().starts_with("socket:")).count();
        Some(Self { threads, sockets })
    }
}

/// Processes that work in a folder or name it in their arguments.
fn processes(folder: &Path) -> BTreeSet<u32> {
    let all = fs::read_dir("/proc").unwrap().flatten();
    let numbers = all.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let ours = |pid: &u32| {
        let file = |name: &str| PathBuf::from(format!("/proc/{pid}/{name}"));
        let words = fs::read(file("cmdline")).unwrap_or_default();
        let zombie = fs::read_to_string(file("status")).is_ok_and(|status| status.contains("State:\tZ"));
        let here = fs::read_link(file("cwd")).is_ok_and(|cwd| cwd == folder);
        let words = String::from_utf8_lossy(&words);
        !zombie && (here || words.contains(&*folder.to_string_lossy()))
    };
    numbers.filter(ours).collect()
}

/// Waits until `now` succeeds.
fn until(what: &str, mut now: impl FnMut() -> Result<(), String>) {
    let late = Instant::now() + PATIENCE;
    while let Err(is) = now() {
        assert!(Instant::now() < late, "{what}: {is}");
        sleep(Duration::from_millis(100));
    }
}

fn same<T: PartialEq + std::fmt::Debug>(is: T, should: &T) -> Result<(), String> {
    if is == *should { Ok(()) } else { Err(format!("{is:?} and not {should:?}")) }
}

fn wait(what: &str, mut child: Child) {
    until(what, || child.try_wait().unwrap().map(drop).ok_or_else(|| "it goes on".to_owned()));
}

/// Numbers of injections that an agent has logged as started and as ended.
fn injected(cluster: &Cluster, host: &str) -> [usize; 2] {
    let log = fs::read_to_string(cluster.path().join(format!("{host}.log"))).unwrap();
    ["interference is injected into", "interference was injected into"]
        .map(|words| log.matches(words).count())
}

/// The process that is killed during an injection.
#[derive(Clone, Copy)]
enum Victim {
    Injector,
    Controller,
    Agent,
}

/// Kills one process, to be quick; the nightly test kills many.
#[test]
fn a_killed_agent_leaves_no_process_thread_or_socket() {
    kill_each(&[Victim::Agent]);
}

#[test]
#[ignore = "nightly: kills six processes, or VOLARY_KILLS"]
fn killed_processes_leave_no_process_thread_or_socket() {
    let kills = std::env::var("VOLARY_KILLS").map_or(6, |kills| kills.parse().unwrap());
    let mut draws = Rng::new(2, 0, 0);
    let victims = [Victim::Injector, Victim::Controller, Victim::Agent];
    let victim = |kill: u32| victims[if kill < 6 { kill / 2 } else { draws.below(3) } as usize];
    kill_each(&(0..kills).map(victim).collect::<Vec<_>>());
}

/// Runs a cluster, kills each victim in turn during an injection, and checks the remaining resources after each kill.
fn kill_each(victims: &[Victim]) {
    let mut draws = Rng::new(1, 0, 0);
    let mut cluster = Cluster::start("");
    fs::write(cluster.path().join("p.toml"), PROFILE).unwrap();
    // One core per host. All may share a CPU, since nothing is measured here.
    let burns = "--set cluster.nodes=3 --set run.real.kernel=hash";
    let folder = cluster.path().canonicalize().unwrap();
    let footprints = |cluster: &Cluster| -> Vec<_> {
        cluster.agents.iter().map(|agent| Footprint::of(agent.id()).unwrap()).collect()
    };
    let idle = footprints(&cluster);
    for (round, victim) in victims.iter().enumerate() {
        let real = if round % 2 == 0 { burns } else { "" };
        let run = cluster.run(&format!("r{round}"), &format!("{LONG} {real}"));
        cluster.until_running();
        let injector = inject(cluster.path(), "");
        sleep(Duration::from_millis(draws.below(800).into()));
        kill_one(&mut cluster, *victim, run, injector, &mut draws);
        cluster.until_idle();
        let agents: BTreeSet<_> = cluster.agents.iter().map(Child::id).collect();
        until("processes of the run have not ended", || same(processes(&folder), &agents));
        until("threads or sockets of the run have not been closed", || same(footprints(&cluster), &idle));
    }
    // All agents serve the next run, without any injection.
    finish(cluster.run("last", ""), 0);
    let last = cluster.summary("last");
    assert!(
        last.iter().all(|run| run.get("injections").is_none() && run["jobs"]["finished"] == 80),
        "{last:?}"
    );
}

/// Kills the victim, and waits until the other processes have ended or are idle again.
fn kill_one(cluster: &mut Cluster, victim: Victim, run: Child, injector: Child, draws: &mut Rng) {
    match victim {
        Victim::Injector => {
            kill(injector);
            for host in ["h1", "h2", "h3"] {
                until("an injection goes on without its injector", || {
                    let [begun, ended] = injected(cluster, host);
                    same(ended, &begun)
                });
            }
            interrupt(&run);
            finish(run, 3);
        }
        Victim::Controller => {
            kill(run);
            wait("an injector does not notice that the run is over", injector);
        }
        Victim::Agent => {
            let dead = draws.below(3) as usize;
            let name = format!("h{}", dead + 1);
            let address = cluster.hosts()[dead]["address"].as_str().unwrap().to_owned();
            kill(cluster.agents.remove(dead));
            finish(run, 3);
            wait("an injector does not notice that the run is over", injector);
            cluster.agent(&name, &address, "");
            let back = cluster.agents.pop().unwrap();
            cluster.agents.insert(dead, back);
        }
    }
}
