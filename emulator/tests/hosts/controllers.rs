//! Tests of a real controller. The test plays the agents.

use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Child;
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use volary_actors::base::{ActorId, CopyId, JobId, Span, Time};
use volary_actors::machine::Note;
use volary_engine::parcel::{Observation, Seen};
use volary_engine::results::HostVitals;
use volary_engine::world::World;
use volary_engine::world::finalize::Counters;
use volary_experiment::codec::LARGEST_FRAME;
use volary_experiment::config::{Experiment, Overrides};
use volary_experiment::fidelity::measure::Reading;
use volary_hosts::cluster::net::endpoint::Accepted;
use volary_hosts::cluster::net::{Close, Connection, Control, Hosts, Options, Transport};
use volary_hosts::cluster::protocol::{
    AgentMessage, ControllerMessage, Datagrams, FIRST_FRAME, FinalReport, InjectReply, Opening,
};

use crate::cluster;
use crate::common::binary::lines;
use crate::common::worlds;
use crate::net::{Net, relay, request, within};

/// Two runs that end at their time limit.
const UNITS: &str = "[run]\nuntil = \"1s\"\n[[policy]]\nsparrow = {}\n[[policy]]\nrandom = {}\n";

/// The folder of a run, and agents that listen in the folder: the test decides what the agents send.
struct Fixture {
    net: Net,
    listeners: Vec<(Transport, Accepted)>,
}

impl Fixture {
    fn new(names: &[&str]) -> Self {
        let net = Net::with(UNITS);
        let listeners: Vec<_> = names.iter().map(|name| net.listen(name, &Options::default())).collect();
        let address = |(listener, _): &(Transport, Accepted)| listener.address().unwrap();
        let fixture = Self { net, listeners };
        fixture.hosts(names.iter().zip(fixture.listeners.iter().map(address)));
        fixture
    }

    /// Writes the hosts file.
    fn hosts<'a>(&self, hosts: impl Iterator<Item = (&'a &'a str, SocketAddr)>) {
        let host = |(name, address)| format!("[[host]]\nname = \"{name}\"\naddress = \"{address}\"\n");
        fs::write(self.net.folder("lab.toml"), hosts.map(host).collect::<String>()).unwrap();
    }

    /// `volary run` in the background.
    fn run(&self) -> Child {
        cluster::run(&self.net.folder(""), "lab.toml", "r", "")
    }

    fn out(&self) -> PathBuf {
        self.net.folder("r")
    }

    fn manifest(&self) -> Value {
        cluster::manifest(&self.out())
    }

    /// The record of the first run, which did not finish.
    fn kept(&self) -> Value {
        let id = self.manifest()["runs"][0].as_str().unwrap().to_owned();
        serde_json::from_slice(&fs::read(self.out().join(format!("failed/{id}.json"))).unwrap()).unwrap()
    }

    /// The arrival of a job at the only client.
    fn arrival(&self, job: u32) -> Observation {
        let experiment = Experiment::load(&self.net.folder("e.toml"), &Overrides::default()).unwrap();
        let client = worlds(&experiment).next().unwrap().layout().client(0);
        Observation { at: Time(1), what: Seen::Note(client, Note::Arrived { job: JobId(job) }) }
    }
}

/// An agent that a controller has claimed.
struct Agent {
    connection: Connection,
    control: Control<AgentMessage, ControllerMessage>,
}

impl Agent {
    async fn taken(accepted: &mut Accepted) -> Self {
        let peer = within(accepted.next()).await.unwrap();
        let mut control = Control::<(), Opening>::new(&peer.connection, peer.streams, FIRST_FRAME);
        assert_eq!(within(control.receive()).await.unwrap(), Opening::Claim);
        Self { connection: peer.connection, control: control.retype(LARGEST_FRAME) }
    }

    async fn send(&mut self, message: AgentMessage) {
        within(self.control.send(&message)).await.unwrap();
    }

    async fn receive(&mut self) -> ControllerMessage {
        loop {
            let order = within(self.control.receive()).await.unwrap();
            if !matches!(order, ControllerMessage::Progress { .. } | ControllerMessage::Pong { .. }) {
                return order;
            }
        }
    }

