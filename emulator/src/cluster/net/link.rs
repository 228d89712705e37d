//! A link: batches of parcels in both directions over one connection.
//!
//! Stream parcels use one long-lived stream per direction; all that are queued go in one write. Datagram parcels are
//! packed into datagrams that carry the number of their first parcel, so that the receiver counts lost parcels and
//! drops duplicates. The send queue is bounded: with a slow reader [`Link::waiting`] grows, then [`Link::send`] returns
//! [`SendError::Full`].

use std::mem;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use quinn::{SendDatagramError, SendStream};
use thiserror::Error;
use tokio::sync::{Notify, mpsc};
use tokio::task::{AbortHandle, JoinSet};
use volary_actors::base::Class;

use super::connection::Connection;
use super::end::{Close, End};
use super::frames::FrameReader;
use super::sequence::Sequence;
use crate::codec::{self, Batch, CodecError, PARCEL_FRAME};
use crate::guard::guard;
use volary_engine::parcel::Parcel;

/// An event of one of an owner's links; all of them share one bounded channel.
#[derive(Debug)]
pub struct Arrival {
    /// The number the owner gave the link.
    pub link: usize,
    pub event: LinkEvent,
}

/// What a link delivers to its owner.
#[derive(Debug)]
pub enum LinkEvent {
    /// Received parcels; those of the stream in the order of sending.
    Parcels(Vec<Parcel>),
    /// The link has ended; nothing follows.
    Ended(End),
}

/// Why parcels were not queued for sending.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum SendError {
    /// The queue is full, none were queued; retry after [`Link::room`].
    #[error("{waiting} bytes wait for a slow peer")]
    Full { waiting: usize },
    /// The link has ended.
    #[error(transparent)]
    Ended(#[from] End),
}

/// Counts since the link's start, in parcels unless said otherwise.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct LinkStats {
    /// Stream parcels queued for sending.
    pub stream_sent: u64,
    /// Datagram parcels passed to the network.
    pub datagram_sent: u64,
    /// Datagram parcels dropped before sending, because the network did not take them fast enough.
    pub datagram_dropped: u64,
    /// Parcels received in both ways.
    pub received: u64,
    /// Datagram parcels of the peer that have not arrived, although later ones have.
    pub datagram_missing: u64,
    /// Duplicate datagrams, which were not delivered.
    pub datagrams_repeated: u64,
}

/// [`LinkStats`] as the link's tasks count them.
#[derive(Debug, Default)]
struct LinkCounters {
    stream_sent: AtomicU64,
    datagram_sent: AtomicU64,
    datagram_dropped: AtomicU64,
    received: AtomicU64,
    datagram_missing: AtomicU64,
    datagrams_repeated: AtomicU64,
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
    /// The queue is no longer empty.
    wake: Notify,
    /// The queue became shorter, or the link ended.
    moved: Notify,
    counts: LinkCounters,
    /// Bytes of queued stream parcels, readable without the lock.
    waiting: AtomicUsize,
}

#[derive(Debug, Default)]
struct SendQueue {
    /// Frames not yet taken by the writer.
    pending: Vec<u8>,
    /// Bytes that the writer has taken and not yet written.
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
    /// Events go to `inbox` with the number `link`; while that is full nothing is read, which holds up the peer. A
    /// parcel that `check` rejects ends the connection. `queue` bounds the send queue in bytes, to within one call of
    /// [`send`](Self::send).
    pub fn start<C>(
        connection: &Connection,
        queue: usize,
        link: usize,
        check: C,
        inbox: mpsc::Sender<Arrival>,
    ) -> Self
    where
        C: Fn(&Parcel) -> bool + Clone + Send + Sync + 'static,
    {
        let state = Arc::new(LinkState {
            connection: connection.clone(),
            queue_limit: queue.max(1),
            queue: Mutex::default(),
            wake: Notify::new(),
            moved: Notify::new(),
            counts: LinkCounters::default(),
            waiting: AtomicUsize::new(0),
        });
        let deliver = Deliver { state: Arc::clone(&state), link, check, inbox };
        let tasks = tokio::spawn(supervise(Arc::clone(&state), deliver)).abort_handle();
        Self { state, tasks }
    }

    /// Queues parcels for sending, all or none, without waiting.
    ///
    /// Parcels of [`Class::Stream`] are not lost while the link lasts. Those of [`Class::Datagram`] may be; dropping
    /// them here is counted and is no error.
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
        self.state.waiting.load(Ordering::Relaxed)
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
        self.state.counts.read()
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.tasks.abort();
    }
}

impl LinkCounters {
    fn read(&self) -> LinkStats {
        let get = |count: &AtomicU64| count.load(Ordering::Relaxed);
        LinkStats {
            stream_sent: get(&self.stream_sent),
            datagram_sent: get(&self.datagram_sent),
            datagram_dropped: get(&self.datagram_dropped),
            received: get(&self.received),
            datagram_missing: get(&self.datagram_missing),
            datagrams_repeated: get(&self.datagrams_repeated),
        }
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
        self.waiting.store(queue.waiting(), Ordering::Relaxed);
        self.counts.stream_sent.fetch_add(parcels.len() as u64, Ordering::Relaxed);
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
                self.counts.datagram_dropped.fetch_add(rest.len() as u64, Ordering::Relaxed);
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
            let count = if sent { &self.counts.datagram_sent } else { &self.counts.datagram_dropped };
            count.fetch_add(taken as u64, Ordering::Relaxed);
            queue.number += if sent { taken as u64 } else { 0 };
            rest = &rest[taken..];
        }
        Ok(())
    }

    fn end(&self, end: &End) {
        guard(&self.queue).end = Some(end.clone());
        self.moved.notify_waiters();
    }
}

