//! The contract between a machine and whatever runs it.

use serde::{Deserialize, Serialize};

use crate::base::{ActorId, CopyId, JobId, Rng, Score, Span, Time};
use crate::catalog::Catalog;
use crate::layout::Layout;
use crate::message::Message;

/// An actor: a state machine that reacts to one input at a time and never learns how long anything takes; it
/// asks, and is told.
pub trait Machine: Send {
    /// Reacts to `input`. Everything it wants done goes into `fx`; it returns nothing, because what the world
    /// can do wrong is an input and what a bug does wrong is an assertion.
    fn step(&mut self, input: Input, fx: &mut Effects<'_>);
}

/// What a machine is stepped with.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Input {
    /// First boot (epoch 0) or restart: volatile state is already gone.
    Start {
        /// How often this actor has been restarted.
        epoch: u32,
    },
    /// A message arrived.
    Deliver {
        /// Who sent it.
        from: ActorId,
        /// What it says.
        msg: Message,
    },
    /// A timer this machine armed went off. Timers are not cancelled: late ones are recognised by what they
    /// carry.
    Fire(Timer),
    /// The core finished the copy. Only workers see this.
    Done {
        /// Which copy.
        copy: CopyId,
    },
    /// The copy was halted as asked. Only workers see this.
    Halted {
        /// Which copy.
        copy: CopyId,
        /// Work still missing, in reference-core time.
        left: Span,
    },
    /// How far the running copy is, as asked. Only workers see this.
    Gauged {
        /// Which copy.
        copy: CopyId,
        /// How much of its work is done.
        score: Score,
    },
    /// A stream message of ours could not be delivered: a partition or crash outlasted the peer timeout.
    Undelivered {
        /// To whom it was sent.
        to: ActorId,
        /// What it said.
        msg: Message,
    },
    /// The failure detector reports that an actor crashed and lost its state. Coordinators (clients,
    /// schedulers, extras) hear of every coordinator and node; nodes hear of coordinators.
    Down {
        /// Who crashed.
        actor: ActorId,
    },
    /// The failure detector reports that a crashed actor is back, empty.
    Up {
        /// Who is back.
        actor: ActorId,
    },
}

/// Data of a timer. Machines that need no more than one kind of wake-up use one variant.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Timer {
    /// The client's next job arrives.
    Arrival(JobId),
    /// Look again at a job: `attempt` counts how often.
    Recheck {
        /// The job to look at.
        job: JobId,
        /// How often it was looked at before.
        attempt: u32,
    },
    /// A periodic tick of the machine's own, numbered.
    Tick(u32),
}

/// What a machine asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Effect {
    /// Send a message over the emulated network, or at once to an actor of the same node.
    Send {
        /// To whom.
        to: ActorId,
        /// What.
        msg: Message,
        /// Whether it repairs a loss; counted apart from the policy's own messages.
        recovery: bool,
    },
    /// Send a message to every other scheduler: as good as a [`Send`](Self::Send) to each, in the order of
    /// their numbers. Its receivers take it in silently, with no effect but notes and no draw, so that whoever
    /// carries it out may keep it until its receiver is stepped for another reason.
    Tell {
        /// What.
        msg: Message,
    },
    /// Wake me after a span.
    Arm {
        /// What to remind me of.
        timer: Timer,
        /// How long to wait.
        after: Span,
    },
    /// Run a copy on this worker's core.
    Run {
        /// Which copy.
        copy: CopyId,
        /// Work left from an earlier stretch; `None` starts it from the beginning.
        left: Option<Span>,
    },
    /// Stop the running copy; answered by `Halted`.
    Halt {
        /// Which copy.
        copy: CopyId,
    },
    /// Say how far the running copy is; answered by `Gauged`.
    Gauge {
        /// Which copy.
        copy: CopyId,
    },
    /// Something a recorder may want; never read back.
    Note(Note),
}