    /// Answers until a run can begin; returns its number.
    async fn ready(&mut self) -> u64 {
        let mut order = self.receive().await;
        if matches!(order, ControllerMessage::Load(_)) {
            self.send(AgentMessage::Loaded).await;
            order = self.receive().await;
        }
        let ControllerMessage::Prepare(assignment) = order else { panic!("no run to prepare") };
        self.send(AgentMessage::Ready { run: assignment.run }).await;
        assignment.run
    }

    /// Answers until a run has begun; returns its number.
    async fn begun(&mut self) -> u64 {
        let run = self.ready().await;
        assert!(matches!(self.receive().await, ControllerMessage::Start { .. }));
        run
    }

    /// The reading of the controller's clock.
    async fn time(&mut self) -> i64 {
        self.send(AgentMessage::Ping { sent: 0 }).await;
        loop {
            if let ControllerMessage::Pong { here, .. } = within(self.control.receive()).await.unwrap() {
                return here;
            }
        }
    }

    /// Answers a run without observations until its end.
    async fn report_nothing(&mut self) {
        self.report(Vec::new(), Time::ZERO + Span::from_secs(2)).await;
    }

    /// Takes part in a run without observations from its begin to its end.
    async fn serve_empty_run(&mut self) {
        self.begun().await;
        self.report_nothing().await;
        self.stopped().await;
        self.end().await;
    }

    async fn report(&mut self, notes: Vec<Observation>, mark: Time) {
        self.send(AgentMessage::Notes { notes, mark, progress: mark }).await;
    }

    async fn stopped(&mut self) {
        assert!(matches!(self.receive().await, ControllerMessage::Stop));
    }

    async fn end(&mut self) {
        self.end_with(HostVitals::default(), Vec::new()).await;
    }

    async fn end_with(&mut self, vitals: HostVitals, datagrams: Vec<Datagrams>) {
        let account = FinalReport {
            tally: Counters::default(),
            reading: Reading::default(),
            vitals,
            datagrams,
            cores: None,
        };
        self.send(AgentMessage::FinalReport(Box::new(account))).await;
    }
}

/// Waits until a run has ended by itself, while the agents continue, and asserts its status; returns its output.
async fn finish(run: Child, status: i32) -> String {
    tokio::task::spawn_blocking(move || cluster::finish(run, status)).await.unwrap()
}

#[tokio::test]
async fn a_host_that_refuses_a_run_takes_part_in_the_next_run() {
    let mut fixture = Fixture::new(&["h1", "h2"]);
    let run = fixture.run();
    let [(_, first), (_, second)] = &mut fixture.listeners[..] else { panic!("two listeners") };
    let (mut h1, mut h2) = (Agent::taken(first).await, Agent::taken(second).await);
    let (id, _) = tokio::join!(h1.begun(), h2.begun());
    // h1 reports the loss first; the reason that h2 itself reports takes precedence.
    h1.send(AgentMessage::Lost { peer: "h2".to_owned(), why: "it hung up".to_owned() }).await;
    h1.stopped().await;
    h2.stopped().await;
    h2.send(AgentMessage::Refused { run: id, why: "a bug: boom".to_owned() }).await;
    h1.end().await;
    let (next, _) = tokio::join!(h1.begun(), h2.begun());
    assert!(next > id);
    // Messages about a run that has ended are ignored.
    h2.send(AgentMessage::Refused { run: id, why: "again".to_owned() }).await;
    tokio::join!(h1.report_nothing(), h2.report_nothing());
    for host in [&mut h1, &mut h2] {
        host.stopped().await;
        host.end().await;
    }
    let said = finish(run, 3).await;
    assert!(said.contains("sparrow") && said.contains("host h2: a bug: boom"), "{said}");
    assert!(!said.contains("random with"), "{said}");
    let summary = lines(&fs::read_to_string(fixture.out().join("summary.jsonl")).unwrap());
    assert!(summary.len() == 1 && summary[0]["policy"] == "random", "{summary:?}");
}

/// A silent host does not prevent the others from being asked, and the error names the silent one.
#[tokio::test]
async fn all_hosts_are_asked_at_the_same_time() {
    let mut fixture = Fixture::new(&["h2"]);
    let silent = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let (h1, h2) = (silent.local_addr().unwrap(), fixture.listeners[0].0.address().unwrap());
    fixture.hosts([(&"h1", h1), (&"h2", h2)].into_iter());
    let run = fixture.run();
    let host = Agent::taken(&mut fixture.listeners[0].1).await;
    let said = finish(run, 3).await;
    assert!(said.contains(&format!("host h1 at {h1}: no answer within")), "{said}");
    assert_eq!(
        within(host.connection.ended()).await,
        volary_hosts::cluster::net::End::Done,
        "it is free at once"
    );
}

