//! The study directory: one folder that a study owns, fills run by run, and can resume.
//!
//! ```text
//! manifest.json               what is run, and how far it came
//! summary.jsonl               a line per run as they finish; in the manifest's order at the end
//! claims.jsonl                a line per claim with its verdict, written at the end, if the experiment has claims
//! cells/<id>.json             one finished run; its presence says that the run is complete
//! cells/<id>.jobs.parquet     its rows (and one file for each other table)
//! cells/<id>.failed.json      a run that could not finish, with its log
//! records.jsonl.zst           the finished runs, moved here from `cells/` at the end
//! *.parquet                   their rows, moved here at the end (cores.parquet, if copies burnt real cores)
//! timeline.perfetto-trace report.html
//!                             written at the end, from the runs
//! inputs.log                  the inputs of every actor, in all runs, if run.record.inputs is set
//! report/<n>.js               the cells of a report of a large sweep
//! logs/<host>.log             what each host's agent logged during a run on hosts; the latest 1 MiB, and up to 1 MiB
//!                             before that in <host>.log.1
//! .lock                       locked while a run owns the folder
//! ```
//!
//! A file is written under a temporary name and renamed, so every file is complete, with these exceptions:
//! `summary.jsonl` grows by lines during the run, `inputs.log` is complete up to its last frame, the files in `logs/`
//! grow, `.lock` is written in place, and so is the end of a run in `manifest.json` if the disk has no room for a
//! second file. A study that was interrupted or killed loses only unfinished runs. Files in `cells/` are removed at the
//! end, after the files that hold the same are complete; until then, and where both exist, those in `cells/` count. A
//! later study in the same folder may add runs.
//!
//! | module | what it holds |
//! |---|---|
//! | `study_dir` | [`StudyDir`], which a study fills, and [`LockedDir`], in which a report is written again |
//! | [`activity`] | the messages and the load on the timeline of a run |
//! | [`run_record`] | one finished run as it is stored: its summary, and data for its charts |
//! | `records`, `record_list` | the records of finished runs, in `cells/` or packed; in memory |
//! | `rendered` | the report in the folder |
//! | `paths`, `files` | file names; files that appear whole, the folder's lock |
//! | [`manifest`], [`hosts`] | `manifest.json`, and what it says of the hosts of a run |
//! | [`tables`], `labels`, `rows` | the Parquet tables, the columns that say which run a row is of, the rows of runs |
//! | [`export`] | flat tables for other programs |
//! | [`perfetto`] | `timeline.perfetto-trace` |
//! | [`input_log`] | `inputs.log`, which `volary replay` reads |
//! | [`planned`] | the points of the experiment in a manifest |
//! | [`origin`] | program, machine and files that results come from |
//! | [`slices`] | which part of an experiment a folder holds |
//! | `load`, `merge`, [`study`] | one study directory, or the slices of one experiment, as a [`Study`] |
//! | `gaps` | what a study lacks of its experiment |
//! | `collection` | the study directories in a folder |
//! | `default_folder` | the folder that is used where none is named |
//! | `spec_diff` | differences between the experiments of two manifests |
//! | `error`, `lost_rows` | [`Error`] |

pub mod activity;
mod collection;
mod default_folder;
mod error;
pub mod export;
mod files;
#[cfg(test)]
pub(crate) mod fixture;
mod gaps;
pub mod hosts;
pub mod input_log;
mod labels;
mod load;
mod lost_rows;
pub mod manifest;
mod merge;
pub mod origin;
mod paths;
pub mod perfetto;
pub mod planned;
mod record_list;
mod records;
mod rendered;
mod rows;
pub mod run_record;
pub mod slices;
pub mod spec_diff;
pub mod study;
mod study_dir;
pub mod tables;

pub use collection::run_dirs;
pub use default_folder::{NewFolder, latest};
pub use error::Error;
pub use files::{check_own, is_owned};
pub use gaps::gaps;
pub use load::{
    StudyRows, load, load_claims, load_failures, load_manifest, load_records, load_rows, load_summary,
    records_of,
};
pub use merge::merge;
pub use paths::{CELLS, CLAIMS, MANIFEST, RECORDS, REPORT, REPORT_CELLS, SUMMARY, TIMELINE, failure_path};
pub use rendered::{Render, RenderedReport};
pub use study::Study;
pub use study_dir::{LockedDir, StudyDir};

#[cfg(test)]
mod tests;
