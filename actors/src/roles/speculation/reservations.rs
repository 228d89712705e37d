//! Reservations, the binding by which a copy goes to the first of several random nodes that has a free core, as in
//! Sparrow's batch sampling. The first copies of a job are a group, every later copy is its own group, and the job
//! stays known until it is finished.

use std::collections::{BTreeMap, VecDeque};

use super::binding::{BACKUP_DRAWS, BackupPlace, CoreClaim, LaunchReason, NodeBinding, WantedCopy, share};
use super::rule::Cluster;
use crate::base::{ActorId, CopyId, JobId, Span, TaskId, Time};
use crate::layout::Layout;
use crate::machine::{Effects, Timer};
use crate::message::{Message, Offer, Probe, Row, SizedJob};
use crate::roles::job_table::JobTable;
use crate::roles::late_binding::{Places, ProbeOptions};
use crate::roles::membership::Membership;
use crate::roles::resend::back_off;

/// Copies that share reservations.
#[derive(Clone, Default, Debug)]
struct CopyGroup {
    copies: VecDeque<WantedCopy>,
    places: Places,
    /// Number of repetitions since reservations were last placed on further nodes.
    repeated: u32,
    /// Time at which the group's requests are repeated next. A timer that fires earlier belongs to an earlier request.
    due: Time,
}

impl CopyGroup {
    /// Places `count` reservations on the nodes of a sample, and repeats those that the nodes already have. If a
    /// `timeout` is given, because requests can be lost, arms the next repetition.
    fn request(
        &mut self,
        sample: &[ActorId],
        count: usize,
        of: SizedJob,
        repair: bool,
        timeout: Option<Span>,
        fx: &mut Effects<'_>,
    ) {
        self.places.spread(count, sample, |node, count| {
            fx.send_as(repair, node, reservation(of, count, repair));
        });
        if let Some(timeout) = timeout.filter(|_| !sample.is_empty()) {
            self.repeated = 0;
            self.arm(of.job, timeout, fx);
        }
    }

    /// Arms the next repetition.
    fn arm(&mut self, job: JobId, timeout: Span, fx: &mut Effects<'_>) {
        let wait = back_off(timeout, self.repeated);
        self.due = fx.now() + wait;
        fx.arm(Timer::Tick(job.0), wait);
    }
}

/// The message that places reservations on a node; it states the virtual size of a sized job.
fn reservation(of: SizedJob, count: u32, repair: bool) -> Message {
    let SizedJob { job, group, size } = of;
    match size {
        0 => Probe::Reserve { job, group, count, repair }.into(),
        _ => Offer::Reserve { of, count, repair }.into(),
    }
}

/// The groups of a job with waiting copies or reservations.
#[derive(Clone, Debug)]
struct ReservedJob {
    groups: BTreeMap<u32, CopyGroup>,
    /// The number of the next group.
    next: u32,
    /// Number of tasks without a finished copy.
    unfinished: u32,
    /// Number of copies on nodes.
    placed: u32,
}

impl ReservedJob {
    /// The virtual size of the job, in thousandths of a core, by the [factor](Reservations::factor).
    fn size(&self, factor: f64) -> u32 {
        (f64::from(self.unfinished) * factor).ceil() as u32
    }

    /// Whether the job has fewer cores than its virtual size.
    fn is_short(&self, factor: f64) -> bool {
        u64::from(self.placed) * 1000 < u64::from(self.size(factor))
    }

    /// The first group that contains a copy for which `such` holds.
    fn group_with(&self, mut such: impl FnMut(&WantedCopy) -> bool) -> Option<u32> {
        self.groups.iter().find(|(_, group)| group.copies.iter().any(&mut such)).map(|(&id, _)| id)
    }
}

/// Reservations on random nodes.
#[derive(Clone, Debug)]
pub struct Reservations {
    options: ProbeOptions,
    /// The virtual size of a job for each task without a finished copy, thousandths of a core. Zero for jobs without
    /// sizes: their reservations serve the copies of one group and are cancelled with its last copy. A reservation of a
    /// sized job serves all copies of the job until it ends.
    factor: f64,
    /// Time after which requests are first repeated; `None` where they cannot be lost.
    timeout: Option<Span>,
    slots: u32,
    members: Membership,
    jobs: JobTable<ReservedJob>,
    /// Number of copies that wait for a claim.
    waiting: u32,
    sample: Vec<ActorId>,
}

impl Reservations {
    /// Reservations on the nodes of a layout. Requests are repeated only where datagrams can be lost.
    pub fn new(layout: &Layout, lossy: bool) -> Self {
        Self::with(ProbeOptions::default(), 0.0, layout, lossy)
    }

