//! The `volary schema` command.

use std::process::ExitCode;

use clap::Args;
use serde_json::{Map, Value, json};

use super::output::show;
use crate::config::reference;
use crate::config::schema::{What, schema};
use crate::storage::tables::TableKind;

/// Print the JSON Schema of a file format, for editors and checks, or explain it for readers.
#[derive(Debug, Args)]
pub(super) struct Options {
    /// Which format.
    what: What,
    /// For readers: every key with its meaning, unit and default; of experiments also the distributions, the numbers
    /// that claims can compare, and the grammar of claims.
    #[arg(long)]
    text: bool,
}

pub(super) fn main(options: &Options) -> anyhow::Result<ExitCode> {
    let tables = if options.what == What::Results { TableKind::ALL } else { &[] };
    let json = || {
        let mut schema = schema(options.what).to_value();
        if let Some(defs) = schema.get_mut("$defs").and_then(Value::as_object_mut) {
            defs.extend(tables.iter().map(|table| (format!("{}.parquet", table.name()), row_schema(*table))));
        }
        schema
    };
    let text = || tables.iter().fold(reference::text(options.what), |text, table| text + &row_text(*table));
    show(!options.text, json, text)
}

/// The columns of a table and their meanings, as a schema of its rows.
fn row_schema(table: TableKind) -> Value {
    let columns = table.all_meanings().into_iter();
    let columns = columns.map(|(name, meaning)| (name.to_owned(), json!({ "description": meaning })));
    let columns = columns.collect::<Map<_, _>>();
    json!({ "description": table.about().trim(), "type": "object", "properties": columns })
}

/// The same for readers.
fn row_text(table: TableKind) -> String {
    let rows = table.all_meanings().into_iter();
    let rows: String = rows.map(|(name, meaning)| format!("  {name}: {meaning}\n")).collect();
    format!("\nColumns of {}.parquet. A row is: {}\n\n{rows}", table.name(), table.about().trim())
}
