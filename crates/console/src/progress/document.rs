//! The document of a command that moves files: the figures of its last event, and lists of its other events.
//!
//! A process has one standard output and prints one document on it, so all boards of a command gather in one place.

use super::event::{Event, Figures};
use crate::form::Document;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// Events that a document lists, and the keys of their lists.
const LISTS: [(&str, &str); 6] = [
    ("failure", "failures"),
    ("would", "would"),
    ("entry", "entries"),
    ("change", "changes"),
    ("deletion", "deletions"),
    ("skipped", "skipped"),
];

/// The lists of the document of this process.
pub(super) static OF_PROCESS: Gathered = Gathered::new();

/// The gathered events: lists by their keys.
#[derive(Debug)]
pub(super) struct Gathered(Mutex<Lists>);

type Lists = BTreeMap<&'static str, Vec<Value>>;

/// The content of a document.
#[derive(Serialize)]
struct Summary<'a> {
    #[serde(flatten)]
    figures: Figures<'a>,
    exit_code: u8,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a str>,
    #[serde(flatten)]
    lists: Lists,
}

impl Gathered {
    pub(super) const fn new() -> Self {
        Self(Mutex::new(BTreeMap::new()))
    }

    /// Adds an event, if the document lists its kind. A list of paths has nothing but the paths.
    pub(super) fn add(&self, event: impl Serialize) {
        let Ok(Value::Object(mut event)) = serde_json::to_value(event) else { return };
        let kind = event.remove("event");
        let list = LISTS.iter().find(|(name, _)| kind.as_ref().is_some_and(|kind| kind == name));
        let Some((_, list)) = list else { return };
        let item = match event.remove("path") {
            Some(path) if event.is_empty() => path,
            Some(path) => {
                event.insert("path".to_owned(), path);
                event.into()
            }
            None => event.into(),
        };
        self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(list).or_default().push(item);
    }

    /// The document of a command with this last event.
    pub(super) fn document(&self, end: Event<'_>) -> Option<String> {
        let Event::End { figures, exit_code, error } = end else { return None };
        let lists = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        Some(Document::new(Summary { figures: figures.bare(), exit_code, error, lists }).line())
    }
}
