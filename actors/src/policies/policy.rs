//! The trait `Policy`, a factory of machines, and the context they are built in.

use crate::base::{ActorId, Span};
use crate::layout::Layout;
use crate::machine::Machine;
use crate::roles::{Client, NodeManager};

/// The context in which a machine is built.
#[derive(Clone, Copy, Debug)]
pub struct BuildContext<'a> {
    /// Its address.
    pub me: ActorId,
    /// Its number within its role.
    pub index: u32,
    /// All actors of the run.
    pub layout: &'a Layout,
    /// Whether the experiment's network can lose datagrams: repairs that cost messages are armed only then.
    pub lossy: bool,
    /// Whether the staleness of its cache is recorded, if it has one. It changes nothing but the notes.
    pub watched: bool,
}

/// A scheduling system: a parsed configuration that is the factory of its machines.
pub trait Policy {
    /// The text of `volary policies`: a title with the source, then a description.
    const ABOUT: &'static str;

    /// Parameters with which randomised tests run this policy, as inline TOML tables; `#` stands for a number of
    /// servers that fits the cluster.
    const VARIANTS: &'static [&'static str];

    /// Whether this policy keeps all state in its only scheduler.
    const ONE_SCHEDULER: bool = false;

    /// Checks the parameters against a layout; the error reads "key: reason and remedy".
    fn check(&self, _layout: &Layout) -> Result<(), String> {
        Ok(())
    }

    /// How long a copy runs before this policy queries its progress; `None` if it never does.
    fn patience(&self) -> Option<Span> {
        None
    }

    /// A job source.
    fn client(&self, context: BuildContext<'_>) -> Box<dyn Machine> {
        Box::new(Client::new(context.index))
    }

    /// A scheduler.
    fn scheduler(&self, context: BuildContext<'_>) -> Box<dyn Machine>;

    /// A node manager.
    fn node(&self, context: BuildContext<'_>) -> Box<dyn Machine> {
        Box::new(NodeManager::new(context.layout.cores(context.index)))
    }
}
