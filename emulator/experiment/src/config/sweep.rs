//! Overrides (`--set key=value`) and sweeps, applied to the document before it is read into types.
//!
//! Values keep the position at which they were written: a wrong type or an unknown key is reported at the `--set` or at
//! the line of the sweep. `policy.LABEL.PARAMETER` addresses the `[[policy]]` with that label. An element of another
//! list of tables is addressed by its name or its number from zero: `workload.mix.class.NAME.weight`.

use std::collections::BTreeSet;
use std::ops::Range;

use serde::Deserialize;
use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue, ValueDeserializer};
use volary_actors::base::Span;
use volary_engine::results::{Cell, in_words, same};

use super::document::{Document, Key, Node, Texts, entries, put, table_mut, what};
use super::error::{ConfigError, Text, did_you_mean, listed, nearest};

/// Sections that a sweep may change; the other sections do not affect the emulated world.
const SWEEPABLE: [&str; 7] =
    ["cluster", "workload", "service", "network", "actors", "interference", "policy"];

/// One swept key with its values.
#[derive(Clone, Debug)]
pub struct SweepAxis<'t> {
    /// The dotted key as written.
    pub key: String,
    path: Vec<Key<'t>>,
    pub(super) values: Vec<Node<'t>>,
    /// Further keys that each value sets.
    with: Vec<Vec<Companion<'t>>>,
}

/// Another key that is set together with a certain value of a swept key.
#[derive(Clone, Debug)]
struct Companion<'t> {
    key: String,
    path: Vec<Key<'t>>,
    value: Node<'t>,
}

/// A value in the form that cells show.
pub(super) fn plain(value: &Node<'_>) -> Option<serde_json::Value> {
    serde_json::Value::deserialize(ValueDeserializer::from(value.clone())).ok()
}

/// Applies `--set` texts in order. A swept key is pinned: its list is replaced by the single value, with the keys that
/// the file sets beside it, and cells continue to show it. Other keys that `--set` gives are removed from the rows of
/// the sweep.
///
/// # Errors
/// When a text is not `key=value`, or its key passes through a value that has no keys.
pub fn set(document: &mut Document<'_>, texts: &[String]) -> Result<(), ConfigError> {
    for text in texts {
        let source = Text { name: "--set".into(), text: text.clone(), folder: None };
        let Some((key, value)) = text.split_once('=') else {
            return Err(source
                .error(0..text.len(), "an override needs a key and a value")
                .help("write --set key=value, such as --set service.correlated=true"));
        };
        let base = document.add_text(source.clone());
        let path = segments(document, key, base).ok_or_else(|| {
            source
                .error(0..key.len(), format!("`{key}` is not a dotted key"))
                .help("write names joined by dots, such as network.one_way")
        })?;
        let at = base + text.len() - value.trim_start().len();
        let value = value.trim();
        let node = match document.value(value, at) {
            Ok(node) => node,
            // Shells remove quotes, so text that is not valid TOML is taken as a string.
            Err(_) if !value.starts_with(['"', '\'', '[', '{']) => {
                Spanned::new(at..base + text.len(), DeValue::String(value.to_owned().into()))
            }
            Err(error) => {
                let span = error.span().unwrap_or(at..at + value.len());
                return Err(document
                    .error(&span, error.message().trim_end())
                    .help("the value is TOML, such as 2, true, \"10ms\" or [1, 2]"));
            }
        };
        let sweep = document.root.get_mut("sweep").and_then(table_mut);
        match sweep.and_then(|sweep| sweep.get_mut(key.trim())) {
            Some(values) => {
                let span = node.span();
                let is_meant = |item: &&Node<'_>| {
                    let found = row(item, key.trim()).and_then(|(value, _)| plain(value));
                    found.zip(plain(&node)).is_some_and(|(found, given)| same(&found, &given))
                };
                let row = values.get_ref().as_array().into_iter().flatten().find(is_meant).cloned();
                *values = Spanned::new(span, DeValue::Array(DeArray::from_iter([row.unwrap_or(node)])));
            }
            None => {
                leave_out(document, key.trim(), &node, &source)?;
                assign(document, &path, node)?;
            }
        }
    }
    Ok(())
}

