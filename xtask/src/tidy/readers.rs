//! Whatever reads words of a peer is fuzzed.
//!
//! A function that makes something of bytes or text says by which target, `// fuzz: packets`, or why not:
//! `// fuzz: none, the user's own words`. A new reader without such a line is noticed by its name and by
//! what it takes.

use super::Finding;
use crate::source::Source;

#[cfg(test)]
mod tests;

/// Crates that hear from peers, and ssh.
const CRATES: &[&str] = &[
    "wire",
    "proto",
    "crypto",
    "net",
    "transfer",
    "fs",
    "copy",
    "job",
    "pair",
    "perf",
    "forward",
    "proxy",
    "gfarm",
    "gridftp",
    "guc",
    "http",
    "image-source",
    "sftp",
    "stores",
    "web-get",
];
/// What readers are called, alone or before an underline.
const NAMES: &[&str] =
    &["decode", "parse", "from_str", "read", "split", "judge", "check", "admits", "frame"];
/// What they take.
const TAKES: &[&str] = &["&[u8]", "&str", "Reader<", "BufRead", "&OsStr"];
/// Where the targets are.
const TARGETS: &str = "fuzz/fuzz_targets/";

/// Each reader names its target, and each target is named.
pub(super) fn check(sources: &[Source]) -> Vec<Finding> {
    let target = |source: &Source| {
        let name = source.path.strip_prefix(TARGETS)?.strip_suffix(".rs")?;
        Some(name.to_owned())
    };
    let targets: Vec<String> = sources.iter().filter_map(target).collect();
    let mut findings = Vec::new();
    let mut named = Vec::new();
    let is_heard =
        |source: &&Source| source.crate_name().is_some_and(|name| CRATES.contains(&name));
    for source in sources.iter().filter(is_heard) {
        for (line, name, citation) in readers(source) {
            let error = |text: String| Finding::error(&source.path, line, text);
            let Some(citation) = citation else {
                let text =
                    "reads what may be a peer's: say `// fuzz: ` and a target, or `none, ` and why";
                findings.push(error(format!("{name} {text}")));
                continue;
            };
            let is_known = targets.contains(&citation) || citation.strip_prefix("none, ").is_some();
            if !is_known {
                findings.push(error(format!("{TARGETS}{citation}.rs is not there")));
            }
            named.push(citation);
        }
    }
    for target in targets.iter().filter(|target| !named.contains(target)) {
        let path = format!("{TARGETS}{target}.rs");
        findings.push(Finding::error(&path, 1, "no reader names this target"));
    }
    findings
}

/// Finds the functions of a source file that decode input. For each: line, name, and the text of its `// fuzz:` comment,
/// if it has one.
fn readers(source: &Source) -> Vec<(usize, String, Option<String>)> {
    let is_code = |at: &usize| !source.is_test(*at);
    source.find_word("fn").filter(is_code).filter_map(|at| reader(source, at)).collect()
}

fn reader(source: &Source, at: usize) -> Option<(usize, String, Option<String>)> {
    let rest = source.code[at + 2..].trim_start();
    let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_')?;
    let (name, signature) = rest.split_at(end);
    let signature = &signature[..signature.find(['{', ';']).unwrap_or(signature.len())];
    let arguments = signature.split("->").next().unwrap_or_default();
    let is_called_so = |reader: &&str| {
        name.strip_prefix(*reader).is_some_and(|rest| rest.is_empty() || rest.starts_with('_'))
    };
    let is_reader =
        NAMES.iter().any(is_called_so) && TAKES.iter().any(|takes| arguments.contains(takes));
    let line = source.line_of(at);
    let citation = citation_above(source, line);
    (is_reader || citation.is_some()).then(|| (line, name.to_owned(), citation))
}

/// What the comments directly above a line say.
fn citation_above(source: &Source, line: usize) -> Option<String> {
    let lines: Vec<&str> = source.text.lines().take(line - 1).collect();
    let is_above =
        |text: &&&str| text.trim_start().starts_with("//") || text.trim_start().starts_with('#');
    let above = lines.iter().rev().take_while(is_above);
    above.filter_map(|text| text.trim_start().strip_prefix("// fuzz: ")).map(str::to_owned).next()
}
