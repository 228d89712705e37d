//! The page's style sheet and script.

/// Layout, tables and boxes; colours are the chart theme's variables.
pub(super) const CSS: &str = include_str!("style.css");

/// Rules that hide a policy everywhere when the page's root has its class.
pub(super) fn hiding(policies: usize) -> String {
    (0..policies).map(|i| format!(".hide-p{i} .p{i}{{display:none}}")).collect()
}

/// The script that shows and hides policies and sections, and switches between dark and light. The page is readable
/// without it.
pub(super) const SCRIPT: &str = include_str!("script.js");
