//! Errors of a whole run, and of one unit of it.

use crate::cluster::HostsError;
use crate::config::ConfigError;
use crate::storage;
use crate::storage::input_log;
use volary_engine::results::Measured;
use volary_engine::world::EngineError;

/// Why a run could not start, or its results not be stored.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The options and the experiment do not fit together.
    #[error("{0}")]
    Unsupported(String),
    /// The hosts cannot be used; nothing was run.
    #[error(transparent)]
    Hosts(#[from] HostsError),
    /// The run directory cannot be created or opened; nothing was run.
    #[error(transparent)]
    Folder(storage::Error),
    /// The run directory can no longer be read or written.
    #[error(transparent)]
    RunDir(#[from] storage::Error),
    /// The experiment's files cannot be stored with the log of inputs.
    #[error(transparent)]
    Bundle(ConfigError),
    /// The log of inputs cannot be written.
    #[error(transparent)]
    Inputs(#[from] input_log::Error),
}

/// Why a run of one point has no result.
#[derive(Debug, thiserror::Error)]
pub enum UnitError {
    /// It was stopped.
    #[error("interrupted")]
    Interrupted,
    /// The experiment cannot be run with this seed or on this machine.
    #[error("{0}")]
    Refused(String),
    /// It started and could not continue.
    #[error("{why}")]
    Broken {
        why: String,
        /// Measured by then.
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
