//! Numbers and names of a run in the lines of a program.

use crate::base::{ActorId, JobId, Span, TaskId, Time};
use crate::catalog::Catalog;
use crate::layout::{Layout, Role};
use crate::machine::{Note, ValueName};

/// Seconds as the nearest number, which is exact to the nanosecond for 26 days.
pub(super) fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

/// The name of an actor in the protocol.
pub(super) fn actor_name(actor: ActorId, layout: &Layout) -> String {
    match layout.role(actor) {
        Role::Client(number) => format!("client:{number}"),
        Role::Scheduler(number) => format!("scheduler:{number}"),
        Role::Node(number) | Role::Worker { node: number, .. } => format!("node:{number}"),
        Role::Auxiliary(number) => format!("auxiliary:{number}"),
    }
}

/// The scheduler or node with this name.
pub(super) fn actor_named(name: &str, layout: &Layout) -> Result<ActorId, String> {
    let found = name.split_once(':').and_then(|(role, number)| {
        let number: u32 = number.parse().ok()?;
        match role {
            "scheduler" => (number < layout.schedulers()).then(|| layout.scheduler(number)),
            "node" => (number < layout.nodes()).then(|| layout.node(number)),
            _ => None,
        }
    });
    found.ok_or_else(|| {
        format!(
            "there is no `{name}`: actors are \"scheduler:0\" to \"scheduler:{}\" and \"node:0\" to \"node:{}\"",
            layout.schedulers() - 1,
            layout.nodes() - 1
        )
    })
}

/// A span of a number of seconds, which must be finite and not negative.
pub(super) fn duration(key: &str, value: f64) -> Result<Span, String> {
    if value.is_finite() && value >= 0.0 {
        return Ok(Span::from_secs_f64(value));
    }
    Err(format!("{key} must be a number of seconds from 0 on, not {value}"))
}

/// A task by the numbers that a program gives.
pub(super) fn task_named(job: u32, task: u32, catalog: &dyn Catalog) -> Result<TaskId, String> {
    if job >= catalog.jobs() || task >= catalog.tasks(JobId(job)) {
        return Err(format!("there is no task {task} of job {job}"));
    }
    Ok(JobId(job).task(task))
}

/// A time by its number of seconds.
pub(super) fn time_named(value: f64) -> Result<Time, String> {
    duration("a time", value).map(|span| Time::ZERO + span)
}

/// The note of a program's value.
pub(super) fn value_note(name: &str, value: f64) -> Result<Note, String> {
    let short = ValueName::new(name).ok_or_else(|| {
        format!("`{name}` cannot name a value: write 1 to 16 letters, digits and underscores")
    })?;
    if value.is_finite() && value >= 0.0 {
        return Ok(Note::Value { name: short, bits: value.to_bits() });
    }
    Err(format!("the value `{name}` must be a finite number from 0 on, not {value}"))
}
