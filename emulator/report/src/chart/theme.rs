//! Colours that remain distinguishable with colour vision deficiency, on white and on black. Each colour has one
//! meaning.
//!
//! Policies have saturated colours (after Okabe and Ito); kinds of messages and of work have pale colours (after Tol).
//! Ends of copies are grey or brown; red marks slow parts. Pages use the colours as CSS variables. Files have the
//! colours of a light page as attributes of every mark, because other programs know neither the page's style sheet nor
//! its variables.

use std::fmt::Write;

use volary_actors::message::{KINDS, kind_name};

/// Number of colours of policies, and of kinds. Further policies and kinds repeat the colours; policies then have other
/// dashes and marks.
pub const COLOURS: usize = 8;

/// The colour of a mark whose class has no colour.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Hue {
    /// The n-th policy.
    Policy(usize),
    /// The n-th kind of an object.
    Kind(usize),
    /// A kind of message: the colour of its family, and a shade. Files show no messages, so they have no shades.
    Message { family: usize, shade: usize },
}

/// Families of messages, by the first part of their kinds; the n-th family has the n-th colour of kinds, and messages
/// of no family have the last one.
const FAMILIES: [&[&str]; COLOURS - 1] = [
    &["launch"],
    &["probe", "offer"],
    &["group", "gang", "preempt"],
    &["ring", "share", "steal"],
    &["gossip", "rumour", "spread", "cache"],
    &["heartbeat", "progress", "usage", "swim"],
    &["job", "core"],
];

/// Number of shades of a family of messages; no family has more kinds.
const SHADES: usize = 24;

/// The index of the family of a kind of message, and the index of the kind in the family. For a kind of no family, such
/// as a kind added by another crate, the second index is computed from its letters.
pub fn message(kind: &str) -> (usize, usize) {
    let family = |kind: &str| {
        let first = kind.split('.').next().unwrap_or_default();
        FAMILIES.iter().position(|members| members.contains(&first)).unwrap_or(FAMILIES.len())
    };
    let own = family(kind);
    if own == FAMILIES.len() {
        return (own, kind.bytes().map(usize::from).sum());
    }
    let members = (0..KINDS.len()).map(|at| kind_name(at as u8)).filter(|other| family(other) == own);
    (own, members.take_while(|other| *other != kind).count())
}

/// A colour: its name as a CSS variable, its value on a light page, and its value on a dark page.
type Colour = (&'static str, &'static str, &'static str);

/// All colours.
const PALETTE: [Colour; 35] = [
    ("paper", "#ffffff", "#12161c"),
    ("card", "#f7f8fa", "#1a2028"),
    ("ink", "#1a2230", "#e6eaf0"),
    ("soft", "#5b6675", "#9aa6b5"),
    ("rule", "#d9dee6", "#313a46"),
    ("accent", "#0b63b0", "#6cb6f5"),
    ("good", "#0a7a50", "#5fd0a0"),
    ("bad", "#b3261e", "#ff8a80"),
    ("warn", "#8a5a00", "#f0c060"),
    ("good-bg", "#e3f5ec", "#143024"),
    ("bad-bg", "#fdeae8", "#3a1d1b"),
    ("warn-bg", "#fdf3dd", "#352a12"),
    ("slow", "#d7191c", "#ff6b6b"),
    ("c0", "#0072b2", "#5ab4f0"),
    ("c1", "#d55e00", "#ff8a3d"),
    ("c2", "#009e73", "#3fd0a0"),
    ("c3", "#a64d9b", "#dc94d2"),
    ("c4", "#b88200", "#f0c040"),
    ("c5", "#3a9bd5", "#9ad4ff"),
    ("c6", "#6b5bb0", "#b0a2f0"),
    ("c7", "#4a4a4a", "#c8c8c8"),
    ("k0", "#77aadd", "#77aadd"),
    ("k1", "#ee8866", "#ee8866"),
    ("k2", "#eedd88", "#eedd88"),
    ("k3", "#ffaabb", "#ffaabb"),
    ("k4", "#44bb99", "#44bb99"),
    ("k5", "#bbcc33", "#bbcc33"),
    ("k6", "#99ddff", "#99ddff"),
    ("k7", "#dddddd", "#8a8f98"),
    ("first", "#64748b", "#94a3b8"),
    ("second", "#b9c3d0", "#566275"),
    ("preempted", "#8d6e4a", "#c8a47a"),
    ("suspended", "#d9c39a", "#7a6544"),
    ("lost", "#111111", "#ffffff"),
    ("in-progress", "#93a5ba", "#6d8199"),
];

/// The colour of a name on a light page.
fn light(name: &str) -> &'static str {
    PALETTE.iter().find(|colour| colour.0 == name).map_or("#000000", |colour| colour.1)
}

/// Dashes of the lines of policies.
const DASHES: [&str; 4] = ["", "7 4", "2 4", "10 3 2 3"];

