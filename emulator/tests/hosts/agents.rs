//! Tests of a real agent. The test plays the controller, the other hosts and the injectors.

use std::net::SocketAddr;
use std::thread;

use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::mpsc;
use volary_actors::base::{ActorId, Class, JobId, Span, Time};
use volary_actors::message::Probe;
use volary_engine::parcel::Parcel;
use volary_experiment::codec::LARGEST_FRAME;
use volary_experiment::config::{Experiment, Overrides, id_under};
use volary_hosts::cluster::agent::{Agent, AgentLog, Settings};
use volary_hosts::cluster::net::{Arrival, Connection, Control, End, Host, Link, Options, Transport};
use volary_hosts::cluster::protocol::{
    AgentMessage, Assignment, ControllerMessage, FIRST_FRAME, InjectOrder, LinkPurpose, Opening,
};
use volary_hosts::real_time::clock::MonotonicClock;

use crate::common::worlds;
use crate::net::{HALF, Net, end, within};

/// One scheduler, which is on the second of two hosts.
const SPARROW: &str = "[network]\none_way = \"5ms\"\n[[policy]]\nsparrow = {}\n";

/// Limit on the events that may wait at the agent.
const EVENTS: usize = 1000;

/// A real agent, h1, on a thread of its own.
struct Fixture {
    net: Net,
    experiment: Experiment,
    agent: SocketAddr,
}

impl Fixture {
    fn new() -> Self {
        let net = Net::with(SPARROW);
        let experiment = Experiment::load(&net.folder("e.toml"), &Overrides::default()).unwrap();
        let settings = Settings {
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            identity: net.folder("h1"),
            lease: Span::from_secs(10),
            once: false,
            events: EVENTS,
            cpus: Vec::new(),
            programs: std::sync::Arc::new(volary_experiment::program::ProcessLauncher::of_host(
                Default::default(),
            )),
            log: AgentLog::default(),
            ticks: MonotonicClock::new(),
        };
        let agent = Agent::new(&settings).unwrap();
        let address = agent.address().unwrap();
        // The thread ends with the test.
        thread::spawn(move || agent.run());
        Self { net, experiment, agent: address }
    }

    /// A peer with a controller's certificate that has sent its first message.
    async fn open<S: Serialize, R: DeserializeOwned>(
        &self,
        opening: Opening,
    ) -> (Transport, Connection, Control<S, R>) {
        let transport = self.net.connector("controller");
        let peer = within(transport.connect("h1", self.agent)).await.unwrap();
        let mut control = Control::<Opening, ()>::new(&peer.connection, peer.streams, FIRST_FRAME);
        control.send(&opening).await.unwrap();
        (transport, peer.connection, control.retype(LARGEST_FRAME))
    }

    /// A controller that has asked the agent to serve it.
    async fn claim(&self) -> Controller {
        let (transport, connection, control) = self.open(Opening::Claim).await;
        Controller { transport, connection, control, clock: 0 }
    }

    /// An order to load the experiment.
    fn load(&self) -> ControllerMessage {
        let bundle = Box::new(self.experiment.bundle().unwrap());
        ControllerMessage::Load(bundle)
    }

    /// A controller that the agent serves.
    async fn controller(&self) -> Controller {
        let mut controller = self.claim().await;
        controller.send(self.load()).await;
        assert!(matches!(controller.receive().await, AgentMessage::Loaded));
        controller
    }

    /// An assignment for the agent among other hosts, by name and address.
    fn assignment(&self, run: u64, hosts: &[(&str, SocketAddr)]) -> Assignment {
        let (point, seed) = (&self.experiment.points[0], self.experiment.seed);
        let member = |&(name, address): &(&str, SocketAddr)| {
            let name: &str = name;
            Host::new(name.to_owned(), address)
        };
        Assignment {
            run,
            point: 0,
            seed,
            id: id_under(point, seed, &self.experiment.run),
            members: hosts.iter().map(member).collect(),
            me: hosts.iter().position(|(name, _)| *name == "h1").unwrap() as u16,
        }
    }

    /// h2 opens a link to the agent for a run.
    async fn call(&self, h2: &Transport, run: u64) -> Connection {
        let peer = within(h2.connect("h1", self.agent)).await.unwrap();
        let mut control = Control::<LinkPurpose, ()>::new(&peer.connection, peer.streams, FIRST_FRAME);
        control.send(&LinkPurpose { run }).await.unwrap();
        peer.connection
    }

