//! Targets of the fuzzer and of the replay of its corpus: every parser of input that a user wrote, a disk may have
//! damaged or a peer sent. Errors are fine, panics are not.

use std::io::{BufRead, Cursor};
use std::iter::Empty;
use std::path::Path;
use std::sync::LazyLock;
use std::{fs, io};

use volary_actors::base::{JobId, Span, Time};
use volary_engine::cores::config::BurstTrace;
use volary_engine::cores::{CoreTable, Cores, Interference, RunLength};
use volary_engine::metrics::{Aggregator, EndReason, FalseReport, Recording};
use volary_engine::parcel::Parcel;
use volary_engine::results::{CopyRow, JobCounts, JobRow, Summary, Worked};
use volary_engine::workload::{ColumnNames, Part, Reading, Share, SizeBy, Trace};
use volary_engine::world::World;
use volary_engine::world::finalize::{Counters, FinishedRun};
use volary_experiment::codec::{self, Batch};
use volary_experiment::config::claims::Check;
use volary_experiment::config::{Bundle, Experiment, Overrides};
use volary_experiment::fidelity::measure::{LatenessHistograms, real_time};
use volary_experiment::files::Pack;
use volary_experiment::storage::RUNS;
use volary_experiment::storage::input_log::{InputLog, frame, prefix};
use volary_experiment::storage::run_store::{EncodedRun, RunStore, begin};
use volary_experiment::workload::{Traces, decompress};
use volary_hosts::cluster::net::Host;
use volary_hosts::cluster::protocol::{AgentMessage, InjectReply, InjectorMessage};
use volary_hosts::cluster::report_check::ReportCheck;
use volary_netem::{TopologyFile, Windows};

/// An experiment file, as in a bundle. Whatever it names, no file of this machine is opened.
pub(crate) fn experiment(data: &[u8]) {
    let name = "fuzz.toml";
    let files = Pack { folders: Vec::new(), files: [(name.into(), data.to_vec())].into() };
    let bundle = Bundle { experiment: name.into(), overrides: Overrides::default(), files };
    let _ = Experiment::from_bundle(&bundle).map_err(|e| e.to_string());
}

/// A trace; its first byte chooses the format.
pub(crate) fn trace(data: &[u8]) {
    let Some((&kind, rest)) = data.split_first() else { return };
    let name = ["t.tr", "t.swf", "t.csv", "t"][usize::from(kind) % 4];
    if let Ok(input) = decompress(Cursor::new(rest.to_vec())) {
        let _ = Trace::parse(Path::new(name), input, Some(1000)).map_err(|e| e.to_string());
    }
}

/// A table of jobs. Its first byte chooses the kind of the rest: a file with known headings, a file whose columns are
/// named, features beside a trace, a table of Google or Alibaba, or a file with units of its own.
pub(crate) fn table(data: &[u8]) {
    let Some((&kind, rest)) = data.split_first() else { return };
    let input = |bytes: &[u8]| -> Box<dyn BufRead> { Box::new(Cursor::new(bytes.to_vec())) };
    let part = |bytes: &[u8]| -> Part { Ok(("part-00000.csv".into(), input(bytes))) };
    let named = "user=u,submit=s,start=b,end=e,outcome=o,tasks=n".parse::<ColumnNames>().ok();
    let all = || Reading { jobs: Some(1000), ..Reading::default() };
    const JOB: &[u8] = b"0,,1,0,u,0,n,l\n1,,1,1,u,0,n,l\n9,,1,4,u,0,n,l\n";
    const ROWS: &[u8] = b"M1,2,j,1,Terminated,3,9,100,1\nR2_1,1,j,1,Terminated,9,9,,\n";
    let units = "submit=s:ms,run=r_ticks,wait=w_min".parse::<ColumnNames>().ok();
    const HOUR: &[u8] = b"0,j_1,R2_1,2,50.0,0.3,9\n5,j_1,M1,1,100.0,0.3,15\n";
    let spar =
        |table: &str, bytes: &[u8]| -> Part { Ok((format!("sample_{table}.csv").into(), input(bytes))) };
    let zone = "Europe/Stockholm".parse().ok();
    let tolerant = || Reading { zone, skip_bad: Share::ALL, ..all() };
    let ten = || Reading { jobs: Some(10), skip_bad: Share::ALL, ..all() };
    let parse =
        |name: &str, input, reading: Reading| Trace::parse_with(Path::new(name), input, &reading, Vec::new());
    let trace = match kind % 14 {
        0 => parse("t.csv", input(rest), all()),
        1 => parse("t.csv", input(rest), Reading { columns: named, ..all() }),
        2 => {
            let features = vec![("t.features.csv".into(), input(rest))];
            Trace::parse_with(Path::new("t.tr"), input(b"1 1 1 1\n0 1 1 1\n"), &all(), features)
        }
        3 => Trace::parse_google(Path::new("g"), [part(rest)].into_iter(), None::<Empty<Part>>, Some(1000)),
        4 => Trace::parse_google(
            Path::new("g"),
            [part(JOB)].into_iter(),
            Some([part(rest)].into_iter()),
            Some(1000),
        ),
        5 => Trace::parse_alibaba(Path::new("a"), part(rest), None, &ten()),
        6 => Trace::parse_alibaba(Path::new("a"), part(ROWS), Some(part(rest)), &ten()),
        7 => parse("t.csv", input(rest), Reading { columns: units, ..all() }),
        8 => parse("t.csv", input(rest), Reading { size: Some(SizeBy::Gpus), ..tolerant() }),
        9 => parse("t.csv", input(rest), tolerant()),
        10 => parse("t.swf", input(rest), tolerant()),
        11 => parse("pai_task_table.csv", input(rest), all()),
        12 => Trace::parse_alibaba(Path::new("a"), spar("tasks", rest), None, &ten()),
        _ => Trace::parse_alibaba(Path::new("a"), spar("tasks", HOUR), Some(spar("instances", rest)), &ten()),
    };
    if let Ok(trace) = trace {
        let jobs = || (0..trace.jobs().len() as u32).map(JobId);
        std::hint::black_box(jobs().map(|job| (trace.run(job), trace.wait(job))).max());
        std::hint::black_box(trace.features());
    }
}

