//! The log of broadcasts, which schedulers read before their next steps.

use volary_actors::base::{ActorId, Time};
use volary_actors::layout::Layout;
use volary_actors::machine::Effect;
use volary_actors::message::Message;

/// A broadcast and the time of its arrival.
#[derive(Clone, Copy, Debug)]
pub(super) struct BroadcastEntry {
    pub(super) at: Time,
    pub(super) from: ActorId,
    pub(super) msg: Message,
}

const _: () = assert!(size_of::<BroadcastEntry>() == 48, "the memory of a full log is counted in entries");

/// Broadcasts in order of arrival, with a cursor for each scheduler.
#[derive(Debug)]
pub(super) struct BroadcastLog {
    pub(super) entries: Vec<BroadcastEntry>,
    /// Id of scheduler 0.
    pub(super) first: u32,
    /// Number of entries that each scheduler has read.
    pub(super) cursors: Vec<u32>,
    /// Watched schedulers.
    pub(super) watched: Vec<u32>,
    /// Number of entries that all watched schedulers have read.
    pub(super) read: usize,
    /// A reused buffer.
    pub(super) effects: Vec<Effect>,
}

impl BroadcastLog {
    /// Number of entries, of 48 bytes each, at which every scheduler reads the log and it is cleared.
    pub(super) const FULL: usize = 1 << 20;

    pub(super) fn new(layout: &Layout, is_watched: impl Fn(u32) -> bool) -> Self {
        let schedulers = layout.schedulers();
        Self {
            entries: Vec::new(),
            first: layout.scheduler(0).0,
            cursors: vec![0; schedulers as usize],
            watched: (0..schedulers).filter(|&reader| is_watched(reader)).collect(),
            read: 0,
            effects: Vec::new(),
        }
    }

    /// Whether an actor has entries to read before it is stepped.
    #[inline]
    pub(super) fn has_unread(&self, actor: ActorId) -> bool {
        !self.entries.is_empty()
            && self.reader(actor).is_some_and(|reader| (self.cursors[reader] as usize) < self.entries.len())
    }

    #[inline]
    pub(super) fn reader(&self, actor: ActorId) -> Option<usize> {
        let reader = actor.0.wrapping_sub(self.first) as usize;
        (reader < self.cursors.len()).then_some(reader)
    }
}
