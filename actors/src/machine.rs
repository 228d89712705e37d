//! The contract between machines and runtimes.

use std::any::Any;
use std::fmt::Debug;

use dyn_clone::DynClone;
use serde::{Deserialize, Serialize};

use crate::base::{ActorId, CopyId, JobId, Rng, Score, Span, TaskId, Time};
use crate::catalog::Catalog;
use crate::layout::{Layout, Role};
use crate::message::{Message, Standing, Update};

/// An actor: a state machine that reacts to one input at a time. It measures nothing itself: it asks for work, timers
/// and progress, and receives the answers as inputs.
///
/// A machine is a value that can be copied. Its `Debug` text shows all of its state; the explorer of small worlds uses
/// this text to recognise states that it has seen.
pub trait Machine: DynClone + Debug + Send {
    /// Reacts to `input` and pushes its effects into `fx`. The step cannot fail: faults of the world are inputs, faults
    /// of the program are assertions.
    fn step(&mut self, input: Input, fx: &mut Effects<'_>);

    /// Takes out the state that survives a crash of this actor, as if it were on durable storage. The successor
    /// receives it before its start.
    fn stored(&mut self) -> Option<Stored> {
        None
    }

    /// Restores the state that the machine before the crash has stored.
    fn restore(&mut self, _stored: Stored) {}
}

dyn_clone::clone_trait_object!(Machine);

/// State that a machine leaves to its successor; machines of the same actor know its type.
pub type Stored = Box<dyn Any + Send>;

/// The input of one step of a machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Input {
    /// First boot (epoch 0) or restart: volatile state is already gone.
    Start {
        /// Number of restarts of this actor.
        epoch: u32,
    },
    /// A message arrived.
    Deliver {
        /// The sender.
        from: ActorId,
        /// The message.
        msg: Message,
    },
    /// A timer of this machine fired. Timers are not cancelled: a machine recognises outdated timers by their data.
    Fire(Timer),
    /// The core finished the copy. Only workers see this.
    Done {
        /// The copy.
        copy: CopyId,
    },
    /// The copy was halted, in answer to a request. Only workers see this.
    Halted {
        /// The copy.
        copy: CopyId,
        /// Work still missing, in reference-core time.
        left: Span,
    },
    /// The progress of the running copy, in answer to a request. Only workers see this.
    Progress {
        /// The copy.
        copy: CopyId,
        /// The share of the copy's work that is done.
        score: Score,
        /// The work that is done, in reference-core time.
        done: Span,
    },
    /// The use of this shared node by a copy. This input is sent when the copy begins, and when its use or its share
    /// of the node changes. Only node managers of policies that [request it](crate::policies::Traits::node_usage) see
    /// it. Changes at the same instant are consecutive inputs.
    Usage {
        /// The copy.
        copy: CopyId,
        /// The core of the node that runs the copy.
        core: u32,
        /// The copy's CPU demand, thousandths of a core.
        demand: u32,
        /// The CPU given to the copy, thousandths of a core, at most its demand.
        given: u32,
        /// The memory that the copy uses, bytes.
        memory: u64,
        /// Whether this input is the last of its instant, after which the use of all copies is known.
        last: bool,
    },
    /// A stream message of this actor could not be delivered: a partition or crash outlasted the peer timeout.
    Undelivered {
        /// The receiver.
        to: ActorId,
        /// The message.
        msg: Message,
    },
    /// The failure detector reports that an actor crashed and lost its state. Coordinators (clients, schedulers,
    /// auxiliary actors) are notified of crashes of coordinators and nodes; nodes are notified of crashes of
    /// coordinators.
    Down {
        /// The actor that crashed.
        actor: ActorId,
    },
    /// The failure detector reports that a crashed actor is back, with empty state.
    Up {
        /// The actor that is back.
        actor: ActorId,
    },
}

/// Data of a timer. Machines that need only one kind of wake-up use one variant.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Timer {
    /// The client's next job arrives.
    Arrival(JobId),
    /// A job is due for another check.
    Recheck {
        /// The job.
        job: JobId,
        /// The number of earlier checks.
        attempt: u32,
    },
    /// A tick of the machine, with a number that the machine chooses.
    Tick(u32),
    /// A task is due for another check.
    Task(TaskId),
    /// A node that could not be reached may be tried again.
    Node(u32),
    /// The next heartbeat is due.
    Beat,
    /// The instant is over: this timer fires after all other events that are due at its time, of all actors of the
    /// shard.
    Settled,
}