/// What recorders fold. The results schema is made of these.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Note {
    /// A job arrived at its client.
    Arrived {
        /// The job.
        job: JobId,
    },
    /// A client submitted a job again, because its scheduler died or could not be reached.
    Resubmitted {
        /// The job.
        job: JobId,
    },
    /// A client learnt that a job is finished.
    Finished {
        /// The job.
        job: JobId,
    },
    /// A worker started a copy, or resumed a suspended one.
    Started {
        /// The copy.
        copy: CopyId,
        /// Whether it was suspended before.
        resumed: bool,
    },
    /// A worker finished a copy.
    Completed {
        /// The copy.
        copy: CopyId,
    },
    /// A worker stopped a copy and its progress is lost.
    Preempted {
        /// The copy.
        copy: CopyId,
    },
    /// A worker stopped a copy that will be resumed.
    Suspended {
        /// The copy.
        copy: CopyId,
    },
    /// A scheduler with a cache of expected waits bound a task to a node, for the first time or anew.
    Placed {
        /// The copy.
        copy: CopyId,
        /// The node's number.
        node: u32,
        /// What the scheduler expected before it there, ns of work.
        believed: i64,
    },
    /// A scheduler that keeps no such cache bound a task to a node, for the first time or anew.
    Bound {
        /// The copy.
        copy: CopyId,
    },
    /// A watched scheduler took news of a node into its cache.
    Learnt {
        /// The node's number.
        node: u32,
        /// What it added, ns of work.
        change: i64,
    },
    /// A watched scheduler replaced what it believed of a node.
    Believes {
        /// The node's number.
        node: u32,
        /// What it expects there now, ns of work.
        work: i64,
        /// News made up to then is contained in it.
        at: Time,
    },
    /// A machine was sent something its protocol has no place for.
    Unexpected {
        /// The kind of message, an index into [`Message::KINDS`](crate::message::KINDS).
        kind: u8,
    },
}

/// The effects of one step: a reused buffer, and what the machine may look at.
pub struct Effects<'a> {
    now: Time,
    me: ActorId,
    rng: &'a mut Rng,
    out: &'a mut Vec<Effect>,
    catalog: &'a dyn Catalog,
    layout: &'a Layout,
}

impl<'a> Effects<'a> {
    /// For runtimes: one step of `me` at `now`, its effects going to `out`.
    pub fn new(
        now: Time,
        me: ActorId,
        rng: &'a mut Rng,
        out: &'a mut Vec<Effect>,
        catalog: &'a dyn Catalog,
        layout: &'a Layout,
    ) -> Self {
        Self { now, me, rng, out, catalog, layout }
    }

    /// The time of this step.
    #[must_use]
    pub const fn now(&self) -> Time {
        self.now
    }

    /// The actor being stepped.
    #[must_use]
    pub const fn me(&self) -> ActorId {
        self.me
    }

    /// This actor's own random stream.
    pub const fn rng(&mut self) -> &mut Rng {
        self.rng
    }

    /// What the jobs submitted so far say about themselves.
    #[must_use]
    pub fn catalog(&self) -> &'a dyn Catalog {
        self.catalog
    }

    /// Who is who.
    #[must_use]
    pub const fn layout(&self) -> &'a Layout {
        self.layout
    }

    /// Sends `msg` to `to`.
    pub fn send(&mut self, to: ActorId, msg: impl Into<Message>) {
        self.send_as(false, to, msg);
    }

    /// Sends a message that repairs a loss; it is counted apart.
    pub fn recover(&mut self, to: ActorId, msg: impl Into<Message>) {
        self.send_as(true, to, msg);
    }

    /// Sends a message that repairs a loss, or belongs to such a repair, if `recovery` says so.
    pub fn send_as(&mut self, recovery: bool, to: ActorId, msg: impl Into<Message>) {
        self.out.push(Effect::Send { to, msg: msg.into(), recovery });
    }

    /// Sends `msg` to every other scheduler; see [`Effect::Tell`] for what that asks of them.
    pub fn tell(&mut self, msg: impl Into<Message>) {
        self.out.push(Effect::Tell { msg: msg.into() });
    }

    /// Asks for a wake-up after `after`.
    pub fn arm(&mut self, timer: Timer, after: Span) {
        self.out.push(Effect::Arm { timer, after });
    }

    /// Runs `copy` on this worker's core, from the beginning or with `left` work missing.
    pub fn run(&mut self, copy: CopyId, left: Option<Span>) {
        self.out.push(Effect::Run { copy, left });
    }

    /// Stops `copy` on this worker's core.
    pub fn halt(&mut self, copy: CopyId) {
        self.out.push(Effect::Halt { copy });
    }

    /// Asks how far `copy` on this worker's core is.
    pub fn gauge(&mut self, copy: CopyId) {
        self.out.push(Effect::Gauge { copy });
    }

    /// Records an observation.
    pub fn note(&mut self, note: Note) {
        self.out.push(Effect::Note(note));
    }

    /// Counts a message that this machine's protocol has no place for.
    pub fn unexpected(&mut self, msg: &Message) {
        self.note(Note::Unexpected { kind: msg.kind() });
    }
}

const _: () = assert!(size_of::<Message>() <= 32, "messages are moved on the hot path");
const _: () = assert!(size_of::<Input>() <= 40, "inputs are stored in the event slab");
const _: () = assert!(size_of::<Effect>() <= 40, "effects are copied once each");
