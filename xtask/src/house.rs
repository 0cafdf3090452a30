//! `cargo xtask house`: how often the product does one job in several places.
//!
//! Each count finds its places by what they call, not by what they are called, so that moving or renaming a file changes
//! nothing. Tidy compares the counts with those in `house/counts.txt`, which may only fall.

mod code;
mod engines;
mod flags;
mod journals;
mod sessions;
#[cfg(test)]
mod tests;
mod walks;
mod writes;

use crate::source::Source;
use anyhow::Result;
use code::Code;
use std::collections::{BTreeMap, BTreeSet};
use std::process::ExitCode;

/// The list of what is allowed, as `cargo xtask tidy --lower` writes it.
pub(crate) const LIST: &str = "xtask/src/house/counts.txt";
/// The lines of code that the product should have at most. Features need room, so tidy does not compare them.
const CODE_LINES_GOAL: usize = 111_000;

/// Options of `cargo xtask house`.
#[derive(clap::Args)]
pub(crate) struct HouseArgs {
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// A place where a job is done.
pub(crate) struct Place {
    /// An engine's modules, a struct's name; empty for a file.
    name: String,
    files: Vec<String>,
}

impl Place {
    fn file(path: &str) -> Self {
        Self { name: String::new(), files: vec![path.to_owned()] }
    }
}

/// A job, the number of places that should do it, and those that do.
pub(crate) struct Count {
    job: &'static str,
    goal: usize,
    places: Vec<Place>,
}

/// The crates that each crate depends on, by their folder names.
pub(crate) type Uses<'a> = BTreeMap<&'a str, Vec<&'a str>>;

/// Counts the places of each job.
pub(crate) fn counts(sources: &[Source], uses: &Uses<'_>) -> Vec<Count> {
    let all: Vec<Code<'_>> = sources.iter().filter_map(Code::of).collect();
    let walks = walks::walks(&all);
    let engines = engines::engines(&all, &walks);
    let crate_of = |engine: &Place| engine.name.split('/').next().unwrap_or_default().to_owned();
    let crates: BTreeSet<String> = engines.iter().map(crate_of).collect();
    let crates: BTreeSet<&str> = crates.iter().map(String::as_str).collect();
    let journals = journals::journals(&all, &crates, uses);
    let count = |job, goal, places| Count { job, goal, places };
    vec![
        count("engines", 2, engines),
        count("walks", 2, walks),
        count("journals", 1, journals),
        count("session-set-ups", 1, sessions::set_ups(&all)),
        count("back-offs", 1, sessions::back_offs(&all)),
        count("ssh-flag-sets", 1, flags::sets(&all)),
        count("file-replacements", 4, writes::replacements(&all)),
    ]
}

/// Lines of the product with code on them: neither blank nor comment nor test.
pub(crate) fn code_lines(sources: &[Source]) -> usize {
    let product = sources.iter().filter(|source| source.crate_name().is_some());
    let lines = |code: String| code.lines().filter(|line| !line.trim().is_empty()).count();
    product.map(|source| lines(source.product_code())).sum()
}

/// No job is done in more places than the list allows.
pub(crate) fn growths(list: &str, counts: &[Count]) -> Vec<String> {
    let allowed = read(list);
    let growth = |count: &Count| {
        let (number, job) = (count.places.len(), count.job);
        let allowed = allowed.get(job).copied().unwrap_or(0);
        (number > allowed).then(|| {
            format!("{number} {job}, {allowed} allowed (cargo xtask house prints their files)")
        })
    };
    counts.iter().filter_map(growth).collect()
}

/// The list as it should be: lower where a job is done in fewer places, never higher.
pub(crate) fn lowered(list: &str, counts: &[Count]) -> String {
    let allowed = read(list);
    let row = |count: &Count| {
        let number = count.places.len();
        let number = allowed.get(count.job).map_or(number, |allowed| number.min(*allowed));
        format!("{} {number}\n", count.job)
    };
    let rows: String = counts.iter().map(row).collect();
    format!("# job, places that do it\n{rows}")
}

fn read(list: &str) -> BTreeMap<&str, usize> {
    let row = |line: &'_ str| -> Option<(usize, usize)> {
        let at = line.find(' ')?;
        Some((at, line[at + 1..].trim().parse().ok()?))
    };
    let rows = list.lines().filter(|line| !line.starts_with('#'));
    rows.filter_map(|line| row(line).map(|(at, number)| (&line[..at], number))).collect()
}

/// Prints the counts.
pub(crate) fn run(args: &HouseArgs) -> Result<ExitCode> {
    let (counts, lines) = crate::tidy::house()?;
    if args.json {
        let places = |count: &Count| -> Vec<_> {
            let place =
                |place: &Place| serde_json::json!({ "name": place.name, "files": place.files });
            count.places.iter().map(place).collect()
        };
        let row = |count: &Count| {
            serde_json::json!({
                "job": count.job, "count": count.places.len(), "goal": count.goal, "places": places(count),
            })
        };
        let rows: Vec<_> = counts.iter().map(row).collect();
        let lines = serde_json::json!({ "count": lines, "goal": CODE_LINES_GOAL });
        println!("{}", serde_json::json!({ "counts": rows, "code_lines": lines }));
        return Ok(ExitCode::SUCCESS);
    }
    for count in &counts {
        println!("{:<18}{:>8}   goal {}", count.job, count.places.len(), count.goal);
        for place in &count.places {
            match (place.name.as_str(), place.files.as_slice()) {
                ("", files) => files.iter().for_each(|file| println!("    {file}")),
                (name, [file]) => println!("    {file}: {name}"),
                (name, files) => {
                    println!("    {name}");
                    files.iter().for_each(|file| println!("        {file}"));
                }
            }
        }
    }
    println!("{:<18}{lines:>8}   goal {CODE_LINES_GOAL}", "code lines");
    Ok(ExitCode::SUCCESS)
}
