//! An error in a key of a scenario.

/// An error in a key, with the remedy. The caller adds the file and the line.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("`{}`: {message}; {help}", key.join("."))]
pub struct KeyError {
    /// Path of the key: names of tables, indices of array elements, then its own name.
    pub key: Vec<String>,
    /// The error.
    pub message: String,
    /// The remedy.
    pub help: String,
}

impl KeyError {
    pub(super) fn new(key: &[&str], message: impl Into<String>, help: impl Into<String>) -> Self {
        let key = key.iter().map(|part| (*part).to_owned()).collect();
        Self { key, message: message.into(), help: help.into() }
    }
}