#[tokio::test]
async fn ctrl_c_takes_effect_while_hosts_plan() {
    let mut fixture = Fixture::new(&["h1"]);
    let run = fixture.run();
    let mut host = Agent::taken(&mut fixture.listeners[0].1).await;
    assert!(matches!(host.receive().await, ControllerMessage::Load(_)));
    // The host does not answer, as if it still planned.
    cluster::interrupt(&run);
    let said = finish(run, 3).await;
    assert!(said.contains("interrupted before the hosts were ready"), "{said}");
    // The host is disconnected at once, not when its lease expires.
    let end = within(host.connection.ended()).await;
    assert_eq!(end, volary_hosts::cluster::net::End::Done);
    assert!(!fixture.out().exists(), "nothing is left of a run that never began");
}

#[tokio::test]
async fn a_message_beyond_the_frame_limit_ends_the_host() {
    let mut fixture = Fixture::new(&["h1"]);
    let run = fixture.run();
    let mut host = Agent::taken(&mut fixture.listeners[0].1).await;
    assert!(matches!(host.receive().await, ControllerMessage::Load(_)));
    let _ = within(host.control.send(&AgentMessage::Log("x".repeat(20 << 20)))).await;
    let said = finish(run, 3).await;
    assert!(said.contains("host h1") && said.contains("more than the limit of 8388608"), "{said}");
}

/// The order to start reaches a host before the start, even if its round trip is long.
#[tokio::test]
async fn a_far_host_receives_the_order_to_start_in_time() {
    let mut fixture = Fixture::new(&["h1"]);
    let far = relay(fixture.listeners[0].0.address().unwrap(), Duration::from_millis(150)).await;
    fixture.hosts([(&"h1", far)].into_iter());
    let run = fixture.run();
    let mut host = Agent::taken(&mut fixture.listeners[0].1).await;
    host.ready().await;
    let ControllerMessage::Start { at } = host.receive().await else { panic!("no start") };
    // The time is requested after the order has arrived.
    let now = host.time().await;
    assert!(at > now, "the start was {} ms ago", (now - at) / 1_000_000);
    cluster::kill(run);
}

/// Copies on a lost host are lost, copies elsewhere are cut off, and the message names the folder of the records.
#[tokio::test]
async fn a_lost_host_is_in_the_counts_and_in_the_manifest() {
    let mut fixture = Fixture::new(&["h1", "h2", "h3"]);
    let experiment = Experiment::load(&fixture.net.folder("e.toml"), &Overrides::default()).unwrap();
    let world = worlds(&experiment).next().unwrap();
    let run = fixture.run();
    let [(_, first), (_, second), (_, third)] = &mut fixture.listeners[..] else { panic!("three listeners") };
    let (mut h1, mut h2, mut h3) =
        (Agent::taken(first).await, Agent::taken(second).await, Agent::taken(third).await);
    tokio::join!(h1.begun(), h2.begun(), h3.begun());
    // The run begins again once, and the second loss ends it.
    h3.connection.close(Close::Failed, "the cable is out");
    tokio::join!(h1.stopped(), h2.stopped());
    tokio::join!(h1.end(), h2.end());
    tokio::join!(h1.begun(), h2.begun());
    // Half of the nodes are on each host, and the client is on the second. A job has arrived, and each host runs a copy
    // of it.
    let seen = |at, what| Observation { at: Time(at), what };
    let layout = world.layout();
    let arrived = Seen::Note(layout.client(0), Note::Arrived { job: JobId(0) });
    let started = |task, node| {
        let copy = CopyId { task: JobId(0).task(task), attempt: 0 };
        Seen::Note(layout.worker(node, 0), Note::Started { copy, resumed: false })
    };
    h1.report(vec![seen(2, started(0, 0))], Time(10)).await;
    h2.report(vec![seen(1, arrived), seen(2, started(1, 3))], Time(10)).await;
    // Both reports have been handled once a later message is answered.
    tokio::join!(h1.time(), h2.time());
    h2.connection.close(Close::Failed, "the power is off");
    h1.stopped().await;
    h1.end().await;
    // The second run uses only the host that is left.
    h1.serve_empty_run().await;
    let said = finish(run, 3).await;
    assert!(
        said.contains("host h2 was lost during the run: the peer closed the connection: the power is off"),
        "{said}"
    );
    assert!(said.contains("the study continues without h2, on h1"), "{said}");
    let manifest = fixture.manifest();
    let run = &manifest["runs"][0];
    let file = format!("failed/{}.json", run.as_str().unwrap());
    assert!(said.contains(&format!("the measurements until then are in r/{file}")), "{said}");
    let failed: Value = serde_json::from_slice(&fs::read(fixture.out().join(file)).unwrap()).unwrap();
    let copies = &failed["summary"]["copies"];
    let counts = ["started", "in_progress", "lost"].map(|count| copies[count].as_u64().unwrap());
    assert_eq!(counts, [2, 1, 1], "{failed}");
    let why = "the peer closed the connection: the power is off";
    let lost = serde_json::json!([{ "run": run, "why": why, "expected": false }]);
    assert_eq!(manifest["hosts"][1]["lost"], lost);
    assert_eq!(manifest["hosts"][0]["held"].as_array().unwrap().len(), 2, "a half, then all: {manifest}");
    assert!(manifest["hosts"][0].get("lost").is_none(), "{manifest}");
}

