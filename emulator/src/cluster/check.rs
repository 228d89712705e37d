//! Whether what other hosts say can be: what cannot is refused before an actor or the books see it.

use volary_actors::base::{CopyId, JobId, Span, Time};
use volary_actors::catalog::Catalog;
use volary_actors::layout::Role;
use volary_actors::machine::Note;
use volary_actors::message::KINDS;

use super::protocol::FinalReport;
use crate::cores::CoreSet;
use crate::parcel::{Observation, Parcel, Seen};
use volary_engine::world::World;

/// How far ahead of ours the clock of another host can be, in emulated time: none of a run is further.
pub(crate) const FAR: Span = Span::from_secs(30 * 86_400);

/// Whether the times of a parcel can be, when it is `now` here. It may be due whenever it likes: how long a message
/// takes is the plan's to say, and a law without a mean sets no bound.
pub(crate) fn timely(now: Time, parcel: &Parcel) -> bool {
    parcel.sent <= parcel.due && parcel.sent <= now + FAR
}

/// Whether a parcel from another host can be meant for us: a wrong one ends the link before an actor sees it.
pub(crate) fn sensible(world: &World, homes: &[u16], me: u16, host: u16, parcel: &Parcel) -> bool {
    let layout = world.layout();
    let Parcel { from, to, msg, .. } = parcel;
    if from.0 >= layout.actors() || to.0 >= layout.actors() {
        return false;
    }
    let home = |actor| homes[layout.endpoint(actor).index()];
    let ends = if parcel.returned { (home(*to), home(*from)) } else { (home(*from), home(*to)) };
    ends == (host, me) && msg.check(*from, *to, layout, world.workload())
}

/// Whether an observation is about actors, jobs and cores that there are: books are kept of nothing else.
pub(crate) fn possible(world: &World, note: &Observation) -> bool {
    let (layout, jobs) = (world.layout(), world.workload());
    let job = |job: JobId| job.0 < jobs.jobs();
    let copy = |copy: CopyId| job(copy.task.job) && copy.task.index < jobs.job(copy.task.job).tasks;
    let schedules = |who| matches!(layout.role(who), Role::Scheduler(_));
    match note.what {
        Seen::Crashed(core) => core < layout.workers(),
        Seen::Note(who, _) if who.0 >= layout.actors() => false,
        Seen::Note(who, note) => match note {
            Note::Arrived { job: id } | Note::Resubmitted { job: id } | Note::Finished { job: id } => job(id),
            Note::Started { copy: id, .. }
            | Note::Completed { copy: id }
            | Note::Preempted { copy: id }
            | Note::Suspended { copy: id } => copy(id) && matches!(layout.role(who), Role::Worker { .. }),
            Note::Placed { copy: id, node, .. } => copy(id) && node < layout.nodes() && schedules(who),
            Note::Bound { copy: id } => copy(id) && schedules(who),
            Note::Learnt { node, .. } | Note::Believes { node, .. } => {
                node < layout.nodes() && schedules(who)
            }
            Note::Unexpected { kind } => usize::from(kind) < KINDS.len(),
        },
    }
}

/// Whether a host with these cores can have counted this, one of so many, in a run of so many emulated seconds: books
/// and certificates are made of nothing else.
pub(crate) fn believable(account: &FinalReport, held: &CoreSet, hosts: usize, length_s: f64) -> bool {
    let FinalReport { tally, vitals, datagrams, cores, .. } = account;
    let sent = tally.by_kind.iter().try_fold(0u64, |sum, count| sum.checked_add(*count));
    let stats = &tally.network.datagram;
    let seconds = [vitals.wall_s, vitals.cpu_s, vitals.cpu_share, vitals.clock.bound_s];
    tally.by_kind.len() <= KINDS.len()
        && sent.is_some_and(|sent| tally.recovery <= sent)
        && stats.lost.iter().all(|lost| *lost <= stats.sent)
        && datagrams.len() <= hosts
        && datagrams.iter().all(|to| to.dropped <= to.sent)
        && seconds.iter().all(|s| s.is_finite() && *s >= 0.0)
        && cores.as_ref().is_none_or(|worked| worked.is_possible(held, length_s))
}

