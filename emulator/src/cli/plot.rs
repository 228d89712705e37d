//! The `volary plot` command.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use volary_actors::base::Span;
use volary_experiment::config::error::{did_you_mean, listed};
use volary_experiment::storage;
use volary_experiment::storage::run_record::Sketch;
use volary_report::chart::export::{ExportError, pdf, png};
use volary_report::chart::svg::{Letters, Picture};
use volary_report::columns;
use volary_report::figures::job::JobChoice;
use volary_report::figures::plot::{FigureKind, FigureOptions, figure};
use volary_report::figures::sweep::AxisTitles;

use super::args::SelectionArgs;
use super::output::{print, print_folded, warn_of_gaps, write_file};

/// Draw a figure of a run for a paper or a talk, as SVG, PDF or PNG.
#[derive(Debug, Args)]
pub(super) struct Options {
    /// The study directory.
    run: PathBuf,
    /// The kind of figure: cdf, ccdf (log-log tail), percentiles, sweep, heat, coverage (of gossip), staleness,
    /// timeline, job. If absent, `sweep` for a study with a sweep, `coverage` of gossip, and `cdf` otherwise.
    #[arg(long, value_name = "FIGURE", value_parser = kind)]
    what: Option<FigureKind>,
    /// The file, whose suffix selects the format: .svg, .pdf or .png (300 dpi). If absent, figure.svg in the study
    /// directory.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Width of the figure as a column of the paper: single is 3.5 inches, double is 7.16. Text is 8 points high in
    /// both.
    #[arg(long, value_enum, default_value = "single")]
    width: Width,
    /// A number that sweep and heat show; if given several times, each number has a panel. It is a column of the table
    /// of results, such as p50, wasted or regret, or short.p99 for the class short (`help` lists all); or an expression
    /// of the results as in claims, such as "response_s.p99 / response_s.p50". If absent, p99, the age of information
    /// of gossip, or the false deaths of failure detection.
    #[arg(long, value_name = "NUMBER")]
    number: Vec<String>,
    /// The panels of a sweep: with `policy`, a panel for each policy, with a line for each value of the other keys.
    /// If absent, a panel for each value of the other keys, with a line for each policy.
    #[arg(long, value_enum)]
    by: Option<PanelsBy>,
    /// Title of the horizontal axis of a sweep; if absent, the meaning of the swept key.
    #[arg(long, value_name = "TEXT")]
    x_title: Option<String>,
    /// Title of the vertical axis of a sweep of one number; if absent, only the titles of the panels name the number.
    #[arg(long, value_name = "TEXT")]
    y_title: Option<String>,
    /// The swept key on the horizontal axis of a sweep, or a number of the results: each cell is then a point at its
    /// mean. If absent, the key with the most values.
    #[arg(long, value_name = "KEY")]
    over: Option<String>,
    /// The job drawn by `--what job`: its number, or `slowest` or `median` by response time under the first policy,
    /// among the jobs whose executions are recorded. If absent, slowest.
    #[arg(long, value_name = "JOB")]
    job: Option<JobChoice>,
    /// The part of the run that `--what timeline` draws: start and end in emulated time. If absent, as much of the
    /// beginning as is readable.
    #[arg(long, value_name = "FROM..UNTIL", value_parser = window)]
    window: Option<TimeWindow>,
    /// A file of measured times, one on each line, such as 518ms: their distribution is drawn in the figure of
    /// coverage, with the name of the file.
    #[arg(long, value_name = "FILE")]
    beside: Option<PathBuf>,
    #[command(flatten)]
    selection: SelectionArgs,
}

/// Division of a sweep into panels.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum PanelsBy {
    Policy,
}

/// The width of a column of a paper.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Width {
    Single,
    Double,
}

impl Width {
    /// The widths of columns in papers of IEEE and ACM, in inches.
    const fn inches(self) -> f64 {
        match self {
            Self::Single => 3.5,
            Self::Double => 7.16,
        }
    }
}

fn kind(text: &str) -> Result<FigureKind, String> {
    let found = FigureKind::ALL.iter().find(|(name, _)| *name == text).map(|(_, kind)| *kind);
    found.ok_or_else(|| {
        let names = || FigureKind::ALL.iter().map(|(name, _)| *name);
        let meant = did_you_mean(text, names()).map_or_else(String::new, |meant| format!("; {meant}"));
        format!("expected {}{meant}", listed(names()))
    })
}

/// A part of a run's time.
#[derive(Clone, Copy, Debug)]
struct TimeWindow([Span; 2]);