/// A false report ends the run, which begins again without its host.
#[tokio::test]
async fn a_false_report_names_its_host_and_the_sweep_goes_on_without_it() {
    let second = Time::ZERO + Span::from_secs(1);
    let copy = CopyId { task: JobId(0).task(0), attempt: 0 };
    type False = fn(&World, CopyId) -> (Option<(ActorId, Note)>, Option<f64>);
    let cases: [(False, &str); 4] = [
        // Half of the nodes are on each host.
        (
            |world, copy| (Some((world.layout().worker(0, 0), Note::Completed { copy })), None),
            "which another host holds",
        ),
        (
            |world, _| (Some((world.layout().worker(3, 0), Note::Finished { job: JobId(0) })), None),
            "of the wrong kind of actor",
        ),
        (
            |world, _| (Some((world.layout().worker(3, 0), Note::Arrived { job: JobId(9999) })), None),
            "that does not exist",
        ),
        (|_, _| (None, Some(f64::NAN)), "a number in the vitals of its final report is not finite"),
    ];
    for (case, words) in cases {
        let mut fixture = Fixture::new(&["h1", "h2"]);
        let experiment = Experiment::load(&fixture.net.folder("e.toml"), &Overrides::default()).unwrap();
        let (note, number) = case(&worlds(&experiment).next().unwrap(), copy);
        let run = fixture.run();
        let [(_, first), (_, second_listener)] = &mut fixture.listeners[..] else { panic!("two listeners") };
        let (mut h1, mut h2) = (Agent::taken(first).await, Agent::taken(second_listener).await);
        tokio::join!(h1.begun(), h2.begun());
        if let Some((who, note)) = note {
            let seen = Observation { at: Time(1), what: Seen::Note(who, note) };
            h2.report(vec![seen], second).await;
            h1.report(Vec::new(), second).await;
        } else {
            tokio::join!(h1.report_nothing(), h2.report_nothing());
        }
        h1.stopped().await;
        h1.end().await;
        if let Some(wall_s) = number {
            h2.stopped().await;
            h2.end_with(HostVitals { wall_s, ..HostVitals::default() }, Vec::new()).await;
        }
        // The first run is repeated, and the second follows.
        h1.serve_empty_run().await;
        h1.serve_empty_run().await;
        let said = finish(run, 0).await;
        assert!(said.contains("host h2 was lost") && said.contains(words), "{words}: {said}");
        assert!(said.contains("the study continues without h2, on h1"), "{said}");
        let summary = lines(&fs::read_to_string(fixture.out().join("summary.jsonl")).unwrap());
        assert!(summary.len() == 2 && summary[1]["policy"] == "random", "{summary:?}");
        // Ten jobs were due on the other host, and none of them arrived.
        assert_eq!(summary[0]["fidelity"]["verdict"], "degraded", "{summary:?}");
    }
}

