//! Speculative execution: a scheduler that launches further copies of tasks.
//!
//! The scheduler checks each open job at the times of its rule and requests further copies of its tasks. A [`Rule`]
//! decides which tasks get copies, a [`NodeBinding`] which nodes the copies get. The first result of a task counts, and
//! its other copies are stopped.

pub mod binding;
pub mod reservations;
pub mod rule;

use binding::{BackupPlace, CoreClaim, LaunchReason, NodeBinding, WantedCopy};
pub use binding::{CopyBinding, FreeCores, RandomNodes};
pub use reservations::Reservations;
pub use rule::{Action, Attempt, Attempts, Cluster, JobView, NoBackups, Rule};

use crate::base::{ActorId, CopyId, JobId, Score, Span, TaskId, Time};
use crate::layout::{Layout, Role};
use crate::machine::{Effects, Input, Machine, Timer};
use crate::message::{Job, Launch, Message, Offer, Probe, Progress, Row, TaskRange};
use crate::roles::job_table::{Completion, JobTable, OpenJob};
use crate::roles::resend::resend;

#[derive(Clone, Debug)]
struct SpeculatedJob {
    open: OpenJob,
    attempts: Attempts,
    /// The run times of copies that finished tasks, if the rule checks the job.
    took: Vec<Span>,
    /// Tasks whose copies the rule stopped; a task occurs once for each stopped copy.
    stopped: Vec<u32>,
    /// Number of the armed check; `None` if no check is armed.
    next_look: Option<u32>,
}

/// A scheduler that speculates.
#[derive(Clone, Debug)]
pub struct SpeculatingScheduler<B> {
    rule: Box<dyn Rule>,
    binding: B,
    /// Whether nodes report the start of copies that wait on them.
    starts: bool,
    jobs: JobTable<SpeculatedJob>,
    /// Number of copies on nodes.
    sent: u32,
    /// Number of backups that run or are wanted.
    backups: u32,
    actions: Vec<Action>,
    /// Number of checks so far.
    checks: u32,
}

/// A scheduler with a rule and a binding; `reports` says whether nodes report progress, `lossy` whether datagrams can
/// be lost.
pub fn speculate(
    rule: impl Rule + 'static,
    binding: CopyBinding,
    layout: &Layout,
    reports: bool,
    lossy: bool,
) -> Box<dyn Machine> {
    let rule = Box::new(rule);
    match binding {
        CopyBinding::Central => Box::new(SpeculatingScheduler::new(rule, FreeCores::new(layout), false)),
        CopyBinding::Sparrow => {
            Box::new(SpeculatingScheduler::new(rule, Reservations::new(layout, lossy), false))
        }
        CopyBinding::Random => Box::new(SpeculatingScheduler::new(rule, RandomNodes::new(layout), reports)),
    }
}

impl<B: NodeBinding> SpeculatingScheduler<B> {
    /// A scheduler; `starts` says whether nodes report the start of copies.
    pub fn new(rule: Box<dyn Rule>, binding: B, starts: bool) -> Self {
        Self {
            rule,
            binding,
            starts,
            jobs: JobTable::default(),
            sent: 0,
            backups: 0,
            actions: Vec::new(),
            checks: 0,
        }
    }

    fn submit(&mut self, job: JobId, round: u32, fx: &mut Effects<'_>) {
        let Some(mut open) = self.jobs.admit(job, round, fx.catalog()) else { return };
        let (tasks, attempt) = (open.spec.tasks, open.attempts(1));
        let (attempts, took, stopped) = (Attempts::new(tasks), Vec::new(), Vec::new());
        self.jobs.open(job, SpeculatedJob { open, attempts, took, stopped, next_look: None });
        self.binding.open(job, tasks, attempt, fx);
        self.dispatch(fx);
        self.look(job, None, fx);
    }

    /// Sends the queued copies that have a node.
    fn dispatch(&mut self, fx: &mut Effects<'_>) {
        while let Some((wanted, node)) = self.binding.next(needed(&mut self.jobs), fx) {
            self.launch(wanted, node, Launch::Row(Row::single(wanted.copy)), fx);
        }
    }

