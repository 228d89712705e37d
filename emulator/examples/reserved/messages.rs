//! The messages of the policy, beside volary's own: `job.submit`, `launch.row` and the others.

use volary_actors::base::TaskId;

volary_actors::custom_messages! {
    /// Reservations for tasks, and lengths of queues.
    pub(crate) enum Reservation from 0 {
        /// Scheduler → node: reserve a place for this task, and answer with the length of the queue.
        Ask {
            /// The task.
            task: TaskId,
            /// Number of questions about this task so far.
            round: u32,
            /// Whether the question repairs a loss; if so, the answer does too.
            repair: bool,
        } = "reserved.ask", Datagram, Scheduler -> Node;
        /// Node → scheduler: the number of tasks that run or wait here (or minus the number of free cores), plus the
        /// number of reservations of other tasks.
        Length {
            /// The task.
            task: TaskId,
            /// The round of the question.
            round: u32,
            /// The length of the queue.
            length: i32,
        } = "reserved.length", Datagram, Node -> Scheduler;
    }
}
