//! Agents on loopback, and `volary run` on them.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;
use volary_actors::base::{Span, Time};
use volary_experiment::storage::input_log::{self, InputLog};
use volary_hosts::cluster::net::Hosts;

use crate::common::binary::{command, expect, lines, text, volary};

/// A run of a few emulated seconds that any machine keeps up with.
pub const EXPERIMENT: &str = r#"title = "hosts"
seed = 5
[cluster]
nodes = 12
schedulers = 3
[workload.synthetic]
jobs = 80
tasks = 4
interarrival = { exponential = { mean = "50ms" } }
[service]
demand = { exponential = { mean = "100ms" } }
[network]
one_way = "10ms"
loss = 0.02
duplicate = 0.02
[[policy]]
sparrow = {}
[[policy]]
peacock = {}
"#;

/// Arguments for a run that does not end by itself, and whose inputs are logged.
pub const LONG: &str = "--set policy=[{random={}}] --set cluster.schedulers=1 --set service.demand=50ms \
    --set workload.synthetic={jobs=20_000,tasks=2,interarrival=\"50ms\"} --set network={one_way=\"5ms\"} \
    --set run.record.inputs=true";
const HOSTS: [&str; 3] = ["h1", "h2", "h3"];

/// Deadline of every wait; no duration is measured with it.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// Agents on loopback, and a folder for all files.
pub struct Cluster {
    pub folder: TempDir,
    pub agents: Vec<Child>,
}

impl Cluster {
    /// Starts three agents; `extra` are further arguments of the second agent.
    pub fn start(extra: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        fs::write(path.join("e.toml"), EXPERIMENT).unwrap();
        expect(path, "certs ids --host h1=127.0.0.1:1 --host h2=127.0.0.2:2 --host h3=127.0.0.3:3", 0);
        let mut cluster = Self { folder, agents: Vec::new() };
        cluster.start_agents(|host| if host == 1 { extra } else { "" });
        cluster
    }

    /// Ends all agents, and starts them again with these arguments.
    pub fn restart(&mut self, extra: &str) {
        for mut agent in self.agents.drain(..) {
            agent.kill().unwrap();
            agent.wait().unwrap();
        }
        self.start_agents(|_| extra);
    }

