//! The trait of policies as the registry holds them.

use std::fmt::Debug;

use super::policy::{Caches, Policy};
use crate::base::{ActorId, Parameters, Span};
use crate::layout::Layout;
use crate::machine::Machine;
use crate::roles::node::NodeUsage;

/// A [`Policy`] without constants and constructors, so that it can be a trait object. Implemented for all of them; the
/// methods are those of the same name.
pub trait DynPolicy: Debug + Send + Sync + erased_serde::Serialize {
    /// [`Policy::EXTRAS`].
    fn extras_name(&self) -> &'static str;
    /// [`Policy::PLANS`].
    fn plans(&self) -> bool;
    /// [`Policy::caches`].
    fn caches(&self) -> Caches;
    /// [`Policy::NODE_USAGE`].
    fn node_usage(&self) -> Option<NodeUsage>;
    /// [`Policy::check`], after the ranges of the parameters.
    fn check_parameters(&self, layout: &Layout) -> Result<(), String>;
    /// [`Policy::remarks`].
    fn remarks(&self, layout: &Layout, classes: usize) -> Vec<String>;
    /// [`Policy::one_scheduler`].
    fn one_scheduler(&self) -> bool;
    /// [`Policy::extras`].
    fn extras_on(&self, layout: &Layout) -> u32;
    /// [`Policy::cores`].
    fn cores_on(&self, layout: &Layout) -> Option<Vec<u32>>;
    /// [`Policy::beside`].
    fn beside(&self, extra: u32, layout: &Layout) -> Option<u32>;
    /// [`Policy::needs_long`].
    fn needs_long(&self) -> Option<&'static str>;
    /// [`Policy::patience`].
    fn patience(&self) -> Option<Span>;
    /// [`Policy::longest_wait`].
    fn longest_wait(&self) -> Span;
    /// [`Policy::lossless`].
    fn lossless(&self) -> Option<&'static str>;
    /// [`Policy::reservations`].
    fn reservations(&self, tasks: u32) -> u64;
    /// [`Policy::time_slice`].
    fn time_slice(&self) -> Option<(&'static str, Span)>;
    /// [`Policy::oracle`].
    fn oracle(&self) -> Option<&'static str>;
    /// [`Policy::cached_nodes`].
    fn cached_nodes(&self, layout: &Layout) -> u32;
    /// [`Policy::machine`].
    fn machine(&self, me: ActorId, layout: &Layout, lossy: bool, observed: bool) -> Box<dyn Machine>;
}

impl<P: Policy> DynPolicy for P {
    fn extras_name(&self) -> &'static str {
        P::EXTRAS
    }

    fn plans(&self) -> bool {
        P::PLANS
    }

    fn caches(&self) -> Caches {
        Policy::caches(self)
    }

    fn node_usage(&self) -> Option<NodeUsage> {
        P::NODE_USAGE
    }

    fn check_parameters(&self, layout: &Layout) -> Result<(), String> {
        Parameters::check_ranges(self)?;
        Policy::check(self, layout)
    }

    fn remarks(&self, layout: &Layout, classes: usize) -> Vec<String> {
        Policy::remarks(self, layout, classes)
    }

    fn one_scheduler(&self) -> bool {
        Policy::one_scheduler(self)
    }

    fn extras_on(&self, layout: &Layout) -> u32 {
        Policy::extras(self, layout)
    }

    fn cores_on(&self, layout: &Layout) -> Option<Vec<u32>> {
        Policy::cores(self, layout)
    }

    fn beside(&self, extra: u32, layout: &Layout) -> Option<u32> {
        Policy::beside(self, extra, layout)
    }

    fn needs_long(&self) -> Option<&'static str> {
        Policy::needs_long(self)
    }

    fn patience(&self) -> Option<Span> {
        Policy::patience(self)
    }

    fn longest_wait(&self) -> Span {
        Policy::longest_wait(self)
    }

    fn lossless(&self) -> Option<&'static str> {
        Policy::lossless(self)
    }

    fn reservations(&self, tasks: u32) -> u64 {
        Policy::reservations(self, tasks)
    }

    fn time_slice(&self) -> Option<(&'static str, Span)> {
        Policy::time_slice(self)
    }

    fn oracle(&self) -> Option<&'static str> {
        Policy::oracle(self)
    }

    fn cached_nodes(&self, layout: &Layout) -> u32 {
        Policy::cached_nodes(self, layout)
    }

    fn machine(&self, me: ActorId, layout: &Layout, lossy: bool, observed: bool) -> Box<dyn Machine> {
        Policy::machine(self, me, layout, lossy, observed)
    }
}
