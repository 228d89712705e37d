//! The figure of a study for `volary plot`: its data and its panels.

use volary_experiment::storage::run_record::Sketch;
use volary_experiment::storage::study::{CellGroup, Study};

use super::distribution::{curves, deliveries, percentiles, responses};
use super::job::{JobChoice, courses};
use super::over_time::{CACHES, NO_CACHES, cell_caches, timelines};
use super::sweep::{AxisTitles, Sweep, heat, named, panel_title, panels};
use crate::chart::cdf::{Curve, coverage, distribution, tail};
use crate::chart::scale::TickUnit;
use crate::chart::svg::{Picture, Point, px_of};
use crate::columns::{ChartNumber, PickedColumn, SummaryColumn};
use crate::selection::{Selection, SelectionError, swept_key};

/// The kinds of figures.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FigureKind {
    /// Distribution of response times.
    Cdf,
    /// Share of jobs that took longer than a time.
    Ccdf,
    /// Percentiles of response times side by side.
    Percentiles,
    /// A number over a swept key.
    Sweep,
    /// A number in every cell, as a shaded table.
    Heat,
    /// Share of members that had an update within a time.
    Coverage,
    /// Ages and errors of caches over time.
    Caches,
    /// Executions on the first cores.
    Timeline,
    /// Executions of one job.
    Job,
}

