//! A worker: one core, which runs at most one copy and reports the end of the copy to the node manager.

use crate::base::{ActorId, CopyId, Span};
use crate::machine::{Effect, Effects, Input, Machine, Note};
use crate::message::{Core, Message};

/// The reason why a copy is being halted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Halting {
    No,
    Stop,
    Suspend,
}

/// A core of a node.
#[derive(Clone, Debug)]
pub struct Worker {
    node: ActorId,
    running: Option<CopyId>,
    halting: Halting,
}

impl Worker {
    /// A core of `node`.
    pub const fn new(node: ActorId) -> Self {
        Self { node, running: None, halting: Halting::No }
    }

    fn order(&mut self, order: Core, fx: &mut Effects<'_>) {
        match order {
            Core::Run { copy, elsewhere } => self.run(copy, None, elsewhere, fx),
            Core::Resume { copy, left } => self.run(copy, Some(left), false, fx),
            Core::Stop { copy } => self.halt(copy, Halting::Stop, fx),
            Core::Suspend { copy } => self.halt(copy, Halting::Suspend, fx),
            Core::Ask { copy } => {
                if self.running == Some(copy) {
                    fx.push(Effect::QueryProgress { copy });
                }
            }
            Core::Ended { .. } | Core::Suspended { .. } | Core::Score { .. } => fx.unexpected(&order.into()),
        }
    }

    fn run(&mut self, copy: CopyId, left: Option<Span>, elsewhere: bool, fx: &mut Effects<'_>) {
        assert!(self.running.is_none(), "a core runs one copy at a time");
        self.running = Some(copy);
        fx.push(Effect::Run { copy, left, elsewhere });
        fx.note(Note::Started { copy, resumed: left.is_some() });
    }

    fn halt(&mut self, copy: CopyId, how: Halting, fx: &mut Effects<'_>) {
        if self.running == Some(copy) {
            self.running = None;
            self.halting = how;
            fx.push(Effect::Halt { copy });
        }
    }
}

impl Machine for Worker {
    fn step(&mut self, input: Input, fx: &mut Effects<'_>) {
        match input {
            Input::Deliver { msg: Message::Core(order), .. } => self.order(order, fx),
            Input::Done { copy } => {
                assert_eq!(self.running, Some(copy), "the core finished a copy that it was not running");
                self.running = None;
                fx.note(Note::Completed { copy });
                fx.send(self.node, Core::Ended { copy });
            }
            Input::Halted { copy, left } => match std::mem::replace(&mut self.halting, Halting::No) {
                Halting::Suspend => {
                    fx.note(Note::Suspended { copy });
                    fx.send(self.node, Core::Suspended { copy, left });
                }
                Halting::Stop => fx.note(Note::Preempted { copy }),
                Halting::No => unreachable!("the core halted a copy without an order"),
            },
            Input::Progress { copy, score, done } => {
                fx.send(self.node, Core::Score { copy, score, done_ms: done.whole_millis() });
            }
            Input::Deliver { ref msg, .. } => fx.unexpected(msg),
            // A worker has no peers beyond its node and crashes with it.
            _ => {}
        }
    }
}
