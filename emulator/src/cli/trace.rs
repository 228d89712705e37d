//! The `volary trace` command, with its option `--columns`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::str::FromStr;

use anyhow::Context;
use clap::{Args, Subcommand};
use volary_actors::base::{Feature, JobId, Span};
use volary_actors::predict::PredictorKind;
use volary_engine::workload::{ColumnNames, Outcome, Reading, Share, SizeBy, Trace, Zone};
use volary_experiment::config::error::{did_you_mean, listed};
use volary_experiment::files::Files;
use volary_experiment::number::plural;
use volary_experiment::workload::describe::{Description, TraceComparison, compare, describe};
use volary_experiment::workload::predict::{Question, evaluate};
use volary_experiment::workload::sources::{SOURCES, TraceOrigin, sources};
use volary_experiment::workload::{self, Reference, Traces};

use super::output::{print, print_exact, show, width, write_file};

/// Describe, compare, predict or convert workload traces: .tr (one job per line: arrival_s num_tasks mean_s dur_1 …
/// dur_n), .swf (Standard Workload Format), tables with one row per job as .csv, .jsonl or .parquet, all plain or as
/// .xz, .zst or .gz, and folders with Google's job_events of 2011 or Alibaba's batch_task.csv of 2018.
#[derive(Debug, Args)]
pub(super) struct Options {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Describe a trace: jobs, fan-outs, durations, arrivals, and a comparison with published figures.
    Describe {
        /// The trace; the folders of VOLARY_TRACES are also searched.
        file: PathBuf,
        /// Published trace to compare this trace with.
        #[arg(long)]
        reference: Option<Reference>,
        /// Boundary between short and long jobs.
        #[arg(long)]
        cutoff: Option<Span>,
        /// Print JSON.
        #[arg(long)]
        json: bool,
        /// Also write a page of charts.
        #[arg(long, value_name = "FILE")]
        html: Option<PathBuf>,
        #[command(flatten)]
        reading: ReadArgs,
    },
    /// Compare traces by the characteristics of Park's thesis (Table 3.1), with the numbers behind each characteristic.
    Compare {
        /// The traces; the folders of VOLARY_TRACES are also searched.
        #[arg(required = true, value_name = "FILE")]
        files: Vec<PathBuf>,
        /// Print JSON.
        #[arg(long)]
        json: bool,
        /// Also write a page of charts.
        #[arg(long, value_name = "FILE")]
        html: Option<PathBuf>,
        #[command(flatten)]
        reading: ReadArgs,
    },
    /// Predict the run time of each job from similar jobs, and measure the errors.
    Predict {
        /// The traces; the folders of VOLARY_TRACES are also searched.
        #[arg(required = true, value_name = "FILE")]
        files: Vec<PathBuf>,
        /// Features by which jobs are similar, such as user,name,lname,class; each is used alone and in pairs. If
        /// absent, all features of the trace except the hour.
        #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = feature)]
        features: Vec<Feature>,
        /// The predictor: jvupredict predicts a point, 3sigma also a distribution.
        #[arg(long, value_name = "NAME", value_parser = predictor, default_value = "jvupredict")]
        predictor: PredictorKind,
        /// Count only jobs that finished; predictions use all jobs.
        #[arg(long, value_name = "OUTCOME", value_parser = ["finished"])]
        only: Option<String>,
        /// Also evaluate parts of the trace separately.
        #[arg(long, value_name = "PART", value_parser = ["week"])]
        by: Option<String>,
        /// Print JSON, with a line per trace.
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        reading: ReadArgs,
    },
    /// Convert a trace to the .tr format; the suffix of the new file selects the compression (.tr, .tr.xz, .tr.zst,
    /// .tr.gz). Sources are .tr, .swf and .csv files, compressed or not, and folders with Google's job_events or
    /// Alibaba's batch_task.csv. Features, outcomes, cores, waits and stages are written to X.features.csv beside X.tr.
    Convert {
        /// The trace; the folders of VOLARY_TRACES are also searched.
        file: PathBuf,
        /// The new file.
        to: PathBuf,
        /// Replace the new file and the file of features if they exist.
        #[arg(long)]
        force: bool,
        #[command(flatten)]
        reading: ReadArgs,
    },
    /// List the sources of public traces, with licence, checksum, the command that reads each, and the information that
    /// is lost.
    Sources {
        /// Name of one trace; all if absent.
        name: Option<String>,
    },
}

