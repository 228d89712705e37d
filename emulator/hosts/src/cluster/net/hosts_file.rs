//! The hosts file: the machines that a run may use, and the addresses of their agents.
//!
//! ```toml
//! identities = "."             # folder with one identity per host, relative to this file; this is the default
//! [[host]]
//! name = "h1"
//! address = "10.77.0.2:4433"
//! weight = 2                   # share of the nodes, relative to the other hosts; default 1
//! ```

use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};

use super::identity::{CONTROLLER, FileError, Role, check_name};

/// The contents of a hosts file.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hosts {
    /// Folder of the identities; after loading, relative to the working directory.
    #[serde(default = "here")]
    pub identities: PathBuf,
    /// The hosts, in the file's order.
    #[serde(rename = "host")]
    pub hosts: Vec<Host>,
}

/// One machine that a run may use.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Host {
    /// Name of the host, as in its certificate.
    pub name: String,
    /// Address of the host's agent.
    #[serde(deserialize_with = "address")]
    pub address: SocketAddr,
    /// Share of the nodes, relative to the other hosts.
    #[serde(default = "one")]
    pub weight: u32,
}

impl Host {
    /// A host of weight 1.
    pub fn new(name: String, address: SocketAddr) -> Self {
        Self { name, address, weight: one() }
    }
}

impl Hosts {
    /// Reads a hosts file.
    pub fn load(path: &Path) -> Result<Self, FileError> {
        let text = fs::read_to_string(path)
            .map_err(|error| FileError::new(format!("cannot read {}: {error}", path.display())))?;
        let bad = |why: String| FileError::new(format!("{}: {}", path.display(), why.trim_end()));
        let mut hosts: Self = toml::from_str(&text).map_err(|error| bad(error.to_string()))?;
        hosts.check().map_err(bad)?;
        hosts.identities = path.with_file_name("").join(&hosts.identities);
        Ok(hosts)
    }

    /// Path of the controller's socket, in the folder of the controller's identity. `path` is that of this hosts file.
    pub fn socket(&self, path: &Path) -> PathBuf {
        let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        // The name has a hash of the file's path (FNV-1a), because several hosts files may share one folder of
        // identities, and because paths of sockets must be short.
        let hash =
            path.as_os_str().as_encoded_bytes().iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
                (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
            });
        self.controller().join(format!("inject-{hash:016x}.sock"))
    }

    /// Folder of the controller's identity.
    pub fn controller(&self) -> PathBuf {
        self.identities.join(CONTROLLER)
    }

    pub(super) fn check(&self) -> Result<(), String> {
        if self.hosts.is_empty() {
            return Err("host: the list is empty; name at least one host".to_owned());
        }
        let (mut names, mut addresses) = (BTreeSet::new(), BTreeSet::new());
        for (i, host) in self.hosts.iter().enumerate() {
            let Host { name, address, weight } = host;
            check_name(name, Role::Host).map_err(|why| format!("host {}: name: {why}", i + 1))?;
            if !names.insert(name) {
                return Err(format!("host {}: name: another host is also called `{name}`", i + 1));
            }
            if address.port() == 0 || address.ip().is_unspecified() || address.ip().is_multicast() {
                return Err(format!("host {name}: address: no host can be reached at {address}"));
            }
            if !addresses.insert(address) {
                return Err(format!("host {name}: address: another host is at {address}"));
            }
            if !(1..=1_000_000).contains(weight) {
                return Err(format!("host {name}: weight: {weight} is not between 1 and 1000000"));
            }
        }
        Ok(())
    }

    /// The local address of a socket that reaches all hosts; an IPv6 socket also reaches IPv4 addresses.
    pub fn local(&self) -> SocketAddr {
        if self.hosts.iter().any(|host| host.address.is_ipv6()) {
            (Ipv6Addr::UNSPECIFIED, 0).into()
        } else {
            (Ipv4Addr::UNSPECIFIED, 0).into()
        }
    }

    /// The hosts in the format of the file.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        for (i, host) in self.hosts.iter().enumerate() {
            let gap = if i == 0 { "" } else { "\n" };
            let _ = write!(text, "{gap}[[host]]\nname = \"{}\"\naddress = \"{}\"\n", host.name, host.address);
        }
        text
    }
}

