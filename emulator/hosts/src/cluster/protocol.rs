//! Messages between controller and agents, on the control stream of a connection, and between controller and injectors.
//!
//! An agent is idle until a controller claims it and loads an experiment. It then executes one run after the other, as
//! ordered, and drops everything that belongs to the session when the connection to the controller ends. Parcels
//! between agents travel on links of their own. An injector connects to a socket of the controller.

use std::borrow::Cow;
use std::net::SocketAddr;

use serde::{Deserialize, Serialize};
use volary_actors::base::CoreSet;
use volary_actors::base::{Span, Time};
use volary_engine::cores::{Interference, Profile};
use volary_engine::parcel::Observation;
use volary_engine::results::{HostVitals, Worked};
use volary_engine::world::finalize::Counters;
use volary_experiment::config::Bundle;
use volary_experiment::control::{LateSoFar, ShardSample};
use volary_experiment::fidelity::measure::Reading;
use volary_experiment::sanitize;

use super::net::Host;

/// Maximum size of a message in bytes, except [`ControllerMessage::Load`]. The largest message is a [`FinalReport`],
/// with up to a few megabytes of histograms and two megabytes of stretches of real cores.
pub const MESSAGE_FRAME: usize = 8 << 20;
/// Maximum size of an answer to [`Opening::Status`] in bytes.
pub const STATUS_FRAME: usize = 4096;
/// Maximum size of the first message on a connection in bytes: an [`Opening`] or a [`LinkPurpose`].
pub const FIRST_FRAME: usize = 64;

/// The stated reason for the end of an injection that was cut short by the end of its run.
pub const RUN_OVER: &str = "the run was over";

/// Maximum number of slots per second of work in an injected profile: the cores evaluate them one by one whenever a
/// copy begins, on the thread that runs the shard.
const MAX_SLOTS_PER_SECOND: f64 = 1e7;

/// The first message of a peer with a controller's certificate.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Opening {
    /// Answer with an [`AgentStatus`].
    Status,
    /// Serve only this controller until it disconnects: [`ControllerMessage`]s follow.
    Claim,
}

/// The first message of a peer with a host's certificate.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct LinkPurpose {
    /// The number of the run that uses the link, [`Assignment::run`].
    pub run: u64,
}

/// The state of an agent.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct AgentStatus {
    /// The agent's version of volary, with a digest of the kinds of messages.
    pub version: String,
    /// The agent's activity, as text.
    pub doing: String,
    /// The run in progress.
    pub run: Option<RunStatus>,
}

/// The activity of an agent that serves a controller; the controller's address follows.
const SERVES: &str = "runs for ";

impl AgentStatus {
    /// The state of an agent that serves this controller, or no controller.
    pub fn new(version: String, controller: Option<SocketAddr>, run: Option<RunStatus>) -> Self {
        let doing = controller.map_or_else(|| "idle".to_owned(), |peer| format!("{SERVES}{peer}"));
        Self { version, doing, run }
    }

    /// The address of the controller that the agent serves; `None` if the agent is free.
    pub fn controller(&self) -> Option<&str> {
        self.doing.strip_prefix(SERVES)
    }
}

/// The progress of a run, as one of its hosts sees it.
#[derive(Clone, PartialEq, Default, Debug, Serialize, Deserialize)]
pub struct RunStatus {
    /// The experiment's name.
    pub experiment: String,
    /// Label of the policy.
    pub policy: String,
    /// Values of the swept keys, as text; empty if nothing is swept.
    pub cell: String,
    pub seed: u64,
    /// The emulated time that the shard of this host has reached, s.
    pub at_s: f64,
    /// Number of finished jobs in the controller's last message.
    pub finished: u64,
    /// Number of all jobs.
    pub jobs: u64,
    /// Lateness of deliveries on this host, at most a second old; `None` in the first second.
    pub late: Option<LateSoFar>,
    /// Bound of the error of the host's clock, s; `None` until it is known.
    pub clock_error_s: Option<f64>,
}

/// Maximum length of a name in a [`RunStatus`], in characters; longer names are cut.
const NAME: usize = 200;

