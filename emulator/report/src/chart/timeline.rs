//! Timelines of cores: a row for each core, a block for each execution, and shades for interference. Cores at one
//! moment are drawn as tiles, shaded by their slowdown; the tile of a core that runs a copy contains a smaller square.

use std::collections::BTreeSet;

use serde::Serialize;
use volary_engine::results::{CopyEnd, CopyRow};
use volary_experiment::number;
use volary_experiment::storage::run_record::Slice;
use volary_experiment::storage::tables::end_name;

use super::frame::{Frame, LegendEntry, burst, framed};
use super::scale::{AxisScale, Scale, TickUnit};
use super::svg::{Anchor, Mark, Picture, rect, text};
use super::theme::Hue;

/// Maximum number of cores shown.
const CORES: usize = 16;
/// Maximum number of blocks and shades of a readable timeline; callers shorten the window to stay within it.
pub const BLOCKS: usize = 700;

/// Maximum end of the window, as a multiple of the start of the last execution, if the whole run is recorded.
const FAR: f64 = 3.0;
/// The same limit if the run is longer than its record, because the rest of the timeline would be empty.
const NEAR: f64 = 1.1;

const LEFT: f64 = 62.0;
const RIGHT: f64 = 14.0;
const TOP: f64 = 28.0;
const ROW: f64 = 20.0;

/// Interference in a timeline: bursts as (core, from s, until s, slowdown), and injections as (core, from s, until s),
/// which are drawn as frames around the executions.
#[derive(Clone, Copy, Debug, Default)]
pub struct Shades<'a> {
    pub bursts: &'a [(u32, f64, f64, f64)],
    pub injected: &'a [(u32, f64, f64)],
}

/// The rows, times and width that timelines beside each other share.
#[derive(Clone, Copy, Debug)]
pub struct Window<'a> {
    /// The cores, ascending; each has a row, so that rows of several timelines line up.
    pub cores: &'a [u32],
    /// Start and end, s.
    pub time: (f64, f64),
    /// Width, px.
    pub wide: f64,
}

/// A timeline of a window, from slices in order of core.
pub fn timeline(title: &str, slices: &[Slice], shades: Shades<'_>, window: Window<'_>) -> Picture {
    let Window { cores, time, wide } = window;
    let bottom = TOP + ROW * cores.len() as f64;
    let frame = Frame { left: LEFT, right: wide - RIGHT, top: TOP, bottom, edge: wide };
    let x = Scale::new(AxisScale::Linear, time, (frame.left, frame.right));
    let mut marks = frame.x_axis(&x, TickUnit::Seconds, ((frame.right - frame.left) / 6.0).min(80.0));
    marks.extend(cores.iter().enumerate().map(|(row, core)| {
        text("", (LEFT - 7.0, TOP + ROW * row as f64 + 14.0), Anchor::End, &format!("core {core}"))
    }));
    marks.extend(blocks(slices, shades, &x, window));
    let legend = legend(slices, shades, window);
    framed((wide, bottom + 26.0), (8.0, title), marks, &legend)
}

impl Window<'_> {
    /// Whether a mark of a core is in the window at least in part.
    fn has(&self, core: u32, from: f64, until: f64) -> bool {
        from < self.time.1 && until > self.time.0 && self.cores.binary_search(&core).is_ok()
    }
}

/// The legend of the marks in a window.
fn legend(slices: &[Slice], shades: Shades<'_>, window: Window<'_>) -> Vec<LegendEntry<'static>> {
    let copies =
        || slices.iter().map(|slice| &slice.0).filter(|copy| window.has(copy.core, copy.start, copy.end));
    let ends: Vec<CopyEnd> = copies().map(|copy| copy.end_kind).collect();
    let shown = CopyEnd::ALL.into_iter().filter(|kind| ends.contains(kind));
    let mut legend: Vec<_> = shown.map(|kind| (end_name(kind), words(kind))).collect();
    let bursts = shades.bursts.iter().any(|burst| window.has(burst.0, burst.1, burst.2));
    legend.extend(bursts.then_some(("burst", "core slowed down")));
    let injected = shades.injected.iter().any(|found| window.has(found.0, found.1, found.2));
    legend.extend(injected.then_some(("injected", "interference injected")));
    legend.extend(copies().any(|copy| window.time.1 < copy.end).then_some(("arrow", "continues")));
    legend.into_iter().map(|(mark, name)| LegendEntry { hue: None, mark, name }).collect()
}

