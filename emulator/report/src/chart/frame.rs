//! The common frame of all charts: the title, the horizontal axis, and the legend.

use super::scale::{Scale, TickUnit};
use super::svg::{
    Anchor, LEGEND_LEFT, LegendItem, Mark, Picture, Point, line, rect, text, text_within, width,
};
use super::theme::{self, Hue};

/// Minimum space between two labels of an axis, px.
pub(super) const APART: f64 = 10.0;

/// A chart's frame: the edges of its drawing area in px.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    pub(super) left: f64,
    pub(super) right: f64,
    pub(super) top: f64,
    pub(super) bottom: f64,
    /// The right edge of the picture, which no label may cross.
    pub(super) edge: f64,
}

/// An entry of a legend.
pub(super) struct LegendEntry<'a> {
    /// Colour of the entry, if its mark has none.
    pub(super) hue: Option<Hue>,
    /// Class of the mark: `curve` for a line, `arrow` for an arrow, any other for a box.
    pub(super) mark: &'static str,
    pub(super) name: &'a str,
}

impl Frame {
    /// Grid lines with labels at the ticks of the horizontal axis, at least `apart` px from each other.
    pub(super) fn x_axis(&self, scale: &Scale, unit: TickUnit, apart: f64) -> Vec<Mark> {
        let ticks = scale.ticks(unit, ((self.right - self.left) / apart) as usize);
        self.x_labels(scale, ticks.into_iter().map(|value| (value, scale.tick(unit, value))))
    }

    /// Grid lines with labels at values. A label that would touch the previous label or the edge is moved or left out.
    pub(super) fn x_labels(&self, scale: &Scale, ticks: impl Iterator<Item = (f64, String)>) -> Vec<Mark> {
        let (mut marks, mut taken) = (Vec::new(), f64::NEG_INFINITY);
        for (value, label) in ticks {
            let x = scale.at(value);
            marks.push(line("grid", (x, self.top), (x, self.bottom)));
            let half = width(&label) / 2.0;
            let middle = x.min(self.edge - half - 1.0).max(half + 1.0);
            if middle - half >= taken {
                marks.push(text("", (middle, self.bottom + 16.0), Anchor::Middle, &label));
                taken = middle + half + APART;
            }
        }
        marks
    }
}

/// The mark of the n-th policy.
pub(super) fn dot(i: usize, at: Point, title: String) -> Mark {
    let (class, corners) = theme::mark(i);
    Mark::Dot { class, corners, at, title }
}

/// A picture of a size with its title at `head`, its content, and its legend.
pub(super) fn framed(
    (wide, height): Point,
    (head, title): (f64, &str),
    content: Vec<Mark>,
    legend: &[LegendEntry<'_>],
) -> Picture {
    let mut marks = vec![text_within(wide - head, "head", (head, 16.0), Anchor::Start, title)];
    marks.extend(content);
    let legend = legend.iter().map(|entry| entry.item(wide - LEGEND_LEFT)).collect();
    Picture { size: (wide, height), label: title.to_owned(), marks, legend }
}

impl LegendEntry<'_> {
    /// The entry as marks, at most `most` px wide.
    fn item(&self, most: f64) -> LegendItem {
        let is_line = self.mark == "curve";
        let size = if is_line { 26.0 } else { 11.0 };
        if self.mark == "burst" {
            return self.slowdowns(size);
        }
        let sign = if self.mark == "arrow" {
            text("", (0.0, 10.0), Anchor::Start, "→")
        } else if is_line {
            let (points, title) = (vec![(0.0, 6.0), (size, 6.0)], String::new());
            Mark::Path { class: "curve", points, closed: false, title }
        } else {
            rect(self.mark, (0.0, 0.0), (size, size), "")
        };
        let dot = match self.hue {
            Some(Hue::Policy(i)) if is_line => Some(dot(i, (size / 2.0, 6.0), String::new())),
            _ => None,
        };
        let most = most - size - 8.0;
        let wide = size + 5.0 + width(self.name).min(most) * 1.06;
        let said = text_within(most, "name", (size + 5.0, 10.0), Anchor::Start, self.name);
        let marks: Vec<Mark> = [sign].into_iter().chain(dot).chain([said]).collect();
        let marks = match self.hue {
            Some(hue) => vec![Mark::Group { hue, marks }],
            None => marks,
        };
        LegendItem { name: self.name.to_owned(), wide, marks }
    }

    /// The name with a box for each of several slowdowns, `size` px wide.
    fn slowdowns(&self, size: f64) -> LegendItem {
        const SHOWN: [(f64, &str); 3] = [(2.0, "×2"), (4.5, "×4.5"), (10.0, "×10 or more")];
        let mut marks = vec![text("name", (0.0, 10.0), Anchor::Start, self.name)];
        let mut wide = width(self.name) * 1.06;
        for (factor, name) in SHOWN {
            let left = wide + 8.0;
            marks.push(burst((left, 0.0), (size, size), factor, String::new()));
            marks.push(text("name", (left + size + 4.0, 10.0), Anchor::Start, name));
            wide = left + size + 4.0 + width(name) * 1.06;
        }
        LegendItem { name: self.name.to_owned(), wide, marks }
    }
}

/// The shade of a slowdown: light for a factor of two, darkest for a factor of ten or more.
pub(super) fn burst(at: Point, size: Point, factor: f64, title: String) -> Mark {
    let opacity = Some(0.15 + 0.35 * (factor.max(1.0).log10()).min(1.0));
    Mark::Rect { class: "burst", hue: None, at, size, opacity, title }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chart::scale::AxisScale;
    use crate::chart::svg::LEGEND_ROW;

    /// The texts of marks with their left and right edges.
    fn extents(marks: &[Mark]) -> Vec<(f64, f64, String)> {
        let of = |mark: &Mark| {
            let Mark::Text { at, anchor: Anchor::Middle, text, .. } = mark else { return None };
            Some((at.0 - width(text) / 2.0, at.0 + width(text) / 2.0, text.clone()))
        };
        marks.iter().filter_map(of).collect()
    }

    #[test]
    fn labels_neither_touch_nor_leave_the_picture() {
        let frame = Frame { left: 62.0, right: 386.0, top: 0.0, bottom: 100.0, edge: 400.0 };
        for high in [1.0, 600.0, 12_345.0, 3.6e6] {
            let scale = Scale::new(AxisScale::Linear, (0.0, high), (frame.left, frame.right));
            let found = extents(&frame.x_axis(&scale, TickUnit::Seconds, 30.0));
            assert!(found.len() > 2 && found.iter().all(|one| one.0 >= 0.0 && one.1 <= 400.0), "{found:?}");
            assert!(found.windows(2).all(|pair| pair[0].1 + APART <= pair[1].0 + 1e-9), "{found:?}");
        }
    }

    #[test]
    fn a_long_legend_is_broken_into_rows() {
        let names: Vec<String> = (0..5)
            .map(|i| format!("policy number {i} with a label{}", " and more".repeat(20 * (i % 2))))
            .collect();
        let entries: Vec<_> =
            names.iter().map(|name| LegendEntry { hue: Some(Hue::Policy(0)), mark: "curve", name }).collect();
        let picture = framed((378.0, 100.0), (10.0, "t"), Vec::new(), &entries);
        assert_eq!(picture.size().1, 100.0 + 5.0 * LEGEND_ROW, "each row has one entry");
    }
}
