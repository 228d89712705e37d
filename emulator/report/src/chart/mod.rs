//! Charts, as pure functions from data to pictures, for pages and for files.
//!
//! | module | what it draws |
//! |---|---|
//! | [`mod@line`] | lines and steps over two axes, with confidence bands |
//! | [`cdf`] | distributions of response times, and their tails |
//! | [`bars`] | stacked bars, one per policy |
//! | [`heat`] | a table with cells shaded by value |
//! | [`timeline`] | executions on cores, with interference shaded; cores as tiles at one moment |
//! | [`mod@job`] | the executions of one job |
//! | `frame` | title, axis and legend |
//! | [`scale`], [`svg`], [`theme`] | axes and ticks; marks, text and files of a picture; colours |
//! | [`export`] | pictures as PDF and PNG |
//!
//! In a page, colours are CSS variables ([`theme::css`]), with which a chart follows the page's dark mode; in a file,
//! they are attributes. A policy has the same colour and dash in every chart. Values are shown as tooltips (`<title>`).

pub mod bars;
pub mod cdf;
pub mod export;
mod frame;
pub mod heat;
pub mod job;
pub mod line;
pub mod scale;
pub mod svg;
pub mod theme;
pub mod timeline;