/// Marks of bursts, of the executions over them, and of the frames of injections.
fn blocks(slices: &[Slice], shades: Shades<'_>, x: &Scale, window: Window<'_>) -> Vec<Mark> {
    let (begin, end) = window.time;
    // The row of a mark, if the window has the mark.
    let top_of = |core: u32, from: f64, until: f64| {
        let row = window.has(core, from, until).then(|| window.cores.binary_search(&core).ok())?;
        row.map(|row| TOP + ROW * row as f64)
    };
    let span = |from: f64, until: f64| {
        let left = x.at(from.max(begin));
        (left, x.at(until.min(end)) - left)
    };
    let bursts = shades.bursts.iter().filter_map(|&(core, start, stop, factor)| {
        let (y, (left, wide)) = (top_of(core, start, stop)?, span(start, stop));
        let title = format!("slowed down ×{} {}", number::short(factor), during(start, stop));
        Some(burst((left, y), (wide, ROW), factor, title))
    });
    let of_core = slices.chunk_by(|a, b| a.0.core == b.0.core);
    let copies = of_core.flat_map(|slices| {
        let shown = slices.iter().map(|slice| &slice.0);
        let shown = shown.filter(|copy| top_of(copy.core, copy.start, copy.end).is_some());
        let y = slices.first().and_then(|slice| top_of(slice.0.core, begin, end)).unwrap_or_default();
        let stretches = shown.map(|copy| {
            let (left, wide) = span(copy.start, copy.end);
            (left, left + wide, end_name(copy.end_kind), says(copy))
        });
        bars(stretches, (y + 5.0, ROW - 10.0))
    });
    let cut = slices.iter().map(|slice| &slice.0).filter(|copy| end < copy.end);
    let arrows = cut.filter_map(|copy| {
        let y = top_of(copy.core, copy.start, copy.end)?;
        Some(text("", (x.at(end) + 2.0, y + 14.0), Anchor::Start, "→"))
    });
    let injected = shades.injected.iter().filter_map(|&(core, from, until)| {
        let (y, (left, wide)) = (top_of(core, from, until)?, span(from, until));
        let title = format!("interference injected {}", during(from, until));
        Some(rect("injected", (left, y + 1.0), (wide, ROW - 2.0), &title))
    });
    bursts.chain(copies).chain(arrows).chain(injected).collect()
}

/// Bars of stretches of a core's work, in order: start and end in px, class, and tooltip. A stretch shorter than a
/// pixel joins the previous stretch of its class, unless the two are a pixel apart.
pub(super) fn bars(
    stretches: impl Iterator<Item = (f64, f64, &'static str, String)>,
    (y, high): (f64, f64),
) -> Vec<Mark> {
    let mut all: Vec<(f64, f64, &'static str, String)> = Vec::new();
    for (from, until, class, title) in stretches {
        match all.last_mut() {
            Some(last)
                if last.2 == class && from - last.1 < 1.0 && (until - from).min(last.1 - last.0) < 1.0 =>
            {
                // A long execution keeps its title beside the short ones that are merged into it.
                if until - from > 1.0 {
                    last.3 = title;
                } else if last.1 - last.0 < 1.0 {
                    last.3.clear();
                }
                last.1 = until.max(last.1);
            }
            Some(_) | None => all.push((from, until, class, title)),
        }
    }
    let bar = |(from, until, class, title): (f64, f64, &'static str, String)| {
        // Bars that touch each other have a gap.
        let wide = if until - from > 2.0 { until - from - 0.6 } else { (until - from).max(0.6) };
        rect(class, (from, y), (wide, high), &title)
    };
    all.into_iter().map(bar).collect()
}

pub(super) fn during(from: f64, until: f64) -> String {
    format!("from {} to {}", number::seconds(from), number::seconds(until))
}

pub(super) fn says(copy: &CopyRow) -> String {
    let CopyRow { job, task, attempt, start, end, end_kind, .. } = *copy;
    let (length, start) = (number::seconds(end - start), number::seconds(start));
    let end = number::seconds(end);
    format!("job {job} task {task} attempt {attempt}: {}, {length} from {start} to {end}", words(end_kind))
}

/// The first few cores of several timelines.
pub fn cores<'a>(timelines: impl Iterator<Item = &'a [Slice]>) -> Vec<u32> {
    let all: BTreeSet<u32> = timelines.flatten().map(|slice| slice.0.core).collect();
    all.into_iter().take(CORES).collect()
}

/// The limits of the window in which a timeline is drawn.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Extent {
    /// End of the last execution, s.
    pub last: f64,
    /// Start of the last execution, s.
    pub begun: f64,
    /// Time at which the number of blocks exceeds the limit, s; infinite if the number stays within the limit.
    pub fits: f64,
    /// Whether the record extends to the end of the run.
    pub whole: bool,
    /// Median end of the executions, s; after the start of the last execution if executions are long.
    pub middle: f64,
}

