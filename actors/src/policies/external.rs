//! A policy in another language: a child process that answers each line with a line.
//!
//! The schedulers are [dispatchers](crate::roles::dispatcher) like those of volary's own policies: the dispatcher
//! handles recovery, and the program chooses the nodes. There are two levels:
//!
//! - *central*: one scheduler, asked once an instant; its decisions can take emulated time;
//! - *actor*: any number of schedulers, and nodes if the program wants; each is asked at every input, and has timers
//!   and messages of its own.

mod actions;
mod messages;
mod names;
mod node;
mod protocol;
mod scheduler;

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::policy::{Binds, BuildContext, Policy, Traits, standard_node};
use crate::base::{ActorId, DistributionSpec, Span, parameters};
use crate::layout::Layout;
use crate::machine::Machine;
use crate::program::{Program, ProgramSpec};
use crate::roles::dispatcher::Dispatcher;
use crate::roles::node::NodeUsage;
use crate::roles::yarn::ContainerNode;
use node::ExternalNode;
pub use protocol::PROTOCOL;
use protocol::{HelloAnswer, hello};
use scheduler::ProgramRule;

/// Parameters of the program, which volary passes on to it as they are.
#[derive(Clone, PartialEq, Default, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct FreeTable(Map<String, Value>);

parameters! {
    /// Parameters of a policy in another language.
    struct External {
        /// The program and its arguments. It runs in the folder of the experiment file.
        command: Vec<String> = Vec::new(),
        /// The name under which agents on other machines know the program; see `volary agent --policy`.
        name: String = String::new(),
        /// The level at which the program decides.
        level: Level = Level::Central,
        /// Whether the schedulers of a shard share a process. The nodes of a shard always share one.
        processes: Processes = Processes::One,
        /// Parameters of the program, a table that volary passes on unread.
        parameters: FreeTable = FreeTable::default(),
        /// Emulated time of a decision, at level central, unless the answer says how long it took.
        decision: Option<DistributionSpec<Span>> = None,
        /// Time beyond the run time requested by its user after which a gang is killed, counted from the launch of its
        /// first task. If absent, gangs run to their end.
        overrun: Option<Span> = None,
        /// Whether nodes can suspend and resume tasks. The program cannot decide for such nodes, and shared nodes
        /// cannot suspend tasks.
        suspend: bool = false,
        /// Real time after which a program that has not answered is treated as failed.
        patience: Span = Span::from_secs(60) => period,
        /// Whether the first run, if it is short, is repeated in virtual time to check that runs of one seed are
        /// equal.
        verify: bool = true,
        /// Files on which the program depends, besides those that `command` names, relative to the experiment file.
        /// When one of them changes, `--resume` repeats the runs of this policy.
        files: Vec<String> = Vec::new(),
    }

    /// The level at which a program decides.
    enum Level {
        /// One scheduler with all jobs, which is asked once an instant.
        #[default]
        Central,
        /// Every scheduler, and every node if the program wants, asked at each input.
        Actor,
    }

    /// The number of processes of a policy on one machine.
    enum Processes {
        /// One process for all actors.
        #[default]
        One,
        /// A process for each scheduler, started again when the scheduler restarts after a crash.
        Each,
    }
}

impl Policy for External {
    const ABOUT: &'static str = "A policy in another language (docs: policies in any language)\n\
        The policy is a program that reads requests from its standard input and writes the answers to its standard \
        output, one JSON object per line. Requests contain events, answers contain actions. The dispatcher of the \
        built-in policies launches lost tasks again and reports finished jobs to the client.";

    fn traits(&self) -> Traits<'_> {
        let Self { command, name, patience, verify, files, .. } = self;
        let spec = ProgramSpec { command, name, patience: *patience, verify: *verify, files };
        Traits {
            binds: Binds::Program,
            one_scheduler: self.level == Level::Central,
            node_usage: (!self.suspend).then_some(NodeUsage::Evictions),
            program: Some(spec),
            ..Traits::default()
        }
    }

    fn check(&self, layout: &Layout) -> Result<(), String> {
        if self.command.first().is_none_or(String::is_empty) {
            return Err(
                "command: names no program; write for example command = [\"python3\", \"mine.py\"]".into()
            );
        }
        if self.processes == Processes::Each && layout.schedulers() == 1 {
            return Err(
                "processes: \"each\" needs several schedulers; set cluster.schedulers, or leave it out"
                    .into(),
            );
        }
        if self.suspend && layout.sharing().is_some() {
            return Err("suspend: nodes with shared cores cannot suspend tasks; leave it out".into());
        }
        if self.decision.is_some() && self.level == Level::Actor {
            return Err(
                "decision: only programs of level \"central\" decide in emulated time; leave it out".into()
            );
        }
        Ok(())
    }

    fn scheduler(&self, context: BuildContext<'_>) -> Box<dyn Machine> {
        let owner = (self.processes == Processes::Each).then(|| context.layout.scheduler(context.index));
        Box::new(Dispatcher::with(ProgramRule::new(self, self.open(owner, context)), context.layout))
    }

    fn node(&self, context: BuildContext<'_>) -> Box<dyn Machine> {
        if self.suspend {
            return Box::new(ContainerNode::new(None, context.layout.cores(context.index)));
        }
        let node = standard_node(&Policy::traits(self), context);
        let program = if self.level == Level::Actor { self.open(None, context) } else { None };
        match program {
            Some((program, HelloAnswer { nodes: true, messages, .. })) => {
                Box::new(ExternalNode::new(node, program, messages))
            }
            _ => Box::new(node),
        }
    }
}

impl External {
    /// The program, with its answer to the greeting; `None` if it cannot be started.
    fn open(&self, owner: Option<ActorId>, context: BuildContext<'_>) -> Option<(Arc<Program>, HelloAnswer)> {
        let check = |answer: &str| HelloAnswer::read(answer, self).map(drop);
        let spec = Policy::traits(self).program?;
        let program = context.programs?.open(spec, owner, || hello(self, context), check)?;
        let about = HelloAnswer::read(program.hello(), self).ok()?;
        Some((program, about))
    }
}
