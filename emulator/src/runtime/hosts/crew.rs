//! Tasks that end with whoever spawned them.

use std::rc::Rc;

use tokio::task::{JoinHandle, spawn_local};

use super::caught::caught;
use super::desk::Desk;

/// Tasks that end with whoever spawned them. If one panics, what they all work at is over.
#[derive(Default)]
pub(super) struct Crew(Vec<JoinHandle<()>>);

impl Crew {
    /// A task of a session: who speaks with it notices when it is gone.
    pub(super) fn add(&mut self, task: impl Future<Output = ()> + 'static) {
        self.0.push(spawn_local(async {
            if let Err(bug) = caught(task).await {
                tracing::error!("{bug}");
            }
        }));
    }

    /// A task of a unit.
    pub(super) fn assist(&mut self, desk: &Rc<Desk>, task: impl Future<Output = ()> + 'static) {
        let desk = Rc::clone(desk);
        self.0.push(spawn_local(async move {
            if let Err(bug) = caught(task).await {
                desk.fail(bug);
            }
        }));
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        self.0.iter().for_each(JoinHandle::abort);
    }
}
