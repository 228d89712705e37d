//! A node for which a program decides: the standard node, with messages and timers of the policy's own.

use std::sync::Arc;

use super::actions::carry_out;
use super::messages::{Bounds, Vocabulary};
use super::names::actor_name;
use super::protocol::{Answer, Event, Events};
use crate::layout::Role;
use crate::machine::{Effects, Input, Machine, Timer};
use crate::message::Message;
use crate::program::Program;
use crate::roles::NodeManager;

/// A standard node with a program, which answers the policy's messages and sees every launch before the node queues
/// it.
#[derive(Clone, Debug)]
pub(super) struct ExternalNode {
    node: NodeManager,
    program: Arc<Program>,
    messages: Vocabulary,
}

impl ExternalNode {
    pub(super) const fn new(node: NodeManager, program: Arc<Program>, messages: Vocabulary) -> Self {
        Self { node, program, messages }
    }

    /// The event of an input for the program, and whether the standard node sees the input too.
    fn event(&self, input: &Input, fx: &mut Effects<'_>) -> (Option<Event>, bool) {
        let bounds = Bounds { layout: fx.layout(), catalog: fx.catalog() };
        let own = |msg: &Message| self.messages.read(msg, bounds);
        let name = |actor| actor_name(actor, bounds.layout);
        let is_peer = |actor| !matches!(bounds.layout.role(actor), Role::Client(_));
        match input {
            Input::Start { epoch } => {
                let seed = fx.rng().state().to_string();
                (Some(Event::Start { epoch: *epoch, seed }), true)
            }
            Input::Deliver { from, msg } => match (own(msg), msg) {
                (Some((kind, values)), _) => {
                    (Some(Event::Message { from: name(*from), name: kind, values }), false)
                }
                (None, Message::Launch(launch)) => {
                    let task = launch.row().map(|row| row.copy(0).task);
                    (task.map(|task| Event::Launch { job: task.job.0, task: task.index }), true)
                }
                (None, _) => (None, true),
            },
            Input::Undelivered { to, msg } => match own(msg) {
                Some((kind, values)) => (Some(Event::Returned { to: name(*to), name: kind, values }), false),
                None => (None, true),
            },
            Input::Fire(Timer::Tick(id)) => (Some(Event::Timer { id: *id }), false),
            Input::Down { actor } if is_peer(*actor) => (Some(Event::Down { actor: name(*actor) }), true),
            Input::Up { actor } if is_peer(*actor) => (Some(Event::Up { actor: name(*actor) }), true),
            _ => (None, true),
        }
    }

    fn ask(&self, event: &Event, fx: &mut Effects<'_>) {
        let mut events = Events::default();
        events.push(event);
        let request = events.request(&format!("\"length\":{},", self.node.length()), fx);
        let Some((answer, line)) = self.program.ask(&request, Answer::read) else { return };
        for order in &answer.actions {
            let done = carry_out(order, &self.messages, fx).and_then(|is_common| match is_common {
                true => Ok(()),
                false => {
                    Err("a node sends messages, notes values and arms timers; only schedulers place tasks"
                        .into())
                }
            });
            if let Err(why) = done {
                return self.program.fail(&why, &request, &line);
            }
        }
    }
}

impl Machine for ExternalNode {
    fn step(&mut self, input: Input, fx: &mut Effects<'_>) {
        let (event, passes_on) = self.event(&input, fx);
        if let Some(event) = event {
            self.ask(&event, fx);
        }
        if passes_on {
            self.node.step(input, fx);
        }
    }
}
