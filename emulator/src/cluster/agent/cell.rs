//! A host's part in a unit: its shard, and links to the other hosts.

use std::cell::{Cell, RefCell};
use std::cmp::Ordering;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::{JoinSet, spawn_blocking};
use tokio::time::timeout;
use volary_actors::base::{ActorId, Time};

use super::context::{CellContext, QUEUE, QuicIo};
use super::injectable::InjectableCell;
use super::state::AgentState;
use super::tasks::TaskGroup;
use crate::cluster::check::{sensible, timely};
use crate::cluster::net::link::LinkEvent;
use crate::cluster::net::{Arrival, Connection, Link};
use crate::cluster::placement::homes;
use crate::cluster::protocol::{AgentMessage, Assignment, FinalReport};
use crate::config::{Experiment, RealSection, id_under};
use crate::parcel::Parcel;
use crate::results::HostVitals;
use crate::runtime::executor::{Burners, RealExecutor, assign_cpus};
use crate::runtime::live::clock::{Clock, MonotonicClock};
use crate::runtime::live::event_loop::run_shard;
use crate::runtime::live::host_stats::HostStats;
use crate::runtime::live::observer::LiveObserver;
use crate::shard::{Placement, Shard};
use crate::storage::input_log::Section;
use crate::workload::Traces;
use volary_engine::finalize::Counters;
use volary_engine::world::World;

/// Time for the links of a run to stand and for clocks to be read.
const SETUP: Duration = Duration::from_secs(20);
const SETUP_PER_HOST: Duration = Duration::from_millis(250);
/// Pings before a run, and the time between two of them.
const PINGS: u32 = 40;
const PING_FAST: Duration = Duration::from_millis(3);
/// Between two pings in mid-run.
const PING_SLOW: Duration = Duration::from_millis(200);
/// Batches of parcels that came and were not looked at yet, at most.
const ARRIVALS: usize = 64;

/// What a host does for one unit.
pub(crate) struct AgentCell<'a> {
    pub(crate) state: &'a Rc<AgentState>,
    pub(crate) context: Rc<CellContext>,
    pub(crate) words: mpsc::Sender<AgentMessage>,
}