impl FigureKind {
    /// All kinds, by their names on the command line.
    pub const ALL: [(&'static str, Self); 9] = [
        ("cdf", Self::Cdf),
        ("ccdf", Self::Ccdf),
        ("percentiles", Self::Percentiles),
        ("sweep", Self::Sweep),
        ("heat", Self::Heat),
        ("coverage", Self::Coverage),
        (CACHES.0, Self::Caches),
        ("timeline", Self::Timeline),
        ("job", Self::Job),
    ];
}

/// A requested figure.
#[derive(Clone, PartialEq, Debug)]
pub struct FigureOptions {
    /// Kind of the figure; `None` for a sweep if the study has one, coverage of a run without jobs, and distributions
    /// otherwise.
    pub what: Option<FigureKind>,
    /// The numbers shown in sweeps and shaded tables. If empty, the 99th percentile of response times, the age of
    /// information of gossip, or the false deaths of failure detection.
    pub numbers: Vec<ChartNumber>,
    /// Whether a sweep has a panel for each policy, with a line for each combination of the other keys.
    pub by_policy: bool,
    /// Titles of the axes of a sweep, in place of the key and the number.
    pub titles: AxisTitles,
    /// The swept key along the axis of a sweep, or a number; `None` for the key with the most values.
    pub over: Option<String>,
    /// The job of a picture of one job; `None` for the slowest.
    pub job: Option<JobChoice>,
    /// Start and end of a timeline, s; `None` for the beginning of the run.
    pub window: Option<(f64, f64)>,
    /// For coverage: measured times to plot beside the curves of policies, with their label.
    pub beside: Option<(String, Sketch)>,
    /// The cells and policies that are shown.
    pub selection: Selection,
    /// Width of the figure in inches.
    pub inches: f64,
}

/// The reason why a study has no requested figure.
#[derive(Debug, thiserror::Error)]
pub enum FigureError {
    /// No run has results.
    #[error("the run has no results yet; `volary run --resume` runs the rest")]
    Empty,
    /// The selected cells have no run of the selected policies.
    #[error("no run matches --policy and --at")]
    Unselected,
    /// An option does not fit the study.
    #[error(transparent)]
    Unknown(#[from] SelectionError),
    /// The figure does not use an option.
    #[error("{option}: the figure {what} does not use this option; {users} can")]
    Unused { option: &'static str, what: &'static str, users: &'static str },
    /// One title for several numbers.
    #[error("--y-title: each number has its own axis; draw one number")]
    SeveralTitles,
    /// The study lacks the data of the figure.
    #[error("--what {what}: {why}")]
    Lacks { what: &'static str, why: String },
    /// A figure has no room for all panels.
    #[error("--what {what}: {panels} panels are more than fit a figure ({MOST_PANELS}); choose {remedy}")]
    Crowded { what: &'static str, panels: usize, remedy: String },
}

/// Limit on the rows of a shaded table on a page.
const MOST_ROWS: usize = 100;
/// Limit on the panels of a figure.
const MOST_PANELS: usize = 8;
/// Width in inches above which panels are in two columns.
const WIDE: f64 = 5.0;

/// Keys of the numbers that matter most, the most important of each kind of study last.
const USUAL: [&str; 6] = [
    "response_s.p50",
    "response_s.p99",
    "gossip.full_s.mean",
    "gossip.age_of_information_s.mean",
    "detection.detected_s.mean",
    "detection.false_deaths",
];

/// The numbers of a study's charts if none is requested: the first two of [`USUAL`] that its runs have.
pub(crate) fn usual_numbers(study: &Study) -> Vec<ChartNumber> {
    let all = USUAL.iter().filter_map(|key| SummaryColumn::all().find(|column| column.metric.key == *key));
    let measured = all.filter(|column| column.is_worth(study.records().map(|record| &record.summary)));
    measured.take(2).map(|column| ChartNumber::Column(PickedColumn { class: None, column })).collect()
}

/// The figure of a study.
///
/// # Errors
/// When the study lacks the data, or an option names something that the study lacks.
pub fn figure(mut study: Study, options: &FigureOptions) -> Result<Picture, FigureError> {
    // A policy has the same colour as in the report, also if other policies are not selected.
    let all: Vec<String> = study.policies().into_iter().map(str::to_owned).collect();
    let policies: Vec<&str> = all.iter().map(String::as_str).collect();
    if study.records().next().is_none() {
        return Err(FigureError::Empty);
    }
    options.selection.keep(&mut study)?;
    // The title names the selected values, since figures of other cells look alike.
    let at: Vec<String> =
        options.selection.at.iter().map(|(key, value)| format!("{key} = {value}")).collect();
    let of_cell = if at.is_empty() { String::new() } else { format!(": {}", at.join(", ")) };
    let title = format!("{}{of_cell}", study.manifest.title);
    if study.records().next().is_none() {
        return Err(FigureError::Unselected);
    }
    let usual = if study.cells.len() > 1 {
        FigureKind::Sweep
    } else if study.records().any(|record| deliveries(record).is_some()) {
        FigureKind::Coverage
    } else {
        FigureKind::Cdf
    };
    let kind = options.what.unwrap_or(usual);
    let what = FigureKind::ALL.iter().find(|known| known.1 == kind).map_or("", |known| known.0);
    refuse_unused(options, kind, what)?;
    let mut numbers = options.numbers.clone();
    if numbers.is_empty() {
        numbers.extend(usual_numbers(&study).pop());
    }
    if numbers.is_empty() && matches!(kind, FigureKind::Sweep | FigureKind::Heat) {
        let why =
            "no job finished, and nothing of gossip was measured; choose a number with --number".to_owned();
        return Err(FigureError::Lacks { what, why });
    }
    let request = Request { study: &study, policies: &policies, options, title: &title, numbers, what };
    let panels = match kind {
        FigureKind::Cdf | FigureKind::Ccdf | FigureKind::Percentiles => request.responses(kind)?,
        FigureKind::Sweep => request.sweep()?,
        FigureKind::Heat => vec![request.heat()?],
        FigureKind::Coverage => request.coverage()?,
        FigureKind::Caches => request.caches()?,
        FigureKind::Timeline => request.timelines()?,
        FigureKind::Job => request.courses()?,
    };
    let columns = if matches!(kind, FigureKind::Timeline | FigureKind::Job) {
        1
    } else {
        request.columns(panels.len())
    };
    Ok(Picture::beside(&title, panels, columns))
}

/// Refuses options that a kind of figure does not use.
fn refuse_unused(options: &FigureOptions, kind: FigureKind, what: &'static str) -> Result<(), FigureError> {
    let unused = |option, users| Err(FigureError::Unused { option, what, users });
    if options.over.is_some() && kind != FigureKind::Sweep {
        unused("--over", "`sweep`")
    } else if options.titles != AxisTitles::default() && kind != FigureKind::Sweep {
        unused("--x-title and --y-title", "`sweep`")
    } else if options.titles.y.is_some() && options.numbers.len() > 1 {
        Err(FigureError::SeveralTitles)
    } else if options.by_policy && kind != FigureKind::Sweep {
        unused("--by", "`sweep`")
    } else if !options.numbers.is_empty() && !matches!(kind, FigureKind::Sweep | FigureKind::Heat) {
        unused("--number", "`sweep` and `heat`")
    } else if options.window.is_some() && kind != FigureKind::Timeline {
        unused("--window", "`timeline`")
    } else if options.job.is_some() && kind != FigureKind::Job {
        unused("--job", "`job`")
    } else if options.beside.is_some() && kind != FigureKind::Coverage {
        unused("--beside", "`coverage`")
    } else {
        Ok(())
    }
}

/// A figure of the selected cells and policies, with its options.
struct Request<'a> {
    study: &'a Study,
    /// All policies of the study, for their colours.
    policies: &'a [&'a str],
    options: &'a FigureOptions,
    title: &'a str,
    numbers: Vec<ChartNumber>,
    what: &'static str,
}

impl Request<'_> {
    /// Number of columns for `panels` panels.
    const fn columns(&self, panels: usize) -> usize {
        if panels > 1 && self.options.inches > WIDE { 2 } else { 1 }
    }

    /// Size of each of `panels` panels, px.
    fn size(&self, panels: usize) -> Point {
        let wide = px_of(self.options.inches) / self.columns(panels) as f64;
        (wide, if wide > 500.0 { 330.0 } else { 250.0 })
    }

    fn lacks(&self, why: impl Into<String>) -> FigureError {
        FigureError::Lacks { what: self.what, why: why.into() }
    }

    /// Returns `panels`, or an error if the figure has no room for so many panels.
    fn room(&self, panels: usize) -> Result<usize, FigureError> {
        if panels <= MOST_PANELS {
            return Ok(panels);
        }
        let keys: Vec<String> = self.study.swept().keys().map(|key| format!("--at {key}=VALUE")).collect();
        let remedy = if keys.is_empty() {
            "policies with --policy LABEL".to_owned()
        } else {
            format!("cells with {}", keys.join(" "))
        };
        Err(FigureError::Crowded { what: self.what, panels, remedy })
    }

    fn responses(&self, kind: FigureKind) -> Result<Vec<Picture>, FigureError> {
        if self.study.records().all(|record| record.summary.jobs.finished == 0) {
            return Err(self.lacks("no job has finished"));
        }
        let size = self.size(self.room(self.study.cells.len())?);
        let panel = |group: &CellGroup| {
            let title = panel_title(group, "Response time of jobs");
            let curves = curves(group, self.policies, responses);
            if kind == FigureKind::Ccdf {
                tail(&title, "response time", TickUnit::Seconds, &curves, size)
            } else if kind == FigureKind::Percentiles {
                percentiles(&title, group, self.policies, size)
            } else {
                distribution(&title, "response time", TickUnit::Seconds, &curves, size)
            }
        };
        Ok(self.study.cells.iter().map(panel).collect())
    }

    fn coverage(&self) -> Result<Vec<Picture>, FigureError> {
        if self.study.records().all(|record| deliveries(record).is_none()) {
            return Err(self.lacks("no run has delivered an update; `workload.gossip.updates` makes updates"));
        }
        let size = self.size(self.room(self.study.cells.len())?);
        let panel = |group: &CellGroup| {
            let mut curves = curves(group, self.policies, deliveries);
            curves.extend(self.options.beside.as_ref().map(|(label, sketch)| Curve {
                label: label.clone(),
                colour: self.policies.len(),
                runs: vec![(sketch, sketch.count)],
                running: false,
            }));
            coverage(&panel_title(group, "Coverage"), &curves, size)
        };
        Ok(self.study.cells.iter().map(panel).collect())
    }

    fn sweep(&self) -> Result<Vec<Picture>, FigureError> {
        let swept = self.study.swept();
        let longest = || {
            let keys = swept.iter().filter(|(_, values)| values.len() > 1);
            keys.max_by_key(|(_, values)| values.len()).map(|(key, _)| (*key).to_owned())
        };
        let key = match &self.options.over {
            Some(key) => match (swept_key(self.study, "--over", key), key.parse::<ChartNumber>()) {
                (Err(_), Ok(other)) => return self.against(&other),
                (key, _) => Some(key?),
            },
            None => longest(),
        };
        let key = key.ok_or_else(|| {
            self.lacks(
                "the run has one cell; for more, add a section [sweep] to the experiment, or leave out --at",
            )
        })?;
        let shown = self.study.policies();
        let by_policy = self.options.by_policy || shown.len() == 1;
        let of_number = if by_policy { shown.len() } else { panels(self.study, &key).len() };
        let size = self.size(self.room(of_number * self.numbers.len())?);
        let mut pictures = Vec::new();
        for number in &self.numbers {
            let chart = Sweep { key: &key, number, size, titles: &self.options.titles };
            let found = match by_policy {
                true => chart.by_value(self.study, &shown),
                false => chart.by_policy(self.study, self.policies),
            };
            if found.is_empty() {
                return Err(self.unmeasured(number));
            }
            pictures.extend(found);
        }
        Ok(pictures)
    }

    /// A panel for each number against another.
    fn against(&self, other: &ChartNumber) -> Result<Vec<Picture>, FigureError> {
        if self.options.by_policy {
            return Err(self.lacks(
                "--by is for panels over a swept key; leave it out where --over is a number".to_owned(),
            ));
        }
        let size = self.size(self.room(self.numbers.len())?);
        let key = &other.title();
        let mut pictures = Vec::new();
        for number in &self.numbers {
            let chart = Sweep { key, number, size, titles: &self.options.titles };
            let found = chart.against(other, self.study, self.policies);
            if found.is_empty() {
                return Err(self.lacks(format!("no run has both `{}` and `{key}`", number.title())));
            }
            pictures.extend(found);
        }
        Ok(pictures)
    }

    fn unmeasured(&self, number: &ChartNumber) -> FigureError {
        self.lacks(format!("no run has the number `{}`", number.title()))
    }

    fn heat(&self) -> Result<Picture, FigureError> {
        let shown = self.study.policies();
        let heat = heat(self.study, &shown, &self.numbers, |_| String::new());
        for (number, of_number) in self.numbers.iter().zip(0..) {
            let columns = of_number * shown.len()..(of_number + 1) * shown.len();
            if heat.rows.iter().all(|row| row.cells[columns.clone()].iter().all(Option::is_none)) {
                return Err(self.unmeasured(number));
            }
        }
        let (rows, wide) = (heat.rows.len(), px_of(self.options.inches));
        if rows > MOST_ROWS {
            let why =
                format!("{rows} cells are more rows than a figure has ({MOST_ROWS}); choose cells with --at");
            return Err(self.lacks(why));
        }
        if !heat.fits(wide) {
            let wider = if self.options.inches > WIDE { "" } else { "take --width double, or " };
            let why = "the numbers of so many policies do not fit the width";
            return Err(self.lacks(format!("{why}; {wider}choose policies with --policy")));
        }
        Ok(heat.picture(self.title, wide))
    }

    fn caches(&self) -> Result<Vec<Picture>, FigureError> {
        let of_cell = |group: &CellGroup, size| {
            let at = if group.cell.is_empty() { String::new() } else { format!(": {}", named(&group.cell)) };
            cell_caches(group, &at, self.policies, size)
        };
        let of_cells = |size| self.study.cells.iter().flat_map(move |group| of_cell(group, size));
        let found = of_cells((100.0, 100.0)).count();
        if found == 0 {
            return Err(self.lacks(NO_CACHES));
        }
        Ok(of_cells(self.size(self.room(found)?)).collect())
    }

    fn courses(&self) -> Result<Vec<Picture>, FigureError> {
        let (wide, choice) = (px_of(self.options.inches), self.options.job.unwrap_or_default());
        let mut pictures = Vec::new();
        for group in &self.study.cells {
            pictures.extend(courses(group, choice, wide).map_err(|why| self.lacks(why))?);
            self.room(pictures.len())?;
        }
        Ok(pictures)
    }

    fn timelines(&self) -> Result<Vec<Picture>, FigureError> {
        let wide = px_of(self.options.inches);
        // Blocks are at least about three pixels wide on average.
        let blocks = (wide * 0.6) as usize;
        let window = self.options.window;
        let of_cell = |group| timelines(group, self.policies, blocks, window, wide).0;
        let charts: Vec<Picture> =
            self.study.cells.iter().flat_map(of_cell).map(|(_, picture)| picture).collect();
        if charts.is_empty() {
            return Err(self.lacks(
                "no copy is recorded at these times on the first cores: lengthen `run.record.timeline`, or raise \
                `run.record.timeline_cores`",
            ));
        }
        self.room(charts.len())?;
        Ok(charts)
    }
}
