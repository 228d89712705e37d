//! Tests of the live page as a client sees it: answered requests, data for viewers, and no effect on runs.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;
use volary::runtime::{self, RunOptions};
use volary_experiment::config::{Experiment, Overrides};
use volary_experiment::control::{StudyControl, StudyObserver};
use volary_report::dashboard::snapshot::{PageHeader, RunStage, Snapshot};
use volary_report::dashboard::{Dashboard, RunFolder, Server, SnapshotSource};

use crate::common::binary::{EXPERIMENT, changed, command, expect, folder, forget, refuses_all, text};
use crate::common::page::{PATIENCE, address, answer, ask, get, snapshot};

/// Starts a command with a live page; returns the process and the address.
fn start(folder: &Path, args: &str) -> (Child, String) {
    let mut command = command(folder);
    let command = command.args(args.split_whitespace()).stderr(Stdio::piped()).stdout(Stdio::null());
    let mut child = command.spawn().unwrap();
    let url = address(&mut child);
    (child, url)
}

/// Whether a file below a folder contains a text.
fn contains(folder: &Path, what: &str) -> bool {
    fs::read_dir(folder).unwrap().flatten().any(|entry| {
        let path = entry.path();
        let bytes = || fs::read(&path).unwrap_or_default();
        if path.is_dir() {
            contains(&path, what)
        } else {
            bytes().windows(what.len()).any(|w| w == what.as_bytes())
        }
    })
}

#[test]
fn the_live_page_follows_a_run_in_real_time_to_its_end() {
    let folder = folder();
    let here = folder.path();
    let (mut run, url) = start(here, "run e.toml --quiet --runtime local --set run.speed=5 --out r --live");
    let page = answer(get(&url, ""));
    assert!(page.starts_with("HTTP/1.1 200") && page.contains("<h1>small</h1>"), "{page}");
    assert!(page.contains("content-security-policy: default-src 'none'"), "{page}");
    let began = Instant::now();
    let detailed = loop {
        let now = snapshot(&url);
        let shown = &now["cell"]["runs"][0];
        let detailed = shown["cores"]["listed"].as_array().is_some_and(|all| !all.is_empty());
        if detailed && shown["shards"][0]["vitals"].is_object() {
            break now;
        }
        assert!(began.elapsed() < PATIENCE, "{now}");
        std::thread::sleep(Duration::from_millis(50));
    };
    assert_eq!((&detailed["running"], &detailed["header"]["runtime"]), (&true.into(), &"local".into()));
    let shown = &detailed["cell"]["runs"][0];
    assert_eq!(shown["cores"]["total"], 8);
    assert!(shown["messages"].as_object().is_some_and(|kinds| !kinds.is_empty()), "{detailed}");
    // A viewer that stays connected also receives the last event.
    let events = answer(get(&url, "events"));
    assert!(events.contains("\r\ncontent-type: text/event-stream\r\n"), "{events}");
    assert!(
        events.contains("event: section") && events.contains("event: end\ndata: finished; the report"),
        "{events}"
    );
    assert!(run.wait().unwrap().success());
    let token = url.trim_end_matches('/').rsplit('/').next().unwrap();
    assert!(token.len() == 32 && !contains(here, token), "the token is in no file");
}

/// A short run may end before a viewer opens its page.
#[test]
fn the_end_of_a_run_names_the_command_that_shows_its_page_again() {
    let folder = folder();
    let (_, err) = expect(folder.path(), "run e.toml --quiet --out r --live", 0);
    assert!(
        err.contains("live: http://127.0.0.1:") && err.contains("`volary watch r` shows it again"),
        "{err}"
    );
}

/// Connections without a request need no token, and must not block other connections until their time limit.
#[test]
fn half_open_requests_do_not_block_others() {
    let dashboard = Arc::new(Dashboard::new(PageHeader::default(), &[]));
    let server = Server::start(0, dashboard).unwrap();
    let host = server.url().trim_start_matches("http://").split('/').next().unwrap();
    let viewer = get(server.url(), "events");
    // The connection of a viewer is half-open until the server has answered its request.
    viewer.peek(&mut [0]).unwrap();
    for _ in 0..4 {
        let open = |_| {
            let mut stream = std::net::TcpStream::connect(host).unwrap();
            stream.write_all(b"GET / HTTP/1.1\r\n").unwrap();
            stream
        };
        let half_open: Vec<_> = (0..100).map(open).collect();
        assert!(snapshot(server.url()).is_object());
        drop(half_open);
    }
    server.end("over");
    assert!(answer(viewer).contains("event: end\ndata: over"), "the viewer must stay connected");
}

