//! A link: batches of parcels in both directions over one connection.
//!
//! Stream parcels use one long-lived stream per direction; all queued parcels are sent in one write. Datagram parcels
//! are packed into datagrams that carry the number of their first parcel, so that the receiver counts lost parcels and
//! drops duplicates. The send queue is bounded: if the reader is slow, [`Link::waiting`] grows until [`Link::send`]
//! returns [`SendError::Full`].

use std::collections::VecDeque;
use std::convert::Infallible;
use std::mem;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use quinn::SendDatagramError;
use thiserror::Error;
use tokio::sync::{Notify, mpsc};
use tokio::task::{AbortHandle, JoinSet};
use volary_actors::base::Class;
use volary_engine::parcel::Parcel;
use volary_experiment::codec::{self, Batch, CodecError, PARCEL_FRAME};
use volary_experiment::guard::guard;

use super::connection::{Close, Connection, End};
use super::framed::FrameReader;

/// An event of a link. All links of one owner share one bounded channel.
#[derive(Debug)]
pub struct Arrival {
    /// The number that the owner gave the link.
    pub link: usize,
    pub event: LinkEvent,
}

/// The events that a link delivers to its owner.
#[derive(Debug)]
pub enum LinkEvent {
    /// Received parcels. Parcels of the stream are in the order of sending.
    Parcels(Vec<Parcel>),
    /// The link has ended; nothing follows.
    Ended(End),
}

/// The reason why parcels were not queued for sending.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum SendError {
    /// The queue is full, and no parcel was queued; retry after [`Link::room`].
    #[error("{waiting} bytes wait for a slow peer")]
    Full { waiting: usize },
    /// The link has ended.
    #[error(transparent)]
    Ended(#[from] End),
}

/// Counts since the link's start, in parcels unless said otherwise.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct LinkStats {
    /// Datagram parcels passed to the network.
    pub datagram_sent: u64,
    /// Datagram parcels dropped before sending, because the network did not take them fast enough.
    pub datagram_dropped: u64,
    /// Parcels received, on the stream and as datagrams, without duplicates.
    pub received: u64,
    /// Parcels of `received` that arrived as datagrams.
    pub datagram_received: u64,
    /// Datagram parcels of the peer that have not arrived, although later parcels have arrived.
    pub datagram_missing: u64,
    /// Duplicate datagrams, which were not delivered.
    pub datagrams_repeated: u64,
}

/// A link to a peer. Dropping it aborts its tasks, without an [`Arrival`].
#[derive(Debug)]
pub struct Link {
    state: Arc<LinkState>,
    tasks: AbortHandle,
}

#[derive(Debug)]
struct LinkState {
    connection: Connection,
    queue_limit: usize,
    queue: Mutex<SendQueue>,
    /// Notified when the queue is no longer empty.
    wake: Notify,
    /// Notified when the queue became shorter, or the link ended.
    moved: Notify,
    stats: Mutex<LinkStats>,
}

#[derive(Debug, Default)]
struct SendQueue {
    /// Frames that the writer has not taken.
    pending: Vec<u8>,
    /// Bytes that the writer has taken and not written.
    writing: usize,
    batches: u64,
    /// Number of the next datagram parcel.
    number: u64,
    datagram: Vec<u8>,
    end: Option<End>,
}

impl Link {
    /// Starts sending and receiving parcels over `connection`, at most once for each connection and side.
    ///
    /// Events go to `inbox` with the number `link`. While the inbox is full nothing is read: flow control then holds up
    /// the peer's stream, and its datagrams are lost once [`Options::datagrams`](super::Options::datagrams) bytes wait.
    /// A parcel that `check` rejects ends the connection. `queue` bounds the send queue in bytes, to within one call of
    /// [`send`](Self::send).
    pub fn start(
        connection: &Connection,
        queue: usize,
        link: usize,
        check: impl Fn(&Parcel) -> bool + Send + Sync + 'static,
        inbox: mpsc::Sender<Arrival>,
    ) -> Self {
        let state = Arc::new(LinkState {
            connection: connection.clone(),
            queue_limit: queue.max(1),
            queue: Mutex::default(),
            wake: Notify::new(),
            moved: Notify::new(),
            stats: Mutex::default(),
        });
        let deliver = Deliver { state: Arc::clone(&state), link, check: Arc::new(check), inbox };
        let tasks = tokio::spawn(deliver.supervise()).abort_handle();
        Self { state, tasks }
    }

