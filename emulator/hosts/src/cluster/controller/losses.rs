//! The real datagrams that were lost, by sender and path.
//!
//! The sender counts what it sent, the receiver the gaps in the sequence numbers; a loss is known from both. Datagrams
//! lost at the very end of a run leave no gap and are not counted, unless the run was idle: then nothing is on its way,
//! and all datagrams that were not received are lost.

use volary_engine::results::{HostVitals, PathLoss};

use crate::cluster::net::{Host, LinkStats};
use crate::cluster::protocol::{Datagrams, FinalReport};

impl Datagrams {
    /// The counters of a link.
    pub(crate) const fn of(link: &LinkStats) -> Self {
        Self {
            sent: link.datagram_sent + link.datagram_dropped,
            dropped: link.datagram_dropped,
            missing: link.datagram_missing,
            received: link.datagram_received,
        }
    }
}

/// The vitals of the hosts that sent a report, with the losses of the datagrams that each of them sent.
pub(crate) fn vitals(members: &[Host], reports: &[Option<Box<FinalReport>>]) -> Vec<HostVitals> {
    let between = |from: usize, to: usize| {
        let report = reports.get(from).and_then(Option::as_ref);
        report.and_then(|report| report.datagrams.get(to)).copied().unwrap_or_default()
    };
    let of = |(from, report): (usize, &Option<Box<FinalReport>>)| {
        let path = |(to, member): (usize, &Host)| PathLoss {
            to: member.name.clone(),
            sent: between(from, to).sent,
            // The two counters are read at different times.
            lost: (between(from, to).dropped.saturating_add(between(to, from).missing))
                .min(between(from, to).sent),
        };
        let paths: Vec<_> = members.iter().enumerate().map(path).collect();
        Some(HostVitals {
            name: members[from].name.clone(),
            datagrams_sent: sum(&paths, |path| path.sent),
            datagrams_lost: sum(&paths, |path| path.lost),
            lost_to: paths.into_iter().filter(|path| path.lost > 0).collect(),
            ..report.as_ref()?.vitals.clone()
        })
    };
    reports.iter().enumerate().filter_map(of).collect()
}

/// Datagrams that were sent and not received, those on their way included.
pub(crate) fn unaccounted(reports: &[Option<Box<FinalReport>>]) -> u64 {
    let between = |from: usize, to: usize| {
        let one = |of: usize, with: usize| reports[of].as_ref()?.datagrams.get(with).copied();
        Some(one(from, to)?.sent.saturating_sub(one(to, from)?.received))
    };
    let pairs = (0..reports.len()).flat_map(|from| (0..reports.len()).map(move |to| (from, to)));
    pairs.filter_map(|(from, to)| between(from, to)).fold(0, u64::saturating_add)
}

fn sum(paths: &[PathLoss], count: impl Fn(&PathLoss) -> u64) -> u64 {
    paths.iter().fold(0, |sum, path| count(path).saturating_add(sum))
}

#[cfg(test)]
mod tests {
    use volary_engine::finalize::Counters;
    use volary_experiment::fidelity::gauge::LatenessHistograms;

    use super::*;

    fn report(name: &str, datagrams: &[(u64, u64, u64)]) -> Option<Box<FinalReport>> {
        let of =
            |&(sent, dropped, missing): &(u64, u64, u64)| Datagrams { sent, dropped, missing, received: 0 };
        Some(Box::new(FinalReport {
            tally: Counters::default(),
            reading: LatenessHistograms::default().reading(),
            vitals: HostVitals { name: name.to_owned(), ..HostVitals::default() },
            datagrams: datagrams.iter().map(of).collect(),
            cores: None,
        }))
    }

    #[test]
    fn names_come_from_the_members_and_losses_are_bounded() {
        let address = ([127, 0, 0, 1], 1).into();
        let members = ["h1", "h2"].map(|name| Host::new(name.to_owned(), address));
        let reports = [report("h2", &[(0, 0, 0), (7, 1, 0)]), report("h2", &[(0, 0, u64::MAX), (0, 0, 0)])];
        let [h1, _] = &vitals(&members, &reports)[..] else { panic!("two reports") };
        assert_eq!((h1.name.as_str(), h1.datagrams_sent, h1.datagrams_lost), ("h1", 7, 7));
    }

    #[test]
    fn datagrams_sent_and_not_received_are_unaccounted_for() {
        let counts =
            |sent, received| vec![Datagrams::default(), Datagrams { sent, received, ..Datagrams::default() }];
        let mut reports = [report("h1", &[]), report("h2", &[])];
        reports[0].as_mut().unwrap().datagrams = counts(7, 5);
        reports[1].as_mut().unwrap().datagrams = counts(5, 6).into_iter().rev().collect();
        assert_eq!(unaccounted(&reports), 1);
        reports[1] = None;
        assert_eq!(unaccounted(&reports), 0, "what a lost host received is not known");
    }

    #[test]
    fn a_loss_is_counted_for_its_sender() {
        let address = ([127, 0, 0, 1], 1).into();
        let members = ["h1", "h2", "h3"].map(|name| Host::new(name.to_owned(), address));
        // h1 sends a hundred datagrams to h2 and drops one; h2 misses four. h3 sends no report.
        let reports = [
            report("h1", &[(0, 0, 0), (100, 1, 0), (50, 2, 9)]),
            report("h2", &[(80, 0, 4), (0, 0, 0), (30, 0, 0)]),
            None,
        ];
        let [h1, h2] = &vitals(&members, &reports)[..] else { panic!("two reports") };
        assert_eq!((h1.name.as_str(), h1.datagrams_sent, h1.datagrams_lost), ("h1", 150, 7));
        let paths: Vec<_> = h1.lost_to.iter().map(|path| (path.to.as_str(), path.sent, path.lost)).collect();
        assert_eq!(paths, [("h2", 100, 5), ("h3", 50, 2)]);
        assert_eq!((h2.datagrams_sent, h2.datagrams_lost, h2.lost_to.len()), (110, 0, 0));
    }
}
