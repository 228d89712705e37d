//! What the reference says of cores as a run found them.
//!
//! Copies that burn real cores keep them a little longer than they were to: actors, timers and whatever else the
//! machine does need the same CPUs. The certificate says by how much, and queues make more of it than that, but how
//! much more virtual time can tell: in the same world, with cores that are slower by as much.

use super::{Error, Way};
use crate::record::cell::CellRecord;
use crate::results::Summary;
use crate::runtime::world::World;
use crate::runtime::{UnitError, Watch, virtual_time};
use crate::spec::{Experiment, RuntimeKind};

/// By which factor the copies of burnt runs, those that were stopped too, kept their cores longer than they were to, in
/// the mean; nothing for runs without any.
pub(super) fn factor(runs: &[&CellRecord]) -> Option<f64> {
    let certificates = runs.iter().filter_map(|run| run.summary.fidelity.as_ref());
    let burnt: Vec<f64> =
        certificates.filter(|c| c.cores.is_some()).map(|c| 1.0 + c.core_s.excess()).collect();
    (!burnt.is_empty()).then(|| burnt.iter().sum::<f64>() / burnt.len() as f64)
}

/// Runs point number `point` of a virtual `experiment` with cores that are slower by `factor`.
///
/// # Errors
/// When it is interrupted or refused.
pub(super) fn as_found(
    experiment: &Experiment,
    point: usize,
    factor: f64,
    watch: &Watch,
) -> Result<Summary, Error> {
    let seed = experiment.units(None)[point].seed;
    let measured = World::of(experiment, point, seed, &experiment.traces()).and_then(|world| {
        virtual_time::measure(&experiment.name, &world.slower(factor), &experiment.run, watch)
    });
    measured.map(|measured| measured.summary).map_err(|error: UnitError| Error::Broken {
        way: Way { runtime: RuntimeKind::Virtual, real: None },
        why: error.to_string(),
    })
}