    /// Reservations for jobs with virtual size 2 n / β, where n is the number of tasks without a finished copy
    /// (Hopper).
    pub fn sized(options: ProbeOptions, beta: f64, layout: &Layout, lossy: bool) -> Self {
        Self::with(options, 2000.0 / beta, layout, lossy)
    }

    fn with(options: ProbeOptions, factor: f64, layout: &Layout, lossy: bool) -> Self {
        let (slots, jobs, members) = (share(layout), JobTable::default(), Membership::new(layout));
        let timeout = lossy.then_some(options.probe_timeout);
        Self { options, factor, timeout, slots, members, jobs, waiting: 0, sample: Vec::new() }
    }

    const fn is_sized(&self) -> bool {
        self.factor > 0.0
    }

    /// Adds a group of copies, with reservations on the nodes of the sample.
    fn add(&mut self, job: JobId, copies: VecDeque<WantedCopy>, repair: bool, fx: &mut Effects<'_>) {
        let places = self.options.places(copies.len() as u32);
        let Some(reserved) = self.jobs.get_mut(job) else { return };
        self.waiting += copies.len() as u32;
        let mut group = CopyGroup { copies, ..CopyGroup::default() };
        let of = SizedJob { job, group: reserved.next, size: reserved.size(self.factor) };
        group.request(&self.sample, places, of, repair, self.timeout, fx);
        reserved.groups.insert(reserved.next, group);
        reserved.next += 1;
    }

    /// Samples nodes for `copies` copies.
    fn draw(&mut self, copies: usize, fx: &mut Effects<'_>) {
        self.members.sample(fx.rng(), self.options.places(copies as u32), &mut self.sample);
    }

    /// The refusal of a core that a node offered to a job. It names the smallest other job that is short of cores and
    /// has a copy for the node; the scheduler records a reservation of that job on the node.
    fn refusal(
        &mut self,
        node: ActorId,
        refused: SizedJob,
        mut needed: impl FnMut(TaskId) -> (bool, bool),
    ) -> Offer {
        let factor = self.factor;
        let mut suits = |wanted: &WantedCopy| {
            let (needed, suits) = needed(wanted.copy.task);
            needed && (suits || wanted.reason != LaunchReason::Backup)
        };
        let short = self
            .jobs
            .iter_mut()
            .filter(|(other, reserved)| *other != refused.job && reserved.is_short(factor));
        let named = short.filter_map(|(job, reserved)| {
            Some((reserved.size(factor), job, reserved.group_with(&mut suits)?))
        });
        let smallest = named.min().map(|(size, job, group)| SizedJob { job, group, size });
        if let Some(SizedJob { job, group, .. }) = smallest
            && let Some(held) = self.jobs.get_mut(job).and_then(|reserved| reserved.groups.get_mut(&group))
            && held.places.of(node) == 0
        {
            held.places.spread(1, &[node], |_, _| {});
        }
        Offer::Refuse { job: refused, smallest: smallest.unwrap_or(refused) }
    }

    /// Places further reservations for groups that have fewer reservations than copies.
    fn top_up(&mut self, only: Option<JobId>, fx: &mut Effects<'_>) {
        let Self { options, factor, members, jobs, sample, timeout, .. } = self;
        for (job, reserved) in jobs.iter_mut().filter(|(job, _)| only.is_none_or(|only| only == *job)) {
            let size = reserved.size(*factor);
            for (&id, group) in &mut reserved.groups {
                let (held, copies) = (group.places.count(), group.copies.len());
                if held < copies {
                    let places = options.places(copies as u32) - held;
                    members.sample(fx.rng(), places, sample);
                    let of = SizedJob { job, group: id, size };
                    group.request(sample, places, of, true, *timeout, fx);
                }
            }
        }
    }
}

impl NodeBinding for Reservations {
    fn open(&mut self, job: JobId, tasks: u32, attempt: u32, fx: &mut Effects<'_>) {
        let groups = BTreeMap::new();
        self.jobs.open(job, ReservedJob { groups, next: 0, unfinished: tasks, placed: 0 });
        self.draw(tasks as usize, fx);
        let first = |task| WantedCopy { copy: job.task(task).copy(attempt), reason: LaunchReason::First };
        self.add(job, (0..tasks).map(first).collect(), false, fx);
    }

    fn again(&mut self, wanted: WantedCopy, fx: &mut Effects<'_>) {
        self.draw(1, fx);
        let lost = wanted.reason == LaunchReason::Lost;
        self.add(wanted.copy.task.job, VecDeque::from([wanted]), lost, fx);
    }

    fn next(&mut self, _: impl FnMut(TaskId) -> bool, _: &mut Effects<'_>) -> Option<(WantedCopy, ActorId)> {
        None
    }