#[test]
fn only_requests_with_token_and_own_host_are_answered() {
    let dashboard = Arc::new(Dashboard::new(PageHeader::default(), &[]));
    let server = Server::start(0, dashboard).unwrap();
    let url = server.url().to_owned();
    let (host, path) = url.trim_start_matches("http://").split_once('/').unwrap();
    let status = |head: String| answer(ask(&url, &head)).split(' ').nth(1).unwrap().to_owned();
    let with = |line: &str, host: &str| status(format!("{line} HTTP/1.1\r\nHost: {host}\r\n\r\n"));
    assert!(host.starts_with("127.0.0.1:"), "{url}");
    assert_eq!(with(&format!("GET /{path}"), host), "200");
    assert_eq!(with(&format!("GET /{path}"), "rebound.example"), "421");
    assert_eq!(with("GET /", host), "403");
    assert_eq!(with("GET /events", host), "403");
    assert_eq!(with(&format!("GET /{}x/", &path[..31]), host), "403");
    assert_eq!(with(&format!("GET /{path}../../etc/passwd"), host), "404");
    for method in ["POST", "PUT", "DELETE", "OPTIONS", "PATCH"] {
        assert_eq!(with(&format!("{method} /{path}"), host), "405", "{method}");
    }
    let twice = format!("GET /{path} HTTP/1.1\r\nHost: {host}\r\nHost: rebound.example\r\n\r\n");
    assert_ne!(status(twice), "200");
    assert_ne!(status(format!("GET /{path} HTTP/1.0\r\n\r\n")), "200");
    let policy = |path: &str| {
        let answer = answer(ask(&url, &format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n")));
        let policy = answer.lines().find_map(|line| line.strip_prefix("content-security-policy: "));
        policy.unwrap_or_else(|| panic!("{answer}")).to_owned()
    };
    let page = format!("/{path}");
    let (first, second) = (policy(&page), policy(&page));
    assert!(first.contains("script-src 'nonce-") && first != second, "each page has a nonce of its own");
    for path in ["/".to_owned(), format!("{page}else"), format!("{page}snapshot.json")] {
        let policy = policy(&path);
        assert!(policy.starts_with("default-src 'none';") && !policy.contains("nonce"), "{path}: {policy}");
    }
    // Invalid or oversized HTTP ends only its connection.
    let _ = answer(ask(&url, "\u{1}\u{2}nonsense\r\n\r\n"));
    let mut long = ask(&url, &format!("GET /{path} HTTP/1.1\r\nHost: {host}\r\n"));
    let _ = long.write_all("X-Long: y\r\n".repeat(1 << 14).as_bytes());
    let _ = long.shutdown(Shutdown::Write);
    assert_eq!(with(&format!("GET /{path}"), host), "200", "the server still answers");
}

/// A snapshot source with large sections that differ each time.
#[derive(Default)]
struct Large(AtomicU64);

impl SnapshotSource for Large {
    fn snapshot(&self) -> Snapshot {
        let number = self.0.fetch_add(1, Ordering::Relaxed);
        Snapshot { state: format!("{number} {}", "x".repeat(8 << 20)), ..Snapshot::default() }
    }

    fn request_details(&self) {}
}

#[test]
fn only_a_viewer_that_stops_reading_is_dropped() {
    let server = Server::start(0, Arc::new(Large::default())).unwrap();
    let url = server.url().to_owned();
    let mut stalled = get(&url, "events");
    let reader = get(&url, "events");
    let read = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&read);
    let reading = std::thread::spawn(move || {
        let lines = BufReader::new(reader).lines();
        let mut ended = false;
        for line in lines.map_while(Result::ok) {
            counted.fetch_add(u64::from(line == "event: section"), Ordering::Relaxed);
            ended |= line == "data: over";
        }
        ended
    });
    let began = Instant::now();
    while read.load(Ordering::Relaxed) < 20 {
        assert!(began.elapsed() < PATIENCE, "the other viewer must receive sections");
        std::thread::sleep(Duration::from_millis(100));
    }
    server.end("over");
    assert!(reading.join().unwrap(), "the other viewer must receive the last event");
    // The dropped viewer receives the data that the system had buffered for it, or an error, but not the last event.
    let mut rest = Vec::new();
    let _ = stalled.read_to_end(&mut rest);
    assert!(!text(&rest[rest.len().saturating_sub(100)..]).contains("event: end"), "no viewer was dropped");
}

/// Runs the experiment in virtual time, with or without a viewer, and at a pace if one is given. Returns the hashes of
/// the order of events, and whether the viewer saw details.
fn hashes(viewed: bool, pace: Option<f64>) -> (Vec<String>, bool) {
    let larger = changed(EXPERIMENT, &[("jobs = 60", "jobs = 40_000"), ("200ms", "20ms")]);
    let experiment = Experiment::plan("e.toml", &larger, &Overrides::default()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let (over, seen) = (AtomicBool::new(false), AtomicBool::new(false));
    let out = folder.path().join("r");
    let options = RunOptions { out, threads: Some(1), ..RunOptions::default() };
    let runs = experiment.runs(None);
    let header = PageHeader::default();
    let dashboard = viewed.then(|| Arc::new(Dashboard::new(header, &runtime::expected(&experiment, &runs))));
    let observer = dashboard.clone().map(|dashboard| dashboard as Arc<dyn StudyObserver>);
    let observers = observer.into_iter().collect();
    let control = StudyControl { observers, pace, ..StudyControl::default() };
    let outcome = std::thread::scope(|scope| {
        scope.spawn(|| {
            while let (Some(dashboard), false) = (&dashboard, over.load(Ordering::Relaxed)) {
                dashboard.request_details();
                let runs = dashboard.snapshot().cell.map(|cell| cell.runs).unwrap_or_default();
                if runs.iter().any(|run| run.running && !run.cores.listed.is_empty()) {
                    seen.store(true, Ordering::Relaxed);
                }
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        let outcome = runtime::run(&experiment, &options, &control);
        over.store(true, Ordering::Relaxed);
        outcome.unwrap()
    });
    if let Some(dashboard) = dashboard {
        let last = dashboard.snapshot();
        assert!(!last.running && last.runs.iter().all(|run| run.stage == RunStage::Finished), "{last:?}");
        let cell = last.cell.unwrap();
        assert_eq!((cell.curves.len(), cell.runs.len()), (2, 2));
    }
    (outcome.summaries.into_iter().map(|summary| summary.engine.order_hash).collect(), seen.into_inner())
}

#[test]
fn the_order_of_events_is_the_same_under_observation() {
    let (alone, _) = hashes(false, None);
    let (viewed, seen) = hashes(true, None);
    assert_eq!(alone, viewed);
    let begun = Instant::now();
    let (paced, _) = hashes(false, Some(2_000.0));
    assert_eq!(alone, paced, "a pace does not change the order");
    // The last job arrives after 800 s of emulated time.
    assert!(begun.elapsed() > Duration::from_millis(400), "{:?}", begun.elapsed());
    assert!(seen, "the viewer must see details during the run");
}

#[test]
fn watch_shows_the_runs_of_a_study_directory() {
    let folder = folder();
    let here = folder.path();
    expect(here, "run e.toml --quiet --out r", 0);
    let (mut watching, url) = start(here, "watch r");
    let shown = snapshot(&url);
    assert_eq!((&shown["running"], &shown["state"]), (&false.into(), &"finished".into()));
    assert_eq!(shown["runs"].as_array().unwrap().len(), 2);
    assert!(shown["runs"].as_array().unwrap().iter().all(|run| run["stage"] == "finished"), "{shown}");
    assert_eq!(shown["cell"]["curves"][1]["policy"], "sparrow");
    assert_eq!(shown["cell"]["curves"][1]["runs"][0][1], 60);
    let policies = [0, 1].map(|at| &shown["cell"]["runs"][at]["policy"]);
    assert_eq!(policies.map(Value::as_str), [Some("random"), Some("sparrow")]);
    assert_eq!(shown["cell"]["runs"][0]["counts"]["jobs_finished"], 60);
    // The second run is removed from the log, and recorded as failed.
    let id = shown["runs"][1]["run"].as_str().unwrap().to_owned();
    let failure = serde_json::json!({
        "run": id, "policy": "sparrow", "cell": {}, "seed": 3, "log": "host <b>h2</b> was lost",
    });
    fs::create_dir(here.join("r/failed")).unwrap();
    fs::write(here.join(format!("r/failed/{id}.json")), failure.to_string()).unwrap();
    assert_eq!(forget(&here.join("r")), id);
    let began = Instant::now();
    while snapshot(&url)["runs"][1]["stage"] != "failed" {
        assert!(began.elapsed() < PATIENCE);
        std::thread::sleep(Duration::from_millis(100));
    }
    let shown = snapshot(&url);
    assert_eq!(shown["runs"][1]["why"], "host <b>h2</b> was lost");
    let mut events = get(&url, "events");
    let mut some = vec![0; 1 << 16];
    let mut seen = String::new();
    while !seen.contains("was lost") {
        let got = events.read(&mut some).unwrap();
        assert!(got > 0, "{seen}");
        seen.push_str(&text(&some[..got]));
    }
    assert!(seen.contains("host &lt;b&gt;h2&lt;/b&gt; was lost") && !seen.contains("<b>h2"), "{seen}");
    watching.kill().unwrap();
    watching.wait().unwrap();
}

/// The runs end at different times, and the injection is planned until after all of them.
#[test]
fn watch_shows_a_scheduled_injection_once_as_planned() {
    let folder = folder();
    let here = folder.path();
    let injection = "[[interference.injection]]\nwho = [\"nodes:0-3\"]\nat = \"1s\"\nfor = \"1h\"\n\
                     profile = { bernoulli = { slot = \"1s\", probability = 0.5, slowdown = 2 } }\n";
    fs::write(here.join("i.toml"), format!("{EXPERIMENT}\n{injection}")).unwrap();
    expect(here, "run i.toml --quiet --out r", 0);
    let cell = RunFolder::open(&here.join("r")).unwrap().snapshot().cell.unwrap();
    assert!(cell.runs.len() == 2 && cell.runs[0].at_s != cell.runs[1].at_s, "{:?}", cell.runs);
    let [shown] = &cell.disturbances[..] else { panic!("{:?}", cell.disturbances) };
    assert_eq!((shown.at_s, shown.until_s), (1.0, Some(3601.0)));
    assert!(shown.says.starts_with("nodes:0-3, bernoulli = {"), "{}", shown.says);
}

/// While a file is damaged or being replaced, the page shows the content at the last successful reading.
#[test]
fn the_page_of_an_unreadable_folder_shows_its_last_content() {
    let folder = folder();
    let here = folder.path();
    expect(here, "run e.toml --quiet --out r", 0);
    let (mut watching, url) = start(here, "watch r");
    let until = |fact: &dyn Fn(&Value) -> bool| {
        let began = Instant::now();
        loop {
            let shown = snapshot(&url);
            if fact(&shown) {
                return shown;
            }
            assert!(began.elapsed() < PATIENCE, "{shown}");
            std::thread::sleep(Duration::from_millis(100));
        }
    };
    let events = get(&url, "events");
    let log = here.join("r/runs.log");
    fs::rename(&log, here.join("r/whole")).unwrap();
    fs::write(&log, "something else that is long enough").unwrap();
    let shown = until(&|shown| shown["outdated"].is_string());
    assert!(shown["outdated"].as_str().unwrap().contains("runs.log is not a log of runs"), "{shown}");
    assert!(shown["runs"].as_array().unwrap().iter().all(|run| run["stage"] == "finished"), "{shown}");
    let manifest = here.join("r/manifest.json");
    fs::rename(&manifest, here.join("r/away")).unwrap();
    until(&|shown| shown["outdated"].as_str().is_some_and(|why| why.contains("no manifest.json")));
    fs::rename(here.join("r/away"), &manifest).unwrap();
    fs::rename(here.join("r/whole"), &log).unwrap();
    until(&|shown| shown["outdated"].is_null());
    assert!(Command::new("kill").args(["-INT", &watching.id().to_string()]).status().unwrap().success());
    let mut said = String::new();
    watching.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert_eq!(said.matches("the page shows an earlier state").count(), 1, "{said}");
    assert!(watching.wait().unwrap().success());
    // A viewer that stayed connected receives both events.
    let seen = answer(events);
    assert!(seen.contains("An earlier state is shown: "), "{seen}");
    assert!(seen.contains("event: end\ndata: `volary watch` has ended"), "{seen}");
}

#[test]
fn bad_ports_and_folders_are_refused() {
    let folder = folder();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    refuses_all(
        folder.path(),
        &format!(
            "run e.toml --live {port} | 2 | --live | port {port} is in use by another process | give none\n\
             run e.toml --live 70000 | 2 | --live | `70000` is not a port | up to 65535\n\
             run --live e.toml | 2 | --live | `e.toml` is not a port\n\
             watch e.toml | 2 | is not a study directory\n\
             watch gone | 2 | gone is not a study directory\n\
             watch gone --port x | 2 | --port | `x` is not a port\n\
             watch | 2 | <RUN>"
        ),
    );
    assert!(!folder.path().join("runs").exists(), "a refused command must leave no folder");
}
