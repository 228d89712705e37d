//! What an agent does for a controller: plans its experiment and runs its units.

use std::cmp::Ordering;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::{JoinHandle, JoinSet, spawn_blocking, spawn_local};
use tokio::time::timeout;
use volary_actors::base::{ActorId, Time};

use super::caught::caught;
use super::desk::{Desk, Office, QUEUE, WORDS};
use super::held::homes;
use super::house::{FAREWELL, House};
use super::log::RunLog;
use super::protocol::{Account, Assignment, Order, Word};
use super::sense::{sensible, timely};
use crate::fidelity::vitals::HostVitals;
use crate::parcel::Parcel;
use crate::record::inputs::Section;
use crate::runtime::closing::Tally;
use crate::runtime::real::clock::Clock;
use crate::runtime::real::drive::drive;
use crate::runtime::real::ticks::Ticks;
use crate::runtime::real::vitals::Vitals;
use crate::runtime::real::watcher::Watcher;
use crate::runtime::world::World;
use crate::shard::{Placement, Shard};
use crate::spec::{Bundle, Experiment};
use crate::transport::control::{Incoming, Outgoing};
use crate::transport::link::What;
use crate::transport::{Arrival, Connection, Control, Link};
use crate::workload::Traces;

/// Time for the links of a run to stand and for clocks to be read.
const SETUP: Duration = Duration::from_secs(20);
const SETUP_PER_HOST: Duration = Duration::from_millis(250);
/// Pings before a run, and the time between two of them.
const PINGS: u32 = 40;
const PING_FAST: Duration = Duration::from_millis(3);
/// Batches of parcels that came and were not looked at yet, at most.
const ARRIVALS: usize = 64;
/// Between two pings in mid-run.
const PING_SLOW: Duration = Duration::from_millis(200);

/// Between two looks at what was logged.
const LOG_EVERY: Duration = Duration::from_millis(100);

/// Tasks that end with whoever spawned them. If one panics, what they all work at is over.
#[derive(Default)]
struct Crew(Vec<JoinHandle<()>>);

impl Crew {
    /// A task of a session: who speaks with it notices when it is gone.
    fn add(&mut self, task: impl Future<Output = ()> + 'static) {
        self.0.push(spawn_local(async {
            if let Err(bug) = caught(task).await {
                tracing::error!("{bug}");
            }
        }));
    }

    /// A task of a unit.
    fn assist(&mut self, desk: &Rc<Desk>, task: impl Future<Output = ()> + 'static) {
        let desk = Rc::clone(desk);
        self.0.push(spawn_local(async move {
            if let Err(bug) = caught(task).await {
                desk.fail(bug);
            }
        }));
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        self.0.iter().for_each(JoinHandle::abort);
    }
}

/// Serves a controller, which came with an experiment, until it goes.
pub(super) async fn session(
    house: &Rc<House>,
    control: Control<Word, Order>,
    bundle: Bundle,
) -> Result<(), String> {
    let Control { outgoing: sender, incoming: receiver } = control;
    let (words, outgoing) = mpsc::channel(WORDS);
    let (order, mut orders) = mpsc::channel(4);
    let mut crew = Crew::default();
    crew.add(write(sender, outgoing));
    crew.add(read(receiver, order, house.ticks));
    crew.add(tell(house.log.clone(), words.clone()));
    let planned = tokio::select! {
        planned = plan(bundle) => planned,
        // The planning ends by itself, for nobody; the seat is free at once.
        _ = orders.recv() => return Err("it did not wait until the experiment was planned".to_owned()),
    };
    let experiment = match planned {
        Ok(experiment) => Arc::new(experiment),
        Err(why) => {
            let _ = words.send(Word::Refused { run: 0, why: why.clone() }).await;
            // It hangs up when it has heard.
            let _ = timeout(FAREWELL, orders.recv()).await;
            return Err(why);
        }
    };
    // What one unit reads the next need not.
    let traces = Arc::new(experiment.traces());
    let mut word = Word::Loaded;
    loop {
        // What led to it comes first.
        if let Some(text) = house.log.take() {
            let _ = words.send(Word::Log(text)).await;
        }
        if words.send(word).await.is_err() {
            return Err("the controller does not listen any more".to_owned());
        }
        let Some((assignment, desk)) = orders.recv().await else { return Ok(()) };
        let (unit, run) = (Unit { house, desk, words: words.clone() }, assignment.run);
        house.begin(run);
        let ran = caught(unit.run(Arc::clone(&experiment), Arc::clone(&traces), assignment)).await;
        house.begin(run.saturating_add(1));
        word = match ran {
            Ok(Ok(account)) => Word::Account(account),
            Ok(Err(why)) => {
                tracing::info!("a run ends early: {why}");
                Word::Refused { run, why }
            }
            Err(bug) => {
                tracing::error!("{bug}");
                Word::Refused { run, why: bug }
            }
        };
    }
}