/// Dependencies between tasks. The first byte chooses their form: names of tasks in Alibaba's table, a line each; rows
/// of a table that name the tasks that they wait for; or the stages of jobs beside a trace.
pub(crate) fn graph(data: &[u8]) {
    let Some((&kind, rest)) = data.split_first() else { return };
    let text = String::from_utf8_lossy(rest).into_owned();
    let input = |text: String| -> Box<dyn BufRead> { Box::new(Cursor::new(text.into_bytes())) };
    let reading = Reading { skip_bad: Share::ALL, ..Reading::default() };
    let trace = match kind % 3 {
        0 => {
            let row = |name: &str| format!("{name},2,j,1,Terminated,3,9,100,1\n");
            let rows: String = text.lines().map(row).collect();
            Trace::parse_alibaba(Path::new("a"), Ok(("t".into(), input(rows))), None, &reading)
        }
        1 => {
            let table = format!("submit,run,tasks,job,task,after\n{text}");
            Trace::parse_with(Path::new("t.csv"), Cursor::new(table), &reading, Vec::new())
        }
        _ => {
            let beside = vec![("t.features.csv".into(), input(format!("stages\n{text}")))];
            Trace::parse_with(Path::new("t.tr"), Cursor::new("0 9 1 1 1 1 1 1 1 1 1 1\n"), &reading, beside)
        }
    };
    if let Ok(trace) = trace {
        let jobs = (0..trace.jobs().len() as u32).map(JobId);
        std::hint::black_box(jobs.map(|job| trace.stages_text(job)).max());
    }
}

/// A topology file.
pub(crate) fn topology(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    if let Ok(file) = toml::from_str::<TopologyFile>(&text) {
        let _ = file.resolve(1).map(|topology| topology.describe()).map_err(|e| e.to_string());
    }
}

/// A comparison of a claim.
pub(crate) fn claim(data: &[u8]) {
    let _ = Check::parse(&String::from_utf8_lossy(data)).map_err(|e| e.message);
}

/// A frame from a peer: a prefix, a value of some type, and a batch of parcels, which is encoded again without change.
pub(crate) fn wire(data: &[u8]) {
    let _ = data.first_chunk().map(|prefix| codec::length(*prefix, codec::PARCEL_FRAME));
    let _ = codec::decode::<(String, Vec<(u32, Option<f64>)>, Vec<u8>)>(data).map_err(|e| e.to_string());
    let _ = serde_json::from_slice::<InjectorMessage>(data).map_err(|e| e.to_string());
    if let Ok(InjectReply::Planned(plan)) = serde_json::from_slice(data) {
        let _ = CoreTable::from_outline(&plan.outline).map(|table| table.outline());
    }
    let mut parcels: Vec<Parcel> = Vec::new();
    let Ok(batch) = Batch::open(data) else { return };
    if batch.read(|parcel| parcel.to.0 < u32::MAX, &mut parcels).is_err() {
        assert!(parcels.is_empty());
        return;
    }
    let mut bytes = Vec::new();
    assert_eq!(codec::encode_batch(batch.sequence, &parcels, usize::MAX, &mut bytes), parcels.len());
    if !parcels.is_empty() {
        let mut again = Vec::new();
        assert_eq!(Batch::open(&bytes).and_then(|batch| batch.read(|_| true, &mut again)), Ok(()));
        assert_eq!(again, parcels);
    }
}

