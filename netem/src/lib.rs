//! A network emulator as a pure, seeded crate. It decides the fate of a message that is sent now between two endpoints.
//! Messages do not wait inside it: it keeps only a few numbers for each used link.
//!
//! | module | what it holds |
//! |---|---|
//! | [`config`] | the `[network]` table |
//! | [`units`] | probabilities, rates, buffers |
//! | [`faults::target`] | the targets of faults, and the table that resolves them to actors and nodes |
//! | [`faults`] | partitions, crashes, pauses, degradations, and their schedule |
//! | [`links`] | the link class between two endpoints |
//! | [`topology`] | topology files, and their resolved form |
//! | [`verdict`] | verdicts on messages, and their counts |
//! | [`fabric`] | `route(now, src, dst, class, bytes) -> Verdict` |
//!
//! ```
//! use volary_actors::base::{Class, Endpoint, DistributionSpec, Span, Time};
//! use volary_netem::{Fabric, Faults, Links, Network, Verdict};
//!
//! let network = Network { one_way: "10ms".parse::<Span>().map(DistributionSpec::Constant)?, ..Default::default() };
//! let mut fabric = Fabric::new(&network, Links::uniform(), 100, 2, Faults::default(), 12345)?;
//! let verdict = fabric.route(Time::ZERO, Endpoint(0), Endpoint(7), Class::Stream, 89);
//! assert_eq!(verdict, Verdict::Deliver { after: Span::from_millis(10), retransmissions: 0 });
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]

pub mod config;
pub mod error;
pub mod fabric;
pub mod faults;
pub mod links;
mod model;
mod state;
pub mod topology;
pub mod units;
pub mod verdict;

pub use config::{GilbertElliott, Loss, Network};
pub use error::Error;
pub use fabric::Fabric;
pub use faults::target::{Groups, Target};
pub use faults::{Crash, FaultSpec, Faults, Windows};
pub use links::{LinkClass, LinkSpec, Links, Place};
pub use model::worst::Worst;
pub use topology::{Topology, TopologyFile};
pub use units::{Buffer, Probability, Rate, Size};
pub use verdict::{Cause, ClassStats, Stats, Verdict};