/// Sends on what is logged.
async fn tell(log: RunLog, words: mpsc::Sender<Word>) {
    loop {
        log.filled().await;
        if let Some(text) = log.take() {
            let _ = words.send(Word::Log(text)).await;
        }
        tokio::time::sleep(LOG_EVERY).await;
    }
}

async fn write(mut sender: Outgoing<Word>, mut outgoing: mpsc::Receiver<Word>) {
    while let Some(word) = outgoing.recv().await {
        if let Err(error) = sender.send(&word).await {
            tracing::warn!("the controller cannot be reached: {error}");
            return;
        }
    }
}

/// The desk of the latest unit. When another comes, or nobody listens to the controller, it is over.
struct Latest(Rc<Desk>);

impl Drop for Latest {
    fn drop(&mut self) {
        self.0.halt();
    }
}

/// Hands on what the controller says. When it is gone, so is what it started.
async fn read(mut receiver: Incoming<Order>, units: mpsc::Sender<(Assignment, Rc<Desk>)>, ticks: Ticks) {
    let mut latest = Latest(Rc::new(Desk::new(ticks)));
    loop {
        let desk = &latest.0;
        match receiver.receive().await {
            Ok(Order::Pong { sent, here }) => desk.pong(sent, here),
            Ok(Order::Progress { slowest }) => desk.slowest.set(slowest),
            Ok(Order::Start { at }) => desk.begin(at),
            Ok(Order::Stop) => desk.halt(),
            Ok(Order::Prepare(assignment)) => {
                latest = Latest(Rc::new(Desk::new(ticks)));
                if units.send((*assignment, Rc::clone(&latest.0))).await.is_err() {
                    return;
                }
            }
            // Said once, at the beginning.
            Ok(Order::Load { .. } | Order::Status) => {}
            Err(error) => return tracing::info!("the controller has gone: {error}"),
        }
    }
}

async fn plan(bundle: Bundle) -> Result<Experiment, String> {
    let planned = spawn_blocking(move || Experiment::from_bundle(&bundle)).await;
    planned.map_err(|error| error.to_string())?.map_err(|error| error.to_string())
}

/// One unit on this host.
struct Unit<'a> {
    house: &'a Rc<House>,
    desk: Rc<Desk>,
    words: mpsc::Sender<Word>,
}

