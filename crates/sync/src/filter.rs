//! Which names take part: rules with the meaning of rsync(1), "FILTER RULES". The first rule that matches decides; a name
//! that none matches takes part. A directory that is left out is not entered.

mod wild;

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use wild::Wild;

/// What a rule does with names that match.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Action {
    /// They are copied (`+`, `show`).
    Include,
    /// They are not copied (`-`, `hide`).
    Exclude,
}

/// At which side a rule has a meaning.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Sides {
    /// At both: what is left out is neither copied nor deleted.
    Both,
    /// At the source only (`hide`, `show`).
    Source,
    /// At the target only: what matches is not deleted, or may be (`protect`, `risk`).
    Target,
}

/// A rule.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Rule {
    action: Action,
    sides: Sides,
    pattern: Pattern,
}

/// A pattern of paths below the root of the transfer.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Pattern {
    wild: Wild,
    place: PatternPlace,
    /// Matches directories only.
    kind: PatternKind,
}

/// Where in a path a pattern must match.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum PatternPlace {
    /// The whole path: it began with a slash.
    Root,
    /// The whole path with a slash before it: the pattern began with `**`.
    Whole,
    /// The last names of the path, as many as the pattern has.
    End,
    /// The last name.
    Name,
}

/// What a pattern matches by kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum PatternKind {
    /// Anything.
    Any,
    /// Directories: it ended with a slash.
    Dir,
    /// A directory and all below it: it ended with `/***`.
    Tree,
}

/// All rules, in their order.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Rules(Vec<Rule>);

/// Why there are no rules.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum BadRule {
    /// What is wrong with a rule, for the user.
    Text(String),
    /// A file of rules cannot be read.
    File {
        /// The file.
        path: PathBuf,
        /// The cause.
        cause: String,
    },
}

impl Rules {
    /// Whether there are none.
    pub(crate) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds the pattern of `--exclude`, or a rule in it: rsync takes `+ PATTERN` and `- PATTERN` there too.
    pub(crate) fn exclude(&mut self, text: &str) -> Result<(), BadRule> {
        self.pattern(text, Action::Exclude)
    }

    /// Adds the pattern of `--include`.
    pub(crate) fn include(&mut self, text: &str) -> Result<(), BadRule> {
        self.pattern(text, Action::Include)
    }

    fn pattern(&mut self, text: &str, action: Action) -> Result<(), BadRule> {
        let (action, text) = match text.split_at_checked(2) {
            Some(("+ ", rest)) => (Action::Include, rest),
            Some(("- ", rest)) => (Action::Exclude, rest),
            _ if text == "!" => {
                self.0.clear();
                return Ok(());
            }
            _ => (action, text),
        };
        self.add(action, Sides::Both, text)
    }

    fn add(&mut self, action: Action, sides: Sides, text: &str) -> Result<(), BadRule> {
        let pattern = Pattern::new(text)?;
        self.0.push(Rule { action, sides, pattern });
        Ok(())
    }

    /// Adds the rule of `--filter`.
    pub(crate) fn filter(&mut self, text: &str) -> Result<(), BadRule> {
        let unknown = || {
            let rules = "rules are '+ PATTERN', '- PATTERN', 'H', 'S', 'P', 'R', '. FILE' and '!'";
            BadRule::Text(format!("'{text}' is no filter rule; {rules}"))
        };
        if matches!(text, "!" | "clear") {
            self.0.clear();
            return Ok(());
        }
        let (verb, pattern) = text.split_once([' ', '_']).ok_or_else(unknown)?;
        let (action, sides) = match verb {
            "+" | "include" => (Action::Include, Sides::Both),
            "-" | "exclude" => (Action::Exclude, Sides::Both),
            "H" | "hide" => (Action::Exclude, Sides::Source),
            "S" | "show" => (Action::Include, Sides::Source),
            "P" | "protect" => (Action::Exclude, Sides::Target),
            "R" | "risk" => (Action::Include, Sides::Target),
            "." | "merge" => return self.merge(Path::new(pattern)),
            ":" | "dir-merge" => {
                let remedy = "try: --exclude-from with one file of rules";
                return Err(BadRule::Text(format!(
                    "'{text}': files of rules in each directory are not read; {remedy}"
                )));
            }
            _ => return Err(unknown()),
        };
        self.add(action, sides, pattern)
    }

