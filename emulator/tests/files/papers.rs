//! The pages that lead from the papers to the code name files and items that exist.

use std::fs;

use crate::docs::root;

/// The items that a page names, as in `` `roles/las.rs`: `Las::arrive`, `Las::start` ``: paths from `actors/src`, each
/// with a name.
fn items(page: &str) -> Vec<(&str, &str)> {
    let mut items = Vec::new();
    let mut file = None;
    let parts: Vec<_> = page.split('`').collect();
    // Odd parts are code, even ones the text between.
    for at in (1..parts.len()).step_by(2) {
        let after = parts.get(at + 1).map_or("", |text| text.trim_end());
        if parts[at].ends_with(".rs") {
            file = (after == ":").then_some(parts[at]);
        } else if let Some(of) = file {
            items.push((of, parts[at]));
            file = (after == ",").then_some(of);
        }
    }
    items
}

/// Whether a source file has an item: a function of a type, or anything with this name.
fn has(source: &str, item: &str) -> bool {
    let is_word = |at: usize, word: &str| {
        let rest = &source[at + word.len()..];
        !rest.starts_with(|next: char| next.is_alphanumeric() || next == '_')
            && !source[..at].ends_with(|last: char| last.is_alphanumeric() || last == '_')
    };
    let word = |word: &str| source.match_indices(word).any(|(at, _)| is_word(at, word));
    match item.split_once("::") {
        None => word(item),
        Some((owner, function)) => {
            let owned = |line: &str| line.starts_with("impl") && line.contains(owner);
            source.lines().any(owned) && word(&format!("fn {function}"))
        }
    }
}

#[test]
fn pages_of_papers_name_code_that_exists() {
    let mut named = 0;
    let mut missing = Vec::new();
    for entry in fs::read_dir(root().join("docs/src/papers")).unwrap() {
        let path = entry.unwrap().path();
        let page = fs::read_to_string(&path).unwrap();
        for (file, item) in items(&page) {
            named += 1;
            let source = fs::read_to_string(root().join("actors/src").join(file));
            if !source.is_ok_and(|source| has(&source, item)) {
                missing.push(format!("{}: `{file}`: `{item}`", path.file_name().unwrap().display()));
            }
        }
    }
    assert!(missing.is_empty(), "mend the pages:\n{}", missing.join("\n"));
    assert!(named > 300, "only {named} items were found on the pages");
}

#[test]
fn an_item_is_found_by_its_owner_and_whole_name() {
    let source = "impl<T> Las<T> {\n    fn arrive(&self) {}\n}\nstruct Queue;";
    assert!(has(source, "Las::arrive") && has(source, "Queue"));
    assert!(!has(source, "Las::arriv") && !has(source, "Other::arrive") && !has(source, "Que"));
    let page = "| `a.rs`: `A::f`, `B`; `c.rs`: `D` and `E` | `f.rs` |";
    assert_eq!(items(page), [("a.rs", "A::f"), ("a.rs", "B"), ("c.rs", "D")]);
}