/// Runs the link's tasks until one of them ends.
async fn supervise<C>(state: Arc<LinkState>, deliver: Deliver<C>)
where
    C: Fn(&Parcel) -> bool + Clone + Send + Sync + 'static,
{
    let mut parts = JoinSet::new();
    parts.spawn(write(Arc::clone(&state)));
    parts.spawn(deliver.clone().streams());
    parts.spawn(deliver.clone().datagrams());
    let end = match parts.join_next().await {
        Some(Ok(end)) => state.connection.fail(end),
        Some(Err(error)) => End::Broken(error.to_string()),
        None => End::Here,
    };
    state.end(&end);
    drop(parts);
    // Fails if the owner has dropped its inbox.
    let _ = deliver.inbox.send(Arrival { link: deliver.link, event: LinkEvent::Ended(end) }).await;
}

/// Writes the queue to the stream, all of it at once.
async fn write(state: Arc<LinkState>) -> End {
    let stream = match state.connection.quic.open_uni().await {
        Ok(stream) => stream,
        Err(error) => return error.into(),
    };
    match write_on(&state, stream).await {
        Err(end) => end,
        Ok(never) => match never {},
    }
}

async fn write_on(state: &LinkState, mut stream: SendStream) -> Result<std::convert::Infallible, End> {
    let mut bytes = Vec::new();
    loop {
        {
            let mut queue = guard(&state.queue);
            mem::swap(&mut queue.pending, &mut bytes);
            queue.writing = bytes.len();
        }
        if bytes.is_empty() {
            state.wake.notified().await;
            continue;
        }
        let mut written = 0;
        while written < bytes.len() {
            written += stream.write(&bytes[written..]).await?;
            {
                let mut queue = guard(&state.queue);
                queue.writing = bytes.len() - written;
                state.waiting.store(queue.waiting(), Ordering::Relaxed);
            }
            state.moved.notify_waiters();
        }
        bytes.clear();
    }
}

/// The receiving side of a link.
#[derive(Clone)]
struct Deliver<C> {
    state: Arc<LinkState>,
    link: usize,
    check: C,
    inbox: mpsc::Sender<Arrival>,
}

impl<C: Fn(&Parcel) -> bool + Clone + Send + Sync + 'static> Deliver<C> {
    async fn streams(self) -> End {
        let stream = match self.state.connection.quic.accept_uni().await {
            Ok(stream) => stream,
            Err(error) => return error.into(),
        };
        let mut frames = FrameReader::new(stream, PARCEL_FRAME);
        let mut expected = 0;
        loop {
            let mut parcels = Vec::new();
            let read = self.batches(&mut frames, &mut expected, &mut parcels).await;
            if !parcels.is_empty() {
                self.deliver(parcels).await;
            }
            match read {
                Ok(()) => {}
                // A closed connection has a more precise reason than the stream that it closes.
                Err(End::Stream) => {
                    break self.state.connection.quic.close_reason().map_or(End::Stream, End::from);
                }
                Err(end) => break end,
            }
        }
    }

    /// Waits for a batch; reads it and those that arrived with it.
    async fn batches(
        &self,
        frames: &mut FrameReader,
        expected: &mut u64,
        parcels: &mut Vec<Parcel>,
    ) -> Result<(), End> {
        let first = frames.next().await?.ok_or(End::Stream)?;
        self.batch(first, expected, parcels)?;
        while let Some(frame) = frames.ready()? {
            self.batch(frame, expected, parcels)?;
        }
        Ok(())
    }

    fn batch(&self, frame: &[u8], expected: &mut u64, parcels: &mut Vec<Parcel>) -> Result<(), End> {
        let batch = Batch::open(frame)?;
        if batch.sequence != *expected {
            return Err(CodecError::Sequence { found: batch.sequence, expected: *expected }.into());
        }
        *expected += 1;
        parcels.reserve(batch.estimated_len());
        Ok(batch.read(&self.check, parcels)?)
    }

    async fn datagrams(self) -> End {
        let mut sequence = Sequence::default();
        loop {
            let datagram = match self.state.connection.quic.read_datagram().await {
                Ok(datagram) => datagram,
                Err(error) => break error.into(),
            };
            let counts = &self.state.counts;
            let read = Batch::open(&datagram).and_then(|batch| {
                let mut parcels = Vec::with_capacity(batch.estimated_len());
                batch.read(&self.check, &mut parcels)?;
                let new = sequence.is_new(batch.sequence, parcels.len() as u64);
                Ok(new.then_some(parcels))
            });
            counts.datagram_missing.store(sequence.missing(), Ordering::Relaxed);
            match read {
                Ok(Some(parcels)) => self.deliver(parcels).await,
                Ok(None) => drop(counts.datagrams_repeated.fetch_add(1, Ordering::Relaxed)),
                Err(error) => break error.into(),
            }
        }
    }

    async fn deliver(&self, parcels: Vec<Parcel>) {
        self.state.counts.received.fetch_add(parcels.len() as u64, Ordering::Relaxed);
        // Fails if the owner has dropped its inbox; the link lasts until it is dropped too.
        let _ = self.inbox.send(Arrival { link: self.link, event: LinkEvent::Parcels(parcels) }).await;
    }
}
