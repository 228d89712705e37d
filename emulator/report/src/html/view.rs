//! Helpers of all parts of the page: anchors, titles, values as text.

use maud::{Markup, html};
use volary_experiment::storage::study::CellGroup;

use crate::chart::svg::{Picture, legend_of};
use crate::figures::distribution::colour;
use crate::figures::sweep::named;

/// Position of a cell on its page, with common settings of the page.
pub(super) struct View<'a> {
    /// Index of the cell, from zero.
    pub(super) number: usize,
    /// All policies of the page, for their colours.
    pub(super) policies: &'a [&'a str],
    /// A sentence on how each policy binds tasks; `None` if all bind alike.
    pub(super) binding: Option<&'a str>,
    /// Whether the study has jobs; groups that gossip have none.
    pub(super) has_jobs: bool,
    /// Limit on the blocks of each timeline of the cell.
    pub(super) blocks: usize,
}

impl View<'_> {
    /// The index of a policy's colour.
    pub(super) fn colour(&self, policy: &str) -> usize {
        colour(self.policies, policy)
    }
}

/// Charts, each in a box, further boxes, and one legend of the charts below them.
pub(super) fn grid(charts: Vec<Picture>, others: &Markup) -> Markup {
    let (charts, legend) = Picture::apart(charts);
    html! {
        div.grid { @for chart in charts { div.card { (chart.in_page()) } } (others) }
        (legend_of(&legend))
    }
}

/// The id of a cell's section.
pub(super) fn anchor(number: usize) -> String {
    format!("cell-{}", number + 1)
}

/// The id of a policy's row among the policies.
pub(super) fn policy_anchor(number: usize) -> String {
    format!("policy-{}", number + 1)
}

/// The name of a cell in the contents, with short keys.
pub(super) fn short_title(group: &CellGroup) -> String {
    if group.cell.is_empty() { cell_title(group) } else { named(&group.cell) }
}

/// The name of a cell's section.
pub(super) fn cell_title(group: &CellGroup) -> String {
    if group.cell.is_empty() { "Results".to_owned() } else { group.name() }
}

/// A text with code elements in place of the parts between backticks.
pub(super) fn prose(text: &str) -> Markup {
    let parts: Vec<&str> = text.split('`').collect();
    if parts.len().is_multiple_of(2) {
        return html! { (text) }; // a single backtick marks nothing
    }
    html! {
        @for (number, part) in parts.iter().enumerate() {
            @if number % 2 == 1 { code { (part) } } @else { (part) }
        }
    }
}

/// A text without its backticks, for attributes and drawings.
pub(super) fn plain(text: &str) -> String {
    text.replace('`', "")
}
