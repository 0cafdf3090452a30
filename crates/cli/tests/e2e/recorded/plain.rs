//! The output of a run without numbers, addresses, times and keys of machines, which differ from run to run.

use super::Begin;
use serde_json::Value;
use std::process::Output;

/// Keys of events that depend on the time that a run took.
const BY_TIME: [&str; 3] = ["bits_per_second", "limited_by", "lost_percent"];
/// Units behind numbers. Which of them is taken depends on the number.
const UNITS: [&str; 17] = [
    "bytes", "B", "kB", "MB", "GB", "KiB", "MiB", "GiB", "B/s", "kB/s", "MB/s", "GB/s", "kbit/s",
    "Mbit/s", "Gbit/s", "ms", "s",
];
/// The start or a part of lines that depend on the machine, or on ssh.
const OF_MACHINE: [&str; 3] =
    ["hikyaku: sysctl ", "Warning: Permanently added", " is new, its key is "];
/// Words about the bytes that an interrupted run has left. Their number depends on the time of the kill.
const OF_PROGRESS: [&str; 3] = ["already", "continu", "resum"];

pub(super) fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Adds events, other output, and messages.
pub(super) fn add(text: &mut String, output: &Output, names: &[(&str, &str)], begin: Begin) {
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    let (mut events, mut printed_lines) = (Vec::new(), Vec::new());
    for line in printed.lines() {
        match serde_json::from_str::<Value>(line) {
            Ok(value) if value.get("event").is_some() => events.extend(event(&value)),
            Ok(value) if value.get("format").is_some() => events.extend(document(&value)),
            _ => printed_lines.push(plain(line, names)),
        }
    }
    // A walk names the entries of a directory in the order of the file system, and a batch its lines in order.
    if !printed_lines.iter().any(|line| line.starts_with("sftp> ")) {
        printed_lines.sort();
    }
    printed_lines.iter().for_each(|line| *text += &format!("out {line}\n"));
    // Several workers report in any order, and cut a file into more or fewer chunks.
    events.sort();
    events.dedup();
    // The kill leaves more or fewer of them.
    events.retain(|event| !matches!(begin, Begin::Killed(_)) || !event.starts_with("chunk: "));
    events.iter().for_each(|event| *text += &format!("json {event}\n"));
    let said = stderr(output);
    let is_own = |line: &&str| !OF_MACHINE.iter().any(|words| line.contains(words));
    let is_steady = |line: &&str| {
        !matches!(begin, Begin::Killed(_)) || !OF_PROGRESS.iter().any(|words| line.contains(words))
    };
    let lines = said.lines().filter(is_own).filter(is_steady);
    let mut lines: Vec<String> = lines.map(|line| plain(line, names)).collect();
    // The lines of failures come in any order; a line with a remedy stays behind its failure.
    if lines.iter().filter(|line| !line.starts_with("try: ")).count() > 1
        && !lines.iter().any(|line| line.starts_with("try: "))
    {
        lines.sort();
    }
    lines.iter().for_each(|line| *text += &format!("err {line}\n"));
}

/// The kind of an event with its keys; `None` for progress, since a quick run has none.
fn event(value: &Value) -> Option<String> {
    let object = value.as_object()?;
    let kind = object.get("event")?.as_str()?;
    if kind == "progress" {
        return None;
    }
    let keys =
        object.keys().map(String::as_str).filter(|key| !BY_TIME.contains(key) && *key != "event");
    let shown = |key: &str| match (kind, key, &object[key]) {
        ("end", "exit_code" | "files" | "total_files", number) => format!("{key}={number}"),
        ("failure", "kind", Value::String(kind)) => format!("{key}={kind}"),
        _ => key.to_owned(),
    };
    let keys: Vec<String> = keys.map(shown).collect();
    Some(format!("{kind}: {}", keys.join(" ")))
}

/// The keys of a document.
fn document(value: &Value) -> Option<String> {
    let keys = value.as_object()?.keys().map(String::as_str).filter(|key| !BY_TIME.contains(key));
    let shown = |key: &str| match (key, &value[key]) {
        ("exit_code" | "files" | "total_files", number) => format!("{key}={number}"),
        (key, Value::Array(list)) => format!("{key}[{}]", list.len()),
        _ => key.to_owned(),
    };
    Some(format!("document: {}", keys.map(shown).collect::<Vec<_>>().join(" ")))
}

/// A line with `$NAME` for each known name and `#` for each number with its unit.
fn plain(line: &str, names: &[(&str, &str)]) -> String {
    let mut line = line.to_owned();
    for (name, shown) in names {
        line = line.replace(name, shown);
    }
    let words: Vec<String> = line.split(' ').map(without_numbers).collect();
    let mut kept: Vec<&str> = Vec::new();
    for word in &words {
        let bare = word.trim_end_matches([',', ';', '.', ')', ':']);
        match kept.last_mut() {
            Some(last) if last.ends_with('#') && UNITS.contains(&bare) => {}
            _ => kept.push(word),
        }
    }
    kept.join(" ").trim_end().to_owned()
}

/// A word with `#` for each number. Numbers with points, commas and colons are one: times, addresses, versions.
fn without_numbers(word: &str) -> String {
    if word.contains(".hikyaku") && word.contains('/') {
        return "$PARTIAL".to_owned();
    }
    let mut plain = String::new();
    let mut rest = word;
    while let Some(at) = rest.find(|letter: char| letter.is_ascii_digit()) {
        let (before, number) = rest.split_at(at);
        let is_inside = |letter: char| letter.is_ascii_digit() || ".,:".contains(letter);
        let end = number.find(|letter| !is_inside(letter)).unwrap_or(number.len());
        let end = number[..end].trim_end_matches(['.', ',', ':']).len();
        plain += before;
        plain.push('#');
        rest = &number[end..];
    }
    plain + rest
}

#[test]
fn numbers_are_removed_with_their_units() {
    let names = [("/tmp/x", "$ROOT")];
    for (line, wanted) in [
        ("/tmp/x/f: 3.0 MB in 0.2 s, 5 files", "$ROOT/f: # in # # files"),
        ("hikyaku://127.0.0.1:5209/f: at 12%", "hikyaku://#/f: at #%"),
        ("t/d/b and ends.", "t/d/b and ends."),
    ] {
        assert_eq!(plain(line, &names), wanted);
    }
}
