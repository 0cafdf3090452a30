//! `cargo xtask red`: every test of an attack fails when what it is about is missing.
//!
//! A copy of the tree is weakened at one place after the other, and the test that must see it is run there. Nothing
//! of the working tree is touched.

mod files;
mod promises;
mod table;

use anyhow::{Context, Result, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};
use xtask::{own_files, workspace};

/// Options of `cargo xtask red`.
#[derive(clap::Args)]
pub(crate) struct RedArgs {
    /// Only those whose name or test contains this.
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
}

/// A place to be weakened, and the test that sees it.
struct Weakening {
    /// The threat, or the rule of the protocol.
    name: &'static str,
    file: &'static str,
    /// What stands there once, and what is put there in its place.
    from: &'static str,
    to: &'static str,
    package: &'static str,
    /// `--lib`, or `--test` and its name.
    target: &'static [&'static str],
    /// The test, or a part of its name.
    test: &'static str,
}

/// Seconds for a build from nothing, and for a test: a weak build may wait for what never comes.
const PATIENCE: &str = "300";
const LIMIT: Duration = Duration::from_secs(400);
/// What `timeout` says of a program that it has ended.
const TIMED_OUT: i32 = 124;

/// What came of one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Seen {
    Red,
    /// The test passed all the same.
    Green,
    /// It did not end, which is no pass either.
    Endless,
    NoBuild,
}

/// All that is weakened.
fn all() -> impl Iterator<Item = &'static Weakening> {
    table::WEAKENINGS.iter().chain(files::WEAKENINGS).chain(promises::WEAKENINGS)
}

/// Weakens one place after the other; fails if a test does not see it.
pub(crate) fn run(args: &RedArgs) -> Result<ExitCode> {
    let copy = Copy::make(&workspace())?;
    let mut missed = 0;
    let is_wanted = |one: &&Weakening| {
        args.only.as_ref().is_none_or(|text| one.name.contains(text) || one.test.contains(text))
    };
    for one in all().filter(is_wanted) {
        let begin = Instant::now();
        let seen = copy.weakened(one)?;
        let took = begin.elapsed().as_secs();
        println!("{:<8} {:<30} {} ({took} s)", format!("{seen:?}"), one.name, one.test);
        missed += u32::from(!matches!(seen, Seen::Red | Seen::Endless));
    }
    println!("{missed} not seen");
    Ok(ExitCode::from(u8::from(missed > 0)))
}

/// The tracked files, elsewhere, with a build of their own.
struct Copy(PathBuf);

impl Copy {
    fn make(root: &Path) -> Result<Self> {
        let folder = root.join("target/red");
        let copy = Self(folder.join("tree"));
        // What was left by a run that was ended.
        let _ = fs::remove_dir_all(&copy.0);
        for path in own_files(root)? {
            let target = copy.0.join(&path);
            fs::create_dir_all(target.parent().context("a file without a folder")?)?;
            // With times of now: what was built of a weak file in an earlier run must be built anew.
            fs::copy(root.join(&path), &target)?;
        }
        Ok(copy)
    }

    fn weakened(&self, one: &Weakening) -> Result<Seen> {
        let path = self.0.join(one.file);
        let sound = fs::read_to_string(&path)?;
        fs::write(&path, weaken(&sound, one)?)?;
        let seen = self.test(one);
        fs::write(&path, sound)?;
        seen
    }

    fn test(&self, one: &Weakening) -> Result<Seen> {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let command = |rest: &[&str]| {
            // What a test has started ends with it.
            let mut command = Command::new("timeout");
            command.args(["-k", "5", PATIENCE]).arg(&cargo);
            command.args(["test", "-p", one.package]).args(one.target).args(rest);
            command.current_dir(&self.0).env("CARGO_TARGET_DIR", self.0.with_file_name("target"));
            command
        };
        if !xtask::run(&mut command(&["--no-run"]), LIMIT)?.status.success() {
            return Ok(Seen::NoBuild);
        }
        let done = xtask::run(&mut command(&[one.test]), LIMIT)?;
        if done.status.code() == Some(TIMED_OUT) {
            return Ok(Seen::Endless);
        }
        let is_red = !done.status.success() && done.stdout.contains("test result: FAILED");
        Ok(if is_red { Seen::Red } else { Seen::Green })
    }
}

fn weaken(sound: &str, one: &Weakening) -> Result<String> {
    let count = sound.matches(one.from).count();
    ensure!(
        count == 1,
        "{}: what is to be weakened stands {count} times in {}",
        one.name,
        one.file
    );
    Ok(sound.replacen(one.from, one.to, 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// So that the table is mended with the code. A filter that no test has passes without a test.
    #[test]
    fn what_is_to_be_weakened_is_there_and_so_is_its_test() {
        let root = workspace();
        let files = own_files(&root).unwrap();
        let sources: Vec<(String, String)> = files
            .into_iter()
            .filter(|path| path.starts_with("crates/") && path.ends_with(".rs"))
            .map(|path| (path.clone(), fs::read_to_string(root.join(path)).unwrap()))
            .collect();
        let mut wrong = Vec::new();
        for one in all() {
            let sound = fs::read_to_string(root.join(one.file)).unwrap();
            match weaken(&sound, one) {
                Ok(weak) => assert_ne!(weak, sound, "{}", one.name),
                Err(error) => wrong.push(error.to_string()),
            }
            let folder = format!("crates/{}/", one.package.trim_start_matches("hikyaku-"));
            let module = format!("/{}.rs", one.test.replace("::", "/"));
            let has_test = |(path, text): &(String, String)| {
                let named = |line: &str| {
                    let rest = line.trim_start().strip_prefix("fn ");
                    rest.is_some_and(|rest| rest.contains(one.test))
                };
                path.starts_with(&folder) && (path.ends_with(&module) || text.lines().any(named))
            };
            if !sources.iter().any(has_test) {
                wrong.push(format!("{}: no test {}", one.name, one.test));
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }
}
