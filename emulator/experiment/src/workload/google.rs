//! Folders with Google's trace of 2011: `job_events/` and `task_events/`, each with files `part-*.csv`, plain or
//! compressed.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use volary_engine::workload::{Part, Trace, WorkloadError};

use super::input::open;
use crate::files::Files;

const JOBS: &str = "job_events";
const TASKS: &str = "task_events";
/// Limit on the missing parts that an error lists.
const LISTED: usize = 12;

/// Whether a folder holds Google's trace of 2011.
pub(super) fn is_google(folder: &Path) -> bool {
    folder.join(JOBS).is_dir()
}

/// Whether a file is named like a part of Google's tables, such as `part-00000-of-00500.csv.gz`.
pub(super) fn is_part(file: &Path) -> bool {
    let name = file.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    numbers(name).is_some_and(|(_, of)| of.is_some())
}

/// The error for a part that is read alone.
pub(super) fn alone(part: &Path) -> WorkloadError {
    WorkloadError::Trace(format!(
        "{}: one part of Google's event tables cannot be read alone, because it has no header and jobs span several \
         parts; put the parts for jobs into FOLDER/{JOBS}/ and the parts for tasks into FOLDER/{TASKS}/, and run \
         `volary trace describe FOLDER`, or `volary trace convert FOLDER X.tr` to make a trace for experiments",
        part.display()
    ))
}

/// Reads the first `jobs` jobs of a folder of Google's tables; all jobs if `None`.
///
/// # Errors
/// When parts between others are missing, or a part cannot be read, is damaged or malformed.
pub(super) fn read(files: &Files, folder: &Path, jobs: Option<u32>) -> Result<Trace, WorkloadError> {
    let of_jobs = Parts::find(&folder.join(JOBS))?;
    let tasks = folder.join(TASKS);
    let of_tasks = tasks.is_dir().then(|| Parts::find(&tasks)).transpose()?;
    let notes: Vec<String> =
        [Some(&of_jobs), of_tasks.as_ref()].into_iter().flatten().filter_map(Parts::note).collect();
    let opened = |parts: Parts| {
        parts.files.into_iter().map(|name| -> Part { Ok((name.clone(), open(files, &name)?)) })
    };
    let mut trace = Trace::parse_google(folder, opened(of_jobs), of_tasks.map(opened), jobs)?;
    notes.into_iter().for_each(|note| trace.note(note));
    Ok(trace)
}

/// The parts of a table.
struct Parts {
    folder: PathBuf,
    /// Files of the parts, in order.
    files: Vec<PathBuf>,
    /// Number of all parts, as the file names state it.
    of: Option<usize>,
}

impl Parts {
    fn find(folder: &Path) -> Result<Self, WorkloadError> {
        let io = |source| WorkloadError::Io { file: folder.to_owned(), source };
        let mut found = BTreeMap::new();
        let mut of = None;
        for entry in std::fs::read_dir(folder).map_err(io)? {
            let path = entry.map_err(io)?.path();
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            let Some((number, all)) = numbers(name) else { continue };
            of = of.max(all);
            if let Some(other) = found.insert(number, path.clone()) {
                let names = [&other, &path].map(|path| path.display().to_string()).join(" and ");
                return Err(WorkloadError::Trace(format!("{names} are the same part; delete one")));
            }
        }
        let missing = missing(&found);
        if found.is_empty() {
            let why = io::Error::new(io::ErrorKind::NotFound, "the folder has no file part-*.csv.gz");
            return Err(io(why));
        }
        if !missing.is_empty() {
            let list: Vec<String> =
                missing.iter().take(LISTED).map(|part| format!("part-{part:05}")).collect();
            let more = if missing.len() > LISTED { ", …" } else { "" };
            return Err(WorkloadError::Trace(format!(
                "{}: lacks {} of its parts: {}{more}; fetch these parts from Google's cluster-data, or delete the parts after \
                 the first gap",
                folder.display(),
                missing.len(),
                list.join(", ")
            )));
        }
        Ok(Self { folder: folder.to_owned(), files: found.into_values().collect(), of })
    }

