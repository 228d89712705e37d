//! Parameters of Murmuration.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::base::Span;
use crate::layout::Layout;
use crate::machine::Machine;
use crate::policies::policy::{BuildContext, Policy};
use crate::policies::shared::positive;

/// Parameters of Murmuration.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Murmuration {
    /// The order of jobs at a scheduler, and of tasks at a node.
    pub order: MurmurationOrder,
    /// Send the other schedulers one update for each job instead of one for each task. The paper's simulator does, its
    /// prototype does not. A batch counts as one message; it is sent in parts of two tasks, of which each can be lost
    /// by itself where updates are datagrams. An update that a scheduler has not sent when it crashes is lost, while
    /// the ends of the tasks it placed are still reported: the others expect too little work at these nodes until a
    /// report (`repair`).
    pub batch: bool,
    /// The value by which nodes are compared.
    pub wait: MurmurationWait,
    /// Decision time of a scheduler per job, before it places the first task. Section 6.2.4 uses 100 ms.
    pub decision_per_job: Span,
    /// Decision time per task. Section 6.2.4 uses 5 ms.
    pub decision_per_task: Span,
    /// Artificial delay before an update is sent, beyond what the network takes (section 6.2.3). Updates that wait when
    /// their sender crashes are lost, as with `batch`.
    pub update_delay: Span,
    /// How updates are disseminated.
    pub spread: MurmurationSpread,
    /// `epidemic` spread: the number of schedulers to which an update is sent by its maker, and by each receiver that
    /// had not seen it.
    #[schemars(range(min = 1, max = 65_536))]
    pub fan_out: u32,
    /// Period at which a node reports the work it really has. The report replaces the receiver's entry, unless the
    /// receiver has newer updates; it repairs what lost updates left behind. A report does not contain tasks that other
    /// schedulers placed and that are under way: they are forgotten, or counted twice, until the next report;
    /// `update_delay` may not be longer than this. Zero: never, as in the paper.
    pub repair: Span,
    /// How a restarted scheduler uses the cache of another.
    pub copy: Copying,
    /// Time a restarted scheduler waits for an answer before it asks two others. The paper has no value.
    pub ask_timeout: Span,
    /// Upper bound of the artificial delay before an answer is sent: evenly from zero to this, 3 s in section 6.2.4.
    /// The answer is the cache at the time of the question.
    pub answer_delay: Span,
    /// Forget the work placed on a node that crashed. The paper does not say; without it the work of a dead node deters
    /// placements forever.
    pub forget_dead: bool,
}

/// The order of jobs at a scheduler, and of tasks at a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MurmurationOrder {
    /// Oldest job first at both.
    #[default]
    Fcfs,
    /// The job with the least estimated work of all its tasks first, and the task with the least estimate.
    /// Nothing is preempted.
    Srjf,
}

/// The value by which nodes are compared.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MurmurationWait {
    /// The sum of the estimates of what is queued or runs there, over the node's cores.
    #[default]
    PerCore,
    /// The sum, regardless of the cores (section 4.1).
    Work,
    /// When the node is expected to be free: at each update the later of that and of the task's start, with the
    /// estimate over the cores added or subtracted. The authors' simulator does so; there a node that was used lately
    /// ranks behind one that never was.
    Clock,
}

/// How updates are disseminated.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MurmurationSpread {
    /// To every scheduler, over reliable streams, as the paper assumes.
    #[default]
    Streams,
    /// To every scheduler, in datagrams that can be lost.
    Datagrams,
    /// In datagrams to `fan_out` random schedulers, each of which forwards an update it had not seen.
    Epidemic,
}

/// How a restarted scheduler uses the cache of another.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Copying {
    /// Updates are numbered, and those that the copy contains are not applied again.
    #[default]
    Numbered,
    /// All updates since the question are applied, whether the copy contains them or not, as in the paper.
    Naive,
}

/// Upper bound of `fan_out`.
const MOST_FAN_OUT: u32 = 1 << 16;

impl Default for Murmuration {
    fn default() -> Self {
        Self {
            order: MurmurationOrder::Fcfs,
            batch: true,
            wait: MurmurationWait::PerCore,
            decision_per_job: Span::ZERO,
            decision_per_task: Span::ZERO,
            update_delay: Span::ZERO,
            spread: MurmurationSpread::Streams,
            fan_out: 3,
            repair: Span::ZERO,
            copy: Copying::Numbered,
            ask_timeout: Span::from_secs(1),
            answer_delay: Span::ZERO,
            forget_dead: true,
        }
    }
}

impl Policy for Murmuration {
    const ABOUT: &'static str = "Murmuration (Vijayakumar, Madhavapeddy and Kalyvianaki, SoCC 2024)\n\
        Each scheduler keeps a cache of the work expected at every node and sends every task of a job to the \
        node with the least, at once and for good. It tells all other schedulers, and nodes tell all \
        schedulers what ended, so that the caches agree but for news that is under way. Nodes queue; nobody \
        resolves conflicts. A restarted scheduler copies the cache of another.";

    const VARIANTS: &'static [&'static str] = &[
        "{}",
        r#"{ batch = false, update_delay = "300ms", ask_timeout = "100ms", answer_delay = "200ms" }"#,
        r#"{ order = "srjf", decision_per_job = "20ms", decision_per_task = "5ms" }"#,
        r#"{ wait = "clock", copy = "naive", forget_dead = false }"#,
        r#"{ spread = "datagrams", repair = "2s" }"#,
        r#"{ spread = "epidemic", fan_out = #, repair = "5s" }"#,
    ];

    fn check(&self, _: &Layout) -> Result<(), String> {
        positive("ask_timeout", self.ask_timeout)?;
        if self.spread == MurmurationSpread::Epidemic && !(1..=MOST_FAN_OUT).contains(&self.fan_out) {
            return Err(format!(
                "fan_out: must be from 1 to {MOST_FAN_OUT}, not {}; spread = \"datagrams\" broadcasts everybody",
                self.fan_out
            ));
        }
        if self.repair > Span::ZERO && self.update_delay > self.repair {
            return Err(format!(
                "update_delay: {} is longer than repair, {}: reports would undo news before it is spread; lower \
                 update_delay or raise repair",
                self.update_delay, self.repair
            ));
        }
        Ok(())
    }

    fn scheduler(&self, context: BuildContext<'_>) -> Box<dyn Machine> {
        Box::new(super::scheduler::MurmurationScheduler::new(self, context))
    }

    fn node(&self, context: BuildContext<'_>) -> Box<dyn Machine> {
        Box::new(super::node::MurmurationNode::new(self, context))
    }
}