/// A request of a machine to its runtime.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Effect {
    /// Send a message over the emulated network, or at once to an actor of the same node.
    Send {
        /// The receiver.
        to: ActorId,
        /// The message.
        msg: Message,
        /// Whether the message repairs a loss; such messages are counted separately.
        recovery: bool,
    },
    /// Send a message to every other scheduler, as if by a [`Send`](Self::Send) to each scheduler in the order of
    /// their numbers. The delivery is *passive*: the receiver's step may change its state and push notes, but has no
    /// other effect and draws no random numbers. The runtime may therefore postpone the step until the receiver has
    /// another input. [`Effects::passive`] enforces this rule.
    Broadcast {
        /// The message.
        msg: Message,
    },
    /// Arm a timer.
    Arm {
        /// The data that the timer returns.
        timer: Timer,
        /// The span until the timer fires.
        after: Span,
    },
    /// Run a copy on this worker's core.
    Run {
        /// The copy.
        copy: CopyId,
        /// Work left from an earlier run; `None` starts the copy from the beginning.
        left: Option<Span>,
        /// See [`Row::elsewhere`](crate::message::Row::elsewhere); the work left of a suspended copy includes this
        /// slowdown.
        elsewhere: bool,
    },
    /// Stop the running copy; answered by `Halted`.
    Halt {
        /// The copy.
        copy: CopyId,
    },
    /// Query the progress of the running copy; answered by [`Input::Progress`].
    QueryProgress {
        /// The copy.
        copy: CopyId,
    },
    /// An observation for recorders; never read back.
    Note(Note),
}

/// The order in which a node serves waiting tasks. It uses the estimates of the tasks' jobs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum ServiceOrder {
    /// In order of arrival.
    Arrival,
    /// Oldest job first.
    OldestJob,
    /// Least estimate of the task first, then oldest job.
    LeastTask,
    /// Least estimate of all tasks of the job first.
    LeastJob,
}

/// An observation. Results are computed from observations.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Note {
    /// A job arrived at its client.
    Arrived {
        /// The job.
        job: JobId,
    },
    /// A client submitted a job again, because its scheduler crashed or could not be reached.
    Resubmitted {
        /// The job.
        job: JobId,
    },
    /// A client was notified that a job is finished.
    Finished {
        /// The job.
        job: JobId,
    },
    /// A client was notified that a job was killed.
    Killed {
        /// The job.
        job: JobId,
    },
    /// A worker started a copy, or resumed a suspended one.
    Started {
        /// The copy.
        copy: CopyId,
        /// Whether the copy was suspended before.
        resumed: bool,
    },
    /// A worker finished a copy.
    Completed {
        /// The copy.
        copy: CopyId,
    },
    /// A worker stopped a copy; its progress is lost.
    Preempted {
        /// The copy.
        copy: CopyId,
    },
    /// A shared node was short of memory and made a worker stop a copy, which is also noted as preempted.
    Evicted {
        /// The copy.
        copy: CopyId,
    },
    /// A worker stopped a copy that will be resumed.
    Suspended {
        /// The copy.
        copy: CopyId,
    },
    /// An observation about a cache of other actors' state.
    Cache(CacheNote),
    /// A scheduler without a cache of expected waits bound a task to a node, for the first time or again.
    Bound {
        /// The copy.
        copy: CopyId,
    },
    /// A scheduler has solved a problem to plan the starts of jobs.
    Planned {
        /// Number of options of waiting jobs: combinations of start and kind of nodes.
        options: u32,
        /// Number of columns of the linear program.
        columns: u32,
        /// Number of pivots of the solve.
        pivots: u32,
        /// The relative distance between the plan and a proven bound, millionths.
        gap: u32,
    },
    /// A scheduler that decides in cycles has carried out a decision.
    Enacted {
        /// Number of cycles since the last decision, this cycle included.
        cycles: u32,
        /// Number of jobs launched, in whole or in part.
        launched: u32,
        /// Number of launches that were no longer possible.
        revoked: u32,
        /// Number of running jobs preempted.
        preempted: u32,
        /// The emulated time that the decision took.
        took: Span,
    },
    /// A scheduler that estimates run times has observed the run time of a job.
    Predicted {
        /// The job.
        job: JobId,
        /// The estimate at the submission of the job.
        expected: Span,
        /// The job's run time, on nodes that it prefers.
        run: Span,
    },
    /// An actor of a gossip group originated or received an update that it did not have.
    Informed {
        /// The update.
        update: Update,
    },
    /// A member of a gossip group changed its belief about another member.
    Regards {
        /// The other member.
        member: u32,
        /// The new belief.
        standing: Standing,
    },
    /// The program of a policy in another language recorded a value.
    Value {
        /// The name of the value.
        name: ValueName,
        /// The value, a finite number from 0 on, as the bits of an `f64`.
        bits: u64,
    },
    /// A machine received a message that its protocol does not expect.
    Unexpected {
        /// The kind of message, an index into [`Message::KINDS`](crate::message::KINDS).
        kind: u8,
    },
    /// A node gave up a copy that was suspended.
    Discarded {
        /// The copy.
        copy: CopyId,
    },
}

