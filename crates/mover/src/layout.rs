//! What a target means for the names of the sources, as scp has it: a directory receives a source, and anything else is the
//! new name of a single one. The decision is the same for a path of this machine and for a path of any store; who looks at
//! the target is elsewhere (`session/landing.rs`, `session/sources.rs`).

use hikyaku_store::Kind as FileKind;
use hikyaku_transfer::FailureKind;

/// The entry that a target names, links followed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AtTarget {
    /// A directory.
    Dir,
    /// A file.
    File,
    /// A FIFO, a device or an open descriptor, which can take the bytes of a file in their order.
    Stream,
    /// Another special file, or one that this target cannot write into.
    Special,
    /// Nothing. The directory of the name exists.
    Nothing,
}

/// How a target was written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Written {
    /// As the name of anything.
    #[default]
    AsName,
    /// As a directory: with a slash at its end.
    AsDirectory,
}

/// What the names of a source become.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Renamed {
    /// The target may be the new name of the source.
    Allowed,
    /// The target must be a directory, since there are several sources.
    Never,
    /// The target is a directory that receives the entries of the source. It is made if it does not exist.
    Contents,
    /// The same beside other sources: the target must exist.
    ContentsBeside,
}

/// The place of a source at its target.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TargetLayout {
    /// The directory at the target receives the source under the source's own name.
    Into,
    /// The directory at the target receives the entries of the source.
    Contents,
    /// The target is the new name of the source.
    NewName,
    /// A directory of the target's name is made, and receives the entries of the source.
    NewContents,
    /// The target takes the bytes of the source, which is a file.
    Stream,
}

/// Why a source has no place at a target.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NoPlace {
    /// The target is no directory, and the source needs one.
    #[error("is not a directory")]
    NotDirectory,
    /// The target was written as a directory, and does not exist.
    #[error("no such directory")]
    NoDirectory,
    /// The target does not exist.
    #[error("no such directory, and several sources need one")]
    NoDirectoryForSeveral,
    /// The target is neither a directory nor a regular file.
    #[error("not a regular file; it is left unchanged")]
    Special,
}

impl TargetLayout {
    /// The place of a source of this kind.
    ///
    /// # Errors
    ///
    /// The target is no directory and has to be one, or it must not be written into.
    pub fn of(
        (at, written): (AtTarget, Written),
        (source, renamed): (FileKind, Renamed),
    ) -> Result<Self, NoPlace> {
        let is_dir = source == FileKind::Dir;
        match at {
            AtTarget::Dir => Ok(match renamed {
                Renamed::Allowed | Renamed::Never => Self::Into,
                Renamed::Contents | Renamed::ContentsBeside => Self::Contents,
            }),
            AtTarget::File | AtTarget::Stream | AtTarget::Special
                if renamed != Renamed::Allowed || is_dir || written == Written::AsDirectory =>
            {
                Err(NoPlace::NotDirectory)
            }
            AtTarget::File => Ok(Self::NewName),
            AtTarget::Stream => Ok(Self::Stream),
            AtTarget::Special => Err(NoPlace::Special),
            AtTarget::Nothing => match renamed {
                Renamed::Never | Renamed::ContentsBeside => Err(NoPlace::NoDirectoryForSeveral),
                Renamed::Contents => Ok(Self::NewContents),
                Renamed::Allowed if !is_dir && written == Written::AsDirectory => {
                    Err(NoPlace::NoDirectory)
                }
                Renamed::Allowed => Ok(Self::NewName),
            },
        }
    }
}

impl Renamed {
    /// The treatment of the name of one of `sources` sources.
    pub const fn of(sources: usize, meant: Meant) -> Self {
        match (meant, sources) {
            (Meant::List, _) | (Meant::Contents, 0 | 1) => Self::Contents,
            (Meant::Contents, _) => Self::ContentsBeside,
            (Meant::Itself, 0 | 1) => Self::Allowed,
            (Meant::Itself, _) => Self::Never,
        }
    }
}

/// What of a source is meant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Meant {
    /// The source itself.
    Itself,
    /// The entries of a directory, as with `dir/.`.
    Contents,
    /// A list of paths below it.
    List,
}

impl NoPlace {
    /// The kind, for programs.
    pub const fn kind(self) -> FailureKind {
        match self {
            Self::NotDirectory => FailureKind::NotDirectory,
            Self::NoDirectory | Self::NoDirectoryForSeveral => FailureKind::NotFound,
            Self::Special => FailureKind::Special,
        }
    }
}

impl From<FileKind> for AtTarget {
    /// In a store, whose special files are not written into.
    fn from(kind: FileKind) -> Self {
        match kind {
            FileKind::Dir => Self::Dir,
            FileKind::File => Self::File,
            FileKind::Special | FileKind::Link => Self::Special,
        }
    }
}

#[cfg(test)]
mod tests;
