//! Errors in the configuration of a network, a fault schedule or a topology.

/// A configuration that parses but is invalid. The caller adds the name of the file.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{key}: {problem}; {remedy}")]
pub struct Error {
    /// Dotted key, as in the file.
    pub key: String,
    /// Description of the error.
    pub problem: String,
    /// Remedy for the error.
    pub remedy: String,
}

impl Error {
    /// An error at a key, with its remedy.
    pub(crate) fn at(key: impl Into<String>, problem: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { key: key.into(), problem: problem.into(), remedy: remedy.into() }
    }

    /// An error about a target or name that does not exist, with the known names as remedy.
    pub(crate) fn unknown(key: &str, target: impl std::fmt::Display, known: String) -> Self {
        Self::at(key, format!("`{target}` names nothing here"), known)
    }

    /// The same error with its key below `prefix`.
    pub fn below(self, prefix: &str) -> Self {
        Self { key: format!("{prefix}.{}", self.key), ..self }
    }
}