impl AgentCell<'_> {
    /// Builds the host's shard, runs it to the end of the unit and says what was measured.
    pub(crate) async fn run(
        &self,
        experiment: Arc<Experiment>,
        traces: Arc<Traces>,
        task: Assignment,
    ) -> Result<Box<FinalReport>, String> {
        let (speed, logged) = (experiment.run.speed, experiment.run.record.inputs);
        let real = experiment.run.burning();
        let world = tokio::select! {
            world = build(experiment, traces, &task) => world?,
            () = self.context.halted() => return Err(self.context.reason()),
        };
        let mut tasks = TaskGroup::default();
        let (connections, bound) = self.prepare(&mut tasks, &task).await?;
        let (homes, world): (Arc<[u16]>, _) = (homes(&world, &task.members).into(), Arc::new(world));
        let links = self.link(&mut tasks, connections, &world, &homes, &task);
        let placement = Placement::new(&homes, task.me, task.members.len() as u16);
        let parts = world.parts(placement).map_err(|error| error.to_string())?;
        let (inputs, carried) = logged.then(Section::carried).unzip();
        let mut shard = Shard::new(parts, LiveObserver { inputs, ..LiveObserver::default() });
        shard.expect_injections();
        tracing::info!("{}", described(&world, &task, &homes, bound));
        let burners = self.burners(real, &world, placement).await?;
        self.wait_to_begin(task.run).await?;
        let stats = HostStats::begin(&task.members[task.me as usize].name);
        let clock = Rc::new(Clock::new(self.state.ticks, 0, speed));
        self.context.adjust(&clock);
        if let (Some((burners, cores)), Some(real)) = (burners, real) {
            let context = Rc::clone(&self.context);
            tasks.assist(&self.context, burners.wake_fd().relay(move || context.inbox.wake()));
            let host = &task.members[task.me as usize].name;
            let table = shard.cores().table();
            let executor = RealExecutor::new(real, host, burners, &cores, Rc::clone(&clock), table);
            shard.set_executor(Box::new(executor));
        }
        tasks.assist(&self.context, keep_time(Rc::clone(&self.context), Rc::clone(&clock)));
        let (context, words) = (Rc::clone(&self.context), self.words.clone());
        let mut io = QuicIo::new(context, links, words, carried, self.state.events);
        let shown = self.state.show(self.injectable(&task, &world, &homes, &clock));
        let driven = run_shard(&mut shard, &clock, &self.context.inbox, &mut io).await;
        self.finish(driven, shard, io, stats, &shown.injectable).await
    }

    /// The unit as injectors meet it.
    fn injectable(
        &self,
        task: &Assignment,
        world: &Arc<World>,
        homes: &[u16],
        clock: &Rc<Clock>,
    ) -> InjectableCell {
        let layout = world.layout();
        let home = |core: u32| homes[layout.endpoint(layout.worker_of_core(core)).index()];
        InjectableCell {
            run: task.run,
            cell: task.id.clone(),
            world: Arc::clone(world),
            held: (0..layout.workers()).filter(|&core| home(core) == task.me).collect(),
            clock: Rc::clone(clock),
            context: Rc::clone(&self.context),
            words: self.words.clone(),
            active: RefCell::default(),
            count: Cell::default(),
        }
    }

    /// Calibrated burners for this host's cores, and the cores; none if copies are timed.
    async fn burners(
        &self,
        real: Option<RealSection>,
        world: &World,
        placement: Placement<'_>,
    ) -> Result<Option<(Burners, Vec<u32>)>, String> {
        let Some(real) = real else { return Ok(None) };
        let layout = world.layout();
        let mine = |core: &u32| placement.owns(layout.node(layout.node_of_core(*core)).index());
        let cores: Vec<u32> = (0..layout.workers()).filter(mine).collect();
        let cpus = assign_cpus(&real, cores.len(), &self.state.cpus)?;
        // Calibration takes seconds, during which the network must answer.
        let start = spawn_blocking(move || Burners::start(real.kernel, &cpus));
        tokio::select! {
            started = start => {
                let burners = started.map_err(|error| error.to_string())?.map_err(|error| error.to_string())?;
                Ok(Some((burners, cores)))
            }
            () = self.context.halted() => Err(self.context.reason()),
        }
    }

    /// Connects to the other hosts and learns the controller's time; returns how wrong that can be, ns.
    async fn prepare(
        &self,
        tasks: &mut TaskGroup,
        task: &Assignment,
    ) -> Result<(Vec<Option<Connection>>, i64), String> {
        tasks.assist(&self.context, deaf(Rc::clone(&self.context), self.words.clone()));
        tasks.assist(&self.context, ping(Rc::clone(&self.context), self.words.clone(), self.state.ticks));
        let ready = async {
            let connections = self.connections(task).await?;
            let bound = self.context.known(PINGS).await;
            Ok((connections, bound))
        };
        tokio::select! {
            ready = timeout(SETUP + SETUP_PER_HOST * task.members.len() as u32, ready) => {
                ready.map_err(|_| "links to the other hosts did not come about in time: are their ports open to each other?".to_owned())?
            }
            () = self.context.halted() => Err(self.context.reason()),
        }
    }

    /// Begins to exchange parcels with the other hosts; what comes is looked at first.
    fn link(
        &self,
        tasks: &mut TaskGroup,
        connections: Vec<Option<Connection>>,
        world: &Arc<World>,
        homes: &Arc<[u16]>,
        task: &Assignment,
    ) -> Vec<Option<Link>> {
        let (came, arrivals) = mpsc::channel(ARRIVALS);
        let names = task.members.iter().map(|member| member.name.clone()).collect();
        tasks.assist(&self.context, receive(arrivals, names, Rc::clone(&self.context), self.words.clone()));
        let start = |(from, connection): (usize, Option<Connection>)| {
            let (world, homes, me, host) = (Arc::clone(world), Arc::clone(homes), task.me, from as u16);
            let now = Arc::clone(&self.context.now);
            let check = move |parcel: &Parcel| {
                timely(Time(now.load(Relaxed)), parcel) && sensible(&world, &homes, me, host, parcel)
            };
            Some(Link::start(&connection?, QUEUE, from, check, came.clone()))
        };
        connections.into_iter().enumerate().map(start).collect()
    }

    /// Sends what is still to be said of the unit, and tells how it went.
    async fn finish(
        &self,
        driven: io::Result<()>,
        mut shard: Shard<'_, LiveObserver>,
        mut io: QuicIo,
        stats: HostStats,
        injectable: &InjectableCell,
    ) -> Result<Box<FinalReport>, String> {
        self.context.settle();
        let datagrams = io.links();
        io.close();
        // Whatever became of it, what was logged is worth having; the log ends when nobody can add to it.
        shard.observer.inputs = None;
        let rest = std::iter::from_fn(|| io.rest()).chain(injectable.close(injectable.clock.now()));
        for word in rest {
            self.words.send(word).await.map_err(|_| "the controller is gone".to_owned())?;
        }
        driven.map_err(|error| error.to_string())?;
        self.context.sound()?;
        tracing::info!("over after {:.3} s: {} events", stats.elapsed_s(), shard.events());
        Ok(Box::new(FinalReport {
            tally: Counters::of(&shard),
            reading: shard.observer.gauge.reading(),
            vitals: HostVitals {
                parcels_late: shard.observer.gauge.arrivals.len(),
                clock: self.context.clock_error(),
                ..stats.end()
            },
            datagrams,
            cores: shard.take_executor(),
        }))
    }

    /// Says that this host is ready, and returns when all are.
    async fn wait_to_begin(&self, run: u64) -> Result<(), String> {
        self.words
            .send(AgentMessage::Ready { run })
            .await
            .map_err(|_| "the controller is gone".to_owned())?;
        tokio::select! {
            biased;
            () = self.context.begun() => Ok(()),
            () = self.context.halted() => Err(self.context.reason()),
        }
    }

    /// A connection to every other host, all at once: those after us in the list we call, those before us call us.
    async fn connections(&self, task: &Assignment) -> Result<Vec<Option<Connection>>, String> {
        let mut making: JoinSet<Result<_, String>> = JoinSet::new();
        for (i, member) in task.members.iter().enumerate() {
            let (state, member, run) = (Rc::clone(self.state), member.clone(), task.run);
            match i.cmp(&(task.me as usize)) {
                Ordering::Equal => continue,
                Ordering::Less => {
                    making.spawn_local(async move { Ok((i, state.link_from(run, &member.name).await)) })
                }
                Ordering::Greater => {
                    making.spawn_local(async move { Ok((i, state.link_to(run, &member).await?)) })
                }
            };
        }
        let mut connections: Vec<_> = task.members.iter().map(|_| None).collect();
        while let Some(made) = making.join_next().await {
            let (i, connection) = made.map_err(|error| error.to_string())??;
            connections[i] = Some(connection);
        }
        Ok(connections)
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
    let id = id_under(&experiment.points[point], seed, &experiment.run);
    if id != task.id {
        return Err(format!(
            "this host has {id} for what the controller calls {}: other versions of volary?",
            task.id
        ));
    }
    let build = move || World::build(&experiment.points[point], seed, traces.as_ref());
    let built = spawn_blocking(build).await;
    built.map_err(|error| error.to_string())?.map_err(|error| error.to_string())
}

