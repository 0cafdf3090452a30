//! What is to be the same, and how it is found out.

use crate::side::{Kind, Side};

/// Options of a synchronization.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Options {
    /// Directories with what is in them (`-r`).
    pub(crate) is_recursive: bool,
    /// Links (`-l`).
    pub(crate) keeps_links: bool,
    /// Permission bits (`-p`).
    pub(crate) keeps_modes: bool,
    /// Modification times (`-t`).
    pub(crate) keeps_times: bool,
    /// Files that are newer at the target stay (`-u`).
    pub(crate) is_update: bool,
    /// Which names take part by what is at the target.
    pub(crate) existing: Existing,
    /// When a file counts as the same.
    pub(crate) quick: Quick,
    /// When two times count as equal.
    pub(crate) window: Window,
    /// Which sizes of files take part, in bytes.
    pub(crate) sizes: Sizes,
    /// Nothing is changed (`-n`).
    pub(crate) is_rehearsal: bool,
    /// What becomes of names that the source does not have.
    pub(crate) deletion: Option<Deletion>,
    /// The suffix under which replaced files are kept.
    pub(crate) backup: Option<String>,
    /// What becomes of files of the source that were copied.
    pub(crate) sources: Sources,
    /// What a copy of a file keeps by itself.
    pub(crate) copied: Copied,
    /// What becomes of times that SFTP cannot set.
    pub(crate) odd_times: OddTimes,
    /// Which permission bits can be the same at both ends.
    pub(crate) modes: Modes,
    /// Which times can be the same at both ends.
    pub(crate) times: Times,
}

impl Options {
    /// Whether a copy brings times that the target cannot be told.
    pub(crate) fn copies_odd_times(&self) -> bool {
        self.copied != Copied::Nothing && self.odd_times == OddTimes::Copied
    }

    /// What a copy keeps of what is to be the same, if one can keep times without modes. It would give directories times,
    /// too, which they do not get where backups come into them.
    pub(crate) const fn copied(&self, can_keep_times_alone: bool) -> Copied {
        match (self.keeps_modes, self.keeps_times) {
            (true, true) => Copied::All,
            (false, true) if can_keep_times_alone && self.backup.is_none() => Copied::Time,
            _ => Copied::Nothing,
        }
    }

    /// Whether names of this kind get the times of the source. As in rsync, directories do not where backups come into
    /// them.
    pub(crate) fn keeps_times_of(&self, kind: Kind) -> bool {
        self.keeps_times && (kind != Kind::Dir || self.backup.is_none()) && self.times.are_of(kind)
    }

    /// The same, as far as the ends have what is to be kept.
    pub(crate) fn between(self, source: &Side, target: &Side) -> Self {
        let modes = match source.modes() {
            Modes::None => Modes::None,
            Modes::All | Modes::NoSetIds => target.modes(),
        };
        Self {
            keeps_modes: self.keeps_modes && modes != Modes::None,
            keeps_links: self.keeps_links && target.has_links(),
            modes,
            times: match (source.times(), target.times()) {
                (Times::OfCopies, Times::All | Times::NotOfLinks) => Times::NotOfDirs,
                (_, times) => times,
            },
            ..self
        }
    }
}

/// Which permission bits can be set and compared.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Modes {
    /// All twelve.
    #[default]
    All,
    /// All but set-user-id and set-group-id.
    NoSetIds,
    /// None.
    None,
}

impl Modes {
    /// Those bits of a mode.
    pub(crate) const fn of(self, mode: u32) -> u32 {
        match self {
            Self::All => mode & 0o7777,
            Self::NoSetIds => mode & 0o1777,
            Self::None => 0,
        }
    }
}

/// Which times can be set and compared.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Times {
    /// All.
    #[default]
    All,
    /// All but those of links.
    NotOfLinks,
    /// All but those of directories, which one end does not have.
    NotOfDirs,
    /// Those of files, which are set by a copy only.
    OfCopies,
}

impl Times {
    fn are_of(self, kind: Kind) -> bool {
        match self {
            Self::All => true,
            Self::NotOfLinks => kind != Kind::Link,
            Self::NotOfDirs => kind != Kind::Dir,
            Self::OfCopies => kind == Kind::File,
        }
    }
}

/// What a copy of a file keeps by itself. The rest is set afterwards.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Copied {
    /// Neither mode nor time.
    #[default]
    Nothing,
    /// The time.
    Time,
    /// The mode and the time.
    All,
}

/// What becomes of times that SFTP cannot set.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum OddTimes {
    /// A copy brings them.
    #[default]
    Copied,
    /// They are not kept: copies go by SFTP, too.
    Lost,
}

/// What becomes of files of the source that were copied.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Sources {
    /// They stay.
    #[default]
    Stay,
    /// They are removed (`--remove-source-files`).
    Removed,
}

/// Which names take part by what is at the target.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Existing {
    /// All.
    #[default]
    All,
    /// Those that are there (`--existing`).
    OnlyThese,
    /// Those that are not there, and directories (`--ignore-existing`).
    LeftAlone,
}

/// When a file counts as the same without a look at its content.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Quick {
    /// Size and time are equal.
    #[default]
    SizeAndTime,
    /// The size is equal (`--size-only`).
    Size,
    /// Never (`--ignore-times`).
    Never,
    /// The content is equal (`--checksum`).
    Content,
}

/// When two times count as equal (rsync(1), `--modify-window`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Window {
    /// They differ by no more than so many whole seconds.
    Seconds(u64),
    /// They are equal to the nanosecond.
    Exact,
}

impl Default for Window {
    fn default() -> Self {
        Self::Seconds(0)
    }
}

/// Which sizes of files take part, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Sizes {
    /// The least (`--min-size`).
    pub(crate) min: u64,
    /// The greatest (`--max-size`).
    pub(crate) max: u64,
}

impl Default for Sizes {
    fn default() -> Self {
        Self { min: 0, max: u64::MAX }
    }
}

/// How names are deleted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Deletion {
    /// If more names than this would have to be deleted, none is.
    pub(crate) most: Option<u64>,
    /// What rules leave out.
    pub(crate) excluded: Excluded,
    /// A source without any file.
    pub(crate) empty: EmptySource,
}

/// What becomes of names at the target that rules leave out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Excluded {
    /// They stay.
    Stay,
    /// They are deleted (`--delete-excluded`).
    Deleted,
}

/// What a source without any file means, if names would be deleted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum EmptySource {
    /// An error: its disk may not be mounted.
    Refused,
    /// That everything is to be deleted (`--delete-all`).
    Meant,
}
