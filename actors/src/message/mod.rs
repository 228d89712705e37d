//! The messages between actors: a closed enum, and files of related protocols.
//!
//! A variant has one meaning in every state of its receiver. The codec, the counters and the size assertion find new
//! protocols through the list in `registry`. The messages of large policies are in the folders of the policies.
//! Policies in other crates share one variant, with a payload.

mod core;
mod custom;
mod detect;
mod extension;
mod job;
mod launch;
mod probe;
mod protocol;
mod registry;
mod report;
mod slice;
mod spread;

#[path = "../policies/hopper/messages.rs"]
mod hopper;
#[path = "../policies/murmuration/messages.rs"]
mod murmuration;
#[path = "../policies/peacock/messages.rs"]
mod peacock;
#[path = "../policies/pigeon/messages.rs"]
mod pigeon;

pub use self::core::Core;
pub(crate) use self::custom::first_unused;
pub(crate) use self::custom::install;
pub use self::custom::{Custom, CustomKind, Field, HEAD, PAYLOAD, PayloadReader, PayloadWriter};
pub use self::detect::{Detect, Standing};
pub use self::extension::CustomProtocol;
pub use self::hopper::{Offer, SizedJob};
pub use self::job::Job;
pub use self::launch::{Launch, Row, TaskRange};
pub use self::murmuration::{BacklogReport, EndUpdate, Gossip, PlacementForm, PlacementUpdate};
pub use self::peacock::{Ring, RingProbe};
pub use self::pigeon::{Assignment, Batch, Group, Turn, Waiting};
pub use self::probe::{Blocks, Probe, Share, Stamp, Steal};
pub use self::protocol::Run;
pub use self::registry::{HEADERS, KINDS, MOST_WIRE_BYTES, Message, kind_name, kinds, wire_bytes};
pub use self::report::{Contention, Heartbeat, NodeReport, Progress, UsageReport};
pub use self::slice::{Preemption, Slice, SliceWork, SuspendableCopy};
pub use self::spread::{Spread, Update};
