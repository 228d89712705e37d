//! Errors in the configuration of a network, a fault schedule or a topology.

/// A configuration that parses but cannot be meant. Names the key, what is wrong and what to do; the caller
/// adds the file.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Error {
    /// A value, or a combination of values, that makes no sense.
    #[error("{key}: {problem}; {remedy}")]
    Invalid {
        /// Dotted key, as in the file.
        key: String,
        /// What is wrong.
        problem: String,
        /// What to do about it.
        remedy: String,
    },
    /// A target that names nothing.
    #[error("{key}: `{target}` names nothing here; {known}")]
    Unknown {
        /// Dotted key, as in the file.
        key: String,
        /// What was written.
        target: String,
        /// What could have been written.
        known: String,
    },
}

impl Error {
    /// Something wrong at a key, and its remedy.
    pub(crate) fn at(key: impl Into<String>, problem: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::Invalid { key: key.into(), problem: problem.into(), remedy: remedy.into() }
    }

    /// The dotted key that it is about.
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