/// An `[interference]` table, and a file of observed bursts or samples.
pub(crate) fn interference(data: &[u8]) {
    bursts(data);
    let table = String::from_utf8_lossy(data);
    experiment(
        format!(
            "title = \"f\"\n[cluster]\nnodes = 2\n[workload.synthetic]\njobs = 1\ntasks = 1\n\
             interarrival = \"1s\"\n[service]\ndemand = \"1s\"\n[[policy]]\nrandom = {{}}\n[interference]\n{table}\n"
        )
        .as_bytes(),
    );
}

/// A file of bursts or samples: unchanged, from an offset on, and repeated.
fn bursts(data: &[u8]) {
    for (offset, repeat) in [(None, false), (Some(Span::from_secs(1)), true)] {
        let trace = BurstTrace { file: Some("t".into()), offset, repeat, ..BurstTrace::default() };
        let table = Interference { trace: Some(trace), ..Interference::default() };
        let Ok(profile) = table.load(Path::new(""), |_| Ok(data.into())).map_err(|e| e.to_string()) else {
            continue;
        };
        let (cores, lasts) = (CoreTable::equal(2, 1), Span::from_millis(1));
        let gaps = profile.trace_gaps(&cores, RunLength { least: lasts, most: lasts });
        std::hint::black_box(gaps.iter().map(ToString::to_string).collect::<Vec<_>>());
        let cores = Cores::new(Some(&profile), cores, Windows::default(), 1);
        std::hint::black_box(cores.effect(Time::ZERO + lasts));
    }
}

/// Small worlds under policies with different notes: caches that are sums, snapshots, and suspended copies.
pub(crate) fn report_worlds() -> &'static [World] {
    static WORLDS: LazyLock<Vec<World>> = LazyLock::new(|| {
        let text = r#"
            title = "reports"
            seed = 3
            [cluster]
            nodes = 6
            schedulers = 2
            [workload.synthetic]
            jobs = 6
            tasks = 3
            interarrival = "200ms"
            [service]
            demand = { exponential = { mean = "400ms" } }
            [network]
            one_way = "5ms"
            fault = [{ crash = { who = ["node:1"], at = "600ms", for = "300ms" } }]
            [run.record]
            staleness = "100ms"
            [[policy]]
            murmuration = {}
            [[policy]]
            yaq-d = {}
            [[policy]]
            las-sparrow = {}
        "#;
        let experiment = Experiment::plan("reports.toml", text, &Overrides::default());
        let experiment = experiment.unwrap_or_else(|error| panic!("{error}"));
        let build = |point| World::build(point, experiment.seed, &Traces::new(Vec::new()));
        experiment.points.iter().map(|point| build(point).unwrap_or_else(|error| panic!("{error}"))).collect()
    });
    &WORLDS
}

