//! The licences of what others wrote and the program holds, as one text.

use super::parts::{Graph, Package, Use};
use anyhow::{Context, Result};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;

/// Beginnings of the names of files with licences, in lower case.
const BEGINNINGS: [&str; 5] = ["license", "licence", "copying", "notice", "unlicense"];

/// The text: each licence once, under the names of the crates that have it.
pub(super) fn text(graph: &Graph) -> Result<Vec<u8>> {
    let mut licences = BTreeMap::<String, Vec<String>>::new();
    let parts = graph.parts();
    let linked = parts.iter().filter(|(part, used)| *used == Use::Linked && part.is_foreign());
    for (part, _) in linked {
        let name = format!("{} {}", part.name, part.version);
        for text in files(part).with_context(|| format!("cannot read the licence of {name}"))? {
            let names = licences.entry(text).or_default();
            if !names.contains(&name) {
                names.push(name.clone());
            }
        }
    }
    let mut all = "hikyaku holds the following software of others.\n".to_owned();
    for (licence, names) in &licences {
        let _ = write!(all, "\n{}\n{}\n\n{}\n", "=".repeat(80), names.join(", "), licence.trim());
    }
    Ok(all.into_bytes())
}

/// The licences in the crate's directory, or what its manifest says.
fn files(part: &Package) -> Result<Vec<String>> {
    let mut texts = Vec::new();
    for entry in fs::read_dir(part.folder())? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().to_lowercase();
        let is_licence = BEGINNINGS.iter().any(|beginning| name.starts_with(beginning));
        if is_licence && entry.file_type()?.is_file() {
            texts.push(String::from_utf8_lossy(&fs::read(entry.path())?).into_owned());
        }
    }
    if texts.is_empty() {
        texts.push(format!("Licence: {}", part.license.as_deref().unwrap_or("not stated")));
    }
    Ok(texts)
}
