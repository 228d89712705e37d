//! The queues of a master as its standby knows them. The master sends its standby all changes of its queues, and the
//! standby that takes over serves the tasks that are still open in this order (section 6.1 of the paper).
//!
//! This differs from the paper: the standby gets the changes of the queues only, without the states of workers, and
//! relies on them for the order alone. Which tasks are open it asks the schedulers.

use std::collections::VecDeque;

use crate::base::JobId;
use crate::message::Mirror;

/// A copy of a master's queues: the jobs of waiting tasks, and their numbers of tasks.
#[derive(Clone, Debug, Default)]
pub(super) struct QueueCopy {
    /// Short tasks, and long ones.
    queues: [VecDeque<(JobId, u32)>; 2],
    /// Number of short and of long tasks whose service arrived before their queueing, because messages can overtake
    /// each other.
    owed: [u32; 2],
}

impl QueueCopy {
    /// Applies a change of the master's queues.
    pub(super) fn follow(&mut self, change: Mirror) {
        match change {
            Mirror::Reset => *self = Self::default(),
            Mirror::Queued { batch, short, front } => {
                let queue = &mut self.queues[usize::from(!short)];
                let at = if front { 0 } else { queue.len() };
                queue.insert(at, (batch.job, batch.len));
                self.serve(usize::from(!short), 0);
            }
            Mirror::Served { short, long } => {
                self.serve(0, short);
                self.serve(1, long);
            }
        }
    }

    /// Removes `count` tasks, and those owed, from the head of a queue.
    fn serve(&mut self, class: usize, count: u32) {
        let (queue, owed) = (&mut self.queues[class], &mut self.owed[class]);
        *owed = owed.saturating_add(count);
        while *owed > 0
            && let Some((_, len)) = queue.front_mut()
        {
            let some = (*owed).min(*len);
            *owed -= some;
            *len -= some;
            if *len == 0 {
                queue.pop_front();
            }
        }
    }

    /// The position of a job in the queues; after all others if the job does not wait.
    pub(super) fn position(&self, job: JobId) -> usize {
        self.queues.iter().flatten().position(|(waiting, _)| *waiting == job).unwrap_or(usize::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Batch;

    fn queued(job: u32, len: u32, front: bool) -> Mirror {
        let batch = Batch { job: JobId(job), base: 0, len, step: 1, attempt: 0 };
        Mirror::Queued { batch, short: true, front }
    }

    /// Two changes arrive in reverse order, so a served task is dropped when it is queued.
    #[test]
    fn a_standby_drops_tasks_served_before_they_were_queued() {
        let mut copy = QueueCopy::default();
        copy.follow(Mirror::Served { short: 5, long: 0 });
        copy.follow(queued(0, 7, false));
        assert_eq!(copy.queues[0], [(JobId(0), 2)]);
    }

    #[test]
    fn a_standby_copies_every_change_of_the_queues() {
        let mut copy = QueueCopy::default();
        let served = Mirror::Served { short: 2, long: 0 };
        for change in [queued(0, 3, false), queued(1, 4, false), queued(2, 1, true), served] {
            copy.follow(change);
        }
        assert_eq!(copy.queues, [VecDeque::from([(JobId(0), 2), (JobId(1), 4)]), VecDeque::new()]);
        assert_eq!([0, 1, 2].map(|job| copy.position(JobId(job))), [0, 1, usize::MAX]);
        copy.follow(Mirror::Reset);
        assert_eq!(copy.queues, [VecDeque::new(), VecDeque::new()]);
    }
}