    /// Sends a copy to its node.
    fn launch(&mut self, wanted: WantedCopy, node: ActorId, msg: impl Into<Message>, fx: &mut Effects<'_>) {
        let WantedCopy { copy, reason } = wanted;
        let Some(placed) = self.jobs.get_mut(copy.task.job) else { return };
        let (task, backup) = (copy.task.index, reason == LaunchReason::Backup);
        let reserved = placed.attempts.take(task, |a| a.number == copy.attempt);
        self.backups += u32::from(backup && reserved.is_none());
        self.sent += 1;
        let mut attempt = Attempt::new(task, copy.attempt, Some(node), fx.now(), backup);
        attempt.waits = self.starts;
        placed.attempts.add(attempt);
        fx.send_as(reason == LaunchReason::Lost, node, msg);
    }

    /// Answers a node that holds a core for a claim.
    fn claim(&mut self, node: ActorId, claim: CoreClaim, fx: &mut Effects<'_>) {
        let (jobs, serves) = (&mut self.jobs, self.rule.serves(number_of(node, fx)));
        let needed = |task: TaskId| match jobs.get_mut(task.job) {
            Some(placed) if !placed.open.is_done(task.index) => {
                (true, serves && placed.attempts.of(task.index).all(|attempt| attempt.node != Some(node)))
            }
            _ => (false, false),
        };
        match self.binding.claimed(node, claim, needed, fx) {
            (msg, Some(wanted)) => self.launch(wanted, node, msg, fx),
            (msg, None) => fx.send_as(claim.repair, node, msg),
        }
    }

    fn completed(&mut self, from: ActorId, copy: CopyId, fx: &mut Effects<'_>) {
        let CopyId { task: TaskId { job, index }, attempt: number } = copy;
        let Some(placed) = self.jobs.get_mut(job) else { return };
        // The core becomes free only if the attempt is known: a late result of a node that was given up frees no core.
        let ended = placed.attempts.take(index, |a| a.number == number && a.node == Some(from));
        let completion = placed.open.complete(index);
        if let Some(ended) = ended {
            if placed.next_look.is_some() {
                placed.took.push(fx.now().since(ended.since));
            }
            let sent = placed.attempts.of(index).filter(|other| other.node.is_some());
            let first = sent.map(|other| other.since).fold(ended.since, Time::min);
            self.rule.finished(placed.open.spec.class, fx.now().since(first));
            self.rule.progressed(number_of(from, fx), gain(ended.score, Score::ALL));
            self.release(job, ended);
        }
        if completion != Completion::Duplicate {
            self.binding.finished(job);
            self.stop(copy.task, |_| true, fx);
        }
        if completion == Completion::Job
            && let Some(placed) = self.jobs.close(job)
        {
            placed.open.report(job, false, fx);
            self.binding.close(job, fx);
        }
        self.dispatch(fx);
    }

    /// Stops the attempts of a task for which `which` holds; returns whether there were any such attempts.
    fn stop(&mut self, task: TaskId, which: impl Fn(&Attempt) -> bool, fx: &mut Effects<'_>) -> bool {
        let mut any = false;
        while let Some(placed) = self.jobs.get_mut(task.job)
            && let Some(gone) = placed.attempts.take(task.index, &which)
        {
            any = true;
            match gone.node {
                Some(node) => {
                    fx.send(node, Launch::Drop(TaskRange::one(task, gone.number + 1)));
                    self.rule.progressed(number_of(node, fx), gain(gone.score, Score::NONE));
                }
                None => self.binding.withdrawn(task.copy(gone.number), fx),
            }
            self.release(task.job, gone);
        }
        any
    }

    /// Records that an attempt is over and its core is free.
    fn release(&mut self, job: JobId, gone: Attempt) {
        self.backups -= u32::from(gone.backup);
        if let Some(node) = gone.node {
            self.sent -= 1;
            self.binding.left(job);
            self.binding.freed(node);
        }
    }

