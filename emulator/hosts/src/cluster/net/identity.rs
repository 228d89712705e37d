//! The identity of a machine: a certificate of the run's own authority, and its key.
//!
//! The only DNS name in a certificate is the host's name; the controller's is [`CONTROLLER_NAME`], which no host
//! can have. A folder holds `ca.pem`, `cert.pem` and `key.pem`, as [`issue`](super::issue) writes them.

use std::fmt;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use chrono::{DateTime, Utc};
use rustls::RootCertStore;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::sign::CertifiedKey;
use serde::{Deserialize, Serialize};
use thiserror::Error;
use volary_experiment::number::plural;
use x509_parser::prelude::{FromDer, GeneralName, X509Certificate};

/// The DNS name in the controller's certificate.
pub const CONTROLLER_NAME: &str = "controller.volary";
/// Remaining validity of a certificate below which a warning is logged.
const WARNING: Duration = Duration::from_secs(7 * 86_400);
/// The controller's name and folder.
pub const CONTROLLER: &str = "controller";

/// The part that the holder of an identity plays in a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Role {
    /// Starts runs and records them.
    Controller,
    /// Runs an agent.
    Host,
}

/// Certificate, key and authority of one machine.
#[derive(Debug)]
pub struct Identity {
    pub subject: Subject,
    pub(super) chain: Vec<CertificateDer<'static>>,
    pub(super) key: PrivateKeyDer<'static>,
    pub(super) roots: Arc<RootCertStore>,
}

/// The holder of a certificate, and its validity.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Subject {
    /// Name of the host, `controller` for the controller.
    pub name: String,
    pub role: Role,
    pub from: SystemTime,
    pub until: SystemTime,
}

/// The reason why an identity or a hosts file cannot be used or made, with the path and the remedy.
#[derive(Debug, Error)]
#[error("{text}")]
pub struct FileError {
    text: String,
    source: Option<io::Error>,
}

impl FileError {
    pub(super) fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), source: None }
    }
}

impl Identity {
    /// Loads the identity in `folder` and verifies it as peers will at time `now`.
    pub fn load(folder: &Path, now: SystemTime) -> Result<Self, FileError> {
        let key_path = folder.join("key.pem");
        let key = read(&key_path)?;
        let mode = fs::metadata(&key_path).map_err(io_error(&key_path))?.permissions().mode() & 0o777;
        if mode & 0o077 != 0 {
            let why = "lets others use this key: chmod 600 it, or issue new ones if others have read it";
            return Err(bad(&key_path, format!("mode {mode:04o} {why}")));
        }
        let key = PrivateKeyDer::from_pem_slice(&key)
            .map_err(|e| bad(&key_path, format!("the file has no key ({e}): copy the folder again")))?;
        let cert_path = folder.join("cert.pem");
        let chain = certificates(&cert_path)?;
        let ca_path = folder.join(CA_CERT);
        let mut roots = RootCertStore::empty();
        for root in certificates(&ca_path)? {
            roots.add(root).map_err(|error| bad(&ca_path, error))?;
        }
        let roots = Arc::new(roots);
        let leaf = chain.first().ok_or_else(|| bad(&cert_path, "the file has no certificate"))?;
        let subject = Subject::of(leaf).map_err(|why| bad(&cert_path, why))?;
        if now < subject.from {
            let from = written(subject.from);
            return Err(bad(
                &cert_path,
                format!("the certificate is valid from {from} UTC on: is this machine's clock right?"),
            ));
        }
        if now > subject.until {
            let since = written(subject.until);
            return Err(bad(
                &cert_path,
                format!("the certificate expired on {since} UTC: issue new identities with `volary certs`"),
            ));
        }
        verify(leaf, &roots, now).map_err(|error| {
            bad(
                &cert_path,
                format!(
                    "the certificate is not of the authority in {} ({error}): copy the whole folder",
                    ca_path.display()
                ),
            )
        })?;
        CertifiedKey::from_der(chain.clone(), key.clone_key(), &provider()).map_err(|error| {
            bad(
                &key_path,
                format!("the key does not belong to the certificate {} ({error})", cert_path.display()),
            )
        })?;
        Ok(Self { subject, chain, key, roots })
    }

    /// Loads the identity of this role like [`load`](Self::load); refuses an identity of the other role.
    pub fn load_for(role: Role, folder: &Path, now: SystemTime) -> Result<Self, FileError> {
        let identity = Self::load(folder, now)?;
        match (role, identity.subject.role) {
            (Role::Host, Role::Controller) => Err(bad(
                folder,
                "this is the controller's identity: an agent takes the folder of its own host",
            )),
            (Role::Controller, Role::Host) => {
                let whose = &identity.subject.name;
                Err(bad(
                    folder,
                    format!(
                        "this is the identity of host {whose}: copy the folder `{CONTROLLER}` that `volary certs` made"
                    ),
                ))
            }
            _ => {
                identity.subject.warn_of_end(now);
                Ok(identity)
            }
        }
    }
}

