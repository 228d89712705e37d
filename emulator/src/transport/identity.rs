//! The run's authority and the identities it signs.
//!
//! `volary certs` makes an authority for one run, an identity for each host and one for the controller, and
//! forgets the authority's key: nobody can join later. A certificate proves a name; what a host may do follows
//! from it.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose,
};
use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::{FromDer, X509Certificate};

use super::Error;
use super::hosts::CONTROLLER;

const CA: &str = "ca.pem";
const CERT: &str = "cert.pem";
const KEY: &str = "key.pem";

/// What a process proves who it is with, and whom it believes.
pub struct Identity {
    name: String,
    pub(super) chain: Vec<CertificateDer<'static>>,
    pub(super) key: PrivateKeyDer<'static>,
    pub(super) roots: Arc<RootCertStore>,
}

impl std::fmt::Debug for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Identity").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Identity {
    /// Reads an identity from its folder.
    ///
    /// # Errors
    /// A file that is missing or no PEM, a key that others may read, a certificate that is not valid now; each
    /// names the file and the remedy.
    pub fn load(folder: &Path) -> Result<Self, Error> {
        let wrong = |file: &str, why: String| Error::Content { path: folder.join(file), why };
        let key = folder.join(KEY);
        let mode = fs::metadata(&key).map_err(missing(&key))?.permissions().mode();
        if mode & 0o077 != 0 {
            return Err(wrong(KEY, format!("others may read this key: chmod 600 {}", key.display())));
        }
        let pem = |file: &str| {
            let path = folder.join(file);
            fs::read(&path).map_err(missing(&path))
        };
        let certificate = |file: &'static str| {
            CertificateDer::from_pem_slice(&pem(file)?)
                .map_err(|error| wrong(file, format!("no certificate: {error}")))
        };
        let own = certificate(CERT)?;
        let (name, from, until) = describe(&own).map_err(|why| wrong(CERT, why))?;
        let now =
            SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs() as i64;
        if now > until {
            let days = (now - until) / 86_400;
            return Err(wrong(CERT, format!("expired {days} days ago: make new ones with volary certs")));
        }
        if now < from {
            return Err(wrong(CERT, "not valid yet: is this machine's clock right?".to_owned()));
        }
        let mut roots = RootCertStore::empty();
        roots.add(certificate(CA)?).map_err(|error| wrong(CA, error.to_string()))?;
        let key = PrivateKeyDer::from_pem_slice(&pem(KEY)?)
            .map_err(|error| wrong(KEY, format!("no key: {error}")))?;
        Ok(Self { name, chain: vec![own], key, roots: Arc::new(roots) })
    }

    /// The name that the certificate proves.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }
}

fn missing(path: &Path) -> impl FnOnce(std::io::Error) -> Error {
    let path = path.to_owned();
    move |error| Error::Content { path, why: format!("{error}: make identities with volary certs") }
}

/// The name in a certificate, and from when until when it is valid, in seconds since 1970.
pub(super) fn describe(certificate: &CertificateDer<'_>) -> Result<(String, i64, i64), String> {
    let (_, parsed) = X509Certificate::from_der(certificate).map_err(|error| error.to_string())?;
    let names = parsed.subject_alternative_name().map_err(|error| error.to_string())?;
    let name = names.and_then(|names| {
        names.value.general_names.iter().find_map(|name| match name {
            GeneralName::DNSName(name) => Some((*name).to_owned()),
            _ => None,
        })
    });
    let name = name.ok_or_else(|| "the certificate has no name".to_owned())?;
    let validity = parsed.validity();
    Ok((name, validity.not_before.timestamp(), validity.not_after.timestamp()))
}

/// Makes an authority, an identity for each of `hosts` (name and address) and one for the controller, valid for
/// so many days, and the hosts file.
///
/// # Errors
/// A folder that exists, a name that cannot be one, a file that cannot be written.
pub fn create(folder: &Path, hosts: &[(String, String)], days: u32, keep_key: bool) -> Result<(), Error> {
    for (name, _) in hosts {
        let fits = name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
        if !fits || name.is_empty() || name.starts_with('-') || name.len() > 63 || name == CONTROLLER {
            let why = format!("\"{name}\" cannot be a host's name: use a-z, 0-9 and -, and not {CONTROLLER}");
            return Err(Error::Content { path: folder.to_owned(), why });
        }
    }
    if folder.exists() {
        let why = "is there already: remove it, or choose another folder".to_owned();
        return Err(Error::Content { path: folder.to_owned(), why });
    }
    let made = |error: rcgen::Error| Error::Content { path: folder.to_owned(), why: error.to_string() };
    private_folder(folder)?;
    let authority_key = KeyPair::generate().map_err(made)?;
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    params.distinguished_name = called("volary run authority");
    valid(&mut params, days);
    let authority = params.self_signed(&authority_key).map_err(made)?.pem();
    write(&folder.join(CA), &authority, 0o644)?;
    if keep_key {
        write(&folder.join("ca-key.pem"), &authority_key.serialize_pem(), 0o600)?;
    }
    let issuer = Issuer::new(params, authority_key);
    let mut file = String::from("# Written by volary certs: the hosts of a run.\n");
    for (name, address) in hosts {
        file.push_str(&format!("\n[[host]]\nname = \"{name}\"\naddress = \"{address}\"\n"));
    }
    for name in hosts.iter().map(|(name, _)| name.as_str()).chain([CONTROLLER]) {
        let own = folder.join(name);
        private_folder(&own)?;
        let key = KeyPair::generate().map_err(made)?;
        let mut params = CertificateParams::new(vec![name.to_owned()]).map_err(made)?;
        params.distinguished_name = called(name);
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages =
            vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        valid(&mut params, days);
        let certificate = params.signed_by(&key, &issuer).map_err(made)?;
        write(&own.join(CA), &authority, 0o644)?;
        write(&own.join(CERT), &certificate.pem(), 0o644)?;
        write(&own.join(KEY), &key.serialize_pem(), 0o600)?;
    }
    write(&folder.join("hosts.toml"), &file, 0o644)
}

fn called(name: &str) -> DistinguishedName {
    let mut called = DistinguishedName::new();
    called.push(DnType::CommonName, name);
    called
}

/// From an hour ago, for clocks that are not quite right, for so many days.
fn valid(params: &mut CertificateParams, days: u32) {
    let now = SystemTime::now();
    params.not_before = (now - Duration::from_secs(3600)).into();
    params.not_after = (now + Duration::from_secs(u64::from(days) * 86_400)).into();
}

fn private_folder(path: &Path) -> Result<(), Error> {
    let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(path);
    made.map_err(|source| Error::File { path: path.to_owned(), source })
}

fn write(path: &Path, text: &str, mode: u32) -> Result<(), Error> {
    let file = OpenOptions::new().write(true).create_new(true).mode(mode).open(path);
    file.and_then(|mut file| file.write_all(text.as_bytes()))
        .map_err(|source| Error::File { path: path.to_owned(), source })
}