pub(super) fn main(options: &Options) -> anyhow::Result<ExitCode> {
    match &options.command {
        Command::Describe { file, reference, cutoff, json, html, reading } => {
            let description = describe(&read(file, &reading.of(file)?)?, *reference, *cutoff);
            write_page(html.as_deref(), std::slice::from_ref(&description), None)?;
            let fitted = |width: usize| format!("{description:width$}");
            show(*json, || &description, || width().map_or_else(|| description.to_string(), fitted))
        }
        Command::Compare { files, json, html, reading } => {
            let described = files.iter().zip(reading.of_files(files)?);
            let described = described.map(|(file, reading)| Ok(describe(&read(file, &reading)?, None, None)));
            let described = described.collect::<anyhow::Result<Vec<_>>>()?;
            let comparison = compare(&described);
            write_page(html.as_deref(), &described, Some(&comparison))?;
            show(*json, || &comparison, || comparison.to_string())
        }
        Command::Predict { files, features, predictor, only, by, json, reading } => {
            let question = Question {
                predictor: *predictor,
                features: features.clone(),
                only_finished: only.is_some(),
                by_week: by.is_some(),
            };
            for (index, (file, reading)) in files.iter().zip(reading.of_files(files)?).enumerate() {
                let trace = read(file, &reading)?;
                let evaluation = evaluate(&trace, &of_trace(&question, &trace)?);
                match json {
                    true => print_exact(&serde_json::to_string(&evaluation)?)?,
                    false => print(&format!("{}{evaluation}", if index > 0 { "\n" } else { "" }))?,
                }
            }
            Ok(ExitCode::SUCCESS)
        }
        Command::Convert { file, to, force, reading } => {
            let trace = read(file, &reading.of(file)?)?;
            for note in trace.notes() {
                tracing::warn!("{note}");
            }
            let features = workload::write(&trace, to, *force)?;
            let features =
                features.map_or_else(String::new, |file| format!(", features in {}", file.display()));
            let (jobs, tasks) = (trace.jobs().len() as u64, trace.tasks());
            print(&format!(
                "{}, {}: {}{features}",
                plural(jobs, "job"),
                plural(tasks, "task"),
                to.display()
            ))?;
            Ok(ExitCode::SUCCESS)
        }
        Command::Sources { name } => {
            let text = match name {
                None => sources(),
                Some(name) => {
                    let known = || SOURCES.iter().map(|source| source.name);
                    let found = SOURCES.iter().find(|source| source.name == *name);
                    found
                        .with_context(|| format!("no trace is named `{name}`; choose {}", listed(known())))?
                        .to_string()
                }
            };
            print(text.trim_end())?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// Writes a page to `path`, if a path is given.
fn write_page(
    file: Option<&Path>,
    described: &[Description],
    comparison: Option<&TraceComparison>,
) -> anyhow::Result<()> {
    file.map_or(Ok(()), |file| write_file(file, page(described, comparison)?.as_bytes()))
}

#[cfg(feature = "figures")]
fn page(described: &[Description], comparison: Option<&TraceComparison>) -> anyhow::Result<String> {
    Ok(volary_report::traces_page(described, comparison))
}

#[cfg(not(feature = "figures"))]
fn page(_: &[Description], _: Option<&TraceComparison>) -> anyhow::Result<String> {
    anyhow::bail!("--html: this program was built without pages: build it with the feature `figures`")
}

/// The question for one trace; if it names no features, all features of the trace are used. Fails if the trace lacks a
/// named feature or outcome.
fn of_trace(question: &Question, trace: &Trace) -> anyhow::Result<Question> {
    let (file, known) = (trace.file().display(), trace.features());
    let names = known.iter().map(|feature| format!("`{feature}`")).collect::<Vec<_>>().join(", ");
    let mut question = question.clone();
    if question.features.is_empty() {
        question.features = known.iter().copied().filter(|feature| *feature != Feature::Hour).collect();
        anyhow::ensure!(
            !question.features.is_empty(),
            "{file}: jobs have no feature except their hour; put a file X.features.csv beside X.tr, name the columns of a \
             .csv file with --columns, or predict by the hour with --features hour"
        );
    }
    for (at, feature) in question.features.iter().enumerate() {
        anyhow::ensure!(
            known.contains(feature),
            "--features {feature}: no job of {file} has this feature; its jobs have {names}"
        );
        anyhow::ensure!(
            !question.features[..at].contains(feature),
            "--features: `{feature}` is named twice; name each feature once; pairs of features are always used"
        );
    }
    anyhow::ensure!(
        !question.only_finished || has_finished(trace),
        "--only finished: {file} marks no job as finished; leave out the option"
    );
    Ok(question)
}

fn has_finished(trace: &Trace) -> bool {
    let mut outcomes = (0..trace.jobs().len() as u32).map(|job| trace.outcome(JobId(job)));
    outcomes.any(|outcome| outcome == Some(Outcome::Finished))
}

fn feature(name: &str) -> Result<Feature, String> {
    let known = || Feature::ALL.iter().map(|feature| feature.name());
    name.trim().parse().map_err(|()| {
        let help = did_you_mean(name, known()).unwrap_or_else(|| format!("choose {}", listed(known())));
        format!("no feature is named `{name}`; {help}")
    })
}

/// Parses a share in percent, such as `1%`.
fn percent(text: &str) -> Result<Share, String> {
    let share = text.strip_suffix('%').and_then(|percent| percent.trim().parse::<f64>().ok());
    let share = share.and_then(|percent| Share::new(percent / 100.0));
    share.ok_or_else(|| "write a share of the rows from 0% to 100%, such as 1%".to_owned())
}

fn predictor(name: &str) -> Result<PredictorKind, String> {
    let known = || PredictorKind::ALL.iter().map(|kind| kind.name());
    name.parse().map_err(|()| format!("no predictor is named `{name}`; choose {}", listed(known())))
}

fn read(file: &Path, reading: &Reading) -> anyhow::Result<Trace> {
    anyhow::ensure!(
        !file.is_dir() || workload::is_trace_folder(file),
        "{} is a folder; name a trace in it: .tr, .swf or .csv, plain or as .xz, .zst or .gz; or a folder with Google's \
         job_events or Alibaba's batch_task.csv",
        file.display()
    );
    let found = Traces::beside(&Files::of_disk(), Path::new("")).find(file);
    let found = found.map_err(|error| match TraceOrigin::of(file) {
        Some(known) => anyhow::anyhow!("{error}; {}", known.remedy()),
        None => error.into(),
    })?;
    Ok(workload::read(&found, reading)?)
}

/// Options for reading traces.
#[derive(Debug, Args)]
struct ReadArgs {
    /// Read only the first N jobs of each trace.
    #[arg(long, value_name = "N")]
    jobs: Option<u32>,
    /// Time zone of dates that state none, such as UTC or Europe/Stockholm.
    #[arg(long, value_name = "ZONE")]
    zone: Option<Zone>,
    /// The number of tasks of a job in a .csv file: its gpus or its cores, rounded up. Jobs with none are left out.
    #[arg(long, value_name = "COLUMN")]
    size: Option<SizeBy>,
    /// Leave out malformed rows, at most this share of the rows, such as 1%. If absent they are errors.
    #[arg(long, value_name = "N%", value_parser = percent, default_value = "0%", hide_default_value = true)]
    skip_bad: Share,
    /// Columns of a .csv file, such as user=user_ID,submit=submit_time,run=seconds, or the name of a known table, such
    /// as philly. Times that are numbers have the unit at the end of the name (_s, _ms, _us, _ns, _min, _h, _d), or a
    /// stated unit (run=took:min), or else seconds. With several traces name the file, and repeat the option for each
    /// file that needs columns: --columns a.csv:user=who,submit=at,run=took
    #[arg(long = "columns", value_name = "[FILE:]LIST")]
    lists: Vec<FileColumns>,
}

/// The columns of one file.
#[derive(Clone, Debug)]
struct FileColumns {
    /// Name of the file; `None` for the only file.
    file: Option<PathBuf>,
    names: ColumnNames,
}

impl FromStr for FileColumns {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        // Meanings and names of tables have no colon; folders and names of columns may have colons.
        let first = text.find('=').unwrap_or(text.len());
        let (file, list) = match text[..first].rfind(':') {
            Some(colon) => (Some(text[..colon].into()), &text[colon + 1..]),
            None => (None, text),
        };
        Ok(Self { file, names: list.parse()? })
    }
}

impl ReadArgs {
    /// The reading options of each of `files`.
    ///
    /// # Errors
    /// When the file of some columns is ambiguous, or a file has two lists.
    fn of_files(&self, files: &[PathBuf]) -> anyhow::Result<Vec<Reading>> {
        let Self { jobs, zone, size, skip_bad, .. } = *self;
        let mut found = vec![Reading { jobs, zone, size, skip_bad, ..Reading::default() }; files.len()];
        for list in &self.lists {
            let named = list.file_among(files)?;
            for at in (0..files.len()).filter(|&at| files[at] == *named) {
                anyhow::ensure!(
                    found[at].columns.replace(list.names.clone()).is_none(),
                    "--columns: two lists are for {}; write one list",
                    named.display()
                );
            }
        }
        Ok(found)
    }

    /// The reading options of the only file.
    ///
    /// # Errors
    /// The errors of [`Self::of_files`].
    fn of(&self, file: &Path) -> anyhow::Result<Reading> {
        Ok(self.of_files(&[file.to_owned()])?.swap_remove(0))
    }
}

impl FileColumns {
    /// The file of these columns: the only file, the file with this path, or else the only file with this name.
    fn file_among<'a>(&self, files: &'a [PathBuf]) -> anyhow::Result<&'a PathBuf> {
        let is_alone = |file: &&PathBuf| files.iter().all(|other| other == *file);
        let Some(name) = &self.file else {
            return files.first().filter(is_alone).context(
                "--columns: with several traces name the file of these columns: --columns FILE:LIST",
            );
        };
        let of_name = || files.iter().filter(|file| file.file_name() == Some(name.as_os_str()));
        let found = files.iter().find(|file| *file == name).or_else(|| of_name().next());
        let Some(found) = found else {
            let known: Vec<String> = files.iter().map(|file| file.display().to_string()).collect();
            let known = listed(known.iter().map(String::as_str));
            anyhow::bail!("--columns: no trace here is called `{}`; write {known}", name.display());
        };
        anyhow::ensure!(
            found == name || of_name().all(|file| file == found),
            "--columns: several traces are called `{}`; write the path of one of them, such as `{}`",
            name.display(),
            found.display()
        );
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(lists: &[&str]) -> ReadArgs {
        ReadArgs {
            jobs: None,
            zone: None,
            size: None,
            skip_bad: Share::NONE,
            lists: lists.iter().map(|list| list.parse().unwrap()).collect(),
        }
    }

    #[test]
    fn lists_of_columns_are_matched_to_files() {
        let files = ["a.csv", "b/c.csv", "d.tr"].map(PathBuf::from);
        let both = args(&["a.csv:user=x:y", "c.csv:user=z"]);
        let columns = |args: &ReadArgs, files: &[PathBuf]| -> Vec<Option<ColumnNames>> {
            args.of_files(files).unwrap().into_iter().map(|reading| reading.columns).collect()
        };
        let [x, z] = ["user=x:y", "user=z"].map(|list| Some(list.parse::<ColumnNames>().unwrap()));
        assert_eq!(columns(&both, &files), [x, z.clone(), None]);
        assert_eq!(args(&["user=z"]).of(&files[0]).unwrap().columns, z);
        let twice = ["a.csv", "a.csv"].map(PathBuf::from);
        assert_eq!(columns(&args(&["user=z"]), &twice), [z.clone(), z.clone()]);
        let alike = ["b/a.csv", "a.csv"].map(PathBuf::from);
        assert_eq!(columns(&args(&["a.csv:user=z"]), &alike), [None, z], "the path is equal");
        let alike = ["b/a.csv", "c/a.csv"].map(PathBuf::from);
        let error = args(&["a.csv:user=z"]).of_files(&alike).unwrap_err().to_string();
        assert!(
            error.contains("several traces are called `a.csv`") && error.contains("`b/a.csv`"),
            "{error}"
        );
        for (lists, part) in [
            (&["user=x"][..], "--columns FILE:LIST"),
            (&["e.csv:user=x"], "called `e.csv`; write `a.csv`, `b/c.csv` or `d.tr`"),
            (&["a.csv:user=x", "a.csv:run=x"], "two lists are for a.csv"),
        ] {
            let error = args(lists).of_files(&files).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
        assert!("a.csv:usr=x".parse::<FileColumns>().unwrap_err().contains("`usr`"));
    }
}
