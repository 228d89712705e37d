//! The controller's connection to one host.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::archive::Archive;
use crate::cluster::net::control::{ControlReceiver, ControlSender};
use crate::cluster::net::endpoint::ConnectError;
use crate::cluster::net::{Connection, Control, End, Transport};
use crate::cluster::protocol::{AgentMessage, ControllerMessage, MESSAGE_FRAME, Member};
use crate::codec::LARGEST_FRAME;
use crate::runtime::live::clock::MonotonicClock;
use crate::storage::hosts::HostLoss;

/// Messages to one host that may wait.
const SEND_QUEUE: usize = 64;

/// The connection to a host that this controller has claimed.
#[derive(Debug)]
pub(super) struct HostConnection {
    messages: mpsc::Sender<ControllerMessage>,
    connection: Connection,
    tasks: [JoinHandle<()>; 2],
    /// The loss of the host, once it has happened.
    pub(super) lost: Option<HostLoss>,
}

/// An event of one host's connection.
#[derive(Debug)]
pub(super) enum HostEvent {
    Message(AgentMessage),
    Gone(String),
}

/// The sending end of the events of all hosts, each with the host's index.
pub(super) type EventSender = mpsc::Sender<(usize, HostEvent)>;

impl Drop for HostConnection {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

impl HostConnection {
    /// Connects to the host of index `i`, sends it the encoded `opening`, and begins to receive.
    pub(super) async fn open(
        i: usize,
        member: Member,
        transport: Arc<Transport>,
        ticks: MonotonicClock,
        archive: Archive,
        events: EventSender,
        opening: Bytes,
    ) -> Result<Self, ConnectError> {
        let peer = transport.connect(&member.name, member.address).await?;
        let control =
            Control::<ControllerMessage, AgentMessage>::new(&peer.connection, peer.streams, LARGEST_FRAME);
        let Control { outgoing, incoming } = control.receive_limit(MESSAGE_FRAME);
        let (messages, queue) = mpsc::channel(SEND_QUEUE);
        let (pongs, send_events) = (messages.clone(), events.clone());
        let send = tokio::spawn(async move {
            if let Err(error) = send_all(outgoing, opening, queue).await {
                let _ = send_events.send((i, HostEvent::Gone(error.to_string()))).await;
            }
        });
        let receive = tokio::spawn(receive_all(i, incoming, pongs, ticks, archive, events));
        Ok(Self { messages, connection: peer.connection, tasks: [send, receive], lost: None })
    }

    /// Queues a message; waits while the queue is full. Errors are left to the receiving task, which sees the end of
    /// the connection.
    pub(super) async fn send(&self, message: ControllerMessage) {
        let _ = self.messages.send(message).await;
    }

    /// Queues a message that a later one supersedes, unless the queue is full.
    pub(super) fn send_if_idle(&self, message: ControllerMessage) {
        let _ = self.messages.try_send(message);
    }

    pub(super) fn round_trip(&self) -> Duration {
        self.connection.round_trip()
    }
}

async fn send_all(
    mut outgoing: ControlSender<ControllerMessage>,
    opening: Bytes,
    mut queue: mpsc::Receiver<ControllerMessage>,
) -> Result<(), End> {
    outgoing.pass(opening).await?;
    while let Some(message) = queue.recv().await {
        outgoing.send(&message).await?;
    }
    Ok(())
}

/// Forwards the messages of a host. Pings are answered here, without the delay of a queue, and logs and inputs go to
/// the archive.
async fn receive_all(
    i: usize,
    mut incoming: ControlReceiver<AgentMessage>,
    pongs: mpsc::Sender<ControllerMessage>,
    ticks: MonotonicClock,
    archive: Archive,
    events: EventSender,
) {
    loop {
        let event = match incoming.receive().await {
            Ok(AgentMessage::Ping { sent }) => {
                // A pong that waits in a full queue would be too late to be of use.
                let _ = pongs.try_send(ControllerMessage::Pong { sent, here: ticks.now() });
                continue;
            }
            Ok(AgentMessage::Log(text)) => {
                archive.log(i, &text);
                continue;
            }
            Ok(AgentMessage::Inputs(frame)) => {
                archive.inputs(i, frame);
                continue;
            }
            Ok(message) => HostEvent::Message(message),
            Err(error) => {
                let _ = events.send((i, HostEvent::Gone(error.to_string()))).await;
                return;
            }
        };
        if events.send((i, event)).await.is_err() {
            return;
        }
    }
}
