//! Helpers of all parts of the page: anchors, titles, values as text.

use volary_engine::results::plain;

use crate::storage::study::CellGroup;

/// The place of a cell on its page.
pub(super) struct View<'a> {
    /// Its position, from zero.
    pub(super) number: usize,
    /// Whether it is initially open.
    pub(super) open: bool,
    /// All policies of the page, for their colours.
    pub(super) policies: &'a [&'a str],
    /// Limit on the blocks of each of its timelines.
    pub(super) blocks: usize,
}

impl View<'_> {
    /// The index of a policy's colour.
    pub(super) fn colour(&self, policy: &str) -> usize {
        index(self.policies, policy)
    }
}

/// The index of a policy among those of the page.
pub(super) fn index(policies: &[&str], policy: &str) -> usize {
    policies.iter().position(|known| *known == policy).unwrap_or(0)
}

/// The id of a cell's section.
pub(super) fn anchor(number: usize) -> String {
    format!("cell-{}", number + 1)
}

/// The last part of a swept key, if no other key has the same one.
pub(super) fn short_key<'a>(key: &'a str, keys: &[&str]) -> &'a str {
    let last = |key: &'a str| key.rsplit('.').next().unwrap_or(key);
    let alike = keys.iter().filter(|other| other.rsplit('.').next() == Some(last(key))).count();
    if alike > 1 { key } else { last(key) }
}

/// The name of a cell in the contents, by short keys.
pub(super) fn short_title(group: &CellGroup) -> String {
    let keys: Vec<&str> = group.cell.keys().map(String::as_str).collect();
    let words = group.cell.iter().map(|(key, value)| format!("{} = {}", short_key(key, &keys), plain(value)));
    let name = words.collect::<Vec<_>>().join(", ");
    if name.is_empty() { cell_title(group) } else { name }
}

/// The name of a cell's section.
pub(super) fn cell_title(group: &CellGroup) -> String {
    if group.cell.is_empty() { "Results".to_owned() } else { group.name() }
}
