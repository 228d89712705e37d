//! Overrides (`--set key=value`) and sweeps, applied to the document before it is read into types.
//!
//! Values keep the place they were written at, so a wrong type or an unknown key is reported at the `--set` or
//! at the line of the sweep. `policy.LABEL.PARAMETER` reaches into the `[[policy]]` with that label.

use std::ops::Range;

use super::document::Document;
use super::error::{ConfigError, Text, listed, nearest};
use super::tree::{Entry, Kind, Node, Table};
use crate::results::Cell;

/// Sections a sweep may change; the others say what to do with the results, not what the world is like.
const SWEEPABLE: [&str; 6] = ["cluster", "workload", "service", "network", "interference", "policy"];

/// One swept key with its values.
#[derive(Clone, PartialEq, Debug)]
pub struct Axis {
    /// The dotted key as written.
    pub key: String,
    /// Where it is written.
    at: Range<usize>,
    path: Vec<Segment>,
    values: Vec<Node>,
}

impl Axis {
    /// Its values as cells show them.
    #[must_use]
    pub fn plain_values(&self) -> Vec<serde_json::Value> {
        self.values.iter().filter_map(|value| value.read().ok()).collect()
    }
}

/// A part of a dotted key and its place.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Segment {
    name: String,
    at: Range<usize>,
}

/// Applies `--set` texts in order. A key that is swept is pinned: its list becomes this one value, and cells
/// keep showing it.
///
/// # Errors
/// When a text is not `key=value`, or its key passes through something that has no keys.
pub fn set(document: &mut Document, texts: &[String]) -> Result<(), ConfigError> {
    for text in texts {
        let source = Text { name: "--set".into(), text: text.clone(), folder: None };
        let Some((key, value)) = text.split_once('=') else {
            return Err(source
                .error(0..text.len(), "", "an override needs a key and a value")
                .help("write --set key=value, such as --set service.correlated=true"));
        };
        let base = document.add_text(source.clone());
        let path = segments(key, base).ok_or_else(|| {
            source
                .error(0..key.len(), "", format!("`{key}` is not a dotted key"))
                .help("write names joined by dots, such as network.one_way")
        })?;
        let at = text.len() - value.trim_start().len();
        let value = value.trim();
        let node = match Node::parse(value, base + at) {
            Ok(node) => node,
            // Shells eat quotes: what cannot be anything else is a string.
            Err(_) if !value.starts_with(['"', '\'', '[', '{']) => {
                Node::text(value, base + at..base + text.len())
            }
            Err(error) => {
                let span = error.span().unwrap_or(0..value.len());
                return Err(source
                    .error(span.start + at..span.end + at, key, error.message().trim_end())
                    .help("the value is TOML, such as 2, true, \"10ms\" or [1, 2]"));
            }
        };
        pin_or_assign(document, key.trim(), &path, node)?;
    }
    Ok(())
}

fn pin_or_assign(
    document: &mut Document,
    key: &str,
    path: &[Segment],
    value: Node,
) -> Result<(), ConfigError> {
    let sweep = document.root.get_mut("sweep").and_then(|entry| entry.value.as_table_mut());
    if let Some(entry) = sweep.and_then(|sweep| sweep.get_mut(key)) {
        entry.at = path[0].at.start..path[path.len() - 1].at.end;
        entry.value = Node { span: value.span.clone(), kind: Kind::List(vec![value]) };
        return Ok(());
    }
    assign(document, path, value)
}

/// The keys of `[sweep]` in written order.
///
/// # Errors
/// When a key is not dotted, not below a section that may be swept, or has no list of values.
pub fn axes(document: &Document) -> Result<Vec<Axis>, ConfigError> {
    let Some(sweep) = document.root.get("sweep") else { return Ok(Vec::new()) };
    let Some(table) = sweep.value.as_table() else {
        return Err(document
            .error(&sweep.value.span, format!("`sweep` is {}", sweep.value.what()))
            .help("write [sweep] and below it \"dotted.key\" = [values]"));
    };
    table.0.iter().map(|entry| axis(document, entry)).collect()
}

fn axis(document: &Document, entry: &Entry) -> Result<Axis, ConfigError> {
    let Entry { key, at, value } = entry;
    let Some(mut path) = segments(key, 0).filter(|path| path.len() > 1) else {
        return Err(document.error(at, format!("`{key}` is not a dotted key of this file")).help(format!(
            "quote the whole key, such as \"service.correlated\"; sections: {}",
            SWEEPABLE.join(", ")
        )));
    };
    if !SWEEPABLE.contains(&path[0].name.as_str()) {
        let error = document
            .error(at, format!("`{}` cannot be swept", path[0].name))
            .label(format!("expected a key below {}", listed(SWEEPABLE)));
        return Err(match (path[0].name.as_str(), nearest(&path[0].name, SWEEPABLE)) {
            ("seed", _) => error.help("`repeat` runs several seeds"),
            (_, Some(near)) => error.help(format!("did you mean `{near}`?")),
            (_, None) => error.help("start several runs with --set instead"),
        });
    }
    let values = value.as_list().filter(|values| !values.is_empty()).ok_or_else(|| {
        let what = if value.as_list().is_some() { "an empty list" } else { value.what() };
        let error = document.error(&value.span, format!("the sweep of `{key}` is {what}"));
        if value.as_table().is_some() {
            return error.help(format!("quote the whole key: \"{key}.…\" = [values]"));
        }
        error.label("expected a list of values").help("write a list such as [1, 2, 4]")
    })?;
    path.iter_mut().for_each(|segment| segment.at = at.clone());
    Ok(Axis { key: key.clone(), at: at.clone(), path, values: values.to_vec() })
}