    /// Checks a job, unless it has ended, or was submitted again and has its own timer.
    fn look(&mut self, job: JobId, number: Option<u32>, fx: &mut Effects<'_>) {
        let Some(placed) = self.jobs.get_mut(job).filter(|placed| placed.next_look == number) else {
            return;
        };
        let cluster = self.binding.cluster(job, self.sent, self.backups);
        let mut actions = std::mem::take(&mut self.actions);
        self.rule.look(&placed.view(fx.now(), cluster), &mut actions);
        let mut sent = false;
        for action in actions.drain(..) {
            match action {
                Action::Backup(task) => sent |= self.back_up(job.task(task), fx),
                Action::Restart(task, number) => self.restart(job.task(task), number, fx),
                Action::Stop(task, number) => {
                    if self.stop(job.task(task), |a| a.number == number, fx)
                        && let Some(placed) = self.jobs.get_mut(job)
                    {
                        placed.stopped.push(task);
                    }
                    self.dispatch(fx);
                }
            }
        }
        self.actions = actions;
        if let (Some(pause), Some(placed)) = (self.rule.pause(sent), self.jobs.get_mut(job)) {
            self.checks = self.checks.wrapping_add(1);
            placed.next_look = Some(self.checks);
            fx.arm(Timer::Recheck { job, attempt: self.checks }, pause);
        }
    }

    /// Requests one more copy of a task, on a node that fits.
    fn back_up(&mut self, task: TaskId, fx: &mut Effects<'_>) -> bool {
        let Some(placed) = self.jobs.get_mut(task.job) else { return false };
        let (attempts, layout) = (&placed.attempts, fx.layout());
        let fits = |node: ActorId| {
            self.rule.serves(layout.node_number(node))
                && attempts.of(task.index).all(|a| a.node != Some(node))
        };
        let copy = task.copy(placed.open.next_attempt());
        let Some(place) = self.binding.back_up(copy, fits, fx) else { return false };
        placed.open.attempts(1);
        match place {
            BackupPlace::Node(node) => {
                let wanted = WantedCopy { copy, reason: LaunchReason::Backup };
                self.launch(wanted, node, Launch::Row(Row::single(copy)), fx);
            }
            BackupPlace::Reserved => {
                placed.attempts.add(Attempt::new(task.index, copy.attempt, None, fx.now(), true));
                self.backups += 1;
            }
        }
        true
    }

    /// Stops an attempt and queues a new one after the next task.
    fn restart(&mut self, task: TaskId, number: u32, fx: &mut Effects<'_>) {
        if !self.stop(task, |a| a.number == number, fx) {
            return;
        }
        if let Some(placed) = self.jobs.get_mut(task.job) {
            placed.stopped.push(task.index);
            let copy = task.copy(placed.open.attempts(1));
            self.binding.again(WantedCopy { copy, reason: LaunchReason::First }, fx);
        }
        self.dispatch(fx);
    }

    /// Records a report. The first report of a copy that waited at its node shows when the copy started, because the
    /// report of the start itself can be lost.
    fn progress(&mut self, report: Progress, fx: &Effects<'_>) {
        let Progress::Report { copy, score, at, age_ms } = report;
        let at = Time::from(at);
        let Some(placed) = self.jobs.get_mut(copy.task.job) else { return };
        let Some(attempt) = placed.attempts.get_mut(copy.task.index, copy.attempt) else { return };
        let Some(node) = attempt.node else { return };
        if std::mem::take(&mut attempt.waits) {
            attempt.since = Time(at.0.saturating_sub(Span::from_millis(age_ms.into()).0));
        }
        if at > attempt.reported_at {
            self.rule.progressed(number_of(node, fx), gain(attempt.score, score));
            (attempt.score, attempt.reported_at) = (score, at);
        }
    }

