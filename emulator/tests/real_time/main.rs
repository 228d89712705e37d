//! Runs in real time in one process: their certificates, copies on real cores, and replay of input logs.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

#[path = "../common/mod.rs"]
mod common;
mod fidelity;
mod real_cores;
mod replay;

use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

static MACHINE: RwLock<()> = RwLock::new(());

/// Exclusive use of the machine, for a test whose run another test would make late.
fn machine() -> RwLockWriteGuard<'static, ()> {
    MACHINE.write().unwrap_or_else(PoisonError::into_inner)
}

/// Shared use of the machine, for a test that may be late.
fn shared_machine() -> RwLockReadGuard<'static, ()> {
    MACHINE.read().unwrap_or_else(PoisonError::into_inner)
}
