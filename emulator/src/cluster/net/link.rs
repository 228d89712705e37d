//! Batches of parcels to a peer and from it, over one connection.
//!
//! Stream parcels go over one long-lived stream per direction, as many as wait in one write. Datagram parcels are
//! packed into datagrams that bear the number of their first, so that the receiver counts the parcels that were
//! lost and drops what came twice. What waits to be sent is bounded: a peer that reads slowly shows as
//! [`Link::waiting`], then as [`SendError::Full`].

use std::mem;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use quinn::{SendDatagramError, SendStream};
use thiserror::Error;
use tokio::sync::{Notify, mpsc};
use tokio::task::{AbortHandle, JoinSet};
use volary_actors::base::Class;

use super::connection::{Close, Connection, End};
use super::counts::{Counts, LinkStats};
use super::frames::FrameReader;
use super::sequence::{Seen, Sequence};
use crate::codec::{self, Batch, CodecError, PARCEL_FRAME};
use crate::guard::guard;
use crate::parcel::Parcel;

/// What links hand to their owner, all through one bounded channel.
#[derive(Debug)]
pub struct Arrival {
    /// The number the owner gave the link.
    pub link: usize,
    /// What came.
    pub event: LinkEvent,
}

/// What can come over a link.
#[derive(Debug)]
pub enum LinkEvent {
    /// Parcels, in the order of sending where they came by stream.
    Parcels(Vec<Parcel>),
    /// The link is over; nothing follows.
    Ended(End),
}

/// Why parcels were not taken.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum SendError {
    /// Too much waits already: none were taken; try again after [`Link::room`].
    #[error("{waiting} bytes wait for a slow peer")]
    Full {
        /// Bytes that wait.
        waiting: usize,
    },
    /// The link is over.
    #[error(transparent)]
    Ended(#[from] End),
}

/// A link to a peer. Dropping it ends its tasks, without an [`Arrival`].
#[derive(Debug)]
pub struct Link {
    shared: Arc<Shared>,
    tasks: AbortHandle,
}

#[derive(Debug)]
struct Shared {
    connection: Connection,
    queue: usize,
    outbox: Mutex<Outbox>,
    /// Something waits to be written.
    wake: Notify,
    /// Something was written, or the link ended.
    moved: Notify,
    counts: Counts,
    /// Bytes of stream parcels that wait, to be looked at without the lock.
    waiting: AtomicUsize,
}

#[derive(Debug, Default)]
struct Outbox {
    /// Frames not yet given to the writer.
    pending: Vec<u8>,
    /// Bytes the writer has not yet got rid of.
    writing: usize,
    batches: u64,
    /// Datagram parcels given to the network: the number of the next.
    number: u64,
    datagram: Vec<u8>,
    end: Option<End>,
}

impl Link {
    /// Starts sending and receiving parcels over `connection`, at most once for each connection and side.
    ///
    /// What comes goes to `inbox` under the number `link`; while that is full nothing more is read, and the peer
    /// notices. `check` says which parcels can be: one that cannot ends the connection. `queue` bounds what waits to
    /// be sent, in bytes, to within one call of [`send`](Self::send).
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
        let shared = Arc::new(Shared {
            connection: connection.clone(),
            queue: queue.max(1),
            outbox: Mutex::default(),
            wake: Notify::new(),
            moved: Notify::new(),
            counts: Counts::default(),
            waiting: AtomicUsize::new(0),
        });
        let deliver = Deliver { shared: Arc::clone(&shared), link, check, inbox };
        let tasks = tokio::spawn(supervise(Arc::clone(&shared), deliver)).abort_handle();
        Self { shared, tasks }
    }

    /// Takes parcels for sending, all or none, without waiting.
    ///
    /// Of [`Class::Stream`], none is lost while the link lasts. Of [`Class::Datagram`], any may be; what is
    /// dropped here is counted and no error.
    pub fn send(&self, parcels: &[Parcel], class: Class) -> Result<(), SendError> {
        let mut outbox = guard(&self.shared.outbox);
        if let Some(end) = &outbox.end {
            return Err(end.clone().into());
        }
        if parcels.is_empty() {
            return Ok(());
        }
        match class {
            Class::Stream => self.shared.frame(&mut outbox, parcels),
            Class::Datagram => self.shared.pack(&mut outbox, parcels),
        }
    }

    /// Bytes of stream parcels that wait to be sent.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.shared.waiting.load(Ordering::Relaxed)
    }

    /// Waits until at most `bytes` wait, or gives why that will not be.
    pub async fn room(&self, bytes: usize) -> Result<(), End> {
        loop {
            let moved = self.shared.moved.notified();
            {
                let outbox = guard(&self.shared.outbox);
                if let Some(end) = &outbox.end {
                    return Err(end.clone());
                }
                if outbox.waiting() <= bytes {
                    return Ok(());
                }
            }
            moved.await;
        }
    }

    /// Ends the connection, all being done; the peer reads `words`.
    pub fn close(&self, words: &str) {
        self.shared.connection.close(Close::Done, words);
    }

    /// What was counted so far.
    #[must_use]
    pub fn stats(&self) -> LinkStats {
        self.shared.counts.read()
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.tasks.abort();
    }
}

impl Outbox {
    fn waiting(&self) -> usize {
        self.pending.len() + self.writing
    }
}

impl Shared {
    fn frame(&self, outbox: &mut Outbox, parcels: &[Parcel]) -> Result<(), SendError> {
        let waiting = outbox.waiting();
        if waiting >= self.queue {
            return Err(SendError::Full { waiting });
        }
        let mut rest = parcels;
        while !rest.is_empty() {
            let taken = codec::encode_batch_frame(outbox.batches, rest, &mut outbox.pending);
            assert!(taken > 0, "a frame has room for any parcel");
            outbox.batches += 1;
            rest = &rest[taken..];
        }
        self.waiting.store(outbox.waiting(), Ordering::Relaxed);
        self.counts.stream_sent.fetch_add(parcels.len() as u64, Ordering::Relaxed);
        self.wake.notify_one();
        Ok(())
    }

