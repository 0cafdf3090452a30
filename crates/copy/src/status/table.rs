//! What is printed of servers.

use super::{Answer, Line};
use anyhow::Result;
use hikyaku_units::DataSize;
use std::fmt::Write;

/// A JSON object a line.
pub(super) fn json(lines: &[Line]) -> Result<String> {
    let mut text = String::new();
    for line in lines {
        text += &serde_json::to_string(line)?;
        text.push('\n');
    }
    Ok(text)
}

/// A line for each server below a head, if there are any.
pub(super) fn table(lines: &[&Line]) -> String {
    if lines.is_empty() {
        return String::new();
    }
    let width = lines.iter().map(|line| line.server.len()).max().unwrap_or(0).max("SERVER".len());
    let mut text = format!(
        "{:width$}  {:3}  {:>10}  {:11}  {:>9}  {:>4}  {:>6}  {:>4}  {:>9}  {:>9}\n",
        "SERVER", "BY", "ROUND TRIP", "ACCESS", "LOAD", "CPU", "MEMORY", "DISK", "FREE", "OF"
    );
    for line in lines {
        // Writing to a text cannot fail.
        let _ = match (&line.answer, &line.error) {
            (Some(answer), _) => {
                let Answer { carrier, access, round_trip_ms, .. } = answer;
                writeln!(
                    text,
                    "{:width$}  {carrier:3}  {round_trip_ms:>7.1} ms  {access:11}  {:>9}  {:>4}  {:>6}  {:>4}  {:>9}  {:>9}",
                    line.server,
                    load(answer),
                    percent(answer.cpu_percent),
                    percent(answer.memory_percent()),
                    percent(answer.disk_busy_percent),
                    size(answer.free_bytes),
                    size(answer.total_bytes)
                )
            }
            (None, error) => {
                let error = error.as_deref().unwrap_or("no answer");
                writeln!(text, "{:width$}  -    {error}", line.server)
            }
        };
    }
    text
}

/// The same over what was drawn before, of so many lines.
pub(super) fn over(before: usize, text: &str) -> String {
    let mut drawn = match before {
        0 => String::new(),
        lines => format!("\x1b[{lines}A"),
    };
    for line in text.lines() {
        drawn += line;
        drawn += "\x1b[K\n";
    }
    drawn + "\x1b[J"
}

/// The load and, behind a slash, the processors that it is for.
fn load(answer: &Answer) -> String {
    match (answer.load, answer.processors) {
        (Some(load), Some(processors)) => format!("{load:.2}/{processors}"),
        (Some(load), None) => format!("{load:.2}"),
        (None, _) => "-".to_owned(),
    }
}

fn percent(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.0}%"))
}

fn size(bytes: Option<u64>) -> String {
    bytes.map_or_else(|| "-".to_owned(), |bytes| DataSize::from_bytes(bytes).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loads_of_servers_stand_below_their_heads() {
        let answer = Answer {
            carrier: "UDP",
            access: "read",
            round_trip_ms: 150.04,
            load: Some(1.5),
            processors: Some(16),
            cpu_percent: Some(97.4),
            memory_used_bytes: Some(1 << 30),
            memory_total_bytes: Some(4 << 30),
            disk_busy_percent: None,
            free_bytes: Some(5_000_000_000),
            total_bytes: None,
        };
        let line = |name: &str, answer| Line {
            server: name.to_owned(),
            time: 0.0,
            answer,
            error: Some("gone".to_owned()),
            code: hikyaku_console::ExitCode::MayPass,
        };
        let text = table(&[&line("node1.example:5209", Some(answer)), &line("b", None)]);
        let lines: Vec<&str> = text.lines().collect();
        let ends = |head: &str| lines[0].find(head).unwrap() + head.len();
        for (head, value) in [("LOAD", "1.50/16"), ("CPU", "97%"), ("MEMORY", "25%"), ("DISK", "-")]
        {
            assert!(lines[1][..ends(head)].ends_with(value), "{head}: {text}");
        }
        assert!(lines[1].ends_with("  5.00 GB          -"), "{text}");
        assert!(lines[2].ends_with("-    gone"), "{text}");
        assert_eq!(over(2, "a\nb\n"), "\x1b[2Aa\x1b[K\nb\x1b[K\n\x1b[J");
    }
}
