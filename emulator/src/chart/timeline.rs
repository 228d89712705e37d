//! Timelines of cores: a row for each core, a block for each execution, interference shaded behind.

use super::scale::{AxisScale, Scale, TickUnit};
use super::svg::{Anchor, Svg};
use crate::number;
use crate::record::cell::Slice;
use crate::storage::tables::end_name;
use volary_engine::results::CopyEnd;

/// Limit on the cores drawn.
const CORES: usize = 16;
/// Limit on the blocks and shades of a readable timeline: callers shorten the window until they fit.
pub const BLOCKS: usize = 700;

const LEFT: f64 = 62.0;
const RIGHT: f64 = 14.0;
const TOP: f64 = 28.0;
const ROW: f64 = 20.0;

/// A timeline of the first `end` seconds, from slices in order of core; `None` if there is nothing to draw. Injected
/// interference, as (core, from s, until s), is drawn as a frame around the executions.
#[must_use]
pub fn timeline(
    title: &str,
    slices: &[Slice],
    bursts: &[(u32, f64, f64, f64)],
    injected: &[(u32, f64, f64)],
    end: f64,
    width: f64,
) -> Option<String> {
    let cores = cores(slices);
    let row_of = |core: u32| cores.binary_search(&core).ok();
    let slices: Vec<&Slice> = slices.iter().filter(|slice| row_of(slice.0.core).is_some()).collect();
    if cores.is_empty() || end <= 0.0 {
        return None;
    }
    let bottom = TOP + ROW * cores.len() as f64;
    let mut svg = Svg::new(width, bottom + 44.0, title);
    let x = Scale::new(AxisScale::Linear, (0.0, end), (LEFT, width - RIGHT));
    svg.text("head", (LEFT, 16.0), Anchor::Start, title);
    for value in x.ticks(((width - LEFT - RIGHT) / 80.0) as usize) {
        svg.line("grid", (x.at(value), TOP), (x.at(value), bottom));
        svg.text("", (x.at(value), bottom + 15.0), Anchor::Middle, &TickUnit::Seconds.tick(value));
    }
    for (row, core) in cores.iter().enumerate() {
        let y = TOP + ROW * row as f64;
        svg.text("", (LEFT - 7.0, y + 14.0), Anchor::End, &format!("core {core}"));
    }
    for &(core, start, stop, factor) in bursts.iter().filter(|burst| burst.1 < end) {
        if let Some(row) = row_of(core) {
            draw_burst(&mut svg, &x, row, (start, stop.min(end), factor));
        }
    }
    for slice in slices.iter().filter(|slice| slice.0.start < end) {
        if let Some(row) = row_of(slice.0.core) {
            draw_slice(&mut svg, &x, row, slice, end);
        }
    }
    for &(core, from, until) in injected.iter().filter(|(_, from, _)| *from < end) {
        if let Some(row) = row_of(core) {
            let (left, right, y) = (x.at(from), x.at(until.min(end)), TOP + ROW * row as f64);
            let title = format!("injected into from {} to {}", number::seconds(from), number::seconds(until));
            svg.rect_with("injected", (left, y + 1.0), (right - left, ROW - 2.0), "", &title);
        }
    }
    draw_legend(&mut svg, bottom + 28.0, &slices, (!bursts.is_empty(), !injected.is_empty()));
    Some(svg.finish())
}

/// The first few cores of a timeline.
fn cores(slices: &[Slice]) -> Vec<u32> {
    let mut cores: Vec<u32> = slices.iter().map(|slice| slice.0.core).collect();
    cores.dedup();
    cores.truncate(CORES);
    cores
}

/// The length of the drawn window: it ends where there would be more than `blocks` blocks.
#[must_use]
pub fn window(slices: &[Slice], bursts: &[(u32, f64, f64, f64)], blocks: usize) -> f64 {
    let cores = cores(slices);
    let drawn = |core: u32| cores.binary_search(&core).is_ok();
    let slices = || slices.iter().filter(|slice| drawn(slice.0.core));
    let mut starts: Vec<f64> = slices().map(|slice| slice.0.start).collect();
    starts.extend(bursts.iter().filter(|burst| drawn(burst.0)).map(|burst| burst.1));
    starts.sort_by(f64::total_cmp);
    let last = slices().map(|slice| slice.0.end).fold(0.0, f64::max);
    starts.get(blocks).map_or(last, |&start| start.min(last))
}

