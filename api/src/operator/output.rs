//! The output of the commands: tables for people, JSON for programs.

use chrono::SecondsFormat;
use serde_json::Value;
use waypost_core::clock::Timestamp;

/// How a command prints its result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OutputFormat {
    Text,
    Json,
}

impl OutputFormat {
    /// Prints the text, or the JSON.
    pub(super) fn print(self, text: impl FnOnce() -> String, json: impl FnOnce() -> Value) {
        match self {
            Self::Text => {
                let text = text();
                let text = text.trim_end_matches('\n');
                if !text.is_empty() {
                    println!("{text}");
                }
            }
            Self::Json => println!("{:#}", json()),
        }
    }
}

/// A table with columns as wide as their contents.
pub(super) fn table<const N: usize>(
    head: [&str; N],
    rows: impl IntoIterator<Item = [String; N]>,
) -> String {
    let mut lines = vec![head.map(str::to_owned)];
    lines.extend(rows);
    let widths: [usize; N] = std::array::from_fn(|column| {
        let cells = lines.iter().map(|line| line[column].chars().count());
        cells.max().unwrap_or_default()
    });
    let mut text = String::new();
    for line in lines {
        let cells = line.iter().zip(widths);
        let padded: Vec<String> = cells
            .map(|(cell, width)| format!("{cell:width$}"))
            .collect();
        text.push_str(padded.join("  ").trim_end());
        text.push('\n');
    }
    text
}

/// Two columns: the names and values of one object.
pub(super) fn fields<const N: usize>(fields: [(&str, String); N]) -> String {
    let widths = fields.iter().map(|(name, _)| name.chars().count());
    let width = widths.max().unwrap_or_default();
    let lines = fields.map(|(name, value)| format!("{name:width$}  {value}\n"));
    lines.concat()
}

/// A time as it is printed.
pub(super) fn timestamp(moment: Timestamp) -> String {
    moment.to_rfc3339_opts(SecondsFormat::Secs, true)
}

/// A time as it is printed, or a dash.
pub(super) fn optional_timestamp(moment: Option<Timestamp>) -> String {
    moment.map_or_else(|| "-".to_owned(), timestamp)
}