/// The contradiction may come from a bug in the policy, so the host takes part in later runs.
#[tokio::test]
async fn contradictory_reports_end_only_their_run() {
    let mut fixture = Fixture::new(&["h1"]);
    let experiment = Experiment::load(&fixture.net.folder("e.toml"), &Overrides::default()).unwrap();
    let worker = worlds(&experiment).next().unwrap().layout().worker(0, 0);
    let copy = CopyId { task: JobId(0).task(0), attempt: 0 };
    let run = fixture.run();
    let mut host = Agent::taken(&mut fixture.listeners[0].1).await;
    host.begun().await;
    let never_started = Seen::Note(worker, Note::Completed { copy });
    let twice = vec![Observation { at: Time(1), what: never_started }; 2];
    host.report(twice, Time(10)).await;
    host.stopped().await;
    host.end().await;
    host.serve_empty_run().await;
    let said = finish(run, 3).await;
    assert!(
        said.contains("host h1: its report at 1ns cannot be true: ") && said.contains("which did not run it"),
        "{said}"
    );
    assert!(
        said.contains("or the policy has a bug") && !said.contains("the study continues without"),
        "{said}"
    );
    assert!(fixture.manifest()["hosts"][0].get("lost").is_none());
}

/// The host stays connected, but sends no report. The sweep continues without it.
#[tokio::test]
async fn a_host_that_reports_nothing_is_given_up_and_named() {
    let mut fixture = Fixture::new(&["h1", "h2"]);
    let run = fixture.run();
    let [(_, first), (_, second)] = &mut fixture.listeners[..] else { panic!("two listeners") };
    let (mut h1, mut h2) = (Agent::taken(first).await, Agent::taken(second).await);
    tokio::join!(h1.begun(), h2.begun());
    // The client is on the second host.
    h1.report(Vec::new(), Time(10)).await;
    h2.report(vec![fixture.arrival(0)], Time(10)).await;
    for mark in 11..51 {
        tokio::time::sleep(Duration::from_millis(500)).await;
        h1.report(Vec::new(), Time(mark)).await;
    }
    h1.stopped().await;
    h1.end().await;
    // The first run is repeated, and the second follows.
    h1.serve_empty_run().await;
    h1.serve_empty_run().await;
    let said = finish(run, 0).await;
    let words = "host h2 was lost during the run: it is connected and has reported nothing for 20 s";
    assert!(said.contains(words) && said.contains("the study continues without h2, on h1"), "{said}");
    drop(h2);
}

/// The wait for the last report of a host is shorter than after a run that has ended by itself.
#[tokio::test]
async fn an_interrupted_run_keeps_measurements_if_a_host_does_not_stop() {
    let mut fixture = Fixture::new(&["h1"]);
    let run = fixture.run();
    let mut host = Agent::taken(&mut fixture.listeners[0].1).await;
    host.begun().await;
    host.report(vec![fixture.arrival(0), fixture.arrival(1)], Time(10)).await;
    host.time().await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    cluster::interrupt(&run);
    let said = finish(run, 3).await;
    assert!(said.contains("host h1 has not stopped in time: its counts are missing"), "{said}");
    assert!(said.contains("was interrupted after") && said.contains("the measurements are in r;"), "{said}");
    assert!(!said.contains("nothing was measured"), "{said}");
    let kept = fixture.kept();
    assert_eq!((&kept["interrupted"], &kept["summary"]["jobs"]["submitted"]), (&true.into(), &2.into()));
    assert_eq!(fixture.manifest()["state"], "interrupted");
}

