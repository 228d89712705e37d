use super::*;
use crate::transport::identity::Identity;

const DAY: Duration = Duration::from_secs(86_400);

fn now() -> SystemTime {
    SystemTime::UNIX_EPOCH + 20_000 * DAY
}

fn request(names: &[&str]) -> Request {
    let port = |name: &str| name.bytes().map(u16::from).sum::<u16>();
    let hosts = names.iter().map(|name| ((*name).to_owned(), SocketAddr::from(([10, 0, 0, 1], port(name)))));
    Request { hosts: hosts.collect(), days: 30, keep_ca: false, now: now() }
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

/// A folder that is not there yet.
fn fresh() -> (tempfile::TempDir, PathBuf) {
    let outer = tempfile::tempdir().unwrap();
    let folder = outer.path().join("run");
    (outer, folder)
}

#[test]
fn everyone_gets_an_identity_that_loads() {
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
    assert_eq!(hosts.hosts, request(&["h1", "h2.lab"]).hosts());
    assert_eq!(Identity::load(&hosts.controller(), now()).unwrap().subject.role, Role::Controller);
}

#[test]
fn nothing_is_overwritten() {
    let (_outer, folder) = fresh();
    issue(&folder, &request(&["h1"])).unwrap();
    let before = fs::read(folder.join("h1/key.pem")).unwrap();
    let error = issue(&folder, &request(&["h1"])).unwrap_err().to_string();
    assert!(error.contains("is not overwritten") && error.contains("--keep-ca"), "{error}");
    assert_eq!(fs::read(folder.join("h1/key.pem")).unwrap(), before);
}

#[test]
fn nonsense_leaves_nothing_behind() {
    for (request, words) in [
        (request(&[]), "--host NAME=ADDRESS:PORT"),
        (request(&["h1", "h1"]), "two `h1`"),
        (request(&["H1"]), "small letters"),
        (request(&["../h1"]), "no host name"),
        (request(&["controller"]), "the controller's"),
        (Request { days: 0, ..request(&["h1"]) }, "1 to 3650"),
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
    issue(&folder, &Request { keep_ca: true, ..request(&["h1"]) }).unwrap();
    assert_eq!(mode(&folder.join(CA_KEY)), 0o600);
    let later = Request { now: now() + 10 * DAY, ..request(&["h2"]) };
    let issued = issue(&folder, &later).unwrap();
    assert_eq!(issued.folders, [folder.join("h2")]);
    assert_eq!(issued.until, now() + 30 * DAY, "no longer than the authority");
    Identity::load(&folder.join("h2"), later.now).unwrap();
    let names: Vec<_> = Hosts::load(&issued.hosts).unwrap().hosts.into_iter().map(|host| host.name).collect();
    assert_eq!(names, ["h1", "h2"]);
    let error = issue(&folder, &request(&["h3", "h1"])).unwrap_err().to_string();
    assert!(error.contains("name only new hosts"), "{error}");
    assert!(!folder.join("h3").exists());
}

#[test]
fn what_cannot_be_used_says_what_to_do() {
    let (_outer, folder) = fresh();
    issue(&folder, &request(&["h1", "h2"])).unwrap();
    let (_other_outer, other) = fresh();
    issue(&other, &request(&["h1"])).unwrap();
    let own = folder.join("h1");
    let load = |at: SystemTime| Identity::load(&own, at).unwrap_err().to_string();
    let late = load(now() + 31 * DAY);
    assert!(late.contains("expired on 2024-11-03 00:00 UTC: issue new identities"), "{late}");
    let early = load(now() - DAY);
    assert!(early.contains("valid from 2024-10-03 23:00 UTC on: is this machine's clock right?"), "{early}");

    let swap = |file: &str, with: &Path, words: &str| {
        let (path, kept) = (own.join(file), own.join("kept"));
        fs::rename(&path, &kept).unwrap();
        fs::copy(with, &path).unwrap();
        let error = load(now());
        assert!(error.contains(file) && error.contains(words), "{file}: {error}");
        fs::rename(&kept, &path).unwrap();
    };
    swap("cert.pem", &other.join("h1/cert.pem"), "not of the authority");
    swap("key.pem", &folder.join("h2/key.pem"), "not the key of");
    swap("cert.pem", &folder.join("h1/key.pem"), "no certificate in it");
    swap("key.pem", &folder.join("h1/cert.pem"), "mode 0644");

    fs::set_permissions(own.join("key.pem"), fs::Permissions::from_mode(0o640)).unwrap();
    let exposed = load(now());
    assert!(exposed.contains("mode 0640 lets others use this key: chmod 600"), "{exposed}");
    fs::remove_file(own.join("key.pem")).unwrap();
    let missing = load(now());
    assert!(missing.contains("no ") && missing.contains("`volary certs DIR --host NAME=ADDR`"), "{missing}");
}
