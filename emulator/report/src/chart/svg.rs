//! Pictures: marks with a position and a class, as SVG in a page or in a separate file, and as PDF and PNG.
//!
//! In a page, classes and CSS variables give marks their colours: a chart follows the page's dark mode. A file has the
//! same marks with attributes.
//!
//! The width of text is computed from the advance widths of the figures' font. In formats for machines without that
//! font, text is drawn as outlines, so that a figure looks the same on every machine.

use std::fmt::Write;

use maud::{Markup, PreEscaped, html};
use ttf_parser::{Face, GlyphId, OutlineBuilder};
use volary_experiment::sanitize;

use super::theme::{self, Hue};

/// A position or a size in px.
pub type Point = (f64, f64);

/// Horizontal alignment of a text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Anchor {
    /// The text begins at the position.
    Start,
    /// The text is centred at the position.
    Middle,
    /// The text ends at the position.
    End,
}

/// An element of a picture. Its class is defined in the style sheet of charts.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Mark {
    Line {
        class: &'static str,
        from: Point,
        to: Point,
    },
    /// A rectangle in the colour of `hue` if given, or else of its group; it has a tooltip unless `title` is empty.
    Rect {
        class: &'static str,
        hue: Option<Hue>,
        at: Point,
        size: Point,
        opacity: Option<f64>,
        title: String,
    },
    /// A polygon around its centre, or a circle if it has no corners.
    Dot {
        class: &'static str,
        corners: &'static [Point],
        at: Point,
        title: String,
    },
    /// A line through points, or an area if the path is closed.
    Path {
        class: &'static str,
        points: Vec<Point>,
        closed: bool,
        title: String,
    },
    /// A line of text, with the whole text as a tooltip if it was cut.
    Text {
        class: &'static str,
        at: Point,
        anchor: Anchor,
        upright: bool,
        text: String,
        whole: String,
    },
    /// Marks drawn in the colour of `hue`.
    Group {
        hue: Hue,
        marks: Vec<Self>,
    },
    /// Marks shifted to the right and down.
    Moved {
        by: Point,
        marks: Vec<Self>,
    },
}

/// A picture with a name for screen readers.
#[derive(Clone, PartialEq, Debug)]
pub struct Picture {
    pub(super) size: Point,
    pub(super) label: String,
    pub(super) marks: Vec<Mark>,
    /// The legend, which is drawn below the picture.
    pub(super) legend: Vec<LegendItem>,
}

/// An entry of a legend. Its marks begin at the left edge.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct LegendItem {
    pub(super) name: String,
    pub(super) wide: f64,
    pub(super) marks: Vec<Mark>,
}

/// Left edge of a legend, height of its rows, and space between its entries, px.
pub(super) const LEGEND_LEFT: f64 = 8.0;
pub(super) const LEGEND_ROW: f64 = 18.0;
const LEGEND_APART: f64 = 14.0;

impl Picture {
    /// Width and height in px, with the legend.
    pub fn size(&self) -> Point {
        self.below().0
    }

    /// The size of the picture with its legend, and the marks of the legend.
    fn below(&self) -> (Point, Vec<Mark>) {
        let (wide, high) = self.size;
        let (mut x, mut y) = (LEGEND_LEFT, high);
        let mut marks = Vec::with_capacity(self.legend.len());
        for item in &self.legend {
            if x + item.wide > wide && x > LEGEND_LEFT {
                (x, y) = (LEGEND_LEFT, y + LEGEND_ROW);
            }
            marks.push(Mark::Moved { by: (x, y), marks: item.marks.clone() });
            x += item.wide + LEGEND_APART;
        }
        let rows = if marks.is_empty() { 0.0 } else { y - high + LEGEND_ROW };
        ((wide, high + rows), marks)
    }

    /// Pictures without their legends, and the entries of these legends as pictures, each once.
    pub fn apart(pictures: Vec<Self>) -> (Vec<Self>, Vec<Self>) {
        let entry = |item: LegendItem| Self {
            size: (item.wide, LEGEND_ROW),
            label: item.name,
            marks: item.marks,
            legend: Vec::new(),
        };
        let legend = common(&pictures).into_iter().map(entry).collect();
        let bare = pictures.into_iter().map(|picture| Self { legend: Vec::new(), ..picture });
        (bare.collect(), legend)
    }

