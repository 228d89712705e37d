//! Limits on values, and on combinations of values, that types cannot express.

use std::collections::BTreeSet;

use volary_actors::base::{Span, Time};
use volary_actors::policies::PolicySpec;
use volary_engine::handling::{ActorsSection, Processor, ROLES};
use volary_engine::scenario::{Machines, Resolved};
use volary_engine::workload::{Measure, NoWindow, Workload, WorkloadSpec};
use volary_netem::{FaultSpec, Groups, Target};

use super::document::Document;
use super::error::{ConfigError, did_you_mean, listed};
use super::explain;
use super::file::{File, Repeat, RuntimeKind};
use super::load::mean_cpu;
use crate::sanitize::is_hidden;

/// Longest emulated time, s.
const LONGEST_S: f64 = u64::MAX as f64 * 1e-9;
/// Largest number of runs of an experiment; a larger number is treated as a typing error.
const MOST_RUNS: u64 = 1_000_000;
/// Supported emulated seconds per real second. Beyond them a nanosecond of one clock is less than the resolution of
/// the other, or a timer exceeds the range of the system's timers.
const SPEEDS: std::ops::RangeInclusive<f64> = 1e-6..=1e6;

/// Checks numbers whose range their type cannot express.
pub(super) fn numbers(document: &Document<'_>, file: &File) -> Result<(), ConfigError> {
    let (precision, speed) = (file.precision, file.run.speed);
    let on_cores = file.actors.as_ref().is_some_and(|actors| actors.on == Processor::Cores);
    let wrong: (&[&str], String, &str) = if !(precision > 0.0 && precision < 1.0) {
        let message = format!("`precision` must lie between 0 and 1, not be {precision}");
        (&["precision"], message, "write 0.05 for a half-width of 5 %")
    } else if file.run.until == Some(Span::ZERO) {
        let message = "`run.until`: the run would end before it begins".to_owned();
        (&["run", "until"], message, "write for example \"60s\", or leave it out to run to the end")
    } else if file.cluster.shared && file.run.burning().is_some() {
        let message =
            "`run.real`: a real core runs one copy, but `cluster.shared` lets copies share nodes".to_owned();
        (&["run", "real"], message, "leave out run.real (timers then end copies), or cluster.shared")
    } else if !file.service.sensitivity.is_empty() && file.run.burning().is_some() {
        let message = "`service.sensitivity` has no effect on a copy that burns a real core".to_owned();
        (&["service", "sensitivity"], message, "leave out run.real (timers then end copies), or the key")
    } else if file.workload.gossip().is_some() && file.interference.is_some() && !on_cores {
        let message = "`interference` slows cores down, and members of a gossip group use none".to_owned();
        (
            &["interference"],
            message,
            "write actors.on = \"cores\" and times in actors.handling, or leave it out",
        )
    } else if file.workload.gossip().is_some() && file.run.measure.is_some() {
        let message = "`run.measure`: gossip has no jobs that arrive in a window".to_owned();
        (
            &["run", "measure"],
            message,
            "leave it out; workload.gossip.warmup and duration bound what is measured",
        )
    } else if file.run.measure == Some(Measure::Auto) && file.run.runtime != RuntimeKind::Virtual {
        let message =
            "`run.measure`: \"auto\" needs two equal runs, and no two runs in real time are equal".to_owned();
        let help =
            "give bounds such as { from = \"10 %\" }; a run in virtual time says where \"auto\" begins";
        (&["run", "measure"], message, help)
    } else if !SPEEDS.contains(&speed) {
        // NaN is in no range.
        let (least, most) = (SPEEDS.start(), SPEEDS.end());
        let message = format!("`run.speed` must lie between {least} and {most}, not be {speed}");
        (&["run", "speed"], message, "write emulated seconds per real second, such as 1.0")
    } else {
        return Ok(());
    };
    let (key, message, help) = wrong;
    Err(document.error_at(key, message).help(help))
}

/// Refuses texts with characters that a terminal executes or does not show.
pub(super) fn texts(document: &Document<'_>, file: &File) -> Result<(), ConfigError> {
    let says = |(i, claim): (usize, &super::file::ClaimSection)| {
        (vec!["claim".to_owned(), i.to_string(), "says".to_owned()], claim.says.clone())
    };
    let source = file.source.iter().map(|source| (vec!["source".to_owned()], source.clone()));
    let title = std::iter::once((vec!["title".to_owned()], file.title.clone()));
    let texts = title.chain(source).chain(file.claim.iter().enumerate().map(says));
    for (path, text) in texts {
        let Some(odd) = text.chars().find(|c| is_hidden(*c)) else { continue };
        let path: Vec<_> = path.iter().map(String::as_str).collect();
        let message = format!(
            "a control character, U+{:04X}, would change how a terminal shows the text",
            u32::from(odd)
        );
        return Err(document.error_at(&path, message).help("leave it out"));
    }
    Ok(())
}