    /// A run of the agent as the second of two hosts; the first is the test.
    async fn two(&self, controller: &mut Controller) -> (Transport, Connection) {
        let h2 = self.net.connector("h2");
        let nowhere = SocketAddr::from(([127, 0, 0, 1], 9));
        controller.prepare(self.assignment(1, &[("h2", nowhere), ("h1", self.agent)])).await;
        let link = self.call(&h2, 1).await;
        assert!(matches!(controller.receive().await, AgentMessage::Ready { run: 1 }));
        controller.start().await;
        (h2, link)
    }

    /// Parcels that are valid for the agent, from a node on the first host to the scheduler on the second.
    fn parcels(&self, due: impl Fn(u32) -> Time, count: u32) -> Vec<Parcel> {
        let world = worlds(&self.experiment).next().unwrap();
        let (from, to) = (world.layout().node(0), world.layout().scheduler(0));
        let msg = Probe::Claim { job: JobId(0), group: 0, repair: false }.into();
        let parcel = |count| Parcel {
            sent: Time(1),
            due: due(count),
            from,
            count: 1_000_000 + count,
            to,
            msg,
            returned: false,
        };
        (0..count).map(parcel).collect()
    }
}

struct Controller {
    transport: Transport,
    connection: Connection,
    control: Control<ControllerMessage, AgentMessage>,
    /// The agent's clock, which here is also the common clock.
    clock: i64,
}

impl Controller {
    async fn send(&mut self, order: ControllerMessage) {
        within(self.control.send(&order)).await.unwrap();
    }

    /// The next message that is neither a ping nor a report.
    async fn receive(&mut self) -> AgentMessage {
        loop {
            let message = within(self.control.receive()).await.unwrap();
            if let AgentMessage::Ping { sent } = message {
                self.clock = sent;
                self.send(ControllerMessage::Pong { sent, here: sent }).await;
            } else if !matches!(
                message,
                AgentMessage::Notes { .. } | AgentMessage::Log(_) | AgentMessage::Inputs(_)
            ) {
                return message;
            }
        }
    }

    async fn prepare(&mut self, assignment: Assignment) {
        self.send(ControllerMessage::Prepare(Box::new(assignment))).await;
    }

    async fn start(&mut self) {
        self.send(ControllerMessage::Start { at: self.clock }).await;
        self.send(ControllerMessage::Progress { slowest: Time::ZERO + Span::from_secs(3600), finished: 0 })
            .await;
    }

    /// Runs the agent alone for a moment.
    async fn run(&mut self, fixture: &Fixture, run: u64) {
        self.prepare(fixture.assignment(run, &[("h1", fixture.agent)])).await;
        assert!(matches!(self.receive().await, AgentMessage::Ready { run: ready } if ready == run));
        self.start().await;
        // Waits for a report with an observation.
        while !matches!(&within(self.control.receive()).await.unwrap(), AgentMessage::Notes { notes, .. } if !notes.is_empty())
        {
        }
        self.send(ControllerMessage::Stop).await;
        let AgentMessage::FinalReport(end) = self.receive().await else { panic!("no final report") };
        assert!(end.tally.events > 0);
    }

    async fn leave(self) {
        self.transport.close("the test is done").await;
    }
}

fn link(connection: &Connection) -> (Link, mpsc::Receiver<Arrival>) {
    let (inbox, arrivals) = mpsc::channel(64);
    (Link::start(connection, 8 << 20, 0, |_| true, inbox), arrivals)
}

#[tokio::test]
async fn a_run_that_panics_is_reported_and_the_agent_continues() {
    let fixture = Fixture::new();
    let mut controller = fixture.controller().await;
    // A weight of 0, which a hosts file cannot state, violates an assertion in the agent.
    let mut assignment = fixture.assignment(1, &[("h1", fixture.agent)]);
    assignment.members[0].weight = 0;
    controller.prepare(assignment).await;
    let AgentMessage::Refused { run: 1, why } = controller.receive().await else { panic!("not refused") };
    assert!(why.contains("a bug in volary") && why.contains("some weight is above zero"), "{why}");
    controller.run(&fixture, 2).await;
    controller.leave().await;
    fixture.controller().await.run(&fixture, 1).await;
}