    fn back_up(
        &mut self,
        copy: CopyId,
        fits: impl Fn(ActorId) -> bool,
        fx: &mut Effects<'_>,
    ) -> Option<BackupPlace> {
        self.members.sample(fx.rng(), BACKUP_DRAWS, &mut self.sample);
        self.sample.retain(|&node| fits(node));
        self.sample.truncate(self.options.places(1));
        if self.sample.is_empty() {
            return None;
        }
        let wanted = WantedCopy { copy, reason: LaunchReason::Backup };
        self.add(copy.task.job, VecDeque::from([wanted]), false, fx);
        Some(BackupPlace::Reserved)
    }

    /// A reservation of a sized job serves its own group first, then the first copy of another group, and a backup
    /// only if the node suits it. A job refuses a core, and keeps the reservation, if it has a copy for the node but
    /// already as many cores as its virtual size; any other answer ends the reservation.
    fn claimed(
        &mut self,
        node: ActorId,
        claim: CoreClaim,
        mut needed: impl FnMut(TaskId) -> (bool, bool),
        fx: &mut Effects<'_>,
    ) -> (Message, Option<WantedCopy>) {
        let (CoreClaim { job, group: id, refusable, .. }, sized) = (claim, self.is_sized());
        let Some(reserved) = self.jobs.get_mut(job).filter(|reserved| reserved.groups.contains_key(&id))
        else {
            return (claim.nothing(), None);
        };
        let others = reserved.groups.keys().copied().filter(|&other| sized && other != id);
        let mut found = None;
        for at in std::iter::once(id).chain(others.collect::<Vec<_>>()) {
            let Some(group) = reserved.groups.get_mut(&at) else { continue };
            let before = group.copies.len();
            group.copies.retain(|wanted| needed(wanted.copy.task).0);
            self.waiting -= (before - group.copies.len()) as u32;
            let suits = |wanted: &WantedCopy| {
                at == id || wanted.reason != LaunchReason::Backup || needed(wanted.copy.task).1
            };
            found = group.copies.iter().position(suits).map(|first| (at, first));
            if found.is_some() {
                break;
            }
        }
        let size = reserved.size(self.factor);
        if refusable && found.is_some() && !reserved.is_short(self.factor) {
            return (self.refusal(node, SizedJob { job, group: id, size }, needed).into(), None);
        }
        let wanted = found.and_then(|(at, first)| reserved.groups.get_mut(&at)?.copies.remove(first));
        self.waiting -= u32::from(wanted.is_some());
        reserved.placed += u32::from(wanted.is_some());
        if let Some(group) = reserved.groups.get_mut(&id) {
            group.places.take(node, 1);
            if group.copies.is_empty() && !sized {
                group.places.cancel(job, id, fx);
                reserved.groups.remove(&id);
            }
        }
        let msg = match wanted {
            Some(WantedCopy { copy, .. }) if sized => Offer::Grant { copy, group: id, size }.into(),
            Some(WantedCopy { copy, .. }) => Probe::Grant { row: Row::single(copy), group: id }.into(),
            None => claim.nothing(),
        };
        (msg, wanted)
    }

    fn left(&mut self, job: JobId) {
        if let Some(reserved) = self.jobs.get_mut(job) {
            reserved.placed -= 1;
        }
    }

    fn finished(&mut self, job: JobId) {
        if let Some(reserved) = self.jobs.get_mut(job) {
            reserved.unfinished -= 1;
        }
    }

    fn withdrawn(&mut self, copy: CopyId, fx: &mut Effects<'_>) {
        let sized = self.is_sized();
        let Some(reserved) = self.jobs.get_mut(copy.task.job) else { return };
        reserved.groups.retain(|&id, group| {
            let before = group.copies.len();
            group.copies.retain(|wanted| wanted.copy != copy);
            self.waiting -= (before - group.copies.len()) as u32;
            let stays = sized || !group.copies.is_empty();
            if !stays {
                group.places.cancel(copy.task.job, id, fx);
            }
            stays
        });
    }

    fn close(&mut self, job: JobId, fx: &mut Effects<'_>) {
        for (id, mut group) in self.jobs.close(job).into_iter().flat_map(|reserved| reserved.groups) {
            self.waiting -= group.copies.len() as u32;
            group.places.cancel(job, id, fx);
        }
    }

    /// A node that has a reservation ignores its repetition.
    fn repeat(&mut self, job: JobId, fx: &mut Effects<'_>) {
        let (Some(reserved), Some(timeout)) = (self.jobs.get_mut(job), self.timeout) else { return };
        let (now, size, mut any) = (fx.now(), reserved.size(self.factor), false);
        let due = |held: &CopyGroup| held.due <= now && !held.copies.is_empty();
        for (&group, held) in reserved.groups.iter_mut().filter(|(_, held)| due(held)) {
            any = true;
            for (node, count) in held.places.iter() {
                fx.recover(node, reservation(SizedJob { job, group, size }, count, true));
            }
            held.repeated += 1;
            held.arm(job, timeout, fx);
        }
        if any {
            self.top_up(Some(job), fx);
        }
    }

