//! Murmuration: schedulers that tell each other what they placed, nodes that tell them what ended.
//!
//! News travels as a stream or, where a policy asks for it, as a datagram that can be lost. Whoever makes news
//! numbers it, so that what a copied cache already contains is not counted twice: the upper byte of a number
//! says how often its maker was restarted, the rest counts.

use serde::{Deserialize, Serialize};

use super::Conversation;
use super::check::Envelope;
use crate::base::{Class, JobId, Span, Time};
use crate::layout::{Layout, Role};

/// What a scheduler tells of its placements.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Form {
    /// One task was placed.
    Single,
    /// The tasks of a job were placed; more of them may follow in [`Form::Rest`].
    Batch,
    /// More of a batch: part of the same message, which is longer than ours may be.
    Rest,
    /// One task never reached its node.
    Withdrawn,
}

/// Tasks of a job bound to nodes. Each adds what the job's tasks are estimated at. In this order, with the
/// flag last, so that whatever else is said fits before it.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Placed {
    /// When it was decided.
    pub at: Time,
    /// Whose tasks.
    pub job: JobId,
    /// Their nodes, a task each; [`Placed::NOBODY`] fills up.
    pub nodes: [u32; 2],
    /// Which news of its maker.
    pub number: u32,
    /// The scheduler that made it.
    pub maker: u32,
    /// What it is.
    pub form: Form,
    /// Whether it travels as a datagram, which can be lost, and whoever hears it first may pass it on.
    pub rumour: bool,
}

impl Placed {
    /// No node.
    pub const NOBODY: u32 = u32::MAX;

    /// The nodes it is about.
    pub fn nodes(&self) -> impl Iterator<Item = u32> + use<> {
        self.nodes.into_iter().filter(|&node| node != Self::NOBODY)
    }
}

/// A task that is not at its node any more.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Ended {
    /// The node.
    pub node: u32,
    /// Which news of the node.
    pub number: u32,
    /// What its task was estimated at.
    pub estimate: Span,
    /// When its placement was decided, so that both are judged alike; where schedulers keep clocks, when it began to
    /// run.
    pub since: Time,
}

/// News and the copying of caches.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Gossip {
    /// Scheduler → schedulers: Update(+).
    Placed(Placed),
    /// Node → schedulers: Update(−).
    Ended(Ended),
    /// As `Ended`, but it can be lost, and whoever hears it first may pass it on.
    EndedRumour(Ended),
    /// Scheduler → scheduler: what is in your cache?
    Ask {
        /// Which attempt of the asker.
        round: u32,
    },
    /// Scheduler → scheduler: so many parts follow.
    Answer {
        /// The attempt it answers.
        round: u32,
        /// How many [`Gossip::Entry`] and [`Gossip::Heard`].
        parts: u32,
    },
    /// A part of an answer: a node.
    Entry {
        /// The attempt it answers.
        round: u32,
        /// The node.
        node: u32,
        /// What is expected there, ns.
        wait: i64,
        /// News decided before this is of an earlier life of the node.
        since: Time,
    },
    /// A part of an answer: all news of this maker below the number is in it.
    Heard {
        /// The attempt it answers.
        round: u32,
        /// Schedulers first, then nodes.
        maker: u32,
        /// The number of the first news that is not in it.
        number: u32,
    },
    /// Node → scheduler: the work of all tasks that are here. It replaces what was believed, unless newer news was
    /// heard.
    Backlog {
        /// Sum of their estimates.
        work: Span,
        /// When it was so.
        at: Time,
        /// The number of the node's first news that is not in it.
        number: u32,
        /// How many tasks have come from the receiver.
        came: u32,
    },
}

impl Gossip {
    /// What is told of an end.
    #[must_use]
    pub const fn ended(rumour: bool, ended: Ended) -> Self {
        if rumour { Self::EndedRumour(ended) } else { Self::Ended(ended) }
    }

    /// Whether it travels as a datagram, and whoever hears it first may pass it on.
    #[must_use]
    pub const fn is_rumour(&self) -> bool {
        matches!(self, Self::EndedRumour(_) | Self::Placed(Placed { rumour: true, .. }))
    }

    /// Who made the news, schedulers first, and its number.
    #[must_use]
    pub fn origin(&self, layout: &Layout) -> Option<(u32, u32)> {
        match *self {
            Self::Placed(placed) => Some((placed.maker, placed.number)),
            Self::Ended(ended) | Self::EndedRumour(ended) => {
                Some((layout.schedulers() + ended.node, ended.number))
            }
            Self::Ask { .. }
            | Self::Answer { .. }
            | Self::Entry { .. }
            | Self::Heard { .. }
            | Self::Backlog { .. } => None,
        }
    }
}

impl Conversation for Gossip {
    const VARIANTS: &'static [(&'static str, Class)] = &[
        ("gossip.placed", Class::Stream),
        ("gossip.batch", Class::Stream),
        ("gossip.withdrawn", Class::Stream),
        ("gossip.ended", Class::Stream),
        ("rumour.placed", Class::Datagram),
        ("rumour.batch", Class::Datagram),
        ("rumour.withdrawn", Class::Datagram),
        ("rumour.ended", Class::Datagram),
        ("cache.ask", Class::Stream),
        ("cache.answer", Class::Stream),
        ("cache.entry", Class::Stream),
        ("cache.heard", Class::Stream),
        ("gossip.backlog", Class::Datagram),
    ];

    fn variant(&self) -> u8 {
        match self {
            Self::Placed(placed) => {
                let form = match placed.form {
                    Form::Single => 0,
                    Form::Batch | Form::Rest => 1,
                    Form::Withdrawn => 2,
                };
                form + 4 * u8::from(placed.rumour)
            }
            Self::Ended(_) => 3,
            Self::EndedRumour(_) => 7,
            Self::Ask { .. } => 8,
            Self::Answer { .. } => 9,
            Self::Entry { .. } => 10,
            Self::Heard { .. } => 11,
            Self::Backlog { .. } => 12,
        }
    }

    fn continues(&self) -> bool {
        match self {
            Self::Placed(placed) => placed.form == Form::Rest,
            Self::Entry { .. } | Self::Heard { .. } => true,
            Self::Ended(_)
            | Self::EndedRumour(_)
            | Self::Ask { .. }
            | Self::Answer { .. }
            | Self::Backlog { .. } => false,
        }
    }

    fn allowed(&self, envelope: &Envelope<'_>) -> bool {
        let (layout, schedulers) = (envelope.layout, envelope.layout.schedulers());
        let across = matches!((envelope.from, envelope.to), (Role::Scheduler(_), Role::Scheduler(_)));
        match *self {
            // Rumours are passed on.
            Self::Placed(news) => {
                let maker = news.maker;
                across
                    && maker < schedulers
                    && (news.rumour || envelope.from == Role::Scheduler(maker))
                    && news.nodes().all(|node| node < layout.nodes())
                    && envelope.has_task(news.job.task(0))
            }
            Self::Ended(news) => envelope.upwards() && envelope.from == Role::Node(news.node),
            Self::EndedRumour(news) => {
                news.node < layout.nodes()
                    && (across || envelope.upwards() && envelope.from == Role::Node(news.node))
            }
            Self::Ask { .. } => across,
            Self::Answer { parts, .. } => across && parts >= layout.nodes(),
            Self::Entry { node, .. } => across && node < layout.nodes(),
            Self::Heard { maker, .. } => across && maker < schedulers + layout.nodes(),
            Self::Backlog { .. } => envelope.upwards(),
        }
    }
}
