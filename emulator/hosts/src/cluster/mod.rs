//! The runtime on many machines: a controller, an agent on each host, and QUIC between them.
//!
//! | module | what it holds |
//! |---|---|
//! | [`controller`] | the connected hosts, the runs executed on them, their injections, logs and results |
//! | [`agent`] | the daemon on each host, and its part of a run |
//! | [`inject`](mod@inject) | the injector |
//! | [`status`](mod@status) | the state of agents |
//! | [`protocol`] | the messages between them |
//! | [`net`] | QUIC endpoints, identities, links between hosts |
//! | `placement` | the placement of actors on hosts |
//! | [`error`], [`timing`] | errors; limits of silence and timeouts |
//!
//! # Queues
//!
//! A parcel on its way from one shard to another waits in the first four queues, and a report to the controller in the
//! next three. The last queue holds the controller's messages.
//!
//! | queue | constant | bound | when it is full |
//! |---|---|--:|---|
//! | bytes to one host | `LINK_QUEUE`, agent/run.rs | 8 MiB | stream parcels stay with the shard, which waits from half of it; datagrams are dropped and counted |
//! | batches from all hosts | `ARRIVAL_QUEUE`, agent/run.rs | 64 | the links do not read, and flow control stops the senders |
//! | inbox of the shard | `INBOX_CAPACITY`, real_time/event_loop.rs | 2¹⁸ parcels | no batch is taken from the queue before it |
//! | events of the shard | `--events` | 16 million | the run ends with an error |
//! | messages to the controller | `SEND_QUEUE`, agent/run.rs | 64 | observations stay with the shard, which waits |
//! | frames of input logs | `INPUT_QUEUE`, agent/run.rs | 64 | the shard waits |
//! | events of all hosts at the controller | `EVENT_QUEUE`, controller/host_pool.rs | 256 | the connections are not read, and flow control stops the agents |
//! | messages to one agent | `SEND_QUEUE`, controller/host_pool.rs | 64 | progress and pongs are dropped from half of it; for other messages the controller waits |

#![allow(missing_docs, reason = "fields whose names say what they hold")]

pub mod agent;
pub mod controller;
pub mod error;
pub mod inject;
pub mod net;
mod placement;
pub mod protocol;
pub mod recorded;
pub mod report_check;
pub mod status;
pub mod timing;

pub use controller::remove_identities;
pub use error::HostsError;
