//! Makes the identities of a run: its own authority, one certificate per host, one for the controller.
//!
//! ```text
//! DIR/ca.pem  hosts.toml  ca-key.pem (only where the authority is kept)
//! DIR/controller/  DIR/<name>/   each with ca.pem, cert.pem, key.pem
//! ```

use std::fs;
use std::io::Write;
use std::net::SocketAddr;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose, PKCS_ED25519, date_time_ymd,
};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use x509_parser::prelude::{FromDer, X509Certificate};

use super::hosts::{Host, Hosts};
use super::identity::{CONTROLLER, IdentityError, Role, Subject, bad, check_name, io_error};

/// What identities to make.
#[derive(Clone, Debug)]
pub struct Request {
    /// Hosts and where their agents listen.
    pub hosts: Vec<(String, SocketAddr)>,
    /// For how many days they are valid.
    pub days: u32,
    /// Whether the authority's key is kept, so that hosts can be added later.
    pub keep_ca: bool,
    /// From when on, less an hour for clocks that are behind.
    pub now: SystemTime,
}

/// What was made.
#[derive(Clone, Debug)]
pub struct Issued {
    /// The folders of identities made, the controller's among them unless it was there.
    pub folders: Vec<PathBuf>,
    /// Until when they are valid.
    pub until: SystemTime,
    /// The hosts file.
    pub hosts: PathBuf,
}

const CA_CERT: &str = "ca.pem";
const CA_KEY: &str = "ca-key.pem";
const HOSTS: &str = "hosts.toml";
/// How far the clocks of hosts may be behind ours.
const SKEW: Duration = Duration::from_secs(3600);

/// Makes the identities of `request` in `folder`: a new one, or one whose authority was kept.
pub fn issue(folder: &Path, request: &Request) -> Result<Issued, IdentityError> {
    request.check()?;
    let kept = folder.join(CA_KEY).exists();
    if kept { extend(folder, request) } else { found(folder, request) }
}

impl Request {
    fn check(&self) -> Result<(), IdentityError> {
        if self.hosts.is_empty() {
            return Err(IdentityError::Request("no host: name each as --host NAME=ADDRESS:PORT".to_owned()));
        }
        if !(1..=3650).contains(&self.days) {
            return Err(IdentityError::Request("--days must be 1 to 3650".to_owned()));
        }
        for (name, _) in &self.hosts {
            check_name(name, Role::Host).map_err(IdentityError::Request)?;
        }
        Ok(())
    }

    fn until(&self) -> SystemTime {
        self.now + Duration::from_secs(u64::from(self.days) * 86_400)
    }

    fn hosts(&self) -> Vec<Host> {
        self.hosts.iter().map(|(name, address)| Host::new(name.clone(), *address)).collect()
    }
}

/// A new authority and everyone.
fn found(folder: &Path, request: &Request) -> Result<Issued, IdentityError> {
    let used = fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some());
    if used {
        let remedy = "name a new folder; hosts can only be added where --keep-ca kept the authority";
        return Err(IdentityError::Exists { path: folder.to_owned(), remedy });
    }
    let hosts = Hosts { identities: ".".into(), hosts: request.hosts() };
    hosts.check().map_err(IdentityError::Request)?;
    let until = request.until();
    let key = KeyPair::generate_for(&PKCS_ED25519).map_err(|error| bad(folder, error))?;
    let params = authority(&authority_name(&key), request.now, until);
    let ca = params.self_signed(&key).map_err(|error| bad(folder, error))?.pem();
    let key_pem = key.serialize_pem();
    let issuer = Issuer::new(params, key);
    make_folder(folder)?;
    write_new(&folder.join(CA_CERT), &ca, 0o644)?;
    let mut folders = vec![member(folder, CONTROLLER, Role::Controller, &issuer, &ca, (request.now, until))?];
    for (name, _) in &request.hosts {
        folders.push(member(folder, name, Role::Host, &issuer, &ca, (request.now, until))?);
    }
    let path = folder.join(HOSTS);
    write_new(&path, &hosts.text(), 0o644)?;
    if request.keep_ca {
        write_new(&folder.join(CA_KEY), &key_pem, 0o600)?;
    }
    Ok(Issued { folders, until, hosts: path })
}

