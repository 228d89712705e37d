//! The messages between actors: a closed enum, and a file per protocol.
//!
//! A variant has one meaning in every state of its receiver. The codec, the counters and the size assertion find
//! new protocols from the list in `registry`. Policies in other crates have one variant of it, with a payload.

mod core;
mod custom;
mod extension;
mod field;
mod gang;
mod gossip;
mod group;
mod heartbeat;
mod job;
mod launch;
mod preempt;
mod probe;
mod progress;
mod protocol;
mod registry;
mod ring;
mod share;
mod steal;
mod usage;

pub use self::core::Core;
pub(crate) use custom::install;
pub use custom::{Custom, CustomKind};
pub use extension::CustomProtocol;
pub use field::{Field, PAYLOAD, PayloadReader, PayloadWriter};
pub use gang::{Slice, SliceWork};
pub use gossip::{BacklogReport, EndUpdate, Gossip, PlacementForm, PlacementUpdate};
pub use group::{Batch, Group, Mirror, Turn};
pub use heartbeat::{Heartbeat, NodeReport};
pub use job::Job;
pub use launch::{Launch, Row, TaskRange};
pub use preempt::Preemption;
pub use probe::Probe;
pub use progress::Progress;
pub use protocol::Run;
pub use registry::{KINDS, Message, kind_name, kinds};
pub use ring::{Ring, RingProbe};
pub use share::{Blocks, Share, Stamp};
pub use steal::Steal;
pub use usage::{Contention, UsageReport};
