//! `[workload.gossip]`: updates that spread among members, in place of jobs.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use volary_actors::base::{DistributionSpec, Span, Time};
use volary_actors::layout::{GossipGroup, Neighbours, Origin};

/// `[workload.gossip]`: updates that spread among members, in place of jobs. Members are the nodes of the cluster. The
/// only scheduler, `"scheduler:0"`, is the source: an actor outside of the group that may send to each member. A newer
/// update of an actor replaces its older updates.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Gossip {
    /// The updates that spread. If absent no updates are made; members can still detect failures.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updates: Option<Updates>,
    /// The members to which each member may send. The network is described elsewhere: a message takes the links of
    /// `[network]` or of `cluster.topology`.
    #[serde(default)]
    pub topology: Graph,
    /// Time before the measured part of the run. Updates made in this time are not measured.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub warmup: Span,
    /// Length of the measured part of the run.
    pub duration: Span,
    /// Time after the measured part, in which no update is made, but updates on their way can still arrive.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub drain: Span,
}

/// The updates of a gossip group.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Updates {
    /// Gap before each update. If all n members make updates, this is the gap between updates of the whole group. With
    /// an exponential distribution the updates of each member are a Poisson process. With a constant gap members take
    /// turns. With any other distribution the gaps of each member are samples times n.
    pub every: DistributionSpec<Span>,
    /// The actors that make updates.
    #[serde(default)]
    pub at: UpdateOrigin,
    /// Bytes of a message with an update, headers included, on links and uplinks with a rate and in the results. If
    /// absent 74, the size of such a message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub bytes: Option<u32>,
}

/// The actors that make updates.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum UpdateOrigin {
    /// All members, in equal shares.
    #[default]
    Members,
    /// The member of this number.
    Member(u32),
    /// The source, an actor outside of the group that sends to members and receives nothing.
    Source,
}

/// The members to which each member may send.
#[derive(Clone, PartialEq, Default, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Graph {
    /// All other members.
    #[default]
    Complete,
    /// The members before and after it.
    Ring,
    /// This number of random other members, drawn under the seed of the run: a random regular graph.
    Regular(u32),
    /// The members that a list of edges names.
    Edges(Edges),
}

/// Undirected edges between members, in the experiment file or in a file beside it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Edges {
    /// The two members of each edge; members are numbered from 0.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<[u32; 2]>,
    /// A text file with the two members of an edge on each line, relative to the experiment file; loaded into `values`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<PathBuf>,
}

fn is_zero(span: &Span) -> bool {
    *span == Span::ZERO
}

/// The part of a run that is measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MeasuredPart {
    /// Start.
    pub from: Time,
    /// End; no update is made from then on.
    pub until: Time,
}

impl Gossip {
    /// The part of the run that is measured.
    pub fn measured(&self) -> MeasuredPart {
        let from = Time::ZERO + self.warmup;
        MeasuredPart { from, until: from + self.duration }
    }

    /// Length of the run.
    pub fn lasts(&self) -> Span {
        self.warmup + self.duration + self.drain
    }

    /// The group of `members` members under `seed`.
    ///
    /// # Errors
    /// The key that does not fit, below `workload.gossip`, the reason, and a remedy.
    pub fn group(
        &self,
        members: u32,
        seed: u64,
    ) -> Result<GossipGroup, (&'static [&'static str], String, String)> {
        let none =
            Updates { every: DistributionSpec::Constant(Span::MAX), at: UpdateOrigin::Members, bytes: None };
        let Updates { every, at, bytes } = self.updates.as_ref().unwrap_or(&none);
        let wrong = |at: &'static [&'static str], why: String, help: &str| Err((at, why, help.to_owned()));
        if every.is_unread() || every.mean().is_nan() || every.mean() < SHORTEST_S {
            let why = "a gap between updates must be a microsecond or longer in the mean";
            return wrong(&["updates", "every"], why.to_owned(), "write for example every = \"1s\"");
        }
        let origin = match *at {
            _ if self.updates.is_none() => Origin::Nowhere,
            UpdateOrigin::Members => Origin::Members,
            UpdateOrigin::Source => Origin::Source,
            UpdateOrigin::Member(member) if member < members => Origin::Member(member),
            UpdateOrigin::Member(member) => {
                let why = format!("there is no member {member}");
                let help = format!("members are 0 to {}", members.saturating_sub(1));
                return wrong(&["updates", "at"], why, &help);
            }
        };
        if self.duration == Span::ZERO {
            let why = "the measured part would be empty".to_owned();
            return wrong(&["duration"], why, "write for example duration = \"100s\"");
        }
        let topology: &[&str] = &["topology"];
        let neighbours = match &self.topology {
            Graph::Complete => Neighbours::Complete,
            Graph::Ring => Neighbours::Ring,
            Graph::Regular(degree) => match Neighbours::regular(members, *degree, seed) {
                Some(graph) => graph,
                None => {
                    let why = format!(
                        "there is no graph in which each of {members} members has {degree} neighbours"
                    );
                    let help =
                        "write a degree below the number of members, and an even one if that number is odd";
                    return wrong(topology, why, help);
                }
            },
            Graph::Edges(Edges { values, file }) => {
                if file.is_some() {
                    let why = "it has both edges and a file of edges".to_owned();
                    return wrong(topology, why, "keep one of the two");
                }
                let graph = Neighbours::of_edges(members, values);
                let help = format!("name each edge once, between members 0 to {}", members.saturating_sub(1));
                graph.map_err(|why| (topology, why, help))?
            }
        };
        if let Some(member) = neighbours.apart() {
            let why = format!("the topology is not connected: no path joins members 0 and {member}");
            return wrong(topology, why, "add edges; for a regular topology, write a degree of 2 or more");
        }
        if *bytes == Some(0) {
            return wrong(
                &["updates", "bytes"],
                "a message cannot have 0 bytes".to_owned(),
                "write for example bytes = 10_000",
            );
        }
        let until = self.measured().until;
        let mut group = GossipGroup::new(members, neighbours, every.clone(), origin, until, seed);
        group.bytes = *bytes;
        Ok(group)
    }
}

/// Shortest mean gap between updates, s.
const SHORTEST_S: f64 = 1e-6;