impl RunStatus {
    /// Status of a run that has not begun.
    pub fn new(experiment: &str, policy: &str, cell: &str, seed: u64, jobs: u64) -> Self {
        let [experiment, policy, cell] =
            [experiment, policy, cell].map(|name| name.chars().take(NAME).collect());
        Self { experiment, policy, cell, seed, jobs, ..Self::default() }
    }
}

/// A run to execute.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Assignment {
    /// Distinguishes the links of this run from those of all other runs.
    pub run: u64,
    /// Index of the experiment's point.
    pub point: u32,
    pub seed: u64,
    /// The run's id as the controller computes it; the agent compares it with its own.
    pub id: String,
    /// The hosts, in order of shards.
    pub members: Vec<Host>,
    /// Index of the receiving agent.
    pub me: u16,
}

/// Messages of a controller to an agent that it has claimed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum ControllerMessage {
    /// Plan this experiment. Always the first message.
    Load(Box<Bundle>),
    /// Build this host's shard of a run, and links to the other hosts.
    Prepare(Box<Assignment>),
    /// Begin when the controller's clock reads `at`, ns.
    Start { at: i64 },
    /// Answers [`AgentMessage::Ping`] with the `sent` of the ping and the controller's clock, ns.
    Pong { sent: i64, here: i64 },
    /// The emulated time that the slowest host has reached, and the number of finished jobs.
    Progress { slowest: Time, finished: u64 },
    /// Begin an injection into cores of this host.
    Inject(Box<InjectOrder>),
    /// End the injection at `at`, in emulated time.
    Lift { id: u64, at: Time, why: String },
    /// The run is over: send the final report.
    Stop,
}

/// Messages of an agent to its controller.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum AgentMessage {
    /// The experiment is planned.
    Loaded,
    /// The shard is built, all links are up, the clock offset is known.
    Ready { run: u64 },
    /// Another controller is served, at this address.
    Busy { controller: String },
    /// An order cannot be carried out. `run` is zero if it concerns more than one run.
    Refused { run: u64, why: String },
    /// Asks for the controller's clock; `sent` is the reading of the agent's clock, ns.
    Ping { sent: i64 },
    /// Observations in order of time.
    Notes {
        notes: Vec<Observation>,
        /// The time before which no further observation follows.
        mark: Time,
        /// The emulated time that this shard has reached.
        progress: Time,
    },
    /// Lines of the agent's log.
    Log(String),
    /// The next frame of the shard's input log.
    Inputs(Vec<u8>),
    /// The link to another host broke during the run.
    Lost { peer: String, why: String },
    /// An injection has begun.
    Injected {
        id: u64,
        /// Start of the injection; later than ordered if the order came late.
        from: Time,
    },
    /// An injection has ended, or could not begin.
    Lifted { id: u64, until: Time, why: String },
    /// A sample of the shard during the run, every second.
    Sample(Box<ShardSample>),
    /// The measurements of a run. Always the run's last message.
    FinalReport(Box<FinalReport>),
}

impl AgentMessage {
    /// This value with every text on one line and without control characters of terminals.
    pub(crate) fn sanitized(mut self) -> Self {
        let clean = |text: &mut String| {
            if let Cow::Owned(line) = sanitize::line(text) {
                *text = line;
            }
        };
        match &mut self {
            Self::Busy { controller: text }
            | Self::Refused { why: text, .. }
            | Self::Lifted { why: text, .. } => clean(text),
            Self::Lost { peer, why } => [peer, why].into_iter().for_each(clean),
            Self::FinalReport(report) => report.vitals.awake_refused.iter_mut().for_each(clean),
            Self::Loaded
            | Self::Ready { .. }
            | Self::Ping { .. }
            | Self::Notes { .. }
            | Self::Log(_)
            | Self::Inputs(_)
            | Self::Injected { .. }
            | Self::Sample(_) => {}
        }
        self
    }
}

