//! The house rules that a program can check. Each rule is one file: a table and a pure function.

mod budgets;
mod changelog;
mod citations;
mod exits;
mod floors;
mod heads;
mod ids;
mod markdown;
mod marks;
mod messages;
mod orphans;
mod pages;
mod purity;
mod readers;
mod references;
mod size;
#[cfg(test)]
mod tests;
mod translations;
mod unsafety;
mod words;
mod workflows;

use crate::house;
use crate::source::Source;
use anyhow::{Context, Result};
use std::fmt;
use std::fs;
use std::path::Path;
use std::process::ExitCode;
use xtask::{own_files, workspace};

/// Options of `cargo xtask tidy`.
#[derive(clap::Args)]
pub(crate) struct TidyArgs {
    /// Show the warnings too, not only their number.
    #[arg(short, long)]
    verbose: bool,
    #[command(flatten)]
    task: Task,
}

/// What to do in place of a check.
#[derive(clap::Args)]
#[group(multiple = false)]
struct Task {
    /// Write lower numbers into the lists of marked comment lines, of long pages, and of places that do one job.
    #[arg(long)]
    lower: bool,
    /// Print the marked comment lines of a crate.
    #[arg(long, value_name = "CRATE")]
    marks: Option<String>,
    /// Mark each section of README.ja.md as a translation of today's English text.
    #[arg(long)]
    translated: bool,
}

