//! What is measured: cells, rows, and the records kept of them.

use crate::record::provenance::Provenance;
use serde::{Deserialize, Serialize};

/// A point at which a bench measures, with its settings in the order of the table's columns.
#[derive(Clone, Debug)]
pub(crate) struct Cell {
    id: String,
    settings: Vec<(String, String)>,
    most_runs: u32,
    /// How many times as often as others it is measured.
    times: u32,
}

impl Cell {
    /// A cell without settings. The id becomes a file name.
    pub(crate) fn new(id: impl Into<String>) -> Self {
        Self { id: id.into(), settings: Vec::new(), most_runs: u32::MAX, times: 1 }
    }

    /// Adds a setting.
    pub(crate) fn with(mut self, name: &str, value: impl ToString) -> Self {
        self.settings.push((name.to_owned(), value.to_string()));
        self
    }

    /// A cell that is measured once, however often others are.
    pub(crate) fn once(self) -> Self {
        Self { most_runs: 1, ..self }
    }

    /// A cell that is measured twice as often as others.
    pub(crate) fn twice(self) -> Self {
        Self { times: 2, ..self }
    }

    /// The same point under another name.
    pub(crate) fn renamed(self, id: String) -> Self {
        Self { id, ..self }
    }

    /// How often it is measured when others are measured `runs` times.
    pub(crate) fn runs(&self, runs: u32) -> u32 {
        (runs * self.times).min(self.most_runs)
    }

    /// The name of the cell.
    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    /// The value of a setting; empty if the cell has none of that name.
    pub(crate) fn setting(&self, name: &str) -> &str {
        self.settings.iter().find(|(key, _)| key == name).map_or("", |(_, value)| value)
    }
}

/// One number.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct Measure {
    pub(crate) name: String,
    pub(crate) value: f64,
    pub(crate) unit: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) bar: Option<Bar>,
}

/// What a number has to reach. The median counts.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Bar {
    AtLeast(f64),
    AtMost(f64),
}

impl Bar {
    /// Whether `value` reaches it. What is not a number does not.
    pub(crate) fn is_met(self, value: f64) -> bool {
        match self {
            Self::AtLeast(bar) => value >= bar,
            Self::AtMost(bar) => value <= bar,
        }
    }
}

impl Measure {
    /// Whether the bar is met, if there is one.
    pub(crate) fn verdict(&self) -> Option<bool> {
        self.bar.map(|bar| bar.is_met(self.value))
    }
}

/// The numbers of one run of one cell, in the order of the table's columns, and what else is to be
/// said about it.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Row {
    pub(crate) measures: Vec<Measure>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) notes: Vec<String>,
}

impl Row {
    /// A row without numbers.
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Adds a number.
    pub(crate) fn with(mut self, name: &str, value: f64, unit: &str) -> Self {
        self.push(name, value, unit, None);
        self
    }

    /// Adds a number that has to reach something.
    pub(crate) fn held_to(mut self, name: &str, value: f64, unit: &str, bar: Bar) -> Self {
        self.push(name, value, unit, Some(bar));
        self
    }

    /// Adds a number that may have to reach something.
    pub(crate) fn push(&mut self, name: &str, value: f64, unit: &str, bar: Option<Bar>) {
        let (name, unit) = (name.to_owned(), unit.to_owned());
        self.measures.push(Measure { name, value, unit, bar });
    }

    /// Adds words.
    pub(crate) fn note(mut self, note: impl Into<String>) -> Self {
        self.notes.push(note.into());
        self
    }

    /// Whether it is a figure: no part of the rig was late or short.
    pub(crate) fn is_valid(&self) -> bool {
        !self.notes.iter().any(|note| note.starts_with("INVALID"))
    }

    /// The number of this name.
    pub(crate) fn value(&self, name: &str) -> Option<f64> {
        self.measures.iter().find(|measure| measure.name == name).map(|measure| measure.value)
    }

    /// The median of every number over all rows that have it, in the order of first appearance, and
    /// every note once.
    pub(crate) fn median(rows: &[Self]) -> Self {
        let mut median = Self::new();
        for measure in rows.iter().flat_map(|row| &row.measures) {
            if median.value(&measure.name).is_none() {
                let values = rows.iter().filter_map(|row| row.value(&measure.name)).collect();
                median.measures.push(Measure { value: self::median(values), ..measure.clone() });
            }
        }
        for note in rows.iter().flat_map(|row| &row.notes) {
            if !median.notes.contains(note) {
                median.notes.push(note.clone());
            }
        }
        median
    }
}

