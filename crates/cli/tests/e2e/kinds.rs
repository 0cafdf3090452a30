//! Tests every kind of source with everything that may exist under its name in the target, and with
//! every relevant option. One rule predicts the result, and the dry run has to predict it too.
//!
//! One tree contains many cases, so that a few hundred runs of the program cover tens of thousands
//! of cases. `HK_SEED` sets the seed of the trees.

mod case;
mod judge;
mod oracle;
mod tree;

use case::{Age, Length, Size, Source, Target};
use case::{Case, Maker};
use judge::{Departure, Expected, Judge, Run, Said};
use oracle::{Fate, Kind, Links, Options, fate};
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use tree::Ground;

/// Number of cases at the root of a tree.
const CASES_PER_TREE: usize = 150;
/// Number of random trees in the long run.
const RANDOM_TREES: u64 = 6;
/// Largest number of kinds of deviations to print.
const DEVIATIONS_SHOWN_MAX: usize = 100;

/// Every source with every target.
#[test]
fn entries_of_a_tree_are_copied_according_to_the_rule() {
    let cases = Maker::new(seed()).product();
    let mut runs = Runs::new("kinds");
    for options in Options::all() {
        runs.copy(&cases, options);
    }
    runs.finish(4_000);
}

/// A tree without any refused entry ends with success.
#[test]
fn a_tree_without_failures_is_a_success() {
    let mut runs = Runs::new("kinds-fine");
    for options in Options::all() {
        let all = Maker::new(seed()).product();
        let fine: Vec<Case> = all.into_iter().filter(|case| is_fine(case, options)).collect();
        runs.copy(&fine, options);
    }
    runs.finish(1_500);
}

/// A target named by the user may be a symbolic link, which stands for the file behind it.
#[test]
fn a_named_file_is_copied_according_to_the_rule() {
    let mut maker = Maker::new(seed());
    let ages = [Age::Older, Age::Same, Age::Newer];
    let files = ages.iter().map(|age| Target::File(*age, Length::Other));
    let links = ages.iter().map(|age| Target::LinkToFile(*age));
    let targets: Vec<Target> = [Target::Absent].into_iter().chain(files).chain(links).collect();
    let mut runs = Runs::new("kinds-named");
    for options in Options::all().into_iter().filter(|options| options.links == Links::Kept) {
        for target in &targets {
            runs.copy_one(&maker.one(Source::File(Size::Small), *target), options);
        }
    }
    runs.finish(80);
}

#[test]
#[ignore = "takes minutes: cargo test -p hikyaku-cli --test e2e -- --ignored kinds"]
fn twenty_thousand_entries_are_copied_according_to_the_rule() {
    let mut runs = Runs::new("kinds-long");
    for tree in 0..RANDOM_TREES {
        let mut maker = Maker::new(seed() + tree);
        let cases = maker.any(CASES_PER_TREE);
        for options in Options::all() {
            runs.copy(&cases, options);
        }
    }
    runs.finish(20_000);
}

fn seed() -> u64 {
    std::env::var("HK_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(1)
}

fn is_fine(case: &Case, options: Options) -> bool {
    match fate(Kind::of(case.source, options.links), case.target, options) {
        Fate::Refused => false,
        Fate::Merged => case.children.iter().all(|child| is_fine(child, options)),
        Fate::Written | Fate::Stays => true,
    }
}

/// Runs of the program, and the deviations found.
struct Runs {
    scratch: PathBuf,
    cases: usize,
    departures: Vec<Departure>,
}

impl Runs {
    fn new(name: &str) -> Self {
        let scratch = crate::common::scratch(name);
        Self { scratch, cases: 0, departures: Vec::new() }
    }

    /// Makes a dry run and a real copy.
    fn copy(&mut self, cases: &[Case], options: Options) {
        let ground = Ground::new(self.scratch.clone());
        ground.make(cases);
        let expected = Expected::new(cases, options);
        for run in [Run::Dry, Run::Real] {
            let before = ground.see();
            let said = cp(&ground, options, run, [&ground.at("s/."), &ground.at("d")]);
            let after = ground.see();
            let expected = &expected;
            let departures = Vec::new();
            let mut judge = Judge { ground: &ground, options, expected, run, departures };
            judge.judge(&before, &after, &said);
            self.departures.append(&mut judge.departures);
            self.cases += cases.iter().map(Case::count).sum::<usize>();
        }
    }

    /// The same for a single file with a named target.
    fn copy_one(&mut self, case: &Case, options: Options) {
        let ground = Ground::new(self.scratch.clone());
        ground.make(std::slice::from_ref(case));
        let (source, target) = (ground.at("s").join(&case.name), ground.at("d").join(&case.name));
        let is_written = fate(Kind::File, case.target, options) == Fate::Written;
        for run in [Run::Dry, Run::Real] {
            let before = ground.see();
            let said = cp(&ground, options, run, [&source, &target]);
            let after = ground.see();
            let wrong = match run {
                _ if !said.is_success || !said.stderr.is_empty() => Some("failed"),
                Run::Dry if before != after => Some("changed something"),
                Run::Dry if said.stdout.is_empty() == is_written => Some("listed the wrong thing"),
                Run::Dry => None,
                Run::Real if !is_written && before != after => Some("changed what stays"),
                Run::Real if !is_written => None,
                Run::Real if fs::read(&target).unwrap() != fs::read(&source).unwrap() => {
                    Some("did not write it")
                }
                Run::Real => {
                    let is_link = matches!(case.target, Target::LinkToFile(_));
                    (target.is_symlink() != is_link).then_some("replaced the link")
                }
            };
            let what = |wrong| format!("a file named over {:?}, {run:?}: {wrong}", case.target);
            let example = options.arguments().join(" ");
            self.departures.extend(wrong.map(|wrong| Departure { what: what(wrong), example }));
            self.cases += 1;
        }
    }

    fn finish(&self, at_least: usize) {
        println!("{} cases, seed {}", self.cases, seed());
        assert!(self.cases >= at_least, "{} cases are too few", self.cases);
        let mut kinds: BTreeMap<&str, (usize, &str)> = BTreeMap::new();
        for Departure { what, example } in &self.departures {
            kinds.entry(what).or_insert((0, example)).0 += 1;
        }
        let line = |(what, (count, example)): (&&str, &(usize, &str))| {
            format!("{count} times: {what} (say {example})\n")
        };
        let shown: String = kinds.iter().take(DEVIATIONS_SHOWN_MAX).map(line).collect();
        let (all, kinds) = (self.departures.len(), kinds.len());
        assert!(all == 0, "{all} departures from the rule, of {kinds} kinds:\n{shown}");
    }
}

fn cp(ground: &Ground, options: Options, run: Run, paths: [&PathBuf; 2]) -> Said {
    let program =
        std::env::var_os("HK_BIN").unwrap_or_else(|| env!("CARGO_BIN_EXE_hikyaku").into());
    let mut command = Command::new(program);
    command.arg("cp").args(options.arguments()).arg("--no-fsync");
    match run {
        Run::Dry => drop(command.arg("-n")),
        Run::Real => {}
    }
    command.args(paths).env("XDG_STATE_HOME", ground.at("state"));
    let output = command.stdin(Stdio::null()).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let is_success = output.status.success();
    Said { is_success, stdout: text(&output.stdout), stderr: text(&output.stderr) }
}
