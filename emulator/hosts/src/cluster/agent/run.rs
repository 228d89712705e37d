//! The part of a run on one host: its shard, and the shard's I/O over the links to the other hosts and the control
//! stream to the controller.

use std::cmp::Ordering;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::{JoinSet, spawn_blocking};
use tokio::time::timeout;
use volary_actors::base::{ActorId, Class, Time};
use volary_actors::message::Message;
use volary_engine::metrics::MessageWindow;
use volary_engine::parcel::{Observation, Parcel};
use volary_engine::results::{HostVitals, cell_name};
use volary_engine::shard::{Parts, Placement, Shard};
use volary_engine::world::finalize::Counters;
use volary_engine::world::{EngineError, World};
use volary_experiment::config::{Experiment, RealSection, id_under};
use volary_experiment::cost;
use volary_experiment::storage::input_log::{Carried, Section};
use volary_experiment::workload::Traces;

use super::injections::ShardInjections;
use super::state::{AgentState, RunContext, TaskGroup};
use crate::awake::Attempt;
use crate::cluster::net::link::{LinkEvent, SendError};
use crate::cluster::net::{Arrival, Connection, Control, Host, Link, Transport};
use crate::cluster::placement::{cores_of, homes};
use crate::cluster::protocol::{
    AgentMessage, Assignment, Datagrams, FIRST_FRAME, FinalReport, LinkPurpose, RunStatus,
};
use crate::executor::{Burners, RealExecutor, assign_cpus};
use crate::real_time::clock::{Clock, MonotonicClock};
use crate::real_time::event_loop::{RealTimeObserver, ShardIo, run_shard};
use crate::real_time::host_stats::{HostStats, ShardSampler};

/// Timeout for setting up links and estimating the clock offset: a constant part, and a part per host.
const SETUP: Duration = Duration::from_secs(30);
const SETUP_PER_HOST: Duration = Duration::from_millis(250);
/// No attempt to open a link begins within this time before the setup timeout. The last attempt then fails before the
/// timeout, with an error that names the host that does not answer.
const LAST_ATTEMPT: Duration = Duration::from_secs(10);
/// Maximum number of nodes plus cores of a cluster. Every host has tables for all of them, 2 GB at this limit.
const MOST_MACHINES: u64 = 4_000_000;
/// Number of pings before a run, and the interval between pings.
const PINGS: u32 = 40;
const FAST_PING_INTERVAL: Duration = Duration::from_millis(3);
/// Interval of pings during a run.
const PING_INTERVAL: Duration = Duration::from_millis(200);
/// Maximum number of batches of parcels that wait between the links and the inbox of the shard.
const ARRIVAL_QUEUE: usize = 64;

/// One host's part of a run.
pub(super) struct HostRun<'a> {
    pub(super) state: &'a Rc<AgentState>,
    pub(super) context: Rc<RunContext>,
    pub(super) messages: mpsc::Sender<AgentMessage>,
}

