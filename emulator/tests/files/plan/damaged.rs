//! Tests that damaged or arbitrary text is refused without a panic.

use proptest::prelude::*;
use volary_experiment::config::Overrides;

use super::{GOOD, plan, plan_with};
use crate::common::binary::changed;

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn arbitrary_text_never_panics(text in ".{0,200}") {
        let _ = plan(&text).map_err(|error| error.to_string());
    }

    /// A valid file with pieces cut out, doubled or overwritten gets further in the parser than random text.
    #[test]
    fn damaged_files_never_panic(from in 0..GOOD.len(), len in 0..60usize, to in 0..GOOD.len(), noise in "[\\PC\n]{0,6}") {
        let floor = |at: usize| (0..=at.min(GOOD.len())).rev().find(|&i| GOOD.is_char_boundary(i)).unwrap_or(0);
        let (from, end, to) = (floor(from), floor(from + len), floor(to));
        let piece = &GOOD[from..end.max(from)];
        let mut text = GOOD.to_owned();
        text.insert_str(to, &format!("{piece}{noise}"));
        let _ = plan(&text).map_err(|error| error.to_string());
        let cut = format!("{}{noise}{}", &GOOD[..from], &GOOD[end.max(from)..]);
        let _ = plan(&cut).map_err(|error| error.to_string());
    }

    #[test]
    fn arbitrary_overrides_never_panic(set in "[a-z.=\"\\[\\]{}0-9]{0,30}") {
        let overrides = Overrides { set: vec![set], ..Overrides::default() };
        let _ = plan_with(GOOD, &overrides).map_err(|error| error.to_string());
    }

    #[test]
    fn arbitrary_checks_never_panic(check in "[a-z.<>=+*/()\\[\\]0-9 %é-]{0,40}") {
        let text = changed(GOOD, &[("latin-square.response_s.p50 < sparrow.response_s.p50", &check)]);
        let _ = plan(&text).map_err(|error| error.to_string());
    }
}
