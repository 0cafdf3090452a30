//! Results as aligned text and as Markdown.

use crate::record::row::{Bar, CellResult, Measure, Row};

/// The numbers of a row in one line.
pub(crate) fn values(row: &Row) -> String {
    let one = |measure: &Measure| {
        let value = number(measure.value);
        let text = format!("{} {value} {}", measure.name, measure.unit).trim_end().to_owned();
        measure.bar.map_or_else(|| text.clone(), |bar| format!("{text}{}", judged(bar, measure)))
    };
    let measures = row.measures.iter().map(one);
    measures.chain(row.notes.iter().cloned()).collect::<Vec<_>>().join(", ")
}

/// How many bars are met, and each that is missed; nothing if there are none.
pub(crate) fn verdict(results: &[CellResult]) -> String {
    let mut missed = String::new();
    let mut met = 0;
    for result in results {
        for measure in &result.median.measures {
            match measure.verdict() {
                None => {}
                Some(true) => met += 1,
                Some(false) => {
                    let row = Row { measures: vec![measure.clone()], notes: Vec::new() };
                    missed.push_str(&format!("  {}: {}\n", result.cell, values(&row)));
                }
            }
        }
    }
    match (met, missed.lines().count()) {
        (0, 0) => String::new(),
        (met, count) => format!("\nbars: {met} met, {count} missed\n{missed}"),
    }
}

/// Columns aligned with spaces: text to the left, numbers to the right.
pub(crate) fn text(results: &[CellResult]) -> String {
    let grid = Grid::new(results);
    let widths = grid.widths();
    let mut text = String::new();
    for line in &grid.lines {
        let cells = line.iter().zip(&widths).enumerate().map(|(column, (cell, &width))| {
            if column < grid.words { format!("{cell:width$}") } else { format!("{cell:>width$}") }
        });
        text.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
        text.push('\n');
    }
    text
}

/// A Markdown table.
pub(crate) fn markdown(results: &[CellResult]) -> String {
    let grid = Grid::new(results);
    let mut text = String::new();
    for (index, line) in grid.lines.iter().enumerate() {
        text.push_str(&format!("| {} |\n", line.join(" | ")));
        if index == 0 {
            let rule = |column: usize| if column < grid.words { "---|" } else { "---:|" };
            text.push_str(&format!("|{}\n", (0..line.len()).map(rule).collect::<String>()));
        }
    }
    text
}

/// The bar, and whether it is met.
fn judged(bar: Bar, measure: &Measure) -> String {
    let sign = if bar.is_met(measure.value) { "met" } else { "MISSED" };
    match bar {
        Bar::AtLeast(bar) => format!(" (>= {}: {sign})", number(bar)),
        Bar::AtMost(bar) => format!(" (<= {}: {sign})", number(bar)),
    }
}

/// A head line and one line a cell. Columns are the settings and measures of all cells, in the
/// order in which they first appear.
struct Grid {
    lines: Vec<Vec<String>>,
    /// How many columns, from the left, hold words.
    words: usize,
}

impl Grid {
    fn new(results: &[CellResult]) -> Self {
        let mut settings: Vec<&str> = Vec::new();
        let mut measures: Vec<(&str, &str)> = Vec::new();
        for result in results {
            push_new(&mut settings, result.settings.iter().map(|(name, _)| name.as_str()));
            let columns = result.median.measures.iter();
            push_new(&mut measures, columns.map(|one| (one.name.as_str(), one.unit.as_str())));
        }
        let unit = |&(name, unit): &(&str, &str)| match unit {
            "" => name.to_owned(),
            unit => format!("{name} [{unit}]"),
        };
        let head = ["cell"].iter().chain(&settings).map(|name| (*name).to_owned());
        let mut lines = vec![head.chain(measures.iter().map(unit)).collect::<Vec<_>>()];
        let has_notes = results.iter().any(|result| !result.median.notes.is_empty());
        if has_notes {
            lines[0].push("notes".to_owned());
        }
        for result in results {
            let mut line = vec![result.cell.clone()];
            line.extend(settings.iter().map(|name| {
                let found = result.settings.iter().find(|(key, _)| key == name);
                found.map_or_else(|| "-".to_owned(), |(_, value)| value.clone())
            }));
            line.extend(measures.iter().map(|(name, unit)| {
                let mut all = result.median.measures.iter();
                let found = all.find(|one| one.name == *name && one.unit == *unit);
                found.map_or_else(
                    || "-".to_owned(),
                    |one| {
                        let judged = one.bar.map_or_else(String::new, |bar| judged(bar, one));
                        number(one.value) + &judged
                    },
                )
            }));
            if has_notes {
                line.push(result.median.notes.join("; "));
            }
            lines.push(line);
        }
        Self { lines, words: 1 + settings.len() }
    }

    fn widths(&self) -> Vec<usize> {
        let columns = self.lines.first().map_or(0, Vec::len);
        let width =
            |column: usize| self.lines.iter().map(|line| line[column].chars().count()).max();
        (0..columns).map(|column| width(column).unwrap_or(0)).collect()
    }
}

fn push_new<T: PartialEq>(known: &mut Vec<T>, more: impl Iterator<Item = T>) {
    for item in more {
        if !known.contains(&item) {
            known.push(item);
        }
    }
}

/// Three digits that count.
fn number(value: f64) -> String {
    match value.abs() {
        0.0 => "0".to_owned(),
        large if large >= 100.0 => format!("{value:.0}"),
        large if large >= 10.0 => format!("{value:.1}"),
        large if large >= 1.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::row::Cell;

    fn results() -> Vec<CellResult> {
        let one = Row::new().with("rate", 941.7, "Mbit/s");
        let two = Row::new().with("rate", 8.123, "Mbit/s").with("loss", 0.5, "");
        vec![
            CellResult::new(&Cell::new("a").with("rtt", "1ms"), vec![one], "x"),
            CellResult::new(&Cell::new("long").with("flows", 2), vec![two], "x"),
        ]
    }

    #[test]
    fn text_is_aligned() {
        let expected = "cell  rtt  flows  rate [Mbit/s]   loss\n\
                        a     1ms  -                942      -\n\
                        long  -    2               8.12  0.500\n";
        assert_eq!(text(&results()), expected);
    }

    #[test]
    fn markdown_has_a_rule() {
        let markdown = markdown(&results());
        let lines: Vec<&str> = markdown.lines().collect();
        assert_eq!(lines[1], "|---|---|---|---:|---:|");
        assert_eq!(lines[2], "| a | 1ms | - | 942 | - |");
    }

    #[test]
    fn bars_and_notes_are_shown() {
        let row = Row::new().held_to("share", 94.0, "%", Bar::AtLeast(95.0)).note("late");
        assert_eq!(values(&row), "share 94.0 % (>= 95.0: MISSED), late");
        let result = CellResult::new(&Cell::new("a"), vec![row], "x");
        assert!(text(&[result]).ends_with("a     94.0 (>= 95.0: MISSED)   late\n"));
    }

    #[test]
    fn a_row_reads_as_a_line() {
        assert_eq!(values(&results()[1].median), "rate 8.12 Mbit/s, loss 0.500");
    }
}
