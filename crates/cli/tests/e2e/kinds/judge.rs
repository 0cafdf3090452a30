//! Compares the result and messages of a run with the rule.

use super::case::{Case, Source, Target};
use super::oracle::{Fate, Kind, Options, Way, fate};
use super::tree::{Ground, Node, NodeKind, Seen, content};
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::ffi::OsStrExt;

/// Whether the copy is real or a dry run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Run {
    /// `-n`
    Dry,
    Real,
}

/// The messages of a run.
pub(crate) struct Said {
    pub(crate) is_success: bool,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// The expectations for a whole tree.
#[derive(Default)]
pub(crate) struct Expected<'a> {
    /// Names that are written, as listed by `-n`.
    written: BTreeMap<String, &'a Case>,
    /// Names of directories that exist afterwards.
    merged: BTreeSet<String>,
    /// Names of the cases for which a failure is reported.
    refused: BTreeSet<String>,
    /// Unreadable entries below a refused directory: the sender may already have reported them.
    unreadable: BTreeSet<String>,
    /// Number of entries below refused directories: they are counted in the messages, but not
    /// named.
    untold: usize,
    /// All cases, by name.
    cases: BTreeMap<String, &'a Case>,
}

impl<'a> Expected<'a> {
    pub(crate) fn new(cases: &'a [Case], options: Options) -> Self {
        let mut all = Self::default();
        all.index(cases);
        all.add(cases, "", options);
        all
    }

    fn index(&mut self, cases: &'a [Case]) {
        for case in cases {
            self.cases.insert(case.name.clone(), case);
            self.index(&case.children);
        }
    }

    fn add(&mut self, cases: &'a [Case], prefix: &str, options: Options) {
        for case in cases {
            let path = format!("{prefix}{}", case.name);
            match fate(Kind::of(case.source, options.links), case.target, options) {
                Fate::Written => drop(self.written.insert(path, case)),
                Fate::Merged => {
                    self.add(&case.children, &format!("{path}/"), options);
                    self.merged.insert(path);
                }
                Fate::Stays => {}
                Fate::Refused => {
                    self.refused.insert(case.name.clone());
                    self.add_beneath_refused(case, options);
                }
            }
        }
    }

    fn add_beneath_refused(&mut self, dir: &'a Case, options: Options) {
        if Kind::of(dir.source, options.links) != Kind::Dir {
            return;
        }
        for case in &dir.children {
            match Kind::of(case.source, options.links) {
                Kind::Nothing => drop(self.unreadable.insert(case.name.clone())),
                Kind::File | Kind::Link | Kind::Dir => self.untold += 1,
            }
            self.add_beneath_refused(case, options);
        }
    }
}

/// A deviation from the rule.
pub(crate) struct Departure {
    /// Description, the same for all deviations of a kind.
    pub(crate) what: String,
    /// An example of where it was found.
    pub(crate) example: String,
}

/// Finds deviations of a run from the rule.
pub(crate) struct Judge<'a> {
    pub(crate) ground: &'a Ground,
    pub(crate) options: Options,
    pub(crate) expected: &'a Expected<'a>,
    pub(crate) run: Run,
    pub(crate) departures: Vec<Departure>,
}

