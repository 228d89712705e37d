//! One side is real and the test plays the others: agents against controllers and hosts that fail, stall or lie.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

mod common;

use std::net::SocketAddr;
use std::thread;

use common::net::{Net, within};
use common::worlds;
use tokio::sync::mpsc;
use volary::cluster::agent::RunLog;
use volary::cluster::agent::{Agent, Settings};
use volary::cluster::inject::words::{Dose, Reply, Request, Scene};
use volary::cluster::net::link::LinkEvent;
use volary::cluster::net::{Arrival, Connection, Control, End, Link, Options, Transport};
use volary::cluster::protocol::{
    AgentMessage, Assignment, ControllerMessage, FIRST_FRAME, InjectionNotice, LinkPurpose, Member,
};
use volary::codec::{LARGEST_FRAME, PARCEL_FRAME};
use volary::config::{Experiment, Overrides, id_under};
use volary::parcel::Parcel;
use volary::runtime::live::clock::MonotonicClock;
use volary_actors::base::{Class, JobId, Span, Time};
use volary_actors::message::Probe;

/// One scheduler, which lives on the second of two hosts.
const SPARROW: &str = "[network]\none_way = \"5ms\"\n[[policy]]\nsparrow = {}\n";

/// Events that may wait at the agent.
const EVENTS: usize = 1000;

/// A real agent, h1, on a thread of its own.
struct Stage {
    net: Net,
    experiment: Experiment,
    agent: SocketAddr,
}

