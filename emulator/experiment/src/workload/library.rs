//! The search for traces, and a cache of parsed traces: each file is parsed once and shared by all cells.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use volary_engine::workload::{Format, Reading, Trace, TraceSource, WorkloadError};

use super::input::{PACKED, open};
use super::{alibaba, google};
use crate::files::Files;
use crate::guard::guard;

/// A trace in the cache: a file, and how it was read.
#[derive(Debug)]
struct Parsed {
    file: PathBuf,
    reading: Reading,
    trace: Arc<Trace>,
}

/// Finds trace files and caches parsed traces.
#[derive(Debug)]
pub struct Traces {
    files: Files,
    folders: Vec<PathBuf>,
    parsed: Mutex<Vec<Parsed>>,
}

impl Traces {
    /// Searches `folders` of the disk, in that order.
    pub fn new(folders: Vec<PathBuf>) -> Self {
        Self { files: Files::of_disk(), folders, parsed: Mutex::default() }
    }

    /// Searches the experiment file's `folder`, then the folders that `files` names.
    pub fn beside(files: &Files, folder: &Path) -> Self {
        let folders = std::iter::once(folder.to_owned()).chain(files.folders().iter().cloned()).collect();
        Self { files: files.clone(), folders, parsed: Mutex::default() }
    }

    /// The path at which `file` is found.
    ///
    /// # Errors
    /// [`WorkloadError::Missing`] with every path that was searched.
    pub fn find(&self, file: &Path) -> Result<PathBuf, WorkloadError> {
        let looked: Vec<PathBuf> = if file.is_absolute() {
            vec![file.to_owned()]
        } else {
            self.folders.iter().map(|folder| folder.join(file)).collect()
        };
        looked
            .iter()
            .find(|path| self.files.has(path))
            .cloned()
            .ok_or_else(|| WorkloadError::Missing { file: file.to_owned(), looked })
    }
}

impl TraceSource for Traces {
    fn open(&self, file: &Path, reading: &Reading) -> Result<Arc<Trace>, WorkloadError> {
        let file = self.find(file)?;
        // The lock is held while parsing, so concurrent cells do not parse the same file twice.
        let mut parsed = guard(&self.parsed);
        if let Some(known) = parsed.iter().find(|known| known.file == file && known.reading == *reading) {
            return Ok(Arc::clone(&known.trace));
        }
        let trace = Arc::new(load(&self.files, &file, reading)?);
        parsed.push(Parsed { file, reading: reading.clone(), trace: Arc::clone(&trace) });
        Ok(trace)
    }
}

/// Reads a trace with the given options, and the features beside it.
///
/// # Errors
/// When a file cannot be read, is damaged, malformed or empty.
pub fn read(file: &Path, reading: &Reading) -> Result<Trace, WorkloadError> {
    load(&Files::of_disk(), file, reading)
}

/// Whether a folder is a trace: a folder with Google's event tables, or with Alibaba's batch tables.
pub fn is_trace_folder(folder: &Path) -> bool {
    google::is_google(folder) || alibaba::is_alibaba(folder)
}

fn load(files: &Files, file: &Path, reading: &Reading) -> Result<Trace, WorkloadError> {
    let (is_google, is_alibaba) = (google::is_google(file), alibaba::is_alibaba(file));
    if is_google || is_alibaba {
        let format = if is_google { Format::GoogleEvents } else { Format::AlibabaTables };
        reading.check(file, format)?;
        let mut trace = if is_google {
            google::read(files, file, reading.jobs)?
        } else {
            alibaba::read(files, file, reading)?
        };
        reading.unused_zone(format).into_iter().for_each(|note| trace.note(note));
        return Ok(trace);
    }
    let features = features_of(files, file).into_iter().map(|name| {
        let input = open(files, &name)?;
        Ok((name, input))
    });
    let features = features.collect::<Result<_, WorkloadError>>()?;
    let parsed = Trace::parse_with(file, open(files, file)?, reading, features);
    parsed.map_err(|error| {
        let is_alone = matches!(error, WorkloadError::Trace(_)) && reading.columns.is_none();
        if is_alone && google::is_part(file) {
            google::alone(file)
        } else if is_alone && alibaba::is_instances(file) {
            alibaba::alone(file)
        } else {
            error
        }
    })
}

