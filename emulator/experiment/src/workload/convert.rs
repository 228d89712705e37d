//! The conversion of traces to `.tr`, plain or compressed by suffix, with the features of their jobs beside it:
//! `X.features.csv` beside `X.tr`.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use volary_actors::base::{Feature, JobId};
use volary_engine::workload::{GOOGLE, TASKS_UNKNOWN, Trace, WorkloadError, ZONE};

use super::library::{FEATURES, features_of};
use super::text::Seconds;
use crate::atomic_file;
use crate::files::Files;

/// Compression levels: the defaults of `xz` and `zstd`.
const XZ_LEVEL: u32 = 6;
const ZSTD_LEVEL: i32 = 3;

/// A function that writes the content of a file.
type Content<'a> = dyn Fn(&mut dyn Write) -> io::Result<()> + 'a;
/// A function that writes content with one compression.
type Pack = fn(&Content<'_>, BufWriter<File>) -> io::Result<()>;

/// The compressions by suffix of the file name; none without a suffix.
const PACKINGS: [(&str, Pack); 4] = [
    ("", |content, mut out| {
        content(&mut out)?;
        out.flush()
    }),
    (".xz", |content, out| {
        let mut encoder = liblzma::write::XzEncoder::new(out, XZ_LEVEL);
        content(&mut encoder)?;
        encoder.finish()?.flush()
    }),
    (".zst", |content, out| {
        let mut encoder = zstd::stream::write::Encoder::new(out, ZSTD_LEVEL)?;
        content(&mut encoder)?;
        encoder.finish()?.flush()
    }),
    (".gz", |content, out| {
        let mut encoder = flate2::write::GzEncoder::new(out, flate2::Compression::default());
        content(&mut encoder)?;
        encoder.finish()?.flush()
    }),
];

/// Writes the jobs to `to`, a name that ends in `.tr`, `.tr.xz`, `.tr.zst` or `.tr.gz`. Other details that the trace
/// states (features, outcomes, cores, waits, stages) are written to a file beside `to`; its path is returned. With
/// `force`, existing files are replaced once everything is written.
///
/// # Errors
/// When the name has another suffix, a file exists, another file beside it would be read as the features of these jobs,
/// or a file cannot be written.
pub fn write(trace: &Trace, to: &Path, force: bool) -> Result<Option<PathBuf>, WorkloadError> {
    let name = to.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let packing = |(packed, pack): &(&'static str, Pack)| {
        Some((name.strip_suffix(packed)?.strip_suffix(".tr")?, *packed, *pack))
    };
    let Some((stem, packed, pack)) = PACKINGS.iter().find_map(packing) else {
        let why = format!("`{}` must end in .tr, .tr.xz, .tr.zst or .tr.gz", to.display());
        return Err(WorkloadError::config("output", why));
    };
    let stated = Stated::of(trace);
    let beside = to.with_file_name(format!("{stem}{FEATURES}{packed}"));
    let beside = (!stated.is_empty()).then_some(beside);
    if let Some(other) =
        features_of(&Files::of_disk(), to).into_iter().find(|other| Some(other) != beside.as_ref())
    {
        let (other, to) = (other.display(), to.display());
        let why = format!(
            "would be read as features of the jobs of {to}; move the file away, or choose another name"
        );
        return Err(WorkloadError::Trace(format!("{other}: {why}")));
    }
    let there = [Some(to), beside.as_deref()].into_iter().flatten().find(|file| !force && file.exists());
    if let Some(there) = there {
        let why = "exists and is not overwritten: choose another name, or replace the file with --force";
        return Err(WorkloadError::Trace(format!("{} {why}", there.display())));
    }
    if let Some(beside) = &beside {
        replace(beside, pack, &|out| stated.write(trace, out))?;
    }
    replace(to, pack, &|out| write_lines(trace, out))?;
    Ok(beside)
}

/// Replaces a file by a file with `content`.
fn replace(to: &Path, pack: Pack, content: &Content<'_>) -> Result<(), WorkloadError> {
    let written = atomic_file::replace_shared(to, |file| pack(content, BufWriter::new(file))).flatten();
    written.map_err(|source| WorkloadError::Io { file: to.to_owned(), source })
}

/// Writes a file, compressed if its name says so.
#[cfg(test)]
pub(super) fn write_packed(to: &Path, content: &[u8]) {
    let is_named = |(suffix, _): &&(&str, Pack)| to.to_str().unwrap().ends_with(suffix);
    // Every name ends with the empty suffix, which is the first of the table.
    let (_, pack) = PACKINGS.iter().rev().find(is_named).unwrap();
    replace(to, *pack, &|out| out.write_all(content)).unwrap();
}

/// Writes one line per job. Readers parse seconds as 64-bit floats: arrivals and means up to 13 days are exact to the
/// nanosecond, and dates since 1970 to 0.2 µs. Durations keep their stored precision.
fn write_lines(trace: &Trace, out: &mut dyn Write) -> io::Result<()> {
    for (index, job) in trace.jobs().iter().enumerate() {
        write!(out, "{} {} {}", Seconds(job.arrival.0), job.tasks, Seconds(job.mean.0))?;
        match trace.durations(JobId(index as u32)) {
            Some(durations) => durations.iter().try_for_each(|duration| write!(out, " {duration}"))?,
            None => (0..job.tasks).try_for_each(|_| write!(out, " {}", Seconds(job.mean.0)))?,
        }
        writeln!(out)?;
    }
    Ok(())
}

/// A column beside the features: its name, and a job's value as text, if the trace states it.
type Column = (&'static str, fn(&Trace, JobId) -> Option<String>);

const COLUMNS: [Column; 6] = [
    ("outcome", |trace, job| trace.outcome(job).map(|outcome| outcome.to_string())),
    ("cores", |trace, job| trace.cores(job).map(|cores| cores.to_string())),
    ("memory", |trace, job| trace.memory(job).map(|memory| memory.to_string())),
    ("gpus", |trace, job| trace.gpus(job).map(|gpus| gpus.to_string())),
    ("wait", |trace, job| trace.wait(job).map(|wait| Seconds(wait.0).to_string())),
    ("stages", Trace::stages_text),
];

/// The details that a source states about its jobs, beside tasks and durations.
struct Stated {
    features: Vec<Feature>,
    /// The columns in which some job has a value.
    columns: Vec<Column>,
    /// Comments about the whole trace.
    marks: Vec<String>,
}

/// Properties of the source that later readers of the jobs need.
fn marks(trace: &Trace) -> Vec<String> {
    let unknown = (!trace.counts_tasks()).then(|| TASKS_UNKNOWN.to_owned());
    let google = trace.is_google().then(|| GOOGLE.to_owned());
    let zone = trace.zone().map(|zone| format!("{ZONE}{zone}"));
    [unknown, google, zone].into_iter().flatten().collect()
}

/// Every job of a trace.
fn ids(trace: &Trace) -> impl Iterator<Item = JobId> {
    (0..trace.jobs().len() as u32).map(JobId)
}

/// A job's value of a feature as text; blank if unknown.
fn value(trace: &Trace, job: JobId, feature: Feature) -> String {
    match trace.feature(job, feature) {
        0 => String::new(),
        // Hours are written from 0 to 23.
        hour if feature == Feature::Hour => (hour - 1).to_string(),
        number => number.to_string(),
    }
}

impl Stated {
    fn of(trace: &Trace) -> Self {
        let is_stated = |(_, text): &Column| ids(trace).any(|job| text(trace, job).is_some());
        Self {
            features: Feature::ALL.into_iter().filter(|&feature| trace.states(feature)).collect(),
            columns: COLUMNS.into_iter().filter(is_stated).collect(),
            marks: marks(trace),
        }
    }

    const fn is_empty(&self) -> bool {
        self.features.is_empty() && self.columns.is_empty() && self.marks.is_empty()
    }

    /// Writes comments about the trace, a header and one row per job. Unknown values are blank. Words of the source
    /// become numbers; equal words have equal numbers.
    ///
    /// # Errors
    /// The errors of `out`.
    fn write(&self, trace: &Trace, out: &mut dyn Write) -> io::Result<()> {
        for mark in &self.marks {
            writeln!(out, "# {mark}")?;
        }
        let features = self.features.iter().map(|feature| feature.name());
        let header: Vec<&str> = features.chain(self.columns.iter().map(|(name, _)| *name)).collect();
        if header.is_empty() {
            return Ok(());
        }
        writeln!(out, "{}", header.join(","))?;
        for job in ids(trace) {
            let features = self.features.iter().map(|&feature| value(trace, job, feature));
            let others = self.columns.iter().map(|(_, text)| text(trace, job).unwrap_or_default());
            writeln!(out, "{}", features.chain(others).collect::<Vec<_>>().join(","))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use proptest::prelude::*;
    use volary_actors::base::{Feature, Span, Time};
    use volary_engine::workload::{Format, Outcome, Reading};

    use super::*;
    use crate::workload::read;

    fn jobs(trace: &Trace) -> Vec<(Time, Span, Vec<u64>)> {
        let job = |index: usize| {
            let (id, job) = (JobId(index as u32), trace.jobs()[index]);
            (job.arrival, job.mean, (0..job.tasks).map(|t| trace.duration(id.task(t)).0).collect())
        };
        (0..trace.jobs().len()).map(job).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn written_jobs_are_read_back_unchanged(
            rows in prop::collection::vec(
                (0u64..1 << 50, 0u64..1 << 50, prop::collection::vec(0f32..1e6, 1..6)), 1..20),
        ) {
            let mut trace = Trace::new(Path::new("a.tr"), Format::Tr);
            for (arrival, mean, durations) in &rows {
                trace.push(Time(*arrival), Span(*mean), durations).unwrap();
            }
            let trace = trace.finish();
            let mut text = Vec::new();
            write_lines(&trace, &mut text).unwrap();
            let again = Trace::parse(Path::new("a.tr"), Cursor::new(text), None).unwrap();
            prop_assert_eq!(jobs(&again), jobs(&trace));
        }
    }

    #[test]
    fn every_compression_replaces_the_file_and_is_read_back() {
        let text = "3 2 1.5 1 2\n10.000000001 1 0.000001 0.000001\n";
        let trace = Trace::parse(Path::new("a.tr"), Cursor::new(text), None).unwrap();
        let folder = tempfile::tempdir().unwrap();
        for name in ["b.tr", "b.tr.xz", "b.tr.zst", "b.tr.gz"] {
            let to = folder.path().join(name);
            std::fs::write(&to, "old").unwrap();
            write(&trace, &to, true).unwrap();
            assert_eq!(jobs(&read(&to, &Reading::default()).unwrap()), jobs(&trace), "{name}");
        }
        assert_eq!(std::fs::read_to_string(folder.path().join("b.tr")).unwrap(), text);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 4, "something was left behind");
    }

    /// All details that the source states about a job.
    fn details(trace: &Trace, job: u32) -> (Vec<u32>, Option<Outcome>, Option<f32>, Option<Span>) {
        let job = JobId(job);
        let features = Feature::ALL.map(|feature| trace.feature(job, feature));
        (features.into(), trace.outcome(job), trace.cores(job), trace.wait(job))
    }

    #[test]
    fn features_are_written_beside_the_jobs() {
        let text = "submit,wait,run,tasks,user,hour,size,outcome,cores\n\
            1,,3,2,\"bob, b\",0,8,timed out,\n2,0,4,2,ann,,,,2\n9,0.25,2,1,ann,23,7,F,1.5\n";
        let trace = Trace::parse(Path::new("a.csv"), Cursor::new(text), None).unwrap();
        let folder = tempfile::tempdir().unwrap();
        for (name, features) in [("b.tr", "b.features.csv"), ("c.tr.xz", "c.features.csv.xz")] {
            let to = folder.path().join(name);
            assert_eq!(write(&trace, &to, false).unwrap(), Some(folder.path().join(features)));
            let again = read(&to, &Reading::default()).unwrap();
            assert_eq!(jobs(&again), jobs(&trace), "{name}");
            for job in 0..3 {
                assert_eq!(details(&again, job), details(&trace, job), "{name}, job {job}");
            }
        }
    }

    /// A description of the written jobs equals the description of the source.
    #[test]
    fn unknown_details_of_the_source_stay_unknown() {
        let folder = tempfile::tempdir().unwrap();
        let rewritten = |text: &'static str, to: &str| {
            let trace = Trace::parse(Path::new("a.csv"), Cursor::new(text), None).unwrap();
            let to = folder.path().join(to);
            write(&trace, &to, false).unwrap();
            (trace, read(&to, &Reading::default()).unwrap())
        };
        let (plain, again) = rewritten("submit,run\n1,2\n2,3\n", "plain.tr");
        assert!(!plain.counts_tasks() && !again.counts_tasks());
        let dated = "submit_time,start_time,end_time\n2016-02-02 06:53:00-07:00,2016-02-02 06:53:01-07:00,\
            2016-02-02 06:54:00-07:00\n";
        let (dated, again) = rewritten(dated, "dated.tr.gz");
        assert_eq!((dated.zone(), again.zone()), (Some(-25_200), Some(-25_200)));
        let google = "submit_ms,delay_ms,run_ms,end,class\n0,0,1000,F,1\n0,0,1000,F,1\n5000,0,1000,F,2\n";
        let (google, again) = rewritten(google, "google.tr");
        assert_eq!((google.early(), again.early(), again.is_google()), (2, 2, true));
        let (_, all) = rewritten("submit,run,tasks\n1,2,3\n", "all.tr");
        assert!(all.counts_tasks() && !folder.path().join("all.features.csv").exists());
    }

    #[test]
    fn files_that_exist_are_not_overwritten() {
        let trace =
            Trace::parse(Path::new("a.csv"), Cursor::new("submit,run,user\n1,2,ann\n"), None).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let to = folder.path().join("b.tr");
        for there in ["b.tr", "b.features.csv"] {
            let there = folder.path().join(there);
            std::fs::write(&there, "old").unwrap();
            let error = write(&trace, &to, false).unwrap_err().to_string();
            assert!(
                error.contains(&format!("{} exists", there.display())) && error.contains("--force"),
                "{error}"
            );
            assert_eq!(std::fs::read_to_string(&there).unwrap(), "old");
            std::fs::remove_file(there).unwrap();
        }
        assert!(write(&trace, &to, false).unwrap().is_some());
    }

    /// The features of other jobs must not become features of the new jobs.
    #[test]
    fn a_file_with_features_of_other_jobs_is_refused() {
        let trace = Trace::parse(Path::new("a.tr"), Cursor::new("1 1 1 1"), None).unwrap();
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("b.features.csv.gz"), "user\nann\n").unwrap();
        let error = write(&trace, &folder.path().join("b.tr"), true).unwrap_err().to_string();
        assert!(
            error.contains("b.features.csv.gz: would be read as features") && error.contains("b.tr"),
            "{error}"
        );
        assert!(!folder.path().join("b.tr").exists());
    }

    #[test]
    fn rigid_jobs_are_written_with_one_duration_per_task() {
        let mut trace = Trace::new(Path::new("a.swf"), Format::Swf);
        trace.push_rigid(Time(0), Span::from_secs(7), 3);
        let mut text = Vec::new();
        write_lines(&trace, &mut text).unwrap();
        assert_eq!(text, b"0 3 7 7 7 7\n");
    }

    #[test]
    fn names_with_another_suffix_and_missing_folders_are_refused() {
        let trace = Trace::parse(Path::new("a.tr"), Cursor::new("1 1 1 1"), None).unwrap();
        let error = write(&trace, Path::new("b.swf"), true).unwrap_err().to_string();
        assert!(error.contains("b.swf") && error.contains(".tr.zst"), "{error}");
        let folder = tempfile::tempdir().unwrap();
        let error = write(&trace, &folder.path().join("no/b.tr"), true).unwrap_err().to_string();
        assert!(error.contains("no/b.tr"), "{error}");
    }
}