/// Checks that the total number of runs is within [`MOST_RUNS`].
pub(super) fn runs(document: &Document<'_>, points: usize, repeat: Repeat) -> Result<(), ConfigError> {
    let runs = points as u64 * u64::from(repeat.times().unwrap_or(1));
    if runs <= MOST_RUNS {
        return Ok(());
    }
    Err(document
        .error_at(&["repeat"], format!("{runs} runs are more than {MOST_RUNS}"))
        .help("lower `repeat` (or --repeat), shorten the sweep, or split the experiment"))
}

/// Checks that jobs arrive in the measured window, and before the run ends.
pub(super) fn window(document: &Document<'_>, file: &File, jobs: &Workload) -> Result<(), ConfigError> {
    let Some(measure) = file.run.measure else { return Ok(()) };
    let refused = |message: String, help| {
        Err(document.error_at(&["run", "measure"], format!("`run.measure`: {message}")).help(help))
    };
    match (measure.window(jobs), file.run.until) {
        (Err(NoWindow { why, help }), _) => refused(why, help),
        (Ok(Some(window)), Some(until)) if Time::ZERO + until <= window.from => {
            let from = window.from.since(Time::ZERO);
            refused(format!("the run ends at {until}, and the window begins at {from}"), "raise run.until")
        }
        (Ok(_), _) => Ok(()),
    }
}

/// Checks that a gossip workload fits the run and the network.
pub(super) fn gossip(document: &Document<'_>, file: &File) -> Result<(), ConfigError> {
    let Some(gossip) = file.workload.gossip() else { return Ok(()) };
    let end = gossip.warmup + gossip.duration;
    if file.run.until.is_some_and(|until| until < end) {
        return Err(document
            .error_at(&["run", "until"], format!("`run.until`: updates are measured until {end}"))
            .help("leave it out, or shorten workload.gossip.duration"));
    }
    let (network, sized) = (&file.network, gossip.updates.as_ref().is_some_and(|of| of.bytes > Some(0)));
    if sized && network.rate.is_none() && network.uplink.is_none() && file.cluster.topology.is_none() {
        let message = "`workload.gossip.updates.bytes`: no link has a rate, so the size has no effect";
        return Err(document
            .error_at(&["workload", "gossip", "updates", "bytes"], message)
            .help("write network.rate or network.uplink, for example \"100 Mbit/s\", or leave it out"));
    }
    if file.run.real.is_some() {
        return Err(document
            .error_at(&["run", "real"], "`run.real`: gossip has no tasks that could burn cores")
            .help("leave it out"));
    }
    Ok(())
}

/// Checks the names in `actors.handling`.
pub(super) fn actors(document: &Document<'_>, file: &File) -> Result<(), ConfigError> {
    let Some(actors) = &file.actors else { return Ok(()) };
    actors.check().map_err(|name| {
        let message = format!("`{name}` is neither a role of actors nor a kind of message");
        let roles = listed(ROLES);
        let help = did_you_mean(name, ActorsSection::names()).unwrap_or_else(|| {
            format!("write {roles}, or a name of messages.by_kind in results, such as launch.row")
        });
        document.error_at(&["actors", "handling", name], message).help(help)
    })
}

/// Checks the scheduled injections. The machines of the first policy suffice, since all policies have the same nodes.
pub(super) fn injections(document: &Document<'_>, file: &File, world: &Resolved) -> Result<(), ConfigError> {
    let Some(entry) = file.policy.first().filter(|_| !world.injections.is_empty()) else { return Ok(()) };
    let machines = world.cluster.machines(&entry.spec, file.seed);
    machines.scheduled(&world.injections, file.seed).map_err(|error| explain::key(document, &error))?;
    let Some(until) = file.run.until else { return Ok(()) };
    let late = world.injections.iter().position(|injection| injection.spec.at >= until);
    late.map_or(Ok(()), |i| {
        let at = ["interference", "injection", &i.to_string(), "at"];
        let message = format!("the run ends at {until}, before this injection begins");
        Err(document.error_at(&at, message).help("inject earlier, or raise run.until"))
    })
}

