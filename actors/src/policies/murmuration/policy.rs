//! Murmuration: schedulers that each keep what all nodes have before them, and tell each other.
//!
//! | module | what it holds |
//! |---|---|
//! | `scheduler` | the queue of jobs, placement, what becomes of both when something is lost |
//! | `cache` | expected waits: choosing a node, taking in news |
//! | `heard` | which news was heard before |
//! | `disseminator` | making news and spreading it |
//! | `boot` | a restarted scheduler copies the cache of another |
//! | `node` | the node manager |

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
    /// Which job a scheduler takes first, and which task a node.
    pub order: MurmurationOrder,
    /// Tell the others once for each job instead of once for each task. The paper's simulator does, its
    /// prototype does not. A batch counts as one message; it goes out in parts of two tasks, of which each can be
    /// lost by itself where news goes as datagrams. What a scheduler has not told when it crashes nobody hears, but
    /// the ends of what it placed are told: others believe too little of these nodes until a report (`repair`).
    pub batch: bool,
    /// What nodes are compared by.
    pub wait: MurmurationWait,
    /// Time a scheduler thinks about a job before it places its first task. Section 6.2.4 uses 100 ms.
    pub decision_per_job: Span,
    /// Time it thinks about each task. Section 6.2.4 uses 5 ms.
    pub decision_per_task: Span,
    /// How long news lies before it is spread, beyond what the network takes (section 6.2.3). What lies there when its
    /// maker crashes is gone, as with `batch`.
    pub update_delay: Span,
    /// How news travels.
    pub spread: MurmurationSpread,
    /// `epidemic` spread: to how many schedulers news goes from its maker and from everyone who hears it first.
    pub fan_out: u32,
    /// How often a node broadcasts what it really has, which replaces what was believed, unless the receiver has newer
    /// news: repairs what lost news left behind. A report knows nothing of what other schedulers placed and is under
    /// way: that is forgotten, or counted twice, until the next one; `update_delay` may not be longer than this.
    /// Zero: never, as in the paper.
    pub repair: Span,
    /// How a restarted scheduler uses the cache of another.
    pub copy: Copying,
    /// How long a restarted scheduler waits for an answer before it asks two others. The paper has no value.
    pub ask_timeout: Span,
    /// How long an answer may lie before it is sent: evenly from zero to this, 3 s in section 6.2.4. The copy is
    /// that of the moment of the question.
    pub answer_delay: Span,
    /// Forget what was placed on a node that crashed. The paper does not say; without it the work of the dead
    /// repels for ever.
    pub forget_dead: bool,
}

/// Which job a scheduler takes first, and which task a node.
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

/// What nodes are compared by.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MurmurationWait {
    /// The sum of the estimates of what is queued or runs there, over the node's cores.
    #[default]
    PerCore,
    /// The sum, whatever the cores (section 4.1).
    Work,
    /// When the node is expected to be free: at each news the later of that and of the task's start, and the
    /// estimate over the cores added or taken away. The authors' simulator does so, where a node that was used
    /// lately ranks behind one that never was.
    Clock,
}

/// How news travels.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MurmurationSpread {
    /// To every scheduler, and it arrives: the paper assumes so.
    #[default]
    Streams,
    /// To every scheduler, in datagrams that can be lost.
    Datagrams,
    /// In datagrams to `fan_out` random schedulers, each of which passes on what it hears for the first time.
    Epidemic,
}

/// How a restarted scheduler uses the cache of another.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Copying {
    /// News is numbered, and what the copy contains is not counted again.
    #[default]
    Numbered,
    /// All news since the question is counted, whether the copy contains it or not, as in the paper.
    Naive,
}

/// Nobody passes news on to more than this.
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
        node with the least, at once and for good. It broadcasts all other schedulers, and nodes tell all \
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
