//! The conversion of traces to `.tr`, plain or compressed by suffix.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use volary_actors::base::JobId;
use volary_engine::workload::{Trace, WorkloadError};

/// Compression levels: the defaults of the tools, which favour reasonable speed.
const XZ_LEVEL: u32 = 6;
const ZSTD_LEVEL: i32 = 3;

/// Writes a trace in one of the packings.
type Pack = fn(&Trace, BufWriter<File>) -> io::Result<()>;

/// The packings by the end of a file's name.
const PACKINGS: [(&str, Pack); 4] = [
    (".tr", |trace, mut out| {
        write_lines(trace, &mut out)?;
        out.flush()
    }),
    (".tr.xz", |trace, out| {
        let mut encoder = liblzma::write::XzEncoder::new(out, XZ_LEVEL);
        write_lines(trace, &mut encoder)?;
        encoder.finish()?.flush()
    }),
    (".tr.zst", |trace, out| {
        let mut encoder = zstd::stream::write::Encoder::new(out, ZSTD_LEVEL)?;
        write_lines(trace, &mut encoder)?;
        encoder.finish()?.flush()
    }),
    (".tr.gz", |trace, out| {
        let mut encoder = flate2::write::GzEncoder::new(out, flate2::Compression::default());
        write_lines(trace, &mut encoder)?;
        encoder.finish()?.flush()
    }),
];

/// Writes the jobs to `to`, whose name ends in `.tr`, `.tr.xz`, `.tr.zst` or `.tr.gz`. An existing file is replaced
/// when everything is written.
///
/// # Errors
/// When the name has another suffix, or the file cannot be written.
pub fn write(trace: &Trace, to: &Path) -> Result<(), WorkloadError> {
    let name = to.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let Some((_, pack)) = PACKINGS.iter().find(|(suffix, _)| name.ends_with(suffix)) else {
        let why = format!("`{}` must end in .tr, .tr.xz, .tr.zst or .tr.gz", to.display());
        return Err(WorkloadError::config("output", why));
    };
    let part = part_name(to);
    let written = File::create(&part).and_then(|file| pack(trace, BufWriter::new(file)));
    let moved = written.and_then(|()| std::fs::rename(&part, to));
    moved.map_err(|source| {
        // Best effort: the original error is reported.
        let _ = std::fs::remove_file(&part);
        WorkloadError::Io { file: to.to_owned(), source }
    })
}

/// Writes one line per job. Arrivals and means are exact to the nanosecond up to 13 days (off by at most one beyond),
/// durations to their stored precision; reading the lines again gives the same jobs.
///
/// # Errors
/// Errors of `out`.
pub fn write_lines(trace: &Trace, out: &mut impl Write) -> io::Result<()> {
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

/// The name of the file while it is written, so that a partial file is never mistaken for a complete one.
fn part_name(to: &Path) -> PathBuf {
    let mut name = to.as_os_str().to_owned();
    name.push(".part");
    name.into()
}

/// Nanoseconds as decimal seconds without trailing zeros.
struct Seconds(u64);

impl std::fmt::Display for Seconds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (whole, part) = (self.0 / 1_000_000_000, self.0 % 1_000_000_000);
        if part == 0 {
            return write!(f, "{whole}");
        }
        write!(f, "{whole}.{}", format!("{part:09}").trim_end_matches('0'))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use proptest::prelude::*;
    use volary_actors::base::{Span, Time};
    use volary_engine::workload::Format;

    use super::super::read;
    use super::*;

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
        fn what_is_written_reads_back_the_same(
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
    fn every_packing_reads_back_and_replaces_the_file() {
        let text = "3 2 1.5 1 2\n10.000000001 1 0.000001 0.000001\n";
        let trace = Trace::parse(Path::new("a.tr"), Cursor::new(text), None).unwrap();
        let folder = tempfile::tempdir().unwrap();
        for name in ["b.tr", "b.tr.xz", "b.tr.zst", "b.tr.gz"] {
            let to = folder.path().join(name);
            std::fs::write(&to, "old").unwrap();
            write(&trace, &to).unwrap();
            assert_eq!(jobs(&read(&to, None, None).unwrap()), jobs(&trace), "{name}");
        }
        assert_eq!(std::fs::read_to_string(folder.path().join("b.tr")).unwrap(), text);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 4, "something was left behind");
    }

    #[test]
    fn rigid_jobs_are_written_task_by_task() {
        let mut trace = Trace::new(Path::new("a.swf"), Format::Swf);
        trace.push_rigid(Time(0), Span::from_secs(7), 3);
        let mut text = Vec::new();
        write_lines(&trace, &mut text).unwrap();
        assert_eq!(text, b"0 3 7 7 7 7\n");
    }

    #[test]
    fn other_names_and_folders_that_do_not_exist_are_refused() {
        let trace = Trace::parse(Path::new("a.tr"), Cursor::new("1 1 1 1"), None).unwrap();
        let error = write(&trace, Path::new("b.swf")).unwrap_err().to_string();
        assert!(error.contains("b.swf") && error.contains(".tr.zst"), "{error}");
        let folder = tempfile::tempdir().unwrap();
        let error = write(&trace, &folder.path().join("no/b.tr")).unwrap_err().to_string();
        assert!(error.contains("no/b.tr"), "{error}");
    }
}