/// More hosts by an authority that was kept.
fn extend(folder: &Path, request: &Request) -> Result<Issued, IdentityError> {
    let path = folder.join(HOSTS);
    let mut hosts = Hosts::load(&path).map_err(|error| IdentityError::Request(error.to_string()))?;
    for (name, _) in &request.hosts {
        let path = folder.join(name);
        if path.exists() {
            return Err(IdentityError::Exists { path, remedy: "name only new hosts, or make a new folder" });
        }
    }
    let added = Hosts { identities: ".".into(), hosts: request.hosts() }.text();
    hosts.hosts.extend(request.hosts());
    hosts.check().map_err(IdentityError::Request)?;
    let ca_path = folder.join(CA_CERT);
    let ca = fs::read_to_string(&ca_path).map_err(io_error(&ca_path))?;
    let (name, limit) = authority_of(&ca).map_err(|why| bad(&ca_path, why))?;
    let key_path = folder.join(CA_KEY);
    let key = fs::read_to_string(&key_path).map_err(io_error(&key_path))?;
    let key = KeyPair::from_pem(&key).map_err(|error| bad(&key_path, error))?;
    let until = request.until().min(limit);
    let issuer = Issuer::new(authority(&name, request.now, limit), key);
    let mut folders = Vec::new();
    for (name, _) in &request.hosts {
        folders.push(member(folder, name, Role::Host, &issuer, &ca, (request.now, until))?);
    }
    let mut file = fs::OpenOptions::new().append(true).open(&path).map_err(io_error(&path))?;
    file.write_all(format!("\n{added}").as_bytes()).map_err(io_error(&path))?;
    Ok(Issued { folders, until, hosts: path })
}

/// No two authorities have one name, so that a stranger's certificate is told from a damaged one.
fn authority_name(key: &KeyPair) -> String {
    let id: String = key.public_key_raw().iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    format!("volary run {id}")
}

/// What the authority's certificate says.
fn authority(name: &str, now: SystemTime, until: SystemTime) -> CertificateParams {
    let mut params = validity(CertificateParams::default(), now, until);
    params.distinguished_name = called(name);
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    params
}

/// Name and end of an authority that was written before.
fn authority_of(pem: &str) -> Result<(String, SystemTime), String> {
    let der = CertificateDer::from_pem_slice(pem.as_bytes()).map_err(|error| error.to_string())?;
    let (_, parsed) = X509Certificate::from_der(&der).map_err(|error| error.to_string())?;
    let name = parsed.subject().iter_common_name().next().and_then(|name| name.as_str().ok());
    let name = name.ok_or("the authority has no name")?.to_owned();
    let until = parsed.validity().not_after.timestamp().max(0).unsigned_abs();
    Ok((name, SystemTime::UNIX_EPOCH + Duration::from_secs(until)))
}

/// One identity's folder.
fn member(
    folder: &Path,
    name: &str,
    role: Role,
    issuer: &Issuer<'_, KeyPair>,
    ca: &str,
    (now, until): (SystemTime, SystemTime),
) -> Result<PathBuf, IdentityError> {
    let folder = folder.join(name);
    let wrong = |error: rcgen::Error| bad(&folder, error);
    let subject = Subject { name: name.to_owned(), role, from: now, until };
    let key = KeyPair::generate_for(&PKCS_ED25519).map_err(wrong)?;
    let params = CertificateParams::new(vec![subject.dns().to_owned()]).map_err(wrong)?;
    let mut params = validity(params, now, until);
    params.distinguished_name = called(name);
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    // Every host is asked and asks.
    params.extended_key_usages =
        vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
    params.use_authority_key_identifier_extension = true;
    let certificate = params.signed_by(&key, issuer).map_err(wrong)?;
    make_folder(&folder)?;
    write_new(&folder.join(CA_CERT), ca, 0o644)?;
    write_new(&folder.join("cert.pem"), &certificate.pem(), 0o644)?;
    write_new(&folder.join("key.pem"), &key.serialize_pem(), 0o600)?;
    Ok(folder)
}

fn called(name: &str) -> DistinguishedName {
    let mut called = DistinguishedName::new();
    called.push(DnType::CommonName, name);
    called
}

fn validity(mut params: CertificateParams, now: SystemTime, until: SystemTime) -> CertificateParams {
    let epoch = date_time_ymd(1970, 1, 1);
    let since = |at: SystemTime| {
        let seconds = at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
        epoch + Duration::from_secs(seconds)
    };
    params.not_before = since(now.checked_sub(SKEW).unwrap_or(now));
    params.not_after = since(until);
    params
}

/// A folder only its owner sees; one that was there, and empty, becomes such.
fn make_folder(path: &Path) -> Result<(), IdentityError> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(io_error(path))?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o700)).map_err(io_error(path))
}

fn write_new(path: &Path, text: &str, mode: u32) -> Result<(), IdentityError> {
    let mut file =
        fs::OpenOptions::new().write(true).create_new(true).mode(mode).open(path).map_err(io_error(path))?;
    file.write_all(text.as_bytes()).map_err(io_error(path))
}

#[cfg(test)]
mod tests;
