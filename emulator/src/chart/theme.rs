//! Colours that remain distinguishable with colour vision deficiency (after Okabe and Ito), on white and on black.

/// Number of series colours; further series repeat them with another dash.
pub const COLOURS: usize = 8;

/// Class of the `i`-th series: colour and dash.
pub fn series(i: usize) -> String {
    format!("s{} d{}", i % COLOURS, (i / COLOURS) % 3)
}

/// Classes of what belongs to the `i`-th policy: one to hide it by, colour and dash.
pub fn policy(i: usize) -> String {
    format!("p{i} {}", series(i))
}

/// The style sheet that charts require, with variables that pages may also use.
pub const CSS: &str = include_str!("theme.css");
