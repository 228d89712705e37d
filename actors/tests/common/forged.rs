//! Random messages of every kind that crosses the network.

use volary_actors::base::{CopyId, JobId, Rng, Score, Span, Time};
use volary_actors::message::{
    Assignment, BacklogReport, Batch, Blocks, Contention, Detect, EndUpdate, Gossip, Group, Heartbeat, Job,
    Launch, Message, NodeReport, Offer, PlacementForm, PlacementUpdate, Preemption, Probe, Progress, Ring,
    RingProbe, Row, Share, SizedJob, Slice, SliceWork, Spread, Standing, Steal, TaskRange, Update,
    UsageReport, Waiting,
};

/// A source of random messages, for a system with these jobs and tasks.
pub(crate) struct Forger {
    /// Its random numbers.
    pub(crate) dice: Rng,
    /// The time of the system.
    pub(crate) now: Time,
    /// Number of jobs.
    pub(crate) jobs: u32,
    /// Number of tasks of each job.
    pub(crate) tasks: u32,
}

impl Forger {
    fn below(&mut self, bound: usize) -> usize {
        self.dice.below(bound as u32) as usize
    }

    /// A message whose fields are within the bounds of this system about half the time, and else as large as possible.
    pub(crate) fn nonsense(&mut self) -> Message {
        let job = JobId(self.dice.below(self.jobs + 1));
        let group = self.dice.below(self.tasks + 1);
        let task = job.task(group);
        let any = [0, 1, 2, self.dice.below(1 << 20), u32::MAX][self.below(5)];
        let copy = task.copy(any);
        let turn = self.below(2) as u16;
        let row = Row {
            job,
            base: group,
            len: 1 + self.below(3) as u16,
            turn,
            width: 1 + self.below(2) as u16,
            attempt: any,
            elsewhere: any == 1,
        };
        let span = Span(u64::from(any) << self.below(33));
        let repair = turn == 0;
        match self.below(68) {
            0 => Job::Submit { job, round: any }.into(),
            1 => Job::Finished { job, killed: false }.into(),
            2 => Launch::Row(row).into(),
            3 => Launch::Task { copy, at: self.now + span }.into(),
            4 | 5 => Launch::Completed { copy }.into(),
            6 => Launch::Drop(TaskRange { job, base: group, len: any, below: any }).into(),
            7 => Probe::Reserve { job, group, count: any, repair }.into(),
            8 => Probe::Claim { job, group, repair }.into(),
            9 | 10 => Probe::Grant { row, group }.into(),
            11 => Probe::Nothing { job, group }.into(),
            12 => Probe::Cancel { job, group }.into(),
            13 => Probe::Sample { task, repair }.into(),
            14 => Probe::Length { task, length: any as i32 }.into(),
            15 => {
                let (scheduler, limit) = (self.below(3) as u16, any as u8);
                RingProbe { task, scheduler, limit, hops: any as u16, repair, max_wait: span }.into()
            }
            16..18 => self.ring(span, any).into(),
            18 => {
                let (round, known) = (any as u16, (self.now + span).into());
                Share::Probe { job, count: any, round, last: repair, repair, known }.into()
            }
            19 => Share::Accepted { job }.into(),
            20 => Share::Rejected { job, count: any, round: any as u16, repair }.into(),
            21 => {
                let (bits, at) = ([any; 3], (self.now + span).into());
                Share::Bits(Blocks { first: any as u16, len: 1 + turn, bits, at }).into()
            }
            22 => Steal::Ask.into(),
            23 => Steal::Loot { scheduler: any, job, count: any, repair }.into(),
            24 => Steal::Nothing.into(),
            25 => Heartbeat::Wait { wait: span, passing: span, at: self.now + span }.into(),
            26..34 => self.gossip(job, group, any).into(),
            34 => {
                Progress::Report { copy, score: Score(any), at: (self.now + span).into(), age_ms: any }.into()
            }
            35 => NodeReport::Service { tasks: any, attained_ms: any, spread_ms: any, at: self.now + span }
                .into(),
            36 => NodeReport::Room { slots: any, at: self.now + span }.into(),
            37 => Preemption::Suspend { copy, turn: group }.into(),
            38 => Preemption::Resume { copy, turn: group }.into(),
            39..51 => self.group(copy, any).into(),
            51..56 => self.usage(copy, any),
            56..67 => self.gossiped(copy, any),
            _ => {
                let core = self.below(3) as u16;
                let work = [SliceWork::Rest, SliceWork::Begin(copy), SliceWork::GoOn(copy)][any as usize % 3];
                Slice::Switch { core, work, epoch: any as u16, order: any, open: JobId(any) }.into()
            }
        }
    }

