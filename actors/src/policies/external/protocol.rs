//! The lines between volary and a program: JSON objects, one a line. Times are seconds.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::messages::{Declaration, Vocabulary};
use super::names::{actor_name, duration, seconds};
use super::{External, Level};
use crate::base::{Feature, JobId, Span};
use crate::catalog::Catalog;
use crate::machine::Effects;
use crate::policies::policy::BuildContext;

/// Version of the protocol.
pub const PROTOCOL: u32 = 1;

/// The first line to a program.
pub(super) fn hello(external: &External, context: BuildContext<'_>) -> String {
    let BuildContext { layout, lossy, .. } = context;
    let cores = |node| layout.cores(node);
    let all: Vec<u32> = (0..layout.nodes()).map(cores).collect();
    let equal = all.iter().all(|count| *count == all[0]);
    let hello = json!({
        "protocol": PROTOCOL,
        "volary": env!("CARGO_PKG_VERSION"),
        "level": external.level,
        "parameters": external.parameters,
        "schedulers": layout.schedulers(),
        "nodes": layout.nodes(),
        "cores": if equal { json!(all[0]) } else { json!(all) },
        "kinds": layout.kinds(),
        "lossy": lossy,
        "suspend": external.suspend,
    });
    json!({ "hello": hello }).to_string()
}

/// A program's answer to the greeting.
#[derive(Debug)]
pub(super) struct HelloAnswer {
    /// Whether it decides for nodes, too.
    pub(super) nodes: bool,
    /// Whether it receives `unreachable` and `reachable` events.
    pub(super) unreachable: bool,
    /// The messages that it declares.
    pub(super) messages: Vocabulary,
}

impl HelloAnswer {
    /// Reads the first line of a program.
    ///
    /// # Errors
    /// If the line is not a greeting, has another version, or asks for something that this level does not have.
    pub(super) fn read(line: &str, external: &External) -> Result<Self, String> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Line {
            hello: About,
        }
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct About {
            protocol: u32,
            level: Level,
            #[serde(default)]
            nodes: bool,
            #[serde(default = "yes")]
            unreachable: bool,
            #[serde(default)]
            messages: Vec<Declaration>,
        }
        const fn yes() -> bool {
            true
        }
        let form = "{\"hello\":{\"protocol\":1,\"level\":\"central\"}}";
        let Line { hello: About { protocol, level, nodes, unreachable, messages } } =
            serde_json::from_str(line)
                .map_err(|error| format!("its first line must be a greeting such as {form}: {error}"))?;
        if protocol != PROTOCOL {
            return Err(format!("it uses protocol {protocol}, and this volary uses {PROTOCOL}: update one"));
        }
        if level != external.level {
            let (its, ours) = (json!(level), json!(external.level));
            return Err(format!(
                "it decides at level {its}, and the experiment has level {ours}: change one"
            ));
        }
        if level == Level::Central && (nodes || !messages.is_empty()) {
            return Err("nodes and messages of its own need level \"actor\"".into());
        }
        if nodes && external.suspend {
            return Err("nodes that can suspend tasks do not ask the program: say \"nodes\":false".into());
        }
        Ok(Self { nodes, unreachable, messages: Vocabulary::new(messages)? })
    }
}

/// An event for the program of one actor.
#[derive(Serialize)]
#[serde(tag = "event", rename_all = "lowercase")]
pub(super) enum Event {
    Start {
        epoch: u32,
        seed: String,
    },
    Job(JobLine),
    Ready {
        job: u32,
        task: u32,
        /// Whether the task's node crashed or could not be reached.
        lost: bool,
    },
    Ended {
        job: u32,
        task: u32,
        #[serde(skip_serializing_if = "Option::is_none")]
        node: Option<u32>,
        last: bool,
    },
    Left {
        job: u32,
        task: u32,
        node: u32,
    },
    Killed {
        job: u32,
    },
    Launch {
        job: u32,
        task: u32,
    },
    Down {
        actor: String,
    },
    Up {
        actor: String,
    },
    Unreachable {
        node: u32,
    },
    Reachable {
        node: u32,
    },
    Timer {
        id: u32,
    },
    Message {
        from: String,
        name: String,
        values: Vec<Value>,
    },
    Returned {
        to: String,
        name: String,
        values: Vec<Value>,
    },
}

