//! From an `[interference]` table to a profile that needs no further file.

use std::path::{Path, PathBuf};

use volary_actors::base::{Law, Span, Time};

use super::config::{Bernoulli, Interference, Markov, Renewal, Scope, Scripted, Trace, TraceRow};

/// Why an interference profile cannot be used. Messages name the file, the line or key, and the remedy.
#[derive(Debug, thiserror::Error)]
pub enum ProfileError {
    /// A file could not be read.
    #[error("{}: cannot be read: {source}", path.display())]
    Read {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A profile file is not what [`Interference`] describes.
    #[error("{}: {message}", path.display())]
    Parse {
        /// Which file.
        path: PathBuf,
        /// What and where, in the words of the parser.
        message: String,
    },
    /// A line of a trace is wrong.
    #[error("{}:{line}: {message}", path.display())]
    Line {
        /// Which file.
        path: PathBuf,
        /// Which line, from 1.
        line: usize,
        /// What is wrong and what to write instead.
        message: String,
    },
    /// Keys that contradict each other.
    #[error("interference: {0}")]
    Keys(String),
}

/// One checked interference process, with everything read that it refers to.
#[derive(Clone, PartialEq, Debug)]
pub struct Profile {
    /// The same as a table, with no file left in it.
    pub table: Interference,
    pub(super) process: Process,
    pub(super) scope: Scope,
    /// Units are healthy outside [from, until).
    pub(super) from: Time,
    pub(super) until: Time,
    pub(super) affected: f64,
}

/// How x_i(t) comes about.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Process {
    Bernoulli(Bernoulli),
    Markov(Markov),
    Renewal(Renewal),
    Scripted(Scripted),
    /// Sorted by (unit, start), without overlaps.
    Trace(Vec<TraceRow>),
}

impl Interference {
    /// Reads the files this table refers to, relative to `folder`, and checks it.
    ///
    /// # Errors
    /// When a file cannot be read or parsed, when not exactly one process is named, or when keys contradict
    /// each other.
    pub fn load(&self, folder: &Path) -> Result<Profile, ProfileError> {
        let Some(name) = &self.profile else {
            return check(self.clone(), folder);
        };
        if self.processes() > 0 {
            return Err(ProfileError::Keys("give either `profile` or a process, not both".into()));
        }
        let path = folder.join(name);
        let mut table = Self::read(&path)?;
        if table.profile.is_some() {
            return Err(ProfileError::Parse {
                path,
                message: "a profile cannot name another profile".into(),
            });
        }
        table.scope = self.scope.or(table.scope);
        table.from = self.from.or(table.from);
        table.until = self.until.or(table.until);
        table.affected = self.affected.or(table.affected);
        check(table, path.parent().unwrap_or(folder))
    }

    /// Reads a profile file as a table.
    ///
    /// # Errors
    /// When it cannot be read or parsed.
    pub fn read(path: &Path) -> Result<Self, ProfileError> {
        let text = read(path)?;
        toml::from_str(&text)
            .map_err(|e| ProfileError::Parse { path: path.into(), message: e.to_string().trim_end().into() })
    }

    fn processes(&self) -> usize {
        [
            self.bernoulli.is_some(),
            self.markov.is_some(),
            self.renewal.is_some(),
            self.scripted.is_some(),
            self.trace.is_some(),
        ]
        .into_iter()
        .filter(|&named| named)
        .count()
    }
}

impl Profile {
    /// Reads and checks a profile file.
    ///
    /// # Errors
    /// As [`Interference::load`].
    pub fn open(path: &Path) -> Result<Self, ProfileError> {
        Interference { profile: Some(path.into()), ..Interference::default() }.load(Path::new(""))
    }
}

fn read(path: &Path) -> Result<String, ProfileError> {
    std::fs::read_to_string(path).map_err(|source| ProfileError::Read { path: path.into(), source })
}

/// Checks a table that names no profile, and reads its trace.
fn check(mut table: Interference, folder: &Path) -> Result<Profile, ProfileError> {
    let keys = |message: &str| Err(ProfileError::Keys(message.into()));
    if table.processes() != 1 {
        return keys("name exactly one of `profile`, `bernoulli`, `markov`, `renewal`, `scripted`, `trace`");
    }
    if let Some(trace) = &mut table.trace {
        load_trace(trace, folder)?;
    }
    load_laws(&mut table, folder)?;
    let process = match &table {
        Interference { bernoulli: Some(p), .. } => Process::Bernoulli(p.clone()),
        Interference { markov: Some(p), .. } => Process::Markov(p.clone()),
        Interference { renewal: Some(p), .. } => Process::Renewal(p.clone()),
        Interference { scripted: Some(p), .. } => Process::Scripted(p.clone()),
        Interference { trace: Some(p), .. } => Process::Trace(p.rows.clone()),
        Interference { .. } => return keys("no process is named"),
    };
    if let Process::Renewal(renewal) = &process
        && renewal.gap.mean() + renewal.burst.mean() <= 0.0
    {
        return keys("gaps and bursts of a renewal cannot both have zero length");
    }
    let (from, until) = (table.from.unwrap_or(Span::ZERO), table.until.unwrap_or(Span::MAX));
    if from > until {
        return Err(ProfileError::Keys(format!("`from` ({from}) must not be later than `until` ({until})")));
    }
    Ok(Profile {
        process,
        scope: table.scope.unwrap_or_default(),
        from: Time(from.0),
        until: Time(until.0),
        affected: table.affected.unwrap_or(1.0),
        table,
    })
}

