//! A table with cells shaded by value.
//!
//! In a page the table is HTML: it scrolls and wraps, is accessible to screen readers, and can be copied. In a figure
//! the table is a picture.

use maud::{Markup, html};

use super::svg::{Anchor, Mark, Picture, line, text, text_within, width};
use super::theme::{self, Hue};

/// A shaded table.
#[derive(Clone, PartialEq, Debug)]
pub struct Heat {
    /// Headings of the columns that identify a row, with tooltips.
    pub keys: Vec<(String, String)>,
    /// Groups of shaded columns: the heading of the group, and the class and heading of each column.
    pub groups: Vec<(String, Vec<(String, String)>)>,
    pub rows: Vec<HeatRow>,
}

/// A row of a shaded table.
#[derive(Clone, PartialEq, Debug)]
pub struct HeatRow {
    /// Values that identify the row, one per key.
    pub names: Vec<String>,
    /// Element id to which the names link; empty for none.
    pub link: String,
    /// Cells of the row, one per column of all groups; `None` if nothing was measured.
    pub cells: Vec<Option<Shade>>,
}

/// A cell of a shaded table.
#[derive(Clone, PartialEq, Debug)]
pub struct Shade {
    /// Depth of the shade, from 0 (none) to 1 (darkest).
    pub depth: f64,
    pub text: String,
    /// Small text after the main text.
    pub small: String,
    /// Text of the tooltip.
    pub title: String,
    /// The series whose colour is used; `None` for the common colour.
    pub series: Option<usize>,
    /// Element id to which the text links; empty for none.
    pub link: String,
}

impl Shade {
    /// The text followed by the small text.
    fn whole(&self) -> String {
        if self.small.is_empty() { self.text.clone() } else { format!("{} {}", self.text, self.small) }
    }
}

impl Heat {
    /// The table as HTML: a single table, or one per group if the groups are too wide side by side.
    ///
    /// Shades are limited to half the depth, so that text keeps its contrast on light and dark backgrounds.
    pub fn html(&self) -> Markup {
        let columns: usize = self.groups.iter().map(|group| group.1.len()).sum();
        if columns <= SIDE_BY_SIDE || self.groups.len() < 2 {
            return self.table();
        }
        html! { @for group in 0..self.groups.len() { (self.part(group).table()) } }
    }

    /// A table with only this group of columns.
    fn part(&self, group: usize) -> Self {
        let before: usize = self.groups[..group].iter().map(|group| group.1.len()).sum();
        let columns = before..before + self.groups[group].1.len();
        let row = |row: &HeatRow| HeatRow { cells: row.cells[columns.clone()].to_vec(), ..row.clone() };
        let (keys, groups) = (self.keys.clone(), vec![self.groups[group].clone()]);
        Self { keys, groups, rows: self.rows.iter().map(row).collect() }
    }

    fn table(&self) -> Markup {
        let columns = || self.groups.iter().flat_map(|group| &group.1);
        html! {
            table class="heat" {
                thead {
                    tr {
                        td colspan=(self.keys.len()) {}
                        @for (heading, columns) in &self.groups {
                            th scope="colgroup" class="group" colspan=(columns.len()) { (heading) }
                        }
                    }
                    tr {
                        @for (heading, title) in &self.keys {
                            th scope="col" class="left" title=(title) { (heading) }
                        }
                        @for (class, heading) in columns() { th scope="col" class=(class) { (heading) } }
                    }
                }
                tbody {
                    @for row in &self.rows {
                        tr {
                            @for name in &row.names { (row.name(name)) }
                            @for ((class, _), shade) in columns().zip(&row.cells) { (cell(shade.as_ref(), class)) }
                        }
                    }
                }
            }
        }
    }
}

/// Number of columns that fit side by side.
const SIDE_BY_SIDE: usize = 6;

/// Height of a row of a picture, px.
const ROW: f64 = 22.0;
/// Space at the left of names, px.
const INDENT: f64 = 3.0;
/// Space around a text in a cell, px.
const PAD: f64 = 6.0;

impl Heat {
    /// Whether all numbers fit into their cells in a picture `wide` px wide. A number that is cut would be misread.
    pub fn fits(&self, wide: f64) -> bool {
        let columns: usize = self.groups.iter().map(|group| group.1.len()).sum();
        let each = (wide - self.key_widths(wide).iter().sum::<f64>()) / columns.max(1) as f64;
        let numbers = self.rows.iter().flat_map(|row| &row.cells).flatten();
        numbers.map(|shade| width(&shade.text)).fold(0.0, f64::max) + PAD <= each
    }

