//! A table with cells shaded by value.
//!
//! It is HTML rather than SVG: it scrolls and wraps, is accessible to screen readers, and can be copied.

use maud::{Markup, html};

use super::theme;

/// A shaded table.
#[derive(Clone, PartialEq, Debug)]
pub struct Heat {
    /// Headings of the columns that identify a row, with tooltips.
    pub keys: Vec<(String, String)>,
    /// Groups of shaded columns: heading, and each column's class and heading.
    pub groups: Vec<(String, Vec<(String, String)>)>,
    pub rows: Vec<HeatRow>,
}

/// A row of a shaded table.
#[derive(Clone, PartialEq, Debug)]
pub struct HeatRow {
    /// The identifying values, one per key.
    pub names: Vec<String>,
    /// Element id that the names link to; empty for none.
    pub link: String,
    /// One per column of all groups; `None` if nothing was measured.
    pub cells: Vec<Option<Shade>>,
}

/// A cell of a shaded table.
#[derive(Clone, PartialEq, Debug)]
pub struct Shade {
    /// Depth of the shade, from 0 (none) to 1 (darkest).
    pub depth: f64,
    pub text: String,
    /// Small text after `text`.
    pub small: String,
    /// Tooltip.
    pub title: String,
    /// The series whose colour is used; `None` for the common colour.
    pub series: Option<usize>,
}

impl Heat {
    /// The table as HTML.
    ///
    /// Shades are limited to half the depth, so that text keeps its contrast on light and dark backgrounds.
    pub fn html(&self) -> Markup {
        let columns = || self.groups.iter().flat_map(|group| &group.1);
        html! {
            table class="heat" {
                thead {
                    tr {
                        th colspan=(self.keys.len()) {}
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

impl HeatRow {
    fn name(&self, name: &str) -> Markup {
        html! {
            th scope="row" {
                @if self.link.is_empty() { (name) } @else { a href={ "#" (self.link) } { (name) } }
            }
        }
    }
}

fn cell(shade: Option<&Shade>, class: &str) -> Markup {
    let Some(shade) = shade else { return html! { td class=(class) { "–" } } };
    let (class, colour) = match shade.series {
        Some(series) => (format!("{class} {}", theme::series(series)), "c"),
        None => (class.to_owned(), "heat"),
    };
    let depth = (48.0 * shade.depth.clamp(0.0, 1.0)).round();
    let style = format!("background:color-mix(in srgb,var(--{colour}) {depth}%,transparent)");
    html! {
        td class=(class) title=(shade.title) style=(style) {
            (shade.text)
            @if !shade.small.is_empty() { " " small { (shade.small) } }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shades_follow_depth_and_gaps_stay_gaps() {
        let series = None;
        let shade = |depth| {
            Some(Shade { depth, text: "1".into(), small: "×<".into(), title: String::new(), series })
        };
        let rows = vec![HeatRow {
            names: vec!["r<".into()],
            link: "c1".into(),
            cells: vec![shade(0.5), None, shade(9.0)],
        }];
        let column = |name: &str| (format!("p-{name}"), name.to_owned());
        let groups = vec![("g".into(), vec![column("a"), column("b")]), ("h".into(), vec![column("c")])];
        let html = Heat { keys: vec![("k".into(), "a.k".into())], groups, rows }.html().into_string();
        assert!(html.contains("var(--heat) 24%") && html.contains("var(--heat) 48%"), "{html}");
        assert!(
            html.contains("<a href=\"#c1\">r&lt;</a>") && html.contains("<td class=\"p-b\">–</td>"),
            "{html}"
        );
        assert!(html.contains("colspan=\"2\">g</th>") && html.contains("<small>×&lt;</small>"), "{html}");
    }
}
