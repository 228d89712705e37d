//! Creation of a run's identities: an authority of its own, and a certificate for each host and for the controller.
//!
//! ```text
//! DIR/ca.pem  hosts.toml  ca-key.pem (only with --keep-ca)
//! DIR/controller/  DIR/<name>/   each with ca.pem, cert.pem, key.pem
//! ```

use std::fs;
use std::io::Write;
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

use super::hosts_file::{Host, Hosts};
use super::identity::{
    CA_CERT, CA_KEY, CONTROLLER, FileError, HOSTS, Role, Subject, bad, check_name, io_error, written,
};

/// The identities to make.
#[derive(Clone, Debug)]
pub struct IssueRequest {
    pub hosts: Vec<Host>,
    /// Validity, in days.
    pub days: u32,
    /// Whether the authority's key is kept, so that hosts can be added later.
    pub keep_ca: bool,
    /// Start of validity; an hour is subtracted for clocks that are behind.
    pub now: SystemTime,
}

/// The identities made.
#[derive(Clone, Debug)]
pub struct Issued {
    /// Folders of the identities, including the controller's unless it existed.
    pub folders: Vec<PathBuf>,
    /// End of validity.
    pub until: SystemTime,
    /// Path of the hosts file.
    pub hosts: PathBuf,
}

/// Maximum lag of the clocks of hosts behind the clock of this machine.
const SKEW: Duration = Duration::from_secs(3600);

/// Makes the identities of `request` in a new `folder`, or adds hosts to a folder that still has the authority's key.
pub fn issue(folder: &Path, request: &IssueRequest) -> Result<Issued, FileError> {
    request.check()?;
    let kept = folder.join(CA_KEY).exists();
    if kept { extend(folder, request) } else { create(folder, request) }
}

impl IssueRequest {
    fn check(&self) -> Result<(), FileError> {
        if self.hosts.is_empty() {
            return Err(FileError::new("no host is named; name each host as --host NAME=ADDRESS:PORT"));
        }
        if !(1..=3650).contains(&self.days) {
            return Err(FileError::new("--days must be 1 to 3650"));
        }
        for host in &self.hosts {
            check_name(&host.name, Role::Host).map_err(FileError::new)?;
        }
        Ok(())
    }

    fn until(&self) -> SystemTime {
        self.now + Duration::from_secs(u64::from(self.days) * 86_400)
    }
}

/// Makes a new authority, and identities of the controller and the hosts.
fn create(folder: &Path, request: &IssueRequest) -> Result<Issued, FileError> {
    let used = fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some());
    if used {
        let remedy = "name a new folder; hosts can only be added where --keep-ca kept the authority";
        return Err(exists(folder, remedy));
    }
    let hosts = Hosts { identities: ".".into(), hosts: request.hosts.clone() };
    hosts.check().map_err(FileError::new)?;
    let until = request.until();
    let key = KeyPair::generate_for(&PKCS_ED25519).map_err(|error| bad(folder, error))?;
    let params = authority(&authority_name(&key), request.now, until);
    let ca = params.self_signed(&key).map_err(|error| bad(folder, error))?.pem();
    let key_pem = key.serialize_pem();
    let issuer = Issuer::new(params, key);
    make_folder(folder)?;
    write_new(&folder.join(CA_CERT), &ca, 0o644)?;
    let mut folders = vec![member(folder, CONTROLLER, Role::Controller, &issuer, &ca, (request.now, until))?];
    for host in &request.hosts {
        folders.push(member(folder, &host.name, Role::Host, &issuer, &ca, (request.now, until))?);
    }
    let path = folder.join(HOSTS);
    write_new(&path, &hosts.text(), 0o644)?;
    if request.keep_ca {
        write_new(&folder.join(CA_KEY), &key_pem, 0o600)?;
    }
    Ok(Issued { folders, until, hosts: path })
}