/// Reads the files of empirical laws into their values.
fn load_laws(table: &mut Interference, folder: &Path) -> Result<(), ProfileError> {
    if let Some(renewal) = &mut table.renewal {
        for law in [&mut renewal.gap, &mut renewal.burst] {
            load_law(law, folder, |text| text.parse())?;
        }
    }
    let slowdowns = [
        table.bernoulli.as_mut().map(|p| &mut p.slowdown),
        table.markov.as_mut().map(|p| &mut p.slowdown),
        table.renewal.as_mut().map(|p| &mut p.slowdown),
        table.scripted.as_mut().map(|p| &mut p.slowdown),
    ];
    for law in slowdowns.into_iter().flatten() {
        load_law(law, folder, |text| {
            let value = text.parse().ok().filter(|x: &f64| x.is_finite() && *x >= 1.0);
            value.ok_or_else(|| format!("`{text}` is not a slowdown; write a number of at least 1"))
        })?;
    }
    Ok(())
}

/// Reads one value a line; `#` starts a comment.
fn load_law<T>(
    law: &mut Law<T>,
    folder: &Path,
    parse: impl Fn(&str) -> Result<T, String>,
) -> Result<(), ProfileError> {
    let Law::Empirical(empirical) = law else { return Ok(()) };
    let Some(file) = empirical.file.take() else { return Ok(()) };
    let path = folder.join(file);
    for (i, line) in read(&path)?.lines().enumerate() {
        let content = line.split('#').next().unwrap_or_default().trim();
        if !content.is_empty() {
            let wrong = |message| ProfileError::Line { path: path.clone(), line: i + 1, message };
            empirical.values.push(parse(content).map_err(wrong)?);
        }
    }
    if empirical.values.is_empty() {
        return Err(ProfileError::Parse { path, message: "holds no value; write one a line".into() });
    }
    Ok(())
}

/// Reads the trace's file into its rows, sorts them, and refuses overlaps.
fn load_trace(trace: &mut Trace, folder: &Path) -> Result<(), ProfileError> {
    if trace.rows.is_empty() == trace.file.is_none() {
        return Err(ProfileError::Keys("trace needs either `file` or `rows`".into()));
    }
    let Some(file) = trace.file.take() else {
        let rows = trace.rows.iter().enumerate().map(|(i, &row)| (i, row)).collect();
        trace.rows = sorted(rows).map_err(|(i, why)| ProfileError::Keys(format!("trace row {i}: {why}")))?;
        return Ok(());
    };
    let path = folder.join(file);
    let wrong = |(line, message)| ProfileError::Line { path: path.clone(), line, message };
    let mut rows = Vec::new();
    for (i, line) in read(&path)?.lines().enumerate() {
        let content = line.split('#').next().unwrap_or_default().trim();
        if !content.is_empty() {
            rows.push((i + 1, parse_row(content).map_err(|message| wrong((i + 1, message)))?));
        }
    }
    if rows.is_empty() {
        return Err(ProfileError::Parse { path, message: "lists no burst; leave interference out".into() });
    }
    trace.rows = sorted(rows).map_err(wrong)?;
    Ok(())
}

/// Rows with their places, in order of unit and time; the place and reason of one that cannot be used.
fn sorted(mut rows: Vec<(usize, TraceRow)>) -> Result<Vec<TraceRow>, (usize, String)> {
    for &(place, row) in &rows {
        if row.start >= row.end {
            return Err((
                place,
                format!("the burst ends at {}, not after its start at {}", row.end, row.start),
            ));
        }
        if !(row.slowdown.is_finite() && row.slowdown >= 1.0) {
            let why = format!("slowdown {} is below 1 and would speed the core up", row.slowdown);
            return Err((place, why));
        }
    }
    rows.sort_by_key(|(_, row)| (row.unit, row.start));
    for pair in rows.windows(2) {
        let [(first, before), (second, after)] = [pair[0], pair[1]];
        if before.unit == after.unit && after.start < before.end {
            let why = format!("the burst starts before that of {first} has ended, and is of the same unit");
            return Err((second, why));
        }
    }
    Ok(rows.into_iter().map(|(_, row)| row).collect())
}

/// One line `unit start_s end_s slowdown`.
fn parse_row(content: &str) -> Result<TraceRow, String> {
    let fields: Vec<&str> =
        content.split(|c: char| c == ',' || c.is_whitespace()).filter(|f| !f.is_empty()).collect();
    let &[unit, start, end, slowdown] = fields.as_slice() else {
        return Err(format!("expected `unit start_s end_s slowdown`, found {} fields", fields.len()));
    };
    let number = |name: &str, text: &str| {
        text.parse::<f64>()
            .ok()
            .filter(|x| x.is_finite() && *x >= 0.0)
            .ok_or_else(|| format!("{name} `{text}` is not a number of at least zero"))
    };
    Ok(TraceRow {
        unit: unit.parse().map_err(|_| format!("unit `{unit}` is not a number counted from zero"))?,
        start: Span::from_secs_f64(number("start_s", start)?),
        end: Span::from_secs_f64(number("end_s", end)?),
        slowdown: number("slowdown", slowdown)?,
    })
}