impl HostRun<'_> {
    /// Builds the shard, runs it until the run is over, and returns the measurements.
    pub(super) async fn run(
        &self,
        experiment: Arc<Experiment>,
        traces: Arc<Traces>,
        task: Assignment,
    ) -> Result<Box<FinalReport>, String> {
        let (speed, logged) = (experiment.run.speed, experiment.run.record.inputs);
        let real = experiment.run.burning();
        let (recording, awake) = (experiment.run.recording(), experiment.run.keeps_awake());
        let name = experiment.name.clone();
        let world = self.unless_stopped(build(experiment, traces, &task)).await?;
        let world = world.with_launcher(Arc::clone(&self.state.settings.programs));
        let point = world.point();
        let jobs = u64::from(world.workload().chains());
        let about = RunStatus::new(&name, &point.label, &cell_name(&point.cell), task.seed, jobs);
        self.context.describe(Some(about));
        self.state.enter(&self.context);
        let mut tasks = TaskGroup::default();
        let (connections, bound) = self.prepare(&mut tasks, &task).await?;
        let (homes, world): (Arc<[u16]>, _) = (homes(&world, &task.members).into(), Arc::new(world));
        let links = self.link(&mut tasks, connections, &world, &homes, &task);
        let placement = Placement::new(&homes, task.me, task.members.len() as u16);
        let parts = world.parts(placement, recording.observes_caches()).map_err(|error| error.to_string())?;
        let parts = Parts { oracle: false, ..parts };
        let (inputs, carried) = logged.then(Section::carried).unzip();
        let inputs = inputs.map(|section: Section| section.with_effects_of(world.asked()));
        let messages = MessageWindow::new(world.layout(), &recording);
        let mut shard =
            Shard::new(parts, RealTimeObserver { inputs, messages, ..RealTimeObserver::default() });
        shard.expect_injections();
        tracing::info!("{}", described(&world, &task, &homes, bound));
        let burners = self.burners(real, &world, &task, &homes).await?;
        self.wait_to_begin(task.run).await?;
        let awake = Attempt::begin(awake);
        let stats = HostStats::begin(&task.members[task.me as usize].name);
        let clock = Rc::new(Clock::new(self.state.settings.ticks, 0, speed));
        self.context.adjust(&clock);
        if let (Some((burners, cores)), Some(real)) = (burners, real) {
            let context = Rc::clone(&self.context);
            tasks.spawn_in(&self.context, burners.wake_fd().relay(move || context.inbox.wake()));
            let host = &task.members[task.me as usize].name;
            let table = shard.cores().table();
            let executor = RealExecutor::new(real, host, burners, &cores, Rc::clone(&clock), table);
            shard.set_executor(Box::new(executor));
        }
        tasks.spawn_in(&self.context, keep_time(Rc::clone(&self.context), Rc::clone(&clock)));
        let (context, messages) = (Rc::clone(&self.context), self.messages.clone());
        let injections = ShardInjections::new(cores_of(&world, &homes, task.me).collect());
        let mut io = QuicIo::new(context, links, messages, carried, self.state.settings.events, injections);
        let driven = run_shard(&mut shard, &clock, &self.context.inbox, &mut io).await;
        self.finish(driven, shard, io, (stats, awake), clock.now()).await
    }

    /// Calibrated burners for this host's cores, and the cores; `None` if copies are timed.
    async fn burners(
        &self,
        real: Option<RealSection>,
        world: &World,
        task: &Assignment,
        homes: &[u16],
    ) -> Result<Option<(Burners, Vec<u32>)>, String> {
        let Some(real) = real else { return Ok(None) };
        let cores: Vec<u32> = cores_of(world, homes, task.me).collect();
        let cpus = assign_cpus(&real, cores.len(), &self.state.settings.cpus)?;
        // Calibration takes seconds, during which the network must answer.
        let start = spawn_blocking(move || Burners::start(real.kernel, &cpus));
        let started = self.unless_stopped(async { start.await.map_err(|error| error.to_string()) }).await?;
        Ok(Some((started.map_err(|error| error.to_string())?, cores)))
    }

    /// Connects to the other hosts and estimates the clock offset. Returns the connections, and the maximum error of
    /// the offset in ns.
    async fn prepare(
        &self,
        tasks: &mut TaskGroup,
        task: &Assignment,
    ) -> Result<(Vec<Option<Connection>>, i64), String> {
        tasks.spawn_in(&self.context, stop_when_closed(Rc::clone(&self.context), self.messages.clone()));
        tasks.spawn_in(
            &self.context,
            ping(Rc::clone(&self.context), self.messages.clone(), self.state.settings.ticks),
        );
        let ready = async {
            let connections = self.connections(task).await?;
            let bound = self.context.clock_known(PINGS).await;
            Ok((connections, bound))
        };
        let ready = timeout(setup_timeout(task), self.unless_stopped(ready)).await;
        let late =
            "links to the other hosts were not established in time: are their ports open to each other?";
        ready.unwrap_or_else(|_| Err(late.to_owned()))
    }

    /// Starts the exchange of parcels with the other hosts. An invalid parcel ends its link.
    fn link(
        &self,
        tasks: &mut TaskGroup,
        connections: Vec<Option<Connection>>,
        world: &Arc<World>,
        homes: &Arc<[u16]>,
        task: &Assignment,
    ) -> Vec<Option<Link>> {
        let (came, arrivals) = mpsc::channel(ARRIVAL_QUEUE);
        let names = task.members.iter().map(|member| member.name.clone()).collect();
        tasks.spawn_in(
            &self.context,
            receive(arrivals, names, Rc::clone(&self.context), self.messages.clone()),
        );
        let start = |(from, connection): (usize, Option<Connection>)| {
            let (world, homes, me, host) = (Arc::clone(world), Arc::clone(homes), task.me, from as u16);
            let check = move |parcel: &Parcel| is_valid_parcel(&world, &homes, me, host, parcel);
            Some(Link::start(&connection?, LINK_QUEUE, from, check, came.clone()))
        };
        connections.into_iter().enumerate().map(start).collect()
    }

    /// Sends the rest of the reports of the run, and returns its measurements.
    async fn finish(
        &self,
        driven: io::Result<()>,
        mut shard: Shard<'_, RealTimeObserver>,
        mut io: QuicIo,
        (stats, awake): (HostStats, Attempt),
        now: Time,
    ) -> Result<Box<FinalReport>, String> {
        let datagrams = io.datagrams();
        io.close();
        // Dropping the writer ends the input log, which is sent even if the run failed.
        shard.observer.inputs = None;
        let lifted = io.injections.close(now);
        for message in std::iter::from_fn(|| io.next_waiting()).chain(lifted) {
            self.messages.send(message).await.map_err(|_| "the controller is gone".to_owned())?;
        }
        driven.map_err(|error| error.to_string())?;
        self.context.check_panic()?;
        tracing::info!("the run ended after {:.3} s: {} events", stats.elapsed_s(), shard.events());
        Ok(Box::new(FinalReport {
            tally: Counters::of(&shard),
            reading: shard.observer.gauge.reading(),
            vitals: HostVitals {
                parcels_late: shard.observer.gauge.arrivals.len(),
                clock: self.context.clock_error(),
                ..awake.end(stats.end())
            },
            datagrams,
            cores: shard.take_executor(),
        }))
    }

    /// Reports that this host is ready, and waits until the start is known.
    async fn wait_to_begin(&self, run: u64) -> Result<(), String> {
        self.messages
            .send(AgentMessage::Ready { run })
            .await
            .map_err(|_| "the controller is gone".to_owned())?;
        let known = async {
            self.context.start_known().await;
            Ok(())
        };
        self.unless_stopped(known).await
    }

    /// The result of `work`, or an error if the run is stopped before.
    async fn unless_stopped<T>(&self, work: impl Future<Output = Result<T, String>>) -> Result<T, String> {
        tokio::select! {
            biased;
            done = work => done,
            () = self.context.until_stopped() => Err(self.context.stop_reason()),
        }
    }

    /// Connections to all other hosts. This host connects to later members, and earlier members connect to this host.
    async fn connections(&self, task: &Assignment) -> Result<Vec<Option<Connection>>, String> {
        let mut making: JoinSet<Result<_, String>> = JoinSet::new();
        let patience = setup_timeout(task).saturating_sub(LAST_ATTEMPT);
        for (i, member) in task.members.iter().enumerate() {
            let (state, member, run) = (Rc::clone(self.state), member.clone(), task.run);
            match i.cmp(&(task.me as usize)) {
                Ordering::Equal => continue,
                Ordering::Less => {
                    making.spawn_local(async move { Ok((i, state.link_from(run, &member.name).await)) })
                }
                Ordering::Greater => making.spawn_local(async move {
                    Ok((i, open_link(&state.transport, run, &member, patience).await?))
                }),
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

/// Timeout of the setup: see [`SETUP`].
fn setup_timeout(task: &Assignment) -> Duration {
    SETUP + SETUP_PER_HOST * task.members.len() as u32
}

/// Opens a link to another host for a run; retries for up to `patience`.
async fn open_link(
    transport: &Transport,
    run: u64,
    member: &Host,
    patience: Duration,
) -> Result<Connection, String> {
    let peer = transport.connect_within(&member.name, member.address, patience).await;
    let peer = peer.map_err(|error| error.to_string())?;
    let mut control = Control::<LinkPurpose, ()>::new(&peer.connection, peer.streams, FIRST_FRAME);
    control.send(&LinkPurpose { run }).await.map_err(|error| error.to_string())?;
    Ok(peer.connection)
}

/// A description of the run for the agent's log.
fn described(world: &World, task: &Assignment, homes: &[u16], bound: i64) -> String {
    let layout = world.layout();
    let here = |actor: ActorId| homes[layout.endpoint(actor).index()] == task.me;
    let nodes = (0..layout.nodes()).filter(|&node| here(layout.node(node))).count();
    let schedulers = (0..layout.schedulers()).filter(|&i| here(layout.scheduler(i))).count();
    let extras = (0..layout.auxiliaries()).filter(|&i| here(layout.auxiliary(i))).count();
    let extras = match extras {
        0 => String::new(),
        count => format!(", {count} {}s", world.point().policy.auxiliary()),
    };
    format!(
        "run {}: {} with seed {}, shard {} of {}: {nodes} nodes and {schedulers} schedulers{extras}; the clock error is at most {:.1} µs",
        task.id,
        world.point().label,
        task.seed,
        task.me,
        task.members.len(),
        bound as f64 * 1e-3,
    )
}

/// Builds the world, after checking by the id of the run that the controller has the same world.
async fn build(experiment: Arc<Experiment>, traces: Arc<Traces>, task: &Assignment) -> Result<World, String> {
    let (point, seed, hosts) = (task.point as usize, task.seed, task.members.len() as u16);
    if point >= experiment.points.len() || task.me as usize >= task.members.len() {
        return Err("the assignment names a point or a host that does not exist".to_owned());
    }
    let cluster = &experiment.points[point].resolved.cluster;
    let (nodes, cores) = (u64::from(cluster.node_count()), cluster.core_count());
    if nodes + cores > MOST_MACHINES {
        return Err(format!(
            "the cluster has {nodes} nodes and {cores} cores, together above the limit of {MOST_MACHINES}: each of \
             them takes about 500 bytes on every host; lower cluster.nodes"
        ));
    }
    let id = id_under(&experiment.points[point], seed, &experiment.run);
    if id != task.id {
        return Err(format!(
            "this host computes the id {id} for the run that the controller calls {}: install the same build of volary on \
            all machines",
            task.id
        ));
    }
    let build = move || {
        let world = World::build(&experiment.points[point], seed, traces.as_ref())?;
        Ok::<_, EngineError>(world.with_clock(cost::thread_cpu_ns).on_hosts(hosts))
    };
    let built = spawn_blocking(build).await;
    built.map_err(|error| error.to_string())?.map_err(|error| error.to_string())
}

/// Ends the run when the task that sends to the controller has ended.
async fn stop_when_closed(context: Rc<RunContext>, messages: mpsc::Sender<AgentMessage>) {
    messages.closed().await;
    context.stop();
}

/// Samples the controller's clock, at short intervals first and at longer intervals later.
async fn ping(context: Rc<RunContext>, messages: mpsc::Sender<AgentMessage>, ticks: MonotonicClock) {
    let mut count = 0;
    loop {
        // A ping that waits in the queue would measure the queue instead of the network.
        if let Ok(place) = messages.try_reserve() {
            place.send(AgentMessage::Ping { sent: ticks.now() });
        }
        count += 1;
        tokio::time::sleep(if count < PINGS { FAST_PING_INTERVAL } else { PING_INTERVAL }).await;
        if context.stopped.get() {
            return;
        }
    }
}

/// Corrects the clock of the run as the estimate of the offset improves.
async fn keep_time(context: Rc<RunContext>, clock: Rc<Clock>) {
    loop {
        tokio::time::sleep(PING_INTERVAL).await;
        context.adjust(&clock);
    }
}

/// Passes on arrivals from other hosts: parcels to the shard, and the end of a link to the controller.
async fn receive(
    mut arrivals: mpsc::Receiver<Arrival>,
    names: Vec<String>,
    context: Rc<RunContext>,
    messages: mpsc::Sender<AgentMessage>,
) {
    while let Some(Arrival { link, event }) = arrivals.recv().await {
        match event {
            LinkEvent::Parcels(parcels) => {
                // While the inbox is full, no link is read, and the senders wait.
                context.inbox.room().await;
                context.inbox.put(parcels);
            }
            LinkEvent::Ended(end) if !context.stopped.get() => {
                // Fails if the controller is gone as well.
                let _ = messages
                    .send(AgentMessage::Lost { peer: names[link].clone(), why: end.to_string() })
                    .await;
            }
            LinkEvent::Ended(_) => {}
        }
    }
}

/// Whether a parcel goes from an actor of `host` to an actor of `me`, and its message refers to existing jobs and
/// nodes. Delays are computed as `due - sent`, so `due` must not be before `sent`.
fn is_valid_parcel(world: &World, homes: &[u16], me: u16, host: u16, parcel: &Parcel) -> bool {
    let layout = world.layout();
    let Parcel { from, to, msg, .. } = parcel;
    if from.0 >= layout.actors() || to.0 >= layout.actors() || parcel.sent > parcel.due {
        return false;
    }
    let home = |actor| homes[layout.endpoint(actor).index()];
    let ends = if parcel.returned { (home(*to), home(*from)) } else { (home(*from), home(*to)) };
    ends == (host, me) && (msg.check(*from, *to, layout, world.workload()) || is_of_program(world, parcel))
}

/// Whether a message belongs to the policy's external program, and goes from one actor that the program controls to
/// another. The fields of the message are checked where they are read.
fn is_of_program(world: &World, parcel: &Parcel) -> bool {
    let Parcel { from, to, msg: Message::Custom(custom), .. } = parcel else { return false };
    let asked = world.asked();
    custom.is_of_program() && from != to && asked.contains(&from.0) && asked.contains(&to.0)
}

/// Number of messages that may wait for the controller; a shard with more to report waits.
pub(super) const SEND_QUEUE: usize = 64;
/// Maximum number of bytes that wait for another host; the shard waits from half of this number on.
const LINK_QUEUE: usize = 8 << 20;
/// Number of frames of logged inputs that may wait; if there are more, the shard waits.
const INPUT_QUEUE: usize = 64;

/// The [`ShardIo`] of a shard on an agent.
struct QuicIo {
    context: Rc<RunContext>,
    /// Links to the other hosts, by shard; `None` for this host.
    links: Vec<Option<Link>>,
    messages: mpsc::Sender<AgentMessage>,
    /// Observations that have not yet been queued as messages.
    waiting: Vec<Observation>,
    /// Logged inputs on their way to the controller, if inputs are logged.
    inputs: Option<Carried>,
    /// The emulated time that this shard has reached.
    progress: Time,
    /// Maximum number of waiting events.
    max_events: usize,
    sampler: ShardSampler,
    pub(super) injections: ShardInjections,
}

impl QuicIo {
    pub(super) fn new(
        context: Rc<RunContext>,
        links: Vec<Option<Link>>,
        messages: mpsc::Sender<AgentMessage>,
        inputs: Option<Carried>,
        max_events: usize,
        injections: ShardInjections,
    ) -> Self {
        let (waiting, progress, sampler) = (Vec::new(), Time::ZERO, ShardSampler::new(true));
        Self { context, links, messages, waiting, inputs, progress, max_events, sampler, injections }
    }

    /// The next message that is waiting for room in the queue: observations first, then logged inputs.
    fn next_waiting(&mut self) -> Option<AgentMessage> {
        let notes = std::mem::take(&mut self.waiting);
        match notes.last() {
            Some(last) => Some(AgentMessage::Notes { mark: last.at, notes, progress: self.progress }),
            None => self.inputs.as_ref()?.next().map(AgentMessage::Inputs),
        }
    }

    /// Real datagrams to and from every host, by shard.
    fn datagrams(&self) -> Vec<Datagrams> {
        let of =
            |link: &Option<Link>| link.as_ref().map(|link| Datagrams::of(&link.stats())).unwrap_or_default();
        self.links.iter().map(of).collect()
    }

    /// Closes all links.
    fn close(&self) {
        self.links.iter().flatten().for_each(|link| link.close("the run is over"));
    }

    /// Sends logged inputs until the queue is half full: the other half is for reports and pings.
    fn send_inputs(&self) {
        let Some(inputs) = &self.inputs else { return };
        while self.messages.capacity() > SEND_QUEUE / 2
            && let Ok(place) = self.messages.try_reserve()
            && let Some(frame) = inputs.next()
        {
            place.send(AgentMessage::Inputs(frame));
        }
    }
}

impl ShardIo for QuicIo {
    fn send(&mut self, to: u16, class: Class, parcels: &mut Vec<Parcel>) {
        match self.links.get(to as usize).and_then(Option::as_ref).map(|link| link.send(parcels, class)) {
            // The parcels stay in the caller's queue, and the shard waits.
            Some(Err(SendError::Full { .. })) => {}
            // The receiving side of the link reports its end.
            Some(Ok(()) | Err(SendError::Ended(_))) | None => parcels.clear(),
        }
    }

    fn report(&mut self, notes: Vec<Observation>, mark: Time) {
        self.waiting.extend(notes);
        if let Ok(place) = self.messages.try_reserve() {
            let notes = std::mem::take(&mut self.waiting);
            place.send(AgentMessage::Notes { notes, mark, progress: self.progress });
        }
        self.send_inputs();
    }

    /// Keeps the lateness for `volary status`. Sends the sample, unless the queue is half full: the next sample
    /// supersedes it.
    fn look(&mut self, shard: &Shard<'_, RealTimeObserver>) {
        let Some(sample) = self.sampler.sample(shard) else { return };
        self.context.set_lateness(sample.deliveries);
        if self.messages.capacity() > SEND_QUEUE / 2 {
            let _ = self.messages.try_send(AgentMessage::Sample(Box::new(sample)));
        }
    }

    fn progress(&mut self, mine: Time) -> Time {
        self.progress = mine;
        self.context.reached.set(mine);
        self.context.slowest.get()
    }

    fn check_backlog(&self, events: usize) -> io::Result<()> {
        if events <= self.max_events {
            return Ok(());
        }
        Err(io::Error::other(format!(
            "more than {} events wait here: use more hosts, or start the agent with a larger --events if it has \
             the memory",
            self.max_events
        )))
    }

    fn stopped(&self) -> bool {
        self.context.stopped.get()
    }

    /// Carries out orders while the queue has room for the reports.
    fn change_profiles(&mut self, now: Time, shard: &mut Shard<'_, RealTimeObserver>) {
        while self.messages.capacity() > 0
            && let Some(order) = self.injections.expired(now).or_else(|| self.context.next_order())
        {
            let report = self.injections.carry_out(order, now, shard);
            // Fails only if the controller is gone.
            report.into_iter().for_each(|report| drop(self.messages.try_send(report)));
        }
    }

    fn congested(&self) -> bool {
        !self.waiting.is_empty() && self.messages.capacity() == 0
            || self.inputs.as_ref().is_some_and(|inputs| inputs.waiting() > INPUT_QUEUE)
            || self.links.iter().flatten().any(|link| link.waiting() > LINK_QUEUE / 2)
    }
}
