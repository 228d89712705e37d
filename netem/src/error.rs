//! Errors in the configuration of a network, a fault schedule or a topology.

/// A configuration that parses but is invalid. It names the key, the problem and a remedy; the caller adds the file.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Error {
    /// An invalid value or combination of values.
    #[error("{key}: {problem}; {remedy}")]
    Invalid {
        /// Dotted key, as in the file.
        key: String,
        /// What is wrong.
        problem: String,
        /// What to do about it.
        remedy: String,
    },
    /// A target that matches nothing.
    #[error("{key}: `{target}` names nothing here; {known}")]
    Unknown {
        /// Dotted key, as in the file.
        key: String,
        /// The target, as written.
        target: String,
        /// The valid targets.
        known: String,
    },
}

impl Error {
    /// An error at a key, with its remedy.
    pub(crate) fn at(key: impl Into<String>, problem: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::Invalid { key: key.into(), problem: problem.into(), remedy: remedy.into() }
    }

    /// The dotted key of the error.
    #[must_use]
    pub fn key(&self) -> &str {
        match self {
            Self::Invalid { key, .. } | Self::Unknown { key, .. } => key,
        }
    }

    /// The same error, its key below `prefix`.
    #[must_use]
    pub fn below(self, prefix: &str) -> Self {
        match self {
            Self::Invalid { key, problem, remedy } => {
                Self::Invalid { key: format!("{prefix}.{key}"), problem, remedy }
            }
            Self::Unknown { key, target, known } => {
                Self::Unknown { key: format!("{prefix}.{key}"), target, known }
            }
        }
    }
}