impl Stage {
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
            log: RunLog::default(),
            ticks: MonotonicClock::new(),
        };
        let agent = Agent::new(&settings).unwrap();
        let address = agent.address().unwrap();
        // It ends with the test.
        thread::spawn(move || agent.run());
        Self { net, experiment, agent: address }
    }

    /// Somebody with the controller's identity, who has said hello.
    async fn caller(&self) -> Controller {
        let transport = self.net.connector("controller");
        let peer = within(transport.connect("h1", self.agent)).await.unwrap();
        let control = Control::new(&peer.connection, peer.streams, LARGEST_FRAME);
        Controller { transport, connection: peer.connection, control, clock: 0 }
    }

    /// Somebody with the controller's identity, who has come to inject.
    async fn injector(&self) -> Injector {
        let mut caller = self.caller().await;
        caller.say(ControllerMessage::Inject).await;
        Injector { transport: caller.transport, control: caller.control.retype(PARCEL_FRAME) }
    }

    /// The order to load the experiment.
    fn load(&self) -> ControllerMessage {
        let bundle = Box::new(self.experiment.bundle().unwrap());
        ControllerMessage::Load(bundle)
    }

    /// A controller that the agent serves.
    async fn controller(&self) -> Controller {
        let mut controller = self.caller().await;
        controller.say(ControllerMessage::Claim).await;
        controller.say(self.load()).await;
        assert!(matches!(controller.hear().await, AgentMessage::Loaded));
        controller
    }

    /// A unit for the agent among other hosts, by name and address.
    fn unit(&self, run: u64, hosts: &[(&str, SocketAddr)]) -> Assignment {
        let (point, seed) = (&self.experiment.points[0], self.experiment.seed);
        let member = |&(name, address): &(&str, SocketAddr)| {
            let name: &str = name;
            Member { name: name.to_owned(), address, weight: 1.0 }
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

    /// h2 calls the agent for a run.
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
        controller.prepare(self.unit(1, &[("h2", nowhere), ("h1", self.agent)])).await;
        let link = self.call(&h2, 1).await;
        assert!(matches!(controller.hear().await, AgentMessage::Ready { run: 1 }));
        controller.start().await;
        (h2, link)
    }

    /// Parcels that the agent can take, from a node on the first host to the scheduler on the second.
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

/// Somebody who came to inject.
struct Injector {
    transport: Transport,
    control: Control<Request, Reply>,
}

impl Injector {
    async fn asks(&mut self, request: Request) -> Reply {
        within(self.control.send(&request)).await.unwrap();
        within(self.control.receive()).await.unwrap()
    }

    /// Is refused; says whether the question is to blame, and why.
    async fn refused(&mut self, request: Request) -> (bool, String) {
        let Reply::Refused { wrong, why } = self.asks(request).await else { panic!("not refused") };
        (wrong, why)
    }
}

struct Controller {
    transport: Transport,
    connection: Connection,
    control: Control<ControllerMessage, AgentMessage>,
    /// The agent's clock, which is the common one here.
    clock: i64,
}

impl Controller {
    async fn say(&mut self, order: ControllerMessage) {
        within(self.control.send(&order)).await.unwrap();
    }

    /// The next word that is neither a ping nor a report.
    async fn hear(&mut self) -> AgentMessage {
        loop {
            let word = within(self.control.receive()).await.unwrap();
            if let AgentMessage::Ping { sent } = word {
                self.clock = sent;
                self.say(ControllerMessage::Pong { sent, here: sent }).await;
            } else if !matches!(
                word,
                AgentMessage::Notes { .. } | AgentMessage::Log(_) | AgentMessage::Inputs(_)
            ) {
                return word;
            }
        }
    }

    async fn prepare(&mut self, unit: Assignment) {
        self.say(ControllerMessage::Prepare(Box::new(unit))).await;
    }

    async fn start(&mut self) {
        self.say(ControllerMessage::Start { at: self.clock }).await;
        self.say(ControllerMessage::Progress { slowest: Time::ZERO + Span::from_secs(3600) }).await;
    }

    /// Runs the agent alone for a moment.
    async fn run(&mut self, stage: &Stage, run: u64) {
        self.prepare(stage.unit(run, &[("h1", stage.agent)])).await;
        assert!(matches!(self.hear().await, AgentMessage::Ready { run: ready } if ready == run));
        self.start().await;
        // Until something was seen.
        while !matches!(&within(self.control.receive()).await.unwrap(), AgentMessage::Notes { notes, .. } if !notes.is_empty())
        {
        }
        self.say(ControllerMessage::Stop).await;
        let AgentMessage::FinalReport(end) = self.hear().await else { panic!("no last word") };
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

/// Why a link ended.
async fn end(arrivals: &mut mpsc::Receiver<Arrival>) -> End {
    loop {
        if let LinkEvent::Ended(end) = within(arrivals.recv()).await.unwrap().event {
            return end;
        }
    }
}

#[tokio::test]
async fn a_unit_that_panics_says_why_and_the_agent_goes_on() {
    let stage = Stage::new();
    let mut controller = stage.controller().await;
    // A host without weight cannot be placed: no hosts file has one, so the agent asserts that there is none.
    let mut unit = stage.unit(1, &[("h1", stage.agent)]);
    unit.members[0].weight = 0.0;
    controller.prepare(unit).await;
    let AgentMessage::Refused { run: 1, why } = controller.hear().await else { panic!("not refused") };
    assert!(why.contains("a bug in volary") && why.contains("somebody must have room"), "{why}");
    controller.run(&stage, 2).await;
    controller.leave().await;
    stage.controller().await.run(&stage, 1).await;
}

#[tokio::test]
async fn an_experiment_that_cannot_be_planned_is_refused_in_full() {
    let stage = Stage::new();
    let mut controller = stage.caller().await;
    let mut load = stage.load();
    if let ControllerMessage::Load(bundle) = &mut load {
        bundle.files.files.clear();
    }
    controller.say(ControllerMessage::Claim).await;
    controller.say(load).await;
    let AgentMessage::Refused { run: 0, why } = controller.hear().await else { panic!("not refused") };
    assert!(why.contains("e.toml"), "{why}");
    controller.leave().await;
    stage.controller().await.run(&stage, 1).await;
}

/// Nobody makes an agent take in an experiment that it does not serve.
#[tokio::test]
async fn only_who_has_claimed_an_agent_says_more_than_a_word() {
    let stage = Stage::new();
    let mut rash = stage.caller().await;
    rash.say(stage.load()).await;
    let end = within(rash.connection.ended()).await.to_string();
    assert!(end.contains("where 64 are the most"), "{end}");
    let mut first = stage.controller().await;
    let mut second = stage.caller().await;
    second.say(ControllerMessage::Claim).await;
    let AgentMessage::Refused { run: 0, why } = second.hear().await else { panic!("not refused") };
    assert!(why.contains("busy with a run of the controller"), "{why}");
    first.run(&stage, 1).await;
    first.leave().await;
    // One that claims it and then brings something else is sent away, and the next is served.
    let mut vague = stage.caller().await;
    vague.say(ControllerMessage::Claim).await;
    vague.say(ControllerMessage::Stop).await;
    let end = within(vague.connection.ended()).await.to_string();
    assert!(end.contains("brings no experiment"), "{end}");
    stage.controller().await.run(&stage, 2).await;
}

#[tokio::test]
async fn a_run_that_is_over_ends_its_links() {
    let stage = Stage::new();
    let mut controller = stage.controller().await;
    // Called by the test.
    let (_h2, connection) = stage.two(&mut controller).await;
    controller.say(ControllerMessage::Stop).await;
    assert!(matches!(controller.hear().await, AgentMessage::FinalReport(_)));
    assert_eq!(within(connection.ended()).await, End::Done);
    // Calling the test.
    let (h2, mut accepted) = stage.net.listen("h2", &Options::default());
    controller.prepare(stage.unit(2, &[("h1", stage.agent), ("h2", h2.address().unwrap())])).await;
    let peer = within(accepted.next()).await.unwrap();
    assert!(matches!(controller.hear().await, AgentMessage::Ready { run: 2 }));
    controller.start().await;
    controller.say(ControllerMessage::Stop).await;
    assert!(matches!(controller.hear().await, AgentMessage::FinalReport(_)));
    assert_eq!(within(peer.connection.ended()).await, End::Done);
}

#[tokio::test]
async fn links_that_nobody_wants_any_more_are_dropped() {
    let stage = Stage::new();
    let mut controller = stage.controller().await;
    let h2 = stage.net.connector("h2");
    let (first, second) = (stage.call(&h2, 5).await, stage.call(&h2, 6).await);
    // A host has one link that waits: it has given up what it called for before.
    within(first.ended()).await;
    controller.run(&stage, 7).await;
    within(second.ended()).await;
    let late = stage.call(&h2, 7).await;
    let end = within(late.ended()).await;
    assert!(end.to_string().contains("that run is over here"), "{end}");
    let third = stage.call(&h2, 8).await;
    controller.leave().await;
    within(third.ended()).await;
}

#[tokio::test]
async fn a_host_that_says_hello_and_no_more_is_sent_away() {
    let stage = Stage::new();
    let controller = stage.controller().await;
    let h2 = stage.net.connector("h2");
    let silent = within(h2.connect("h1", stage.agent)).await.unwrap();
    let end = within(silent.connection.ended()).await;
    assert!(end.to_string().contains("no word within 5 s"), "{end}");
    controller.leave().await;
}

#[tokio::test]
async fn a_parcel_from_the_far_future_ends_its_link() {
    let stage = Stage::new();
    let mut controller = stage.controller().await;
    let (_h2, connection) = stage.two(&mut controller).await;
    let (link, mut arrivals) = link(&connection);
    // A message may take long, but clocks are not years apart.
    let late = |_| Time(u64::MAX / 2);
    link.send(&stage.parcels(late, 10), Class::Stream).unwrap();
    let sent = |parcel| Parcel { sent: late(0), ..parcel };
    let wrong: Vec<_> = stage.parcels(late, 1).into_iter().map(sent).collect();
    link.send(&wrong, Class::Stream).unwrap();
    let end = end(&mut arrivals).await;
    assert!(end.to_string().contains("a parcel that cannot be"), "{end}");
    let AgentMessage::Lost { peer, why } = controller.hear().await else { panic!("nobody is told") };
    assert!(peer == "h2" && why.contains("a parcel that cannot be"), "{peer}: {why}");
}

#[tokio::test]
async fn a_host_that_sends_too_much_ends_the_run_and_not_the_agent() {
    let stage = Stage::new();
    let mut controller = stage.controller().await;
    let (_h2, connection) = stage.two(&mut controller).await;
    let (link, _arrivals) = link(&connection);
    let parcels = stage.parcels(|i| Time::ZERO + Span::from_secs(60 + u64::from(i)), 2 * EVENTS as u32);
    link.send(&parcels, Class::Stream).unwrap();
    let AgentMessage::Refused { run: 1, why } = controller.hear().await else { panic!("not refused") };
    assert!(why.contains("more than 1000 events wait here"), "{why}");
    controller.run(&stage, 2).await;
}

/// Slows every core down, all the time.
fn dose(run: u64, cores: &str) -> Request {
    let notice = InjectionNotice {
        id: 7,
        profile: "bernoulli = { slot = \"1s\", probability = 1.0, slowdown = 2.0 }".to_owned(),
        seed: 3,
        targets: Vec::new(),
        cores: cores.parse().unwrap(),
        from: Time::ZERO,
        until: Time::MAX,
    };
    Request::Begin(Box::new(Dose { run, notice }))
}

#[tokio::test]
async fn an_injector_is_answered_and_nothing_outlives_it() {
    let stage = Stage::new();
    let mut injector = stage.injector().await;
    assert_eq!(injector.asks(Request::Scene).await, Reply::Scene(Scene::Idle));
    let mut controller = stage.controller().await;
    assert_eq!(injector.asks(Request::Scene).await, Reply::Scene(Scene::Between));
    assert_eq!(
        injector.refused(dose(1, "0")).await,
        (false, "the cell was over before this came".to_owned())
    );
    controller.prepare(stage.unit(1, &[("h1", stage.agent)])).await;
    assert!(matches!(controller.hear().await, AgentMessage::Ready { run: 1 }));
    controller.start().await;
    let running = loop {
        let Reply::Scene(scene) = injector.asks(Request::Scene).await else { panic!("no scene") };
        match scene {
            Scene::Runs(running) => break running,
            Scene::Between => {}
            Scene::Idle => panic!("it serves a controller"),
        }
    };
    assert_eq!((running.run, running.policy.as_str()), (1, "sparrow"));
    let aim = |targets: &[&str]| Request::Aim {
        run: 1,
        targets: targets.iter().map(|t| (*t).to_owned()).collect(),
    };
    let Reply::Aimed(aimed) = injector.asks(aim(&["node:1"])).await else { panic!("not aimed") };
    assert_eq!((aimed.cores.to_string(), aimed.held.contains(1)), ("1".to_owned(), true));
    let (wrong, why) = injector.refused(aim(&["scheduler:0"])).await;
    assert!(wrong && why.contains("names no node"), "{why}");
    // What is not its own it does not touch, however many there are said to be.
    let (wrong, why) = injector.refused(dose(1, "0-4294967295")).await;
    assert!(wrong && why.contains("this host holds cores"), "{why}");
    assert!(matches!(injector.asks(dose(1, "0-1")).await, Reply::Begun { .. }));
    let AgentMessage::Injected(notice) = controller.hear().await else {
        panic!("the controller is not told")
    };
    assert_eq!((notice.id, notice.cores.to_string().as_str()), (7, "0-1"));
    // Another may as well, and each takes only its own along.
    let mut second = stage.injector().await;
    let (wrong, why) = second.refused(dose(1, "0")).await;
    assert!(wrong && why.contains("injected already"), "{why}");
    injector.transport.close("the test is done").await;
    let AgentMessage::Lifted { id: 7, until, why } = controller.hear().await else {
        panic!("it is not lifted")
    };
    assert!(until >= notice.from && why.contains("whoever injected it is gone"), "{until}: {why}");
    assert!(matches!(second.asks(dose(1, "0")).await, Reply::Begun { .. }));
    assert!(matches!(controller.hear().await, AgentMessage::Injected(_)));
    // The end of the unit is the end of it, and comes before the last word.
    controller.say(ControllerMessage::Stop).await;
    assert!(matches!(controller.hear().await, AgentMessage::Lifted { id: 7, .. }));
    assert!(matches!(controller.hear().await, AgentMessage::FinalReport(_)));
    let over = within(second.control.receive()).await.unwrap();
    assert!(matches!(&over, Reply::Over { why, .. } if why == "the cell was over"), "{over:?}");
    controller.run(&stage, 2).await;
}