    fn pack(&self, outbox: &mut Outbox, parcels: &[Parcel]) -> Result<(), SendError> {
        let connection = &self.connection.quic;
        // A peer that takes none takes none of any size.
        let room = connection.max_datagram_size().unwrap_or(0);
        let mut rest = parcels;
        while !rest.is_empty() {
            outbox.datagram.clear();
            let taken = codec::encode_batch(outbox.number, rest, room, &mut outbox.datagram);
            if taken == 0 {
                self.counts.datagram_dropped.fetch_add(rest.len() as u64, Ordering::Relaxed);
                break;
            }
            // Without room QUIC would drop older datagrams, uncounted.
            let fits = connection.datagram_send_buffer_space() >= outbox.datagram.len();
            let sent = fits
                && match connection.send_datagram(Bytes::copy_from_slice(&outbox.datagram)) {
                    Ok(()) => true,
                    // The path's limit shrank just now, or the peer takes none.
                    Err(
                        SendDatagramError::TooLarge
                        | SendDatagramError::UnsupportedByPeer
                        | SendDatagramError::Disabled,
                    ) => false,
                    Err(SendDatagramError::ConnectionLost(error)) => return Err(End::from(error).into()),
                };
            let count = if sent { &self.counts.datagram_sent } else { &self.counts.datagram_dropped };
            count.fetch_add(taken as u64, Ordering::Relaxed);
            outbox.number += if sent { taken as u64 } else { 0 };
            rest = &rest[taken..];
        }
        Ok(())
    }

    fn end(&self, end: &End) {
        guard(&self.outbox).end = Some(end.clone());
        self.moved.notify_waiters();
    }
}

/// Runs the link until one of its parts ends.
async fn supervise<C>(shared: Arc<Shared>, deliver: Deliver<C>)
where
    C: Fn(&Parcel) -> bool + Clone + Send + Sync + 'static,
{
    let mut parts = JoinSet::new();
    parts.spawn(write(Arc::clone(&shared)));
    parts.spawn(deliver.clone().streams());
    parts.spawn(deliver.clone().datagrams());
    let end = match parts.join_next().await {
        Some(Ok(end)) => shared.connection.fail(end),
        Some(Err(error)) => End::Broken(error.to_string()),
        None => End::Here,
    };
    shared.end(&end);
    drop(parts);
    // Nobody left to be told: then nobody cares.
    let _ = deliver.inbox.send(Arrival { link: deliver.link, event: LinkEvent::Ended(end) }).await;
}

/// Writes what waits, all of it at once.
async fn write(shared: Arc<Shared>) -> End {
    let stream = match shared.connection.quic.open_uni().await {
        Ok(stream) => stream,
        Err(error) => return error.into(),
    };
    match write_on(&shared, stream).await {
        Err(end) => end,
        Ok(never) => match never {},
    }
}

async fn write_on(shared: &Shared, mut stream: SendStream) -> Result<std::convert::Infallible, End> {
    let mut bytes = Vec::new();
    loop {
        {
            let mut outbox = guard(&shared.outbox);
            mem::swap(&mut outbox.pending, &mut bytes);
            outbox.writing = bytes.len();
        }
        if bytes.is_empty() {
            shared.wake.notified().await;
            continue;
        }
        let mut written = 0;
        while written < bytes.len() {
            written += stream.write(&bytes[written..]).await?;
            {
                let mut outbox = guard(&shared.outbox);
                outbox.writing = bytes.len() - written;
                shared.waiting.store(outbox.waiting(), Ordering::Relaxed);
            }
            shared.moved.notify_waiters();
        }
        bytes.clear();
    }
}

/// Where what comes goes.
#[derive(Clone)]
struct Deliver<C> {
    shared: Arc<Shared>,
    link: usize,
    check: C,
    inbox: mpsc::Sender<Arrival>,
}

impl<C: Fn(&Parcel) -> bool + Clone + Send + Sync + 'static> Deliver<C> {
    async fn streams(self) -> End {
        let stream = match self.shared.connection.quic.accept_uni().await {
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
                // A closed connection says more than the stream it closes.
                Err(End::Stream) => {
                    break self.shared.connection.quic.close_reason().map_or(End::Stream, End::from);
                }
                Err(end) => break end,
            }
        }
    }

    /// Waits for a batch, and reads it and those that have come with it.
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
        parcels.reserve(batch.about());
        Ok(batch.read(&self.check, parcels)?)
    }

    async fn datagrams(self) -> End {
        let mut sequence = Sequence::default();
        loop {
            let datagram = match self.shared.connection.quic.read_datagram().await {
                Ok(datagram) => datagram,
                Err(error) => break error.into(),
            };
            let counts = &self.shared.counts;
            let read = Batch::open(&datagram).and_then(|batch| {
                let mut parcels = Vec::with_capacity(batch.about());
                batch.read(&self.check, &mut parcels)?;
                let seen = sequence.see(batch.sequence, parcels.len() as u64);
                Ok((seen == Seen::New).then_some(parcels))
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
        self.shared.counts.received.fetch_add(parcels.len() as u64, Ordering::Relaxed);
        // An owner that dropped its inbox wants nothing more; the link lasts until it is dropped too.
        let _ = self.inbox.send(Arrival { link: self.link, event: LinkEvent::Parcels(parcels) }).await;
    }
}
