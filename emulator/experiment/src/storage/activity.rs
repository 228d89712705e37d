//! The stored form of the messages and the load on the timeline of a run.

use serde::{Deserialize, Serialize};
use volary_engine::results::{LoadRow, Measured, MessageRow};

/// Messages of the nodes on the timeline, and the load of the cluster.
#[derive(Clone, PartialEq, Default, Debug, Serialize, Deserialize)]
pub struct Activity {
    /// Names of the actors that sent or received a message, in order of first appearance.
    pub actors: Vec<String>,
    /// Names of the kinds of messages, in order of first appearance.
    pub kinds: Vec<String>,
    /// Messages in order of delivery.
    pub messages: Vec<Arrow>,
    /// Number of later messages that were left out to limit the size.
    pub left_out: u64,
    /// Node of each core on the timeline.
    pub nodes: Vec<u32>,
    /// Samples of the load of the whole cluster: time in s, number of waiting tasks, number of cores that run a copy.
    pub load: Vec<(f64, u64, u32)>,
}

/// A message, serialized as a short JSON array in this order.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(from = "ArrowTuple", into = "ArrowTuple")]
pub struct Arrow {
    /// Time of sending, s.
    pub sent: f64,
    /// Time of handling, s.
    pub delivered: f64,
    /// Index of the sender.
    pub from: usize,
    /// Index of the receiver.
    pub to: usize,
    /// Index of the kind.
    pub kind: usize,
    /// The job that the message concerns, if any.
    pub job: Option<u32>,
}

type ArrowTuple = (f64, f64, usize, usize, usize, Option<u32>);

impl From<ArrowTuple> for Arrow {
    fn from((sent, delivered, from, to, kind, job): ArrowTuple) -> Self {
        Self { sent, delivered, from, to, kind, job }
    }
}

impl From<Arrow> for ArrowTuple {
    fn from(Arrow { sent, delivered, from, to, kind, job }: Arrow) -> Self {
        (sent, delivered, from, to, kind, job)
    }
}

impl Activity {
    /// The activity of a run.
    pub(super) fn of(measured: &Measured) -> Self {
        let mut activity = Self {
            left_out: measured.messages_left_out,
            nodes: measured.timeline_nodes.clone(),
            load: measured
                .load
                .iter()
                .map(|&LoadRow { time, waiting, busy }| (time, waiting, busy))
                .collect(),
            ..Self::default()
        };
        for MessageRow { sent, delivered, from, to, kind, job } in &measured.messages {
            let arrow = Arrow {
                sent: *sent,
                delivered: *delivered,
                from: index(&mut activity.actors, from),
                to: index(&mut activity.actors, to),
                kind: index(&mut activity.kinds, kind),
                job: *job,
            };
            activity.messages.push(arrow);
        }
        activity
    }

    /// The message with names in place of indices; `None` if the file lacks a name.
    pub fn named(&self, arrow: &Arrow) -> Option<[&str; 3]> {
        let actor = |index: usize| self.actors.get(index).map(String::as_str);
        Some([actor(arrow.from)?, actor(arrow.to)?, self.kinds.get(arrow.kind)?])
    }
}

/// The index of a name in a list; a new name is appended.
fn index(names: &mut Vec<String>, name: &str) -> usize {
    names.iter().position(|known| known == name).unwrap_or_else(|| {
        names.push(name.to_owned());
        names.len() - 1
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::fixture::measured;

    #[test]
    fn names_of_actors_and_kinds_are_stored_once() {
        let run = measured("a", &[], 3, 1.0, 10);
        let activity = Activity::of(&run);
        assert!(activity.messages.len() > 10 && activity.actors.len() < 10 && activity.kinds.len() == 2);
        for (arrow, row) in activity.messages.iter().zip(&run.messages) {
            assert_eq!(activity.named(arrow), Some([row.from.as_str(), &row.to, &row.kind]));
            assert_eq!((arrow.sent, arrow.delivered, arrow.job), (row.sent, row.delivered, row.job));
        }
        let json = serde_json::to_string(&activity).unwrap();
        assert_eq!(serde_json::from_str::<Activity>(&json).unwrap(), activity);
        assert_eq!(activity.named(&Arrow { kind: 2, ..activity.messages[0] }), None);
    }
}
