//! Tasks that end with whoever spawned them.

use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;

use tokio::task::{JoinHandle, spawn_local};

use super::context::CellContext;
use crate::runtime::watch::panic_text;

/// Tasks that end with whoever spawned them. If one panics, what they all work at is over.
#[derive(Default)]
pub(crate) struct TaskGroup(Vec<JoinHandle<()>>);

impl TaskGroup {
    /// A task of a session: who speaks with it notices when it is gone.
    pub(crate) fn add(&mut self, task: impl Future<Output = ()> + 'static) {
        self.0.push(spawn_local(async {
            if let Err(bug) = catch_panic(task).await {
                tracing::error!("{bug}");
            }
        }));
    }

    /// A task of a unit.
    pub(crate) fn assist(&mut self, context: &Rc<CellContext>, task: impl Future<Output = ()> + 'static) {
        let context = Rc::clone(context);
        self.0.push(spawn_local(async move {
            if let Err(bug) = catch_panic(task).await {
                context.fail(bug);
            }
        }));
    }
}

impl Drop for TaskGroup {
    fn drop(&mut self) {
        self.0.iter().for_each(JoinHandle::abort);
    }
}

/// Runs `work` to its end, or to its first panic, whose message is returned. `work` is dropped either way.
pub(crate) async fn catch_panic<T>(work: impl Future<Output = T>) -> Result<T, String> {
    let mut work = pin!(work);
    poll_fn(|cx| match catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(cx))) {
        Ok(poll) => poll.map(Ok),
        Err(panic) => Poll::Ready(Err(panic_text(panic.as_ref()))),
    })
    .await
}