/// Corners of the marks of policies around their centre, px: a circle, which has none, a square, a diamond, a triangle.
const MARKS: [&[(f64, f64)]; 4] = [
    &[],
    &[(-3.3, -3.3), (3.3, -3.3), (3.3, 3.3), (-3.3, 3.3)],
    &[(0.0, -4.7), (4.7, 0.0), (0.0, 4.7), (-4.7, 0.0)],
    &[(0.0, -4.4), (4.4, 3.6), (-4.4, 3.6)],
];

/// Number of looks, which distinguish policies without colours: each look has a dash and a mark, and of two looks with
/// the same dash, one has a filled mark and the other an open one.
const LOOKS: usize = 2 * DASHES.len();

/// The look of the n-th policy. It differs from the looks of the previous policies and of policies with its colour.
const fn look(i: usize) -> usize {
    (i + i / COLOURS) % LOOKS
}

/// The mark of the n-th policy: its class and its corners.
pub(super) fn mark(i: usize) -> (&'static str, &'static [(f64, f64)]) {
    let look = look(i);
    (if look < MARKS.len() { "dot" } else { "ring" }, MARKS[look % MARKS.len()])
}

/// The distance of the n-th policy's first mark from the start of its line, as a part of the distance between marks. It
/// differs between looks, so that marks of coinciding lines do not overlap.
pub(super) fn first_mark(i: usize) -> f64 {
    (look(i) as f64 + 0.5) / LOOKS as f64
}

/// Classes of the n-th policy: colour, look, and a class that hides the policy.
pub fn policy(i: usize) -> String {
    format!("p{i} {}", series(i))
}

/// Colour and look of the n-th policy, without the class that hides it.
pub fn series(i: usize) -> String {
    format!("s{} d{}", i % COLOURS, look(i))
}

impl Hue {
    /// The classes that set the colour on a page.
    pub(super) fn classes(self) -> String {
        match self {
            Self::Policy(i) => policy(i),
            Self::Kind(i) => format!("k{}", i % COLOURS),
            Self::Message { family, shade } => format!("k{family} m{}", shade % SHADES),
        }
    }

    /// The colour of a kind of message, the same everywhere.
    pub fn of_message(kind: &str) -> Self {
        let (family, shade) = message(kind);
        Self::Message { family, shade }
    }

    fn light(self) -> &'static str {
        match self {
            Self::Policy(i) => light(&format!("c{}", i % COLOURS)),
            Self::Kind(i) | Self::Message { family: i, .. } => light(&format!("k{}", i % COLOURS)),
        }
    }

    /// The dashes of a line; empty for a solid line.
    fn dash(self) -> &'static str {
        match self {
            Self::Policy(i) => DASHES[look(i) % DASHES.len()],
            Self::Kind(_) | Self::Message { .. } => "",
        }
    }
}

/// The style sheet that charts and wide tables require, with variables that pages may also use.
pub fn css() -> String {
    let mut out = String::new();
    let variables = |of: fn(&Colour) -> &'static str| {
        let mut all = String::new();
        for colour in &PALETTE {
            let _ = write!(all, "--{}:{};", colour.0, of(colour));
        }
        all
    };
    let (light, dark) = (variables(|colour| colour.1), variables(|colour| colour.2));
    let _ = write!(
        out,
        ":root{{{light}}}@media screen and (prefers-color-scheme:dark){{:root:not([data-theme=light]){{{dark}}}}}\
         @media screen{{:root[data-theme=dark]{{{dark}}}}}"
    );
    for i in 0..COLOURS {
        let _ = write!(out, ".s{i}{{--c:var(--c{i})}}.k{i}{{--k:var(--k{i});--c:var(--k)}}");
    }
    for shade in 1..SHADES {
        let _ = write!(out, ".m{shade}{{--c:color-mix(in srgb,var(--k) {}%,var(--ink))}}", 100 - 3 * shade);
    }
    out.push_str(include_str!("theme.css"));
    out.push_str(include_str!("scroll.css"));
    out
}

