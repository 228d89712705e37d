//! Observations folded into results.
//!
//! | module | what it holds |
//! |---|---|
//! | [`recorder`] | totals of a run: jobs, tasks, copies |
//! | `recording` | the data kept beyond the totals |
//! | [`timeline`] | messages, waiting tasks and running copies of the start of a run |
//! | [`PolicyMetric`] | the trait of metrics that only some policies have, registered in `registry` |
//! | `ages` | ages of caches, of copies of a shared state, and of the updates that members have |
//! | `instants` | the instants at which copies are observed |
//! | `staleness` | staleness of the caches of schedulers |
//! | `dissemination` | deliveries, coverage and ages of updates that spread among members |
//! | [`aggregator`] | the observations of several shards, merged and folded, and the end of a run |
//! | [`placements`] | times at which tasks were bound to nodes |
//! | [`planning`] | the plans of schedulers that plan in cycles, and their estimates of run times |
//! | `values` | values that the programs of policies in other languages record |

mod ages;
pub mod aggregator;
mod detection;
mod dissemination;
mod gauge;
mod instants;
pub mod placements;
pub mod planning;
mod policy_metric;
pub mod recorder;
mod recording;
mod registry;
mod staleness;
pub mod timeline;
mod values;

pub use aggregator::{Aggregator, EndReason, FalseReport};
pub use policy_metric::PolicyMetric;
pub use recorder::{Accounts, Recorder, SoFar};
pub use recording::{Recording, RunConfig};
pub use registry::{PolicyMetrics, policy_metrics};
pub use staleness::CacheTracker;
pub use timeline::MessageWindow;
