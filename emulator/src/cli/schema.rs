//! The `volary schema` command.

use std::fmt::Write;
use std::process::ExitCode;

use clap::Args;
use serde_json::{Map, Value, json};
use volary_engine::results::{Better, METRICS, Metric, Unit};
use volary_experiment::config::reference;
use volary_experiment::config::reference::{What, schema};
use volary_experiment::storage::tables::TableKind;

use super::output::show;

/// Print the JSON Schema of a file format, for editors and checks, or explain it for readers.
#[derive(Debug, Args)]
pub(super) struct Options {
    /// The file format to describe.
    what: What,
    /// Explain the format for readers: every key with its meaning, unit and default. For experiments, also the
    /// distributions, the numbers that claims can compare, and the grammar of claims.
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
    let text = || {
        let mut text = reference::text(options.what);
        if options.what == What::Results {
            text.push_str(&metrics());
        }
        tables.iter().fold(text, |text, table| text + &row_text(*table))
    };
    show(!options.text, json, text)
}

/// The text about the metrics that tables and comparisons show.
fn metrics() -> String {
    let mut text = "\nMetrics of tables, figures and comparisons, with their columns\n\n".to_owned();
    for Metric { key, unit, better, meaning, by_class, censored, column, .. } in &METRICS {
        let unit = match unit {
            Unit::Seconds => "s",
            Unit::Hours => "h",
            Unit::Share => "share of one",
            Unit::Plain => "number",
            Unit::Count => "count",
        };
        let better = match better {
            Better::Less => ", less is better",
            Better::More => ", more is better",
            Better::Neither => "",
        };
        let class = if *by_class { ", also of a class" } else { "" };
        let censored = if *censored { ", of jobs that ended" } else { "" };
        let column = column.map_or_else(String::new, |column| format!(", column `{}`", column.heading));
        let _ = writeln!(text, "  {key}  ({unit}{better}{class}{censored}{column})\n      {meaning}");
    }
    text
}

/// A schema of the rows of a table: the columns with their meanings.
fn row_schema(table: TableKind) -> Value {
    let columns = table.all_meanings().into_iter();
    let columns = columns.map(|(name, meaning)| (name.to_owned(), json!({ "description": meaning })));
    let columns = columns.collect::<Map<_, _>>();
    json!({ "description": table.about().trim(), "type": "object", "properties": columns })
}

/// The text about the columns that [`row_schema`] describes.
fn row_text(table: TableKind) -> String {
    let rows = table.all_meanings().into_iter();
    let rows: String = rows.map(|(name, meaning)| format!("  {name}: {meaning}\n")).collect();
    format!("\nColumns of {}.parquet. A row is: {}\n\n{rows}", table.name(), table.about().trim())
}