    /// The table as a picture, `wide` px wide. Names that do not fit are cut.
    pub fn picture(&self, title: &str, wide: f64) -> Picture {
        let columns: Vec<&str> =
            self.groups.iter().flat_map(|group| &group.1).map(|column| column.1.as_str()).collect();
        let keys = self.key_widths(wide);
        let left: f64 = keys.iter().sum();
        let each = (wide - left) / columns.len().max(1) as f64;
        let mut marks = vec![text_within(wide - INDENT, "head", (INDENT, 14.0), Anchor::Start, title)];
        // Small texts are shown only if all of them fit.
        let shades = || self.rows.iter().flat_map(|row| &row.cells).flatten();
        let with_small = shades().all(|shade| width(&shade.whole()) * 1.06 + PAD <= each);
        let mut y = ROW;
        let mut x = left;
        for (heading, columns) in &self.groups {
            let size = each * columns.len() as f64;
            let at = (x + size / 2.0, y + 15.0);
            marks.push(text_within(size - PAD, "name", at, Anchor::Middle, heading));
            x += size;
        }
        y += ROW;
        let mut x = 0.0;
        for ((key, _), size) in self.keys.iter().zip(&keys) {
            marks.push(text_within(size - PAD, "", (x + INDENT, y + 15.0), Anchor::Start, key));
            x += size;
        }
        for (at, column) in columns.iter().enumerate() {
            let middle = left + each * (at as f64 + 0.5);
            marks.push(text_within(each - PAD, "", (middle, y + 15.0), Anchor::Middle, column));
        }
        y += ROW;
        for row in &self.rows {
            marks.push(line("grid", (0.0, y), (wide, y)));
            let mut x = 0.0;
            for (name, size) in row.names.iter().zip(&keys) {
                marks.push(text_within(size - PAD, "name", (x + INDENT, y + 15.0), Anchor::Start, name));
                x += size;
            }
            let cells = row.cells.iter().enumerate();
            let drawn = |(at, shade): (usize, &Option<Shade>)| {
                drawn(shade.as_ref(), (left + each * at as f64, y), (each, with_small))
            };
            marks.extend(cells.flat_map(drawn));
            y += ROW;
        }
        Picture { size: (wide, y + 2.0), label: title.to_owned(), marks, legend: Vec::new() }
    }

    /// Widths of the columns that identify a row: the width of their text, but at most half of the picture in total.
    fn key_widths(&self, wide: f64) -> Vec<f64> {
        let widest = |at: usize| {
            let names = self.rows.iter().filter_map(|row| row.names.get(at)).chain([&self.keys[at].0]);
            names.map(|name| width(name) * 1.06 + 2.0 * PAD).fold(0.0, f64::max)
        };
        let widths: Vec<f64> = (0..self.keys.len()).map(widest).collect();
        let sum: f64 = widths.iter().sum();
        let scale = if sum > wide / 2.0 { wide / 2.0 / sum } else { 1.0 };
        widths.into_iter().map(|width| width * scale).collect()
    }
}

/// A shaded cell of a picture.
fn drawn(shade: Option<&Shade>, (x, y): (f64, f64), (wide, with_small): (f64, bool)) -> Vec<Mark> {
    let at = (x + wide / 2.0, y + 15.0);
    let Some(shade) = shade else { return vec![text("name", at, Anchor::Middle, "–")] };
    let (class, hue) = shade.series.map_or(("shade", None), |series| ("fill", Some(Hue::Policy(series))));
    let said = if with_small { shade.whole() } else { shade.text.clone() };
    vec![
        Mark::Rect {
            class,
            hue,
            at: (x + 0.5, y + 0.5),
            size: (wide - 1.0, ROW - 1.0),
            opacity: Some(0.48 * shade.depth.clamp(0.0, 1.0)),
            title: shade.title.clone(),
        },
        text_within(wide - PAD, "name", at, Anchor::Middle, &said),
    ]
}

impl HeatRow {
    fn name(&self, name: &str) -> Markup {
        html! { th scope="row" { (linked(name, &self.link)) } }
    }
}

/// A text that links to the element `id`; plain text if `id` is empty.
fn linked(text: &str, id: &str) -> Markup {
    html! { @if id.is_empty() { (text) } @else { a href={ "#" (id) } { (text) } } }
}

fn cell(shade: Option<&Shade>, class: &str) -> Markup {
    let Some(shade) = shade else { return html! { td class=(class) { "–" } } };
    let own = shade.series.map(|series| format!("{class} own {}", theme::series(series)));
    let depth = (48.0 * shade.depth.clamp(0.0, 1.0)).round();
    // Where columns have headings, text and heading replace the tooltip: sweeps have thousands of these cells.
    let title = own.as_ref().map(|_| &shade.title);
    html! {
        td class=(own.as_deref().unwrap_or(class)) title=[title] style={ "--d:" (depth) "%" } {
            (linked(&shade.text, &shade.link))
            @if !shade.small.is_empty() { " " small { (shade.small) } }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_is_shaded_by_its_depth_and_a_gap_is_not_shaded() {
        let series = None;
        let shade = |depth| {
            let (title, link) = (String::new(), "c2".to_owned());
            Some(Shade { depth, text: "1".into(), small: "×<".into(), title, series, link })
        };
        let rows = vec![HeatRow {
            names: vec!["r<".into()],
            link: "c1".into(),
            cells: vec![shade(0.5), None, shade(9.0)],
        }];
        let column = |name: &str| (format!("p-{name}"), name.to_owned());
        let groups = vec![("g".into(), vec![column("a"), column("b")]), ("h".into(), vec![column("c")])];
        let heat = Heat { keys: vec![("k".into(), "a.k".into())], groups, rows };
        let html = heat.html().into_string();
        assert!(html.contains("style=\"--d:24%\"") && html.contains("style=\"--d:48%\""), "{html}");
        assert_eq!(html.matches("<a href=\"#c2\">1</a>").count(), 2, "{html}");
        assert!(
            html.contains("<a href=\"#c1\">r&lt;</a>") && html.contains("<td class=\"p-b\">–</td>"),
            "{html}"
        );
        assert!(html.contains("colspan=\"2\">g</th>") && html.contains("<small>×&lt;</small>"), "{html}");
        assert!(heat.fits(378.0) && !heat.fits(30.0));
        let svg = heat.picture("t", 378.0).file(3.5, crate::chart::svg::Letters::Text);
        assert!(svg.contains("fill-opacity=\"0.24\"") && svg.contains("fill-opacity=\"0.48\""), "{svg}");
        assert!(svg.contains(">1 ×&lt;</text>") && svg.contains(">–</text>"), "{svg}");
    }
}