/// A job that arrives.
#[derive(Serialize)]
pub(super) struct JobLine {
    job: u32,
    tasks: u32,
    estimate: f64,
    arrival: f64,
    class: u8,
    #[serde(skip_serializing_if = "Option::is_none")]
    deadline: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    requested: Option<f64>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    gang: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    estimates: Vec<f64>,
    #[serde(skip_serializing_if = "serde_json::Map::is_empty")]
    features: serde_json::Map<String, Value>,
}

impl JobLine {
    pub(super) fn new(job: JobId, catalog: &dyn Catalog) -> Self {
        let spec = catalog.job(job);
        let estimates: Vec<Span> = (0..spec.tasks).map(|index| catalog.estimate(job.task(index))).collect();
        let equal = estimates.iter().all(|estimate| *estimate == estimates[0]);
        let features = Feature::ALL.into_iter().map(|feature| (feature, catalog.feature(job, feature)));
        Self {
            job: job.0,
            tasks: spec.tasks,
            estimate: seconds(catalog.job_estimate(job).0),
            arrival: seconds(spec.arrival.0),
            class: spec.class,
            deadline: spec.deadline.map(|deadline| seconds(deadline.0)),
            requested: catalog.requested(job).map(|requested| seconds(requested.0)),
            gang: catalog.is_gang(job),
            estimates: if equal {
                Vec::new()
            } else {
                estimates.iter().map(|span| seconds(span.0)).collect()
            },
            features: features
                .filter(|(_, value)| *value != 0)
                .map(|(feature, value)| (feature.name().to_owned(), json!(value)))
                .collect(),
        }
    }
}

/// Events for a program, in JSON.
#[derive(Clone, Default, Debug)]
pub(super) struct Events(String);

impl Events {
    pub(super) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn push(&mut self, event: &Event) {
        let text = serde_json::to_string(event).unwrap_or_default();
        let comma = if self.0.is_empty() { "" } else { "," };
        let _ = write!(self.0, "{comma}{text}");
    }

    /// Removes all events and returns them as a request; `about` contains further keys.
    pub(super) fn request(&mut self, about: &str, fx: &Effects<'_>) -> String {
        let events = std::mem::take(&mut self.0);
        let (at, actor) = (json!(seconds(fx.now().0)), actor_name(fx.me(), fx.layout()));
        format!("{{\"at\":{at},\"actor\":\"{actor}\",{about}\"events\":[{events}]}}")
    }
}

/// The answer to a request.
#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub(super) struct Answer {
    #[serde(default, rename = "do")]
    pub(super) actions: Vec<Order>,
    took: Option<f64>,
}

/// An action that a program asks for.
#[derive(Clone, Deserialize, Debug)]
#[serde(tag = "do", rename_all = "lowercase", deny_unknown_fields)]
pub(super) enum Order {
    Launch {
        job: u32,
        task: u32,
        node: u32,
    },
    Gang {
        job: u32,
        nodes: Vec<u32>,
    },
    Preempt {
        job: u32,
        task: u32,
    },
    Suspend {
        job: u32,
        task: u32,
    },
    Resume {
        job: u32,
        task: u32,
    },
    Timer {
        id: u32,
        after: f64,
    },
    Note {
        name: String,
        value: f64,
    },
    Send {
        to: String,
        name: String,
        values: Vec<Value>,
        #[serde(default)]
        repair: bool,
    },
}

/// Number of distinct timers of an actor.
pub(super) const TIMERS: u32 = 1 << 31;

impl Answer {
    /// Reads an answer.
    ///
    /// # Errors
    /// If the line is not an answer, with the reason.
    pub(super) fn read(line: &str) -> Result<Self, String> {
        let answer: Self = serde_json::from_str(line)
            .map_err(|error| format!("its answer must be an object such as {{\"do\":[]}}: {error}"))?;
        answer.took.map(|took| duration("took", took)).transpose()?;
        Ok(answer)
    }

    /// Emulated time that the decision took; `None` if the answer does not state it.
    pub(super) fn took(&self) -> Option<Span> {
        self.took.map(Span::from_secs_f64)
    }
}