/// Runs all rules over the tree and prints what they found.
pub(crate) fn run(args: &TidyArgs) -> Result<ExitCode> {
    let tree = Tree::read(&workspace())?;
    match &args.task {
        Task { lower: true, .. } => return lower(&tree),
        Task { marks: Some(name), .. } => {
            marks::list_of(name, &tree.sources).iter().for_each(|line| println!("{line}"));
            return Ok(ExitCode::SUCCESS);
        }
        Task { translated: true, .. } => return translated(&tree),
        Task { .. } => {}
    }
    let findings = check(&tree);
    let (errors, warnings): (Vec<_>, Vec<_>) =
        findings.iter().partition(|finding| finding.weight == Weight::Error);
    if args.verbose {
        warnings.iter().for_each(|warning| println!("warning: {warning}"));
    }
    errors.iter().for_each(|error| println!("error: {error}"));
    println!("tidy: {} errors, {} warnings", errors.len(), warnings.len());
    Ok(if errors.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Writes the lists that may only fall.
fn lower(tree: &Tree) -> Result<ExitCode> {
    let list = |path: &str| tree.document(path).map_or("", |file| file.text.as_str());
    for (path, text) in [
        (marks::LIST, marks::lowered(list(marks::LIST), &tree.sources)),
        (pages::LIST, pages::lowered(list(pages::LIST), &tree.files)),
        (house::LIST, house::lowered(list(house::LIST), &tree.house())),
    ] {
        fs::write(Path::new(&tree.root).join(path), text).with_context(|| path.to_owned())?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The counts of the house, and the lines of code.
pub(crate) fn house() -> Result<(Vec<house::Count>, usize)> {
    let tree = Tree::read(&workspace())?;
    Ok((tree.house(), house::code_lines(&tree.sources)))
}

/// Writes the marks of the Japanese README, or prints what it lacks.
fn translated(tree: &Tree) -> Result<ExitCode> {
    let text = |path: &str| {
        tree.document(path).map(|file| file.text.as_str()).with_context(|| format!("no {path}"))
    };
    match translations::marked(text(translations::ORIGINAL)?, text(translations::TRANSLATION)?) {
        Ok(text) => {
            fs::write(Path::new(&tree.root).join(translations::TRANSLATION), text)?;
            Ok(ExitCode::SUCCESS)
        }
        Err(differences) => {
            differences.iter().for_each(|finding| println!("error: {finding}"));
            Ok(ExitCode::FAILURE)
        }
    }
}

/// What the rules look at.
struct Tree {
    /// Every file, for the rules about words and documents. Binary files are left out.
    files: Vec<TextFile>,
    /// Every Rust file, with comments, strings and test code told apart.
    sources: Vec<Source>,
    /// The workspace's packages and what they depend on.
    packages: Vec<floors::Package>,
    /// Where the tree stands: a path that no file may contain.
    root: String,
    /// The version of all packages, and the oldest Rust that compiles them.
    version: String,
    minimum_rust: String,
}

/// A file and its text.
struct TextFile {
    path: String,
    text: String,
}

impl Tree {
    fn read(root: &Path) -> Result<Self> {
        let mut files = Vec::new();
        for path in own_files(root)? {
            let bytes = fs::read(root.join(&path)).with_context(|| path.clone())?;
            if let Ok(text) = String::from_utf8(bytes) {
                files.push(TextFile { path, text });
            }
        }
        let sources = files
            .iter()
            .filter(|file| file.path.ends_with(".rs"))
            .map(|file| Source::new(&file.path, &file.text))
            .collect();
        let packages = floors::packages(root)?;
        let manifest: toml::Table = fs::read_to_string(root.join("Cargo.toml"))?.parse()?;
        let shared = manifest.get("workspace").and_then(|table| table.get("package"));
        let field = |name: &str| {
            let value = shared.and_then(|table| table.get(name)?.as_str());
            value.map(str::to_owned).with_context(|| format!("no {name} in Cargo.toml"))
        };
        let (version, minimum_rust) = (field("version")?, field("rust-version")?);
        let root = root.to_string_lossy().into_owned();
        Ok(Self { files, sources, packages, root, version, minimum_rust })
    }

    fn house(&self) -> Vec<house::Count> {
        house::counts(&self.sources, &floors::uses(&self.packages))
    }

    fn document(&self, path: &str) -> Option<&TextFile> {
        self.files.iter().find(|file| file.path == path)
    }
}

fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = floors::check(&tree.packages);
    findings.extend(purity::check(&tree.sources));
    findings.extend(exits::check(&tree.sources));
    findings.extend(messages::check(&tree.sources));
    findings.extend(unsafety::check(&tree.sources));
    findings.extend(readers::check(&tree.sources));
    findings.extend(heads::check(&tree.sources));
    findings.extend(size::check(&tree.sources, size::EXCEPTIONS));
    findings.extend(words::check(&tree.files, &tree.root));
    findings.extend(ids::check(&tree.files));
    findings.extend(orphans::check(&tree.files));
    findings.extend(references::check(&tree.files, &tree.sources));
    findings.extend(workflows::check(&tree.files, &tree.minimum_rust));
    let mut with = |path: &str, rule: &dyn Fn(&TextFile) -> Vec<Finding>| match tree.document(path)
    {
        Some(document) => findings.extend(rule(document)),
        None => findings.push(Finding::error(path, 1, "does not exist")),
    };
    with(budgets::DOCUMENT, &|document| budgets::check(document, &tree.sources));
    with(changelog::DOCUMENT, &|document| changelog::check(document, &tree.version));
    with(marks::LIST, &|list| marks::check(list, &tree.sources));
    with(pages::LIST, &|list| pages::check(list, &tree.files));
    with(house::LIST, &|list| {
        let error = |text| Finding::error(house::LIST, 1, text);
        house::growths(&list.text, &tree.house()).into_iter().map(error).collect()
    });
    with(translations::TRANSLATION, &|translation| {
        let original = tree.document(translations::ORIGINAL);
        original.map_or_else(Vec::new, |original| translations::check(original, translation))
    });
    let documents: Vec<_> =
        citations::DOCUMENTS.iter().filter_map(|path| tree.document(path)).collect();
    findings.extend(citations::check(&documents, &tree.sources, citations::EXCEPTIONS));
    findings
}

/// Something that is not as the house wants it.
#[derive(Debug)]
struct Finding {
    weight: Weight,
    path: String,
    line: usize,
    text: String,
}

/// Whether a finding fails the check.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Weight {
    Error,
    Warning,
}

impl Finding {
    fn error(path: &str, line: usize, text: impl Into<String>) -> Self {
        Self { weight: Weight::Error, path: path.to_owned(), line, text: text.into() }
    }

    fn warning(path: &str, line: usize, text: impl Into<String>) -> Self {
        Self { weight: Weight::Warning, ..Self::error(path, line, text) }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.line, self.text)
    }
}