impl AgentStatus {
    /// This value with every text on one line and without control characters of terminals.
    pub(crate) fn sanitized(self) -> Self {
        let clean = |text: String| sanitize::line(&text).into_owned();
        let run = self.run.map(|run| RunStatus {
            experiment: clean(run.experiment),
            policy: clean(run.policy),
            cell: clean(run.cell),
            ..run
        });
        Self { version: clean(self.version), doing: clean(self.doing), run }
    }
}

impl InjectReply {
    /// This value with every text on one line and without control characters of terminals.
    pub(crate) fn sanitized(self) -> Self {
        let clean = |text: String| sanitize::line(&text).into_owned();
        let share = |share: InjectionShare| InjectionShare {
            host: clean(share.host),
            ended: clean(share.ended),
            ..share
        };
        let plan = |plan: Box<InjectionPlan>| {
            Box::new(InjectionPlan { run: clean(plan.run), policy: clean(plan.policy), ..*plan })
        };
        match self {
            Self::Planned(of) => Self::Planned(plan(of)),
            Self::Begun(of, shares) => Self::Begun(plan(of), shares.into_iter().map(share).collect()),
            Self::Over(shares) => Self::Over(shares.into_iter().map(share).collect()),
            Self::Refused(refusal, why) => Self::Refused(refusal, clean(why)),
        }
    }
}

/// The measurements of an agent in a run.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct FinalReport {
    /// Counters of the agent's shard.
    pub tally: Counters,
    /// Histograms of lateness.
    pub reading: Reading,
    /// The host and its clock; the losses of its datagrams are completed from the reports of the other hosts.
    pub vitals: HostVitals,
    /// Real datagrams to and from every host, by shard.
    pub datagrams: Vec<Datagrams>,
    /// Measurements of real cores, if copies burnt real cores.
    pub cores: Option<Worked>,
}

/// Real datagrams between two hosts as counted by one host, in messages.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct Datagrams {
    /// Messages sent to the other host.
    pub sent: u64,
    /// Messages of `sent` that were dropped before they left, because the network did not take them fast enough.
    pub dropped: u64,
    /// Messages of the other host that were not received, although later messages were received.
    pub missing: u64,
    /// Messages received from the other host.
    pub received: u64,
}

/// One host's part of an injection, as the controller orders it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct InjectOrder {
    /// Id of the injection, equal on all hosts and unique among injections.
    pub id: u64,
    /// The profile as TOML, without references to files.
    pub profile: String,
    /// Seed of the profile's slots.
    pub seed: u64,
    /// Cores of the receiving host.
    pub cores: CoreSet,
    pub from: Time,
    /// End of the injection; [`Time::MAX`] if the injection lasts as long as its injector.
    pub until: Time,
}

/// Messages of an injector.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum InjectorMessage {
    /// The first message, and the only request of a connection.
    Request(Box<InjectRequest>),
    /// End the injection.
    End,
}

/// The requested injection. Targets, cores and hosts are combined; without any of them, all cores are selected.
#[derive(Clone, PartialEq, Default, Debug, Serialize, Deserialize)]
pub struct InjectRequest {
    /// The profile as TOML, without references to files.
    pub profile: String,
    /// Seed of the profile's slots; the run's own seed if absent.
    pub seed: Option<u64>,
    /// Nodes in the notation of faults; all their cores are selected.
    pub targets: Vec<String>,
    /// Cores by number.
    pub cores: CoreSet,
    /// Hosts; all cores that they hold are selected.
    pub hosts: Vec<String>,
    /// Emulated time after which the injection ends; if absent, it ends with its injector.
    pub lasting: Option<Span>,
    /// Whether the controller only answers with the plan.
    pub dry_run: bool,
    /// Whether the injection is repeated at the same emulated time in each later run of the experiment.
    pub all_policies: bool,
}

/// Answers to an injector: one [`Planned`](Self::Planned) for a dry run, otherwise [`Begun`](Self::Begun) and then
/// [`Over`](Self::Over); or [`Refused`](Self::Refused).
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum InjectReply {
    Planned(Box<InjectionPlan>),
    Begun(Box<InjectionPlan>, Vec<InjectionShare>),
    Over(Vec<InjectionShare>),
    Refused(Refusal, String),
}