    /// Queues parcels for sending, without waiting.
    ///
    /// Parcels of [`Class::Stream`] are all queued or, on an error, none; they are not lost while the link lasts.
    /// Parcels of [`Class::Datagram`] that the network does not take at once are dropped and counted, without an error.
    pub fn send(&self, parcels: &[Parcel], class: Class) -> Result<(), SendError> {
        let mut queue = guard(&self.state.queue);
        if let Some(end) = &queue.end {
            return Err(end.clone().into());
        }
        if parcels.is_empty() {
            return Ok(());
        }
        match class {
            Class::Stream => self.state.frame(&mut queue, parcels),
            Class::Datagram => self.state.pack(&mut queue, parcels),
        }
    }

    /// Bytes of queued stream parcels.
    pub fn waiting(&self) -> usize {
        guard(&self.state.queue).waiting()
    }

    /// Waits until at most `bytes` are queued, or until the link ends.
    pub async fn room(&self, bytes: usize) -> Result<(), End> {
        loop {
            let moved = self.state.moved.notified();
            {
                let queue = guard(&self.state.queue);
                if let Some(end) = &queue.end {
                    return Err(end.clone());
                }
                if queue.waiting() <= bytes {
                    return Ok(());
                }
            }
            moved.await;
        }
    }

    /// Closes the connection with [`Close::Done`]; the peer receives `reason`.
    pub fn close(&self, reason: &str) {
        self.state.connection.close(Close::Done, reason);
    }

    /// The counts so far.
    pub fn stats(&self) -> LinkStats {
        *guard(&self.state.stats)
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.tasks.abort();
    }
}

impl SendQueue {
    fn waiting(&self) -> usize {
        self.pending.len() + self.writing
    }
}

impl LinkState {
    fn frame(&self, queue: &mut SendQueue, parcels: &[Parcel]) -> Result<(), SendError> {
        let waiting = queue.waiting();
        if waiting >= self.queue_limit {
            return Err(SendError::Full { waiting });
        }
        let mut rest = parcels;
        while !rest.is_empty() {
            let taken = codec::encode_batch_frame(queue.batches, rest, &mut queue.pending);
            assert!(taken > 0, "a frame has room for any parcel");
            queue.batches += 1;
            rest = &rest[taken..];
        }
        self.wake.notify_one();
        Ok(())
    }

    fn pack(&self, queue: &mut SendQueue, parcels: &[Parcel]) -> Result<(), SendError> {
        let connection = &self.connection.quic;
        // `None` if the peer does not accept datagrams.
        let room = connection.max_datagram_size().unwrap_or(0);
        let mut rest = parcels;
        while !rest.is_empty() {
            queue.datagram.clear();
            let taken = codec::encode_batch(queue.number, rest, room, &mut queue.datagram);
            if taken == 0 {
                guard(&self.stats).datagram_dropped += rest.len() as u64;
                break;
            }
            // With a full buffer QUIC would drop older datagrams, which could not be counted.
            let fits = connection.datagram_send_buffer_space() >= queue.datagram.len();
            let sent = fits
                && match connection.send_datagram(Bytes::copy_from_slice(&queue.datagram)) {
                    Ok(()) => true,
                    // The path's MTU shrank in between, or the peer does not accept datagrams.
                    Err(
                        SendDatagramError::TooLarge
                        | SendDatagramError::UnsupportedByPeer
                        | SendDatagramError::Disabled,
                    ) => false,
                    Err(SendDatagramError::ConnectionLost(error)) => return Err(End::from(error).into()),
                };
            rest = &rest[taken..];
            let (taken, mut stats) = (taken as u64, guard(&self.stats));
            if sent {
                stats.datagram_sent += taken;
                queue.number += taken;
            } else {
                stats.datagram_dropped += taken;
            }
        }
        Ok(())
    }