impl Judge<'_> {
    /// Records the deviation `what` of the entry at `path`, which may be any text that ends in the
    /// name of a case.
    fn say(&mut self, path: &str, what: &str) {
        let case = last_name(path).and_then(|name| self.expected.cases.get(name));
        let shape = case.map_or(String::new(), |case| {
            let child = if path.matches('q').count() > 1 { ", in a directory" } else { "" };
            format!("{:?} over {:?}{child}: ", case.source, case.target)
        });
        let mut arguments = self.options.arguments();
        if self.run == Run::Dry {
            arguments.push("-n");
        }
        let (what, example) = (format!("{shape}{what}"), arguments.join(" "));
        self.departures.push(Departure { what, example: format!("{path}, cp {example}") });
    }

    pub(crate) fn judge(&mut self, before: &Seen, after: &Seen, said: &Said) {
        match self.run {
            Run::Dry => self.is_as_listed(said),
            Run::Real => self.is_written(before, after),
        }
        self.is_otherwise_unchanged(before, after);
        self.is_said_once(said);
        if said.is_success != self.expected.refused.is_empty() {
            let (success, failures) = (said.is_success, self.expected.refused.len());
            self.say("", &format!("success is {success}, with {failures} failures"));
        }
    }

    /// Checks that `-n` lists exactly what the real run writes, each name once.
    fn is_as_listed(&mut self, said: &Said) {
        let mut listed = BTreeSet::new();
        for line in said.stdout.lines() {
            if !listed.insert(line) {
                self.say(line, "is listed twice");
            }
            if !self.expected.written.contains_key(line) {
                self.say(line, "is listed, and is not written");
            }
        }
        let missing = self.expected.written.keys().filter(|path| !listed.contains(path.as_str()));
        for path in missing {
            self.say(path, "is not listed, and is written");
        }
    }

    fn is_written(&mut self, before: &Seen, after: &Seen) {
        for (path, case) in &self.expected.written {
            let name = format!("d/{path}");
            let Some(node) = after.get(&name) else {
                self.say(path, "was not made");
                continue;
            };
            if node.kind != self.wanted(case) {
                self.say(path, "is not as the source");
            }
            let is_same = before.get(&name).is_some_and(|old| old.inode == node.inode);
            let is_old_file = matches!(case.target, Target::File(..));
            let is_file = Kind::of(case.source, self.options.links) == Kind::File;
            let in_place = is_old_file && is_file && self.options.way == Way::InPlace;
            // An inode number may be reused after a file is removed, so only equality is
            // conclusive.
            if in_place && !is_same {
                self.say(path, "was not written in place");
            }
        }
        for path in &self.expected.merged {
            if after.get(&format!("d/{path}")).map(|node| &node.kind) != Some(&NodeKind::Dir) {
                self.say(path, "is no directory");
            }
        }
    }

    fn wanted(&self, case: &Case) -> NodeKind {
        match (Kind::of(case.source, self.options.links), case.source) {
            (Kind::File, Source::File(size) | Source::LinkToFile(size)) => {
                NodeKind::File(content(case.seed, size))
            }
            _ => NodeKind::Link(self.ground.link_text(case).as_os_str().as_bytes().to_vec()),
        }
    }

    /// Checks that nothing else was created, changed or removed, and that a dry run changes
    /// nothing.
    fn is_otherwise_unchanged(&mut self, before: &Seen, after: &Seen) {
        let expected = self.expected;
        let may_differ = |name: &str| {
            let path = name.strip_prefix("d/").unwrap_or_default();
            let is_named = expected.written.contains_key(path) || expected.merged.contains(path);
            self.run == Run::Real && is_named
        };
        let stays = |(name, old): (&String, &Node)| {
            let new = after.get(name);
            let is_fine = may_differ(name) || new.is_some_and(|new| new.is_as(old));
            let what = if new.is_some() { "was changed" } else { "is gone" };
            (!is_fine).then(|| (name.clone(), what))
        };
        let mut wrong: Vec<(String, &str)> = before.iter().filter_map(stays).collect();
        let new = after.keys().filter(|name| !before.contains_key(*name) && !may_differ(name));
        wrong.extend(new.map(|name| (name.clone(), "was made")));
        wrong.into_iter().for_each(|(name, what)| self.say(&name, what));
    }

    /// Checks that each failure is reported once, by a line whose last name is that of the case.
    fn is_said_once(&mut self, said: &Said) {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        let mut untold = 0;
        for line in said.stderr.lines() {
            match (last_name(line), untold_count(line)) {
                (Some(name), _) => *counts.entry(name).or_default() += 1,
                (None, Some(count)) => untold += count,
                (None, None) => self.say("", &format!("says: {line}")),
            }
        }
        if untold != self.expected.untold {
            let wanted = self.expected.untold;
            self.say("", &format!("counts {untold} failures beneath others, and {wanted} are"));
        }
        for (name, count) in &counts {
            match count {
                1 if self.expected.unreadable.contains(*name) => {}
                _ if !self.expected.refused.contains(*name) => {
                    self.say(name, "has no failure, and one is told");
                }
                1 => {}
                _ => self.say(name, "has a failure that is told several times"),
            }
        }
        let untold = |name: &&String| !counts.contains_key(name.as_str());
        for name in self.expected.refused.iter().filter(untold) {
            self.say(name, "has a failure that is not told");
        }
    }
}

/// Number of failures that a line counts without naming them.
fn untold_count(line: &str) -> Option<usize> {
    let (count, rest) = line.strip_prefix("hikyaku: ")?.split_once(' ')?;
    rest.starts_with("more could not be copied").then(|| count.parse().ok())?
}

/// The last name of a case in a line.
fn last_name(line: &str) -> Option<&str> {
    line.split(|c: char| !c.is_ascii_alphanumeric()).rfind(|word| {
        let digits = word.strip_prefix('e').and_then(|word| word.strip_suffix('q'));
        digits.is_some_and(|digits| digits.parse::<u64>().is_ok())
    })
}