impl Unit<'_> {
    async fn run(
        &self,
        experiment: Arc<Experiment>,
        traces: Arc<Traces>,
        task: Assignment,
    ) -> Result<Box<Account>, String> {
        let (speed, logged) = (experiment.run.speed, experiment.run.record.inputs);
        let world = tokio::select! {
            world = build(experiment, traces, &task) => world?,
            () = self.desk.halted() => return Err(self.desk.reason()),
        };
        let mut crew = Crew::default();
        crew.assist(&self.desk, deaf(Rc::clone(&self.desk), self.words.clone()));
        crew.assist(&self.desk, ping(Rc::clone(&self.desk), self.words.clone(), self.house.ticks));
        let ready = async {
            let links = self.links(&task).await?;
            let bound = self.desk.known(PINGS).await;
            Ok::<_, String>((links, bound))
        };
        let (links, bound) = tokio::select! {
            ready = timeout(SETUP + SETUP_PER_HOST * task.members.len() as u32, ready) => {
                ready.map_err(|_| "links to the other hosts did not come about in time: are their ports open to each other?".to_owned())??
            }
            () = self.desk.halted() => return Err(self.desk.reason()),
        };
        let homes: Arc<[u16]> = homes(&world, &task.members).into();
        let world = Arc::new(world);
        let (came, arrivals) = mpsc::channel(ARRIVALS);
        let start = |(from, connection): (usize, Option<Connection>)| {
            let (world, homes, me, host) = (Arc::clone(&world), Arc::clone(&homes), task.me, from as u16);
            let now = Arc::clone(&self.desk.now);
            let check = move |parcel: &Parcel| {
                timely(Time(now.load(Relaxed)), parcel) && sensible(&world, &homes, me, host, parcel)
            };
            Some(Link::start(&connection?, QUEUE, from, check, came.clone()))
        };
        let links = links.into_iter().enumerate().map(start).collect();
        let names = task.members.iter().map(|member| member.name.clone()).collect();
        crew.assist(&self.desk, receive(arrivals, names, Rc::clone(&self.desk), self.words.clone()));
        let placement = Placement::new(&homes, task.me, task.members.len() as u16);
        let parts = world.parts(placement).map_err(|error| error.to_string())?;
        let (inputs, carried) = logged.then(Section::carried).unzip();
        let mut shard = Shard::new(parts, Watcher { inputs, ..Watcher::default() });
        tracing::info!("{}", described(&world, &task, &homes, bound));
        self.wait_to_begin(task.run).await?;
        let vitals = Vitals::begin(&task.members[task.me as usize].name);
        let clock = Rc::new(Clock::new(self.house.ticks, 0, speed));
        self.desk.adjust(&clock);
        crew.assist(&self.desk, keep_time(Rc::clone(&self.desk), Rc::clone(&clock)));
        let (desk, words) = (Rc::clone(&self.desk), self.words.clone());
        let mut office = Office::new(desk, links, words, carried, self.house.events);
        let driven = drive(&mut shard, &clock, &self.desk.inbox, &mut office).await;
        let datagrams = office.links();
        office.close();
        // Whatever became of it, what was logged is worth having; the log ends when nobody can add to it.
        shard.observer.inputs = None;
        while let Some(rest) = office.rest() {
            self.words.send(rest).await.map_err(|_| "the controller is gone".to_owned())?;
        }
        driven.map_err(|error| error.to_string())?;
        self.desk.sound()?;
        tracing::info!("over after {:.3} s: {} events", vitals.elapsed_s(), shard.events());
        Ok(Box::new(Account {
            tally: Tally::of(&shard),
            reading: shard.observer.gauge.reading(),
            vitals: HostVitals {
                parcels_late: shard.observer.gauge.arrivals.len(),
                clock: self.desk.clock_error(),
                ..vitals.end()
            },
            datagrams,
        }))
    }

    /// Says that this host is ready, and returns when all are.
    async fn wait_to_begin(&self, run: u64) -> Result<(), String> {
        self.words.send(Word::Ready { run }).await.map_err(|_| "the controller is gone".to_owned())?;
        tokio::select! {
            biased;
            () = self.desk.begun() => Ok(()),
            () = self.desk.halted() => Err(self.desk.reason()),
        }
    }

    /// A connection to every other host, all at once: those after us in the list we call, those before us call us.
    async fn links(&self, task: &Assignment) -> Result<Vec<Option<Connection>>, String> {
        let mut making: JoinSet<Result<_, String>> = JoinSet::new();
        for (i, member) in task.members.iter().enumerate() {
            let (house, member, run) = (Rc::clone(self.house), member.clone(), task.run);
            match i.cmp(&(task.me as usize)) {
                Ordering::Equal => continue,
                Ordering::Less => {
                    making.spawn_local(async move { Ok((i, house.link_from(run, &member.name).await)) })
                }
                Ordering::Greater => {
                    making.spawn_local(async move { Ok((i, house.link_to(run, &member).await?)) })
                }
            };
        }
        let mut links: Vec<_> = task.members.iter().map(|_| None).collect();
        while let Some(made) = making.join_next().await {
            let (i, link) = made.map_err(|error| error.to_string())??;
            links[i] = Some(link);
        }
        Ok(links)
    }
}

