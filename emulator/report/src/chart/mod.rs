//! Charts, as pure functions from data to pictures, for pages and for files.
//!
//! | module | what it draws |
//! |---|---|
//! | [`mod@line`] | lines and steps over two axes, with confidence bands |
//! | [`cdf`] | distributions of response times, and their tails |
//! | [`bars`] | stacked bars, one per policy |
//! | [`heat`] | a table with cells shaded by value |
//! | [`timeline`] | executions on cores, with interference shaded |
//! | [`tiles`] | cores as tiles, at one moment |
//! | [`export`] | PDF and PNG of a picture |
//! | `frame`, `text`, `outline` | title, axis and legend; widths and outlines of text |
//! | [`scale`], [`svg`], [`theme`] | ticks; marks; colours |
//!
//! In a page, colours come as CSS variables ([`theme::css`]), so a chart follows the page's dark mode; a file has them
//! as attributes. A policy has the same colour and dash in every chart. Values are shown as tooltips (`<title>`).

pub mod bars;
pub mod cdf;
pub mod export;
mod frame;
pub mod heat;
pub mod line;
mod outline;
pub mod scale;
pub mod svg;
mod text;
pub mod theme;
pub mod tiles;
pub mod timeline;
