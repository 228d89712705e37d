//! Cores as tiles: shaded by their slowdown, with a smaller square while they run a copy.

use volary_experiment::number;

use super::frame::{LegendEntry, framed};
use super::svg::{Mark, Picture, rect};
use super::theme::Hue;
use super::timeline::burst_opacity;

/// A core at one moment.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Tile {
    pub core: u32,
    /// Whether it runs a copy.
    pub busy: bool,
    /// Factor by which it is slowed down, at least 1; `None` while its node is down or paused.
    pub slowdown: Option<f64>,
}

/// Side of a tile, of the square in it, and distance between tiles, px.
const SIDE: f64 = 12.0;
const INNER: f64 = 6.0;
const STEP: f64 = 14.0;
const LEFT: f64 = 8.0;
const TOP: f64 = 26.0;

/// The tiles in rows, `wide` px wide, with the squares in the colour of a policy.
pub fn tiles(title: &str, tiles: &[Tile], policy: usize, wide: f64) -> Picture {
    let columns = (((wide - LEFT) / STEP) as usize).max(1);
    let place = |i: usize| (LEFT + STEP * (i % columns) as f64, TOP + STEP * (i / columns) as f64);
    let marks = tiles.iter().enumerate().flat_map(|(i, tile)| marks(tile, place(i))).collect();
    let height = TOP + STEP * tiles.len().div_ceil(columns) as f64 + 8.0;
    let entry = |hue, mark, name| LegendEntry { hue, mark, name };
    let mut legend = vec![
        entry(Some(Hue::Policy(policy)), "fill", "runs a copy"),
        entry(None, "idle", "healthy"),
        entry(None, "burst", "slowed down"),
    ];
    if tiles.iter().any(|tile| tile.slowdown.is_none()) {
        legend.push(entry(None, "lost", "down or paused"));
    }
    let inner = vec![Mark::Group { hue: Hue::Policy(policy), marks }];
    framed((wide, height), (LEFT, title), inner, (LEFT, &legend))
}

fn marks(tile: &Tile, (x, y): (f64, f64)) -> impl Iterator<Item = Mark> {
    let size = (SIDE, SIDE);
    let ground = match tile.slowdown {
        None => rect("lost", (x, y), size, &format!("core {}: its node is down or paused", tile.core)),
        Some(factor) if factor > 1.0 => Mark::Rect {
            class: "burst",
            hue: None,
            at: (x, y),
            size,
            opacity: Some(burst_opacity(factor)),
            title: format!("core {}: slowed down ×{}", tile.core, number::short(factor)),
        },
        Some(_) => rect("idle", (x, y), size, ""),
    };
    let inset = (SIDE - INNER) / 2.0;
    let copy = tile.busy.then(|| rect("fill", (x + inset, y + inset), (INNER, INNER), ""));
    std::iter::once(ground).chain(copy)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_state_looks_different() {
        let tile = |core, busy, slowdown| Tile { core, busy, slowdown };
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
    fn a_full_row_is_followed_by_another() {
        let all: Vec<Tile> = (0..30).map(|core| Tile { core, busy: false, slowdown: Some(1.0) }).collect();
        let svg = tiles("t", &all, 0, 150.0).in_page().into_string();
        assert!(svg.contains("x=\"8\" y=\"40\"") && svg.contains("x=\"134\" y=\"26\""), "{svg}");
        assert!(!svg.contains("x=\"148\""), "{svg}");
    }
}
