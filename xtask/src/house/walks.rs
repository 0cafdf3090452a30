//! Walks: files that list a directory and then the directories found in it.
//!
//! A file lists if it calls a system's or a server's listing, or a function of its crate that does. It repeats that for
//! what it found if a function that lists calls itself, also through others of the file; if directories wait in a list that
//! is filled and emptied; or if a listing's result is its next argument.

use super::Place;
use super::code::{Code, Function, last_word, word_at};
use crate::source::find_word;
use std::collections::{BTreeMap, BTreeSet};

/// Calls that list one directory.
const LISTINGS: &[&str] = &["read_dir(", "Dir::read_from(", "RawDir::new(", ".names()?"];
const PUSHES: &[&str] = &["push", "push_back", "push_front", "extend", "insert", "append"];
const POPS: &[&str] =
    &["pop", "pop_front", "pop_back", "pop_first", "pop_last", "drain", "split_off"];
const TAKES: &[&str] = &["take(&mut ", "swap(&mut ", "replace(&mut "];

/// Every file with a walk.
pub(super) fn walks(all: &[Code<'_>]) -> Vec<Place> {
    let mut listing: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for code in all {
        let names = code.functions().into_iter().filter(|function| lists(function.body));
        listing.entry(code.crate_name).or_default().extend(names.map(|function| function.name));
    }
    let is_walk = |code: &&Code<'_>| walk(code, &listing[code.crate_name]);
    all.iter().filter(is_walk).map(|code| Place::file(code.path)).collect()
}

/// Whether the code lists a directory itself.
fn lists(body: &str) -> bool {
    let by_request = |call: &str, is_listing: &dyn Fn(&str) -> bool| {
        find_word(body, call).any(|at| {
            last_word(&body[..at]) != "self" && is_listing(body[at + call.len()..].trim_start())
        })
    };
    LISTINGS.iter().any(|call| find_word(body, call).next().is_some())
        || by_request(".entries(", &|arguments| arguments.starts_with('&'))
        || by_request(".list(", &|arguments| !arguments.starts_with(')'))
}

fn walk(code: &Code<'_>, listing: &BTreeSet<&str>) -> bool {
    let functions = code.functions();
    let mut count: BTreeMap<&str, usize> = BTreeMap::new();
    functions.iter().for_each(|function| *count.entry(function.name).or_default() += 1);
    // Functions of one name belong to several types: which of them is called is not known.
    let names: BTreeSet<&str> =
        count.iter().filter(|(_, count)| **count == 1).map(|(name, _)| *name).collect();
    let imported: BTreeSet<&str> = code.imported().intersection(listing).copied().collect();
    let calls: BTreeMap<&str, BTreeSet<&str>> =
        functions.iter().map(|function| (function.name, function.own_calls(&names))).collect();
    let direct: BTreeSet<&str> = functions
        .iter()
        .filter(|function| lists(function.body) || function.calls_any_of(&imported))
        .map(|function| function.name)
        .collect();
    let reached = |name: &str| reached(name, &calls);
    let reaches = |name: &str| {
        direct.contains(name) || reached(name).iter().any(|other| direct.contains(other))
    };
    if direct.is_empty() {
        return false;
    }
    let recurses = |name: &&str| reaches(name) && reached(name).contains(*name);
    let is_user = |list: &str| {
        let uses = |function: &&Function<'_>| find_word(function.body, list).next().is_some();
        functions.iter().filter(uses).any(|function| reaches(function.name))
    };
    let steps = |function: &Function<'_>| direct.iter().any(|name| is_step(function.body, name));
    names.iter().any(recurses)
        || lists_of_work(&code.text).into_iter().any(is_user)
        || functions.iter().any(steps)
}

/// The functions that `name` calls, also through others.
fn reached<'a>(name: &str, calls: &BTreeMap<&'a str, BTreeSet<&'a str>>) -> BTreeSet<&'a str> {
    let mut seen = BTreeSet::new();
    let mut open: Vec<&str> = calls.get(name).into_iter().flatten().copied().collect();
    while let Some(next) = open.pop() {
        if seen.insert(next) {
            open.extend(calls.get(next).into_iter().flatten());
        }
    }
    seen
}

/// Names of lists that are filled as well as emptied.
fn lists_of_work(text: &str) -> BTreeSet<&str> {
    let on = |methods: &[&str]| -> BTreeSet<&str> {
        let calls = methods.iter().flat_map(|method| {
            let call = format!(".{method}(");
            let receiver = |at: usize| last_word(text[..at].trim_end());
            find_word(text, &call).map(receiver).collect::<Vec<_>>()
        });
        calls.filter(|name| !name.is_empty()).collect()
    };
    let taken = TAKES.iter().flat_map(|take| {
        let name = |at: usize| {
            let at = at + take.len();
            let after_self = text[at..].strip_prefix("self.").map_or(at, |_| at + "self.".len());
            word_at(text, after_self)
        };
        find_word(text, take).map(name).collect::<Vec<_>>()
    });
    let emptied: BTreeSet<&str> = on(POPS).into_iter().chain(taken).collect();
    on(PUSHES).intersection(&emptied).copied().collect()
}

/// Whether the body has `x = name(.., &x, ..)`: what a listing returned is listed next.
fn is_step(body: &str, name: &str) -> bool {
    find_word(body, &format!("{name}(")).any(|at| {
        let Some(before) = body[..at].trim_end().strip_suffix('=') else { return false };
        let list = last_word(before.trim_end());
        let end = body[at..].find(';').map_or(body.len(), |end| at + end);
        !list.is_empty() && body[at..end].contains(&format!("&{list}"))
    })
}