/// Suffixes of files with the features of jobs. They replace the suffix of a `.tr` file.
const BESIDE: [&str; 3] = [FEATURES, "_features.csv", "_meta.csv"];
/// The suffix of the file that volary writes.
pub(super) const FEATURES: &str = ".features.csv";

/// The files beside a `.tr` file that hold features of its jobs.
pub(super) fn features_of(files: &Files, file: &Path) -> Vec<PathBuf> {
    let name = file.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let plain = PACKED.iter().find_map(|packed| name.strip_suffix(&format!(".tr{packed}")));
    let Some(stem) = plain else { return Vec::new() };
    let named = |end: &str| {
        let names = PACKED.iter().map(|packed| file.with_file_name(format!("{stem}{end}{packed}")));
        names.into_iter().find(|name| files.has(name))
    };
    BESIDE.iter().filter_map(|end| named(end)).collect()
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use volary_actors::base::{Feature, JobId};

    use super::super::convert::write_packed;
    use super::super::input::decompress;
    use super::*;

    /// Only the first job is read.
    fn first_job() -> Reading {
        Reading { jobs: Some(1), ..Reading::default() }
    }

    fn with_file(name: &str, text: &str) -> (tempfile::TempDir, Traces) {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(name), text).unwrap();
        let traces = Traces::new(vec![PathBuf::from("/nonexistent"), folder.path().to_owned()]);
        (folder, traces)
    }

    #[test]
    fn a_trace_that_several_cells_use_is_parsed_once() {
        let (folder, traces) = with_file("a.tr", "10 1 2 2\n11 1 2 2\n");
        let first = traces.open("a.tr".as_ref(), &Reading::default()).unwrap();
        std::fs::write(folder.path().join("a.tr"), "garbage").unwrap();
        assert!(Arc::ptr_eq(&first, &traces.open("a.tr".as_ref(), &Reading::default()).unwrap()));
        assert!(traces.open("a.tr".as_ref(), &first_job()).is_err());
    }

    #[test]
    fn the_error_for_a_missing_trace_lists_the_folders() {
        let (folder, traces) = with_file("a.tr", "");
        let text = traces.open("b.tr.xz".as_ref(), &Reading::default()).unwrap_err().to_string();
        let beside = folder.path().join("b.tr.xz").display().to_string();
        for part in ["/nonexistent/b.tr.xz", &beside, "VOLARY_TRACES", "fallback", "published"] {
            assert!(text.contains(part), "{text}");
        }
        let text = traces.open("/dev/zero".as_ref(), &Reading::default()).unwrap_err().to_string();
        assert!(text.contains("pipe or device"), "{text}");
    }

    #[test]
    fn features_beside_a_trace_are_read_with_it() {
        let (folder, traces) = with_file("a.tr", "10 1 2 2\n11 1 2 2\n");
        let beside = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
        let packed = compressed(b"user\nann\nbob\n");
        std::fs::write(folder.path().join("a.features.csv.gz"), &packed[1].1).unwrap();
        beside("a_meta.csv", "line,priority\n1,9\n2,9\n");
        beside("b_meta.csv", "unrelated");
        let trace = traces.open("a.tr".as_ref(), &Reading::default()).unwrap();
        let of = |feature| [0, 1].map(|job| trace.feature(JobId(job), feature));
        assert_eq!((of(Feature::User), of(Feature::Priority)), ([1, 2], [1, 1]));
        // A file of features may have more rows than the jobs that are read.
        assert_eq!(traces.open("a.tr".as_ref(), &first_job()).unwrap().jobs().len(), 1);
        beside("a_meta.csv", "line,priority\n1,9\n");
        let error = read(&folder.path().join("a.tr"), &Reading::default()).unwrap_err().to_string();
        assert!(error.contains("a_meta.csv: has 1 rows for the 2 jobs"), "{error}");
    }

    /// A small compressed file may expand to gigabytes of zeros.
    #[test]
    fn compressed_zeros_are_refused_at_the_first_byte() {
        let zeros = compressed(&vec![0; 64 << 20]);
        for (suffix, bytes) in zeros {
            for name in ["a.csv", "a.tr", "a.swf"] {
                let error = parse(name, bytes.clone()).unwrap_err().to_string();
                assert!(
                    error.contains(&format!("{name}:1")) && error.contains("zero byte"),
                    "{suffix}: {error}"
                );
            }
        }
    }

    fn parse(name: &str, data: impl Into<Vec<u8>>) -> Result<Trace, WorkloadError> {
        let io = |source| WorkloadError::Io { file: name.into(), source };
        Trace::parse(Path::new(name), decompress(Cursor::new(data.into())).map_err(io)?, None)
    }

    /// The content `data` in each supported compression, with its suffix.
    fn compressed(data: &[u8]) -> [(&'static str, Vec<u8>); 3] {
        let folder = tempfile::tempdir().unwrap();
        ["xz", "gz", "zst"].map(|suffix| {
            let file = folder.path().join(format!("a.{suffix}"));
            write_packed(&file, data);
            (suffix, std::fs::read(file).unwrap())
        })
    }

    #[test]
    fn compressed_files_are_recognised_by_their_first_bytes() {
        let text = "7.527 2 15.9 6.4 25.4\n15.092 1 8.7 8.7\n";
        let plain = parse("a.tr", text).unwrap();
        for (suffix, bytes) in compressed(text.as_bytes()) {
            // The file name claims another compression, as the name of a renamed file may do.
            assert_eq!(parse("a.tr", bytes).unwrap(), plain, "{suffix}");
        }
    }

    /// Tapes and block devices append zeros; `gzip -t` accepts them.
    #[test]
    fn zeros_after_a_gzip_file_are_accepted() {
        let text = "7.527 2 15.9 6.4 25.4\n15.092 1 8.7 8.7\n";
        let (plain, gz) = (parse("a.tr", text).unwrap(), compressed(text.as_bytes())[1].1.clone());
        let zeros = |n: usize| vec![0; n];
        for bytes in [gz.clone(), [gz.clone(), zeros(1)].concat(), [gz.clone(), zeros(100_000)].concat()] {
            assert_eq!(parse("a.tr", bytes).unwrap(), plain);
        }
        // Two members are one file, even with padding between them.
        for between in [0, 512] {
            let twice = parse("a.tr", [gz.clone(), zeros(between), gz.clone()].concat()).unwrap();
            assert_eq!(twice.jobs().len(), 4);
        }
        for tail in [&b"x"[..], b"\0\0x", b"\x1f\x8b"] {
            let error = parse("a.tr", [&gz[..], tail].concat()).unwrap_err().to_string();
            assert!(error.contains("breaks off or is damaged"), "{tail:?}: {error}");
        }
    }

    #[test]
    fn a_truncated_compressed_file_is_reported_as_damaged() {
        let text: String =
            (0..20_000).map(|k| format!("{k} 2 {} {} {}\n", k % 97, k % 89, k * 7 % 83)).collect();
        for (suffix, bytes) in compressed(text.as_bytes()) {
            for keep in [bytes.len() / 2, bytes.len() - 3] {
                let error = parse(&format!("a.tr.{suffix}"), &bytes[..keep]).unwrap_err().to_string();
                // The readable part may end with half a line; the decoder's error takes precedence over the error for
                // the line.
                assert!(
                    error.contains("breaks off or is damaged") && error.contains("fetch"),
                    "{suffix}: {error}"
                );
            }
            let mut damaged = bytes.clone();
            let middle = damaged.len() / 2;
            damaged[middle..middle + 8].fill(0x55);
            let result = parse("a.tr", damaged);
            assert!(result.is_err(), "{suffix}: damage went unnoticed");
        }
    }
}
