//! The injections that a run in progress carries out for the controller.

use std::collections::BTreeMap;

use volary_actors::base::CoreSet;
use volary_actors::base::Time;
use volary_engine::cores::Injection;
use volary_engine::shard::Shard;

use crate::cluster::protocol::{AgentMessage, InjectOrder, RUN_OVER, load_profile};
use crate::real_time::event_loop::RealTimeObserver;

/// An order of the controller that concerns injections.
pub(super) enum InjectionOrder {
    Begin(Box<InjectOrder>),
    Lift { id: u64, at: Time, why: String },
}

/// The injections into the shard of a run.
pub(super) struct ShardInjections {
    /// The cores of this host.
    held: CoreSet,
    /// The injections that are in effect, by id.
    active: BTreeMap<u64, Active>,
}

/// An injection that is in effect.
struct Active {
    /// Number of the injection in the shard.
    number: usize,
    cores: CoreSet,
    until: Time,
}

impl ShardInjections {
    pub(super) const fn new(held: CoreSet) -> Self {
        Self { held, active: BTreeMap::new() }
    }

    /// Carries out an order; returns the report about it, if any.
    pub(super) fn carry_out(
        &mut self,
        order: InjectionOrder,
        now: Time,
        shard: &mut Shard<'_, RealTimeObserver>,
    ) -> Option<AgentMessage> {
        match order {
            InjectionOrder::Begin(order) => Some(self.begin(*order, now, shard)),
            InjectionOrder::Lift { id, at, why } => {
                let Active { number, cores, until } = self.active.remove(&id)?;
                let until = until.min(shard.lift(now.max(at), number, &cores));
                tracing::info!("interference was injected into cores {cores} until {until}: {why}");
                Some(AgentMessage::Lifted { id, until, why })
            }
        }
    }

    fn begin(
        &mut self,
        order: InjectOrder,
        now: Time,
        shard: &mut Shard<'_, RealTimeObserver>,
    ) -> AgentMessage {
        let InjectOrder { id, profile, seed, cores, from, until } = order;
        let profile = match load_profile(&profile) {
            Ok(profile) if cores.intersection(&self.held) == cores => profile,
            checked => {
                let why = format!("this host holds cores {}, not all of {cores}", self.held);
                return AgentMessage::Lifted { id, until: Time::ZERO, why: checked.err().unwrap_or(why) };
            }
        };
        let injection = Injection { profile, seed, cores: cores.clone(), from, until };
        let (number, from) = shard.inject(now, injection);
        tracing::info!("interference is injected into cores {cores} from {from}");
        self.active.insert(id, Active { number, cores, until: until.max(from) });
        AgentMessage::Injected { id, from }
    }

    /// An order to end an injection whose time is over, if there is one.
    pub(super) fn expired(&self, now: Time) -> Option<InjectionOrder> {
        let (&id, active) = self.active.iter().find(|(_, active)| active.until <= now)?;
        Some(InjectionOrder::Lift { id, at: active.until, why: "its time was over".to_owned() })
    }

    /// Ends all injections with the run, at `at`; returns the reports about their ends.
    pub(super) fn close(&mut self, at: Time) -> Vec<AgentMessage> {
        let lifted = |(id, active): (u64, Active)| {
            let until = active.until.min(at);
            tracing::info!("interference was injected into cores {} until {until}", active.cores);
            AgentMessage::Lifted { id, until, why: RUN_OVER.to_owned() }
        };
        std::mem::take(&mut self.active).into_iter().map(lifted).collect()
    }
}
