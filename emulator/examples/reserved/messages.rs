//! The messages of the policy, beside volary's own: `job.submit`, `launch.row` and the others.

use volary_actors::base::TaskId;

volary_actors::custom_messages! {
    /// Places for tasks, and how long the queues are.
    pub(crate) enum Reservation from 0 {
        /// Scheduler → node: keep a place for this task for a while, and say how long the queue is.
        Ask {
            /// The task.
            task: TaskId,
            /// How often nodes were asked for this task.
            round: u32,
            /// Whether it repairs a loss: then so does the answer.
            repair: bool,
        } = "reserved.ask", Datagram, Scheduler -> Node;
        /// Node → scheduler: tasks that run, wait or have a place here; with free cores, minus their number.
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