/// The middle value; of an even number of values, the mean of the two in the middle.
pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => f64::NAN,
        odd if odd % 2 == 1 => values[middle],
        _ => f64::midpoint(values[middle - 1], values[middle]),
    }
}

/// A finished cell, as kept on disk.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct CellResult {
    pub(crate) cell: String,
    pub(crate) settings: Vec<(String, String)>,
    pub(crate) median: Row,
    pub(crate) runs: Vec<Row>,
    pub(crate) commit: String,
}

impl CellResult {
    /// The values of a number in the rounds that are figures, or in all if none is.
    pub(crate) fn values(&self, name: &str) -> Vec<f64> {
        let of = |is_wanted: fn(&Row) -> bool| -> Vec<f64> {
            self.runs
                .iter()
                .filter(|row| is_wanted(row))
                .filter_map(|row| row.value(name))
                .collect()
        };
        let valid = of(Row::is_valid);
        if valid.is_empty() { of(|_| true) } else { valid }
    }

    /// The median of a number over the rounds that are figures; `None` if no round has it.
    pub(crate) fn typical(&self, name: &str) -> Option<f64> {
        Some(self.values(name)).filter(|values| !values.is_empty()).map(median)
    }

    pub(crate) fn new(cell: &Cell, runs: Vec<Row>, commit: &str) -> Self {
        Self {
            cell: cell.id.clone(),
            settings: cell.settings.clone(),
            median: Row::median(&runs),
            runs,
            commit: commit.to_owned(),
        }
    }
}

/// A finished bench, as kept on disk.
#[derive(Serialize)]
pub(crate) struct Report {
    pub(crate) bench: String,
    pub(crate) title: String,
    #[serde(flatten)]
    pub(crate) provenance: Provenance,
    pub(crate) cells: Vec<CellResult>,
}

impl Report {
    pub(crate) fn new(
        bench: &str,
        title: &str,
        provenance: Provenance,
        cells: Vec<CellResult>,
    ) -> Self {
        Self { bench: bench.to_owned(), title: title.to_owned(), provenance, cells }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_ignore_outliers() {
        assert_eq!(median(vec![9.0, 1.0, 1000.0]), 9.0);
        assert_eq!(median(vec![4.0, 2.0]), 3.0);
        assert!(median(Vec::new()).is_nan());
    }

    #[test]
    fn a_number_missing_in_some_runs_is_taken_from_the_others() {
        let rows = [
            Row::new().with("rate", 1.0, "Gbit/s").with("loss", 5.0, "%"),
            Row::new().with("rate", 3.0, "Gbit/s"),
        ];
        let median = Row::median(&rows);
        assert_eq!(median, Row::new().with("rate", 2.0, "Gbit/s").with("loss", 5.0, "%"));
    }

    #[test]
    fn rounds_that_are_no_figures_do_not_count_beside_others() {
        let late = || Row::new().with("rate", 9.0, "Gbit/s").note("INVALID: late");
        let result = |runs| CellResult::new(&Cell::new("c"), runs, "x");
        let fine = Row::new().with("rate", 2.0, "Gbit/s");
        assert_eq!(result(vec![late(), fine, late()]).typical("rate"), Some(2.0));
        assert_eq!(result(vec![late()]).typical("rate"), Some(9.0));
        assert_eq!(result(vec![late()]).typical("loss"), None);
    }

    #[test]
    fn a_cell_may_be_measured_more_often_than_others() {
        assert_eq!(Cell::new("c").twice().runs(3), 6);
        assert_eq!(Cell::new("c").once().runs(3), 1);
    }

    #[test]
    fn a_bar_is_met_or_missed() {
        assert!(Bar::AtLeast(95.0).is_met(95.0) && !Bar::AtLeast(95.0).is_met(94.9));
        assert!(Bar::AtMost(0.1).is_met(0.0) && !Bar::AtMost(0.1).is_met(f64::NAN));
    }

    #[test]
    fn notes_are_said_once() {
        let rows = [Row::new().note("a"), Row::new().note("b").note("a")];
        assert_eq!(Row::median(&rows).notes, ["a", "b"]);
    }

    #[test]
    fn settings_are_found_by_name() {
        let cell = Cell::new("a").with("rtt", "200ms").with("flows", 4);
        assert_eq!(
            (cell.setting("rtt"), cell.setting("flows"), cell.setting("x")),
            ("200ms", "4", "")
        );
    }
}
