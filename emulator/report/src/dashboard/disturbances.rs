//! Disturbances of a run: the faults of its experiment, and what was injected into it.

use volary_actors::base::{Span, Time};
use volary_engine::cores::Injection;
use volary_engine::results::Injected;
use volary_experiment::number;
use volary_netem::FaultSpec;

use super::snapshot::Disturbance;

/// The faults that have begun by `now`, in the order of the experiment.
pub(super) fn faults(specs: &[FaultSpec], now: Time) -> Vec<Disturbance> {
    let begun = specs.iter().filter(|fault| Time::ZERO + window(fault).0 <= now);
    begun.map(fault).collect()
}

/// When a fault begins, and how long it lasts; `None` if it has no end.
const fn window(fault: &FaultSpec) -> (Span, Option<Span>) {
    match fault {
        FaultSpec::Partition(fault) => (fault.at, Some(fault.lasting)),
        FaultSpec::Crash(fault) => (fault.at, fault.lasting),
        FaultSpec::Pause(fault) => (fault.at, Some(fault.lasting)),
        FaultSpec::Degrade(fault) => (fault.at, Some(fault.lasting)),
    }
}

fn fault(fault: &FaultSpec) -> Disturbance {
    let (at, lasting) = window(fault);
    let sides = fault.targets().map(|(_, targets)| {
        let names: Vec<String> = targets.iter().map(ToString::to_string).collect();
        names.join(", ")
    });
    let mut says = sides.collect::<Vec<_>>().join(" against ");
    if let FaultSpec::Degrade(degrade) = fault {
        says = format!("{says}: delays ×{}", number::short(degrade.delay_factor));
    }
    Disturbance {
        kind: fault.kind().to_owned(),
        at_s: at.as_secs_f64(),
        until_s: lasting.map(|lasting| (at + lasting).as_secs_f64()),
        says,
    }
}

/// The kind of a disturbance that is no fault of the experiment.
const INJECTION: &str = "injection";
/// The kind of an injection that the experiment schedules.
const SCHEDULED: &str = "scheduled injection";

/// Whether it was injected, and is no fault of the experiment.
pub(super) fn is_injection(disturbance: &Disturbance) -> bool {
    disturbance.kind == INJECTION
}

/// What is injected into a run that goes on; `says` names its cores.
pub(super) fn injection(injection: &Injection, says: &str) -> Disturbance {
    Disturbance {
        kind: INJECTION.to_owned(),
        at_s: injection.from.as_secs_f64(),
        until_s: (injection.until < Time::MAX).then(|| injection.until.as_secs_f64()),
        says: says.to_owned(),
    }
}

/// The injections that the experiment schedules and that have begun by `now`.
pub(super) fn scheduled(injections: &[Injection], now: Time) -> impl Iterator<Item = Disturbance> {
    let begun = injections.iter().filter(move |injection| injection.from <= now);
    begun.map(|one| Disturbance {
        kind: SCHEDULED.to_owned(),
        ..injection(one, &format!("cores {}", one.cores))
    })
}

/// What was injected into a run that has ended.
pub(super) fn injected(injected: &Injected) -> Disturbance {
    let hosts = || injected.hosts.iter();
    let cores = hosts().map(|applied| format!("cores {} on {}", applied.cores, applied.host));
    Disturbance {
        kind: INJECTION.to_owned(),
        at_s: hosts().map(|applied| applied.from_s).fold(f64::INFINITY, f64::min),
        until_s: hosts().map(|applied| applied.until_s).reduce(f64::max),
        says: cores.collect::<Vec<_>>().join(", "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_appear_when_they_begin() {
        #[derive(serde::Deserialize)]
        struct Faults {
            fault: Vec<FaultSpec>,
        }
        let text = "[[fault]]\ncrash = { who = [\"node:3\"], at = \"2s\" }\n[[fault]]\n\
                    degrade = { a = [\"node:1\"], at = \"5s\", for = \"1s\", delay_factor = 10 }\n";
        let specs = toml::from_str::<Faults>(text).unwrap().fault;
        let at = |s| faults(&specs, Time::ZERO + Span::from_secs(s));
        assert_eq!((at(1).len(), at(2).len(), at(9).len()), (0, 1, 2));
        let found = at(9);
        assert_eq!((found[0].kind.as_str(), found[0].until_s), ("crash", None));
        assert_eq!((found[1].at_s, found[1].until_s), (5.0, Some(6.0)));
        assert!(found[0].says.contains('3') && found[1].says.ends_with(": delays ×10.0"), "{found:?}");
    }
}