/// Removes keys given by `--set` from the rows of the sweep, which would otherwise replace the given value.
///
/// # Errors
/// When `--set` gives all or a part of a swept key, or a part of a key that a row sets as a whole.
fn leave_out(
    document: &mut Document<'_>,
    key: &str,
    value: &Node<'_>,
    source: &Text,
) -> Result<(), ConfigError> {
    let gives = |other: &str| match below(other, key) {
        Some("") => true,
        Some(path) => {
            path.split('.').try_fold(value, |at, name| at.get_ref().as_table()?.get(name)).is_some()
        }
        None => false,
    };
    let sweep = document.root.get_mut("sweep").and_then(table_mut);
    for (swept, values) in sweep.into_iter().flatten() {
        let swept = swept.get_ref();
        if gives(swept) || below(key, swept).is_some() {
            return Err(source
                .error(0..key.len(), format!("`{swept}` is swept, but --set {key} gives all or part of it"))
                .help(format!("choose a value with --set {swept}=…, or change the sweep in the file")));
        }
        let DeValue::Array(items) = values.get_mut() else { continue };
        let rows = items.iter_mut().filter(|item| row(item, swept).is_some());
        for row in rows.filter_map(table_mut) {
            let set: Vec<String> = row.keys().map(|other| other.get_ref().to_string()).collect();
            for other in set {
                if gives(&other) {
                    row.remove(other.as_str());
                } else if below(key, &other).is_some() {
                    return Err(source
                        .error(0..key.len(), format!("rows of the sweep of `{swept}` replace `{other}`"))
                        .help("change the row in the file"));
                }
            }
        }
    }
    Ok(())
}

/// The `--set` texts that change the experiment: all texts except those that pin a swept key to a value in the file.
/// `axes` are the axes of the document after [`set`].
pub fn changes(texts: &[String], written: &[SweepAxis<'_>], axes: &[SweepAxis<'_>]) -> Vec<String> {
    let values = |axes: &[SweepAxis<'_>], key: &str| -> Option<Vec<serde_json::Value>> {
        let axis = axes.iter().find(|axis| axis.key == key)?;
        Some(axis.values.iter().filter_map(plain).collect())
    };
    let chooses = |text: &&String| {
        let key = text.split_once('=').map_or("", |(key, _)| key.trim());
        let (before, now) = (values(written, key), values(axes, key));
        before
            .zip(now)
            .is_some_and(|(before, now)| now.iter().all(|value| before.iter().any(|v| same(v, value))))
    };
    texts.iter().filter(|text| !chooses(text)).cloned().collect()
}

/// The keys of `[sweep]` in written order.
///
/// # Errors
/// When a key is not dotted, is not in a section that may be swept, or has no list of values.
pub fn axes<'t>(document: &Document<'t>) -> Result<Vec<SweepAxis<'t>>, ConfigError> {
    let Some(sweep) = document.root.get("sweep") else { return Ok(Vec::new()) };
    let Some(table) = sweep.get_ref().as_table() else {
        return Err(document
            .error(&sweep.span(), format!("`sweep` is {}", what(sweep.get_ref())))
            .help("write [sweep] and below it \"dotted.key\" = [values]"));
    };
    let axes: Vec<SweepAxis<'t>> = entries(table)
        .into_iter()
        .map(|(key, values)| axis(document, key, values))
        .collect::<Result<_, _>>()?;
    for (at, axis) in axes.iter().enumerate() {
        let others = || axes.iter().enumerate().filter(|(other, _)| *other != at).map(|(_, axis)| axis);
        let twice = |key: &str, span: &Range<usize>| {
            document
                .error(span, format!("the sweep sets `{key}` twice in a cell"))
                .help("leave out one of the two keys; a key sets all keys below it")
        };
        if others().any(|other| overlap(&other.key, &axis.key)) {
            return Err(twice(&axis.key, &axis.path[0].span()));
        }
        for row in &axis.with {
            for (at, Companion { key, value, .. }) in row.iter().enumerate() {
                let before = row[..at].iter().map(|other| &other.key).chain([&axis.key]);
                let elsewhere =
                    others().flat_map(|axis| axis.with.iter().flatten().map(|c| &c.key).chain([&axis.key]));
                if before.chain(elsewhere).any(|other| overlap(other, key)) {
                    return Err(twice(key, &value.span()));
                }
            }
        }
    }
    Ok(axes)
}

