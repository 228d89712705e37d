//! An experiment with every file it names, for a machine that has none of them.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::error::ConfigError;
use super::experiment::{Experiment, Overrides};
use crate::files::{Files, Pack};

/// Everything that planning an experiment depends on. It may come from anywhere: what plans it opens no file.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Bundle {
    /// The experiment file, as it was named; its text is in `files`.
    pub experiment: PathBuf,
    /// What the command line changed.
    pub overrides: Overrides,
    /// The experiment file, profiles, topologies, values of laws, bursts and workload traces. A file that is
    /// not here does not exist for whoever plans the bundle, so that a trace which was missing stays missing.
    pub files: Pack,
}

impl Experiment {
    /// Packs the experiment as it was planned.
    ///
    /// # Errors
    /// When a trace cannot be read any more, a name is not UTF-8, or the files exceed
    /// [`LARGEST_PACK`](crate::files::LARGEST_PACK).
    pub fn bundle(&self) -> Result<Bundle, ConfigError> {
        let files = self.files.pack().map_err(|(path, why)| ConfigError::Read {
            path,
            why,
            help: "a run on other machines takes all files of the experiment along".into(),
        })?;
        Ok(Bundle { experiment: self.file.clone(), overrides: self.overrides.clone(), files })
    }

    /// Plans what was packed: the same points, ids and jobs as where it was packed.
    ///
    /// # Errors
    /// As [`Experiment::load`]; a file that was not packed cannot be read.
    pub fn from_bundle(bundle: &Bundle) -> Result<Self, ConfigError> {
        Self::load_from(Files::of_pack(bundle.files.clone()), &bundle.experiment, &bundle.overrides)
    }
}
