//! Parcels for other shards, and counters of messages.

use volary_actors::base::Class;
use volary_actors::message::KINDS;

use crate::parcel::Parcel;

/// Counters of messages.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Traffic {
    /// Messages sent over the network, indexed as [`KINDS`].
    pub by_kind: [u64; KINDS.len()],
    /// Number of these messages that repair losses.
    pub recovery: u64,
    /// Datagrams lost and stream messages returned to their sender.
    pub dropped: u64,
    /// Retransmissions by streams.
    pub retransmissions: u64,
}

/// Parcels for other shards, by shard and class, in the order in which they were sent.
#[derive(Debug)]
pub struct Outbox {
    boxes: Vec<[Vec<Parcel>; 2]>,
    filled: bool,
}

impl Outbox {
    /// An empty outbox for a number of shards.
    pub fn new(shards: u16) -> Self {
        Self { boxes: (0..shards).map(|_| [Vec::new(), Vec::new()]).collect(), filled: false }
    }

    pub(super) fn put(&mut self, home: u16, parcel: Parcel) {
        let class = KINDS[parcel.msg.kind() as usize].1;
        self.boxes[home as usize][usize::from(class == Class::Datagram)].push(parcel);
        self.filled = true;
    }

    /// Passes the waiting parcels to `give`: shard, class and parcels, to be drained or taken. Parcels that it leaves
    /// stay in the outbox.
    pub fn flush(&mut self, mut give: impl FnMut(u16, Class, &mut Vec<Parcel>)) {
        if !std::mem::take(&mut self.filled) {
            return;
        }
        for (shard, [streams, datagrams]) in self.boxes.iter_mut().enumerate() {
            for (class, parcels) in [(Class::Stream, streams), (Class::Datagram, datagrams)] {
                if !parcels.is_empty() {
                    give(shard as u16, class, parcels);
                    self.filled |= !parcels.is_empty();
                }
            }
        }
    }
}