fn draw_burst(svg: &mut Svg, x: &Scale, row: usize, (start, end, factor): (f64, f64, f64)) {
    let y = TOP + ROW * row as f64;
    let title = format!(
        "slowed down ×{} from {} to {}",
        number::short(factor),
        number::seconds(start),
        number::seconds(end)
    );
    // A slowdown of two is a light shade, ten or more the darkest.
    let depth = 0.15 + 0.35 * (factor.max(1.0).log10()).min(1.0);
    let (left, right) = (x.at(start), x.at(end));
    svg.rect_with("burst", (left, y), (right - left, ROW), &format!("fill-opacity=\"{depth:.2}\""), &title);
}

fn draw_slice(svg: &mut Svg, x: &Scale, row: usize, slice: &Slice, window: f64) {
    let copy = &slice.0;
    let y = TOP + ROW * row as f64;
    let (left, right) = (x.at(copy.start), x.at(copy.end.min(window)));
    let title = format!(
        "job {} task {} attempt {}: {}, {} from {}",
        copy.job,
        copy.task,
        copy.attempt,
        words(copy.end_kind),
        number::seconds(copy.end - copy.start),
        number::seconds(copy.start)
    );
    svg.rect(end_name(copy.end_kind), (left, y + 5.0), ((right - left).max(0.6), ROW - 10.0), &title);
}

fn draw_legend(svg: &mut Svg, y: f64, slices: &[&Slice], (degraded, injected): (bool, bool)) {
    let kinds = [CopyEnd::First, CopyEnd::Second, CopyEnd::Preempted, CopyEnd::Suspended, CopyEnd::Lost];
    let present = kinds.into_iter().filter(|kind| slices.iter().any(|slice| slice.0.end_kind == *kind));
    let mut entries: Vec<(&str, &str)> = present.map(|kind| (end_name(kind), words(kind))).collect();
    if degraded {
        entries.push(("burst", "core slowed down"));
    }
    if injected {
        entries.push(("injected", "interference injected"));
    }
    let mut x = LEFT;
    for (class, name) in entries {
        let attributes = if class == "burst" { "fill-opacity=\"0.4\"" } else { "" };
        svg.rect_with(class, (x, y), (11.0, 11.0), attributes, "");
        svg.text("name", (x + 16.0, y + 10.0), Anchor::Start, name);
        x += 34.0 + 6.6 * name.chars().count() as f64;
    }
}

const fn words(end: CopyEnd) -> &'static str {
    match end {
        CopyEnd::First => "finished first",
        CopyEnd::Second => "finished second",
        CopyEnd::Preempted => "stopped",
        CopyEnd::Suspended => "suspended",
        CopyEnd::Lost => "lost",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use volary_engine::results::CopyRow;

    fn slice(core: u32, start: f64, end: f64) -> Slice {
        Slice(CopyRow { job: 1, task: 2, attempt: 0, core, start, end, end_kind: CopyEnd::First })
    }

    #[test]
    fn blocks_and_shades_lie_on_their_core() {
        let slices = [slice(3, 0.0, 5.0), slice(7, 5.0, 10.0)];
        let svg = timeline(
            "t",
            &slices,
            &[(7, 0.0, 5.0, 10.0), (9, 0.0, 5.0, 2.0)],
            &[(3, 2.5, 99.0)],
            10.0,
            276.0,
        )
        .unwrap();
        // 200 px for 10 s; the second row begins 20 px lower.
        assert!(svg.contains("class=\"first\" x=\"62\" y=\"33\" width=\"100\""), "{svg}");
        assert!(svg.contains("class=\"first\" x=\"162\" y=\"53\" width=\"100\""), "{svg}");
        assert!(
            svg.contains(
                "class=\"burst\" x=\"62\" y=\"48\" width=\"100\" height=\"20\" fill-opacity=\"0.50\""
            ),
            "{svg}"
        );
        assert!(svg.contains("class=\"injected\" x=\"112\" y=\"29\" width=\"150\" height=\"18\""), "{svg}");
        assert!(!svg.contains("core 9"), "a core without work has no row");
    }

    #[test]
    fn the_window_shrinks_until_it_fits() {
        let slices: Vec<Slice> = (0..5_000).map(|i| slice(0, f64::from(i), f64::from(i) + 1.0)).collect();
        let end = window(&slices, &[(1, 0.0, 1.0, 2.0)], BLOCKS);
        let svg = timeline("t", &slices, &[], &[], end, 600.0).unwrap();
        assert_eq!(svg.matches("class=\"first\"").count(), BLOCKS + 1, "blocks and the legend");
        assert!(timeline("t", &[], &[], &[], 1.0, 600.0).is_none());
    }
}
