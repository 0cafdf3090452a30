//! The form of what a command prints on standard output: words for people, or JSON for programs. Every verb has these
//! options from here.

use crate::progress::Audience;
use clap::Args;
use serde::Serialize;

/// The form of what is printed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Form {
    /// Words for people.
    #[default]
    Words,
    /// One JSON document.
    Document,
    /// A JSON object a line.
    Lines,
}

/// Options of a command that prints a document or lines.
#[derive(Clone, Copy, Debug, Default, Args)]
pub struct FormArgs {
    /// Print one JSON document
    #[arg(long, conflicts_with = "json_lines")]
    json: bool,
    /// Print events as they happen, a JSON object a line
    #[arg(long)]
    json_lines: bool,
}

/// The option of a command that prints a document.
#[derive(Clone, Copy, Debug, Default, Args)]
pub struct DocumentArgs {
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

impl FormArgs {
    /// The form that the user wants.
    pub const fn form(&self) -> Form {
        match (self.json, self.json_lines) {
            (true, _) => Form::Document,
            (_, true) => Form::Lines,
            _ => Form::Words,
        }
    }
}

impl DocumentArgs {
    /// The form that the user wants.
    pub const fn form(&self) -> Form {
        if self.json { Form::Document } else { Form::Words }
    }
}

impl Form {
    /// The reader of the progress, which is `words` if people read it.
    pub const fn audience(self, words: Audience) -> Audience {
        match self {
            Self::Words => words,
            Self::Document => Audience::Document,
            Self::Lines => Audience::Events,
        }
    }
}

/// The number of the format of all documents. It grows when a key changes its meaning or is removed.
const FORMAT: u32 = 1;

/// One JSON document: the number of its format, and then the keys of its content.
#[derive(Clone, Debug, Serialize)]
pub struct Document<T> {
    format: u32,
    #[serde(flatten)]
    content: T,
}

impl<T: Serialize> Document<T> {
    /// The document with this content, whose keys are texts.
    pub const fn new(content: T) -> Self {
        Self { format: FORMAT, content }
    }

    /// As it is printed.
    pub fn line(&self) -> String {
        // Nothing in it can fail to be written.
        serde_json::to_string(self).unwrap_or_default() + "\n"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_begins_with_its_format() {
        #[derive(Serialize)]
        struct Content {
            b: u8,
            a: &'static str,
        }
        assert_eq!(
            Document::new(Content { b: 1, a: "x" }).line(),
            "{\"format\":1,\"b\":1,\"a\":\"x\"}\n"
        );
    }
}
