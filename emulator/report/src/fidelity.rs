//! The text of certificates.

use volary_engine::results::{Certificate, RealWork, Summary};
use volary_experiment::number;
use volary_experiment::storage::study::CellGroup;

/// The lines below the table of a cell. If all runs are faithful there is one line; otherwise a line for each degraded
/// run, a line with all remedies, and a line for the other runs. Empty in virtual time.
pub fn lines(group: &CellGroup) -> Vec<String> {
    let runs = group.policies.iter().flat_map(|runs| &runs.runs).map(|run| &run.summary);
    let runs: Vec<_> = runs.filter_map(|run| Some((run, run.fidelity.as_ref()?))).collect();
    let (bad, good): (Vec<_>, Vec<_>) =
        runs.into_iter().partition(|(_, certificate)| certificate.is_degraded());
    let several = bad.len() + good.len() > 1;
    let mut lines: Vec<String> = bad.iter().map(|(run, c)| degraded(run, c, several)).collect();
    if let Some((_, first)) = bad.first() {
        let reasons = bad.iter().flat_map(|(_, certificate)| certificate.reasons.clone()).collect();
        let all = Certificate { reasons, ..(*first).clone() };
        lines.push(format!("  remedy: {}", all.remedies().join("; ")));
    }
    let good: Vec<&Certificate> = good.into_iter().map(|(_, certificate)| certificate).collect();
    if !good.is_empty() {
        let whose = if bad.is_empty() { "fidelity" } else { "fidelity of the others" };
        lines.push(format!("{whose}: faithful ({})", worst(&good)));
    }
    lines
}

fn degraded(run: &Summary, certificate: &Certificate, several: bool) -> String {
    let whose = if several { format!(" of {}", run.name()) } else { String::new() };
    format!("fidelity{whose}: DEGRADED: {}", reasons(certificate))
}

/// All reasons for a verdict of degraded, joined.
pub fn reasons(certificate: &Certificate) -> String {
    certificate.reasons.iter().map(|reason| reason.says.as_str()).collect::<Vec<_>>().join("; ")
}

/// The numbers behind a verdict of faithful: the worst value of each over the certificates.
fn worst(certificates: &[&Certificate]) -> String {
    let most = |of: &dyn Fn(&Certificate) -> f64| certificates.iter().map(|c| of(c)).fold(0.0, f64::max);
    let deliveries = number::seconds(most(&|c| c.lateness.deliveries.p99_s));
    let share = number::percent(most(&|c| c.lateness.deliveries.late_share));
    let late = number::seconds(certificates.iter().map(|c| c.late_beyond_s).fold(f64::INFINITY, f64::min));
    let work = number::seconds(most(&|c| c.lateness.work.p99_s));
    let busy = number::percent(most(&|c| c.hosts.iter().map(|host| host.busy()).fold(0.0, f64::max)));
    let timer = most(&|c| c.timer_p99_s().unwrap_or(0.0));
    let timer = if timer > 0.0 {
        format!("; a bare timer of this machine: {}", number::seconds(timer))
    } else {
        String::new()
    };
    let cores = real_cores(certificates).map_or_else(String::new, |cores| format!("; {cores}"));
    format!(
        "99 % of deliveries within {deliveries}, {share} later than {late}; 99 % of ends of copies within {work}{timer}; processors {busy} busy{cores}"
    )
}

/// The worst values of real cores; `None` if copies burned no cores.
fn real_cores(certificates: &[&Certificate]) -> Option<String> {
    let real: Vec<&RealWork> = certificates.iter().filter_map(|c| c.cores.as_ref()).collect();
    let most = |of: &dyn Fn(&RealWork) -> f64| real.iter().map(|work| of(work)).fold(0.0, f64::max);
    let healthy = number::percent(most(&RealWork::unhealthy));
    let slots: u64 = real.iter().map(|work| work.degraded().0).sum();
    let slots = match slots {
        0 => String::new(),
        count => format!(
            ", slowdowns of {} within {} of the request",
            number::plural(count, "slot"),
            number::percent(most(&|work| work.degraded().1))
        ),
    };
    let kernel = &real.first()?.kernel;
    Some(format!("real cores burn {kernel}, healthy ones within {healthy} of their pace{slots}"))
}

#[cfg(test)]
mod tests {
    use volary_engine::results::{RealCore, Reason, Samples};
    use volary_experiment::fidelity::fixture;
    use volary_experiment::storage::fixture::measured;
    use volary_experiment::storage::run_record::RunRecord;
    use volary_experiment::storage::study::PolicyRuns;

    use super::*;

    fn group(certificates: &[Option<Certificate>]) -> CellGroup {
        let runs = certificates.iter().zip(["a", "b"]).map(|(certificate, policy)| {
            let mut run = RunRecord::new(policy, &measured(policy, &[], 1, 1.0, 10));
            run.summary.fidelity.clone_from(certificate);
            PolicyRuns { policy: policy.to_owned(), runs: vec![run] }
        });
        CellGroup {
            cell: volary_engine::results::Cell::new(),
            policies: runs.collect(),
            order: Vec::new(),
            partial: false,
        }
    }

    #[test]
    fn lines_state_the_verdict_and_the_remedy() {
        assert_eq!(lines(&group(&[None, None])), [] as [&str; 0], "virtual time has none");
        let good = lines(&group(&[Some(fixture::faithful()), Some(fixture::faithful())]));
        assert_eq!(good.len(), 1);
        assert!(good[0].starts_with("fidelity: faithful (99 % of deliveries within 69"), "{good:?}");
        assert!(good[0].contains("a bare timer of this machine: 80.0\u{202f}µs"), "{good:?}");
        let mut work = RealWork { kernel: "hash".into(), ..RealWork::default() };
        work.slot(2.0, 0.01, 0.5);
        work.slot(4.0, 0.01, 0.26);
        work.cores.push(RealCore { healthy: Samples::one(0.99), ..RealCore::default() });
        let real = Certificate { cores: Some(work), ..fixture::faithful() };
        let real = lines(&group(&[Some(real), None]));
        let says = "real cores burn hash, healthy ones within 1.00 % of their pace, slowdowns of 2 slots within 3.85 % of the request";
        assert!(real[0].replace('\u{202f}', " ").contains(says), "{real:?}");
        let mixed = lines(&group(&[Some(fixture::faithful()), Some(fixture::degraded())]));
        assert_eq!(mixed.len(), 3);
        assert!(mixed[0].starts_with("fidelity of b, seed 1: DEGRADED: "), "{mixed:?}");
        assert!(mixed[1].starts_with("  remedy: --set run.speed="), "{mixed:?}");
        assert!(mixed[2].starts_with("fidelity of the others: faithful ("), "{mixed:?}");
        let slower = |speed: f64| {
            let mut certificate = fixture::degraded();
            let remedy = format!("--set run.speed={speed} or less, or hosts on more machines");
            certificate.reasons.truncate(1);
            certificate.reasons[0] = Reason { speed: Some(speed), remedy, ..certificate.reasons[0].clone() };
            Some(certificate)
        };
        let both = lines(&group(&[slower(2.0), slower(1.5)]));
        assert_eq!(
            both[2..],
            ["  remedy: --set run.speed=1.5 or less, or hosts on more machines"],
            "the remedy has the lowest of the speeds"
        );
        let alone = lines(&group(&[Some(fixture::degraded())]));
        assert!(alone.len() == 2 && alone[0].starts_with("fidelity: DEGRADED: "), "{alone:?}");
    }
}