/// The rest of a dotted key below another key; empty if the keys are equal.
fn below<'k>(key: &'k str, other: &str) -> Option<&'k str> {
    let rest = key.strip_prefix(other)?;
    if rest.is_empty() { Some(rest) } else { rest.strip_prefix('.') }
}

/// Whether two dotted keys are equal, or one of them is a prefix of the other.
fn overlap(a: &str, b: &str) -> bool {
    below(a, b).is_some() || below(b, a).is_some()
}

/// If this element of a sweep's list is a table that has the swept key: the key's value, and the table. Otherwise
/// `None`.
fn row<'a, 't>(item: &'a Node<'t>, swept: &str) -> Option<(&'a Node<'t>, &'a DeTable<'t>)> {
    let table = item.get_ref().as_table()?;
    Some((table.get(swept)?, table))
}

/// Further keys that values of swept keys set, as lines.
pub fn companions(axes: &[SweepAxis<'_>]) -> Vec<String> {
    let words = |value: &Node<'_>| in_words(&plain(value).unwrap_or_default());
    let of_axis = |axis: &SweepAxis<'_>| {
        let line = |(value, with): (&Node<'_>, &Vec<Companion<'_>>)| {
            let sets: Vec<_> = with.iter().map(|c| format!("{} = {}", c.key, words(&c.value))).collect();
            (!sets.is_empty()).then(|| format!("{} = {} sets {}", axis.key, words(value), sets.join(", ")))
        };
        axis.values.iter().zip(&axis.with).filter_map(line).collect::<Vec<_>>()
    };
    axes.iter().flat_map(of_axis).collect()
}

/// The path of a key that a sweep may set.
fn sweepable<'t>(document: &Document<'t>, key: &Key<'t>) -> Result<Vec<Key<'t>>, ConfigError> {
    let (at, key) = (key.span(), key.get_ref());
    let Some(mut path) = segments(document, key, 0).filter(|path| path.len() > 1) else {
        return Err(document.error(&at, format!("`{key}` is not a dotted key of this file")).help(format!(
            "quote the whole key, such as \"service.correlated\"; sections: {}",
            SWEEPABLE.join(", ")
        )));
    };
    let section = path[0].get_ref().as_ref();
    if !SWEEPABLE.contains(&section) {
        let error = document
            .error(&at, format!("`{section}` cannot be swept"))
            .label(format!("expected a key below {}", listed(SWEEPABLE)));
        return Err(error.help(match section {
            "seed" => "`repeat` runs several seeds".to_owned(),
            _ => did_you_mean(section, SWEEPABLE)
                .unwrap_or_else(|| "start several runs with --set instead".to_owned()),
        }));
    }
    for segment in &mut path {
        *segment = Spanned::new(at.clone(), segment.get_ref().clone());
    }
    Ok(path)
}

