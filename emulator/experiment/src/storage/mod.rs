//! The study directory: one folder that a study owns, fills run by run, and can resume.
//!
//! ```text
//! manifest.json               the plan of the study, and its progress
//! runs.log                    the finished runs: their records, and the rows of their tables
//! failed/<id>.json            a run that could not finish, with its log
//! summary.jsonl               a line per run as they finish; in the manifest's order at the end
//! claims.jsonl *.parquet timeline.perfetto-trace report.html
//!                             written at the end, from the runs; claims if the experiment has some, cores.parquet if
//!                             copies burnt real cores
//! report/<n>.js               the cells of a report of a large sweep
//! inputs.log                  the inputs of every actor, in all runs, if run.record.inputs is set
//! logs/<host>.log             what each host's agent logged during a run on hosts; the latest 1 MiB, and up to 1 MiB
//!                             before that in <host>.log.1
//! .lock                       locked while a run owns the folder
//! ```
//!
//! A file is written under a temporary name and renamed, so every file is complete, with these exceptions: `runs.log`
//! and `inputs.log` are complete up to their last frame, `summary.jsonl` grows by lines during the run, the files in
//! `logs/` grow, `.lock` is written in place, and so is the final state in `manifest.json` if the disk has no room for
//! a second file. A study that was interrupted or killed loses only unfinished runs. Finished runs are read from
//! `runs.log`; the other files are for people and other programs. A later study in the same folder may add runs.
//!
//! | module | what it holds |
//! |---|---|
//! | `study_dir` | [`StudyDir`], which a study fills, and [`LockedDir`], in which a report is written again; the report; the default name of a directory |
//! | [`run_store`], [`run_rows`] | [`RunStore`]: `runs.log`; one run in it |
//! | `frames` | the frames of which logs consist |
//! | [`run_record`], [`activity`] | one finished run as it is stored: its summary, and data for its charts |
//! | [`tables`] | the tables and their columns |
//! | `columns` | columns of tables, and files of them |
//! | [`export`] | tables for other programs, with columns that identify the run of each row |
//! | [`manifest`] | `manifest.json`, with the hosts of a run, and the program, machine and files that results come from |
//! | [`perfetto`] | `timeline.perfetto-trace` |
//! | [`input_log`] | `inputs.log`, which `volary replay` reads |
//! | `files` | file names; atomic replacement, the folder's lock; [`Error`] |
//! | [`slices`] | the slices of an experiment that a folder holds |
//! | `load`, [`study`] | one study directory, or the slices of one experiment, as a [`Study`] |
//! | `spec_diff` | differences between the experiments of two manifests |

pub mod activity;
mod columns;
pub mod export;
mod files;
#[cfg(any(test, feature = "fixtures"))]
pub mod fixture;
mod frames;
pub mod input_log;
mod load;
pub mod manifest;
pub mod perfetto;
pub mod run_record;
pub mod run_rows;
pub mod run_store;
pub mod slices;
pub mod spec_diff;
pub mod study;
mod study_dir;
pub mod tables;

pub use files::{
    CLAIMS, Error, FAILED, MANIFEST, REPORT, REPORT_CELLS, RUNS, SUMMARY, TIMELINE, check_own, failure_path,
    is_owned, run_dirs,
};
pub use load::{gaps, load, load_claims, load_failures, load_manifest, load_rows, merge, records_of};
pub use run_store::RunStore;
pub use study::Study;
pub use study_dir::{LockedDir, NewFolder, Render, RenderedReport, StudyDir, latest};

#[cfg(test)]
mod tests;
