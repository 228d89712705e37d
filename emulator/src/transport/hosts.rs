//! The hosts file: who takes part in runs, and where.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::Error;

/// Name of the identity of whoever starts runs.
pub const CONTROLLER: &str = "controller";

/// A hosts file, as `volary certs` writes it.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostsFile {
    /// The hosts, in order of shards.
    #[serde(rename = "host")]
    pub hosts: Vec<Host>,
    /// The folder of identities, relative to the file.
    #[serde(default)]
    identities: PathBuf,
}

/// One host.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Host {
    /// Its name, as in its certificate.
    pub name: String,
    /// Where its agent listens.
    pub address: SocketAddr,
    /// Its share of nodes and schedulers, relative to the others'.
    #[serde(default = "one")]
    pub weight: f64,
}

const fn one() -> f64 {
    1.0
}

impl HostsFile {
    /// Reads a hosts file.
    ///
    /// # Errors
    /// Names the file, and the key or line that is wrong.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let text =
            fs::read_to_string(path).map_err(|source| Error::File { path: path.to_owned(), source })?;
        let wrong = |why: String| Error::Content { path: path.to_owned(), why };
        let mut file: Self = toml::from_str(&text).map_err(|error| wrong(error.to_string()))?;
        for (i, host) in file.hosts.iter().enumerate() {
            if !(host.weight.is_finite() && host.weight >= 0.0) {
                return Err(wrong(format!(
                    "host {}: weight must be zero or more, not {}",
                    host.name, host.weight
                )));
            }
            if file.hosts[..i].iter().any(|other| other.name == host.name || other.address == host.address) {
                return Err(wrong(format!("host {} is there twice, by name or address", host.name)));
            }
        }
        if !file.hosts.iter().any(|host| host.weight > 0.0) {
            return Err(wrong(
                "no host has a weight above zero: add a [[host]] with name and address".to_owned(),
            ));
        }
        file.identities = path.parent().unwrap_or_else(|| Path::new("")).join(&file.identities);
        Ok(file)
    }

    /// The folder of the controller's identity.
    #[must_use]
    pub fn controller(&self) -> PathBuf {
        self.identities.join(CONTROLLER)
    }
}
