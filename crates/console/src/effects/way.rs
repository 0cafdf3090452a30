//! The ways that data go.

use super::Effect::{self, Honoured, HonouredWith, Nothing};

/// With daemons that are started through ssh.
pub const BY_SSH: Effect = HonouredWith(&["start_servers"]);

/// How the data of a command go from their source to their target.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Way {
    /// Within this machine.
    Here,
    /// From or to a machine that has hikyaku, through ssh.
    Ssh,
    /// Between two other machines.
    Through,
    /// From or to a machine by SFTP.
    Sftp,
    /// From and to an SFTP server that runs on this machine.
    Direct,
    /// From daemons.
    FromDaemons,
    /// To daemons.
    ToDaemons,
    /// From a Gfarm file system.
    FromGfarm,
    /// Into a Gfarm file system.
    ToGfarm,
    /// From a bucket.
    FromBucket,
    /// Into a bucket.
    ToBucket,
    /// From web servers to files.
    FromWeb,
    /// From web servers to an output.
    WebToOutput,
    /// From a server of `ftp://`.
    FromFtp,
    /// To a server of `ftp://`.
    ToFtp,
    /// Between two servers, of which one at least is one of `ftp://`.
    BetweenFtp,
    /// From a server of `gsiftp://`.
    FromGridFtp,
    /// To a server of `gsiftp://`.
    ToGridFtp,
    /// Between two servers of `gsiftp://`.
    BetweenGridFtp,
    /// From a host by ssh to a storage.
    FromHost,
    /// From a storage to a host by ssh.
    ToHost,
}

impl Way {
    /// The effect of an option of ssh on it.
    pub(super) const fn of_ssh(self) -> Effect {
        match self {
            Self::Ssh | Self::Through | Self::Sftp | Self::FromHost | Self::ToHost => Honoured,
            Self::FromDaemons | Self::ToDaemons => BY_SSH,
            _ => Nothing,
        }
    }

    /// What it is called behind what the command does: "a copy" ...
    pub const fn name(self) -> &'static str {
        match self {
            Self::Here => "within this machine",
            Self::Ssh => "through ssh",
            Self::Through => "between two other machines",
            Self::Sftp => "by SFTP",
            Self::Direct => "with a server on this machine",
            Self::FromDaemons => "from daemons",
            Self::ToDaemons => "to daemons",
            Self::FromGfarm => "from Gfarm",
            Self::ToGfarm => "into Gfarm",
            Self::FromBucket => "from a bucket",
            Self::ToBucket => "into a bucket",
            Self::FromWeb => "from web servers",
            Self::WebToOutput => "from web servers to an output",
            Self::FromFtp => "from a server of ftp://",
            Self::ToFtp => "to a server of ftp://",
            Self::BetweenFtp => "between servers of ftp://",
            Self::FromGridFtp => "from a server of gsiftp://",
            Self::ToGridFtp => "to a server of gsiftp://",
            Self::BetweenGridFtp => "between servers of gsiftp://",
            Self::FromHost => "from a host by ssh to a storage",
            Self::ToHost => "from a storage to a host by ssh",
        }
    }
}
