//! Tests of a policy in a separate crate: the example `reserved`, its step tests, and the crate that `volary policies
//! new` makes from it.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

#[path = "../common/binary.rs"]
#[allow(dead_code, unreachable_pub, reason = "each test crate uses a part of it")]
mod binary;
mod crates;
#[path = "../../examples/reserved/messages.rs"]
mod messages;
#[path = "../../examples/reserved/node.rs"]
mod node;
#[path = "../../examples/reserved/policy.rs"]
mod policy;
mod program;
#[path = "../../examples/reserved/scheduler.rs"]
mod scheduler;
#[path = "../../examples/reserved/tests.rs"]
mod steps;
