//! What controller and agents say to each other on the control stream.
//!
//! An agent is idle until a controller claims it and loads an experiment; then it runs one unit after the other, as
//! the controller says, and forgets everything when the controller is gone. Parcels between agents do not come
//! this way: they have links of their own.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};
use volary_actors::base::Time;

use crate::config::Bundle;
use crate::cores::CoreSet;
use crate::fidelity::Worked;
use crate::fidelity::gauge::Reading;
use crate::parcel::Observation;
use crate::results::HostVitals;
use volary_engine::finalize::Counters;

/// The most bytes of a [`AgentMessage`]: an [`FinalReport`] is the largest, its histograms some megabytes at worst, the stretches
/// of real cores two. Of orders only [`ControllerMessage::Load`] may be larger.
pub const MESSAGE_FRAME: usize = 8 << 20;
/// The most bytes of an agent's answer to [`ControllerMessage::Status`].
pub const STATUS_FRAME: usize = 4096;
/// The most bytes of what is said first on a connection: a [`LinkPurpose`], [`ControllerMessage::Status`], [`ControllerMessage::Claim`]
/// or [`ControllerMessage::Inject`].
pub const FIRST_FRAME: usize = 64;

/// One host of a run, as all of them know it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Member {
    /// Its name, which its certificate proves.
    pub name: String,
    /// Where its agent listens.
    pub address: SocketAddr,
    /// Its share of the nodes and schedulers, relative to the others'.
    pub weight: f64,
}

/// One unit to be run.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Assignment {
    /// Tells links of this run from those of another.
    pub run: u64,
    /// Which point of the experiment.
    pub point: u32,
    /// Its seed.
    pub seed: u64,
    /// The hash that the controller has for it: both sides must mean the same.
    pub id: String,
    /// The hosts, in order of shards.
    pub members: Vec<Member>,
    /// Which of them the agent is.
    pub me: u16,
}

/// What a host says when it calls another: which run the link is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct LinkPurpose {
    /// [`Assignment::run`].
    pub run: u64,
}

/// What a controller says.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum ControllerMessage {
    /// Say how you are, and no more.
    Status,
    /// Serve me, and nobody else until I go.
    Claim,
    /// I come to inject interference into the run of another: from here on we speak in
    /// [other words](super::inject::words).
    Inject,
    /// Plan this experiment: the first order of the controller that has claimed the host.
    Load(Box<Bundle>),
    /// Build your part of a unit, and links to the others.
    Prepare(Box<Assignment>),
    /// Begin when my clock reads `at`, in nanoseconds.
    Start {
        /// The common start.
        at: i64,
    },
    /// Answers [`AgentMessage::Ping`].
    Pong {
        /// Its `sent`.
        sent: i64,
        /// My clock in between, ns.
        here: i64,
    },
    /// How far the slowest host has come.
    Progress {
        /// In emulated time.
        slowest: Time,
    },
    /// The unit is over: report and be ready for another.
    Stop,
}

/// What an agent says.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum AgentMessage {
    /// Answers [`ControllerMessage::Status`].
    State(Box<AgentStatus>),
    /// The experiment is planned.
    Loaded,
    /// The unit is built, all links stand, the clock is known.
    Ready {
        /// [`Assignment::run`].
        run: u64,
    },
    /// What was asked cannot be done.
    Refused {
        /// [`Assignment::run`]; zero if it is about more than one unit.
        run: u64,
        /// Why, and the remedy.
        why: String,
    },
    /// What time is it with you?
    Ping {
        /// My clock, ns.
        sent: i64,
    },
    /// Observations, in order of time.
    Notes {
        /// What was seen.
        notes: Vec<Observation>,
        /// Nothing earlier will come.
        mark: Time,
        /// How far this shard has come.
        progress: Time,
    },
    /// Lines of the agent's log.
    Log(String),
    /// A part of what the shard logged of its inputs, in order.
    Inputs(Vec<u8>),
    /// The link to another host broke in mid-run.
    Lost {
        /// Its name.
        peer: String,
        /// What is known of why.
        why: String,
    },
    /// Somebody has another profile rule some of my cores.
    Injected(Box<InjectionNotice>),
    /// That is over.
    Lifted {
        /// [`InjectionNotice::id`].
        id: u64,
        /// Until when it ruled.
        until: Time,
        /// Why it is over.
        why: String,
    },
    /// The last word on a unit.
    FinalReport(Box<FinalReport>),
}

/// An injection, as a host tells its controller of it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct InjectionNotice {
    /// Tells it from any other, and is the same on all hosts.
    pub id: u64,
    /// The profile as TOML, with no file left in it.
    pub profile: String,
    /// The seed of its slots.
    pub seed: u64,
    /// Whom it is aimed at, in the user's words.
    pub targets: Vec<String>,
    /// The cores.
    pub cores: CoreSet,
    /// From when it rules.
    pub from: Time,
    /// Until when at the latest; [`Time::MAX`] if nobody knows.
    pub until: Time,
}

/// What an agent measured of a unit.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct FinalReport {
    /// What its shard counted.
    pub tally: Counters,
    /// How late it was.
    pub reading: Reading,
    /// The host and its clock during the run; what became of its datagrams takes the others' accounts as well.
    pub vitals: HostVitals,
    /// Real datagrams to and from every host, by shard.
    pub datagrams: Vec<Datagrams>,
    /// What its real cores did, if copies burnt some.
    pub cores: Option<Worked>,
}

/// What a host counted of the real datagrams between it and another, in messages.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct Datagrams {
    /// Meant for the other.
    pub sent: u64,
    /// Of these, dropped before they left, because the network did not take them fast enough.
    pub dropped: u64,
    /// Of what the other sent, not come, though later ones did.
    pub missing: u64,
}

/// How an agent is.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct AgentStatus {
    /// What it does, in words.
    pub doing: String,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec;
    use crate::results::CoreRow;
    use crate::results::MOST_STRETCHES;

    /// All that a host may say of its cores, with room for the rest of its account.
    #[test]
    fn an_account_of_many_stretches_can_be_said() {
        let stretch = CoreRow { core: u32::MAX, start: 1.0, end: 2.0, asked: 4.0, had: 0.1, done: 0.2 };
        let stretches = vec![stretch; MOST_STRETCHES];
        let mut bytes = Vec::new();
        codec::append(&Worked { stretches, ..Worked::default() }, &mut bytes).unwrap();
        assert!(bytes.len() < MESSAGE_FRAME / 2, "{}", bytes.len());
    }
}
