//! Errors of a whole run, and of one unit of it.

use crate::cluster::HostsError;
use crate::config::ConfigError;
use crate::results::Measured;
use crate::storage;
use crate::storage::input_log;
use volary_engine::world::EngineError;

/// Why a run could not begin, or its results not be kept.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The options ask for something this build cannot do.
    #[error("{0}")]
    Unsupported(String),
    /// The hosts cannot be used, so nothing was run.
    #[error(transparent)]
    Hosts(#[from] HostsError),
    /// The run directory cannot be taken, so nothing was run.
    #[error(transparent)]
    Folder(storage::Error),
    /// The run directory cannot be read or written any more.
    #[error(transparent)]
    RunDir(#[from] storage::Error),
    /// The experiment's files cannot be kept with the log of inputs.
    #[error(transparent)]
    Bundle(ConfigError),
    /// The log of inputs cannot be written.
    #[error(transparent)]
    Inputs(#[from] input_log::Error),
}

/// Why a run of one point has no result.
#[derive(Debug, thiserror::Error)]
pub enum UnitError {
    /// It was told to stop.
    #[error("interrupted")]
    Interrupted,
    /// The experiment cannot be run with this seed, or not here.
    #[error("{0}")]
    Refused(String),
    /// It began and could not go on.
    #[error("{why}")]
    Broken {
        /// What happened.
        why: String,
        /// What had been measured by then.
        measured: Box<Measured>,
    },
}

impl From<EngineError> for UnitError {
    fn from(error: EngineError) -> Self {
        match error {
            EngineError::Interrupted => Self::Interrupted,
            EngineError::Refused(why) => Self::Refused(why),
        }
    }
}
