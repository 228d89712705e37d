//! Pictures: marks with a place and a class, as SVG in a page or in a file of its own.
//!
//! In a page, classes and CSS variables give marks their colours, so that a chart follows the page's dark mode. A file
//! has the same marks with attributes.

use std::fmt::Write;

use maud::{Markup, PreEscaped, html};
use volary_experiment::sanitize;

use super::outline::outline;
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

/// An element of a picture. Classes are those of the style sheet of charts.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Mark {
    Line {
        class: &'static str,
        from: Point,
        to: Point,
    },
    /// With the colour of a hue instead of that of its group, and a tooltip unless `title` is empty.
    Rect {
        class: &'static str,
        hue: Option<Hue>,
        at: Point,
        size: Point,
        opacity: Option<f64>,
        title: String,
    },
    Dot {
        class: &'static str,
        at: Point,
        title: String,
    },
    /// A line through points, or an area if it is closed.
    Path {
        class: &'static str,
        points: Vec<Point>,
        closed: bool,
        title: String,
    },
    Text {
        class: &'static str,
        at: Point,
        anchor: Anchor,
        upright: bool,
        text: String,
    },
    /// Marks in the colour of a hue.
    Group {
        hue: Hue,
        marks: Vec<Self>,
    },
    /// Marks that are moved right and down.
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
}

impl Picture {
    /// Width and height in px.
    pub const fn size(&self) -> Point {
        self.size
    }

    /// The picture as part of a page. It shrinks with its container and never grows.
    pub fn in_page(&self) -> Markup {
        let (width, height) = (px(self.size.0), px(self.size.1));
        html! {
            svg class="chart" role="img" aria-label=(self.label) viewBox={"0 0 " (width) " " (height)}
                width=(width) height=(height) { @for mark in &self.marks { (mark.styled(&Styling::Page)) } }
        }
    }

    /// The picture as a file of its own on white, `inches` wide; its text is 8 points high if it was laid out as wide
    /// as [`px_of`] says.
    pub fn file(&self, inches: f64, letters: Letters) -> String {
        let (width, height) = self.size;
        let high = inches * height / width;
        let page = html! {
            svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label=(self.label)
                width={ (rounded(inches)) "in" } height={ (rounded(high)) "in" }
                viewBox={"0 0 " (px(width)) " " (px(height))}
                font-family="Arimo, Arial, Helvetica, 'Liberation Sans', sans-serif" font-size=(super::text::SIZE) {
                title { (self.label) }
                rect width=(px(width)) height=(px(height)) fill="#ffffff" {}
                @for mark in &self.marks { (mark.styled(&Styling::File(letters, None))) }
            }
        };
        sanitize::document(page.into_string())
    }

    /// Pictures in rows of `columns`, each as wide as its own widest, under a common name.
    pub fn beside(label: &str, pictures: Vec<Self>, columns: usize) -> Self {
        let columns = columns.max(1);
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
        Self { size: (wide * used as f64, (top - GAP).max(0.0)), label: label.to_owned(), marks }
    }
}

/// Space between rows of pictures in px.
const GAP: f64 = 10.0;

/// The width in px at which a picture of `inches` has text of 8 points.
pub fn px_of(inches: f64) -> f64 {
    inches * 72.0 * super::text::SIZE / 8.0
}

/// The form of the text in a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Letters {
    /// As text, in a font of the reader's machine.
    Text,
    /// As outlines.
    Outlines,
}

/// The way in which marks get their colours.
enum Styling {
    /// By classes.
    Page,
    /// By attributes, of marks in a group of a hue.
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

/// Attributes of an element: names that are known to be safe, and any values.
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