fn axis<'t>(document: &Document<'t>, key: &Key<'t>, values: &Node<'t>) -> Result<SweepAxis<'t>, ConfigError> {
    let path = sweepable(document, key)?;
    let (first, key) = (path[0].get_ref().as_ref(), key.get_ref());
    let list = values.get_ref().as_array();
    let Some(values) = list.filter(|list| !list.is_empty()) else {
        let found = if list.is_some() { "an empty list" } else { what(values.get_ref()) };
        let error = document.error(&values.span(), format!("the sweep of `{key}` is {found}"));
        if values.get_ref().is_table() {
            return Err(error.help(format!("quote the whole key: \"{key}.…\" = [values]")));
        }
        return Err(error.label("expected a list of values").help("write a list such as [1, 2, 4]"));
    };
    let (mut heads, mut with) = (Vec::new(), Vec::new());
    for item in values {
        if item.get_ref().as_table().is_some_and(|table| table.contains_key(first)) {
            return Err(document
                .error(&item.span(), format!("a value of the sweep of `{key}` has a key `{first}`"))
                .help(format!("quote the whole key, such as {{ \"{key}\" = … }}")));
        }
        let row = row(item, key);
        let is_row = |table: &DeTable<'t>| {
            let section = |key: &Key<'t>| {
                key.get_ref().split_once('.').is_some_and(|(first, _)| SWEEPABLE.contains(&first))
            };
            table.keys().any(section)
        };
        if row.is_none() && item.get_ref().as_table().is_some_and(is_row) {
            return Err(document
                .error(&item.span(), format!("a row of the sweep of `{key}` has no `{key}`"))
                .help(format!("write its value too, such as {{ \"{key}\" = …, … }}")));
        }
        let others = row.map(|(_, table)| entries(table)).unwrap_or_default().into_iter();
        let companion = |(key, value): (&Key<'t>, &Node<'t>)| {
            let (path, value) = (sweepable(document, key)?, value.clone());
            Ok(Companion { key: key.get_ref().to_string(), path, value })
        };
        with.push(
            others.filter(|(other, _)| other.get_ref() != key).map(companion).collect::<Result<_, _>>()?,
        );
        heads.push(row.map_or(item, |(value, _)| value).clone());
    }
    // Values identify cells, and cells identify runs.
    let mut seen = BTreeSet::new();
    if let Some(twice) = heads.iter().find(|value| !seen.insert(meaning(value))) {
        return Err(document
            .error(&twice.span(), format!("a value of the sweep of `{key}` occurs twice"))
            .help("leave out one of them; `repeat` runs several seeds"));
    }
    Ok(SweepAxis { key: key.to_string(), path, values: heads, with })
}

/// The canonical text of a value. Equal values, such as 1 and 1.0, or "200ms" and "0.2s", have the same text.
fn meaning(value: &Node<'_>) -> String {
    let value = plain(value).unwrap_or_default();
    let time = value.as_str().and_then(|text| text.parse::<Span>().ok());
    let number = value.as_f64().map(|number| number.to_string());
    time.map(|time| format!("{time:?}")).or(number).unwrap_or_else(|| value.to_string())
}

/// The document and the values of cell number `index`, with its own texts; the last axis varies fastest.
///
/// # Errors
/// When a key of the sweep passes through a value that has no keys, or a value is a date.
pub fn cell<'s, 't: 's>(
    document: &Document<'t>,
    texts: &'s Texts,
    axes: &[SweepAxis<'t>],
    index: usize,
) -> Result<(Document<'s>, Cell), ConfigError> {
    let mut document = document.with_texts(texts);
    let mut cell = Cell::new();
    let mut stride = 1;
    for axis in axes.iter().rev() {
        let at = index / stride % axis.values.len();
        let value = &axis.values[at];
        stride *= axis.values.len();
        let plain = plain(value).filter(|_| !value.get_ref().is_datetime()).ok_or_else(|| {
            document
                .error(&value.span(), format!("a sweep value of `{}` is {}", axis.key, what(value.get_ref())))
                .help("write numbers, strings, booleans or tables")
        })?;
        cell.insert(axis.key.clone(), plain);
        assign(&mut document, &axis.path, value.clone())?;
        for Companion { path, value, .. } in &axis.with[at] {
            assign(&mut document, path, value.clone())?;
        }
    }
    Ok((document, cell))
}

/// Splits a dotted key by the rules of TOML; `None` for a text that is not a key. The key's first byte is at offset
/// `base`.
fn segments<'t>(document: &Document<'t>, key: &str, base: usize) -> Option<Vec<Key<'t>>> {
    let mut table = document.table(&format!("{key} = 0"), base).ok()?;
    let mut path = Vec::new();
    loop {
        let (name, value) = Some(table).filter(|table| table.len() == 1)?.into_iter().next()?;
        path.push(name);
        let span = value.span();
        let value = value.into_inner();
        // The integer must be the zero inserted above, not an integer in a value that the key contains.
        if value.is_integer() {
            return (span.start > base + key.len()).then_some(path);
        }
        let DeValue::Table(inner) = value else { return None };
        table = inner;
    }
}

