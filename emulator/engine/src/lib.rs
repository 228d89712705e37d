//! The pure engine of volary: the code that virtual-time runs, oracles, replays and real-time runs share. No wall
//! clock, no I/O, no threads: files, clocks and progress are passed in as arguments.
//!
//! | module | what it holds |
//! |---|---|
//! | [`scenario`] | the scenario of a run: machines, workload, service, network, interference, policy |
//! | [`workload`] | jobs and their work: generators and parsers of traces |
//! | [`cores`] | interference, and the exact time a core needs for work |
//! | [`queue`] | the event queue |
//! | [`handling`] | the time that actors take for messages |
//! | [`shard`] | the event loop: machines, queue, network, cores |
//! | [`parcel`] | messages and observations that leave a shard |
//! | [`world`] | a scenario under a seed, from which shards are built |
//! | [`scenario::quiet`] | the time without a copy after which a run is given up |
//! | [`virtual_time`] | runs in virtual time |
//! | [`metrics`] | observations folded into results |
//! | [`results`] | the results schema |
//! | [`replay`] | logged inputs processed again |
//! | [`world::finalize`] | the result of a run, from its totals and counters |
//! | [`fingerprint`] | hashes that identify files, message kinds and cells |

#![deny(unsafe_code)]

pub mod cores;
pub mod fingerprint;
pub mod handling;
pub mod metrics;
pub mod parcel;
mod prefetch;
pub mod queue;
pub mod replay;
pub mod results;
pub mod scenario;
pub mod shard;
pub mod virtual_time;
pub mod workload;
pub mod world;