/// The name of a value: 1 to 16 letters, digits and underscores, filled up with zeros.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct ValueName([u8; 16]);

impl ValueName {
    /// A name; `None` if it is empty or too long, or has other characters.
    pub fn new(name: &str) -> Option<Self> {
        let mut bytes = [0; 16];
        bytes.get_mut(..name.len())?.copy_from_slice(name.as_bytes());
        Some(Self(bytes)).filter(|name| name.as_str().is_some())
    }

    /// The name as text; `None` if another process sent bytes that are not a name.
    pub fn as_str(&self) -> Option<&str> {
        let end = self.0.iter().position(|byte| *byte == 0).unwrap_or(self.0.len());
        let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
        let is_name =
            end > 0 && self.0[..end].iter().all(is_plain) && self.0[end..].iter().all(|byte| *byte == 0);
        std::str::from_utf8(&self.0[..end]).ok().filter(|_| is_name)
    }
}

/// An observation about caches of other actors' state. The ages and errors of caches are computed from these
/// observations.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum CacheNote {
    /// A scheduler with a cache of expected waits bound a task to a node, for the first time or again.
    Placed {
        /// The copy.
        copy: CopyId,
        /// The node's number.
        node: u32,
        /// The work that the scheduler expected ahead of the task at the node, ns.
        believed: i64,
        /// The order in which the node serves waiting tasks.
        order: ServiceOrder,
    },
    /// An actor of an observed run numbered its oldest unnumbered update about a node.
    Numbered {
        /// The node's number.
        node: u32,
        /// The number; the upper byte is the epoch of the actor.
        number: u32,
        /// Whether the update travels in datagrams.
        datagram: bool,
    },
    /// A watched scheduler applied an update about a node to its cache.
    Learnt {
        /// The node's number.
        node: u32,
        /// The change, ns of work.
        change: i64,
        /// The actor that made the update: schedulers first, then nodes.
        origin: u32,
        /// The number that the origin gave the update.
        number: u32,
        /// Whether the update travelled in a datagram; earlier updates that have not arrived may then be lost.
        datagram: bool,
    },
    /// A watched scheduler replaced its entry of a node.
    Believes {
        /// The node's number.
        node: u32,
        /// The new value, ns of work.
        work: i64,
        /// Time up to which the value contains all updates.
        at: Time,
    },
    /// A watched scheduler replaced its knowledge of a node by a report of that node.
    Snapshot {
        /// The node's number.
        node: u32,
        /// Time of the observation.
        at: Time,
    },
    /// A copy reached its node, in an observed run of a policy whose schedulers keep
    /// [snapshots](crate::policies::Caches::Snapshots) of nodes.
    Reached {
        /// The copy.
        copy: CopyId,
    },
    /// An actor of an observed run changed a state that other actors cache.
    Changed,
    /// A watched actor refreshed its cached copy of such a state.
    Refreshed {
        /// Time of the observation.
        at: Time,
    },
}

impl CacheNote {
    /// Whether the nodes, actors and copy that the note names exist; `has` returns whether a copy exists.
    pub fn exists(&self, layout: &Layout, has: impl Fn(CopyId) -> bool) -> bool {
        let nodes = layout.nodes();
        match *self {
            Self::Placed { copy, node, .. } => has(copy) && node < nodes,
            Self::Learnt { node, origin, .. } => node < nodes && origin < layout.schedulers() + nodes,
            Self::Numbered { node, .. } | Self::Believes { node, .. } | Self::Snapshot { node, .. } => {
                node < nodes
            }
            Self::Reached { copy } => has(copy),
            Self::Changed | Self::Refreshed { .. } => true,
        }
    }
}

impl From<CacheNote> for Note {
    fn from(note: CacheNote) -> Self {
        Self::Cache(note)
    }
}

/// The number of copies of each job that have begun anywhere in the run. It reproduces simulators whose actors read
/// shared state without messages; no actor of a real system could know this number. The shard counts copies in
/// virtual time, for policies with an [oracle](crate::policies::Traits::oracle).
#[derive(Clone, Debug)]
pub struct Oracle {
    begun: Box<[u32]>,
}

impl Oracle {
    /// An oracle over `jobs` jobs, none of which has begun.
    pub fn new(jobs: u32) -> Self {
        Self { begun: vec![0; jobs as usize].into() }
    }

    /// Counts the start of a copy; a task that starts again after a crash is counted again.
    pub fn begin(&mut self, job: JobId) {
        let begun = &mut self.begun[job.index()];
        *begun = begun.saturating_add(1);
    }