impl Extent {
    /// The extent of a timeline of `cores` in a run of `length` s, with a limit of `blocks` on the drawn blocks.
    pub fn of(
        slices: &[Slice],
        bursts: &[(u32, f64, f64, f64)],
        cores: &[u32],
        (length, blocks): (f64, usize),
    ) -> Self {
        let drawn = |core: u32| cores.binary_search(&core).is_ok();
        let slices = || slices.iter().filter(|slice| drawn(slice.0.core));
        let mut starts: Vec<f64> = slices().map(|slice| slice.0.start).collect();
        let begun = starts.iter().copied().fold(0.0, f64::max);
        starts.extend(bursts.iter().filter(|burst| drawn(burst.0)).map(|burst| burst.1));
        starts.sort_by(f64::total_cmp);
        let last = slices().map(|slice| slice.0.end).fold(0.0, f64::max);
        let fits = starts.get(blocks).copied().unwrap_or(f64::INFINITY);
        let mut ends: Vec<f64> = slices().map(|slice| slice.0.end).collect();
        ends.sort_by(f64::total_cmp);
        let middle = ends.get(ends.len() / 2).copied().unwrap_or(0.0);
        Self { last, begun, fits, whole: length < NEAR * last, middle }
    }

    /// The end of the common window of several timelines: the latest end of an execution. The window is shorter if this
    /// end is far beyond the start of the last execution, or if there would be too many blocks.
    pub fn common(extents: impl Iterator<Item = Self>) -> f64 {
        let none = Self { last: 0.0, begun: 0.0, fits: f64::INFINITY, whole: true, middle: 0.0 };
        let all = extents.fold(none, |a, b| Self {
            last: a.last.max(b.last),
            begun: a.begun.max(b.begun),
            fits: a.fits.min(b.fits),
            whole: a.whole && b.whole,
            middle: a.middle.max(b.middle),
        });
        let far = if all.begun == 0.0 {
            all.last
        } else if all.whole {
            FAR * all.begun
        } else {
            all.middle.max(NEAR * all.begun)
        };
        all.last.min(far).min(all.fits)
    }
}

pub(super) const fn words(end: CopyEnd) -> &'static str {
    match end {
        CopyEnd::First => "finished first",
        CopyEnd::Second => "finished second",
        CopyEnd::Preempted => "stopped",
        CopyEnd::Suspended => "ran until suspended",
        CopyEnd::Lost => "lost",
        CopyEnd::InProgress => "in progress",
    }
}

/// A core at one moment.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Tile {
    pub core: u32,
    /// Whether the core runs a copy.
    pub busy: bool,
    /// Factor by which interference slows the core down, at least 1; `None` while its node is down or paused.
    pub slowdown: Option<f64>,
    /// The host that emulates the core, in a run on hosts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
}

/// Side of a tile, side of the square in a tile, and distance between tiles, px.
const SIDE: f64 = 12.0;
const INNER: f64 = 6.0;
const STEP: f64 = 14.0;
const TILES_LEFT: f64 = 8.0;
const TILES_TOP: f64 = 26.0;

/// A picture of tiles in rows, `wide` px wide, with squares in the colour of a policy. The legend is the same for all
/// policies.
pub fn tiles(title: &str, tiles: &[Tile], policy: usize, wide: f64) -> Picture {
    let columns = (((wide - TILES_LEFT) / STEP) as usize).max(1);
    let place =
        |i: usize| (TILES_LEFT + STEP * (i % columns) as f64, TILES_TOP + STEP * (i / columns) as f64);
    let marks = tiles.iter().enumerate().flat_map(|(i, tile)| marks(tile, place(i))).collect();
    let height = TILES_TOP + STEP * tiles.len().div_ceil(columns) as f64 + 8.0;
    let mut legend = vec![
        ("name", "runs a copy, in the colour of its policy"),
        ("idle", "healthy"),
        ("burst", "slowed down"),
    ];
    if tiles.iter().any(|tile| tile.slowdown.is_none()) {
        legend.push(("lost", "down or paused"));
    }
    let legend: Vec<_> =
        legend.into_iter().map(|(mark, name)| LegendEntry { hue: None, mark, name }).collect();
    let inner = vec![Mark::Group { hue: Hue::Policy(policy), marks }];
    framed((wide, height), (TILES_LEFT, title), inner, &legend)
}