    /// The picture as part of a page. It shrinks with its container and never grows.
    pub fn in_page(&self) -> Markup {
        let (size, legend) = self.below();
        let (width, height) = (px(size.0), px(size.1));
        html! {
            svg class="chart" role="img" aria-label=(self.label) viewBox={"0 0 " (width) " " (height)}
                width=(width) height=(height) { @for mark in self.marks.iter().chain(&legend) { (mark.styled(&Styling::Page)) } }
        }
    }

    /// The picture as a separate file on white, `inches` wide. Its text is 8 points high if the picture is [`px_of`] px
    /// wide.
    pub fn file(&self, inches: f64, letters: Letters) -> String {
        let ((width, height), legend) = self.below();
        let high = inches * height / width;
        let page = html! {
            svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label=(self.label)
                width={ (rounded(inches)) "in" } height={ (rounded(high)) "in" }
                viewBox={"0 0 " (px(width)) " " (px(height))}
                font-family="Arimo, Arial, Helvetica, 'Liberation Sans', sans-serif" font-size=(SIZE) {
                title { (self.label) }
                rect width=(px(width)) height=(px(height)) fill="#ffffff" {}
                @for mark in self.marks.iter().chain(&legend) { (mark.styled(&Styling::File(letters, None))) }
            }
        };
        sanitize::document(page.into_string())
    }

    /// Pictures in rows of `columns` under a common name, with one legend. A column is as wide as its widest picture.
    pub fn beside(label: &str, pictures: Vec<Self>, columns: usize) -> Self {
        let (columns, legend) = (columns.max(1), common(&pictures));
        let wide = pictures.iter().map(|picture| picture.size.0).fold(0.0, f64::max);
        let (mut marks, mut top, mut used) = (Vec::with_capacity(pictures.len()), 0.0, 0);
        let mut pictures = pictures.into_iter().peekable();
        while pictures.peek().is_some() {
            let mut high: f64 = 0.0;
            for (column, picture) in pictures.by_ref().take(columns).enumerate() {
                high = high.max(picture.size.1);
                used = used.max(column + 1);
                marks.push(Mark::Moved { by: (wide * column as f64, top), marks: picture.marks });
            }
            top += high + GAP;
        }
        Self { size: (wide * used as f64, (top - GAP).max(0.0)), label: label.to_owned(), marks, legend }
    }
}

/// A legend in a page, which breaks between its entries.
pub fn legend_of(entries: &[Picture]) -> Markup {
    html! { @if !entries.is_empty() { div.legend { @for entry in entries { (entry.in_page()) } } } }
}

/// The entries of the legends of pictures, each once.
fn common(pictures: &[Picture]) -> Vec<LegendItem> {
    let mut found: Vec<LegendItem> = Vec::new();
    for item in pictures.iter().flat_map(|picture| &picture.legend) {
        if !found.contains(item) {
            found.push(item.clone());
        }
    }
    found
}

/// Space between rows of pictures in px.
const GAP: f64 = 10.0;

/// The width in px at which a picture of `inches` has text of 8 points.
pub fn px_of(inches: f64) -> f64 {
    inches * 72.0 * SIZE / 8.0
}

/// The form of the text in a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Letters {
    /// Text in a font of the reader's machine.
    Text,
    /// Outlines of the glyphs.
    Outlines,
}

/// The source of the colours of marks.
enum Styling {
    /// Classes, which the style sheet of a page colours.
    Page,
    /// Attributes of each mark in a file; marks in a group have the hue of the group.
    File(Letters, Option<Hue>),
}

impl Styling {
    /// The attributes that give a mark its colour.
    fn of(&self, class: &'static str, own: Option<Hue>) -> Attributes {
        match self {
            Self::Page => {
                let hue = own.map_or_else(String::new, |hue| format!(" {}", hue.classes()));
                Attributes(vec![("class", format!("{class}{hue}"))])
            }
            Self::File(_, hue) => {
                let found = theme::attributes(class, own.or(*hue)).into_iter();
                Attributes(found.map(|(name, value)| (name, value.to_owned())).collect())
            }
        }
    }
}

