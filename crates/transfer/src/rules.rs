//! The rules of a copy: what is copied, and how it is written. All ways of copying use these types, so that an option has one
//! meaning.
//!
//! Both ends of a copy between two programs know the rules. Rules of two variants are encoded as the bool that older programs
//! have in the same place: the first variant is `false`.

use serde::{Deserialize, Serialize};

/// The rules of a copy that all its ends know. The order of the fields is that of the message between two programs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Rules {
    /// Whether directories are copied.
    pub depth: Depth,
    /// Which times and modes are kept.
    pub preserve: Preserve,
    /// The treatment of links.
    pub links: Links,
    /// The owners of new files.
    pub owners: Owners,
    /// Extended attributes of users.
    pub attributes: Attributes,
    /// Where contents are written.
    pub write: Write,
    /// When a file counts as written.
    pub durable: Durable,
    /// The use of data of earlier attempts.
    pub resume: Resume,
    /// How contents are checked.
    pub verify: Verify,
    /// The treatment of files that have the name at the target.
    pub existing: Existing,
    /// Whether anything is written.
    pub pass: Pass,
}

/// Whether a directory may be a source.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub enum Depth {
    /// Only files. A directory among the sources is an error.
    #[default]
    File,
    /// Files, and directories with everything below them.
    Tree,
}

/// The treatment of symbolic links.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub enum Links {
    /// The file or directory that a link leads to is copied, under the name of the link.
    #[default]
    Followed,
    /// The link is copied.
    Kept,
}

/// Which times and modes are kept. The first two variants are encoded as the two bools of older programs.
// spec: copy-feature-1
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub enum Preserve {
    /// Neither.
    #[default]
    Nothing,
    /// Both.
    All,
    /// Times alone. A far side that understands this announces the feature `TIMES_ALONE`.
    Times,
}

impl Preserve {
    /// Whether times are kept.
    pub const fn times(self) -> bool {
        matches!(self, Self::All | Self::Times)
    }

    /// Whether modes are kept.
    pub const fn modes(self) -> bool {
        matches!(self, Self::All)
    }
}

/// The owners of new files.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub enum Owners {
    /// The user who writes.
    #[default]
    New,
    /// Those of the source, where the end that writes may set them.
    Kept,
}

/// Extended attributes of users.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub enum Attributes {
    /// They are not copied.
    #[default]
    Dropped,
    /// They are copied.
    Kept,
}

/// The treatment of a file or link at the target that has the name of a new one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub enum Existing {
    /// It is replaced.
    #[default]
    Replaced,
    /// It stays unless it is older than the source.
    KeptIfNewer,
    /// It stays.
    Kept,
    /// It stays, and the file is not copied, which is an error.
    Refused,
}

impl Existing {
    /// Whether a file at the target that was modified at `old` stays, where the source was modified at `new`. As with `cp -u`, a
    /// file of the same time stays. The caller rounds `new` to the resolution of the target.
    pub fn keeps<T: PartialOrd>(self, new: T, old: T) -> bool {
        match self {
            Self::Replaced => false,
            Self::Kept | Self::Refused => true,
            Self::KeptIfNewer => old >= new,
        }
    }
}

/// Where the content of a file is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub enum Write {
    /// Into a new file, which then gets the name.
    #[default]
    Beside,
    /// Into the file that has the name.
    InPlace,
}

/// When a file counts as written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub enum Durable {
    /// When the kernel has it.
    Cache,
    /// When it is on the disk.
    #[default]
    Disk,
}

/// The use of data of earlier attempts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub enum Resume {
    /// The copy continues from them.
    #[default]
    Journal,
    /// They are not used.
    Fresh,
}

/// How contents are checked.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub enum Verify {
    /// By the hashes of the data that arrive.
    #[default]
    Arrived,
    /// Files are read again as well, before they get their names.
    ReadBack,
}

/// Whether anything is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub enum Pass {
    /// Files are copied.
    #[default]
    Copy,
    /// The names that would be copied are printed, and nothing is written.
    DryRun,
}

/// Whether the command has other sources than those of this end.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub enum OtherSources {
    /// These are all.
    #[default]
    None,
    /// It has, so the target is a directory.
    Some,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encode;

    #[test]
    fn a_rule_of_two_variants_is_encoded_as_the_bool_of_older_programs() {
        let rules = (
            (Depth::File, Depth::Tree),
            (Links::Followed, Links::Kept),
            (Owners::New, Owners::Kept),
            (Attributes::Dropped, Attributes::Kept),
            (Write::Beside, Write::InPlace),
            (Durable::Cache, Durable::Disk),
            (Resume::Journal, Resume::Fresh),
            (Verify::Arrived, Verify::ReadBack),
            (Pass::Copy, Pass::DryRun),
            (OtherSources::None, OtherSources::Some),
        );
        let bools = [(false, true); 10];
        assert_eq!(encode(&rules, &[]), encode(&bools, &[]));
        let preserved = [Preserve::Nothing, Preserve::All].map(|rule| (rule.times(), rule.modes()));
        assert_eq!(preserved, [(false, false), (true, true)]);
    }

    #[test]
    fn only_what_is_older_gives_way() {
        for (old, new, stays) in [(1, 2, false), (2, 2, true), (3, 2, true)] {
            assert_eq!(Existing::KeptIfNewer.keeps(new, old), stays, "{old} {new}");
        }
        assert!(!Existing::Replaced.keeps(1, 2) && Existing::Kept.keeps(2, 1));
    }
}
