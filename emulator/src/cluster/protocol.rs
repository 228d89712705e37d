//! What controller and agents say to each other on the control stream.
//!
//! An agent is idle until a controller claims it and loads an experiment; then it runs one unit after the other, as
//! the controller says, and forgets everything when the controller is gone. Parcels between agents do not come
//! this way: they have links of their own. Words that will be shown are made [`plain`] where they are read.

use std::net::SocketAddr;

use serde::{Deserialize, Deserializer, Serialize};
use volary_actors::base::Time;

use crate::cluster::net::plain;
use crate::cluster::net::refusals::Refusals;
use crate::cores::CoreSet;
use crate::fidelity::Worked;
use crate::fidelity::gauge::Reading;
use crate::parcel::Observation;
use crate::results::HostVitals;
use crate::spec::Bundle;
use volary_engine::finalize::Counters;

/// Refusals that an agent tells of in words, and how long each may be: strangers wrote parts of them.
const RECENT: usize = 3;
const WORDS: usize = 200;

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
    #[serde(deserialize_with = "plain::words")]
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
    #[serde(deserialize_with = "plain::words")]
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
    /// Plan this experiment, and expect links from these hosts: the first order of whoever has claimed the host.
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
        #[serde(deserialize_with = "plain::text")]
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
    Log(#[serde(deserialize_with = "plain::text")] String),
    /// A part of what the shard logged of its inputs, in order.
    Inputs(Vec<u8>),
    /// The link to another host broke in mid-run.
    Lost {
        /// Its name.
        #[serde(deserialize_with = "plain::words")]
        peer: String,
        /// What is known of why.
        #[serde(deserialize_with = "plain::words")]
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
        #[serde(deserialize_with = "plain::words")]
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
    #[serde(deserialize_with = "plain::list")]
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
    #[serde(deserialize_with = "plain_vitals")]
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

/// Reads the vitals of a host with names in [`plain`] words.
fn plain_vitals<'de, D: Deserializer<'de>>(deserializer: D) -> Result<HostVitals, D::Error> {
    let mut vitals = HostVitals::deserialize(deserializer)?;
    let names = vitals.lost_to.iter_mut().map(|path| &mut path.to).chain([&mut vitals.name]);
    names.for_each(|name| *name = plain::plain(name));
    Ok(vitals)
}

/// How an agent is.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct AgentStatus {
    /// What it does, in words.
    #[serde(deserialize_with = "plain::words")]
    pub doing: String,
    /// Whom it turned away since it started.
    pub turned_away: TurnedAway,
}

/// Whom an agent turned away: how many for which reason, and the last few in words.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct TurnedAway {
    /// There were too many connections or handshakes.
    pub full: u64,
    /// The handshake failed: no certificate, or not one of this authority, or expired.
    pub handshake: u64,
    /// A valid certificate, but no host of the run.
    pub unlisted: u64,
    /// What it said first was not a proper hello.
    pub hello: u64,
    /// It had been let in and then sent what cannot be.
    pub protocol: u64,
    /// The last few in words, oldest first.
    #[serde(deserialize_with = "plain::list")]
    pub recent: Vec<String>,
}

impl From<Refusals> for TurnedAway {
    fn from(refusals: Refusals) -> Self {
        let Refusals { full, handshake, unlisted, hello, protocol, recent } = refusals;
        let last = recent.iter().skip(recent.len().saturating_sub(RECENT));
        let recent = last.map(|words| first_words(words)).collect();
        Self { full, handshake, unlisted, hello, protocol, recent }
    }
}

/// What fits of a text, in whole words.
fn first_words(text: &str) -> String {
    let Some((end, _)) = text.char_indices().nth(WORDS) else { return text.to_owned() };
    let end = text[..end].rfind(char::is_whitespace).unwrap_or(end);
    format!("{} …", text[..end].trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec;
    use crate::results::CoreRow;
    use crate::results::MOST_STRETCHES;
    use crate::results::PathLoss;

    #[test]
    fn refusals_are_cut_between_words() {
        let long = "no host of the run ".repeat(20);
        let cut = first_words(&long);
        let words = cut.strip_suffix(" …").unwrap();
        assert!(long.starts_with(&format!("{words} ")), "{cut}");
        assert!((WORDS - 5..=WORDS).contains(&words.len()), "{cut}");
        assert_eq!(first_words("no host of the run"), "no host of the run");
        assert_eq!(first_words(&"x".repeat(300)), format!("{} …", "x".repeat(WORDS)));
    }

    #[test]
    fn words_of_an_agent_do_not_steer_a_terminal() {
        let heard = |word: AgentMessage| {
            let mut bytes = Vec::new();
            codec::append(&word, &mut bytes).unwrap();
            codec::take::<AgentMessage>(&bytes).unwrap().0
        };
        let bad = || "a\u{1b}[2J\nb\u{202e}".to_owned();
        let (line, lines) = ("a\u{fffd}[2J\u{fffd}b\u{fffd}", "a\u{fffd}[2J\nb\u{fffd}");
        let AgentMessage::Refused { why, .. } = heard(AgentMessage::Refused { run: 1, why: bad() }) else {
            panic!()
        };
        let AgentMessage::Log(log) = heard(AgentMessage::Log(bad())) else { panic!() };
        assert_eq!([why, log], [lines; 2]);
        let AgentMessage::Lost { peer, why } = heard(AgentMessage::Lost { peer: bad(), why: bad() }) else {
            panic!()
        };
        let turned_away = TurnedAway { recent: vec![bad()], ..TurnedAway::default() };
        let state = AgentStatus { doing: bad(), turned_away };
        let AgentMessage::State(state) = heard(AgentMessage::State(Box::new(state))) else { panic!() };
        assert_eq!([&peer, &why, &state.doing, &state.turned_away.recent[0]], [line; 4]);
        let lost_to = vec![PathLoss { to: bad(), ..PathLoss::default() }];
        let vitals = HostVitals { name: bad(), lost_to, ..HostVitals::default() };
        let (tally, reading, datagrams) = (Counters::default(), Reading::default(), Vec::new());
        let account = FinalReport { tally, reading, vitals, datagrams, cores: None };
        let AgentMessage::FinalReport(account) = heard(AgentMessage::FinalReport(Box::new(account))) else {
            panic!()
        };
        assert_eq!([&account.vitals.name, &account.vitals.lost_to[0].to], [line; 2]);
    }

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
