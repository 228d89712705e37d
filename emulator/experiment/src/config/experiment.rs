//! The resolved experiment: all defaults are filled in, and every file it needs was found.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use volary_engine::results::{Cell, ClaimResult, Summary};
use volary_engine::scenario::Point;

use super::abridge;
use super::claims::{self, Claim};
use super::file::{RunSection, RuntimeKind};
use super::identity::id_under;
use super::load::{Load, load};
use super::repeat::{Repeat, of_text, to_text};
use crate::files::{FileSum, Files, few};
use crate::storage::slices::SweepSlice;
use crate::workload::Traces;

/// Initial replications with `repeat = "auto"`: the fewest that give a usable estimate of their spread.
pub const FIRST_REPLICATIONS: u32 = 5;
/// Replications after which `repeat = "auto"` gives up on its precision.
pub const MOST_REPLICATIONS: u32 = 100;

/// An experiment, ready to be run.
#[derive(Clone, Debug, Serialize)]
pub struct Experiment {
    /// Path below `experiments/` without suffix, such as `latin-square/fig6`; otherwise the file's stem.
    pub name: String,
    pub file: PathBuf,
    pub title: String,
    /// The reproduced paper, section and figure.
    pub source: Option<String>,
    /// Seed of replication 0; replication r has seed + r.
    pub seed: u64,
    pub repeat: Repeat,
    /// With `repeat = "auto"`: the relative 95 % half-width to reach.
    pub precision: f64,
    /// Every cell times every policy, in written order; the policy varies fastest.
    #[serde(serialize_with = "abridge::points")]
    pub points: Vec<Point>,
    /// Swept keys in written order, with their values.
    pub sweep: Vec<(String, Vec<Value>)>,
    /// Further keys that values of swept keys set, as lines.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub companions: Vec<String>,
    pub claims: Vec<Claim>,
    pub run: RunSection,
    /// Labels of the classes of jobs, where there are several.
    #[serde(skip)]
    pub classes: BTreeSet<String>,
    /// Warnings for the user before the run.
    pub warnings: Vec<String>,
    /// `--set` texts that change the experiment of the file; those that only choose values of a sweep do not.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<String>,
    #[serde(skip)]
    pub(super) overrides: Overrides,
    /// Every file that was read for it.
    #[serde(skip)]
    pub(super) files: Files,
    /// The offered load of each cell, once it has been asked for.
    #[serde(skip)]
    pub(super) loads: OnceLock<Vec<CellLoad>>,
}

/// A cell with its offered load, if that is known.
pub type CellLoad = (Cell, Option<Load>);

/// Changes made on the command line to an experiment file.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Overrides {
    /// `--set key=value`, in order.
    #[serde(deserialize_with = "few")]
    pub set: Vec<String>,
    /// `--policy LABEL`: run only these policies; all if empty.
    #[serde(deserialize_with = "few")]
    pub policies: Vec<String>,
    /// `--seed N`.
    pub seed: Option<u64>,
    /// `--repeat N`.
    #[serde(serialize_with = "to_text", deserialize_with = "of_text")]
    pub repeat: Option<Repeat>,
    /// `--runtime`.
    pub runtime: Option<RuntimeKind>,
}

/// One run: a point under one seed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Run {
    /// Index into [`Experiment::points`].
    pub point: usize,
    /// Number of the replication, from 0.
    pub replication: u32,
    pub seed: u64,
    /// Hash of everything the result depends on, 16 hex digits.
    pub id: String,
}

impl Experiment {
    /// The folder that paths in the file are relative to.
    pub fn folder(&self) -> &Path {
        self.file.parent().unwrap_or_else(|| Path::new(""))
    }

    /// The traces that it was planned with.
    pub fn traces(&self) -> Traces {
        Traces::beside(&self.files, self.folder())
    }

    /// Every file that was read for it, with checksums.
    pub fn files_read(&self) -> Vec<FileSum> {
        self.files.sums()
    }

    /// The number of replications that are certainly needed: all, or with `"auto"` the initial ones.
    pub const fn replications(&self) -> u32 {
        match self.repeat {
            Repeat::Times(times) => times,
            Repeat::Auto => FIRST_REPLICATIONS,
        }
    }

    /// Replication number `replication` of a point.
    pub fn run_of(&self, point: usize, replication: u32) -> Run {
        let seed = self.seed.wrapping_add(u64::from(replication));
        Run { point, replication, seed, id: id_under(&self.points[point], seed, &self.run) }
    }

    /// The first [`Self::replications`] of every point, in the order of points; the replication varies fastest. With a
    /// slice, every N-th of them.
    pub fn runs(&self, slice: Option<SweepSlice>) -> Vec<Run> {
        let all = (0..self.points.len()).flat_map(|point| (0..self.replications()).map(move |r| (point, r)));
        let (skip, step) = slice.map_or((0, 1), |s| (s.index as usize - 1, s.of as usize));
        all.skip(skip).step_by(step).map(|(point, replication)| self.run_of(point, replication)).collect()
    }

    /// The distinct cells, in order.
    pub fn cells(&self) -> Vec<Cell> {
        // Points of a cell are adjacent.
        self.points.chunk_by(|a, b| a.cell == b.cell).map(|points| points[0].cell.clone()).collect()
    }

    /// Labels of the policies that run, in order.
    pub fn labels(&self) -> Vec<&str> {
        let first = self.points.chunk_by(|a, b| a.cell == b.cell).next().unwrap_or_default();
        first.iter().map(|point| point.label.as_str()).collect()
    }

    /// The offered load of every cell.
    pub fn loads(&self) -> &[CellLoad] {
        self.loads.get_or_init(|| {
            let traces = self.traces();
            let of = |point: &Point| (point.cell.clone(), load(&point.resolved, self.seed, &traces));
            self.points.chunk_by(|a, b| a.cell == b.cell).map(|points| of(&points[0])).collect()
        })
    }

    /// Judges the experiment's claims on results.
    pub fn judge(&self, summaries: &[Summary]) -> Vec<ClaimResult> {
        let stand_ins = self.points.iter().filter(|point| point.resolved.has_stand_in());
        let stand_ins: Vec<Cell> = stand_ins.map(|point| point.cell.clone()).collect();
        claims::judge(&self.claims, &self.cells(), &stand_ins, summaries)
    }
}
