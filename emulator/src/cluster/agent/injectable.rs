//! The injections that a running cell carries out for the controller.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use volary_actors::base::Time;

use super::context::{CellContext, InjectionOrder};
use crate::cluster::check::load_profile;
use crate::cluster::protocol::{AgentMessage, InjectOrder};
use crate::runtime::live::clock::Clock;
use crate::runtime::live::event_loop::ProfileChange;
use volary_engine::cores::{CoreSet, Injection};

/// The longest sleep until a time of the run: the estimate of the clock offset improves meanwhile.
const MAX_SLEEP: Duration = Duration::from_millis(200);

/// A running cell that takes injections.
pub(super) struct InjectableCell {
    /// The cores of this host.
    pub(super) held: CoreSet,
    pub(super) clock: Rc<Clock>,
    pub(super) context: Rc<CellContext>,
    /// To the controller.
    pub(super) messages: mpsc::Sender<AgentMessage>,
    /// The injections that are in effect, by id.
    pub(super) active: RefCell<BTreeMap<u64, Active>>,
}

/// An injection that is in effect.
pub(super) struct Active {
    /// Its number in the shard.
    number: usize,
    cores: CoreSet,
    until: Time,
}

impl InjectableCell {
    /// Carries out orders as they come, and ends injections whose time has passed, until the cell is over.
    pub(super) async fn serve(self: Rc<Self>) {
        loop {
            let done = tokio::select! {
                order = self.context.next_order() => match order {
                    InjectionOrder::Begin(order) => self.begin(*order).await,
                    InjectionOrder::Lift { id, why } => self.lift(id, &why).await,
                },
                id = self.next_expired() => self.lift(id, "its time was over").await,
            };
            if done.is_none() {
                return;
            }
        }
    }

    /// Begins an injection; `None` if the cell is over.
    async fn begin(&self, order: InjectOrder) -> Option<()> {
        let InjectOrder { id, profile, seed, cores, from, until } = order;
        let checked = match load_profile(&profile) {
            Ok(_) if cores.intersection(&self.held) != cores => {
                Err(format!("this host holds cores {}, not all of {cores}", self.held))
            }
            checked => checked,
        };
        // The report's place in the queue is taken first: without a further wait no report of the cell's end can
        // precede that of the beginning.
        let place = self.messages.reserve().await.ok()?;
        let profile = match checked {
            Ok(profile) => profile,
            Err(why) => {
                place.send(AgentMessage::Lifted { id, until: Time::ZERO, why });
                return Some(());
            }
        };
        let (done, begun) = oneshot::channel();
        let injection = Box::new(Injection { profile, seed, cores: cores.clone(), from, until });
        self.context.change(ProfileChange::Inject { injection, done });
        let (number, from) = begun.await.ok()?;
        tracing::info!("interference is injected into cores {cores} from {from}");
        let active = Active { number, cores, until: until.max(from) };
        self.active.borrow_mut().insert(id, active);
        place.send(AgentMessage::Injected { id, from });
        Some(())
    }

    /// Ends an injection, unless it has ended; `None` if the cell is over.
    async fn lift(&self, id: u64, why: &str) -> Option<()> {
        let active = self.active.borrow().get(&id).map(|active| (active.number, active.cores.clone()));
        let Some((number, cores)) = active else { return Some(()) };
        let place = self.messages.reserve().await.ok()?;
        let (done, lifted) = oneshot::channel();
        self.context.change(ProfileChange::Lift { number, cores: cores.clone(), done });
        let at = lifted.await.ok()?;
        let until = self.active.borrow_mut().remove(&id)?.until.min(at);
        tracing::info!("interference was injected into cores {cores} until {until}: {why}");
        place.send(AgentMessage::Lifted { id, until, why: why.to_owned() });
        Some(())
    }

    /// Waits for the end of the injection that ends next; returns its id.
    async fn next_expired(&self) -> u64 {
        loop {
            let next = self.active.borrow().iter().map(|(id, active)| (active.until, *id)).min();
            match next {
                Some((until, id)) if self.clock.now() >= until => return id,
                Some((until, _)) => tokio::time::sleep(self.clock.until(until).min(MAX_SLEEP)).await,
                None => std::future::pending().await,
            }
        }
    }

    /// Ends all injections with the cell, at `at`; returns the reports of that.
    pub(super) fn close(&self, at: Time) -> Vec<AgentMessage> {
        let active = std::mem::take(&mut *self.active.borrow_mut());
        let lifted = |(id, active): (u64, Active)| {
            let until = active.until.min(at);
            tracing::info!("interference was injected into cores {} until {until}", active.cores);
            AgentMessage::Lifted { id, until, why: "the cell was over".to_owned() }
        };
        active.into_iter().map(lifted).collect()
    }
}