/// Sets the value at a path and creates missing tables.
fn assign<'t>(document: &mut Document<'t>, path: &[Key<'t>], value: Node<'t>) -> Result<(), ConfigError> {
    let place = path[0].span().start..path[path.len() - 1].span().end;
    let found = match path {
        [first, label, rest @ ..] if first.get_ref() == "policy" => {
            let label = label.get_ref();
            parameters(&mut document.root, label).and_then(|table| insert(table, rest, &place, value, label))
        }
        _ => insert(&mut document.root, path, &place, value, "the file"),
    };
    found.map_err(|(message, help)| document.error(&place, message).help(help))
}

/// The parameters of the policy with that label; an error has a message and a remedy.
fn parameters<'a, 't>(
    root: &'a mut DeTable<'t>,
    label: &str,
) -> Result<&'a mut DeTable<'t>, (String, String)> {
    let mut known = Vec::new();
    let list = root.get_mut("policy").map(Spanned::get_mut);
    let tables = if let Some(DeValue::Array(tables)) = list { Some(tables.iter_mut()) } else { None };
    for table in tables.into_iter().flatten().filter_map(table_mut) {
        let named = table.get("label").and_then(|label| label.get_ref().as_str()).map(str::to_owned);
        let policy = entries(table).into_iter().find(|(key, _)| *key.get_ref() != "label");
        let Some(policy) = policy.map(|(key, _)| key.get_ref().to_string()) else { continue };
        let this = named.unwrap_or_else(|| policy.clone());
        if this == label {
            let value = table.get_mut(policy.as_str()).map(|value| (what(value.get_ref()), table_mut(value)));
            return match value {
                Some((_, Some(parameters))) => Ok(parameters),
                other => Err((
                    format!("policy `{this}` is {}", other.map_or("missing", |(what, _)| what)),
                    "write its parameters as a table".to_owned(),
                )),
            };
        }
        known.push(this);
    }
    let near =
        nearest(label, known.iter().map(String::as_str)).map(|near| format!("did you mean `policy.{near}`?"));
    let help = near.unwrap_or_else(|| format!("labels: {}", known.join(", ")));
    Err((format!("no [[policy]] has the label `{label}`"), help))
}

/// Sets the value at a path below a table.
fn insert<'t>(
    mut table: &mut DeTable<'t>,
    path: &[Key<'t>],
    place: &Range<usize>,
    value: Node<'t>,
    owner: &str,
) -> Result<(), (String, String)> {
    let Some((last, way)) = path.split_last() else {
        return Err((
            format!("`{owner}` needs the name of a parameter"),
            format!("write policy.{owner}.parameter"),
        ));
    };
    let mut rest = way.iter().zip(&path[1..]);
    while let Some((key, next)) = rest.next() {
        let empty = || Spanned::new(key.span(), DeValue::Table(DeTable::new()));
        let entry = table.entry(key.clone()).or_insert_with(empty);
        let (name, next, what) = (key.get_ref(), next.get_ref(), what(entry.get_ref()));
        let items = || entry.get_ref().as_array().into_iter().flatten();
        if items().any(|item| item.get_ref().is_table()) {
            table = element(entry, name, next)?;
            if rest.next().is_none() {
                return Err(needs_key(name, next, table));
            }
            continue;
        }
        table = table_mut(entry).ok_or_else(|| {
            (
                format!("`{name}` is {what} and has no key `{next}`"),
                format!("write `{name}` as a table in the file, or give it as a whole"),
            )
        })?;
    }
    put(table, Spanned::new(place.clone(), last.get_ref().clone()), value);
    Ok(())
}

/// The table in a list that has a name or a number; an error has a message and a remedy.
fn element<'a, 't>(
    node: &'a mut Node<'t>,
    list: &str,
    wanted: &str,
) -> Result<&'a mut DeTable<'t>, (String, String)> {
    let name = |item: &Node<'t>| Some(item.get_ref().as_table()?.get("name")?.get_ref().as_str()?.to_owned());
    let names: Vec<Option<String>> = node.get_ref().as_array().into_iter().flatten().map(name).collect();
    let named = names.iter().position(|name| name.as_deref() == Some(wanted));
    let at = named.or_else(|| wanted.parse().ok()).filter(|at| *at < names.len());
    let items = if let DeValue::Array(items) = node.get_mut() { Some(items) } else { None };
    at.and_then(|at| table_mut(items?.get_mut(at)?)).ok_or_else(|| {
        let known = || names.iter().flatten().map(String::as_str);
        let help = did_you_mean(wanted, known()).unwrap_or_else(|| match names.len() {
            1 => format!("`{list}` has one element; write its name{} or 0", or_empty(listed(known()))),
            count => format!("write a name{} or a number from 0 to {}", or_empty(listed(known())), count - 1),
        });
        (format!("no element of `{list}` is called `{wanted}`"), help)
    })
}