    /// Writes the whole queue to a stream at once.
    async fn write(self: Arc<Self>) -> Result<Infallible, End> {
        let mut stream = self.connection.quic.open_uni().await?;
        let mut bytes = Vec::new();
        loop {
            {
                let mut queue = guard(&self.queue);
                mem::swap(&mut queue.pending, &mut bytes);
                queue.writing = bytes.len();
            }
            if bytes.is_empty() {
                self.wake.notified().await;
                continue;
            }
            let mut written = 0;
            while written < bytes.len() {
                written += stream.write(&bytes[written..]).await?;
                guard(&self.queue).writing = bytes.len() - written;
                self.moved.notify_waiters();
            }
            bytes.clear();
        }
    }
}

/// The receiving side of a link.
#[derive(Clone)]
struct Deliver {
    state: Arc<LinkState>,
    link: usize,
    check: Arc<dyn Fn(&Parcel) -> bool + Send + Sync>,
    inbox: mpsc::Sender<Arrival>,
}

impl Deliver {
    /// Runs the link's tasks until one of them ends.
    async fn supervise(self) {
        let mut tasks = JoinSet::new();
        tasks.spawn(Arc::clone(&self.state).write());
        tasks.spawn(self.clone().streams());
        tasks.spawn(self.clone().datagrams());
        let end = match tasks.join_next().await {
            Some(Ok(Err(end))) => self.state.connection.fail(end),
            Some(Err(error)) => End::Broken(error.to_string()),
            None => End::Here,
        };
        guard(&self.state.queue).end = Some(end.clone());
        self.state.moved.notify_waiters();
        drop(tasks);
        // Fails if the owner has dropped its inbox.
        let _ = self.inbox.send(Arrival { link: self.link, event: LinkEvent::Ended(end) }).await;
    }

    async fn streams(self) -> Result<Infallible, End> {
        let quic = &self.state.connection.quic;
        let mut frames = FrameReader::new(quic.accept_uni().await?, PARCEL_FRAME);
        let mut expected = 0;
        loop {
            let mut parcels = Vec::new();
            let read = self.batches(&mut frames, &mut expected, &mut parcels).await;
            if !parcels.is_empty() {
                self.deliver(parcels).await;
            }
            match read {
                // A closed connection has a more precise reason than the stream that it closes.
                Err(End::Stream) => return Err(quic.close_reason().map_or(End::Stream, End::from)),
                read => read?,
            }
        }
    }

    /// Waits for a batch; reads it and further batches that arrived with it.
    async fn batches(
        &self,
        frames: &mut FrameReader,
        expected: &mut u64,
        parcels: &mut Vec<Parcel>,
    ) -> Result<(), End> {
        let mut next = Some(frames.next().await?.ok_or(End::Stream)?);
        while let Some(frame) = next {
            let batch = Batch::open(frame)?;
            if batch.sequence != *expected {
                return Err(CodecError::Sequence { found: batch.sequence, expected: *expected }.into());
            }
            *expected += 1;
            parcels.reserve(batch.estimated_len());
            batch.read(&*self.check, parcels)?;
            next = frames.ready()?;
        }
        Ok(())
    }

    async fn datagrams(self) -> Result<Infallible, End> {
        let mut sequence = Sequence::default();
        loop {
            let datagram = self.state.connection.quic.read_datagram().await?;
            let batch = Batch::open(&datagram)?;
            let (first, mut parcels) = (batch.sequence, Vec::with_capacity(batch.estimated_len()));
            batch.read(&*self.check, &mut parcels)?;
            let new = sequence.is_new(first, parcels.len() as u64);
            {
                let mut stats = guard(&self.state.stats);
                stats.datagram_missing = sequence.missing();
                stats.datagram_received = sequence.received;
                stats.datagrams_repeated += u64::from(!new);
            }
            if new {
                self.deliver(parcels).await;
            }
        }
    }