    /// Adds the rules of a file, a line each. Empty lines, and lines that begin with `#` or `;`, are none.
    pub(crate) fn merge(&mut self, path: &Path) -> Result<(), BadRule> {
        self.lines(path, Self::filter)
    }

    /// Adds the patterns of the file of `--exclude-from`.
    pub(crate) fn exclude_from(&mut self, path: &Path) -> Result<(), BadRule> {
        self.lines(path, Self::exclude)
    }

    /// Adds the patterns of the file of `--include-from`.
    pub(crate) fn include_from(&mut self, path: &Path) -> Result<(), BadRule> {
        self.lines(path, Self::include)
    }

    fn lines(
        &mut self,
        path: &Path,
        add: fn(&mut Self, &str) -> Result<(), BadRule>,
    ) -> Result<(), BadRule> {
        let read = hikyaku_fs::read_list(path).and_then(|bytes| {
            String::from_utf8(bytes).map_err(|error| io::Error::new(ErrorKind::InvalidData, error))
        });
        let text = read.map_err(|error| BadRule::File {
            path: path.to_owned(),
            cause: hikyaku_fs::words(&error),
        })?;
        let is_rule = |line: &&str| !line.is_empty() && !line.starts_with(['#', ';']);
        text.lines().filter(is_rule).try_for_each(|line| add(self, line))
    }

    /// Whether a path of the source is copied. All directories above it are.
    pub(crate) fn copies(&self, path: &[u8], is_dir: bool) -> bool {
        self.decide(path, is_dir, |sides| sides != Sides::Target)
    }

    /// Whether a path of the target may be deleted.
    pub(crate) fn may_delete(&self, path: &[u8], is_dir: bool) -> bool {
        self.decide(path, is_dir, |sides| sides != Sides::Source)
    }

    /// The same where what is left out at both sides is deleted, too (`--delete-excluded`): only rules about the target
    /// protect.
    pub(crate) fn may_delete_excluded(&self, path: &[u8], is_dir: bool) -> bool {
        self.decide(path, is_dir, |sides| sides == Sides::Target)
    }

    fn decide(&self, path: &[u8], is_dir: bool, counts: fn(Sides) -> bool) -> bool {
        let mut rules = self.0.iter().filter(|rule| counts(rule.sides));
        let first = rules.find(|rule| rule.pattern.matches(path, is_dir));
        first.is_none_or(|rule| rule.action == Action::Include)
    }
}

impl Pattern {
    fn new(text: &str) -> Result<Self, BadRule> {
        let (rest, kind) = match text.strip_suffix('/') {
            _ if text.ends_with("/***") => (text, PatternKind::Tree),
            Some(rest) => (rest, PatternKind::Dir),
            None => (text, PatternKind::Any),
        };
        let (rest, place) = match rest.strip_prefix('/') {
            Some(rest) => (rest, PatternPlace::Root),
            None if rest.starts_with("**") => (rest, PatternPlace::Whole),
            None if rest.contains('/') || rest.contains("**") => (rest, PatternPlace::End),
            None => (rest, PatternPlace::Name),
        };
        if matches!(rest, "" | "***") {
            return Err(BadRule::Text(format!("'{text}' is no pattern")));
        }
        Ok(Self { wild: Wild::new(rest.as_bytes()), place, kind })
    }

    fn matches(&self, path: &[u8], is_dir: bool) -> bool {
        match self.kind {
            PatternKind::Any => self.fits(path),
            PatternKind::Dir => is_dir && self.fits(path),
            // The slash behind the directory is one of the pattern.
            PatternKind::Tree if is_dir => self.fits(&[path, b"/"].concat()),
            PatternKind::Tree => self.fits(path),
        }
    }

    fn fits(&self, path: &[u8]) -> bool {
        let name = path.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
        match self.place {
            PatternPlace::Root => self.wild.matches(path),
            PatternPlace::Name => self.wild.matches(name),
            PatternPlace::Whole => self.wild.matches(&[b"/", path].concat()),
            PatternPlace::End => {
                let begins = path.iter().enumerate().filter(|&(_, &byte)| byte == b'/');
                let mut ends = begins.map(|(at, _)| &path[at + 1..]);
                self.wild.matches(path) || ends.any(|end| self.wild.matches(end))
            }
        }
    }
}

#[cfg(test)]
mod tests;