#[tokio::test]
async fn an_experiment_that_cannot_be_planned_is_refused_and_the_agent_continues() {
    let fixture = Fixture::new();
    let mut controller = fixture.claim().await;
    let mut load = fixture.load();
    if let ControllerMessage::Load(bundle) = &mut load {
        bundle.files.files.clear();
    }
    controller.send(load).await;
    let AgentMessage::Refused { run: 0, why } = controller.receive().await else { panic!("not refused") };
    assert!(why.contains("e.toml"), "{why}");
    controller.leave().await;
    fixture.controller().await.run(&fixture, 1).await;
}

/// Empty texts take a byte each in a frame, and much more in memory.
#[tokio::test]
async fn a_bundle_of_very_many_texts_is_refused_with_a_reason() {
    let fixture = Fixture::new();
    let mut controller = fixture.claim().await;
    let mut load = fixture.load();
    if let ControllerMessage::Load(bundle) = &mut load {
        bundle.overrides.set = vec![String::new(); 20_000];
    }
    controller.send(load).await;
    let end = within(controller.connection.ended()).await.to_string();
    assert!(end.contains("at most 10000 entries"), "{end}");
    fixture.controller().await.run(&fixture, 1).await;
}

#[tokio::test]
async fn a_cluster_too_large_for_a_host_is_refused_before_it_is_built() {
    let mut fixture = Fixture::new();
    let overrides = Overrides { set: vec!["cluster.nodes=33_000_000".to_owned()], ..Overrides::default() };
    fixture.experiment = Experiment::load(&fixture.net.folder("e.toml"), &overrides).unwrap();
    let mut controller = fixture.controller().await;
    controller.prepare(fixture.assignment(1, &[("h1", fixture.agent)])).await;
    let AgentMessage::Refused { run: 1, why } = controller.receive().await else { panic!("not refused") };
    assert!(why.contains("33000000 nodes") && why.contains("lower cluster.nodes"), "{why}");
}

/// A peer that has not claimed the agent cannot make it read an experiment.
#[tokio::test]
async fn a_second_controller_is_refused_and_a_long_first_message_is_not_read() {
    let fixture = Fixture::new();
    let transport = fixture.net.connector("controller");
    let peer = within(transport.connect("h1", fixture.agent)).await.unwrap();
    let mut rash = Control::<_, ()>::new(&peer.connection, peer.streams, LARGEST_FRAME);
    within(rash.send(&fixture.load())).await.unwrap();
    let end = within(peer.connection.ended()).await.to_string();
    assert!(end.contains("more than the limit of 64"), "{end}");
    let mut first = fixture.controller().await;
    let mut second = fixture.claim().await;
    assert!(matches!(second.receive().await, AgentMessage::Busy { controller } if controller.contains(':')));
    first.run(&fixture, 1).await;
    first.leave().await;
    // A controller that sends anything but an experiment first is disconnected, and the next one is served.
    let mut vague = fixture.claim().await;
    vague.send(ControllerMessage::Stop).await;
    let end = within(vague.connection.ended()).await.to_string();
    assert!(end.contains("sends no experiment"), "{end}");
    fixture.controller().await.run(&fixture, 2).await;
}

#[tokio::test]
async fn a_run_that_is_over_ends_its_links() {
    let fixture = Fixture::new();
    let mut controller = fixture.controller().await;
    // The test's host opens the link.
    let (_h2, connection) = fixture.two(&mut controller).await;
    controller.send(ControllerMessage::Stop).await;
    assert!(matches!(controller.receive().await, AgentMessage::FinalReport(_)));
    assert_eq!(within(connection.ended()).await, End::Done);
    // The agent opens the link to the test's host.
    let (h2, mut accepted) = fixture.net.listen("h2", &Options::default());
    controller.prepare(fixture.assignment(2, &[("h1", fixture.agent), ("h2", h2.address().unwrap())])).await;
    let peer = within(accepted.next()).await.unwrap();
    assert!(matches!(controller.receive().await, AgentMessage::Ready { run: 2 }));
    controller.start().await;
    controller.send(ControllerMessage::Stop).await;
    assert!(matches!(controller.receive().await, AgentMessage::FinalReport(_)));
    assert_eq!(within(peer.connection.ended()).await, End::Done);
}