impl Subject {
    /// Parses a certificate without verifying it.
    pub(super) fn of(certificate: &CertificateDer<'_>) -> Result<Self, String> {
        let (_, parsed) = X509Certificate::from_der(certificate).map_err(|error| error.to_string())?;
        let names = parsed.subject_alternative_name().map_err(|error| error.to_string())?;
        let Some([GeneralName::DNSName(name)]) = names.map(|names| &names.value.general_names[..]) else {
            return Err("it must name exactly one host".to_owned());
        };
        let (name, role) = match *name {
            CONTROLLER_NAME => (CONTROLLER, Role::Controller),
            name => (name, Role::Host),
        };
        check_name(name, role)?;
        let at = |stamp: i64| SystemTime::UNIX_EPOCH + Duration::from_secs(stamp.max(0).unsigned_abs());
        let validity = parsed.validity();
        let (from, until) = (at(validity.not_before.timestamp()), at(validity.not_after.timestamp()));
        Ok(Self { name: name.to_owned(), role, from, until })
    }

    /// Logs a warning if the certificate ends within a week of `now`.
    pub(crate) fn warn_of_end(&self, now: SystemTime) {
        if let Some(warning) = self.warning(now) {
            tracing::warn!("{warning}");
        }
    }

    pub(crate) fn warning(&self, now: SystemTime) -> Option<String> {
        if self.until > now + WARNING {
            return None;
        }
        let hours = self.until.duration_since(now).unwrap_or_default().as_secs() / 3600;
        let left = if hours < 48 { plural(hours, "hour") } else { plural(hours / 24, "day") };
        Some(format!(
            "the identity of {} ends on {} UTC, in {left}; then no run on hosts can begin or go on: issue new ones \
             with `volary certs`",
            self.name,
            written(self.until)
        ))
    }

    /// The DNS name of this subject's certificate.
    pub(super) fn dns(&self) -> &str {
        match self.role {
            Role::Controller => CONTROLLER_NAME,
            Role::Host => &self.name,
        }
    }
}

/// Files in the folder of identities. A host's folder has the name of the host, which must differ from these names.
const FILES: [&str; 3] = [CA_CERT, CA_KEY, HOSTS];

/// The certificate and the key of the authority.
pub(super) const CA_CERT: &str = "ca.pem";
pub(super) const CA_KEY: &str = "ca-key.pem";
/// The hosts file.
pub(crate) const HOSTS: &str = "hosts.toml";

/// Checks a name. Host names are lower-case DNS names that are also names of folders; the controller's is reserved.
pub(super) fn check_name(name: &str, role: Role) -> Result<(), String> {
    let label = |label: &str| {
        let ends = !label.starts_with('-') && !label.ends_with('-');
        let letters = label.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
        (1..=63).contains(&label.len()) && ends && letters
    };
    // A name that ends in a number would be parsed as an IP address.
    let number = name.rsplit('.').next().is_some_and(|last| last.bytes().all(|b| b.is_ascii_digit()));
    if name.len() > 253 || number || !name.split('.').all(label) {
        return Err(format!(
            "`{name}` is not a host name: use small letters, digits, `-` and `.`, at most 63 characters between dots, such as h1"
        ));
    }
    if FILES.contains(&name) {
        return Err(format!(
            "`{name}` is a file in the folder of identities: choose another name for the host"
        ));
    }
    let reserved = name == CONTROLLER || name.ends_with(".volary");
    if role == Role::Host && reserved {
        return Err(format!("`{name}` is the controller's: choose another name for the host"));
    }
    Ok(())
}

/// The cryptography of TLS, on both sides.
pub(super) fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

/// Verifies a certificate with the verifier that peers use.
fn verify(leaf: &CertificateDer<'_>, roots: &Arc<RootCertStore>, now: SystemTime) -> Result<(), String> {
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::clone(roots), provider())
        .build()
        .map_err(|error| error.to_string())?;
    let now = UnixTime::since_unix_epoch(now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default());
    verifier.verify_client_cert(leaf, &[], now).map(|_| ()).map_err(|error| error.to_string())
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, FileError> {
    let pem = read(path)?;
    CertificateDer::pem_slice_iter(&pem)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| bad(path, format!("the file has no certificate ({error}): copy the folder again")))
}

fn read(path: &Path) -> Result<Vec<u8>, FileError> {
    fs::read(path).map_err(|error| {
        if error.kind() == io::ErrorKind::NotFound {
            let remedy =
                "make identities with `volary certs DIR --host NAME=ADDR` and copy DIR/NAME to its host; keep the hosts file in DIR, \
                 or write identities = \"DIR\" in it";
            FileError::new(format!("no {}: {remedy}", path.display()))
        } else {
            bad(path, error)
        }
    })
}

pub(super) fn io_error(path: &Path) -> impl FnOnce(io::Error) -> FileError {
    move |error| FileError { text: format!("{}: {error}", path.display()), source: Some(error) }
}

pub(super) fn bad(path: &Path, why: impl fmt::Display) -> FileError {
    FileError::new(format!("{}: {why}", path.display()))
}

/// Formats a time to the minute, UTC.
pub fn written(at: SystemTime) -> String {
    DateTime::<Utc>::from(at).format("%Y-%m-%d %H:%M").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_that_ends_within_a_week_gives_a_warning() {
        let (now, day) =
            (SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000), Duration::from_secs(86_400));
        let subject = |days: u32| Subject {
            name: "h1".to_owned(),
            role: Role::Host,
            from: now - day,
            until: now + days * day + Duration::from_secs(60),
        };
        assert_eq!(subject(8).warning(now), None);
        let soon = subject(3).warning(now).unwrap();
        assert!(soon.contains("the identity of h1 ends on 2027-01-18 08:01 UTC, in 3 days;"), "{soon}");
        assert!(subject(1).warning(now).unwrap().contains("in 24 hours;"));
    }
}
