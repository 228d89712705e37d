//! Bounds checks of what arrives from other hosts and from injectors, before it indexes a table.

use volary_actors::base::{CopyId, JobId};
use volary_actors::catalog::Catalog;
use volary_actors::machine::Note;
use volary_actors::message::KINDS;

use volary_engine::cores::{Interference, Profile};
use volary_engine::parcel::{Observation, Parcel, Seen};
use volary_engine::world::World;

/// Slots that one second of work may span in an injected profile: the cores evaluate them one by one whenever a copy
/// begins, on the thread that runs the shard.
const MAX_SLOTS_PER_SECOND: f64 = 1e7;

/// Whether a parcel goes from an actor of `host` to one of `me`, and its message refers to existing jobs and nodes.
/// Delays are computed as `due - sent`, so these must be in order.
pub(crate) fn is_valid_parcel(world: &World, homes: &[u16], me: u16, host: u16, parcel: &Parcel) -> bool {
    let layout = world.layout();
    let Parcel { from, to, msg, .. } = parcel;
    if from.0 >= layout.actors() || to.0 >= layout.actors() || parcel.sent > parcel.due {
        return false;
    }
    let home = |actor| homes[layout.endpoint(actor).index()];
    let ends = if parcel.returned { (home(*to), home(*from)) } else { (home(*from), home(*to)) };
    ends == (host, me) && msg.check(*from, *to, layout, world.workload())
}

/// Whether the actors, jobs, cores and nodes of an observation exist: the recorder indexes its tables with them.
pub(crate) fn is_in_bounds(world: &World, observation: &Observation) -> bool {
    let (layout, jobs) = (world.layout(), world.workload());
    let job = |job: JobId| job.0 < jobs.jobs();
    let copy = |copy: CopyId| job(copy.task.job) && copy.task.index < jobs.job(copy.task.job).tasks;
    match observation.what {
        Seen::Crashed(core) => core < layout.workers(),
        Seen::Note(who, _) if who.0 >= layout.actors() => false,
        Seen::Note(_, note) => match note {
            Note::Arrived { job: id } | Note::Resubmitted { job: id } | Note::Finished { job: id } => job(id),
            Note::Started { copy: id, .. }
            | Note::Completed { copy: id }
            | Note::Preempted { copy: id }
            | Note::Suspended { copy: id }
            | Note::Bound { copy: id } => copy(id),
            Note::Placed { copy: id, node, .. } => copy(id) && node < layout.nodes(),
            Note::Learnt { node, .. } | Note::Believes { node, .. } => node < layout.nodes(),
            Note::Unexpected { kind } => usize::from(kind) < KINDS.len(),
        },
    }
}

/// Reads a profile that refers to no file and is cheap enough to be evaluated while a run goes on.
pub(crate) fn load_profile(text: &str) -> Result<Profile, String> {
    let table: Interference = toml::from_str(text).map_err(|error| error.to_string())?;
    let profile = table.resolve().map_err(|error| error.to_string())?;
    let slots = profile.stretches_of_work();
    if slots > MAX_SLOTS_PER_SECOND {
        return Err(format!(
            "a second of work would take {slots:.0e} slots of this profile, more than can be looked at while a run \
             goes on: make slots longer or the slowdown less"
        ));
    }
    Ok(profile)
}
