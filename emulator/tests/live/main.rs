//! Runs in real time in one process: their certificates, copies on real cores, and replay of input logs.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

#[path = "../common/mod.rs"]
mod common;
mod fidelity;
mod real_cores;
mod replay;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Lock of the machine. Every test of this binary holds it, because another one would make its run late.
fn machine() -> MutexGuard<'static, ()> {
    static MACHINE: Mutex<()> = Mutex::new(());
    MACHINE.lock().unwrap_or_else(PoisonError::into_inner)
}