/// Checks that work sampled from distributions fits into the range of emulated time.
pub(super) fn duration(
    document: &Document<'_>,
    world: &Resolved,
    jobs: u32,
    seed: u64,
) -> Result<(), ConfigError> {
    let (work, key): (_, &[&str]) = match (&world.workload, &world.service.demand) {
        (WorkloadSpec::Synthetic(spec), Some(demand)) => {
            (spec.tasks.mean().max(1.0) * demand.mean(), &["service", "demand"])
        }
        (WorkloadSpec::Mix(mix), _) => (mix.mean_work(), &["workload", "mix", "class"]),
        _ => return Ok(()),
    };
    let work = f64::from(jobs) * work * mean_cpu(world).unwrap_or(1.0);
    let lasts = work / world.cluster.capacity(seed);
    // A distribution without a finite mean cannot be checked by its mean.
    if !lasts.is_finite() || lasts < LONGEST_S / 2.0 {
        return Ok(());
    }
    let message = "the cores would need more than the 292 years that are safe to emulate";
    Err(document.error_at(key, message).help("lower the work, the jobs or the tasks, or add cores"))
}

/// Refuses fault targets that no policy of the experiment has: unknown kinds, and numbers above the auxiliary actors of
/// every policy.
pub(super) fn targets(
    document: &Document<'_>,
    faults: &[FaultSpec],
    machines: &[Machines],
) -> Result<(), ConfigError> {
    let known: BTreeSet<&str> = machines.iter().flat_map(|machines| machines.groups.kinds()).collect();
    for (i, fault) in faults.iter().enumerate() {
        let named = fault.targets().flat_map(|(key, whom)| whom.iter().map(move |target| (key, target)));
        let unknown = |target: &Target| target.kind().filter(|kind| !known.contains(kind)).map(str::to_owned);
        for (key, target) in named {
            let help = match unknown(target) {
                Some(kind) => remedy(&kind, &known),
                None => match exceeded(target, machines) {
                    Some(numbers) => numbers,
                    None => continue,
                },
            };
            let at = ["network", "fault", &i.to_string(), fault.kind(), key];
            let message =
                format!("`network.fault[{i}].{}.{key}`: `{target}` names nothing here", fault.kind());
            return Err(document.error_at(&at, message).help(help));
        }
    }
    Ok(())
}

/// The remedy for a target of a kind that no policy of the experiment has.
fn remedy(kind: &str, known: &BTreeSet<&str>) -> String {
    only_elsewhere(kind).or_else(|| did_you_mean(kind, known.iter().copied())).unwrap_or_else(|| {
        let known: Vec<_> = known.iter().copied().collect();
        format!("known kinds are all, {}", known.join(", "))
    })
}

/// The valid numbers, if the number of a target is too large for every policy.
fn exceeded(target: &Target, machines: &[Machines]) -> Option<String> {
    let kind = target.kind()?;
    let having = machines.iter().filter(|machines| machines.groups.kinds().any(|known| known == kind));
    let most = having.max_by_key(|machines| machines.layout.auxiliaries())?;
    most.groups.exceeded(target)
}

/// The remedy for a target that only policies outside the experiment have.
fn only_elsewhere(kind: &str) -> Option<String> {
    let cards = PolicySpec::cards();
    let names: Vec<_> = cards.iter().filter(|card| card.auxiliary == kind).map(|card| card.name).collect();
    (!names.is_empty()).then(|| {
        format!(
            "no policy of this experiment has {kind}s; add {}, or leave the fault out",
            names.join(" or ")
        )
    })
}

/// Refuses crashes that include a client. Clients, the first `schedulers` endpoints, generate the jobs and are not
/// measured.
pub(super) fn crashes(
    document: &Document<'_>,
    faults: &[FaultSpec],
    groups: &Groups,
    schedulers: u32,
) -> Result<(), ConfigError> {
    for (i, fault) in faults.iter().enumerate() {
        let FaultSpec::Crash(crash) = fault else { continue };
        // Unknown names were refused when the faults were resolved.
        let client = |target| groups.resolve(target).is_ok_and(|hit| hit.iter().any(|at| at.0 < schedulers));
        if let Some(target) = crash.who.iter().find(|target| client(target)) {
            let at = ["network", "fault", &i.to_string(), "crash", "who"];
            let message = format!("`network.fault`: \"{target}\" would crash a client");
            return Err(document.error_at(&at, message).help(
                "clients are the source of jobs, outside the experiment; aim at \"nodes\", \"schedulers\" or single \
                 machines such as \"node:3\"",
            ));
        }
    }
    Ok(())
}
