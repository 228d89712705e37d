//! The controller's line to one host.

use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::HostsError;
use super::kept::Kept;
use super::protocol::{Member, Order, WORD_FRAME, Word};
use crate::runtime::real::ticks::Ticks;
use crate::transport::control::Incoming;
use crate::transport::{Control, Transport};
use crate::wire::{self, LARGEST_FRAME, WireError};

/// A host that was taken.
#[derive(Debug)]
pub(super) struct Host {
    orders: mpsc::Sender<Order>,
    tasks: [JoinHandle<()>; 2],
    /// Why it is gone, if it is.
    pub(super) lost: Option<String>,
}

/// What came from a host.
#[derive(Debug)]
pub(super) enum Heard {
    Word(Word),
    Gone(String),
}

impl Drop for Host {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

impl Host {
    /// Connects to a host and begins to listen to it.
    pub(super) async fn take(
        i: usize,
        member: &Member,
        transport: &Transport,
        ticks: Ticks,
        kept: &Kept,
        hear: &mpsc::Sender<(usize, Heard)>,
    ) -> Result<Self, HostsError> {
        let peer = transport.connect(&member.name, member.address).await?;
        let control = Control::<Order, Word>::new(&peer.connection, peer.streams, LARGEST_FRAME);
        let Control { outgoing: mut sender, incoming: receiver } = control.hearing(WORD_FRAME);
        let (orders, mut outgoing) = mpsc::channel(64);
        let gone = hear.clone();
        let write = tokio::spawn(async move {
            while let Some(order) = outgoing.recv().await {
                if let Err(error) = sender.send(&order).await {
                    let _ = gone.send((i, Heard::Gone(error.to_string()))).await;
                    return;
                }
            }
        });
        let read = tokio::spawn(listen(i, receiver, orders.clone(), ticks, kept.clone(), hear.clone()));
        Ok(Self { orders, tasks: [write, read], lost: None })
    }

    pub(super) async fn tell(&self, order: Order) {
        // If it is gone, whoever listens to it will notice.
        let _ = self.orders.send(order).await;
    }
}

/// Hands on what a host says. Pings are answered here and now, and what is only to be kept is.
async fn listen(
    i: usize,
    mut receiver: Incoming<Word>,
    orders: mpsc::Sender<Order>,
    ticks: Ticks,
    kept: Kept,
    hear: mpsc::Sender<(usize, Heard)>,
) {
    loop {
        let heard = match receiver.receive().await {
            Ok(Word::Ping { sent }) => {
                let pong = Order::Pong { sent, here: ticks.now() };
                // One that cannot be sent at once would come too late to say anything.
                let _ = orders.try_send(pong);
                continue;
            }
            Ok(Word::Log(text)) => {
                kept.log(i, &text);
                continue;
            }
            Ok(Word::Inputs(frame)) => {
                kept.inputs(i, frame);
                continue;
            }
            Ok(word) => Heard::Word(word),
            Err(error) => {
                let _ = hear.send((i, Heard::Gone(error.to_string()))).await;
                return;
            }
        };
        if hear.send((i, heard)).await.is_err() {
            return;
        }
    }
}

/// Refuses an experiment that no host can be sent, before one is taken.
pub(super) fn fits(load: &Order) -> Result<(), HostsError> {
    match wire::encode(load, LARGEST_FRAME, &mut Vec::new()) {
        Err(WireError::Oversize { bytes, limit }) => {
            Err(HostsError::Large { mib: bytes.div_ceil(1 << 20), limit: limit >> 20 })
        }
        Ok(()) | Err(_) => Ok(()),
    }
}