    fn down(&mut self, actor: ActorId, fx: &mut Effects<'_>) {
        self.members.down(actor, fx.layout());
        for group in self.jobs.iter_mut().flat_map(|(_, reserved)| reserved.groups.values_mut()) {
            group.places.forget(actor);
        }
        self.top_up(None, fx);
    }

    fn up(&mut self, actor: ActorId, fx: &mut Effects<'_>) {
        self.members.up(actor, fx.layout());
        self.top_up(None, fx);
    }

    /// A sized job has no cores for backups while other copies of it wait.
    fn cluster(&mut self, job: JobId, sent: u32, backups: u32) -> Cluster {
        let (sized, busy) = (self.is_sized(), sent + self.waiting);
        let first = |wanted: &WantedCopy| wanted.reason != LaunchReason::Backup;
        let waits = |reserved: &mut ReservedJob| reserved.group_with(first).is_some();
        let free = if sized && self.jobs.get_mut(job).is_some_and(waits) { 0 } else { self.slots };
        Cluster { slots: self.slots, free, busy, waiting: 0, backups }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::Harness;
    use crate::machine::{Effect, Input};
    use crate::message::{Job, Launch};
    use crate::roles::speculation::rule::{Action, JobView, NoBackups, Rule};
    use crate::roles::speculation::{CopyBinding, speculate};

    /// The delays of the armed timers.
    fn armed(effects: &[Effect]) -> Vec<Span> {
        let after = |effect: &Effect| match *effect {
            Effect::Arm { timer: Timer::Tick(0), after } => Some(after),
            _ => None,
        };
        effects.iter().filter_map(after).collect()
    }

    /// A scheduler of jobs of one task on four nodes, where datagrams can be lost.
    fn bench(rule: impl Rule + 'static) -> Harness {
        let layout = Layout::new(1, 0, [1; 4]);
        let machine = speculate(rule, CopyBinding::Sparrow, &layout, true, true);
        Harness::new(layout.clone(), layout.scheduler(0), 1, machine)
    }

    /// A job ends and is submitted again while the timer of its first submission is armed. Only the timer of the second
    /// submission repeats requests.
    #[test]
    fn after_a_resubmission_only_the_new_timer_repeats_requests() {
        let mut bench = bench(NoBackups);
        let layout = bench.layout.clone();
        let (job, client, node) = (JobId(0), layout.client(0), layout.node(0));
        let [timeout] = armed(&bench.submit(0))[..] else { panic!("not exactly one timer is armed") };
        bench.now += timeout.scale(0.5);
        bench.receive(node, Launch::Completed { copy: job.task(0).copy(0) });
        assert_eq!(armed(&bench.deliver(client, Job::Submit { job, round: 1 })), [timeout]);
        bench.now += timeout.scale(0.5);
        assert_eq!(bench.step(Input::Fire(Timer::Tick(0))), [], "the timer of the first submission is void");
        bench.now += timeout.scale(0.5);
        let repeated = bench.step(Input::Fire(Timer::Tick(0)));
        assert_eq!(armed(&repeated), [timeout.scale(2.0)]);
    }

    /// A rule that sends one more copy of the only task at each check, every 1000 s.
    #[derive(Clone, Debug)]
    struct Later;

    impl Rule for Later {
        fn look(&mut self, view: &JobView<'_>, actions: &mut Vec<Action>) {
            actions.extend(view.attempts.alone().map(|attempt| Action::Backup(attempt.task)));
        }

        fn pause(&self, _: bool) -> Option<Span> {
            Some(Span::from_secs(1000))
        }
    }

    /// The request of a copy that is wanted late is first repeated after the same time as the request of the job's
    /// first copy. No request waits longer than five minutes.
    #[test]
    fn requests_of_late_copies_are_repeated_as_soon_as_early_requests() {
        let mut bench = bench(Later);
        let job = JobId(0);
        let [timeout] = armed(&bench.submit(0))[..] else { panic!("not exactly one timer is armed") };
        let mut waits = vec![timeout];
        while bench.now < Time::ZERO + Span::from_secs(2000) {
            bench.now += *waits.last().unwrap();
            waits.extend(armed(&bench.step(Input::Fire(Timer::Tick(0)))));
        }
        assert_eq!(waits[..9], [1, 2, 4, 8, 16, 32, 64, 128, 256].map(Span::from_secs));
        assert!(waits[9..].iter().all(|&wait| wait == Span::from_secs(300)), "{waits:?}");
        let node = bench.layout.node(0);
        bench.receive(node, Probe::Claim { job, group: 0, repair: false });
        let late = bench.step(Input::Fire(Timer::Recheck { job, attempt: 1 }));
        assert_eq!(armed(&late), [timeout]);
    }
}