#[cfg(test)]
mod tests {
    use volary_actors::base::ActorId;
    use volary_actors::message::Probe;

    use super::*;
    use crate::cluster::protocol::Datagrams;
    use crate::fidelity::gauge::Reading;
    use crate::fidelity::{HostVitals, Worked};
    use crate::results::{CoreRow, RealCore};
    use volary_engine::finalize::Counters;

    /// What a core did in the second of the run.
    const ROW: CoreRow = CoreRow { core: 3, start: 0.5, end: 0.6, asked: 1.0, had: 0.1, done: 0.1 };

    fn stretch(account: &mut FinalReport, row: CoreRow) {
        account.cores.get_or_insert_default().stretches.push(row);
    }

    #[test]
    fn an_account_that_cannot_be_is_not_believed() {
        let honest = || FinalReport {
            tally: Counters { by_kind: vec![3; KINDS.len()], recovery: 2, ..Counters::default() },
            reading: Reading::default(),
            vitals: HostVitals { wall_s: 1.0, ..HostVitals::default() },
            datagrams: vec![Datagrams { sent: 5, dropped: 5, missing: 9 }; 2],
            cores: Some(Worked { stretches: vec![ROW], ..Worked::default() }),
        };
        let held: CoreSet = "3-4".parse().unwrap();
        assert!(believable(&honest(), &held, 2, 1.0));
        let lies: [fn(&mut FinalReport); 16] = [
            |account| account.tally.recovery = u64::MAX,
            |account| account.tally.by_kind[0] = u64::MAX,
            |account| account.tally.by_kind.push(0),
            |account| account.tally.network.datagram.lost[0] = 1,
            |account| account.vitals.cpu_s = f64::NAN,
            |account| account.datagrams[1].dropped = 6,
            |account| account.datagrams.push(Datagrams::default()),
            |account| account.cores.get_or_insert_default().work.asked_s = f64::NAN,
            |account| account.cores.get_or_insert_default().work.cores.push(RealCore::default()),
            |account| stretch(account, CoreRow { core: 5, ..ROW }),
            |account| stretch(account, CoreRow { start: 0.4, ..ROW }),
            |account| stretch(account, CoreRow { end: 1e300, ..ROW }),
            |account| stretch(account, CoreRow { done: 1e300, ..ROW }),
            |account| stretch(account, CoreRow { had: 1e300, ..ROW }),
            |account| stretch(account, CoreRow { asked: 1e300, ..ROW }),
            |account| stretch(account, CoreRow { asked: 0.5, ..ROW }),
        ];
        for (n, lie) in lies.iter().enumerate() {
            let mut account = honest();
            lie(&mut account);
            assert!(!believable(&account, &held, 2, 1.0), "lie {n}");
        }
    }

    #[test]
    fn a_message_may_take_as_long_as_the_plan_says() {
        let msg = Probe::Claim { job: JobId(7), group: 1, repair: false }.into();
        let parcel = |sent: Time, delay: Span| {
            let (from, to) = (ActorId(0), ActorId(1));
            Parcel { sent, due: sent + delay, from, count: 0, to, msg, returned: false }
        };
        let now = Time(5_000_000_000);
        let hours = |h: u64| Span::from_secs(h * 3600);
        assert!(timely(now, &parcel(now, hours(2400))) && timely(now, &parcel(now, Span::MAX)));
        assert!(timely(now, &parcel(now + hours(1), Span::ZERO)), "clocks are apart a little");
        assert!(!timely(now, &parcel(now + hours(2400), Span::ZERO)), "and not by months");
        let backwards = Parcel { due: Time::ZERO, ..parcel(now, Span::ZERO) };
        assert!(!timely(now, &backwards));
    }
}
