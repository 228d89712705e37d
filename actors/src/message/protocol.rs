//! The trait of a protocol, and the macro that implements it from a table.

use crate::base::{Class, JobId, TaskId};
use crate::catalog::Catalog;
use crate::layout::{Layout, Role};

/// The kinds of messages of one protocol, in a fixed order. Implemented by [`protocol!`](protocol).
pub(super) trait Protocol {
    /// Name and class of each kind.
    const KINDS: &'static [(&'static str, Class)];
    /// Length of the longest message of each kind, bytes, in the encoding of messages between hosts.
    const BYTES: &'static [u32];
    /// The index of this message in [`KINDS`](Self::KINDS).
    fn kind(&self) -> u8;
    /// True for continuation fragments.
    fn is_fragment(&self) -> bool;
    /// The job that the message concerns, if any.
    fn job(&self) -> Option<JobId>;
    /// True if sender and receiver have the roles of this message, and all its indices are within bounds.
    fn check(&self, run: &Run<'_>) -> bool;
}

/// Implements [`Protocol`] for a message type from a table with one row a kind:
///
/// ```text
/// label = "wire name", class, bytes, Role -> Role | Role -> Role: pattern if bounds => job,
/// ```
///
/// The order of the rows numbers the kinds. The bytes are those of [`Protocol::BYTES`]. The patterns must be exhaustive
/// and disjoint. The bounds, an optional expression over `run` and the names of the pattern, keep an index within the
/// table it is used with; they do not check whether a message is plausible. The job is the one that the message
/// concerns, if any. `(fragments: pattern)` names the messages that continue the message before them.
macro_rules! protocol {
    (
        $message:ident in $run:ident
        $((fragments: $fragment:pat))?;
        $($label:ident = $name:literal, $class:ident, $bytes:literal,
            $($from:ident -> $to:ident)|+ : $pattern:pat $(if $bounds:expr)? $(=> $job:expr)?),+ $(,)?
    ) => {
        impl $crate::message::protocol::Protocol for $message {
            const KINDS: &'static [(&'static str, $crate::base::Class)] =
                &[$(($name, $crate::base::Class::$class)),+];
            const BYTES: &'static [u32] = &[$($bytes),+];

            #[inline]
            fn kind(&self) -> u8 {
                enum Kind { $($label),+ }
                #[allow(unused_variables, reason = "the bounds below use what the pattern binds")]
                let kind = match *self { $($pattern => Kind::$label),+ };
                kind as u8
            }

            #[inline]
            fn is_fragment(&self) -> bool {
                false $(|| matches!(*self, $fragment))?
            }

            #[allow(unused_variables, reason = "the bounds below use what the pattern binds")]
            #[allow(unreachable_patterns, clippy::match_single_binding, clippy::useless_conversion, reason = "all kinds or none may have a job")]
            fn job(&self) -> Option<$crate::base::JobId> {
                match *self {
                    $($($pattern => $job.into(),)?)+
                    _ => None,
                }
            }

            #[allow(unused_variables, reason = "the job above uses what the pattern binds")]
            fn check(&self, $run: &$crate::message::protocol::Run<'_>) -> bool {
                use $crate::layout::Role;
                match *self {
                    $($pattern => {
                        matches!(($run.from, $run.to), $((Role::$from { .. }, Role::$to { .. }))|+) $(&& $bounds)?
                    })+
                }
            }
        }
    };
}
pub(super) use protocol;

/// The sender and receiver of a message, and the run of both.
pub struct Run<'a> {
    /// The sender.
    pub from: Role,
    /// The receiver.
    pub to: Role,
    /// All actors.
    pub layout: &'a Layout,
    /// The jobs.
    pub catalog: &'a dyn Catalog,
}

impl Run<'_> {
    /// Whether the run has this job.
    pub fn has_job(&self, job: JobId) -> bool {
        job.0 < self.catalog.jobs()
    }

    /// Whether the run has this task.
    pub fn has_task(&self, task: TaskId) -> bool {
        self.has_job(task.job) && task.index < self.catalog.tasks(task.job)
    }

    /// Whether the run has a node of this number.
    pub fn has_node(&self, node: u32) -> bool {
        node < self.layout.nodes()
    }

    /// Whether the run has a core of this number, counted over all nodes.
    pub fn has_core(&self, core: u32) -> bool {
        core < self.layout.workers()
    }

    /// Whether the run has a scheduler of this number.
    pub fn has_scheduler(&self, scheduler: u32) -> bool {
        scheduler < self.layout.schedulers()
    }
}