    /// Removes the attempts of a job, or of all jobs, that are lost with a node or did not reach it. Tasks without any
    /// attempt left are queued again before others. Returns whether any attempt was removed.
    fn lost(&mut self, node: ActorId, only: Option<CopyId>, fx: &mut Effects<'_>) -> bool {
        let (mut any, mut again) = (false, Vec::new());
        for (job, placed) in self.jobs.iter_mut() {
            let which = |a: &Attempt| {
                a.node == Some(node) && only.is_none_or(|copy| copy == job.task(a.task).copy(a.number))
            };
            let mut tasks: Vec<_> =
                placed.attempts.all().iter().filter(|a| which(a)).map(|a| a.task).collect();
            tasks.sort_unstable();
            for task in tasks {
                let Some(gone) = placed.attempts.take(task, which) else { continue };
                any = true;
                self.sent -= 1;
                self.binding.left(job);
                self.backups -= u32::from(gone.backup);
                self.rule.progressed(number_of(node, fx), gain(gone.score, Score::NONE));
                if placed.attempts.copies(task) == 0 {
                    again.push(job.task(task).copy(placed.open.attempts(1)));
                }
            }
        }
        // The oldest copy must come out of the queue first.
        for copy in again.into_iter().rev() {
            self.binding.again(WantedCopy { copy, reason: LaunchReason::Lost }, fx);
        }
        any
    }
}

impl SpeculatedJob {
    fn view(&self, now: Time, cluster: Cluster) -> JobView<'_> {
        let Self { open, attempts, took, stopped, .. } = self;
        let (class, tasks) = (open.spec.class, open.spec.tasks);
        JobView { now, class, tasks, finished: open.finished(), attempts, took, stopped, cluster }
    }
}

/// Whether a task of an open job has no finished copy.
fn needed(jobs: &mut JobTable<SpeculatedJob>) -> impl FnMut(TaskId) -> bool {
    move |task| jobs.get_mut(task.job).is_some_and(|placed| !placed.open.is_done(task.index))
}

fn number_of(node: ActorId, fx: &Effects<'_>) -> u32 {
    fx.layout().node_number(node)
}

fn gain(from: Score, to: Score) -> i64 {
    i64::from(to.0) - i64::from(from.0)
}