/// Reads an address; in a hosts file, the error shows how to write one.
fn address<'de, D: Deserializer<'de>>(from: D) -> Result<SocketAddr, D::Error> {
    if !from.is_human_readable() {
        return SocketAddr::deserialize(from);
    }
    let text = String::deserialize(from)?;
    text.parse().map_err(|_| {
        let remedy = "write an IP address and a port, such as \"10.77.0.2:4433\"";
        D::Error::custom(format!("address: `{text}` is not an agent's address; {remedy}"))
    })
}

fn here() -> PathBuf {
    ".".into()
}

fn one() -> u32 {
    1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(text: &str) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lab.toml");
        fs::write(&path, text).unwrap();
        (folder, path)
    }

    #[test]
    fn optional_keys_of_a_hosts_file_have_defaults() {
        let (_folder, path) = file(
            "identities = \"keys\"\n[[host]]\nname = \"h1\"\naddress = \"10.0.0.1:4433\"\n\
             [[host]]\nname = \"h2.lab\"\naddress = \"[fd00::2]:4433\"\nweight = 3\n",
        );
        let hosts = Hosts::load(&path).unwrap();
        assert!(hosts.local().is_ipv6(), "it reaches both");
        let seen: Vec<_> = hosts.hosts.iter().map(|host| (host.name.as_str(), host.weight)).collect();
        assert_eq!(seen, [("h1", 1), ("h2.lab", 3)]);
        assert!(hosts.identities.is_absolute() && hosts.controller().ends_with("keys/controller"));
    }

    #[test]
    fn written_hosts_files_are_read_back_unchanged() {
        let hosts = |at: &str| Host::new("h1".to_owned(), at.parse().unwrap());
        let hosts = Hosts { identities: ".".into(), hosts: vec![hosts("10.0.0.1:1"), hosts("[::1]:2")] };
        let read: Hosts = toml::from_str(&hosts.text()).unwrap();
        assert_eq!(read, hosts);
    }

    #[test]
    fn errors_of_hosts_files_name_file_and_key() {
        let host = "[[host]]\nname = \"h1\"\naddress = \"10.0.0.1:4433\"\n";
        for (text, words) in [
            (String::new(), "missing field `host`"),
            ("host = []".to_owned(), "host: the list is empty"),
            (host.replace("name", "nmae"), "unknown field `nmae`"),
            (host.replace(":4433", ""), "is not an agent's address; write an IP address and a port"),
            (host.replace("10.0.0.1", "0.0.0.0"), "address: no host can be reached"),
            (host.replace("4433", "0"), "address: no host can be reached"),
            (host.replace("h1", "../h1"), "host 1: name: `../h1` is not a host name"),
            (host.replace("h1", "controller"), "is the controller's"),
            (host.replace("h1", "x.volary"), "is the controller's"),
            (host.replace("h1", "10.0.0.1"), "is not a host name"),
            (host.to_owned() + host, "another host is also called `h1`"),
            (host.to_owned() + &host.replace("h1", "h2"), "another host is at 10.0.0.1:4433"),
            (format!("{host}weight = 0"), "weight: 0"),
            (format!("{host}port = 1"), "unknown field `port`"),
        ] {
            let (_folder, path) = file(&text);
            let error = Hosts::load(&path).unwrap_err().to_string();
            assert!(error.contains("lab.toml") && error.contains(words), "{words}\n{error}");
        }
        let error = Hosts::load(Path::new("/nowhere/hosts.toml")).unwrap_err();
        assert!(error.to_string().contains("cannot read /nowhere/hosts.toml"));
    }
}
