//! The order in which types declare their keys. JSON Schemas do not preserve it; serde lists it when it refuses a key.

use serde::de::DeserializeOwned;

use crate::config::explain::backticked;

/// The keys of the table at `key` of a file that is read as a `T`, in order; empty if any key is accepted.
pub(super) fn declared<T: DeserializeOwned>(key: &str) -> Vec<String> {
    let Err(error) = toml::from_str::<T>(&stray(key)) else { return Vec::new() };
    let message = error.message();
    let known = ["unknown field", "unknown variant"].iter().find_map(|what| {
        let (name, known) = message.strip_prefix(what)?.split_once(',')?;
        name.contains(STRAY).then_some(known)
    });
    known.map(backticked).unwrap_or_default().into_iter().map(str::to_owned).collect()
}

/// A key that no table has.
const STRAY: &str = "?";

/// A file that contains only [`STRAY`] in the table at `key`.
fn stray(key: &str) -> String {
    let (mut text, mut path) = (String::new(), String::new());
    for part in key.split('.') {
        if !path.is_empty() {
            path.push('.');
        }
        path.push_str(part.trim_end_matches("[]"));
        if part.ends_with("[]") {
            text.push_str(&format!("[[{path}]]\n"));
        }
    }
    if !key.is_empty() && !key.ends_with("[]") {
        text.push_str(&format!("[{path}]\n"));
    }
    format!("{text}\"{STRAY}\" = 0\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::File;

    #[test]
    fn types_tell_their_order() {
        assert_eq!(declared::<File>("")[..3], ["title", "source", "seed"]);
        assert_eq!(declared::<File>("cluster")[..3], ["nodes", "cores", "schedulers"]);
        assert_eq!(declared::<File>("network.fault[].crash")[..2], ["who", "at"]);
        assert_eq!(declared::<File>("policy[].sparrow")[0], "probe_ratio");
        assert_eq!(declared::<File>("sweep"), [] as [&str; 0], "any key");
    }
}
