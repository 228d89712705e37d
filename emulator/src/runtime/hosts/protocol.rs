//! What controller and agents say to each other on the control stream.
//!
//! An agent is idle until a controller loads an experiment; then it runs one unit after the other, as the
//! controller says, and forgets everything when the controller is gone. Parcels between agents do not come
//! this way: they have links of their own.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};
use volary_actors::base::Time;

use crate::fidelity::gauge::Reading;
use crate::fidelity::vitals::HostVitals;
use crate::parcel::Observation;
use crate::runtime::closing::Tally;
use crate::spec::Bundle;

/// The most bytes of a [`Word`]: the histograms of an [`End`] are the largest, some megabytes at worst. Of orders
/// only [`Order::Load`] may be larger.
pub const WORD_FRAME: usize = 8 << 20;
/// The most bytes of an agent's answer to [`Order::Status`].
pub const STATE_FRAME: usize = 4096;
/// The most bytes of a [`Purpose`].
pub const PURPOSE_FRAME: usize = 64;

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
pub struct Purpose {
    /// [`Assignment::run`].
    pub run: u64,
}

/// What a controller says.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Order {
    /// Say how you are, and no more.
    Status,
    /// Plan this experiment, and expect links from these hosts.
    Load {
        /// The experiment.
        bundle: Box<Bundle>,
        /// The hosts of the run.
        hosts: Vec<String>,
    },
    /// Build your part of a unit, and links to the others.
    Prepare(Box<Assignment>),
    /// Begin when my clock reads `at`, in nanoseconds.
    Start {
        /// The common start.
        at: i64,
    },
    /// Answers [`Word::Ping`].
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
pub enum Word {
    /// Answers [`Order::Status`].
    State(String),
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
    /// The link to another host broke in mid-run.
    Lost {
        /// Its name.
        peer: String,
        /// What is known of why.
        why: String,
    },
    /// The last word on a unit.
    Account(Box<Account>),
}

/// What an agent measured of a unit.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Account {
    /// What its shard counted.
    pub tally: Tally,
    /// How late it was.
    pub reading: Reading,
    /// The host and its clock during the run.
    pub vitals: HostVitals,
}
