//! The controller's line to one host.

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
use crate::storage::hosts::Lost;

/// The line to a host that was taken.
#[derive(Debug)]
pub(crate) struct HostConnection {
    orders: mpsc::Sender<ControllerMessage>,
    connection: Connection,
    tasks: [JoinHandle<()>; 2],
    /// That it is gone, if it is.
    pub(crate) lost: Option<Lost>,
}

/// What came from a host.
#[derive(Debug)]
pub(crate) enum HostEvent {
    Message(AgentMessage),
    Gone(String),
}

impl Drop for HostConnection {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

impl HostConnection {
    /// Connects to a host, claims it, sends it the order to load an experiment and begins to listen to it.
    pub(crate) async fn take(
        i: usize,
        member: Member,
        transport: Arc<Transport>,
        ticks: MonotonicClock,
        archive: Archive,
        hear: mpsc::Sender<(usize, HostEvent)>,
        load: Bytes,
    ) -> Result<Self, ConnectError> {
        let peer = transport.connect(&member.name, member.address).await?;
        let control =
            Control::<ControllerMessage, AgentMessage>::new(&peer.connection, peer.streams, LARGEST_FRAME);
        let Control { outgoing: sender, incoming: receiver } = control.receive_limit(MESSAGE_FRAME);
        let (orders, outgoing) = mpsc::channel(64);
        let gone = hear.clone();
        let write = tokio::spawn(async move {
            if let Err(error) = speak(sender, load, outgoing).await {
                let _ = gone.send((i, HostEvent::Gone(error.to_string()))).await;
            }
        });
        let read = tokio::spawn(listen(i, receiver, orders.clone(), ticks, archive, hear));
        Ok(Self { orders, connection: peer.connection, tasks: [write, read], lost: None })
    }

    pub(crate) async fn tell(&self, order: ControllerMessage) {
        // If it is gone, whoever listens to it will notice.
        let _ = self.orders.send(order).await;
    }

    /// How long a question to it and its answer take.
    pub(crate) fn round_trip(&self) -> Duration {
        self.connection.round_trip()
    }
}

/// Sends what there is to say to a host. It takes more than a word only from whoever has claimed it.
async fn speak(
    mut sender: ControlSender<ControllerMessage>,
    load: Bytes,
    mut outgoing: mpsc::Receiver<ControllerMessage>,
) -> Result<(), End> {
    sender.send(&ControllerMessage::Claim).await?;
    sender.pass(load).await?;
    while let Some(order) = outgoing.recv().await {
        sender.send(&order).await?;
    }
    Ok(())
}

/// Hands on what a host says. Pings are answered here and now, and what is only to be kept is.
async fn listen(
    i: usize,
    mut receiver: ControlReceiver<AgentMessage>,
    orders: mpsc::Sender<ControllerMessage>,
    ticks: MonotonicClock,
    archive: Archive,
    hear: mpsc::Sender<(usize, HostEvent)>,
) {
    loop {
        let heard = match receiver.receive().await {
            Ok(AgentMessage::Ping { sent }) => {
                let pong = ControllerMessage::Pong { sent, here: ticks.now() };
                // One that cannot be sent at once would come too late to say anything.
                let _ = orders.try_send(pong);
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
            Ok(word) => HostEvent::Message(word),
            Err(error) => {
                let _ = hear.send((i, HostEvent::Gone(error.to_string()))).await;
                return;
            }
        };
        if hear.send((i, heard)).await.is_err() {
            return;
        }
    }
}