    /// Starts an agent for each host and writes their addresses.
    fn start_agents<'a>(&mut self, extra: impl Fn(usize) -> &'a str) {
        let mut file = String::new();
        for (i, name) in HOSTS.iter().enumerate() {
            let address = self.agent(name, &format!("127.0.0.{}:0", i + 1), extra(i));
            file.push_str(&format!("[[host]]\nname = \"{name}\"\naddress = \"{address}\"\n"));
        }
        fs::write(self.path().join("ids/hosts.toml"), file).unwrap();
    }

    /// Starts an agent; returns its address.
    pub fn agent(&mut self, name: &str, listen: &str, extra: &str) -> String {
        let log = fs::File::create(self.path().join(format!("{name}.log"))).unwrap();
        let lease = if extra.contains("--lease") { "" } else { "--lease 4s" };
        let args = format!("agent --listen {listen} --identity ids/{name} {lease} {extra}");
        let mut child = command(self.path())
            .args(args.split_whitespace())
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        self.agents.push(child);
        line.trim().rsplit(' ').next().unwrap().to_owned()
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// `volary run` in the background, with further arguments.
    pub fn run(&self, out: &str, extra: &str) -> Child {
        run(self.path(), "ids/hosts.toml", out, extra)
    }

    /// The hosts as `volary status` prints them.
    pub fn hosts(&self) -> Vec<Value> {
        let out = volary(self.path(), "status --hosts ids/hosts.toml --json");
        serde_json::from_slice(&out.stdout).unwrap()
    }

    /// The state of each host.
    pub fn states(&self) -> Vec<String> {
        let state =
            |host: &Value| host["state"].as_str().or_else(|| host["error"].as_str()).unwrap().to_owned();
        self.hosts().iter().map(state).collect()
    }

    /// Waits until the states of the hosts satisfy a condition.
    pub fn until(&self, done: impl Fn(&[String]) -> bool) {
        let late = Instant::now() + PATIENCE;
        while !done(&self.states()) {
            assert!(Instant::now() < late, "hosts stay {:?}", self.states());
            std::thread::sleep(Duration::from_millis(200));
        }
    }

    /// Waits until all hosts are idle.
    pub fn until_idle(&self) {
        self.until(|states| states.iter().all(|state| state == "idle"));
    }

    /// Waits until all hosts execute a run, and its controller listens for injectors, which it does a moment later.
    pub fn until_running(&self) {
        let file = self.path().join("ids/hosts.toml");
        let socket = Hosts::load(&file).unwrap().socket(&file);
        self.until(|states| {
            states.iter().all(|state| state.starts_with("runs for")) && UnixStream::connect(&socket).is_ok()
        });
    }

    /// Waits until the input logs of these shards reach an emulated time.
    pub fn reached(&self, out: &str, shards: &[u16], at_s: u64) {
        let late = Instant::now() + PATIENCE;
        while !shards
            .iter()
            .all(|shard| self.logged_until(out, *shard) >= Some(Time::ZERO + Span::from_secs(at_s)))
        {
            assert!(Instant::now() < late, "the run does not come to {at_s} s");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// The time of the last entry in a shard's input log.
    fn logged_until(&self, out: &str, shard: u16) -> Option<Time> {
        let mut log =
            InputLog::new(fs::File::open(self.path().join(out).join(input_log::FILE)).ok()?).ok()?;
        let mut cursor = log.found().iter().find(|found| found.header.shard == shard)?.cursor();
        let mut last = None;
        while let Some(entry) = log.next(&mut cursor).ok()? {
            last = Some(entry.at);
        }
        last
    }

    /// A host's log in the study directory.
    pub fn log(&self, out: &str, host: &str) -> String {
        fs::read_to_string(self.path().join(out).join("logs").join(format!("{host}.log"))).unwrap()
    }

    pub fn manifest(&self, out: &str) -> Value {
        manifest(&self.path().join(out))
    }

    /// The lines of a run's summary.
    pub fn summary(&self, out: &str) -> Vec<Value> {
        lines(&fs::read_to_string(self.path().join(out).join("summary.jsonl")).unwrap())
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for agent in &mut self.agents {
            let _ = agent.kill();
            let _ = agent.wait();
        }
    }
}

/// `volary run e.toml` in the background, in a folder with a hosts file.
pub fn run(folder: &Path, hosts: &str, out: &str, extra: &str) -> Child {
    let args = format!("run e.toml --runtime hosts --hosts {hosts} --quiet --out {out} {extra}");
    command(folder).args(args.split_whitespace()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Interrupts a process with SIGINT.
pub fn interrupt(child: &Child) {
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
}

/// Sends SIGKILL, and waits for the end.
pub fn kill(mut child: Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

/// Starts `volary inject p.toml` in the background; returns once the injection has begun.
pub fn inject(folder: &Path, args: &str) -> Child {
    let args = format!("inject p.toml --hosts ids/hosts.toml {args}");
    let mut child = command(folder).args(args.split_whitespace()).stdout(Stdio::piped()).spawn().unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut said = String::new();
    while !said.contains(": cores ") {
        assert!(out.read_line(&mut said).unwrap() > 0, "it ends: {said}");
    }
    // The caller can read further output.
    child.stdout = Some(out.into_inner());
    child
}

/// The manifest of a study directory.
pub fn manifest(out: &Path) -> Value {
    serde_json::from_slice(&fs::read(out.join("manifest.json")).unwrap()).unwrap()
}

/// Waits until a run has ended by itself, and asserts its status; returns its output on stderr.
pub fn finish(mut run: Child, status: i32) -> String {
    let late = Instant::now() + PATIENCE;
    while run.try_wait().unwrap().is_none() {
        assert!(Instant::now() < late, "the run does not end");
        std::thread::sleep(Duration::from_millis(50));
    }
    let output = run.wait_with_output().unwrap();
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(status), "{said}");
    said
}