/// The names in parentheses; empty without names.
fn or_empty(names: String) -> String {
    if names.is_empty() { names } else { format!(" ({names})") }
}

/// The error for a key that addresses a whole element of a list, and its remedy.
fn needs_key(list: &str, name: &str, item: &DeTable<'_>) -> (String, String) {
    let keys = entries(item).into_iter().map(|(key, _)| key.get_ref().as_ref());
    (
        format!("`{list}.{name}` is a table, and needs the name of one of its keys"),
        format!("add one of {}", listed(keys)),
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Texts that live as long as the tests do.
    fn texts() -> &'static Texts {
        Box::leak(Box::default())
    }

    fn document(text: &str) -> Document<'static> {
        Document::parse(texts(), Text { name: "e.toml".into(), text: text.into(), folder: None }).unwrap()
    }

    fn value(document: &Document<'_>) -> serde_json::Value {
        document.to().unwrap()
    }

    #[test]
    fn cells_are_in_the_order_of_the_file() {
        let doc = document("[sweep]\n\"service.b\" = [true, false]\n\"network.a\" = [1, 2, 3]\n");
        let axes = axes(&doc).unwrap();
        let cells: Vec<_> = (0..6).map(|i| cell(&doc, texts(), &axes, i).unwrap().1).collect();
        assert_eq!(json!(cells[0]), json!({"service.b": true, "network.a": 1}));
        assert_eq!(json!(cells[1]), json!({"service.b": true, "network.a": 2}));
        assert_eq!(json!(cells[3]), json!({"service.b": false, "network.a": 1}));
        let (last, _) = cell(&doc, texts(), &axes, 5).unwrap();
        assert_eq!(value(&last)["service"], json!({"b": false}));
        assert_eq!(value(&last)["network"], json!({"a": 3}));
    }

    #[test]
    fn choosing_a_swept_value_does_not_change_the_experiment() {
        let mut doc = document("[sweep]\n\"service.b\" = [1, 2]\n\"network.a\" = [\"1s\"]\n");
        let written = axes(&doc).unwrap();
        let texts = ["service.b=2", "network.a=3s", "seed=4"].map(str::to_owned);
        set(&mut doc, &texts).unwrap();
        assert_eq!(changes(&texts, &written, &axes(&doc).unwrap()), ["network.a=3s", "seed=4"]);
    }

    #[test]
    fn keys_of_policies_are_addressed_by_label() {
        let text = "[[policy]]\nlatin-square = { order = 2 }\n[[policy]]\nrandom = {}\nlabel = \"r\"\n\
                [sweep]\n\"policy.latin-square.order\" = [3]\n\"policy.r.x.y\" = [\"s\"]\n";
        let doc = document(text);
        let (doc, _) = cell(&doc, texts(), &axes(&doc).unwrap(), 0).unwrap();
        assert_eq!(
            value(&doc)["policy"],
            json!([{"latin-square": {"order": 3}}, {"random": {"x": {"y": "s"}}, "label": "r"}])
        );
    }

    #[test]
    fn elements_of_lists_are_addressed_by_name_or_number() {
        let text = "[[workload.mix.class]]\nname = \"batch\"\nweight = 1\nstages = [{ tasks = 2 }, { tasks = 3 }]\n\
                [[workload.mix.class]]\nname = \"web\"\n[sweep]\n\"workload.mix.class.batch.weight\" = [4, 5]\n";
        let mut doc = document(text);
        let given = ["workload.mix.class.web.weight=7", "workload.mix.class.0.stages.1.tasks=9"];
        set(&mut doc, &given.map(String::from)).unwrap();
        let (doc, _) = cell(&doc, texts(), &axes(&doc).unwrap(), 1).unwrap();
        let class = &value(&doc)["workload"]["mix"]["class"];
        assert_eq!(class[0], json!({"name": "batch", "weight": 5, "stages": [{"tasks": 2}, {"tasks": 9}]}));
        assert_eq!(class[1], json!({"name": "web", "weight": 7}));
        for (given, words) in [
            ("workload.mix.class.bacth.weight=1", "did you mean `batch`?"),
            ("workload.mix.class.zzz.weight=1", "(`batch` or `web`) or a number from 0 to 1"),
            ("workload.mix.class.2.weight=1", "no element of `class` is called `2`"),
            ("workload.mix.class.web=1", "needs the name of one of its keys"),
        ] {
            let error = set(&mut document(text), &[given.to_owned()]).unwrap_err().to_string();
            assert!(error.contains(words) && error.contains("--set:1:1"), "{given}: {error}");
        }
    }

    #[test]
    fn overrides_replace_and_add_keys_and_pin_swept_keys() {
        let mut doc = document("seed = 1\n[sweep]\n\"service.a\" = [1, 2]\n");
        let given = ["seed=7", "network.one_way=5ms", "service.a=2", "service.b = [1, 2]"];
        set(&mut doc, &given.map(String::from)).unwrap();
        assert_eq!(value(&doc)["seed"], 7);
        assert_eq!(value(&doc)["network"]["one_way"], "5ms");
        assert_eq!(value(&doc)["service"]["b"], json!([1, 2]));
        let axes = axes(&doc).unwrap();
        assert_eq!(axes[0].values.len(), 1);
        assert_eq!(cell(&doc, texts(), &axes, 0).unwrap().1["service.a"], json!(2));
    }

    /// A sweep of `service.a` over 0 and 1. The row of 0 also sets `service.b` and `service.c`.
    const ROWS: &str = "[service]\nc = 1\n[sweep]\n\"service.a\" = [{ \"service.a\" = 0, \"service.b\" = 7, \
                    \"service.c\" = 8 }, 1]\n\"service.d\" = [1, 2]\n";

    fn service_in_cells(doc: &Document<'_>) -> Vec<(Cell, serde_json::Value)> {
        let axes = axes(doc).unwrap();
        let count = axes.iter().map(|axis| axis.values.len()).product();
        let of = |index| {
            let (document, cell) = cell(doc, Box::leak(Box::default()), &axes, index).unwrap();
            (cell, value(&document)["service"].clone())
        };
        (0..count).map(of).collect()
    }

    #[test]
    fn a_value_of_a_sweep_sets_other_keys_in_its_cells_only() {
        let found = service_in_cells(&document(ROWS));
        let worlds: Vec<_> = found.iter().map(|(_, world)| world.clone()).collect();
        assert_eq!(worlds[0], json!({"a": 0, "b": 7, "c": 8, "d": 1}));
        assert_eq!(worlds[1], json!({"a": 0, "b": 7, "c": 8, "d": 2}));
        assert_eq!(worlds[2], json!({"a": 1, "c": 1, "d": 1}));
        let names: Vec<_> = found.iter().map(|(cell, _)| json!(cell)).collect();
        assert_eq!(names[0], json!({"service.a": 0, "service.d": 1}), "the swept keys name a cell");
        assert_eq!(
            companions(&axes(&document(ROWS)).unwrap()),
            ["service.a = 0 sets service.b = 7, service.c = 8"]
        );
    }

    #[test]
    fn overrides_choose_a_row_and_take_precedence_over_its_other_keys() {
        let cells = |given: &[&str]| {
            let mut doc = document(ROWS);
            set(&mut doc, &given.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>()).unwrap();
            service_in_cells(&doc).into_iter().map(|(_, world)| world).collect::<Vec<_>>()
        };
        assert_eq!(cells(&["service.a=0.0", "service.d=1"]), [json!({"a": 0, "b": 7, "c": 8, "d": 1})]);
        assert_eq!(cells(&["service.a=1", "service.d=1"]), [json!({"a": 1, "c": 1, "d": 1})]);
        assert_eq!(cells(&["service.a=5", "service.d=1"]), [json!({"a": 5, "c": 1, "d": 1})]);
        let both = [json!({"a": 0, "b": 7, "c": 9, "d": 1}), json!({"a": 1, "c": 9, "d": 1})];
        assert_eq!(cells(&["service.c=9", "service.d=1"]), both);
    }

    #[test]
    fn an_override_that_overlaps_a_swept_key_is_refused() {
        for text in ["service={ a = 1 }", "service.a.b=1"] {
            let mut document = document("[service]\na = 1\n[sweep]\n\"service.a\" = [1, 2]");
            let error = set(&mut document, &[text.to_owned()]).unwrap_err().to_string();
            assert!(error.contains("`service.a` is swept") && error.contains("--set service.a=…"), "{error}");
        }
        let mut emptied = document(ROWS);
        set(&mut emptied, &["service={ b = 5 }".to_owned()]).unwrap();
        let worlds: Vec<_> = service_in_cells(&emptied).into_iter().map(|(_, world)| world).collect();
        assert_eq!(worlds[0], json!({"a": 0, "b": 5, "c": 8, "d": 1}));
        assert_eq!(worlds[3], json!({"a": 1, "b": 5, "d": 2}));
    }

    #[test]
    fn a_mistake_in_a_sweep_is_reported_with_its_position() {
        let cases = [
            ("[sweep]\nservice.a = [1]", "2:1", "quote the whole key"),
            ("[sweep]\n\"service.a\" = 1", "2:15", "a list"),
            ("[sweep]\n\"service.a\" = []", "2:15", "empty list"),
            ("[sweep]\n\"servce.a\" = [1]", "2:1", "did you mean `service`?"),
            ("[sweep]\n\"seed\" = [1]", "2:1", "dotted key"),
            ("[sweep]\n\"run.speed\" = [1]", "2:1", "cannot be swept"),
            ("sweep = 3", "1:9", "`sweep` is a number"),
            ("[sweep]\n\"service.a\" = [{ service.a = 1 }]", "2:16", "quote the whole key"),
            ("[sweep]\n\"service.a\" = [{ \"service.a\" = 1, b = 2 }]", "2:35", "`b` is not a dotted key"),
            ("[sweep]\n\"service.a\" = [{ \"service.a\" = 1, \"run.b\" = 2 }]", "2:35", "cannot be swept"),
            ("[sweep]\n\"service.a\" = [{ \"service.a\" = 1 }, 1.0]", "2:37", "occurs twice"),
            (
                "[sweep]\n\"service.a\" = [{ \"service.a\" = 1, \"service.b\" = 2 }]\n\"service.b\" = [1]",
                "2:49",
                "sets `service.b` twice",
            ),
            (
                "[sweep]\n\"service.a.b\" = [{ \"service.a.b\" = 1, \"service.a\" = 2 }]",
                "2:53",
                "sets `service.a` twice",
            ),
            ("[sweep]\n\"service.a\" = [1]\n\"service.a.b\" = [1]", "2:1", "sets `service.a` twice"),
            ("[sweep]\n\"service.a\" = [{ \"service.b\" = 1 }]", "2:16", "has no `service.a`"),
        ];
        for (text, place, words) in cases {
            let error = axes(&document(text)).unwrap_err().to_string();
            assert!(error.contains(&format!("e.toml:{place}")) && error.contains(words), "{text}: {error}");
        }
        let doc =
            document("[network]\none_way = \"5ms\"\n[sweep]\n\"network.one_way.gamma.mean\" = [\"1ms\"]");
        let error = cell(&doc, texts(), &axes(&doc).unwrap(), 0).unwrap_err().to_string();
        assert!(error.contains("e.toml:4:1") && error.contains("`one_way` is a string"), "{error}");
    }

    #[test]
    fn bad_overrides_point_into_the_option() {
        for (text, place, words) in [
            ("seed", "--set:1:1", "needs a key and a value"),
            ("a..b=1", "--set:1:1", "not a dotted key"),
            ("seed=[1", "--set:1:8", "TOML"),
            ("=1", "--set:1:1", "not a dotted key"),
            ("policy.x.y=1", "--set:1:1", "no [[policy]] has the label `x`"),
        ] {
            let error = set(&mut document("seed = 1"), &[text.to_owned()]).unwrap_err().to_string();
            assert!(error.contains(place) && error.contains(words), "{text}: {error}");
        }
    }
}
