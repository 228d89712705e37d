//! Tables and numbers of the reports about traces.

use comfy_table::{CellAlignment, Table, presets};

pub(super) fn plain() -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table
}

/// Aligns all columns except the first to the right.
pub(super) fn to_the_right(table: &mut Table) {
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
}

pub(super) fn percent(share: f64) -> String {
    unsigned_zero(format!("{:.1} %", 100.0 * share))
}

/// The text of a number without the minus sign of zero (an empty sum of floats is −0).
pub(super) fn unsigned_zero(text: String) -> String {
    match text.strip_prefix('-') {
        Some(rest) if !rest.contains(|c: char| ('1'..='9').contains(&c)) => rest.to_owned(),
        _ => text,
    }
}

/// A number with four significant digits; whole numbers are written in full.
pub(super) fn number(x: f64) -> String {
    if x == x.round() && x.abs() < 1e9 {
        return unsigned_zero(format!("{x}"));
    }
    match x.abs() {
        large if large >= 1e7 => format!("{x:.3e}"),
        large if large >= 1000.0 => format!("{x:.0}"),
        tiny if tiny < 1e-3 => format!("{x:.2e}"),
        some => format!("{x:.*}", (3.0 - some.log10().floor()).max(0.0) as usize),
    }
}

/// Nanoseconds as decimal seconds without trailing zeros.
pub(super) struct Seconds(pub(super) u64);

impl std::fmt::Display for Seconds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (whole, part) = (self.0 / 1_000_000_000, self.0 % 1_000_000_000);
        if part == 0 {
            return write!(f, "{whole}");
        }
        write!(f, "{whole}.{}", format!("{part:09}").trim_end_matches('0'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_four_digits() {
        for (x, text) in [
            (0.0, "0"),
            (24_262.0, "24262"),
            (7.4821, "7.482"),
            (0.012_345, "0.01235"),
            (118.784, "118.8"),
            (2409.81, "2410"),
            (622_548_900.5, "6.225e8"),
            (0.000_012_3, "1.23e-5"),
            (-0.0, "0"),
            (-7.0, "-7"),
        ] {
            assert_eq!(number(x), text);
        }
        assert_eq!([-0.0, -0.0001, -0.101].map(percent), ["0.0 %", "0.0 %", "-10.1 %"]);
    }
}