/// Adds hosts to a folder that still has its authority's key.
fn extend(folder: &Path, request: &IssueRequest) -> Result<Issued, FileError> {
    let path = folder.join(HOSTS);
    let mut hosts = Hosts::load(&path)?;
    for host in &request.hosts {
        let path = folder.join(&host.name);
        if path.exists() {
            return Err(exists(&path, "name only new hosts, or make a new folder"));
        }
    }
    let added = Hosts { identities: ".".into(), hosts: request.hosts.clone() }.text();
    hosts.hosts.extend(request.hosts.iter().cloned());
    hosts.check().map_err(FileError::new)?;
    let ca_path = folder.join(CA_CERT);
    let ca = fs::read_to_string(&ca_path).map_err(io_error(&ca_path))?;
    let (name, limit) = authority_of(&ca).map_err(|why| bad(&ca_path, why))?;
    let key_path = folder.join(CA_KEY);
    let key = fs::read_to_string(&key_path).map_err(io_error(&key_path))?;
    let key = KeyPair::from_pem(&key).map_err(|error| bad(&key_path, error))?;
    if limit <= request.now {
        let why = format!("the authority expired on {} UTC: make a new folder", written(limit));
        return Err(bad(&ca_path, why));
    }
    let until = request.until().min(limit);
    let issuer = Issuer::new(authority(&name, request.now, limit), key);
    let mut folders = Vec::new();
    for host in &request.hosts {
        folders.push(member(folder, &host.name, Role::Host, &issuer, &ca, (request.now, until))?);
    }
    let mut file = fs::OpenOptions::new().append(true).open(&path).map_err(io_error(&path))?;
    file.write_all(format!("\n{added}").as_bytes()).map_err(io_error(&path))?;
    Ok(Issued { folders, until, hosts: path })
}

fn exists(path: &Path, remedy: &str) -> FileError {
    FileError::new(format!("{} exists and is not overwritten: {remedy}", path.display()))
}

/// A name unique to this authority. A certificate of another authority then fails as unknown issuer, not as bad
/// signature.
fn authority_name(key: &KeyPair) -> String {
    let id: String = key.public_key_raw().iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    format!("volary run {id}")
}

/// The parameters of the authority's certificate.
fn authority(name: &str, now: SystemTime, until: SystemTime) -> CertificateParams {
    let mut params = validity(CertificateParams::default(), now, until);
    params.distinguished_name = common_name(name);
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    params
}

/// Name and end of validity of an existing authority.
fn authority_of(pem: &str) -> Result<(String, SystemTime), String> {
    let der = CertificateDer::from_pem_slice(pem.as_bytes()).map_err(|error| error.to_string())?;
    let (_, parsed) = X509Certificate::from_der(&der).map_err(|error| error.to_string())?;
    let name = parsed.subject().iter_common_name().next().and_then(|name| name.as_str().ok());
    let name = name.ok_or("the authority has no name")?.to_owned();
    let until = parsed.validity().not_after.timestamp().max(0).unsigned_abs();
    Ok((name, SystemTime::UNIX_EPOCH + Duration::from_secs(until)))
}

/// Makes one identity in a folder of its own.
fn member(
    folder: &Path,
    name: &str,
    role: Role,
    issuer: &Issuer<'_, KeyPair>,
    ca: &str,
    (now, until): (SystemTime, SystemTime),
) -> Result<PathBuf, FileError> {
    let folder = folder.join(name);
    let wrong = |error: rcgen::Error| bad(&folder, error);
    let subject = Subject { name: name.to_owned(), role, from: now, until };
    let key = KeyPair::generate_for(&PKCS_ED25519).map_err(wrong)?;
    let params = CertificateParams::new(vec![subject.dns().to_owned()]).map_err(wrong)?;
    let mut params = validity(params, now, until);
    params.distinguished_name = common_name(name);
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    // Every host is a TLS server and a TLS client.
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

fn common_name(name: &str) -> DistinguishedName {
    let mut distinguished = DistinguishedName::new();
    distinguished.push(DnType::CommonName, name);
    distinguished
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

/// Makes a folder that only its owner can enter, or restricts an existing folder to its owner.
fn make_folder(path: &Path) -> Result<(), FileError> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(io_error(path))?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o700)).map_err(io_error(path))
}

