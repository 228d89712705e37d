//! A table whose cells are shaded by value.

use super::bars::shortened;
use super::svg::{Anchor, Svg, escape};

/// A shaded table.
#[derive(Clone, PartialEq, Debug)]
pub struct Heat<'a> {
    /// Heading.
    pub title: &'a str,
    /// Names of the columns.
    pub columns: Vec<&'a str>,
    /// Rows: a name, where it leads to (an id of the page, or nothing), and for each column the shade in 0..=1,
    /// the text and the tooltip; `None` where nothing was measured.
    pub rows: Vec<Row>,
}

/// A row of a shaded table.
#[derive(Clone, PartialEq, Debug)]
pub struct Row {
    /// Its name.
    pub name: String,
    /// Id of the page it leads to; empty for none.
    pub link: String,
    /// One a column.
    pub cells: Vec<Option<Shade>>,
}

/// A cell of a shaded table.
#[derive(Clone, PartialEq, Debug)]
pub struct Shade {
    /// 0 for no shade, 1 for the darkest.
    pub depth: f64,
    /// What is written in it.
    pub text: String,
    /// What it says on hover.
    pub title: String,
}

const ROW: f64 = 24.0;
const COLUMN: f64 = 92.0;

impl Heat<'_> {
    /// The table as HTML: it scrolls, wraps and reads aloud better than a picture, and can be copied.
    ///
    /// Shades stay below half, so that text keeps its contrast on light and dark.
    #[must_use]
    pub fn html(&self) -> String {
        let mut out =
            format!("<table class=\"heat\"><caption>{}</caption><thead><tr><th></th>", escape(self.title));
        for column in &self.columns {
            out.push_str(&format!("<th scope=\"col\">{}</th>", escape(column)));
        }
        out.push_str("</tr></thead><tbody>");
        for row in &self.rows {
            let name = escape(&row.name);
            let name = if row.link.is_empty() {
                name
            } else {
                format!("<a href=\"#{}\">{name}</a>", escape(&row.link))
            };
            out.push_str(&format!("<tr><th scope=\"row\">{name}</th>"));
            for cell in &row.cells {
                out.push_str(&cell.as_ref().map_or_else(|| "<td>–</td>".to_owned(), Shade::html));
            }
            out.push_str("</tr>");
        }
        out.push_str("</tbody></table>");
        out
    }

    /// The table as a picture, for use outside a page.
    #[must_use]
    pub fn svg(&self) -> String {
        let longest = self.rows.iter().map(|row| row.name.chars().count()).max().unwrap_or(0).min(48);
        let left = 20.0 + 6.8 * longest as f64;
        let size = (left + COLUMN * self.columns.len() as f64, 56.0 + ROW * self.rows.len() as f64);
        let mut svg = Svg::new(size.0, size.1, self.title);
        svg.text("head", (4.0, 16.0), Anchor::Start, self.title);
        for (i, column) in self.columns.iter().enumerate() {
            let x = left + COLUMN * (i as f64 + 0.5);
            svg.text("name", (x, 40.0), Anchor::Middle, &shortened(column, 13));
        }
        for (i, row) in self.rows.iter().enumerate() {
            let y = 50.0 + ROW * i as f64;
            svg.text("name", (left - 8.0, y + 16.0), Anchor::End, &shortened(&row.name, 48));
            for (j, cell) in row.cells.iter().enumerate() {
                let x = left + COLUMN * j as f64;
                let text = cell.as_ref().map_or("–", |cell| cell.text.as_str());
                if let Some(cell) = cell {
                    let opacity = format!("fill-opacity=\"{:.2}\"", 0.48 * cell.depth.clamp(0.0, 1.0));
                    svg.rect_with("shade", (x, y), (COLUMN - 2.0, ROW - 2.0), &opacity, &cell.title);
                }
                svg.text("name", (x + COLUMN / 2.0, y + 16.0), Anchor::Middle, text);
            }
        }
        svg.finish()
    }
}

impl Shade {
    fn html(&self) -> String {
        let depth = (48.0 * self.depth.clamp(0.0, 1.0)).round();
        let (text, title) = (escape(&self.text), escape(&self.title));
        format!(
            "<td title=\"{title}\" style=\"background:color-mix(in srgb,var(--heat) {depth}%,transparent)\">{text}</td>"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shades_follow_depth_and_gaps_stay_gaps() {
        let shade = |depth, text: &str| Some(Shade { depth, text: text.into(), title: String::new() });
        let rows = vec![Row {
            name: "r<".into(),
            link: "c1".into(),
            cells: vec![shade(0.5, "1.2"), None, shade(9.0, "x")],
        }];
        let heat = Heat { title: "t", columns: vec!["a", "b", "c"], rows };
        let html = heat.html();
        assert!(html.contains("var(--heat) 24%") && html.contains("var(--heat) 48%"), "{html}");
        assert!(html.contains("<a href=\"#c1\">r&lt;</a>") && html.contains("<td>–</td>"), "{html}");
        let svg = heat.svg();
        assert!(svg.contains("fill-opacity=\"0.24\"") && svg.matches("<rect").count() == 2, "{svg}");
    }
}
