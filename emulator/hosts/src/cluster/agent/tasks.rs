//! Local tasks that are aborted with their owner, and the panics of tasks.

use std::panic::AssertUnwindSafe;
use std::rc::Rc;

use futures_util::FutureExt;
use tokio::task::JoinSet;
use volary_experiment::control::panic_text;

use super::context::RunContext;

/// Local tasks, aborted when this is dropped.
#[derive(Default)]
pub(super) struct TaskGroup(JoinSet<()>);

impl TaskGroup {
    /// Spawns a task of a session. Its panic is logged; the peer notices the end of the task.
    pub(super) fn spawn(&mut self, task: impl Future<Output = ()> + 'static) {
        self.0.spawn_local(async {
            if let Err(panic) = catch_panic(task).await {
                tracing::error!("{panic}");
            }
        });
    }

    /// Spawns a task of a run. Its panic ends the run.
    pub(super) fn spawn_in(&mut self, run: &Rc<RunContext>, task: impl Future<Output = ()> + 'static) {
        let run = Rc::clone(run);
        self.0.spawn_local(async move {
            if let Err(panic) = catch_panic(task).await {
                run.fail(panic);
            }
        });
    }
}

/// Runs `work` to its end, or to its first panic, whose message is returned.
pub(super) async fn catch_panic<T>(work: impl Future<Output = T>) -> Result<T, String> {
    AssertUnwindSafe(work).catch_unwind().await.map_err(|panic| panic_text(panic.as_ref()))
}