/// The attributes of a mark in a file, by its class.
pub(super) fn attributes(class: &str, hue: Option<Hue>) -> Vec<(&'static str, &'static str)> {
    let own = hue.map_or_else(|| light("soft"), Hue::light);
    let dash = hue.map_or("", Hue::dash);
    let stroke = |colour, width| vec![("fill", "none"), ("stroke", colour), ("stroke-width", width)];
    let fill = |colour| vec![("fill", colour)];
    let mut found = match class {
        "grid" => stroke(light("rule"), "1"),
        "minor" => stroke(light("rule"), "0.5"),
        "axis" => stroke(light("soft"), "1"),
        "frame" => stroke(light("rule"), "1"),
        "curve" | "running" => stroke(own, "2"),
        "whisker" => stroke(own, "1.2"),
        "injected" => stroke(light("slow"), "1.2"),
        "dot" => vec![("fill", own), ("stroke", light("paper")), ("stroke-width", "1.2")],
        "ring" => vec![("fill", light("paper")), ("stroke", own), ("stroke-width", "1.6")],
        "band" => vec![("fill", own), ("fill-opacity", "0.16")],
        "fill" if matches!(hue, Some(Hue::Kind(_) | Hue::Message { .. })) => {
            vec![("fill", own), ("stroke", light("soft")), ("stroke-width", "0.6")]
        }
        "fill" => fill(own),
        "progress" => vec![("fill", own), ("fill-opacity", "0.7"), ("stroke", own), ("stroke-width", "0.8")],
        "waste" => vec![("fill", own), ("fill-opacity", "0.4"), ("stroke", own), ("stroke-width", "0.8")],
        "idle" => vec![("fill", light("rule")), ("stroke", light("soft")), ("stroke-width", "0.6")],
        "burst" | "shade" => fill(light("slow")),
        "head" => vec![("fill", light("ink")), ("font-weight", "bold")],
        "name" => fill(light("ink")),
        "" => fill(light("soft")),
        "first" | "preempted" | "lost" => fill(light(class)),
        pale => vec![("fill", light(pale)), ("stroke", light("soft")), ("stroke-width", "0.6")],
    };
    match class {
        "curve" | "running" => {
            found.extend([("stroke-linejoin", "round"), ("stroke-linecap", "round")]);
            found.extend((!dash.is_empty()).then_some(("stroke-dasharray", dash)));
            found.extend((class == "running").then_some(("opacity", "0.55")));
        }
        "injected" => found.push(("stroke-dasharray", "4 2")),
        _ => {}
    }
    found
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use volary_actors::message::kinds;

    use super::*;

    #[test]
    fn every_class_of_the_style_sheet_has_attributes() {
        let sheet = include_str!("theme.css");
        let variables = sheet.split("var(--").skip(1).filter_map(|rest| rest.split(')').next());
        for name in variables.filter(|name| *name != "c") {
            assert!(PALETTE.iter().any(|colour| colour.0 == name), "--{name} has no colour");
        }
        // The style sheet's own selectors, without the classes of policies, looks and pages.
        let selectors = sheet.split('.').skip(1);
        let words =
            selectors.filter_map(|rest| rest.split(|c: char| !c.is_ascii_lowercase() && c != '-').next());
        let classes: BTreeSet<&str> =
            words.filter(|class| !["", "chart", "swatch", "p", "s", "d"].contains(class)).collect();
        assert!(classes.len() > 10, "{classes:?}");
        for class in classes {
            let found = attributes(class, Some(Hue::Policy(9)));
            assert!(found.iter().all(|(_, value)| *value != "#000000"), "{class}: {found:?}");
        }
        for (policy, dash) in [(1, "7 4"), (9, "2 4"), (5, "7 4"), (3, "10 3 2 3")] {
            assert!(attributes("curve", Some(Hue::Policy(policy))).contains(&("stroke-dasharray", dash)));
        }
        let mut looks: Vec<_> = (0..4 * COLOURS).map(series).collect();
        looks.sort();
        looks.dedup();
        assert_eq!(looks.len(), 4 * COLOURS);
        let mut marks: Vec<_> = (0..8).map(|i| format!("{:?}", mark(i))).collect();
        marks.sort();
        marks.dedup();
        assert_eq!(marks.len(), 8, "eight policies have eight marks: {marks:?}");
    }

    #[test]
    fn messages_of_a_protocol_have_one_colour_and_different_shades() {
        let kinds = || kinds().map(|(kind, _)| kind);
        let hues: BTreeSet<String> = kinds().map(|kind| Hue::of_message(kind).classes()).collect();
        assert_eq!(hues.len(), kinds().count(), "two kinds look alike: {hues:?}");
        assert!(hues.iter().all(|hue| !hue.starts_with("k7 ")), "every kind has a family: {hues:?}");
        assert!(kinds().filter(|kind| kind.starts_with("launch.")).all(|kind| message(kind).0 == 0));
        let own = ["mine.ask", "mine.tell"].map(|kind| Hue::of_message(kind).classes());
        assert!(own[0] != own[1] && own.iter().all(|hue| hue.starts_with("k7 ")), "{own:?}");
        let families = FAMILIES.concat();
        assert!(families.iter().all(|family| KINDS.iter().any(|(kind, _)| kind.starts_with(family))));
    }

    #[test]
    fn every_colour_has_one_meaning() {
        let mut seen: Vec<&str> = Vec::new();
        let meanings = PALETTE.iter().filter(|(name, ..)| {
            let rest = name.trim_start_matches(['c', 'k']);
            rest.len() == 1
                || ["slow", "first", "second", "preempted", "suspended", "lost", "in-progress"].contains(name)
        });
        for colour in meanings {
            assert!(!seen.contains(&colour.1), "{colour:?}");
            seen.push(colour.1);
        }
        assert_eq!(seen.len(), 23);
    }
}
