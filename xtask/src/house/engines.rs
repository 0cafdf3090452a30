//! Engines: code that moves files, because it moves bytes at offsets and gives the result its final name.
//!
//! A module below the root of a crate is an engine by itself if it also walks trees. All other modules of a crate together
//! are at most one engine. So a crate with two complete engines counts twice, and one whose downloads and uploads share
//! their parts counts once. A crate that defines drafts is a storage: its engines are its callers.

use super::Place;
use super::code::Code;
use std::collections::{BTreeMap, BTreeSet};

/// Calls that read or write bytes at an offset of a file.
const MOVES: &[&str] = &[
    ".read_at(",
    ".read_exact_at(",
    "pread(",
    ".write_at(",
    ".write_all_at(",
    "pwrite(",
    "Request::Read",
    "Request::Write",
];
/// What follows `.name(` where a draft gets its final name.
const NAMING: &[&str] = &["Replace::", "Naming::"];
/// Requests that give a file at a server its final name.
const RENAMES: &[&str] = &["Request::PosixRename", ".rename_each("];
/// Requests and calls that make a file under its final name.
const CREATES: &[&str] = &["Request::Open", ".create(true)"];
/// Definitions of what a draft is.
const STORAGE: &[&str] =
    &["struct Draft", "trait Draft", "impl Draft for", "impl store::Draft for"];
/// Crates that give names and are no engines, each for this reason.
const EXEMPT: &[(&str, &str)] = &[
    ("remote", "its server carries out single requests of a client, which has the engine"),
    ("sftp", "it sends single requests for its callers, which have the engines"),
];

/// The files of each engine that move bytes or give names.
pub(super) fn engines(all: &[Code<'_>], walks: &[Place]) -> Vec<Place> {
    let storages: BTreeSet<&str> =
        all.iter().filter(|code| code.has_any(STORAGE)).map(|code| code.crate_name).collect();
    let is_exempt =
        |name: &str| storages.contains(name) || EXEMPT.iter().any(|(exempt, _)| *exempt == name);
    let mut crates: BTreeMap<&str, Vec<&Code<'_>>> = BTreeMap::new();
    for code in all.iter().filter(|code| !is_exempt(code.crate_name)) {
        crates.entry(code.crate_name).or_default().push(code);
    }
    let mut engines = Vec::new();
    for (name, files) in crates {
        let mut modules: BTreeMap<&str, Vec<&Code<'_>>> = BTreeMap::new();
        for code in files {
            modules.entry(code.module()).or_default().push(code);
        }
        let is_whole = |files: &Vec<&Code<'_>>| {
            let walked = |code: &&Code<'_>| walks.iter().any(|walk| walk.files == [code.path]);
            let named = |code: &&Code<'_>| names(code) || code.has_any(CREATES);
            files.iter().any(|code| moves(code))
                && files.iter().any(named)
                && files.iter().any(walked)
        };
        let (whole, rest): (Vec<_>, Vec<_>) =
            modules.into_iter().partition(|(_, files)| is_whole(files));
        engines
            .extend(whole.iter().map(|(module, files)| place(format!("{name}/{module}"), files)));
        let rest: Vec<&Code<'_>> = rest.into_iter().flat_map(|(_, files)| files).collect();
        if rest.iter().any(|code| moves(code)) && rest.iter().any(|code| names(code)) {
            engines.push(place(name.to_owned(), &rest));
        }
    }
    engines
}

fn moves(code: &Code<'_>) -> bool {
    code.has_any(MOVES)
}

fn names(code: &Code<'_>) -> bool {
    code.has_call_with(".name(", NAMING) || code.has_any(RENAMES)
}

fn place(name: String, files: &[&Code<'_>]) -> Place {
    let speaking = files.iter().filter(|code| moves(code) || names(code));
    Place { name, files: speaking.map(|code| code.path.to_owned()).collect() }
}
