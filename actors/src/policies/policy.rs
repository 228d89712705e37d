//! The trait `Policy`, a factory of machines, and the context they are built in.

use crate::base::{ActorId, Span};
use crate::layout::Layout;
use crate::machine::Machine;
use crate::roles::{Client, NodeManager};

/// Where a machine is about to sit.
#[derive(Clone, Copy, Debug)]
pub struct BuildContext<'a> {
    /// Its address.
    pub me: ActorId,
    /// Its number among actors of its kind.
    pub index: u32,
    /// Everybody else.
    pub layout: &'a Layout,
    /// Whether the experiment's network can lose datagrams: repairs that cost messages are armed only then.
    pub lossy: bool,
    /// Whether somebody wants to know how fresh its cache is, if it has one. It changes nothing but the notes.
    pub watched: bool,
}

/// A scheduling system: a parsed configuration that is the factory of its machines.
pub trait Policy {
    /// What `volary policies` says: a title with the source, then what it does.
    const ABOUT: &'static str;

    /// Parameters with which randomised tests run this policy, as inline TOML tables; `#` stands for a number of
    /// servers that fits the cluster.
    const VARIANTS: &'static [&'static str];

    /// Whether this policy keeps all state in its only scheduler.
    const ONE_SCHEDULER: bool = false;

    /// Why these parameters cannot run on this layout, as "key: reason and remedy".
    ///
    /// # Errors
    /// A sentence for the user.
    fn check(&self, _layout: &Layout) -> Result<(), String> {
        Ok(())
    }

    /// How long a copy runs before this policy learns how far it is; nothing if it never asks.
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
