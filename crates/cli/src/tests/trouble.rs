//! A reader searches docs/trouble.md for the message on the screen: each message in its tables is one of the program.

use std::fs;
use std::path::{Path, PathBuf};

/// Words that stand for a part that differs from error to error.
const PLACEHOLDERS: [&str; 4] = ["HOST", "PROCESSOR", "A", "B"];

#[test]
fn each_message_on_the_page_about_trouble_is_in_the_source() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let sources = sources(&root.join("crates"));
    let page = fs::read_to_string(root.join("docs/trouble.md")).unwrap();
    let messages = page.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next());
    let messages: Vec<&str> = messages.collect();
    assert!(messages.len() >= 8, "the tables have only {messages:?}");
    let missing = messages.iter().flat_map(|message| {
        let parts = parts(message).into_iter();
        parts.filter(|part| !sources.contains(part)).map(move |part| format!("{message}: {part}"))
    });
    let missing: Vec<String> = missing.collect();
    assert!(missing.is_empty(), "not in crates/*/src:\n{}", missing.join("\n"));
}

/// The constant parts of a message.
fn parts(message: &str) -> Vec<String> {
    let words: Vec<&str> = message.split(' ').collect();
    let parts = words
        .split(|word| PLACEHOLDERS.contains(&word.trim_end_matches([',', ':'])))
        .map(|words| words.join(" "));
    parts.filter(|part| !part.is_empty()).collect()
}

/// The text of all source files, in which a text of several lines is one line.
fn sources(crates: &Path) -> String {
    let mut text = String::new();
    let mut open: Vec<PathBuf> = fs::read_dir(crates)
        .unwrap()
        .map(|entry| entry.unwrap().path().join("src"))
        .filter(|path| path.is_dir())
        .collect();
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                for line in fs::read_to_string(path).unwrap().lines() {
                    match line.trim_end().strip_suffix('\\') {
                        Some(begin) => text.push_str(begin.trim_start()),
                        None => {
                            text.push_str(line.trim_start());
                            text.push('\n');
                        }
                    }
                }
            }
        }
    }
    text
}
