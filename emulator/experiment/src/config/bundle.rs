//! An experiment with every file it names, for a machine that has none of them.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::error::ConfigError;
use super::experiment::{Experiment, Overrides};
use crate::files::{Files, Pack};

/// Everything that planning an experiment depends on. Its origin is not trusted: planning it opens no file.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Bundle {
    /// The experiment file's name; its text is in `files`.
    pub experiment: PathBuf,
    /// The changes made on the command line.
    pub overrides: Overrides,
    /// The experiment file, profiles, topologies, values of distributions, bursts and workload traces. When the bundle
    /// is planned, other files do not exist, so a trace that was missing stays missing.
    pub files: Pack,
}

impl Experiment {
    /// Packs the experiment as it was planned.
    ///
    /// # Errors
    /// When a trace can no longer be read, a name is not UTF-8, or the files exceed
    /// [`LARGEST_PACK`](crate::files::LARGEST_PACK).
    pub fn bundle(&self) -> Result<Bundle, ConfigError> {
        let files = self.files.pack().map_err(|(path, why)| ConfigError::Read {
            path,
            why,
            help: "a run on other machines needs all files of the experiment".into(),
        })?;
        Ok(Bundle { experiment: self.file.clone(), overrides: self.overrides.clone(), files })
    }

    /// Plans a bundle. Points, ids and jobs are the same as where it was packed.
    ///
    /// # Errors
    /// As [`Experiment::load`]; a file that was not packed cannot be read.
    pub fn from_bundle(bundle: &Bundle) -> Result<Self, ConfigError> {
        Self::load_from(Files::of_pack(bundle.files.clone()), &bundle.experiment, &bundle.overrides)
    }
}
