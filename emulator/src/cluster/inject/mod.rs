//! Interference injected into a run by a third party.

pub mod injector;
mod line;
pub mod words;
