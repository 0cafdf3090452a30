//! The rule: the result for an entry, derived from its kind, from what exists in the target, and
//! from the options.
//!
//! It follows the behaviour of scp, cp and rsync and the description in `docs/copy.md`,
//! independently of the program.

use super::case::{Age, Source, Target};

/// What happens to existing entries.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Existing {
    Replaced,
    /// `--update`
    KeptIfNewer,
    /// `--ignore-existing`
    Kept,
}

/// How symbolic links of the source are treated.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Links {
    /// `-r`
    Followed,
    /// `-a`
    Kept,
}

/// How an existing file is replaced.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Way {
    Renamed,
    /// `--inplace`
    InPlace,
}

/// The relevant options.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Options {
    pub(crate) existing: Existing,
    pub(crate) links: Links,
    pub(crate) way: Way,
}

impl Options {
    pub(crate) fn all() -> Vec<Self> {
        let mut all = Vec::new();
        for existing in [Existing::Replaced, Existing::KeptIfNewer, Existing::Kept] {
            for links in [Links::Followed, Links::Kept] {
                for way in [Way::Renamed, Way::InPlace] {
                    all.push(Self { existing, links, way });
                }
            }
        }
        all
    }

    pub(crate) fn arguments(self) -> Vec<&'static str> {
        let mut all = vec![match self.links {
            Links::Followed => "-r",
            Links::Kept => "-a",
        }];
        match self.existing {
            Existing::Replaced => {}
            Existing::KeptIfNewer => all.push("--update"),
            Existing::Kept => all.push("--ignore-existing"),
        }
        match self.way {
            Way::Renamed => {}
            Way::InPlace => all.push("--inplace"),
        }
        all
    }
}

/// How the copy treats a source entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    File,
    Link,
    Dir,
    /// It cannot be read or is not copied: a dangling link that is followed, or a FIFO.
    Nothing,
}

impl Kind {
    pub(crate) const fn of(source: Source, links: Links) -> Self {
        match (source, links) {
            (Source::File(_), _) | (Source::LinkToFile(_), Links::Followed) => Self::File,
            (Source::Dir, _) | (Source::LinkToDir, Links::Followed) => Self::Dir,
            (Source::Fifo, _) | (Source::LinkToNothing, Links::Followed) => Self::Nothing,
            (Source::LinkToFile(_) | Source::LinkToDir | Source::LinkToNothing, Links::Kept) => {
                Self::Link
            }
        }
    }
}

/// The result for an entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fate {
    /// It gets the content of the source, or the text of the source's symbolic link.
    Written,
    /// A directory exists afterwards; its entries have their own results.
    Merged,
    /// The existing entry is unchanged, without a message.
    Stays,
    /// The existing entry is unchanged, and one failure is reported.
    Refused,
}

/// Applies the rule.
pub(crate) fn fate(kind: Kind, target: Target, options: Options) -> Fate {
    match (kind, target) {
        (Kind::Nothing, _) => Fate::Refused,
        (Kind::Dir, Target::Absent | Target::EmptyDir | Target::FullDir) => Fate::Merged,
        (Kind::Dir, _) => Fate::Refused,
        (Kind::File | Kind::Link, Target::Absent) => Fate::Written,
        (Kind::Link, Target::SameLink) => Fate::Stays,
        (Kind::File | Kind::Link, _) if options.existing == Existing::Kept => Fate::Stays,
        (Kind::File | Kind::Link, there) => match there.age() {
            // A directory is not replaced, and a FIFO or socket may be in use by another program.
            None => Fate::Refused,
            Some(Age::Same | Age::Newer) if options.existing == Existing::KeptIfNewer => {
                Fate::Stays
            }
            Some(_) => Fate::Written,
        },
    }
}