#[tokio::test]
async fn links_for_earlier_runs_are_dropped() {
    let fixture = Fixture::new();
    let mut controller = fixture.controller().await;
    let h2 = fixture.net.connector("h2");
    let (first, second) = (fixture.call(&h2, 5).await, fixture.call(&h2, 6).await);
    // A host has at most one waiting link: the link for run 6 replaces the one for run 5.
    within(first.ended()).await;
    controller.run(&fixture, 7).await;
    within(second.ended()).await;
    let late = fixture.call(&h2, 7).await;
    let end = within(late.ended()).await;
    assert!(end.to_string().contains("the run of this link is over on this host"), "{end}");
    let third = fixture.call(&h2, 8).await;
    controller.leave().await;
    within(third.ended()).await;
}

#[tokio::test]
async fn a_parcel_for_an_actor_out_of_bounds_ends_its_link() {
    let fixture = Fixture::new();
    let mut controller = fixture.controller().await;
    let (_h2, connection) = fixture.two(&mut controller).await;
    let (link, mut arrivals) = link(&connection);
    let mut wrong = fixture.parcels(|_| Time(1_000_000), 1);
    wrong[0].to = ActorId(u32::MAX);
    link.send(&wrong, Class::Stream).unwrap();
    end(&mut arrivals).await;
    let AgentMessage::Lost { peer, .. } = controller.receive().await else { panic!("not reported") };
    assert_eq!(peer, "h2");
}

#[tokio::test]
async fn a_host_that_sends_too_much_ends_only_the_run() {
    let fixture = Fixture::new();
    let mut controller = fixture.controller().await;
    let (_h2, connection) = fixture.two(&mut controller).await;
    let (link, _arrivals) = link(&connection);
    let parcels = fixture.parcels(|i| Time::ZERO + Span::from_secs(60 + u64::from(i)), 2 * EVENTS as u32);
    link.send(&parcels, Class::Stream).unwrap();
    let AgentMessage::Refused { run: 1, why } = controller.receive().await else { panic!("not refused") };
    assert!(why.contains("more than 1000 events wait here"), "{why}");
    controller.run(&fixture, 2).await;
}

/// An order to slow cores down without a pause.
fn order(id: u64, cores: &str, until: Time) -> ControllerMessage {
    let (profile, cores) = (HALF.to_owned(), cores.parse().unwrap());
    ControllerMessage::Inject(Box::new(InjectOrder { id, profile, seed: 3, cores, from: Time::ZERO, until }))
}

#[tokio::test]
async fn injections_begin_and_end_as_ordered() {
    let fixture = Fixture::new();
    let mut controller = fixture.controller().await;
    controller.prepare(fixture.assignment(1, &[("h1", fixture.agent)])).await;
    assert!(matches!(controller.receive().await, AgentMessage::Ready { run: 1 }));
    controller.start().await;
    // Cores of other hosts are refused, however many they are.
    controller.send(order(6, "0-4294967295", Time::MAX)).await;
    let AgentMessage::Lifted { id: 6, why, .. } = controller.receive().await else { panic!("not refused") };
    assert!(why.contains("this host holds cores"), "{why}");
    controller.send(order(7, "0-1", Time::MAX)).await;
    let AgentMessage::Injected { id: 7, from } = controller.receive().await else { panic!("not begun") };
    // The end is ordered ahead, for the same time on all hosts.
    let at = from + Span::from_millis(500);
    controller.send(ControllerMessage::Lift { id: 7, at, why: "it was enough".to_owned() }).await;
    let AgentMessage::Lifted { id: 7, until, why } = controller.receive().await else { panic!("not lifted") };
    assert_eq!((until, why.as_str()), (at, "it was enough"));
    let soon = until + Span::from_millis(100);
    controller.send(order(8, "0", soon)).await;
    assert!(matches!(controller.receive().await, AgentMessage::Injected { id: 8, .. }));
    let AgentMessage::Lifted { id: 8, until, why } = controller.receive().await else { panic!("not lifted") };
    assert_eq!((until, why.as_str()), (soon, "its time was over"));
    // The end of the run is reported as the end of the injection, before the final report.
    controller.send(order(9, "0", Time::MAX)).await;
    assert!(matches!(controller.receive().await, AgentMessage::Injected { id: 9, .. }));
    controller.send(ControllerMessage::Stop).await;
    assert!(matches!(controller.receive().await, AgentMessage::Lifted { id: 9, .. }));
    assert!(matches!(controller.receive().await, AgentMessage::FinalReport(_)));
    controller.run(&fixture, 2).await;
}
