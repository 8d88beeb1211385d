//! The figures of a run: a table for people, JSON for programs. The JSON calls a baseline
//! a "floor".

use std::fmt::Write as _;
use std::path::Path;

use serde_json::{Map, Value, json};

use crate::Failure;

/// The bound that a figure must reach.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Bound {
    AtLeast(f64),
    AtMost(f64),
    None,
}

/// A line of the table.
#[derive(Debug)]
struct Line {
    row: String,
    what: String,
    figure: String,
    baseline: String,
    ratio: Option<f64>,
    bound: Bound,
}

/// All figures so far.
#[derive(Debug, Default)]
pub(crate) struct Report {
    lines: Vec<Line>,
    json: Map<String, Value>,
}

/// One figure beside its baseline. `bound` applies to `ratio`: the figure divided by the
/// baseline, or the figure itself if there is no baseline.
#[derive(Debug)]
pub(crate) struct Figure<'a> {
    /// The row of the table of targets, as `1` or `9b`.
    pub(crate) row: &'a str,
    pub(crate) what: &'a str,
    pub(crate) figure: String,
    pub(crate) baseline: String,
    pub(crate) ratio: Option<f64>,
    pub(crate) bound: Bound,
}

impl Report {
    /// Adds a line to the table, and prints it at once.
    pub(crate) fn add(&mut self, figure: Figure<'_>) {
        let line = Line {
            row: figure.row.to_owned(),
            what: figure.what.to_owned(),
            figure: figure.figure,
            baseline: figure.baseline,
            ratio: figure.ratio,
            bound: figure.bound,
        };
        crate::progress(line.text());
        self.lines.push(line);
    }

    /// Stores figures for programs: `json[section][name]`.
    pub(crate) fn keep(&mut self, section: &str, name: &str, figures: Value) {
        let section = self.json.entry(section).or_insert_with(|| json!({}));
        section[name] = figures;
    }

    /// All lines.
    pub(crate) fn table(&self) -> String {
        let mut table = String::new();
        for line in &self.lines {
            writeln!(table, "{}", line.text()).expect("writing to a string cannot fail");
        }
        table
    }

    /// The lines that missed their bound, each as row and description.
    pub(crate) fn missed(&self) -> impl Iterator<Item = (&str, &str)> {
        let missed = self.lines.iter().filter(|line| line.is_missed());
        missed.map(|line| (line.row.as_str(), line.what.as_str()))
    }

    /// Writes the figures as JSON, and the misses of this run as `missed`. Sections that
    /// this run did not measure keep the figures of an earlier run.
    pub(crate) fn write(&self, path: &Path) -> Result<(), Failure> {
        let earlier = std::fs::read(path).ok();
        let earlier = earlier.and_then(|bytes| serde_json::from_slice(&bytes).ok());
        let mut all: Map<String, Value> = earlier.unwrap_or_default();
        all.extend(self.json.clone());
        let missed = self.missed().map(|(row, what)| format!("{row}: {what}"));
        all.insert("missed".to_owned(), missed.collect());
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        std::fs::write(path, serde_json::to_string_pretty(&all)? + "\n")?;
        Ok(())
    }
}

impl Line {
    fn is_missed(&self) -> bool {
        match (self.bound, self.ratio) {
            // A figure that could not be measured is NaN and counts as missed.
            (Bound::AtLeast(least), Some(ratio)) => ratio.is_nan() || ratio < least,
            (Bound::AtMost(most), Some(ratio)) => ratio.is_nan() || ratio > most,
            (Bound::AtLeast(_) | Bound::AtMost(_) | Bound::None, _) => false,
        }
    }

    fn text(&self) -> String {
        let ratio = self
            .ratio
            .map_or_else(String::new, |ratio| format!("{ratio:.2}"));
        let bound = match self.bound {
            Bound::AtLeast(least) => format!("≥ {least}"),
            Bound::AtMost(most) => format!("≤ {most}"),
            Bound::None => String::new(),
        };
        let missed = if self.is_missed() { "  MISSED" } else { "" };
        format!(
            "{:>4}  {:<58} {:>26} {:>26} {ratio:>8} {bound:>7}{missed}",
            self.row, self.what, self.figure, self.baseline
        )
    }
}