/// How many cells the axes span; `None` if too many to count.
#[must_use]
pub fn count(axes: &[Axis]) -> Option<usize> {
    axes.iter().try_fold(1usize, |n, axis| n.checked_mul(axis.values.len()))
}

/// The document and the values of cell number `index`; the last axis moves fastest.
///
/// # Errors
/// When a key of the sweep passes through something that has no keys, or a value is a date.
pub fn cell(document: &Document, axes: &[Axis], index: usize) -> Result<(Document, Cell), ConfigError> {
    let mut document = document.clone();
    let mut cell = Cell::new();
    let mut stride = 1;
    for axis in axes.iter().rev() {
        let value = &axis.values[index / stride % axis.values.len()];
        stride *= axis.values.len();
        let plain = value.read().ok().filter(|_| !matches!(value.kind, Kind::Date(_))).ok_or_else(|| {
            document
                .error(&value.span, format!("a sweep value of `{}` is {}", axis.key, value.what()))
                .help("write numbers, strings, booleans or tables")
        })?;
        cell.insert(axis.key.clone(), plain);
        assign(&mut document, &axis.path, value.clone())?;
    }
    Ok((document, cell))
}

/// Splits a dotted key as TOML does; `None` if it is none.
fn segments(key: &str, base: usize) -> Option<Vec<Segment>> {
    let text = format!("{key} = 0");
    let mut table = Table::parse(&text).ok()?;
    let mut path = Vec::new();
    loop {
        let entry = table.0.pop().filter(|_| table.0.is_empty())?;
        path.push(Segment { name: entry.key, at: entry.at.start + base..entry.at.end + base });
        match entry.value.kind {
            Kind::Table(inner) => table = inner,
            // The zero must be the one written above, or the key smuggled in a value of its own.
            Kind::Number(_) if entry.value.span.start > key.len() => return Some(path),
            Kind::Number(_) | Kind::Text(_) | Kind::Bool(_) | Kind::Date(_) | Kind::List(_) => return None,
        }
    }
}

/// Puts a value at a path, making the tables on the way.
fn assign(document: &mut Document, path: &[Segment], value: Node) -> Result<(), ConfigError> {
    let place =
        path.iter().fold(path[0].at.clone(), |all, s| all.start.min(s.at.start)..all.end.max(s.at.end));
    let found = match path {
        [first, label, rest @ ..] if first.name == "policy" => parameters(&mut document.root, label)
            .and_then(|table| insert(table, rest, &place, value, &label.name)),
        _ => insert(&mut document.root, path, &place, value, "the file"),
    };
    found.map_err(|(message, help)| document.error(&place, message).help(help))
}

/// The parameters of the policy with that label; the error is a message and a remedy.
fn parameters<'a>(root: &'a mut Table, label: &Segment) -> Result<&'a mut Table, (String, String)> {
    let entries = root.get_mut("policy").and_then(|entry| entry.value.as_list_mut());
    let mut known = Vec::new();
    for table in entries.into_iter().flatten().filter_map(Node::as_table_mut) {
        let named = table.get("label").and_then(|entry| entry.value.as_str()).map(str::to_owned);
        let Some(policy) = table.0.iter_mut().find(|entry| entry.key != "label") else { continue };
        let this = named.unwrap_or_else(|| policy.key.clone());
        if this == label.name {
            let what = policy.value.what();
            return policy.value.as_table_mut().ok_or_else(|| {
                (format!("policy `{this}` is {what}"), "write its parameters as a table".to_owned())
            });
        }
        known.push(this);
    }
    let help = match nearest(&label.name, known.iter().map(String::as_str)) {
        Some(near) => format!("did you mean `policy.{near}`?"),
        None => format!("labels: {}", known.join(", ")),
    };
    Err((format!("no [[policy]] has the label `{}`", label.name), help))
}

