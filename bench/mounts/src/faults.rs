//! What is wrong with the file system at the moment.

use fuser::Errno;
use std::collections::BTreeSet;

/// All that can be wrong. By default nothing is.
#[derive(Debug, Default)]
pub struct Faults {
    /// How much may be stored.
    pub quota: Option<Quota>,
    /// A failure to write back that is told once.
    pub failing_sync: Option<FailingSync>,
    /// Calls that are refused.
    pub refused: BTreeSet<Refused>,
    /// Names that are refused.
    pub names: Option<NameRule>,
    /// How many bytes a second are read or written, by all together.
    pub rate: Option<u32>,
}

/// How much may be stored, and who hears of it.
#[derive(Clone, Copy, Debug)]
pub struct Quota {
    /// Bytes of all files together.
    pub bytes: u64,
    /// What is answered: `EDQUOT` or `ENOSPC`.
    pub errno: Errno,
    /// The call that is answered so.
    pub told: Told,
}

/// The call that tells a failure. After a late one the data are dropped: the file is what it was when
/// it was stored last.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Told {
    /// The write itself, as a local disk does.
    AtWrite,
    /// Only the flush at `close`.
    AtClose,
    /// Only `fsync`; whoever does not ask is not told.
    AtSync,
    /// `fsync`, or the flush at `close` if that comes first, as network file systems do.
    AtSyncOrClose,
}

/// The first `fsync` of a file that has this many bytes fails with `EIO`, what was written since the
/// last good one is dropped, and the next `fsync` succeeds.
#[derive(Clone, Copy, Debug)]
pub struct FailingSync {
    /// The least bytes.
    pub from: u64,
}

/// Calls that a file system may refuse.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Refused {
    /// `chmod`: `EPERM`.
    Chmod,
    /// Setting times: `EPERM`.
    Times,
    /// Symbolic links: `EPERM`.
    Symlinks,
    /// Hard links: `EPERM`.
    HardLinks,
    /// Extended attributes: `ENOTSUP`.
    Attributes,
    /// Renaming: `EPERM`.
    Rename,
    /// `fsync` of a directory: `EINVAL`.
    SyncOfDirs,
    /// All that changes anything: `EROFS`.
    Changes,
}

/// Names that are refused, as vfat refuses some.
#[derive(Clone, Debug)]
pub struct NameRule {
    /// Bytes that no name has: `EINVAL`.
    pub forbidden: &'static [u8],
    /// The most bytes of a name: `ENAMETOOLONG`.
    pub longest: usize,
}

impl Refused {
    pub(crate) const fn errno(self) -> Errno {
        match self {
            Self::Chmod | Self::Times | Self::Symlinks | Self::HardLinks | Self::Rename => {
                Errno::EPERM
            }
            Self::Attributes => Errno::ENOTSUP,
            Self::SyncOfDirs => Errno::EINVAL,
            Self::Changes => Errno::EROFS,
        }
    }
}

impl Faults {
    /// Whether a call may be made.
    pub(crate) fn check(&self, what: Refused) -> Result<(), Errno> {
        if self.refused.contains(&what) { Err(what.errno()) } else { Ok(()) }
    }

    /// Whether something may be changed, and `name` be given if there is one.
    pub(crate) fn check_change(&self, name: Option<&[u8]>) -> Result<(), Errno> {
        self.check(Refused::Changes)?;
        let (Some(rule), Some(name)) = (&self.names, name) else { return Ok(()) };
        if name.len() > rule.longest {
            return Err(Errno::ENAMETOOLONG);
        }
        match name.iter().any(|byte| rule.forbidden.contains(byte)) {
            true => Err(Errno::EINVAL),
            false => Ok(()),
        }
    }
}