fn window(text: &str) -> Result<TimeWindow, String> {
    let expected = || format!("expected two times such as `5s..20s`, not `{text}`");
    let (from, until) = text.split_once("..").ok_or_else(expected)?;
    let time = |text: &str| text.trim().parse::<Span>().map_err(|_| expected());
    let window = [time(from)?, time(until)?];
    if window[0] >= window[1] {
        return Err(format!("`{text}` begins at or after its end"));
    }
    Ok(TimeWindow(window))
}

/// The formats of figures.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Format {
    Svg,
    Pdf,
    Png,
}

impl Format {
    /// The format of a file that an option names.
    pub(super) fn of(option: &str, path: &Path) -> anyhow::Result<Self> {
        match path.extension().and_then(|suffix| suffix.to_str()).map(str::to_lowercase).as_deref() {
            Some("svg") => Ok(Self::Svg),
            Some("pdf") => Ok(Self::Pdf),
            Some("png") => Ok(Self::Png),
            _ => {
                anyhow::bail!("{option} {}: the name of a figure ends in .svg, .pdf or .png", path.display())
            }
        }
    }

    pub(super) fn bytes(self, picture: &Picture, inches: f64) -> Result<Vec<u8>, ExportError> {
        match self {
            Self::Svg => Ok(picture.file(inches, Letters::Text).into_bytes()),
            Self::Pdf => pdf(picture, inches),
            Self::Png => png(picture, inches),
        }
    }
}

/// The name of a file of times without its suffix, and the times.
fn times(path: &Path) -> anyhow::Result<(String, Sketch)> {
    let wrong = |why: String| anyhow::anyhow!("--beside {}: {why}", path.display());
    let text = fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
    let time = |(number, line): (usize, &str)| {
        let time = line.trim().parse::<Span>().map(Span::as_secs_f64);
        time.map_err(|error| {
            wrong(format!("line {number}: {error}; write one time on each line, such as 518ms"))
        })
    };
    let times: Vec<f64> = (1..).zip(text.lines()).map(time).collect::<Result<_, _>>()?;
    if times.is_empty() {
        return Err(wrong("the file holds no time; write one on each line, such as 518ms".to_owned()));
    }
    let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    Ok((name, Sketch::new(times)))
}

pub(super) fn main(options: &Options) -> anyhow::Result<ExitCode> {
    if options.number.iter().any(|number| number == columns::ASKED) {
        print_folded(&columns::help())?;
        return Ok(ExitCode::SUCCESS);
    }
    let numbers = options.number.iter().map(|text| {
        let hint = if text.contains(',') { "; give --number once for each of several numbers" } else { "" };
        text.parse().map_err(|why: String| anyhow::anyhow!("--number: {why}{hint}"))
    });
    let numbers = numbers.collect::<Result<_, _>>()?;
    let out = options.out.clone().unwrap_or_else(|| options.run.join("figure.svg"));
    let format = Format::of("--out", &out)?;
    let study = storage::load(&options.run)?;
    warn_of_gaps(&study)?;
    let inches = options.width.inches();
    let wanted = FigureOptions {
        what: options.what,
        numbers,
        by_policy: options.by == Some(PanelsBy::Policy),
        titles: AxisTitles { x: options.x_title.clone(), y: options.y_title.clone() },
        over: options.over.clone(),
        job: options.job,
        window: options.window.map(|TimeWindow([from, until])| (from.as_secs_f64(), until.as_secs_f64())),
        beside: options.beside.as_deref().map(times).transpose()?,
        selection: options.selection.selection(),
        inches,
    };
    let picture = figure(study, &wanted)?;
    write_file(&out, &format.bytes(&picture, inches)?)?;
    print(&out.display().to_string())?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_have_two_times_in_order() {
        assert_eq!(window("5s..1min").unwrap().0, [Span::from_secs(5), Span::from_secs(60)]);
        assert!(window("5s").unwrap_err().contains("`5s..20s`"));
        assert!(window("5s..2s").unwrap_err().contains("after its end"));
    }

    #[test]
    fn the_suffix_selects_the_format() {
        let of = |name: &str| Format::of("--out", Path::new(name)).ok();
        assert_eq!(
            (of("a.svg"), of("b/c.PDF"), of("d.x.png")),
            (Some(Format::Svg), Some(Format::Pdf), Some(Format::Png))
        );
        let error = Format::of("--out", Path::new("a.jpg")).unwrap_err().to_string();
        assert!(error.contains("--out a.jpg") && error.contains(".svg, .pdf or .png"), "{error}");
    }
}