/// Ends the unit when nobody takes its words to the controller any more.
async fn deaf(context: Rc<CellContext>, words: mpsc::Sender<AgentMessage>) {
    words.closed().await;
    context.halt();
}

/// Asks the controller for the time: often at first, then now and then.
async fn ping(context: Rc<CellContext>, words: mpsc::Sender<AgentMessage>, ticks: MonotonicClock) {
    let mut count = 0;
    loop {
        // A queue before the controller would make the answer worthless.
        if let Ok(room) = words.try_reserve() {
            room.send(AgentMessage::Ping { sent: ticks.now() });
        }
        count += 1;
        tokio::time::sleep(if count < PINGS { PING_FAST } else { PING_SLOW }).await;
        if context.stop.get() {
            return;
        }
    }
}

async fn keep_time(context: Rc<CellContext>, clock: Rc<Clock>) {
    loop {
        tokio::time::sleep(PING_SLOW).await;
        context.adjust(&clock);
    }
}

/// Takes in what other hosts send.
async fn receive(
    mut arrivals: mpsc::Receiver<Arrival>,
    names: Vec<String>,
    context: Rc<CellContext>,
    words: mpsc::Sender<AgentMessage>,
) {
    while let Some(Arrival { link, event }) = arrivals.recv().await {
        match event {
            LinkEvent::Parcels(parcels) => {
                // Until there is room nothing more is read, and the senders wait.
                context.inbox.room().await;
                context.inbox.put(parcels);
            }
            LinkEvent::Ended(end) if !context.stop.get() => {
                // Nobody to tell if the controller is gone too.
                let _ =
                    words.send(AgentMessage::Lost { peer: names[link].clone(), why: end.to_string() }).await;
            }
            LinkEvent::Ended(_) => {}
        }
    }
}
