//! A network emulator as a pure, seeded crate. It answers one question: what happens to a message sent now
//! from here to there? Nothing waits inside it; it keeps a few numbers for each link that was used.
//!
//! | module | what it holds |
//! |---|---|
//! | [`config`] | the `[network]` table |
//! | [`units`] | probabilities, rates, buffers |
//! | [`target`] | whom a fault is about, and the table of who is who |
//! | [`faults`] | partitions, crashes, pauses, degradations, and their schedule |
//! | [`links`] | which link class joins two endpoints |
//! | [`topology`] | topology files, and what they resolve to |
//! | [`verdict`] | the answer, and the books about the answers |
//!

#![forbid(unsafe_code)]

pub mod config;
pub mod error;
pub mod faults;
pub mod links;
pub mod target;
pub mod topology;
pub mod units;
pub mod verdict;

pub use config::{GilbertElliott, Loss, Network};
pub use error::Error;
pub use faults::{Crash, FaultSpec, Faults};
pub use links::{LinkClass, LinkSpec, Links, Place};
pub use target::{Groups, Places, Target};
pub use topology::TopologyFile;
pub use units::{Buffer, Probability, Rate};
pub use verdict::{Cause, ClassStats, Stats, Verdict};