fn write_new(path: &Path, text: &str, mode: u32) -> Result<(), FileError> {
    let mut file =
        fs::OpenOptions::new().write(true).create_new(true).mode(mode).open(path).map_err(io_error(path))?;
    file.write_all(text.as_bytes()).map_err(io_error(path))
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;
    use crate::cluster::net::identity::Identity;

    const DAY: Duration = Duration::from_secs(86_400);

    fn now() -> SystemTime {
        SystemTime::UNIX_EPOCH + 20_000 * DAY
    }

    /// The exit status depends on the source of an error: 3 for a full disk, 2 for wrong input.
    #[test]
    fn errors_of_files_keep_the_io_error_as_their_source() {
        let error = io_error(Path::new("ids/key.pem"))(io::ErrorKind::StorageFull.into());
        assert!(error.to_string().starts_with("ids/key.pem: "), "{error}");
        let source = std::error::Error::source(&error).and_then(|source| source.downcast_ref::<io::Error>());
        assert_eq!(source.map(io::Error::kind), Some(io::ErrorKind::StorageFull));
    }

    fn request(names: &[&str]) -> IssueRequest {
        let port = |name: &str| name.bytes().map(u16::from).sum::<u16>();
        let hosts =
            names.iter().map(|name| Host::new((*name).to_owned(), ([10, 0, 0, 1], port(name)).into()));
        IssueRequest { hosts: hosts.collect(), days: 30, keep_ca: false, now: now() }
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    /// A folder that does not exist yet.
    fn fresh() -> (tempfile::TempDir, PathBuf) {
        let outer = tempfile::tempdir().unwrap();
        let folder = outer.path().join("run");
        (outer, folder)
    }

    #[test]
    fn every_host_gets_an_identity_that_loads() {
        let (_outer, folder) = fresh();
        let issued = issue(&folder, &request(&["h1", "h2.lab"])).unwrap();
        assert_eq!(issued.folders, ["controller", "h1", "h2.lab"].map(|name| folder.join(name)));
        assert_eq!(issued.until, now() + 30 * DAY);
        for (name, role) in [("controller", Role::Controller), ("h1", Role::Host), ("h2.lab", Role::Host)] {
            let own = folder.join(name);
            for at in [now() - SKEW, now() + 30 * DAY] {
                let subject = Identity::load(&own, at).unwrap().subject;
                assert_eq!((subject.name.as_str(), subject.role, subject.until), (name, role, issued.until));
            }
            assert_eq!((mode(&own), mode(&own.join("key.pem"))), (0o700, 0o600));
        }
        assert_eq!(mode(&folder), 0o700);
        assert!(!folder.join(CA_KEY).exists(), "the authority is thrown away");
        let hosts = Hosts::load(&issued.hosts).unwrap();
        assert_eq!(hosts.hosts, request(&["h1", "h2.lab"]).hosts);
        assert_eq!(Identity::load(&hosts.controller(), now()).unwrap().subject.role, Role::Controller);
        let error = Identity::load_for(Role::Host, &hosts.controller(), now()).unwrap_err().to_string();
        assert!(error.contains("an agent takes the folder of its own host"), "{error}");
        let error = Identity::load_for(Role::Controller, &folder.join("h1"), now()).unwrap_err().to_string();
        assert!(
            error.contains("h1: this is the identity of host h1: copy the folder `controller`"),
            "{error}"
        );
    }

    #[test]
    fn existing_identities_are_not_overwritten() {
        let (_outer, folder) = fresh();
        issue(&folder, &request(&["h1"])).unwrap();
        let before = fs::read(folder.join("h1/key.pem")).unwrap();
        let error = issue(&folder, &request(&["h1"])).unwrap_err().to_string();
        assert!(error.contains("is not overwritten") && error.contains("--keep-ca"), "{error}");
        assert_eq!(fs::read(folder.join("h1/key.pem")).unwrap(), before);
    }

    #[test]
    fn invalid_requests_leave_no_folder_behind() {
        for (request, words) in [
            (request(&[]), "--host NAME=ADDRESS:PORT"),
            (request(&["h1", "h1"]), "also called `h1`"),
            (request(&["H1"]), "small letters"),
            (request(&["../h1"]), "not a host name"),
            (request(&["controller"]), "the controller's"),
            (request(&["ca.pem"]), "is a file in the folder of identities"),
            (IssueRequest { days: 0, ..request(&["h1"]) }, "1 to 3650"),
        ] {
            let (_outer, folder) = fresh();
            let error = issue(&folder, &request).unwrap_err().to_string();
            assert!(error.contains(words), "{words}: {error}");
            assert!(!folder.exists());
        }
    }

    #[test]
    fn hosts_can_be_added_where_the_authority_was_kept() {
        let (_outer, folder) = fresh();
        issue(&folder, &IssueRequest { keep_ca: true, ..request(&["h1"]) }).unwrap();
        assert_eq!(mode(&folder.join(CA_KEY)), 0o600);
        let later = IssueRequest { now: now() + 10 * DAY, ..request(&["h2"]) };
        let issued = issue(&folder, &later).unwrap();
        assert_eq!(issued.folders, [folder.join("h2")]);
        assert_eq!(issued.until, now() + 30 * DAY, "no longer than the authority");
        Identity::load(&folder.join("h2"), later.now).unwrap();
        let names: Vec<_> =
            Hosts::load(&issued.hosts).unwrap().hosts.into_iter().map(|host| host.name).collect();
        assert_eq!(names, ["h1", "h2"]);
        let error = issue(&folder, &request(&["h3", "h1"])).unwrap_err().to_string();
        assert!(error.contains("name only new hosts"), "{error}");
        let late = IssueRequest { now: now() + 31 * DAY, ..request(&["h3"]) };
        let error = issue(&folder, &late).unwrap_err().to_string();
        assert!(
            error.contains("ca.pem: the authority expired on 2024-11-03 00:00 UTC: make a new"),
            "{error}"
        );
        assert!(!folder.join("h3").exists());
    }

    #[test]
    fn unusable_identities_are_refused_with_a_remedy() {
        let (_outer, folder) = fresh();
        issue(&folder, &request(&["h1", "h2"])).unwrap();
        let (_other_outer, other) = fresh();
        issue(&other, &request(&["h1"])).unwrap();
        let own = folder.join("h1");
        let load = |at: SystemTime| Identity::load(&own, at).unwrap_err().to_string();
        let late = load(now() + 31 * DAY);
        assert!(late.contains("expired on 2024-11-03 00:00 UTC: issue new identities"), "{late}");
        let early = load(now() - DAY);
        assert!(
            early.contains("valid from 2024-10-03 23:00 UTC on: is this machine's clock right?"),
            "{early}"
        );

        let swap = |file: &str, with: &Path, words: &str| {
            let (path, kept) = (own.join(file), own.join("kept"));
            fs::rename(&path, &kept).unwrap();
            fs::copy(with, &path).unwrap();
            let error = load(now());
            assert!(error.contains(file) && error.contains(words), "{file}: {error}");
            fs::rename(&kept, &path).unwrap();
        };
        swap("cert.pem", &other.join("h1/cert.pem"), "not of the authority");
        swap("key.pem", &folder.join("h2/key.pem"), "not belong to the certificate");
        swap("cert.pem", &folder.join("h1/key.pem"), "the file has no certificate");
        swap("key.pem", &folder.join("h1/cert.pem"), "mode 0644");

        fs::set_permissions(own.join("key.pem"), fs::Permissions::from_mode(0o640)).unwrap();
        let exposed = load(now());
        assert!(exposed.contains("mode 0640 lets others use this key: chmod 600"), "{exposed}");
        fs::remove_file(own.join("key.pem")).unwrap();
        let missing = load(now());
        assert!(
            missing.contains("no ") && missing.contains("`volary certs DIR --host NAME=ADDR`"),
            "{missing}"
        );
    }
}
