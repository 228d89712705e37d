//! Tests that the pages about papers name files and items of the code that exist.

use std::fs;

use crate::docs::root;

/// The items that a page names, as in `` `roles/las.rs`: `Las::arrive`, `Las::start` ``, each after the path of its
/// file below `actors/src`.
fn items(page: &str) -> Vec<(&str, &str)> {
    let mut items = Vec::new();
    let mut file = None;
    let parts: Vec<_> = page.split('`').collect();
    // Parts with odd numbers are code; parts with even numbers are the text between them.
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

/// Whether the code of a source file has an item: a function of a type, or anything with this name.
fn has(source: &str, item: &str) -> bool {
    let is_of_word = |c: char| c.is_alphanumeric() || c == '_';
    let word = |line: &str, word: &str| {
        let apart =
            |at| !line[..at].ends_with(is_of_word) && !line[at + word.len()..].starts_with(is_of_word);
        line.match_indices(word).any(|(at, _)| apart(at))
    };
    let mut code = source.lines().filter(|line| !line.trim_start().starts_with("//"));
    let Some((owner, function)) = item.split_once("::") else { return code.any(|line| word(line, item)) };
    let mut is_owner = false;
    code.any(|line| {
        if line.starts_with("impl") || line.starts_with("pub trait") {
            is_owner = word(line, owner);
        }
        is_owner && word(line, &format!("fn {function}"))
    })
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
    assert!(
        !has("// Las\nimpl LasOptions {\n    fn arrive() {}\n}", "Las::arrive") && !has("/// Queue", "Queue")
    );
    let page = "| `a.rs`: `A::f`, `B`; `c.rs`: `D` and `E` | `f.rs` |";
    assert_eq!(items(page), [("a.rs", "A::f"), ("a.rs", "B"), ("c.rs", "D")]);
}
