//! What an injector and an agent say to each other, once the injector has said what it came for.
//!
//! An agent injects nothing longer than the injector's connection lives: whoever dies, falls silent or is cut off takes
//! what it injected along.

use serde::{Deserialize, Serialize};
use volary_actors::base::Time;

use crate::cluster::protocol::InjectionNotice;
use crate::cores::CoreSet;

/// What an injector says.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum Request {
    /// What do you run?
    Scene,
    /// Which cores are meant?
    Aim {
        /// [`Running::run`].
        run: u64,
        /// Nodes, as faults name them: the cores of any of them.
        targets: Vec<String>,
    },
    /// Inject this for as long as I live.
    Begin(Box<Dose>),
    /// End it.
    End,
}

/// What an agent says.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum Reply {
    /// Answers [`Request::Scene`].
    Scene(Scene),
    /// Answers [`Request::Aim`].
    Aimed(Box<Aimed>),
    /// It rules.
    Begun {
        /// From when: later than asked if the order came late.
        from: Time,
    },
    /// It does not rule any more.
    Over {
        /// Until when it did.
        until: Time,
        /// Why.
        why: String,
    },
    /// What was asked cannot be done.
    Refused {
        /// Whether the question is to blame, and not what the agent does just now.
        wrong: bool,
        /// Why, and the remedy.
        why: String,
    },
}

/// What an agent runs.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum Scene {
    /// It serves no controller.
    Idle,
    /// It does, but no cell is being run.
    Between,
    /// A cell.
    Runs(Box<Running>),
}

/// A cell that is being run.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Running {
    /// Tells it from any other, and is the same on all hosts.
    pub run: u64,
    /// Its id.
    pub cell: String,
    /// Label of its policy.
    pub policy: String,
    /// Its seed.
    pub seed: u64,
    /// What time it is in it.
    pub now: Time,
    /// Emulated seconds per real second.
    pub speed: f64,
}

/// The cores that are meant, and what cores there are.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Aimed {
    /// Those that are meant, on whatever host; all if none was named.
    pub cores: CoreSet,
    /// Those that this host holds.
    pub held: CoreSet,
    /// Nodes in runs of equal neighbours: how many, cores of each, and their rack.
    pub nodes: Vec<(u32, u32, u32)>,
}

/// An injection as it is ordered.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Dose {
    /// [`Running::run`].
    pub run: u64,
    /// What the controller will be told, on cores of this host. Until [`Time::MAX`] means as long as the injector
    /// lives; it rules later than asked if the order comes late.
    pub notice: InjectionNotice,
}