impl<B: NodeBinding> Machine for SpeculatingScheduler<B> {
    fn step(&mut self, input: Input, fx: &mut Effects<'_>) {
        match input {
            Input::Deliver { from, msg } => match msg {
                Message::Job(Job::Submit { job, round }) => self.submit(job, round, fx),
                Message::Launch(Launch::Completed { copy }) => self.completed(from, copy, fx),
                Message::Progress(report) => self.progress(report, fx),
                Message::Probe(Probe::Claim { job, group, repair }) => {
                    self.claim(from, CoreClaim { job, group, refusable: false, repair }, fx);
                }
                Message::Offer(Offer::Core { job, group, repair }) => {
                    self.claim(from, CoreClaim { job, group, refusable: true, repair }, fx);
                }
                _ => fx.unexpected(&msg),
            },
            Input::Fire(Timer::Recheck { job, attempt }) => self.look(job, Some(attempt), fx),
            Input::Fire(Timer::Tick(job)) => self.binding.repeat(JobId(job), fx),
            Input::Undelivered { to, msg } => {
                // The core is marked as free again, but comes last, so that an unreachable node does not cause a loop.
                if let Some(row) = resend(to, msg, fx)
                    && self.lost(to, Some(row.copy(0)), fx)
                {
                    self.binding.freed(to);
                    self.dispatch(fx);
                }
            }
            Input::Down { actor } => {
                self.binding.down(actor, fx);
                if let Role::Node(_) = fx.layout().role(actor) {
                    self.lost(actor, None, fx);
                    self.dispatch(fx);
                }
            }
            Input::Up { actor } => {
                self.binding.up(actor, fx);
                if let Role::Node(_) = fx.layout().role(actor) {
                    self.dispatch(fx);
                }
            }
            // `Start` needs no action. The remaining inputs go to workers only.
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::{Harness, sends};
    use crate::message::Row;

    const JOB: JobId = JobId(0);

    /// A rule that decides by a function and checks every second.
    #[derive(Clone, Debug)]
    struct EverySecond(fn(&JobView<'_>, &mut Vec<Action>));

    impl Rule for EverySecond {
        fn look(&mut self, view: &JobView<'_>, actions: &mut Vec<Action>) {
            self.0(view, actions);
        }

        fn pause(&self, _: bool) -> Option<Span> {
            Some(Span::from_secs(1))
        }
    }

    /// Backs up every task with one copy.
    const EVERYTHING: EverySecond = EverySecond(|view, actions| {
        actions.extend(view.attempts.alone().map(|attempt| Action::Backup(attempt.task)));
    });

    fn bench(rule: impl Rule + 'static, tasks: u32, nodes: usize) -> Harness {
        bound(rule, CopyBinding::Central, tasks, nodes)
    }

    fn bound(rule: impl Rule + 'static, binding: CopyBinding, tasks: u32, nodes: usize) -> Harness {
        let layout = Layout::new(1, 0, vec![1; nodes]);
        let machine = speculate(rule, binding, &layout, true, false);
        Harness::new(layout.clone(), layout.scheduler(0), tasks, machine)
    }

    fn look(bench: &mut Harness, number: u32) -> Vec<(ActorId, Message)> {
        sends(&bench.step(Input::Fire(Timer::Recheck { job: JOB, attempt: number })))
    }

    fn row(task: u32, attempt: u32) -> Message {
        Launch::Row(Row::single(JOB.task(task).copy(attempt))).into()
    }

    fn dropped(task: u32, below: u32) -> Message {
        Launch::Drop(TaskRange::one(JOB.task(task), below)).into()
    }

    fn done(bench: &mut Harness, node: u32, task: u32, attempt: u32) -> Vec<(ActorId, Message)> {
        let copy = JOB.task(task).copy(attempt);
        bench.receive(bench.layout.node(node), Launch::Completed { copy })
    }

    /// Two tasks on four nodes each have a backup. A backup wins; the first copy is stopped, its late result changes
    /// nothing, and both cores are free again.
    #[test]
    fn the_first_result_counts_and_the_other_copy_is_stopped() {
        let mut bench = bench(EVERYTHING, 2, 4);
        let node = |i| bench.layout.node(i);
        let [a, b, c, d] = [node(0), node(1), node(2), node(3)];
        let client = bench.layout.client(0);
        assert_eq!(sends(&bench.submit(0)), [(a, row(0, 0)), (b, row(1, 0)), (c, row(0, 1)), (d, row(1, 2))]);
        assert_eq!(done(&mut bench, 2, 0, 1), [(a, dropped(0, 1))]);
        assert_eq!(done(&mut bench, 0, 0, 0), [], "a late duplicate changes nothing");
        let finished = Job::Finished { job: JOB, killed: false }.into();
        assert_eq!(done(&mut bench, 1, 1, 0), [(d, dropped(1, 3)), (client, finished)]);
        // Four cores are free, and each gets one copy.
        let next = sends(&bench.submit(1));
        let nodes: Vec<_> = next.iter().map(|(node, _)| *node).collect();
        assert_eq!(nodes, [c, a, b, d], "nodes are used in the order in which they became free");
    }

    /// If a task loses its first copy or its backup, the other copy runs on. If it loses its last copy, it goes back to
    /// the queue.
    #[test]
    fn a_task_is_sent_again_when_its_last_copy_is_lost() {
        let mut bench = bench(EVERYTHING, 1, 3);
        let node = |i| bench.layout.node(i);
        let [a, b, c] = [node(0), node(1), node(2)];
        assert_eq!(sends(&bench.submit(0)), [(a, row(0, 0)), (b, row(0, 1))]);
        assert_eq!(sends(&bench.step(Input::Down { actor: a })), []);
        let undelivered = Input::Undelivered { to: b, msg: row(0, 1) };
        assert_eq!(sends(&bench.step(undelivered)), [(c, row(0, 2))]);
        assert_eq!(sends(&bench.step(undelivered)), [], "the task is sent again only once");
        let client = bench.layout.client(0);
        let finished = Job::Finished { job: JOB, killed: false }.into();
        assert_eq!(
            done(&mut bench, 0, 0, 0),
            [(c, dropped(0, 3)), (client, finished)],
            "the first copy had ended before its node was lost"
        );
    }

    /// First copies come before backups, and a node gets at most one copy of a task.
    #[test]
    fn backups_get_only_the_cores_that_first_copies_do_not_need() {
        let mut bench = bench(EVERYTHING, 3, 2);
        let [a, b] = [bench.layout.node(0), bench.layout.node(1)];
        assert_eq!(sends(&bench.submit(0)), [(a, row(0, 0)), (b, row(1, 0))]);
        assert_eq!(done(&mut bench, 0, 0, 0), [(a, row(2, 0))]);
        assert_eq!(look(&mut bench, 1), []);
        assert_eq!(done(&mut bench, 0, 2, 0), []);
        assert_eq!(look(&mut bench, 2), [(a, row(1, 1))]);
        assert_eq!(look(&mut bench, 2), [], "the timer belongs to an earlier submission");
    }

    /// With one core and two tasks, the restarted task lets the other go first.
    #[test]
    fn a_restarted_task_leaves_its_core_to_the_next_task() {
        // Restarts every copy once, and leaves no core free.
        let restart = EverySecond(|view, actions| {
            let old = view.attempts.all().iter().filter(|a| !view.stopped.contains(&a.task));
            actions.extend(old.map(|a| Action::Restart(a.task, a.number)));
        });
        let mut bench = bench(restart, 2, 1);
        let node = bench.layout.node(0);
        let started = sends(&bench.submit(0));
        assert_eq!(started, [(node, row(0, 0)), (node, dropped(0, 1)), (node, row(1, 0))]);
        assert_eq!(done(&mut bench, 0, 1, 0), [(node, row(0, 1))]);
    }

    /// The newest report counts. Older reports and reports of ended copies are ignored.
    #[test]
    fn late_and_repeated_reports_are_ignored() {
        let far = EverySecond(|view, actions| {
            let far = |a: &&Attempt| a.score == Score(600) && a.reported_at == Time(2);
            actions.extend(view.attempts.all().iter().filter(far).map(|a| Action::Backup(a.task)));
        });
        let mut bench = bench(far, 1, 2);
        let [a, b] = [bench.layout.node(0), bench.layout.node(1)];
        sends(&bench.submit(0));
        let report = |score, at| Progress::Report {
            copy: JOB.task(0).copy(0),
            score: Score(score),
            at: Time(at).into(),
            age_ms: 0,
        };
        for (score, at) in [(600, 2), (500, 1), (600, 2)] {
            assert_eq!(bench.receive(a, report(score, at)), []);
        }
        let other =
            Progress::Report { copy: JOB.task(0).copy(7), score: Score(900), at: Time(9).into(), age_ms: 0 };
        assert_eq!(bench.receive(b, other), []);
        assert_eq!(look(&mut bench, 1), [(b, row(0, 1))]);
    }

    /// The nodes that got one reservation each, all for the group `of`.
    fn reserved(sent: &[(ActorId, Message)], of: u32) -> Vec<ActorId> {
        let node = |&(node, msg): &(ActorId, Message)| match msg {
            Message::Probe(Probe::Reserve { group, count: 1, .. }) if group == of => node,
            _ => panic!("{msg:?}"),
        };
        sent.iter().map(node).collect()
    }

    /// With reservations a backup is requested once, on two nodes without a copy, and goes to the first node that
    /// claims.
    #[test]
    fn a_backup_is_reserved_on_two_other_nodes() {
        let mut bench = bound(EVERYTHING, CopyBinding::Sparrow, 1, 20);
        let first = reserved(&sends(&bench.submit(0)), 0);
        let claim = |group| Probe::Claim { job: JOB, group, repair: false };
        let grant = |attempt, group| {
            Message::from(Probe::Grant { row: Row::single(JOB.task(0).copy(attempt)), group })
        };
        assert_eq!((first.len(), look(&mut bench, 1)), (2, vec![]), "no copy runs yet");
        let cancel = Message::from(Probe::Cancel { job: JOB, group: 0 });
        assert_eq!(bench.receive(first[0], claim(0)), [(first[1], cancel), (first[0], grant(0, 0))]);
        let second = reserved(&look(&mut bench, 2), 1);
        assert!(second.len() == 2 && !second.contains(&first[0]), "{second:?}");
        assert_eq!(look(&mut bench, 3), [], "a backup is wanted already");
        assert_eq!(bench.receive(second[1], claim(1)).last(), Some(&(second[1], grant(1, 1))));
        let nothing = Message::from(Probe::Nothing { job: JOB, group: 1 });
        assert_eq!(bench.receive(second[0], claim(1)), [(second[0], nothing)]);
        let finished = Job::Finished { job: JOB, killed: false }.into();
        let copy = JOB.task(0).copy(1);
        let client = bench.layout.client(0);
        let ended = bench.receive(second[1], Launch::Completed { copy });
        assert_eq!(ended, [(first[0], dropped(0, 1)), (client, finished)]);
    }

    /// The only copy is lost while a backup is wanted, so the backup takes its place. When the backup's reservations
    /// are lost, it gets new ones.
    #[test]
    fn a_wanted_backup_replaces_a_lost_copy() {
        let mut bench = bound(EVERYTHING, CopyBinding::Sparrow, 1, 20);
        let first = reserved(&sends(&bench.submit(0)), 0);
        bench.receive(first[0], Probe::Claim { job: JOB, group: 0, repair: false });
        let second = reserved(&look(&mut bench, 1), 1);
        assert_eq!(sends(&bench.step(Input::Down { actor: first[0] })), []);
        assert_eq!(sends(&bench.step(Input::Down { actor: second[0] })), [], "one reservation is left");
        let again = reserved(&sends(&bench.step(Input::Down { actor: second[1] })), 1);
        let sent = bench.receive(again[0], Probe::Claim { job: JOB, group: 1, repair: true });
        let row = Row::single(JOB.task(0).copy(1));
        assert_eq!(sent.last(), Some(&(again[0], Probe::Grant { row, group: 1 }.into())));
        let lost = sends(&bench.step(Input::Down { actor: again[0] }));
        assert_eq!(reserved(&lost, 2).len(), 2, "no copy is left");
    }

    /// The first of two tasks ends while its backup is wanted, so the reservations of the backup are cancelled.
    #[test]
    fn the_reservations_of_a_backup_are_cancelled_when_its_task_ends() {
        let mut bench = bound(EVERYTHING, CopyBinding::Sparrow, 2, 20);
        let first = reserved(&sends(&bench.submit(0)), 0);
        bench.receive(first[0], Probe::Claim { job: JOB, group: 0, repair: false });
        let second = reserved(&look(&mut bench, 1), 1);
        let cancel = Message::from(Probe::Cancel { job: JOB, group: 1 });
        let copy = JOB.task(0).copy(0);
        let ended = bench.receive(first[0], Launch::Completed { copy });
        assert_eq!(ended, [(second[0], cancel), (second[1], cancel)]);
    }

    /// With random nodes a copy runs from the start that its node reports.
    #[test]
    fn a_copy_that_waits_at_its_node_is_not_slow() {
        let mut bench = bound(EVERYTHING, CopyBinding::Random, 1, 20);
        let sent = sends(&bench.submit(0));
        let [(node, _)] = sent[..] else { panic!("{sent:?}") };
        assert_eq!(look(&mut bench, 1), []);
        let copy = JOB.task(0).copy(0);
        bench.receive(node, Progress::Report { copy, score: Score::NONE, at: Time(5).into(), age_ms: 0 });
        let backup = look(&mut bench, 2);
        let [(other, message)] = backup[..] else { panic!("{backup:?}") };
        assert!(other != node && message == row(0, 1));
    }

    /// The report of a start was lost. The next report shows for how long the copy has run, so the copy does not look
    /// fast.
    #[test]
    fn a_lost_start_report_does_not_make_a_copy_fast() {
        let slow = EverySecond(|view, actions| {
            let slow = view.attempts.alone().filter(|a| a.rate(view.now) < 0.06);
            actions.extend(slow.map(|a| Action::Backup(a.task)));
        });
        let mut bench = bound(slow, CopyBinding::Random, 1, 20);
        let sent = sends(&bench.submit(0));
        let [(node, _)] = sent[..] else { panic!("{sent:?}") };
        let (copy, at) = (JOB.task(0).copy(0), Time::ZERO + Span::from_secs(10));
        let score = Score(500_000_000);
        bench.receive(node, Progress::Report { copy, score, at: at.into(), age_ms: 10_000 });
        bench.now = at + Span::from_secs(1);
        assert_eq!(look(&mut bench, 1).len(), 1, "the copy did half of the work in ten seconds");
    }
}