    /// The number of copies of a job that have begun.
    pub fn begun(&self, job: JobId) -> u32 {
        self.begun[job.index()]
    }
}

/// The effects of one step, in a reused buffer, and everything that a machine may read.
pub struct Effects<'a> {
    now: Time,
    me: ActorId,
    rng: &'a mut Rng,
    out: &'a mut Vec<Effect>,
    catalog: &'a dyn Catalog,
    layout: &'a Layout,
    oracle: Option<&'a Oracle>,
    passive: bool,
}

impl<'a> Effects<'a> {
    /// For runtimes: the context of one step of `me` at `now`, with effects appended to `out`.
    #[inline]
    pub fn new(
        now: Time,
        me: ActorId,
        rng: &'a mut Rng,
        out: &'a mut Vec<Effect>,
        catalog: &'a dyn Catalog,
        layout: &'a Layout,
    ) -> Self {
        Self { now, me, rng, out, catalog, layout, oracle: None, passive: false }
    }

    /// For runtimes: lets this step look at the oracle, if there is one.
    #[inline]
    pub const fn with_oracle(mut self, oracle: Option<&'a Oracle>) -> Self {
        self.oracle = oracle;
        self
    }

    /// For runtimes: marks the step as the delivery of a [broadcast](Effect::Broadcast). In debug builds any effect
    /// except a note then panics, and so does a random draw.
    pub const fn passive(mut self) -> Self {
        self.passive = true;
        self
    }

    /// Requests an effect.
    #[inline]
    pub fn push(&mut self, effect: Effect) {
        debug_assert!(!self.passive, "{} answers a broadcast: {effect:?}", self.me);
        self.out.push(effect);
    }

    /// The time of this step.
    #[inline]
    pub const fn now(&self) -> Time {
        self.now
    }

    /// The actor being stepped.
    #[inline]
    pub const fn me(&self) -> ActorId {
        self.me
    }

    /// This actor's own random stream.
    #[inline]
    pub const fn rng(&mut self) -> &mut Rng {
        debug_assert!(!self.passive, "a broadcast is received without random draws");
        self.rng
    }

    /// The descriptions of the jobs submitted so far.
    #[inline]
    pub fn catalog(&self) -> &'a dyn Catalog {
        self.catalog
    }

    /// The roles of all actors.
    #[inline]
    pub const fn layout(&self) -> &'a Layout {
        self.layout
    }

    /// The worker of a core of the node that is being stepped.
    ///
    /// # Panics
    /// If the actor that is being stepped is no node.
    pub fn worker(&self, core: usize) -> ActorId {
        let Role::Node(node) = self.layout.role(self.me) else { unreachable!("{} is no node", self.me) };
        self.layout.worker(node, core as u32)
    }

    /// The oracle; `None` unless the runtime keeps one.
    #[inline]
    pub const fn oracle(&self) -> Option<&'a Oracle> {
        self.oracle
    }

    /// Sends `msg` to `to`.
    #[inline]
    pub fn send(&mut self, to: ActorId, msg: impl Into<Message>) {
        self.send_as(false, to, msg);
    }

    /// Sends a message that repairs a loss; it is counted separately.
    #[inline]
    pub fn recover(&mut self, to: ActorId, msg: impl Into<Message>) {
        self.send_as(true, to, msg);
    }

    /// Sends a message; `recovery` says whether it repairs a loss or belongs to such a repair.
    #[inline]
    pub fn send_as(&mut self, recovery: bool, to: ActorId, msg: impl Into<Message>) {
        self.push(Effect::Send { to, msg: msg.into(), recovery });
    }

    /// Sends `msg` to every other scheduler; [`Effect::Broadcast`] states what their steps may do.
    #[inline]
    pub fn broadcast(&mut self, msg: impl Into<Message>) {
        self.push(Effect::Broadcast { msg: msg.into() });
    }

    /// Arms a timer that fires after `after`.
    #[inline]
    pub fn arm(&mut self, timer: Timer, after: Span) {
        self.push(Effect::Arm { timer, after });
    }

    /// Records an observation.
    #[inline]
    pub fn note(&mut self, note: impl Into<Note>) {
        self.out.push(Effect::Note(note.into()));
    }

    /// Records a message that this machine's protocol does not expect.
    pub fn unexpected(&mut self, msg: &Message) {
        self.note(Note::Unexpected { kind: msg.kind() });
    }
}

const _: () = assert!(size_of::<Message>() <= 32, "messages are moved on the hot path");
const _: () = assert!(size_of::<Input>() <= 40, "inputs are stored in the event slab");
const _: () = assert!(size_of::<Effect>() <= 40, "effects are copied once each");
const _: () = assert!(size_of::<Note>() <= 32, "notes are stored until all shards have reported");
