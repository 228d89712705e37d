//! The one way to take a lock.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Takes a lock, also after a panic of another thread that held it: what is kept under locks here is whole at any
/// time, so a panic elsewhere spoils nothing.
pub(crate) fn guard<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
