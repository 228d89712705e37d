//! A key of a scenario that cannot be used.

/// What is wrong with a key, and what to write instead. The file and the line are for the caller to add.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("`{}`: {message}; {help}", key.join("."))]
pub struct KeyError {
    /// Where the key is: names of tables, numbers of array elements, then its own name.
    pub key: Vec<String>,
    /// What is wrong.
    pub message: String,
    /// What to do.
    pub help: String,
}

impl KeyError {
    pub(super) fn new(key: &[&str], message: impl Into<String>, help: impl Into<String>) -> Self {
        let key = key.iter().map(|part| (*part).to_owned()).collect();
        Self { key, message: message.into(), help: help.into() }
    }
}
