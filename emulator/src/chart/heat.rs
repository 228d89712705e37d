//! A table with cells shaded by value.
//!
//! It is HTML rather than SVG: it scrolls and wraps, is accessible to screen readers, and can be copied.

use super::svg::escape;
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
    #[must_use]
    pub fn html(&self) -> String {
        let mut out = String::from("<table class=\"heat\"><thead><tr>");
        out.push_str(&format!("<th colspan=\"{}\"></th>", self.keys.len()));
        for (heading, columns) in &self.groups {
            let (span, heading) = (columns.len(), escape(heading));
            out.push_str(&format!(
                "<th scope=\"colgroup\" class=\"group\" colspan=\"{span}\">{heading}</th>"
            ));
        }
        out.push_str("</tr><tr>");
        for (heading, title) in &self.keys {
            out.push_str(&format!(
                "<th scope=\"col\" class=\"left\" title=\"{}\">{}</th>",
                escape(title),
                escape(heading)
            ));
        }
        for (class, heading) in self.groups.iter().flat_map(|group| &group.1) {
            out.push_str(&format!("<th scope=\"col\" class=\"{}\">{}</th>", escape(class), escape(heading)));
        }
        out.push_str("</tr></thead><tbody>");
        for row in &self.rows {
            out.push_str("<tr>");
            for name in &row.names {
                out.push_str(&format!("<th scope=\"row\">{}</th>", row.linked(name)));
            }
            let classes = self.groups.iter().flat_map(|group| group.1.iter().map(|column| &column.0));
            for (class, cell) in classes.zip(&row.cells) {
                out.push_str(&Shade::html(cell.as_ref(), class));
            }
            out.push_str("</tr>");
        }
        out.push_str("</tbody></table>");
        out
    }
}

impl HeatRow {
    fn linked(&self, name: &str) -> String {
        let name = escape(name);
        if self.link.is_empty() { name } else { format!("<a href=\"#{}\">{name}</a>", escape(&self.link)) }
    }
}

impl Shade {
    fn html(cell: Option<&Self>, class: &str) -> String {
        let class = escape(class);
        let Some(cell) = cell else { return format!("<td class=\"{class}\">–</td>") };
        let (class, colour) = match cell.series {
            Some(series) => (format!("{class} {}", theme::series(series)), "c"),
            None => (class, "heat"),
        };
        let depth = (48.0 * cell.depth.clamp(0.0, 1.0)).round();
        let (text, small, title) = (escape(&cell.text), escape(&cell.small), escape(&cell.title));
        let small = if small.is_empty() { small } else { format!(" <small>{small}</small>") };
        format!(
            "<td class=\"{class}\" title=\"{title}\" style=\"background:color-mix(in srgb,var(--{colour}) {depth}%,transparent)\">{text}{small}</td>"
        )
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
        let html = Heat { keys: vec![("k".into(), "a.k".into())], groups, rows }.html();
        assert!(html.contains("var(--heat) 24%") && html.contains("var(--heat) 48%"), "{html}");
        assert!(
            html.contains("<a href=\"#c1\">r&lt;</a>") && html.contains("<td class=\"p-b\">–</td>"),
            "{html}"
        );
        assert!(html.contains("colspan=\"2\">g</th>") && html.contains("<small>×&lt;</small>"), "{html}");
    }
}
