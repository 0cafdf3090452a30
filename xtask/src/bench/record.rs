//! What is measured: cells, rows, and the records kept of them.

use super::host::Provenance;
use serde::{Deserialize, Serialize};

/// A point at which a bench measures, with its settings in the order of the table's columns.
#[derive(Clone, Debug)]
pub(super) struct Cell {
    id: String,
    settings: Vec<(String, String)>,
}

impl Cell {
    /// A cell without settings. The id becomes a file name.
    pub(super) fn new(id: impl Into<String>) -> Self {
        Self { id: id.into(), settings: Vec::new() }
    }

    /// Adds a setting.
    pub(super) fn with(mut self, name: &str, value: impl ToString) -> Self {
        self.settings.push((name.to_owned(), value.to_string()));
        self
    }

    /// The name of the cell.
    pub(super) fn id(&self) -> &str {
        &self.id
    }

    /// The value of a setting; empty if the cell has none of that name.
    pub(super) fn setting(&self, name: &str) -> &str {
        self.settings.iter().find(|(key, _)| key == name).map_or("", |(_, value)| value)
    }
}

/// One number.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(super) struct Measure {
    pub(super) name: String,
    pub(super) value: f64,
    pub(super) unit: String,
}

/// The numbers of one run of one cell, in the order of the table's columns.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct Row {
    pub(super) measures: Vec<Measure>,
}

impl Row {
    /// A row without numbers.
    pub(super) fn new() -> Self {
        Self::default()
    }

    /// Adds a number.
    pub(super) fn with(mut self, name: &str, value: f64, unit: &str) -> Self {
        self.measures.push(Measure { name: name.to_owned(), value, unit: unit.to_owned() });
        self
    }

    /// The median of every number of the first row over all rows that have it.
    pub(super) fn median(rows: &[Self]) -> Self {
        let Some(first) = rows.first() else { return Self::new() };
        let measures = first.measures.iter().map(|measure| {
            let all = rows.iter().flat_map(|row| &row.measures);
            let same = all.filter(|other| other.name == measure.name);
            Measure { value: median(same.map(|other| other.value).collect()), ..measure.clone() }
        });
        Self { measures: measures.collect() }
    }
}

/// The middle value; of an even number of values, the mean of the two in the middle.
fn median(mut values: Vec<f64>) -> f64 {
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
pub(super) struct CellResult {
    pub(super) cell: String,
    pub(super) settings: Vec<(String, String)>,
    pub(super) median: Row,
    pub(super) runs: Vec<Row>,
    pub(super) commit: String,
}

impl CellResult {
    pub(super) fn new(cell: Cell, runs: Vec<Row>, commit: &str) -> Self {
        Self {
            cell: cell.id,
            settings: cell.settings,
            median: Row::median(&runs),
            runs,
            commit: commit.to_owned(),
        }
    }
}

/// A finished bench, as kept on disk.
#[derive(Serialize)]
pub(super) struct Report {
    pub(super) bench: String,
    pub(super) title: String,
    #[serde(flatten)]
    pub(super) provenance: Provenance,
    pub(super) cells: Vec<CellResult>,
}

impl Report {
    pub(super) fn new(
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
    fn settings_are_found_by_name() {
        let cell = Cell::new("a").with("rtt", "200ms").with("flows", 4);
        assert_eq!(
            (cell.setting("rtt"), cell.setting("flows"), cell.setting("x")),
            ("200ms", "4", "")
        );
    }
}
