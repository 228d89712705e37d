//! A unit on an agent, as injectors meet it.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use tokio::sync::{mpsc, oneshot};
use volary_actors::base::{Endpoint, Time};
use volary_actors::layout::Role;
use volary_netem::{Places, Target};

use super::context::CellContext;
use crate::cluster::inject::words::{Aimed, Dose, Running};
use crate::cluster::protocol::{AgentMessage, InjectionNotice};
use crate::cores::{CoreSet, Injection, Interference, Profile};
use crate::runtime::live::clock::Clock;
use crate::runtime::live::event_loop::ProfileChange;
use volary_engine::world::World;

/// Injections that a unit takes at most: each is looked at whenever a copy begins, and those of some profiles remember
/// something of every core.
pub(crate) const MOST: usize = 100;
/// Targets of an injection at most, and bytes of each: they are looked up while the emulation goes on.
const TARGETS: usize = 1000;
const TARGET: usize = 200;

/// Slots that a second of work may take: they are looked at one by one whenever a copy begins.
const MOST_STRETCHES: f64 = 1e7;

/// Why an injection is over when its unit is.
const UNIT_OVER: &str = "the cell was over";

/// A unit that is being run.
pub(crate) struct InjectableCell {
    pub(crate) run: u64,
    pub(crate) cell: String,
    pub(crate) world: Arc<World>,
    /// The cores of this host.
    pub(crate) held: CoreSet,
    pub(crate) clock: Rc<Clock>,
    pub(crate) context: Rc<CellContext>,
    /// To the controller.
    pub(crate) words: mpsc::Sender<AgentMessage>,
    /// Until when what rules now is to rule.
    pub(crate) active: RefCell<BTreeMap<u64, Time>>,
    /// Injections so far.
    pub(crate) count: Cell<usize>,
}

/// Why something cannot be done, and whether whoever asks is to blame.
pub(crate) type Refusal = (bool, String);

impl InjectableCell {
    pub(crate) fn running(&self) -> Running {
        Running {
            run: self.run,
            cell: self.cell.clone(),
            policy: self.world.point().label.clone(),
            seed: self.world.seed(),
            now: self.clock.now(),
            speed: self.clock.speed(),
        }
    }

    /// Which cores some targets stand for.
    pub(crate) fn aim(&self, targets: &[String]) -> Result<Aimed, Refusal> {
        if targets.len() > TARGETS || targets.iter().any(|target| target.len() > TARGET) {
            let why = format!(
                "more than {TARGETS} targets, or one of more than {TARGET} bytes: name ranges or racks"
            );
            return Err((true, why));
        }
        let (machines, layout) = (self.world.machines(), self.world.layout());
        let mut cores = CoreSet::default();
        for text in targets {
            let wrong = |why: String| (true, format!("`{text}` names no node of this cluster: {why}"));
            let target: Target = text.parse().map_err(wrong)?;
            let found = machines.groups.resolve(&target).map_err(wrong)?;
            let of_node =
                |&Endpoint(endpoint): &Endpoint| match layout.role(volary_actors::base::ActorId(endpoint)) {
                    Role::Node(node) => Some(node),
                    Role::Client(_) | Role::Scheduler(_) | Role::Worker { .. } | Role::Extra(_) => None,
                };
            let nodes = found.iter().filter_map(of_node);
            let meant: CoreSet = nodes
                .flat_map(|node| (0..layout.cores(node)).map(move |core| (node, core)))
                .map(|(node, core)| layout.core_index(layout.worker(node, core)))
                .collect();
            if meant.is_empty() {
                return Err(wrong("it stands for others".to_owned()));
            }
            cores = cores.union(&meant);
        }
        if targets.is_empty() {
            cores = CoreSet::below(layout.workers());
        }
        Ok(Aimed { cores, held: self.held.clone(), nodes: machines.cores.outline() })
    }

    /// Has a profile rule, and tells the controller. Returns the injection's number, and from when.
    pub(crate) async fn begin(&self, dose: &Dose) -> Result<(usize, Time), Refusal> {
        let InjectionNotice { id, seed, from, until, ref cores, profile: ref text, .. } = dose.notice;
        let profile = profile(text).map_err(|why| (true, format!("the profile: {why}")))?;
        if cores.is_empty() || cores.intersection(&self.held) != *cores {
            return Err((true, format!("this host holds cores {}, not all of {cores}", self.held)));
        }
        if from >= until {
            return Err((true, format!("it is to end at {until}, not after its begin at {from}")));
        }
        if self.active.borrow().contains_key(&id) {
            return Err((true, "it is injected already".to_owned()));
        }
        // Before anything is changed: an injection that is refused leaves nothing behind, and one that rules is told.
        if self.count.get() >= MOST {
            return Err((false, format!("this cell was injected into {MOST} times")));
        }
        let room = self.words.try_reserve();
        let room = room.map_err(|_| (false, "the controller does not keep up, or is gone".to_owned()))?;
        self.count.set(self.count.get() + 1);
        let over = |_| (false, UNIT_OVER.to_owned());
        let injection = Box::new(Injection { profile, seed, cores: cores.clone(), from, until });
        let (done, begun) = oneshot::channel();
        self.context.change(ProfileChange::Inject { injection, done });
        let (number, from) = begun.await.map_err(over)?;
        // The order may have come when it was over.
        let until = until.max(from);
        self.active.borrow_mut().insert(id, until);
        tracing::info!("interference is injected into cores {cores} from {from}");
        room.send(AgentMessage::Injected(Box::new(InjectionNotice { from, until, ..dose.notice.clone() })));
        Ok((number, from))
    }

    /// Ends an injection, and tells the controller; says until when it ruled. `None` if its unit is over, which ends
    /// it as well.
    pub(crate) async fn end(&self, number: usize, dose: &Dose, why: &str) -> Option<Time> {
        let at = self.lift(number, &dose.notice.cores).await?;
        let until = self.active.borrow_mut().remove(&dose.notice.id)?.min(at);
        tracing::info!("interference was injected into cores {} until {until}: {why}", dose.notice.cores);
        let _ =
            self.words.send(AgentMessage::Lifted { id: dose.notice.id, until, why: why.to_owned() }).await;
        Some(until)
    }

    async fn lift(&self, number: usize, cores: &CoreSet) -> Option<Time> {
        let (done, lifted) = oneshot::channel();
        self.context.change(ProfileChange::Lift { number, cores: cores.clone(), done });
        lifted.await.ok()
    }

    /// The unit is over at `at`, and with it whatever was injected.
    pub(crate) fn close(&self, at: Time) -> Vec<AgentMessage> {
        let active = std::mem::take(&mut *self.active.borrow_mut());
        active.values().for_each(|until| {
            tracing::info!("interference was injected into cores until {}", at.min(*until))
        });
        let lifted = |(id, until): (u64, Time)| AgentMessage::Lifted {
            id,
            until: until.min(at),
            why: UNIT_OVER.to_owned(),
        };
        active.into_iter().map(lifted).collect()
    }
}

/// Reads a profile that needs no file, and can be followed while a run goes on.
pub(crate) fn profile(text: &str) -> Result<Profile, String> {
    let table: Interference = toml::from_str(text).map_err(|error| error.to_string())?;
    let profile = table.resolve().map_err(|error| error.to_string())?;
    let stretches = profile.stretches_of_work();
    if stretches > MOST_STRETCHES {
        return Err(format!(
            "a second of work would take {stretches:.0e} slots of this profile, more than can be looked at while a run \
             goes on: make slots longer or the slowdown less"
        ));
    }
    Ok(profile)
}
