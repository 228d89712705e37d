//! A point of a parameter study: a policy, and the world that it runs in.

use std::path::PathBuf;
use std::sync::Arc;

use serde::{Serialize, Serializer};
use volary_actors::base::Span;
use volary_actors::policies::PolicySpec;
use volary_netem::Network;

use super::Cluster;
use crate::cores::{Profile, ScheduledInjection};
use crate::results::Cell;
use crate::workload::{Service, WorkloadSpec};

/// One cell of the sweep under one policy.
#[derive(Clone, PartialEq, Debug)]
pub struct Point {
    /// Values of the swept keys.
    pub cell: Cell,
    /// The policy and its parameters.
    pub policy: PolicySpec,
    /// Its label in results and claims.
    pub label: String,
    /// The rest of the scenario, shared by the policies of a cell.
    pub resolved: Arc<Resolved>,
    /// Hash of everything that the result depends on, 16 hex digits, under the experiment's seed.
    pub id: String,
}

/// The world that the policies of a cell share.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Resolved {
    /// The machines.
    pub cluster: Cluster,
    /// The arriving jobs.
    pub workload: WorkloadSpec,
    /// Path at which the trace was found; `None` if there is none or a generator replaces it.
    pub trace: Option<PathBuf>,
    /// The work of the jobs.
    pub service: Service,
    /// Delays and losses of messages.
    pub network: Network,
    /// The interference on cores.
    #[serde(serialize_with = "as_table")]
    pub interference: Option<Profile>,
    /// The injections that the experiment schedules.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub injections: Vec<ScheduledInjection>,
    /// Hash of all fields, with the content of the trace instead of its path.
    pub digest: String,
}

impl Resolved {
    /// Whether a generator replaces a trace that was not found.
    pub const fn has_stand_in(&self) -> bool {
        matches!(self.workload, WorkloadSpec::Trace(_)) && self.trace.is_none()
    }

    /// Key and beginning of each fault and each scheduled injection.
    pub fn disturbances(&self) -> impl Iterator<Item = (String, Span)> + '_ {
        let faults = self.network.fault.iter().enumerate();
        let faults = faults.map(|(i, fault)| (format!("network.fault[{i}]"), fault.at()));
        let injections = self.injections.iter().enumerate();
        faults.chain(injections.map(|(i, spec)| (format!("interference.injection[{i}]"), spec.spec.at)))
    }
}

fn as_table<S: Serializer>(profile: &Option<Profile>, serializer: S) -> Result<S::Ok, S::Error> {
    profile.as_ref().map(|profile| &profile.table).serialize(serializer)
}