/// Processes the messages of two hosts like a controller, and checks that the results can be read again. Returns the
/// reason why each host was given up, and the counts of jobs.
pub(crate) fn fold_reports(
    world: &World,
    messages: impl Iterator<Item = (usize, AgentMessage)>,
) -> ([Option<String>; 2], JobCounts) {
    let members = ["h1", "h2"].map(|name| Host::new(name.to_owned(), ([127, 0, 0, 1], 1).into()));
    let recording = Recording { cache_interval: Span::from_millis(100), ..Recording::default() };
    let mut check = ReportCheck::new(world, &members, 1.0);
    let mut aggregator = Aggregator::new(world.recorder(recording), 2, None, world.faults().heals_at());
    let (mut refused, mut counters) = ([None, None], Counters::default());
    let (mut gauge, mut hosts, mut cores) = (LatenessHistograms::default(), Vec::new(), None);
    for (host, message) in messages {
        if refused[host].is_some() {
            continue;
        }
        if let Err(why) = check.check(host, &message, Time::ZERO + Span::from_secs(3600)) {
            refused[host] = Some(why);
            continue;
        }
        let merged = match message {
            AgentMessage::Notes { notes, mark, .. } => aggregator.report(host, notes, mark),
            AgentMessage::FinalReport(report) => {
                counters.add(&report.tally);
                gauge.merge(&report.reading);
                hosts.push(report.vitals);
                if let Some(worked) = report.cores {
                    cores.get_or_insert_with(Worked::default).merge(&worked);
                }
                aggregator.end(host)
            }
            AgentMessage::Loaded
            | AgentMessage::Ready { .. }
            | AgentMessage::Busy { .. }
            | AgentMessage::Refused { .. }
            | AgentMessage::Ping { .. }
            | AgentMessage::Log(_)
            | AgentMessage::Inputs(_)
            | AgentMessage::Lost { .. }
            | AgentMessage::Injected { .. }
            | AgentMessage::Lifted { .. }
            | AgentMessage::Sample(_) => Ok(()),
        };
        if let Err(FalseReport { shard, why }) = merged {
            refused[shard] = Some(why);
        }
    }
    // The remaining reports of both hosts are merged, and the copies on half of the cores are lost.
    for host in 0..2 {
        let _ = aggregator.end(host);
    }
    aggregator.lose(0..world.layout().workers() / 2);
    let (accounts, now) = aggregator.close();
    let jobs = accounts.jobs;
    let real = real_time(world, 1.0, &counters, &gauge, hosts, cores, (&accounts, EndReason::Broken, now));
    let run = FinishedRun {
        experiment: "reports",
        world,
        recording,
        runtime: "hosts",
        counters: &counters,
        real: Some(real),
        injected: None,
    };
    let summary = serde_json::to_string(&run.measured(accounts, now).summary).expect("it can be written");
    let read = serde_json::from_str::<Summary>(&summary);
    assert!(read.is_ok(), "{read:?}: {summary}");
    (refused, jobs)
}

/// Messages of two hosts in a run: the world, and then host, length and frame of each message.
pub(crate) fn reports(data: &[u8]) {
    let Some((&world, mut rest)) = data.split_first() else { return };
    let mut messages = Vec::new();
    while let [host, low, high, tail @ ..] = rest {
        let (frame, tail) = tail.split_at(usize::from(u16::from_le_bytes([*low, *high])).min(tail.len()));
        if let Ok(message) = codec::decode::<AgentMessage>(frame) {
            messages.push((usize::from(host % 2), message));
        }
        rest = tail;
    }
    let worlds = report_worlds();
    fold_reports(&worlds[usize::from(world) % worlds.len()], messages.into_iter());
}

/// A log of inputs: unchanged, and as payloads of frames with correct checksums, each preceded by its section and its
/// length.
pub(crate) fn inputs(data: &[u8]) {
    read(data);
    let (mut log, mut rest) = (prefix(), data);
    while let [section, length, tail @ ..] = rest {
        let (payload, tail) = tail.split_at(usize::from(*length).min(tail.len()));
        let _ = frame(u32::from(*section), payload, &mut log);
        rest = tail;
    }
    read(&log);
}

fn read(data: &[u8]) {
    let Ok(mut log) = InputLog::new(Cursor::new(data)) else { return };
    for found in log.found().to_vec() {
        let _ = log.experiment::<Bundle>(found.experiment).map_err(|e| e.to_string());
        let mut cursor = found.cursor();
        while let Ok(Some(entry)) = log.next(&mut cursor) {
            std::hint::black_box(entry);
        }
    }
    let _ = log.damage().map(|e| e.to_string());
}

/// A log of runs: unchanged, and as the parts of whole frames. Each part is a line except for the last, and the two
/// bytes before the parts state their total length.
pub(crate) fn runs(data: &[u8]) {
    read_runs(data);
    let (mut log, mut rest) = (begin(), data);
    while let [id, high, low, tail @ ..] = rest {
        let length = usize::from(u16::from_be_bytes([*high, *low]));
        let (parts, tail) = tail.split_at(length.min(tail.len()));
        let parts = parts.splitn(6, |byte| *byte == b'\n').map(|part| io::Result::Ok(part.to_vec()));
        if let Ok(run) = EncodedRun::of(&id.to_string(), parts) {
            log.extend_from_slice(run.bytes());
        }
        rest = tail;
    }
    read_runs(&log);
}

fn read_runs(log: &[u8]) {
    let folder = tempfile::tempdir().expect("a folder for the log");
    fs::write(folder.path().join(RUNS), log).expect("room for the log");
    let Ok(store) = RunStore::open(folder.path()) else { return };
    let ids: Vec<String> = store.runs().map(|(id, _)| id.to_owned()).collect();
    for record in store.records(&ids) {
        let _ = record.map_err(|e| e.to_string());
    }
    for rows in ids.iter().filter_map(|id| store.rows(id)) {
        let _ = rows.read::<JobRow>().map_err(|e| e.to_string());
        let _ = rows.read::<CopyRow>().map_err(|e| e.to_string());
    }
}
