//! Bindings: which node a copy goes to, and when.

use super::rule::Cluster;
use crate::base::{ActorId, CopyId, JobId, TaskId, parameters};
use crate::machine::Effects;
use crate::message::{Launch, Message, Row};

parameters! {
    /// The nodes to which copies are sent.
    enum CopyBinding {
        /// To free cores, from one queue: the only scheduler, which knows the free cores, holds it.
        #[default]
        Central,
        /// To the first free core of two random nodes for each copy, reserved as by Sparrow's batch sampling.
        Sparrow,
        /// To random nodes, where they wait.
        Random,
    }
}

/// The reason for sending a copy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LaunchReason {
    /// Its task has no copy.
    First,
    /// Its task has a slow copy.
    Backup,
    /// The copy before it was lost.
    Lost,
}

/// A copy that needs a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WantedCopy {
    /// The copy.
    pub copy: CopyId,
    /// The reason for sending it.
    pub reason: LaunchReason,
}

/// The outcome of a request for a backup.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BackupPlace {
    /// It goes to this node.
    Node(ActorId),
    /// A node will claim it.
    Reserved,
}

/// A binding of copies to nodes.
pub trait NodeBinding: Send {
    /// Queues the first copies of a job's tasks.
    fn open(&mut self, job: JobId, tasks: u32, attempt: u32, fx: &mut Effects<'_>);

    /// Queues a copy of a task that has no other: the successor of a lost one before all others, that of a restarted
    /// one in second place.
    fn again(&mut self, wanted: WantedCopy, fx: &mut Effects<'_>);

    /// The next queued copy whose task is needed, and a node for it, if there is one now.
    fn next(
        &mut self,
        needed: impl FnMut(TaskId) -> bool,
        fx: &mut Effects<'_>,
    ) -> Option<(WantedCopy, ActorId)>;

    /// A node that fits for a backup; `None` if there is none.
    fn back_up(
        &mut self,
        copy: CopyId,
        fits: impl Fn(ActorId) -> bool,
        fx: &mut Effects<'_>,
    ) -> Option<BackupPlace>;

    /// The message that carries a copy to its node; `group` is that of the claim it answers, if there was one.
    fn launch(copy: CopyId, _group: u32) -> Message {
        Launch::Row(Row::single(copy)).into()
    }

    /// The copy for a node that claims one for a group of a job.
    fn claimed(
        &mut self,
        _node: ActorId,
        _job: JobId,
        _group: u32,
        _needed: impl FnMut(TaskId) -> bool,
        _fx: &mut Effects<'_>,
    ) -> Option<WantedCopy> {
        None
    }

    /// Called when a copy that no node has claimed yet is not wanted any more.
    fn withdrawn(&mut self, _copy: CopyId, _fx: &mut Effects<'_>) {}

    /// Called when a copy left a node: it ended, was stopped, or never arrived.
    fn freed(&mut self, _node: ActorId) {}

    /// Called when a job is finished.
    fn close(&mut self, _job: JobId, _fx: &mut Effects<'_>) {}

    /// Called when a job's requests are due to be repeated.
    fn repeat(&mut self, _job: JobId, _fx: &mut Effects<'_>) {}

    /// Called when an actor crashed, before its copies are taken back.
    fn down(&mut self, actor: ActorId, fx: &mut Effects<'_>);

    /// Called when an actor is back.
    fn up(&mut self, actor: ActorId, fx: &mut Effects<'_>);

    /// The cluster as far as it is known, with `sent` copies on nodes.
    fn cluster(&self, sent: u32, backups: u32) -> Cluster;
}