    async fn deliver(&self, parcels: Vec<Parcel>) {
        guard(&self.state.stats).received += parcels.len() as u64;
        // Fails if the owner has dropped its inbox; the link lasts until it is dropped too.
        let _ = self.inbox.send(Arrival { link: self.link, event: LinkEvent::Parcels(parcels) }).await;
    }
}

/// Number of datagrams in the window; older datagrams are treated as duplicates.
const WINDOW: usize = 64;

/// Duplicate and loss detection: a sliding window over datagrams, as in IPsec (RFC 4303, section 3.4.3). A datagram
/// carries the number of its first parcel, so that losses are counted in parcels.
#[derive(Clone, Debug, Default)]
struct Sequence {
    /// First numbers of the latest datagrams, sorted.
    recent: VecDeque<u64>,
    /// One more than the largest number received.
    end: u64,
    /// Number of parcels received.
    received: u64,
}

impl Sequence {
    /// Records a datagram of `parcels` parcels that are numbered from `first`; false if it is a duplicate
    /// or older than the window.
    fn is_new(&mut self, first: u64, parcels: u64) -> bool {
        let full = self.recent.len() == WINDOW;
        match self.recent.binary_search(&first) {
            Ok(_) => return false,
            Err(0) if full => return false,
            Err(at) => self.recent.insert(at, first),
        }
        if full {
            self.recent.pop_front();
        }
        self.received += parcels;
        self.end = self.end.max(first.saturating_add(parcels));
        true
    }

    /// Number of parcels before the latest parcel that have not been received so far.
    fn missing(&self) -> u64 {
        // Numbers of a faulty peer may overlap.
        self.end.saturating_sub(self.received)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn lost_repeated_and_late_datagrams_are_counted() {
        let mut sequence = Sequence::default();
        let new =
            [(0, 2), (2, 1), (8, 5), (8, 5), (3, 3), (3, 3)].map(|(at, count)| sequence.is_new(at, count));
        assert_eq!(new, [true, true, true, false, true, false]);
        assert_eq!(sequence.missing(), 2, "parcels 6 and 7");
        assert!(sequence.is_new(6, 2));
        assert_eq!(sequence.missing(), 0);
        assert_eq!([u64::MAX, u64::MAX].map(|number| sequence.is_new(number, 9)), [true, false]);
    }

    #[test]
    fn datagrams_before_the_window_are_duplicates() {
        let mut sequence = Sequence::default();
        (1..=WINDOW as u64).for_each(|i| assert!(sequence.is_new(10 * i, 10)));
        assert!(!sequence.is_new(0, 10));
        assert_eq!(sequence.missing(), 10);
    }

    proptest! {
        /// Duplicate detection agrees with an unbounded set on every datagram within the window. The n-th datagram
        /// holds n % 7 + 1 parcels.
        #[test]
        fn duplicate_detection_agrees_with_an_unbounded_set(datagrams in proptest::collection::vec(0_usize..300, 0..400)) {
            let firsts: Vec<u64> = (0..=300).scan(0, |sum, n| {
                let first = *sum;
                *sum += n % 7 + 1;
                Some(first)
            }).collect();
            let (mut sequence, mut all) = (Sequence::default(), BTreeSet::new());
            for n in datagrams {
                let oldest = all.iter().rev().nth(WINDOW - 1);
                let unknown = !all.contains(&n) && oldest.is_none_or(|oldest| n > *oldest);
                prop_assert_eq!(sequence.is_new(firsts[n], n as u64 % 7 + 1), unknown);
                if unknown {
                    all.insert(n);
                }
            }
            let upto = all.last().map_or(0, |last| firsts[last + 1]);
            let came: u64 = all.iter().map(|&n| n as u64 % 7 + 1).sum();
            prop_assert_eq!(sequence.missing(), upto - came);
        }
    }
}
