//! A validation for people.

use std::fmt::Write;

use comfy_table::{Cell as TableCell, CellAlignment, ContentArrangement, Table, presets};

use super::{Against, BAR, Divergence, Point, Validation, staleness};
use crate::compare::{METRICS, Metric};
use crate::number;
use crate::results::cell_name;

impl Validation {
    /// A table a point, what else is known of it, and the verdict.
    #[must_use]
    pub fn text(&self) -> String {
        let mut out = String::new();
        for point in &self.points {
            let cell = cell_name(&point.cell);
            let comma = if cell.is_empty() { "" } else { ", " };
            let _ = writeln!(out, "{}{comma}{cell}, seed {}", point.policy, self.seed);
            let _ = writeln!(out, "{}", self.table(point));
            point.against.iter().for_each(|against| out.push_str(&against.text()));
            out.push('\n');
        }
        for skipped in &self.skipped {
            let _ = writeln!(out, "{} was left out: {}", skipped.runtime, skipped.why);
        }
        out.push_str(&self.verdict());
        out
    }

    fn table(&self, point: &Point) -> Table {
        let mut table = Table::new();
        table.load_style(presets::UTF8_FULL_CONDENSED);
        table.set_content_arrangement(ContentArrangement::Disabled);
        let mut header = vec!["metric".to_owned(), self.reference.clone()];
        for against in &point.against {
            header.extend([against.runtime.clone(), "divergence".to_owned()]);
            if against.has_found() {
                header.extend([format!("{} as found", self.reference), "from that".to_owned()]);
            }
        }
        table.set_header(header);
        let Some(first) = point.against.first() else { return table };
        for (row, divergence) in first.rows().enumerate() {
            let mut known = METRICS.iter().chain(&staleness::METRICS);
            let Some(metric) = known.find(|metric| metric.name == divergence.metric) else {
                continue;
            };
            let mut cells = vec![entry(divergence.reference, metric)];
            for against in &point.against {
                let Some(other) = against.rows().nth(row) else { continue };
                cells.extend([entry(other.value, metric), change(other)]);
                if against.has_found() {
                    cells.extend([entry(other.found, metric), from_found(other)]);
                }
            }
            let right = |text| TableCell::new(text).set_alignment(CellAlignment::Right);
            table.add_row(
                std::iter::once(TableCell::new(&divergence.metric)).chain(cells.into_iter().map(right)),
            );
        }
        table
    }

    fn verdict(&self) -> String {
        let all = || self.points.iter().flat_map(|point| &point.against);
        let degraded = all().filter(|against| !against.degraded.is_empty()).count();
        let bar = number::percent(BAR);
        let judged = |of: fn(&Divergence) -> Option<bool>| {
            let judged = all().flat_map(|against| &against.metrics).filter_map(of);
            judged.fold((0, 0), |(within, all), is| (within + usize::from(is), all + 1))
        };
        let (within, quantiles) = judged(|divergence| divergence.within);
        let mut out = format!(
            "{within} of {quantiles} quantiles (p50, p90, p99) are within {bar} of {}, or within what runs differ by \
             themselves\n",
            self.reference,
        );
        let (within, quantiles) = judged(|divergence| divergence.within_found);
        if quantiles > 0 {
            let _ = writeln!(
                out,
                "{within} of {quantiles} of burnt copies are within {bar} of {} with cores as found, so all but the cores \
                 did the same; whether these did as asked, the certificate says",
                self.reference
            );
        }
        let caches: Vec<bool> =
            all().flat_map(|against| &against.staleness).filter_map(|figure| figure.within).collect();
        if !caches.is_empty() {
            let within = caches.iter().filter(|&&within| within).count();
            let _ = writeln!(
                out,
                "{within} of {} figures of staleness are within what lateness and chance explain",
                caches.len()
            );
        }
        if degraded > 0 {
            let _ = writeln!(out, "{degraded} of {} are degraded and not held against it", all().count());
        }
        let worlds = all().filter(|against| !against.books.is_empty() || against.draws.different > 0).count();
        if worlds > 0 {
            let _ = writeln!(out, "{worlds} of {} did not do the same jobs", all().count());
        }
        out
    }
}

impl Against {
    /// What the table shows.
    fn rows(&self) -> impl Iterator<Item = &Divergence> {
        self.metrics.iter().chain(&self.staleness)
    }

    /// Whether the reference was run with cores as they were found.
    fn has_found(&self) -> bool {
        self.metrics.iter().any(|divergence| divergence.found.is_some())
    }

    fn text(&self) -> String {
        let runs = if self.runs > 1 { format!(", {} runs", self.runs) } else { String::new() };
        let books = if self.books.is_empty() { "equal books".to_owned() } else { self.books.join(", ") };
        let jobs = number::count(self.draws.jobs);
        let draws = match self.draws.different {
            0 => format!("{jobs} jobs with equal arrivals and demands"),
            n => format!("{} of {jobs} jobs with other arrivals or demands", number::count(n)),
        };
        let placement = self.placement.map(|p| {
            format!("; {} of {} sampled jobs on other servers", number::count(p.moved), number::count(p.jobs))
        });
        let mut out = format!("{}{runs}: {books}; {draws}{}\n", self.runtime, placement.unwrap_or_default());
        let standing = match self.degraded.as_slice() {
            [] => "faithful".to_owned(),
            reasons => format!("DEGRADED: {}", reasons.join("; ")),
        };
        let _ = writeln!(out, "  {standing}");
        for divergence in self.rows() {
            if let (Some(relative), Some(cause)) = (divergence.relative, &divergence.cause) {
                let _ = writeln!(out, "  {} {}: {cause}", divergence.metric, number::change(relative));
            }
        }
        out
    }
}

fn entry(value: Option<f64>, metric: &Metric) -> String {
    value.map_or_else(|| "–".to_owned(), metric.text)
}

/// By which share a value is off what the reference says of cores as they were found.
fn from_found(divergence: &Divergence) -> String {
    let found = divergence.found.filter(|found| *found != 0.0);
    let change = divergence.value.zip(found).map(|(value, found)| number::change(value / found - 1.0));
    format!("{}{}", change.unwrap_or_else(|| "–".to_owned()), mark(divergence.within_found))
}

/// The divergence with the spread of the runs, marked if it is beyond the bar.
fn change(divergence: &Divergence) -> String {
    let change = divergence.relative.map_or_else(|| "–".to_owned(), number::change);
    let spread = divergence.spread.zip(divergence.reference).filter(|(_, reference)| *reference != 0.0);
    let spread = spread.map(|(half, reference)| format!(" ± {}", number::percent(half / reference.abs())));
    format!("{change}{}{}", spread.unwrap_or_default(), mark(divergence.within))
}

/// Whether a value is within the bar.
const fn mark(within: Option<bool>) -> &'static str {
    match within {
        Some(false) => " ✗",
        Some(true) => " ✓",
        None => "  ",
    }
}