fn marks(tile: &Tile, (x, y): (f64, f64)) -> impl Iterator<Item = Mark> {
    let size = (SIDE, SIDE);
    let on = tile.host.as_ref().map_or_else(String::new, |host| format!(" on {host}"));
    let ground = match tile.slowdown {
        None => rect("lost", (x, y), size, &format!("core {}{on}: its node is down or paused", tile.core)),
        Some(factor) if factor > 1.0 => {
            let title = format!("core {}{on}: slowed down ×{}", tile.core, number::short(factor));
            burst((x, y), size, factor, title)
        }
        Some(_) => rect("idle", (x, y), size, ""),
    };
    let inset = (SIDE - INNER) / 2.0;
    let copy = tile.busy.then(|| rect("fill", (x + inset, y + inset), (INNER, INNER), ""));
    std::iter::once(ground).chain(copy)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slice(core: u32, start: f64, end: f64) -> Slice {
        Slice(CopyRow { job: 1, task: 2, attempt: 0, core, start, end, end_kind: CopyEnd::First })
    }

    /// The timeline of the cores in `slices` until `end`.
    fn drawn(slices: &[Slice], shades: Shades<'_>, (begin, end): (f64, f64)) -> String {
        let cores = cores([slices].into_iter());
        let window = Window { cores: &cores, time: (begin, end), wide: 1_060.0 };
        timeline("t", slices, shades, window).in_page().into_string()
    }

    #[test]
    fn blocks_and_shades_are_in_the_row_of_their_core() {
        let slices = [slice(3, 0.0, 5.0), slice(7, 5.0, 10.0)];
        let bursts = [(7, 0.0, 5.0, 10.0), (9, 0.0, 5.0, 2.0)];
        let shades = Shades { bursts: &bursts, injected: &[(3, 2.5, 99.0)] };
        let svg = drawn(&slices, shades, (0.0, 10.0));
        // 984 px show 10 s; the second row begins 20 px lower.
        for block in [
            "class=\"first\" x=\"62\" y=\"33\" width=\"491.4\"",
            "class=\"first\" x=\"554\" y=\"53\" width=\"491.4\"",
            "class=\"burst\" x=\"62\" y=\"48\" width=\"492\" height=\"20\" fill-opacity=\"0.50\"",
            "class=\"injected\" x=\"308\" y=\"29\" width=\"738\" height=\"18\"",
        ] {
            assert!(svg.contains(block), "{block}: {svg}");
        }
        assert!(!svg.contains("core 9"), "a core without work has no row");
        let late = drawn(&slices, shades, (4.0, 8.0));
        assert!(
            late.contains("class=\"first\" x=\"62\" y=\"33\" width=\"245.4\""),
            "cut at both edges: {late}"
        );
        assert!(late.contains("class=\"first\" x=\"308\" y=\"53\" width=\"737.4\""), "{late}");
    }

    #[test]
    fn stretches_shorter_than_a_pixel_are_one_bar() {
        let stretch = |from: f64, until: f64, class| (from, until, class, "t".to_owned());
        let many = (0..1_000).map(|at| f64::from(at) * 0.5).map(|at| stretch(at, at + 0.2, "suspended"));
        let all = many.chain([stretch(499.7, 510.0, "first"), stretch(510.0, 520.0, "first")]);
        let widths = bars(all, (0.0, 7.0)).into_iter().filter_map(|bar| {
            let Mark::Rect { at, size, class, .. } = bar else { return None };
            Some((class, at.0.round(), (size.0 + 0.6).round()))
        });
        assert_eq!(
            widths.collect::<Vec<_>>(),
            [("suspended", 0.0, 500.0), ("first", 500.0, 10.0), ("first", 510.0, 10.0)]
        );
    }

    #[test]
    fn rows_of_several_timelines_line_up() {
        let (a, b) = ([slice(3, 0.0, 1.0)], [slice(1, 0.0, 1.0)]);
        let all = cores([&a[..], &b[..]].into_iter());
        assert_eq!(all, [1, 3]);
        let window = Window { cores: &all, time: (0.0, 1.0), wide: 1_060.0 };
        let svg = timeline("t", &a, Shades::default(), window).in_page().into_string();
        assert!(svg.contains("core 1") && svg.contains("class=\"first\" x=\"62\" y=\"53\""), "{svg}");
    }

    #[test]
    fn the_legend_lists_only_marks_that_are_drawn() {
        let slices = [slice(3, 0.0, 1.0), slice(3, 5.0, 6.0)];
        let shades = Shades { bursts: &[(3, 4.0, 6.0, 2.0), (9, 0.0, 6.0, 2.0)], injected: &[(3, 1.0, 2.0)] };
        let marks = |begin, end| {
            let window = Window { cores: &[3], time: (begin, end), wide: 500.0 };
            legend(&slices, shades, window).iter().map(|entry| entry.mark).collect::<Vec<_>>()
        };
        assert_eq!(marks(0.0, 2.0), ["first", "injected"], "other cores and later bursts are left out");
        assert_eq!(marks(0.0, 5.5), ["first", "burst", "injected", "arrow"]);
        assert_eq!(marks(3.0, 7.0), ["first", "burst"], "earlier injections are left out");
    }

    #[test]
    fn the_window_ends_with_the_last_execution_of_all_timelines() {
        let common = |length: f64, slices: &[&[Slice]]| {
            Extent::common(slices.iter().map(|slices| Extent::of(slices, &[], &[0], (length, BLOCKS))))
        };
        let (short, long) = (&[slice(0, 9.0, 11.5)][..], &[slice(0, 9.0, 15.0)][..]);
        assert_eq!(common(11.0, &[short, long]), 15.0);
        let early = &[slice(0, 1.0, 2.0), slice(0, 2.0, 3.0), slice(0, 9.0, 15.0)][..];
        assert_eq!(common(900.0, &[early]), NEAR * 9.0, "the rest of the run is not recorded");
        let longest = [slice(0, 9.0, 1_000.0)];
        assert_eq!(common(11.0, &[short, &longest]), 27.0);
        let drawn = |slices| drawn(slices, Shades::default(), (0.0, 27.0));
        assert!(drawn(&longest).contains('→') && !drawn(long).contains('→'));
        assert!(drawn(&longest).contains(">continues</text>") && !drawn(long).contains("continues"));
        assert!(drawn(&longest).contains("from 9.00\u{202f}s to 16.7\u{202f}min"), "{}", drawn(&longest));
    }

    #[test]
    fn the_window_is_shortened_to_the_limit_of_blocks() {
        let slices: Vec<Slice> = (0..5_000).map(|i| slice(0, f64::from(i), f64::from(i) + 1.0)).collect();
        let end =
            Extent::common([Extent::of(&slices, &[(1, 0.0, 1.0, 2.0)], &[0], (5_000.0, BLOCKS))].into_iter());
        let svg = drawn(&slices, Shades::default(), (0.0, end));
        assert_eq!(svg.matches("class=\"first\"").count(), BLOCKS + 1, "blocks, and the legend");
    }

    #[test]
    fn tiles_distinguish_the_states_of_cores() {
        let tile = |core, busy, slowdown| Tile { core, busy, slowdown, host: None };
        let all = [tile(0, false, Some(1.0)), tile(1, true, Some(16.0)), tile(2, false, None)];
        let svg = tiles("t", &all, 1, 400.0).in_page().into_string();
        let (drawn, legend) = svg.split_once("runs a copy").unwrap();
        assert!(legend.contains("down or paused"), "{svg}");
        assert!(drawn.contains("class=\"idle\" x=\"8\" y=\"26\" width=\"12\""), "{svg}");
        assert!(drawn.contains("x=\"22\" y=\"26\"") && drawn.contains("core 1: slowed down ×16"), "{svg}");
        assert!(drawn.contains("class=\"fill\" x=\"25\" y=\"29\" width=\"6\""), "{svg}");
        assert!(drawn.contains("core 2: its node is down or paused"), "{svg}");
    }

    #[test]
    fn tiles_beyond_a_full_row_begin_another_row() {
        let all: Vec<Tile> =
            (0..30).map(|core| Tile { core, busy: false, slowdown: Some(1.0), host: None }).collect();
        let svg = tiles("t", &all, 0, 150.0).in_page().into_string();
        assert!(svg.contains("x=\"8\" y=\"40\"") && svg.contains("x=\"134\" y=\"26\""), "{svg}");
        assert!(!svg.contains("x=\"148\""), "{svg}");
    }
}