    /// An element with these attributes and a content.
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
            Self::Dot { class, at, title } => {
                let dot = look.of(class, None).and("cx", px(at.0)).and("cy", px(at.1)).and("r", "3.5");
                dot.element("circle", &tooltip(title))
            }
            Self::Path { class, points, closed, title } => {
                let data = data(points) + if *closed { "Z" } else { "" };
                look.of(class, None).and("d", data).element("path", &tooltip(title))
            }
            Self::Text { class, at, anchor, upright, text } => {
                let place = TextPlace { at: *at, anchor: *anchor, upright: *upright };
                match look {
                    Styling::File(Letters::Outlines, _) => place.outlined(look, class, text),
                    Styling::Page | Styling::File(Letters::Text, _) => place.text(look, class, text),
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

/// The place of a text.
struct TextPlace {
    at: Point,
    anchor: Anchor,
    /// Whether it reads upwards.
    upright: bool,
}

impl TextPlace {
    fn text(&self, look: &Styling, class: &'static str, text: &str) -> Markup {
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
        element.element("text", &html! { (text) })
    }

    fn outlined(&self, look: &Styling, class: &'static str, text: &str) -> Markup {
        let (data, wide) = outline(text, super::text::SIZE, class == "head");
        let back = match self.anchor {
            Anchor::Start => 0.0,
            Anchor::Middle => -wide / 2.0,
            Anchor::End => -wide,
        };
        let (x, y) = (px(self.at.0), px(self.at.1));
        let turned = if self.upright { " rotate(-90)" } else { "" };
        let place = format!("translate({x} {y}){turned} translate({back:.2} 0)");
        look.of(class, None).and("transform", place).and("d", data).element("path", &tooltip(""))
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
    Mark::Text { class, at, anchor, upright: false, text: text.to_owned() }
}

/// Centred text, rotated by 90 degrees to read upwards.
pub(super) fn upright(at: Point, text: &str) -> Mark {
    Mark::Text { class: "", at, anchor: Anchor::Middle, upright: true, text: text.to_owned() }
}

/// A coordinate to a tenth of a pixel, which prints without trailing zeros.
fn px(value: f64) -> f64 {
    let tenths = if value.is_finite() { (value * 10.0).round() / 10.0 } else { 0.0 };
    tenths + 0.0 // −0 prints as 0
}

/// A length in inches, to a thousandth.
fn rounded(inches: f64) -> f64 {
    (inches * 1_000.0).round() / 1_000.0
}

/// Path data: the first point is absolute, the others relative to the previous one, in tenths of a pixel without
/// accumulated rounding errors. Points closer than a third of a pixel to the previous one are left out.
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
        }
    }

    #[test]
    fn a_file_needs_no_page() {
        let file = picture("a").file(3.5, Letters::Text);
        assert!(file.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\""), "{file}");
        assert!(file.contains("width=\"3.5in\" height=\"2.333in\" viewBox=\"0 0 30 20\""), "{file}");
        assert!(file.contains("fill=\"#d55e00\"") && file.contains("fill=\"#77aadd\""), "{file}");
        assert!(!file.contains("class") && !file.contains("var(") && !file.contains("style"), "{file}");
        let page = picture("a").in_page().into_string();
        assert!(page.contains("<g class=\"p1 s1 d1\">") && page.contains("class=\"fill k0\""), "{page}");
    }

    #[test]
    fn names_stay_text() {
        let evil = "\"><script>alert(1)</script>'&\u{1b}]]>";
        let file = picture(evil).file(1.0, Letters::Text);
        assert_eq!(file.matches("&lt;script&gt;").count(), 4, "label, title, tooltip, text: {file}");
        assert!(!file.contains("<script") && !file.contains('\u{1b}'), "{file}");
    }

    #[test]
    fn pictures_stand_in_rows() {
        let all = Picture::beside("all", vec![picture("a"), picture("b"), picture("c")], 2);
        assert_eq!(all.size, (60.0, 50.0));
        let places =
            all.marks.iter().map(|mark| if let Mark::Moved { by, .. } = mark { *by } else { (0.0, 0.0) });
        assert_eq!(places.collect::<Vec<_>>(), [(0.0, 0.0), (30.0, 0.0), (0.0, 30.0)]);
        assert_eq!(px_of(3.5).round(), 378.0);
    }
}