    /// A note on parts that are missing at the end.
    fn note(&self) -> Option<String> {
        let of = self.of.filter(|&of| of > self.files.len())?;
        Some(format!("{} has the first {} of {of} parts", self.folder.display(), self.files.len()))
    }
}

/// The numbers of missing parts before the last existing one.
fn missing(found: &BTreeMap<usize, PathBuf>) -> Vec<usize> {
    let last = found.keys().next_back().copied().unwrap_or(0);
    (0..last).filter(|part| !found.contains_key(part)).collect()
}

/// The number of a part and the number of parts in a file name: `part-00003-of-00500.csv.gz`.
fn numbers(name: &str) -> Option<(usize, Option<usize>)> {
    let (numbers, suffix) = name.strip_prefix("part-")?.split_once('.')?;
    let known = ["csv", "csv.gz", "csv.xz", "csv.zst"].contains(&suffix);
    let (number, of) = match numbers.split_once("-of-") {
        Some((number, of)) => (number, Some(of.parse().ok()?)),
        None => (numbers, None),
    };
    // Numbers have at most five digits, so a stray file name cannot make the reader expect billions of parts.
    let number = number.parse().ok().filter(|&number: &usize| known && number < 100_000)?;
    Some((number, of))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use volary_actors::base::{Feature, JobId, Span, Time};
    use volary_engine::workload::{Outcome, Reading};

    use super::super::convert::write_packed;
    use super::*;

    const JOBS_0: &str = "0,,1,0,ann,2,n1,l1\n\
        1000000,,2,0,bob,1,n2,l1\n\
        2000000,,2,1,bob,1,n2,l1\n\
        3000000,,3,0,bob,0,n3,l2\n";
    const JOBS_1: &str = "9000000,,2,4,bob,1,n2,l1\n\
        9500000,,3,1,bob,0,n3,l2\n\
        10000000,,3,2,bob,0,n3,l2\n\
        10000000,,3,0,bob,0,n3,l2\n\
        11000000,,3,1,bob,0,n3,l2\n\
        12000000,,3,5,bob,0,n3,l2\n\
        9223372036854775807,,1,4,ann,2,n1,l1\n";
    const TASKS_0: &str = "2000000,,2,0,7,1,bob,1,9,0.25,0.1,0,0\n\
        2000000,,2,1,8,1,bob,1,9,0.25,0.1,0,0\n\
        4000000,,2,0,7,4,bob,1,9,0.25,0.1,0,0\n\
        5000000,,2,1,8,2,bob,1,9,0.25,0.1,0,0\n\
        5000000,,2,1,8,1,bob,1,9,0.25,0.1,0,0\n\
        9000000,,2,1,8,4,bob,1,9,0.25,0.1,0,0\n\
        9000000,,9,1,8,4,bob,1,9,0.25,0.1,0,0\n";

    /// Writes a compressed part.
    fn part(folder: &Path, name: &str, text: &str) {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        write_packed(&path, text.as_bytes());
    }

    fn complaint(folder: &Path) -> String {
        read(&Files::of_disk(), folder, None).unwrap_err().to_string()
    }

    #[test]
    fn events_become_jobs_with_outcomes_and_requests() {
        let folder = tempfile::tempdir().unwrap();
        let here = folder.path();
        part(here, "job_events/part-00000-of-00003.csv.gz", JOBS_0);
        part(here, "job_events/part-00001-of-00003.csv.gz", JOBS_1);
        let jobs = read(&Files::of_disk(), here, None).unwrap();
        assert_eq!((jobs.jobs().len(), jobs.counts_tasks()), (2, false));
        assert!(jobs.notes().iter().any(|note| note.contains("first 2 of 3 parts")), "{:?}", jobs.notes());
        part(here, "task_events/part-00000-of-00001.csv.gz", TASKS_0);
        let trace = read(&Files::of_disk(), here, None).unwrap();
        let [second, third] = [0, 1].map(JobId);
        assert_eq!(
            (trace.jobs()[0].arrival, trace.durations(second)),
            (Time(1_000_000_000), Some(&[2.0f32, 4.0][..]))
        );
        assert_eq!(
            (trace.wait(second), trace.outcome(second)),
            (Some(Span::from_secs(1)), Some(Outcome::Finished))
        );
        assert_eq!(trace.cores(second), Some(8.0));
        // A job that was evicted, submitted again and killed is measured by its last run.
        assert_eq!((trace.run(third), trace.outcome(third)), (Span::from_secs(1), Some(Outcome::Killed)));
        assert_eq!((trace.wait(third), trace.cores(third)), (Some(Span::from_secs(8)), None));
        let of = |feature| [second, third].map(|job| trace.feature(job, feature));
        assert_eq!(
            (of(Feature::User), of(Feature::LogicalName), of(Feature::Priority)),
            ([2, 2], [1, 2], [1, 0])
        );
        let notes = trace.notes().join("; ");
        assert!(
            notes.contains("1 of jobs that had not ended") && notes.contains("job_events does not have"),
            "{notes}"
        );
        assert_eq!(read(&Files::of_disk(), here, Some(1)).unwrap().jobs().len(), 1);
    }

    #[test]
    fn the_error_for_a_part_read_alone_explains_the_folders() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("part-00000-of-00500.csv");
        fs::write(&file, JOBS_0).unwrap();
        let error = super::super::read(&file, &Reading::default()).unwrap_err().to_string();
        assert!(error.contains("`volary trace convert FOLDER X.tr`"), "{error}");
        // A table with a header may have any name.
        fs::write(&file, "arrival_s,ntasks,mean_s\n1,2,3\n").unwrap();
        assert_eq!(super::super::read(&file, &Reading::default()).unwrap().jobs().len(), 1);
    }

    #[test]
    fn errors_name_missing_and_damaged_parts() {
        let folder = tempfile::tempdir().unwrap();
        let here = folder.path();
        fs::create_dir(here.join("job_events")).unwrap();
        assert!(complaint(here).contains("no file part-*.csv.gz"));
        part(here, "job_events/part-00000.csv.gz", JOBS_0);
        part(here, "job_events/part-00003.csv.gz", JOBS_1);
        let error = complaint(here);
        for text in ["lacks 2 of its parts", "part-00001, part-00002", "job_events"] {
            assert!(error.contains(text), "{error}");
        }
        fs::remove_file(here.join("job_events/part-00003.csv.gz")).unwrap();
        fs::write(here.join("job_events/part-00000.csv"), JOBS_0).unwrap();
        assert!(complaint(here).contains("are the same part"));
        fs::remove_file(here.join("job_events/part-00000.csv")).unwrap();
        for (text, parts) in [
            ("0,,1,0,ann,2,n1\n", &["part-00001.csv.gz:1", "7 of the 8 columns"][..]),
            ("0,,1,9,ann,2,n1,l1\n", &["field 4 (event type)", "`9`"]),
            ("-1,,1,0,ann,2,n1,l1\n", &["field 1 (time)", "`-1`"]),
            ("0,,x,0,ann,2,n1,l1\n", &["field 3 (job ID)", "`x`"]),
        ] {
            part(here, "job_events/part-00001.csv.gz", text);
            let error = complaint(here);
            assert!(parts.iter().all(|part| error.contains(part)), "{text}: {error}");
        }
        part(here, "job_events/part-00001.csv.gz", JOBS_1);
        part(here, "task_events/part-00000.csv.gz", "1,,2,4000000000,7,1,bob,1,9,0.25,0.1,0,0\n");
        assert!(complaint(here).contains("field 4 (task index)"));
    }
}