/// All jobs have arrived and no event is pending, so nothing will happen any more.
#[tokio::test]
#[ignore = "nightly: a minute in which nothing happens"]
async fn a_run_that_stalls_after_losses_ends_with_its_measurements() {
    let mut fixture = Fixture::new(&["h1", "h2"]);
    let run = fixture.run();
    let [(_, first), (_, second)] = &mut fixture.listeners[..] else { panic!("two listeners") };
    let (mut h1, mut h2) = (Agent::taken(first).await, Agent::taken(second).await);
    tokio::join!(h1.begun(), h2.begun());
    // The client is on the second host.
    h2.report((0..50).map(|job| fixture.arrival(job)).collect(), Time(10)).await;
    for second in 0..65 {
        for host in [&mut h1, &mut h2] {
            host.send(AgentMessage::Sample(Box::default())).await;
            host.report(Vec::new(), Time(20 + second)).await;
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    // h2 has received eight of nine datagrams of h1; the loss of the last leaves no gap in the numbers.
    let [sent, received] =
        [(9, 0), (0, 8)].map(|(sent, received)| Datagrams { sent, received, ..Datagrams::default() });
    for (host, of) in
        [(&mut h1, vec![Datagrams::default(), sent]), (&mut h2, vec![received, Datagrams::default()])]
    {
        host.stopped().await;
        host.end_with(HostVitals::default(), of).await;
    }
    tokio::join!(h1.begun(), h2.begun());
    tokio::join!(h1.report_nothing(), h2.report_nothing());
    for host in [&mut h1, &mut h2] {
        host.stopped().await;
        host.end().await;
    }
    let said = finish(run, 3).await;
    assert!(said.contains("the network between the hosts had lost 1 datagram"), "{said}");
    assert_eq!(fixture.kept()["summary"]["jobs"]["submitted"], 50);
}

/// A host that is lost before a run begins is also named in the manifest.
#[tokio::test]
async fn a_host_lost_before_its_run_begins_is_in_the_manifest() {
    let mut fixture = Fixture::new(&["h1"]);
    let run = fixture.run();
    let mut host = Agent::taken(&mut fixture.listeners[0].1).await;
    assert!(matches!(host.receive().await, ControllerMessage::Load(_)));
    host.send(AgentMessage::Loaded).await;
    assert!(matches!(host.receive().await, ControllerMessage::Prepare(_)));
    host.connection.close(Close::Failed, "the power is off");
    let said = finish(run, 3).await;
    assert!(
        said.contains("host h1: the connection ended: the peer closed the connection: the power is off"),
        "{said}"
    );
    let lost = &fixture.manifest()["hosts"][0]["lost"];
    assert_eq!(
        (lost[0]["run"].as_str(), lost.as_array().unwrap().len()),
        (fixture.manifest()["runs"][0].as_str(), 1)
    );
}

/// When an injector disconnects, its injection is ended and recorded.
#[tokio::test]
async fn an_injection_is_ordered_and_recorded_and_ends_with_its_injector() {
    let mut fixture = Fixture::new(&["h1"]);
    let run = fixture.run();
    let mut host = Agent::taken(&mut fixture.listeners[0].1).await;
    host.begun().await;
    let hosts = fixture.net.folder("lab.toml");
    let socket = Hosts::load(&hosts).unwrap().socket(&hosts);
    let mut injector = BufReader::new(UnixStream::connect(socket).await.unwrap());
    let mut ask = async |message: &str| {
        injector.get_mut().write_all(format!("{message}\n").as_bytes()).await.unwrap();
        let mut line = String::new();
        within(injector.read_line(&mut line)).await.unwrap();
        serde_json::from_str::<InjectReply>(&line).unwrap()
    };
    let request = |target| serde_json::to_string(&request(&[target], false)).unwrap();
    for (message, wrong) in [("{}", "expected value"), (request("node:999").as_str(), "node:999")] {
        let reply = ask(message).await;
        assert!(matches!(&reply, InjectReply::Refused(_, why) if why.contains(wrong)), "{reply:?}");
    }
    let host_confirms = async {
        let ControllerMessage::Inject(order) = host.receive().await else { panic!("not ordered") };
        host.send(AgentMessage::Injected { id: order.id, from: Time(100_000_000) }).await;
        order
    };
    let asked = request("node:0");
    let (reply, order) = tokio::join!(ask(&asked), host_confirms);
    assert_eq!((order.cores.to_string().as_str(), order.seed, order.until), ("0", 3, Time::MAX));
    assert!(matches!(reply, InjectReply::Begun(_, shares) if shares.len() == 1));
    drop(injector);
    let ControllerMessage::Lift { id, at, why } = host.receive().await else { panic!("not lifted") };
    assert!(id == order.id && at >= order.from && why.contains("the injector disconnected"), "{why}");
    host.send(AgentMessage::Lifted { id, until: Time(400_000_000), why: "it was enough".to_owned() }).await;
    for last in [false, true] {
        host.report_nothing().await;
        host.stopped().await;
        host.end().await;
        if !last {
            host.begun().await;
        }
    }
    finish(run, 0).await;
    let manifest = fixture.manifest();
    let injections = manifest["injections"].as_object().unwrap();
    assert_eq!(injections.len(), 1, "{manifest}");
    let record = &injections[manifest["runs"][0].as_str().unwrap()][0];
    let expected = serde_json::json!([{
        "host": "h1", "cores": "0", "from_s": 0.1, "until_s": 0.4, "ended": "it was enough", "degraded": 1.0
    }]);
    assert_eq!((&record["hosts"], &record["targets"][0]), (&expected, &"node:0".into()));
}