/// What this host takes part in, for its log.
fn described(world: &World, task: &Assignment, homes: &[u16], bound: i64) -> String {
    let layout = world.layout();
    let here = |actor: ActorId| homes[layout.endpoint(actor).index()] == task.me;
    let nodes = (0..layout.nodes()).filter(|&node| here(layout.node(node))).count();
    let schedulers = (0..layout.schedulers()).filter(|&i| here(layout.scheduler(i))).count();
    format!(
        "cell {}: {} with seed {}, shard {} of {}: {nodes} nodes and {schedulers} schedulers; the clock is known to {:.1} µs",
        task.id,
        world.point().label,
        task.seed,
        task.me,
        task.members.len(),
        bound as f64 * 1e-3,
    )
}

/// Builds this host's part of the world, the same as the controller's.
async fn build(experiment: Arc<Experiment>, traces: Arc<Traces>, task: &Assignment) -> Result<World, String> {
    let (point, seed) = (task.point as usize, task.seed);
    if point >= experiment.points.len() || task.me as usize >= task.members.len() {
        return Err("the assignment names a point or a host that does not exist".to_owned());
    }
    let id = experiment.points[point].id_under(seed, &experiment.run);
    if id != task.id {
        return Err(format!(
            "this host has {id} for what the controller calls {}: other versions of volary?",
            task.id
        ));
    }
    let build = move || World::of(&experiment, point, seed, &traces);
    let built = spawn_blocking(build).await;
    built.map_err(|error| error.to_string())?.map_err(|error| error.to_string())
}

/// Ends the unit when nobody takes its words to the controller any more.
async fn deaf(desk: Rc<Desk>, words: mpsc::Sender<Word>) {
    words.closed().await;
    desk.halt();
}

/// Asks the controller for the time: often at first, then now and then.
async fn ping(desk: Rc<Desk>, words: mpsc::Sender<Word>, ticks: Ticks) {
    let mut count = 0;
    loop {
        // A queue before the controller would make the answer worthless.
        if let Ok(room) = words.try_reserve() {
            room.send(Word::Ping { sent: ticks.now() });
        }
        count += 1;
        tokio::time::sleep(if count < PINGS { PING_FAST } else { PING_SLOW }).await;
        if desk.stop.get() {
            return;
        }
    }
}

async fn keep_time(desk: Rc<Desk>, clock: Rc<Clock>) {
    loop {
        tokio::time::sleep(PING_SLOW).await;
        desk.adjust(&clock);
    }
}

/// Takes in what other hosts send.
async fn receive(
    mut arrivals: mpsc::Receiver<Arrival>,
    names: Vec<String>,
    desk: Rc<Desk>,
    words: mpsc::Sender<Word>,
) {
    while let Some(Arrival { link, what }) = arrivals.recv().await {
        match what {
            What::Parcels(parcels) => {
                // Until there is room nothing more is read, and the senders wait.
                desk.inbox.room().await;
                desk.inbox.put(parcels);
            }
            What::Ended(end) if !desk.stop.get() => {
                // Nobody to tell if the controller is gone too.
                let _ = words.send(Word::Lost { peer: names[link].clone(), why: end.to_string() }).await;
            }
            What::Ended(_) => {}
        }
    }
}