fn insert(
    mut table: &mut Table,
    path: &[Segment],
    place: &Range<usize>,
    value: Node,
    owner: &str,
) -> Result<(), (String, String)> {
    let Some((last, way)) = path.split_last() else {
        return Err((
            format!("`{owner}` needs the name of a parameter"),
            format!("write policy.{owner}.parameter"),
        ));
    };
    for (done, segment) in way.iter().enumerate() {
        if table.get(&segment.name).is_none() {
            let span = segment.at.clone();
            let empty = Node { span: span.clone(), kind: Kind::Table(Table::default()) };
            table.insert(Entry { key: segment.name.clone(), at: span, value: empty });
        }
        let next = &path[done + 1].name;
        let Some(entry) = table.get_mut(&segment.name) else {
            return Err((format!("`{}` is not there", segment.name), "write it into the file".into()));
        };
        let what = entry.value.what();
        table = entry.value.as_table_mut().ok_or_else(|| {
            (
                format!("`{}` is {what} and has no key `{next}`", segment.name),
                format!("write it as a table in the file, or give `{}` as a whole", segment.name),
            )
        })?;
    }
    table.insert(Entry { key: last.name.clone(), at: place.clone(), value });
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn document(text: &str) -> Document {
        Document::parse(Text { name: "e.toml".into(), text: text.into(), folder: None }).unwrap()
    }

    fn value(document: &Document) -> serde_json::Value {
        document.root.read(0..0).unwrap()
    }

    #[test]
    fn cells_come_in_written_order() {
        let doc = document("[sweep]\n\"service.b\" = [true, false]\n\"network.a\" = [1, 2, 3]\n");
        let axes = axes(&doc).unwrap();
        assert_eq!(count(&axes), Some(6));
        let cells: Vec<_> = (0..6).map(|i| cell(&doc, &axes, i).unwrap().1).collect();
        assert_eq!(json!(cells[0]), json!({"service.b": true, "network.a": 1}));
        assert_eq!(json!(cells[1]), json!({"service.b": true, "network.a": 2}));
        assert_eq!(json!(cells[3]), json!({"service.b": false, "network.a": 1}));
        let (last, _) = cell(&doc, &axes, 5).unwrap();
        assert_eq!(value(&last)["service"], json!({"b": false}));
        assert_eq!(value(&last)["network"], json!({"a": 3}));
    }

    #[test]
    fn policies_are_reached_by_label() {
        let text = "[[policy]]\nlatin-square = { order = 2 }\n[[policy]]\nrandom = {}\nlabel = \"r\"\n\
                    [sweep]\n\"policy.latin-square.order\" = [3]\n\"policy.r.x.y\" = [\"s\"]\n";
        let doc = document(text);
        let (doc, _) = cell(&doc, &axes(&doc).unwrap(), 0).unwrap();
        assert_eq!(
            value(&doc)["policy"],
            json!([{"latin-square": {"order": 3}}, {"random": {"x": {"y": "s"}}, "label": "r"}])
        );
    }

    #[test]
    fn overrides_replace_add_and_pin() {
        let mut doc = document("seed = 1\n[sweep]\n\"service.a\" = [1, 2]\n");
        let texts = ["seed=7", "network.one_way=5ms", "service.a=2", "service.b = [1, 2]"];
        set(&mut doc, &texts.map(String::from)).unwrap();
        assert_eq!(value(&doc)["seed"], 7);
        assert_eq!(value(&doc)["network"]["one_way"], "5ms");
        assert_eq!(value(&doc)["service"]["b"], json!([1, 2]));
        let axes = axes(&doc).unwrap();
        assert_eq!((count(&axes), cell(&doc, &axes, 0).unwrap().1["service.a"].clone()), (Some(1), json!(2)));
    }

    #[test]
    fn mistakes_are_located() {
        let cases = [
            ("[sweep]\nservice.a = [1]", "2:1", "quote the whole key"),
            ("[sweep]\n\"service.a\" = 1", "2:15", "a list"),
            ("[sweep]\n\"service.a\" = []", "2:15", "empty list"),
            ("[sweep]\n\"servce.a\" = [1]", "2:1", "did you mean `service`?"),
            ("[sweep]\n\"seed\" = [1]", "2:1", "dotted key"),
            ("[sweep]\n\"run.speed\" = [1]", "2:1", "cannot be swept"),
            ("sweep = 3", "1:9", "`sweep` is a number"),
        ];
        for (text, place, words) in cases {
            let error = axes(&document(text)).unwrap_err().to_string();
            assert!(error.contains(&format!("e.toml:{place}")) && error.contains(words), "{text}: {error}");
        }
        let doc =
            document("[network]\none_way = \"5ms\"\n[sweep]\n\"network.one_way.gamma.mean\" = [\"1ms\"]");
        let error = cell(&doc, &axes(&doc).unwrap(), 0).unwrap_err().to_string();
        assert!(error.contains("e.toml:4:1") && error.contains("`one_way` is a string"), "{error}");
        let doc = document("[[policy]]\nsparrow = {}\n[sweep]\n\"policy.sparow.probe_ratio\" = [1]");
        let error = cell(&doc, &axes(&doc).unwrap(), 0).unwrap_err().to_string();
        assert!(error.contains("e.toml:4:1") && error.contains("did you mean `policy.sparrow`?"), "{error}");
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