    fn offer(&mut self, copy: CopyId, any: u32) -> Offer {
        let (job, group, repair) = (copy.task.job, copy.task.index, self.below(2) == 0);
        let of = SizedJob { job, group, size: any };
        match self.below(4) {
            0 => Offer::Reserve { of, count: any, repair },
            1 => Offer::Core { job, group, repair },
            2 => Offer::Grant { copy, group, size: any },
            _ => Offer::Refuse { job: of, smallest: SizedJob { job: JobId(self.dice.below(3)), ..of } },
        }
    }

    fn gossiped(&mut self, copy: CopyId, any: u32) -> Message {
        let member = copy.task.index;
        match self.below(3) {
            0 => self.spread(member, any).into(),
            1 => self.detect(member, any).into(),
            _ => self.offer(copy, any).into(),
        }
    }

    fn spread(&mut self, origin: u32, any: u32) -> Spread {
        let (update, more) = (Update { origin, number: any }, self.below(2) == 0);
        match self.below(3) {
            0 => Spread::Push { update, more },
            1 => Spread::Ask { digest: any.into() },
            _ => Spread::Answer { update, more },
        }
    }

    fn detect(&mut self, member: u32, any: u32) -> Detect {
        let (number, by) = (any, self.below(4) as u32);
        match self.below(6) {
            0 => Detect::Ping { number, by },
            1 => Detect::Ask { number, member },
            2 => Detect::Ack { number, member, by },
            3 => Detect::Nack { number },
            _ => {
                let standing = [Standing::Alive, Standing::Suspected, Standing::Dead][self.below(3)];
                Detect::News { member, incarnation: any, standing, by }
            }
        }
    }

    fn ring(&mut self, span: Span, any: u32) -> Ring {
        match self.below(2) {
            0 => Ring::State { limit: any, load: span, at: self.now + span },
            _ => Ring::Load { report: span.0, active: any, work: span },
        }
    }

    fn group(&mut self, copy: CopyId, any: u32) -> Group {
        let (core, scheduler) = (self.dice.below(9), self.dice.below(3));
        let (life, count, at) = (any as u16, any, self.now.into());
        let (len, step) = (1 + self.dice.below(3), [1, 2, any][self.below(3)]);
        let batch = Batch { job: copy.task.job, base: copy.task.index, len, step, attempt: any };
        let (waiting, next) = (Waiting { scheduler, batch }, Assignment { copy, scheduler });
        match self.below(10) {
            0 => Group::Tasks(waiting),
            1 => Group::Run { core, next },
            2 => Group::Idle { life, count, core },
            3 => Group::Status { life, count, core, running: next },
            4 => Group::Ask,
            5 => Group::Open(waiting),
            6 => Group::Takes { term: any, at },
            7 => Group::Lengths { waiting: any, busy: any, at },
            8 => Group::Mirror { job: batch.job, head: JobId(batch.job.0.saturating_sub(core)) },
            _ => Group::Watch,
        }
    }

    fn usage(&mut self, copy: CopyId, any: u32) -> Message {
        match self.below(3) {
            0 => UsageReport::Report { copy, cpu: any, memory: any, at: self.now.into() }.into(),
            1 => Contention::Throttled { copy, rate: any, at: self.now.into() }.into(),
            _ => Contention::Evicted { copy, age_ms: any, alone: any.is_multiple_of(2) }.into(),
        }
    }

    fn gossip(&mut self, job: JobId, node: u32, any: u32) -> Gossip {
        let (span, at) = (Span(u64::from(any) << self.below(33)), self.now);
        let number = any;
        let news = EndUpdate { node, number, estimate: span, counts_from: at + span };
        match self.below(12) {
            0 => Gossip::Ended(news),
            1 => Gossip::EndedRumour(news),
            2 => Gossip::Ask { epoch: any },
            3 => Gossip::Answer { epoch: any, parts: 4 + any % 9 },
            4 => Gossip::Entry { epoch: any, node, wait: i64::MIN + i64::from(any), renewed: at + span },
            5 => Gossip::Heard { epoch: any, origin: node, number },
            6 => Gossip::Backlog(BacklogReport { work: span, at: at + span, number, came: number }),
            _ => {
                let form = [
                    PlacementForm::Single,
                    PlacementForm::Batch,
                    PlacementForm::Rest,
                    PlacementForm::Withdrawn,
                ][self.below(4)];
                let (nodes, origin) = ([node, PlacementUpdate::NO_NODE], self.below(2) as u32);
                Gossip::Placed(PlacementUpdate {
                    at,
                    job,
                    nodes,
                    number,
                    origin,
                    form,
                    rumour: self.below(2) == 0,
                })
            }
        }
    }
}