/// Attributes of an element: names that are known to be safe, with any values.
struct Attributes(Vec<(&'static str, String)>);

impl Attributes {
    fn and(mut self, name: &'static str, value: impl ToString) -> Self {
        let value = value.to_string();
        match self.0.iter_mut().find(|known| known.0 == name) {
            Some(known) => known.1 = value,
            None => self.0.push((name, value)),
        }
        self
    }

    /// An element with the attributes `self` and a content.
    fn element(&self, name: &'static str, content: &Markup) -> Markup {
        let mut tag = format!("<{name}");
        for (attribute, value) in &self.0 {
            let _ = write!(tag, " {attribute}=\"{}\"", html! { (value) }.into_string());
        }
        tag.push('>');
        html! { (PreEscaped(tag)) (content) (PreEscaped(format!("</{name}>"))) }
    }
}

impl Mark {
    fn styled(&self, look: &Styling) -> Markup {
        match self {
            Self::Line { class, from, to } => {
                let line = look.of(class, None).and("x1", px(from.0)).and("y1", px(from.1));
                line.and("x2", px(to.0)).and("y2", px(to.1)).element("line", &tooltip(""))
            }
            Self::Rect { class, hue, at, size, opacity, title } => {
                let rect = look.of(class, *hue).and("x", px(at.0)).and("y", px(at.1));
                let rect = rect.and("width", px(size.0.max(0.0))).and("height", px(size.1.max(0.0)));
                let rect = match opacity {
                    Some(opacity) => rect.and("fill-opacity", format!("{opacity:.2}")),
                    None => rect,
                };
                rect.element("rect", &tooltip(title))
            }
            Self::Dot { class, corners: [], at, title } => {
                let dot = look.of(class, None).and("cx", px(at.0)).and("cy", px(at.1)).and("r", "3.5");
                dot.element("circle", &tooltip(title))
            }
            Self::Dot { class, corners, at, title } => {
                let points: Vec<Point> = corners.iter().map(|to| (at.0 + to.0, at.1 + to.1)).collect();
                look.of(class, None).and("d", data(&points) + "Z").element("path", &tooltip(title))
            }
            Self::Path { class, points, closed, title } => {
                let data = data(points) + if *closed { "Z" } else { "" };
                look.of(class, None).and("d", data).element("path", &tooltip(title))
            }
            Self::Text { class, at, anchor, upright, text, whole } => {
                let place = TextPlace { at: *at, anchor: *anchor, upright: *upright };
                match look {
                    Styling::File(Letters::Outlines, _) => place.outlined(look, class, text, whole),
                    Styling::Page | Styling::File(Letters::Text, _) => place.text(look, class, text, whole),
                }
            }
            Self::Group { hue, marks } => match look {
                Styling::Page => {
                    html! { g class=(hue.classes()) { @for mark in marks { (mark.styled(look)) } } }
                }
                Styling::File(letters, _) => {
                    let look = Styling::File(*letters, Some(*hue));
                    html! { g { @for mark in marks { (mark.styled(&look)) } } }
                }
            },
            Self::Moved { by, marks } => {
                let transform = format!("translate({} {})", px(by.0), px(by.1));
                html! { g transform=(transform) { @for mark in marks { (mark.styled(look)) } } }
            }
        }
    }
}

/// Position, alignment and direction of a text.
struct TextPlace {
    at: Point,
    anchor: Anchor,
    /// Whether the text reads upwards.
    upright: bool,
}

impl TextPlace {
    fn text(&self, look: &Styling, class: &'static str, text: &str, whole: &str) -> Markup {
        let element = look.of(class, None);
        let element = match self.anchor {
            Anchor::Start => element,
            Anchor::Middle => element.and("text-anchor", "middle"),
            Anchor::End => element.and("text-anchor", "end"),
        };
        let (x, y) = (px(self.at.0), px(self.at.1));
        let element = match self.upright {
            true => element.and("transform", format!("translate({x} {y}) rotate(-90)")),
            false => element.and("x", x).and("y", y),
        };
        element.element("text", &html! { (text) (tooltip(whole)) })
    }

    fn outlined(&self, look: &Styling, class: &'static str, text: &str, whole: &str) -> Markup {
        let (data, wide) = outline(text, SIZE, class == "head");
        let back = match self.anchor {
            Anchor::Start => 0.0,
            Anchor::Middle => -wide / 2.0,
            Anchor::End => -wide,
        };
        let (x, y) = (px(self.at.0), px(self.at.1));
        let turned = if self.upright { " rotate(-90)" } else { "" };
        let place = format!("translate({x} {y}){turned} translate({back:.2} 0)");
        look.of(class, None).and("transform", place).and("d", data).element("path", &tooltip(whole))
    }
}

fn tooltip(title: &str) -> Markup {
    html! { @if !title.is_empty() { title { (title) } } }
}

pub(super) const fn line(class: &'static str, from: Point, to: Point) -> Mark {
    Mark::Line { class, from, to }
}

/// A rectangle, with a tooltip unless `title` is empty.
pub(super) fn rect(class: &'static str, at: Point, size: Point, title: &str) -> Mark {
    Mark::Rect { class, hue: None, at, size, opacity: None, title: title.to_owned() }
}

pub(super) fn text(class: &'static str, at: Point, anchor: Anchor, text: &str) -> Mark {
    Mark::Text { class, at, anchor, upright: false, text: text.to_owned(), whole: String::new() }
}

/// Text cut in the middle to at most `most` px.
pub(super) fn text_within(most: f64, class: &'static str, at: Point, anchor: Anchor, whole: &str) -> Mark {
    let (text, whole) = cut(whole, if class == "head" { most / BOLD } else { most });
    Mark::Text { class, at, anchor, upright: false, text, whole }
}

/// Centred text cut in the middle to at most `most` px, rotated by 90 degrees to read upwards.
pub(super) fn upright(most: f64, at: Point, whole: &str) -> Mark {
    let (text, whole) = cut(whole, most);
    Mark::Text { class: "", at, anchor: Anchor::Middle, upright: true, text, whole }
}

/// The text cut in the middle to at most `most` px, and the whole text if it was cut.
fn cut(whole: &str, most: f64) -> (String, String) {
    let text = fitted(whole, most);
    let whole = if text == whole { String::new() } else { whole.to_owned() };
    (text, whole)
}

/// A coordinate rounded to a tenth of a pixel, which prints without trailing zeros.
fn px(value: f64) -> f64 {
    let tenths = if value.is_finite() { (value * 10.0).round() / 10.0 } else { 0.0 };
    tenths + 0.0 // −0 prints as 0
}

/// A length in inches, rounded to a thousandth.
fn rounded(inches: f64) -> f64 {
    (inches * 1_000.0).round() / 1_000.0
}

/// Path data. The first point is absolute; each other point is relative to the previous one, in tenths of a pixel
/// without accumulated rounding errors. Points closer than a third of a pixel to the previous one are left out.
fn data(points: &[Point]) -> String {
    let mut out = String::with_capacity(8 * points.len());
    let tenth = |value: f64| (value * 10.0).round() as i64;
    let mut last: Option<(i64, i64)> = None;
    for (i, &(x, y)) in points.iter().enumerate() {
        let at = (tenth(x), tenth(y));
        let Some(before) = last else {
            let _ = write!(out, "M{} {}", px(x), px(y));
            last = Some(at);
            continue;
        };
        let (dx, dy) = (at.0 - before.0, at.1 - before.1);
        if i + 1 < points.len() && dx.abs() <= 3 && dy.abs() <= 3 {
            continue;
        }
        let command = if out.contains('l') { ' ' } else { 'l' };
        let _ = write!(out, "{command}{} {}", px(dx as f64 / 10.0), px(dy as f64 / 10.0));
        last = Some(at);
    }
    out
}

/// Size of text in px.
const SIZE: f64 = 12.0;

/// Advance widths of the characters from space to `~`, in thousandths of the font size. Helvetica, Arial, Liberation
/// Sans and Arimo share these widths.
const ADVANCES: [u16; 95] = [
    278, 278, 355, 556, 556, 889, 667, 191, 333, 333, 389, 584, 278, 333, 278, 278, 556, 556, 556, 556, 556,
    556, 556, 556, 556, 556, 278, 278, 584, 584, 584, 556, 1015, 667, 667, 722, 722, 667, 611, 778, 722, 278,
    500, 667, 556, 833, 722, 778, 667, 778, 722, 667, 611, 722, 667, 944, 667, 667, 611, 278, 278, 278, 469,
    556, 333, 556, 556, 500, 556, 556, 278, 556, 556, 222, 222, 500, 222, 833, 556, 556, 556, 556, 333, 500,
    278, 556, 500, 722, 500, 500, 500, 334, 260, 334, 584,
];

/// Width of a character that the table lacks, in thousandths: the width of a wide Latin letter, or of a square sign.
const fn other(c: char) -> u16 {
    match c {
        '\u{202f}' => 200,
        '\u{2e80}'..='\u{9fff}' | '\u{ac00}'..='\u{d7af}' | '\u{ff00}'..='\u{ffef}' | '\u{1f000}'.. => 1_000,
        _ => 600,
    }
}

/// Width of a line of text in px.
pub(super) fn width(text: &str) -> f64 {
    let advance = |c: char| {
        let at = (c as usize).checked_sub(' ' as usize);
        f64::from(at.and_then(|at| ADVANCES.get(at)).copied().unwrap_or_else(|| other(c)))
    };
    text.chars().map(advance).sum::<f64>() * SIZE / 1_000.0
}

/// Upper bound of the ratio of widths of bold and regular text, for ordinary words.
pub(super) const BOLD: f64 = 1.12;

/// The text cut in the middle to at most `most` px.
pub(super) fn fitted(text: &str, most: f64) -> String {
    let mut size = text.chars().count();
    let mut cut = text.to_owned();
    while size > 3 && width(&cut) > most {
        size -= 1;
        cut = volary_experiment::number::elided(text, size);
    }
    cut
}

/// A font with the widths of Helvetica (SIL Open Font License 1.1, see `fonts/OFL.txt`), reduced to Latin, Greek,
/// Cyrillic and signs.
const REGULAR: &[u8] = include_bytes!("fonts/Arimo-Regular.ttf");
const BOLD_FONT: &[u8] = include_bytes!("fonts/Arimo-Bold.ttf");

/// Path data of a line of text that begins at the origin, and its width in px. Characters that the font lacks are drawn
/// as boxes.
fn outline(text: &str, size: f64, bold: bool) -> (String, f64) {
    let mut pen = Pen::default();
    // The fonts are part of the program, and a test parses them.
    let Ok(face) = Face::parse(if bold { BOLD_FONT } else { REGULAR }, 0) else { return Default::default() };
    pen.scale = size / f64::from(face.units_per_em());
    for c in text.chars() {
        let glyph = face.glyph_index(c).unwrap_or(GlyphId(0));
        face.outline_glyph(glyph, &mut pen);
        pen.x += f64::from(face.glyph_hor_advance(glyph).unwrap_or(0)) * pen.scale;
    }
    (pen.data, pen.x)
}

/// Writes the outlines of consecutive glyphs.
#[derive(Default)]
struct Pen {
    data: String,
    scale: f64,
    x: f64,
}

impl Pen {
    fn command(&mut self, name: char, points: &[(f32, f32)]) {
        self.data.push(name);
        for (x, y) in points {
            let (x, y) = (self.x + f64::from(*x) * self.scale, -f64::from(*y) * self.scale);
            let _ = write!(self.data, "{x:.2} {y:.2} ");
        }
    }
}

impl OutlineBuilder for Pen {
    fn move_to(&mut self, x: f32, y: f32) {
        self.command('M', &[(x, y)]);
    }

    fn line_to(&mut self, x: f32, y: f32) {
        self.command('L', &[(x, y)]);
    }

    fn quad_to(&mut self, x1: f32, y1: f32, x: f32, y: f32) {
        self.command('Q', &[(x1, y1), (x, y)]);
    }

    fn curve_to(&mut self, x1: f32, y1: f32, x2: f32, y2: f32, x: f32, y: f32) {
        self.command('C', &[(x1, y1), (x2, y2), (x, y)]);
    }

    fn close(&mut self) {
        self.data.push('Z');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_drop_invisible_points_and_keep_their_end() {
        let points: Vec<Point> = (0..=1_000).map(|i| (f64::from(i) * 0.1, 5.0)).collect();
        let path = data(&points);
        assert!(path.starts_with("M0 5l"), "{path}");
        assert!(path.matches(' ').count() < 600, "{path}");
        let moved: f64 = path[5..].split(' ').step_by(2).map(|dx| dx.parse::<f64>().unwrap()).sum();
        assert!((moved - 100.0).abs() < 1e-9, "{moved}");
        let flat = rect("fill", (0.0, 0.0), (1.0, -1.0), "").styled(&Styling::Page).into_string();
        assert!(flat.contains("height=\"0\""), "no negative size: {flat}");
    }

    fn picture(label: &str) -> Picture {
        let own = Mark::Rect {
            class: "fill",
            hue: Some(Hue::Kind(0)),
            at: (0.0, 0.0),
            size: (1.0, 1.0),
            opacity: None,
            title: label.to_owned(),
        };
        let group =
            Mark::Group { hue: Hue::Policy(1), marks: vec![rect("fill", (1.0, 0.0), (1.0, 1.0), ""), own] };
        Picture {
            size: (30.0, 20.0),
            label: label.to_owned(),
            marks: vec![group, text("", (3.0, 4.0), Anchor::End, label)],
            legend: vec![LegendItem { name: "same".to_owned(), wide: 4.0, marks: Vec::new() }],
        }
    }

    #[test]
    fn a_file_has_its_colours_without_a_page() {
        let file = picture("a").file(3.5, Letters::Text);
        assert!(file.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\""), "{file}");
        assert!(file.contains("width=\"3.5in\" height=\"4.433in\" viewBox=\"0 0 30 38\""), "{file}");
        assert!(file.contains("fill=\"#d55e00\"") && file.contains("fill=\"#77aadd\""), "{file}");
        assert!(!file.contains("class") && !file.contains("var(") && !file.contains("style"), "{file}");
        let page = picture("a").in_page().into_string();
        assert!(page.contains("<g class=\"p1 s1 d1\">") && page.contains("class=\"fill k0\""), "{page}");
    }

    #[test]
    fn names_in_a_picture_are_escaped() {
        let evil = "\"><script>alert(1)</script>'&\u{1b}]]>";
        let file = picture(evil).file(1.0, Letters::Text);
        assert_eq!(file.matches("&lt;script&gt;").count(), 4, "label, title, tooltip, text: {file}");
        assert!(!file.contains("<script") && !file.contains('\u{1b}'), "{file}");
    }

    #[test]
    fn pictures_beside_each_other_are_placed_in_rows() {
        let all = Picture::beside("all", vec![picture("a"), picture("b"), picture("c")], 2);
        assert_eq!((all.size, all.size()), ((60.0, 50.0), (60.0, 68.0)), "one legend for all");
        let (bare, legend) = Picture::apart(vec![picture("a"), picture("b")]);
        assert_eq!((bare[1].size(), legend.len()), ((30.0, 20.0), 1));
        let places =
            all.marks.iter().map(|mark| if let Mark::Moved { by, .. } = mark { *by } else { (0.0, 0.0) });
        assert_eq!(places.collect::<Vec<_>>(), [(0.0, 0.0), (30.0, 0.0), (0.0, 30.0)]);
        assert_eq!(px_of(3.5).round(), 378.0);
    }

    #[test]
    fn text_is_as_wide_as_its_characters() {
        assert!((width("Hi ") - 12.0 * (0.722 + 0.222 + 0.278)).abs() < 1e-9);
        assert!((width("~é日") - 12.0 * (0.584 + 0.6 + 1.0)).abs() < 1e-9);
        let cut = fitted("a policy with a long label", 80.0);
        assert!(width(&cut) <= 80.0 && width(&cut) > 70.0 && cut.contains('…'), "{cut}");
        assert_eq!(fitted("short", 80.0), "short");
    }

    #[test]
    fn outlines_have_the_computed_width_of_their_text() {
        let ascii: String = (' '..='~').collect();
        for text in [ascii.as_str(), "31.9\u{202f}ms"] {
            assert!((outline(text, SIZE, false).1 - width(text)).abs() < 0.05, "{text}");
        }
        assert!(
            outline(&ascii, SIZE, true).1 < BOLD * width(&ascii),
            "BOLD is the ratio by which titles are fitted"
        );
        let (line, _) = outline("l", 10.0, false);
        assert!(line.starts_with('M') && line.ends_with('Z') && line.contains(" -7."), "upright: {line}");
        assert_eq!(outline(" ", 10.0, false).0, "");
    }

    #[test]
    fn the_font_has_glyphs_for_all_signs_of_reports() {
        let face = Face::parse(REGULAR, 0).unwrap();
        for c in "×µ±≤≥–−…≈→²äéßΩλЖ".chars() {
            assert!(face.glyph_index(c).is_some(), "{c}");
        }
    }
}
