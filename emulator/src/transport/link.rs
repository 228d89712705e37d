//! Parcels from host to host.
//!
//! A link has one long-lived stream in each direction for the stream class, and QUIC's datagrams for the
//! datagram class. Parcels are encoded when they are handed over; all that have come together since the last
//! write go in one write. What waits is counted, and whoever sends is told how much that is.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use bytes::Bytes;
use quinn::{Connection, RecvStream, SendStream};
use tokio::sync::{Notify, mpsc};
use tokio::task::{JoinHandle, spawn_local};
use volary_actors::base::Class;

use super::Error;
use crate::parcel::Parcel;
use crate::wire::{self, PREFIX};

/// Bytes of parcels in a frame at most.
pub const FRAME: usize = 64 << 10;
/// Batches received and not yet taken, at most: beyond that the peer is made to wait.
const RECEIVED: usize = 16;
/// Bytes a datagram keeps free for what QUIC adds as its paths change.
const SPARE: usize = 32;

/// The sending side of a link.
#[derive(Debug)]
pub struct LinkSender {
    connection: Connection,
    out: Rc<Out>,
    datagram: Vec<u8>,
    writer: JoinHandle<()>,
}

/// What waits to be written.
#[derive(Debug, Default)]
struct Out {
    buffer: RefCell<Vec<u8>>,
    writing: Cell<usize>,
    filled: Notify,
}

/// The receiving side of a link.
#[derive(Debug)]
pub struct LinkReceiver {
    came: mpsc::Receiver<Result<(Class, Vec<Parcel>), Error>>,
    readers: [JoinHandle<()>; 2],
}

/// Opens both directions of a link.
pub(super) async fn open(connection: &Connection) -> Result<(LinkSender, LinkReceiver), Error> {
    let ended = |error: quinn::ConnectionError| Error::Ended(error.to_string());
    if connection.max_datagram_size().is_none() {
        return Err(Error::Protocol("the peer takes no datagrams".to_owned()));
    }
    let mut stream = connection.open_uni().await.map_err(ended)?;
    // The other side learns of a stream by its first bytes: an empty frame.
    stream.write_all(&[0; PREFIX]).await.map_err(|error| Error::Ended(error.to_string()))?;
    let from = connection.accept_uni().await.map_err(ended)?;
    let out = Rc::new(Out::default());
    let writer = spawn_local(write(stream, Rc::clone(&out)));
    let (tell, came) = mpsc::channel(RECEIVED);
    let readers =
        [spawn_local(read_stream(from, tell.clone())), spawn_local(read_datagrams(connection.clone(), tell))];
    let sender = LinkSender { connection: connection.clone(), out, datagram: Vec::new(), writer };
    Ok((sender, LinkReceiver { came, readers }))
}

impl LinkSender {
    /// Sends parcels, all of one class, and empties the vector.
    pub fn send(&mut self, class: Class, parcels: &mut Vec<Parcel>) {
        match class {
            Class::Stream => self.stream(parcels),
            Class::Datagram => self.datagrams(parcels),
        }
        parcels.clear();
    }

    /// Bytes that wait to be sent.
    #[must_use]
    pub fn backlog(&self) -> usize {
        self.out.buffer.borrow().len() + self.out.writing.get()
    }

    fn stream(&self, parcels: &[Parcel]) {
        let mut buffer = self.out.buffer.borrow_mut();
        let mut rest = parcels.iter().peekable();
        while rest.peek().is_some() {
            let start = buffer.len();
            buffer.extend_from_slice(&[0; PREFIX]);
            // A parcel takes far less than the 128 bytes that are kept free for it.
            while buffer.len() - start < FRAME - 128
                && let Some(parcel) = rest.next()
            {
                // Only a value that cannot be encoded fails, and a parcel always can.
                let _ = wire::append(parcel, &mut buffer);
            }
            let length = (buffer.len() - start - PREFIX) as u32;
            buffer[start..start + PREFIX].copy_from_slice(&length.to_le_bytes());
        }
        self.out.filled.notify_one();
    }

    fn datagrams(&mut self, parcels: &[Parcel]) {
        let most = self.connection.max_datagram_size().unwrap_or(1200).saturating_sub(SPARE);
        for parcel in parcels {
            let before = self.datagram.len();
            let _ = wire::append(parcel, &mut self.datagram);
            if self.datagram.len() > most {
                let next = self.datagram.split_off(before);
                self.flush();
                self.datagram = next;
            }
        }
        self.flush();
    }

    fn flush(&mut self) {
        if !self.datagram.is_empty() {
            // A datagram may be lost; if the connection is, the receiving side tells.
            let _ = self.connection.send_datagram(Bytes::copy_from_slice(&self.datagram));
            self.datagram.clear();
        }
    }
}

impl Drop for LinkSender {
    fn drop(&mut self) {
        self.writer.abort();
    }
}

impl LinkReceiver {
    /// The next parcels, all of one class.
    ///
    /// # Errors
    /// When the link has ended, or what came is no parcel.
    pub async fn recv(&mut self) -> Result<(Class, Vec<Parcel>), Error> {
        match self.came.recv().await {
            Some(came) => came,
            None => Err(Error::Ended("nobody reads the link".to_owned())),
        }
    }
}

impl Drop for LinkReceiver {
    fn drop(&mut self) {
        self.readers.iter().for_each(JoinHandle::abort);
    }
}

async fn write(mut stream: SendStream, out: Rc<Out>) {
    let mut batch = Vec::new();
    loop {
        std::mem::swap(&mut *out.buffer.borrow_mut(), &mut batch);
        if batch.is_empty() {
            out.filled.notified().await;
            continue;
        }
        out.writing.set(batch.len());
        if stream.write_all(&batch).await.is_err() {
            // The receiving side tells why.
            return;
        }
        out.writing.set(0);
        batch.clear();
    }
}

type Came = mpsc::Sender<Result<(Class, Vec<Parcel>), Error>>;

async fn read_stream(mut stream: RecvStream, tell: Came) {
    loop {
        let came = match read_frame(&mut stream).await {
            Ok(parcels) if parcels.is_empty() => continue,
            Ok(parcels) => Ok((Class::Stream, parcels)),
            Err(error) => Err(error),
        };
        let over = came.is_err();
        if tell.send(came).await.is_err() || over {
            return;
        }
    }
}

async fn read_frame(stream: &mut RecvStream) -> Result<Vec<Parcel>, Error> {
    let ended = |error: quinn::ReadExactError| Error::Ended(error.to_string());
    let mut prefix = [0; PREFIX];
    stream.read_exact(&mut prefix).await.map_err(ended)?;
    let mut bytes = vec![0; wire::length(prefix, FRAME)?];
    stream.read_exact(&mut bytes).await.map_err(ended)?;
    parcels(&bytes)
}

async fn read_datagrams(connection: Connection, tell: Came) {
    loop {
        let came = match connection.read_datagram().await {
            Ok(bytes) => parcels(&bytes).map(|parcels| (Class::Datagram, parcels)),
            // The stream ends with the connection and tells.
            Err(_) => return,
        };
        if tell.send(came).await.is_err() {
            return;
        }
    }
}

/// All parcels of a frame.
///
/// # Errors
/// When the bytes are anything else.
pub fn parcels(mut bytes: &[u8]) -> Result<Vec<Parcel>, Error> {
    let mut parcels = Vec::new();
    while !bytes.is_empty() {
        let (parcel, used) = wire::take(bytes)?;
        parcels.push(parcel);
        bytes = &bytes[used..];
    }
    Ok(parcels)
}
