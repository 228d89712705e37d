//! Errors of a whole run.

use crate::hosts::HostsError;
use volary_experiment::config::ConfigError;
use volary_experiment::storage;
use volary_experiment::storage::input_log;

/// Why a run could not start, or its results not be stored.
#[derive(Debug, thiserror::Error)]
pub enum StudyError {
    /// The options and the experiment do not fit together.
    #[error("{0}")]
    Unsupported(String),
    /// The hosts cannot be used; nothing was run.
    #[error(transparent)]
    Hosts(#[from] HostsError),
    /// The study directory cannot be created or opened; nothing was run.
    #[error(transparent)]
    Folder(storage::Error),
    /// The study directory can no longer be read or written.
    #[error(transparent)]
    StudyDir(#[from] storage::Error),
    /// The experiment's files cannot be stored with the log of inputs.
    #[error(transparent)]
    Bundle(ConfigError),
    /// The log of inputs cannot be written.
    #[error(transparent)]
    Inputs(#[from] input_log::Error),
}
