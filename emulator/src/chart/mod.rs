//! Charts, as pure functions from data to SVG markup.
//!
//! | module | what it draws |
//! |---|---|
//! | [`mod@line`] | lines and steps over two axes, with confidence bands |
//! | [`cdf`] | distributions of response times, and their tails |
//! | [`bars`] | stacked bars, one per policy |
//! | [`heat`] | a table with cells shaded by value |
//! | [`timeline`] | executions on cores, with interference shaded |
//! | `frame`, [`scale`], [`svg`], [`theme`] | title, axis and legend; ticks; elements; colours |
//!
//! Colours come from the page as CSS variables ([`theme::CSS`]), so a chart follows the page's dark mode. A policy has
//! the same colour and dash in every chart. Values are shown as tooltips (`<title>`).

pub mod bars;
pub mod cdf;
mod frame;
pub mod heat;
pub mod line;
pub mod scale;
pub mod svg;
pub mod theme;
pub mod timeline;
