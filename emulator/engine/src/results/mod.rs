//! The results schema: the measurements of a run, as JSON lines and as rows.

mod actors;
mod certificate;
mod claims;
mod cores;
mod deadlines;
mod distribution;
mod findings;
mod graphs;
mod injections;
mod interference;
mod metric;
mod policy;
mod schema;
mod shared;
mod unequal;
mod vitals;
mod window;
mod work;

pub use actors::ActorLoad;
pub use certificate::{
    Certificate, ClassFidelity, Compared, DelaySummary, Delays, Departure, Late, Lateness, NetworkFidelity,
    Proportion, Reason, Standing,
};
pub use claims::{ClaimResult, ClaimsLine, Origin, Tally, Tolerance, Verdict};
pub use cores::CoreRow;
pub use deadlines::{Deadlines, GoodputHours};
pub use distribution::{Brief, DeliveryTimes, Distribution, Spread, percentile};
pub use findings::Findings;
pub use graphs::{DepthResults, Graphs};
pub use injections::{Applied, Injected, ScheduledSpan};
pub use interference::InterferenceMet;
pub use metric::{
    Better, ColumnGroup, METRICS, Metric, Reading, TableColumn, Unit, censored_sections, is_censored,
};
pub use policy::{
    CacheRow, DecisionRow, Detection, Dissemination, Placements, PlanGap, Planning, PolicyResults,
    PolicySections, PredictionErrors, Stage, Staleness,
};
pub use schema::{
    Cell, ClassResults, CopyCounts, CopyEnd, CopyRow, Engine, JobCounts, JobRow, JobTimes, Line, LoadRow,
    MOST_BURSTS, MOST_SLOW, Measured, MessageRow, Messages, RunLine, SCHEMA, SlowRow, Summary, TaskCounts,
    canonical, cell_name, in_words, plain, point_name, run_id, run_name, same,
};
pub use shared::SharedNodes;
pub use unequal::unequal_injections;
pub use vitals::{ClockError, HostVitals, PathLoss, TimerProbe};
pub use window::{MeasuredWindow, Unsettled};
pub use work::{MOST_STRETCHES, RealCore, RealWork, STILL, Samples, Slots, Worked};