/// The kind of reason for which an injection is refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Refusal {
    /// The request names something that does not exist or has no meaning.
    Invalid,
    /// No run is in progress.
    NotRunning,
    /// Something failed, or a limit was reached.
    Failed,
}

/// An injection as a whole, and the run that it concerns.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct InjectionPlan {
    /// Id of the current run.
    pub run: String,
    /// Label of the run's policy.
    pub policy: String,
    /// Seed of the run.
    pub run_seed: u64,
    /// Seed of the injected slots.
    pub seed: u64,
    pub cores: CoreSet,
    pub from: Time,
    pub until: Time,
    /// Names of the runs of this cell that had ended before, without the injection.
    pub lacking: Vec<String>,
    /// The cluster's cores, as [`CoreTable::outline`](volary_engine::cores::CoreTable::outline) gives them.
    pub outline: Vec<(u32, u32, u32)>,
}

/// An injection on one host.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct InjectionShare {
    pub host: String,
    /// The selected cores of this host.
    pub cores: CoreSet,
    pub from: Time,
    /// End of the injection; `None` while it lasts, and if the host was lost.
    pub until: Option<Time>,
    /// Reason for the end of the injection.
    pub ended: String,
}

/// Reads a profile that refers to no file and is cheap enough to be evaluated during a run.
pub(crate) fn load_profile(text: &str) -> Result<Profile, String> {
    let table: Interference = toml::from_str(text).map_err(|error| error.to_string())?;
    let profile = table.resolve().map_err(|error| error.to_string())?;
    let slots = profile.stretches_of_work();
    if slots > MAX_SLOTS_PER_SECOND {
        return Err(format!(
            "a second of work would take {slots:.0e} slots of this profile, more than can be evaluated during a \
            run: make slots longer or the slowdown smaller"
        ));
    }
    Ok(profile)
}

#[cfg(test)]
mod tests {
    use volary_engine::results::{CoreRow, MOST_STRETCHES};
    use volary_experiment::codec;

    use super::*;

    #[test]
    fn texts_of_peers_are_on_one_line_without_control_characters() {
        let [bad, good] = [
            "at 1\n12:00 all is well \u{1b}[2J\u{202e}",
            "at 1\u{fffd}12:00 all is well \u{fffd}[2J\u{fffd}",
        ];
        let text = || bad.to_owned();
        let messages = [
            AgentMessage::Busy { controller: text() },
            AgentMessage::Refused { run: 1, why: text() },
            AgentMessage::Lifted { id: 1, until: Time::ZERO, why: text() },
            AgentMessage::Lost { peer: text(), why: text() },
        ];
        for message in messages {
            let said = format!("{:?}", message.sanitized());
            assert!(said.contains(good) && !said.contains("\\n") && !said.contains("\\u{1b}"), "{said}");
        }
        let run = RunStatus { experiment: text(), policy: text(), cell: text(), ..RunStatus::default() };
        let status = AgentStatus { version: text(), doing: text(), run: Some(run) }.sanitized();
        let run = status.run.unwrap();
        let texts = [status.version, status.doing, run.experiment, run.policy, run.cell];
        assert_eq!(texts, [good; 5]);
        let InjectReply::Refused(_, why) = InjectReply::Refused(Refusal::Failed, text()).sanitized() else {
            panic!("another reply")
        };
        assert_eq!(why, good);
    }

    /// The largest report of real cores still leaves room for the rest of a final report.
    #[test]
    fn a_final_report_with_many_stretches_fits_into_a_frame() {
        let stretch = CoreRow { core: u32::MAX, start: 1.0, end: 2.0, asked: 4.0, had: 0.1, done: 0.2 };
        let stretches = vec![stretch; MOST_STRETCHES];
        let mut bytes = Vec::new();
        codec::append(&Worked { stretches, ..Worked::default() }, &mut bytes).unwrap();
        assert!(bytes.len() < MESSAGE_FRAME / 2, "{}", bytes.len());
    }
}
