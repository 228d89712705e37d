//! What leaves a shard for others.

use volary_actors::base::Class;
use volary_actors::message::KINDS;

use crate::parcel::Parcel;

/// Which endpoints live on which shard.
#[derive(Clone, Copy, Debug)]
pub struct Placement<'a> {
    /// The shard of every endpoint; empty if there is one only.
    homes: &'a [u16],
    /// The shard in question.
    me: u16,
    shards: u16,
}

impl<'a> Placement<'a> {
    /// One shard owns everything.
    pub const ALONE: Placement<'static> = Placement { homes: &[], me: 0, shards: 1 };

    /// Shard `me` of `shards`, where `homes` says for every endpoint on which it lives.
    #[must_use]
    pub const fn new(homes: &'a [u16], me: u16, shards: u16) -> Self {
        Self { homes, me, shards }
    }

    /// Whether this shard owns an endpoint.
    #[inline]
    #[must_use]
    pub fn owns(&self, endpoint: usize) -> bool {
        self.homes.is_empty() || self.homes[endpoint] == self.me
    }

    /// The shard of an endpoint.
    #[must_use]
    pub fn home(&self, endpoint: usize) -> u16 {
        self.homes.get(endpoint).copied().unwrap_or(self.me)
    }

    /// How many shards there are.
    #[must_use]
    pub const fn shards(&self) -> u16 {
        self.shards
    }
}

/// Parcels for other shards, by shard and class, in the order they were sent.
#[derive(Debug)]
pub struct Outbox {
    boxes: Vec<[Vec<Parcel>; 2]>,
    filled: bool,
}

impl Outbox {
    /// An empty outbox for so many shards.
    #[must_use]
    pub fn new(shards: u16) -> Self {
        Self { boxes: (0..shards).map(|_| [Vec::new(), Vec::new()]).collect(), filled: false }
    }

    pub(super) fn put(&mut self, home: u16, parcel: Parcel) {
        let class = KINDS[parcel.msg.kind() as usize].1;
        self.boxes[home as usize][usize::from(class == Class::Datagram)].push(parcel);
        self.filled = true;
    }

    /// Hands over what waits: shard, class and parcels, which may be drained or taken. Those it leaves stay.
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
