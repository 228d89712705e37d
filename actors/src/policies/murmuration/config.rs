//! Parameters of Murmuration.

use crate::base::{Span, parameters};

parameters! {
    /// Parameters of Murmuration.
    struct Murmuration {
        /// The order of jobs at a scheduler, and of tasks at a node.
        order: MurmurationOrder = MurmurationOrder::Fcfs,
        /// `srjf`: the value by which a node orders its tasks.
        rank: MurmurationRank = MurmurationRank::Task,
        /// `srjf`: total estimate of the tasks that may overtake a waiting task at a node, as a multiple of the waiting
        /// task's estimate. The authors' simulator has 5; the default is in effect no limit, as in the paper.
        bypass: f64 = 1e9 => 0.0..=1e9,
        /// `srjf`: whether a scheduler continues after each task with the job that has the least work left to place.
        /// Otherwise it finishes the job that it has begun. This matters only where decisions take time. An update
        /// batches the tasks of one job that were placed without interruption.
        preemptive: bool = false,
        /// `las`: W, time for which a core runs a copy before it compares the copy with the suspended ones. Everything
        /// else is as in the Kairos paper (section 3.2).
        quantum: Span = Span::from_secs(50) => period,
        /// Choice among the nodes with the least expected work.
        ties: MurmurationTies = MurmurationTies::Random,
        /// Times at which a scheduler whose decisions take time applies updates.
        news: MurmurationNews = MurmurationNews::BetweenJobs,
        /// Whether the other schedulers get one update for each job instead of one for each task, as in the paper's
        /// simulator, but not in its prototype. A batch is one message in the counts. It is sent in parts of two
        /// tasks; where updates are datagrams, each part can be lost separately. Updates not yet sent are lost when
        /// their scheduler crashes, but the ends of the placed tasks are still reported. The other schedulers then
        /// expect too little work at these nodes until a report (`repair`).
        batch: bool = true,
        /// The value by which nodes are compared.
        wait: MurmurationWait = MurmurationWait::PerCore,
        /// Decision time of a scheduler per job, spent before it places the first task. Section 6.2.4 uses 100 ms.
        decision_per_job: Span = Span::ZERO,
        /// Decision time per task. Section 6.2.4 uses 5 ms.
        decision_per_task: Span = Span::ZERO,
        /// Artificial delay before an update is sent, in addition to the network delay (section 6.2.3). Delayed updates
        /// are lost when their sender crashes, as with `batch`.
        update_delay: Span = Span::ZERO,
        /// Dissemination of updates.
        spread: MurmurationSpread = MurmurationSpread::Streams,
        /// `epidemic` spread: number of schedulers to which the origin sends an update, and to which each receiver
        /// forwards an update that is new to it.
        fan_out: u32 = 3 => 1..=65_536,
        /// Period at which a node reports its actual work. The report replaces the receiver's entry, unless the
        /// receiver has newer updates, and so corrects the errors of lost updates. A report does not contain tasks in
        /// flight that other schedulers placed: they are missing, or counted twice, until the next report.
        /// `update_delay` may not be longer than this period. Zero disables reports, as in the paper.
        repair: Span = Span::ZERO,
        /// The way in which a restarted scheduler uses the cache of another.
        copy: Copying = Copying::Numbered,
        /// Time for which a restarted scheduler waits for an answer before it asks two others. The paper has no value.
        ask_timeout: Span = Span::from_secs(1) => period,
        /// Upper bound of the artificial delay before an answer is sent, which is sampled uniformly from zero to this
        /// bound; 3 s in section 6.2.4. The answer is the cache at the time of the request.
        answer_delay: Span = Span::ZERO,
    }

    /// The order of jobs at a scheduler, and of tasks at a node.
    enum MurmurationOrder {
        /// Oldest job first, at schedulers and nodes.
        #[default]
        Fcfs,
        /// The job with the least estimated work of all its tasks first, and the task with the least `rank`. No task is
        /// preempted.
        Srjf,
        /// Oldest job first at a scheduler. A node runs the copies with the least attained service, as in Kairos, and
        /// suspends any number of others (ours). Placement needs estimates, nodes do not.
        Las,
    }

    /// The value by which a node orders tasks.
    enum MurmurationRank {
        /// The estimate of the task, shortest task first (section 4.2).
        #[default]
        Task,
        /// The estimated work of all tasks of the job. A task's message carries this value.
        Job,
        /// The estimated work of the job's tasks that have not begun on any node. This is an oracle, not a protocol:
        /// every node knows the state of all others at once, without a message. The authors' simulator reads it from
        /// shared memory. Available in virtual time only.
        JobLeftOracle,
    }

    /// Choice among the nodes with the least expected work.
    enum MurmurationTies {
        /// Any of these nodes, uniformly (Algorithm 1).
        #[default]
        Random,
        /// The node with the lowest number, as in the authors' simulator at the time of Fig. 15.
        Lowest,
    }

    /// Times at which a scheduler whose decisions take time applies updates.
    enum MurmurationNews {
        /// After the last task of a job, before the scheduler begins the next.
        #[default]
        BetweenJobs,
        /// After each task (section 4.1: whenever no task is being scheduled).
        BetweenTasks,
    }

    /// The value by which nodes are compared.
    enum MurmurationWait {
        /// The sum of the estimates of the tasks that are queued or run on a node, divided by its cores.
        #[default]
        PerCore,
        /// The same sum, not divided by the cores (section 4.1).
        Work,
        /// The time at which the node is expected to be free. Each update takes the later of this time and the task's
        /// start, and adds or subtracts the estimate divided by the cores. As in the authors' simulator, a recently
        /// used node ranks behind a node that was never used.
        Clock,
    }

    /// Dissemination of updates.
    enum MurmurationSpread {
        /// To every scheduler, over reliable streams, as the paper assumes.
        #[default]
        Streams,
        /// To every scheduler, in datagrams that can be lost.
        Datagrams,
        /// In datagrams to `fan_out` random schedulers, each of which forwards updates that are new to it.
        Epidemic,
    }

    /// The way in which a restarted scheduler uses the cache of another.
    enum Copying {
        /// Updates are numbered, and updates that the copy contains are not applied again.
        #[default]
        Numbered,
        /// All updates since the request are applied, even if the copy contains them, as in the paper. No updates are
        /// kept for schedulers that are down. Refused with `repair` and with `epidemic` spread, which number updates;
        /// with `datagrams` on a network that can lose them, the same as `numbered`.
        Naive,
    }
}
