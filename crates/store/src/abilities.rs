//! Optional features of a store.

use crate::found::Time;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The abilities of a store. A call that needs one that is `false` fails with `Unsupported`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[allow(clippy::struct_excessive_bools, reason = "independent abilities, each with a name")]
pub struct Abilities {
    /// An existing file can be written at any offset (`Access::Update`).
    pub update: bool,
    /// Renaming an existing file or directory is atomic.
    pub rename: bool,
    /// Naming a draft and renaming a file can fail atomically if the name exists.
    pub name_if_absent: bool,
    /// Symbolic links.
    pub links: bool,
    /// Permission bits.
    pub modes: bool,
    /// Modification times.
    pub times: bool,
    /// Extended attributes.
    pub attributes: bool,
    /// Ranges that were never written take no storage.
    pub holes: bool,
    /// A draft survives the process that created it and can be resumed by its token.
    pub take_up: bool,
    /// A file has several replicas on different machines.
    pub replicas: bool,
    /// A file that is open is used as before after its name was removed.
    pub unnamed: bool,
    /// The modification times that can be set, if `times` is set.
    pub clock: Clock,
    /// Whether [`Found::identity`](crate::Found::identity) is that of a file or of a path.
    pub identities: Identities,
    /// The order in which a draft takes its bytes.
    pub writes: Writes,
    /// How the store recognizes another content of a file.
    pub versions: Versions,
    /// Whether each call costs a round trip.
    pub latency: Latency,
    /// Whose umask new entries have.
    pub umask: Umask,
    /// Bytes up to which a file costs least if it is put whole, with others ([`Op::Put`](crate::Op::Put)). 0: the caller
    /// chooses.
    pub put_bytes: u64,
}

/// Whose umask new entries have: the permission bits that they get if their user does not keep those of the source.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Umask {
    /// The caller's, which it subtracts itself: entries get exactly the bits that are named.
    #[default]
    Caller,
    /// That of the process behind the store, which removes its bits from [`Make::mode`](crate::Make::mode) and from the bits
    /// of a new directory. Bits that are set later are exact.
    Store,
}

/// The order in which a draft takes its bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Writes {
    /// Any: ranges by several threads at once.
    #[default]
    Anywhere,
    /// From the first byte to the last.
    InOrder,
    /// Any, and runs of consecutive bytes by one thread are much cheaper.
    Runs,
    /// Any within this many bytes from the first byte that is missing: what is ahead of it is held in memory.
    Window {
        /// The bytes.
        bytes: u64,
    },
    /// The store cannot be written to.
    Never,
}

/// The modification times that a store can set. The store drops the part of a time that is finer, and refuses a time outside
/// of the range as [`Ability::Times`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Clock {
    /// Nanoseconds.
    #[default]
    Nanoseconds,
    /// Whole seconds.
    Seconds,
    /// Whole seconds from 1970 to 2106.
    SecondsOf32Bits,
}

impl Clock {
    /// The time that a file has whose time is set to `time`; `None` if it cannot be set.
    pub fn kept(self, time: Time) -> Option<Time> {
        match self {
            Self::Nanoseconds => Some(time),
            Self::SecondsOf32Bits if u32::try_from(time.secs).is_err() => None,
            Self::Seconds | Self::SecondsOf32Bits => Some(Time { nanos: 0, ..time }),
        }
    }
}

/// The object that has an [`Identity`](crate::Identity).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Identities {
    /// A file: two names of it have one identity, and it keeps its identity under another name.
    #[default]
    OfFiles,
    /// A path.
    OfPaths,
}

/// How a store recognizes another content of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Versions {
    /// [`Version`](crate::Version): equal versions mean equal bytes.
    #[default]
    Strong,
    /// By size and modification time only. Two contents of one size that were written within one tick of the clock are not distinguished.
    SizeAndTime,
    /// Not at all.
    Nothing,
}

/// Whether each call costs a round trip, so that batches are worth collecting.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Latency {
    /// The storage is on this machine.
    #[default]
    Local,
    /// It is behind a network.
    RoundTrip,
}

/// One ability, for an error message. The order is part of the server's protocol.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Ability {
    /// See [`Abilities::update`].
    Update,
    /// See [`Abilities::rename`].
    Rename,
    /// See [`Abilities::name_if_absent`].
    NameIfAbsent,
    /// Exchanging two names atomically.
    Exchange,
    /// See [`Abilities::links`].
    Links,
    /// See [`Abilities::modes`].
    Modes,
    /// See [`Abilities::times`].
    Times,
    /// Changing the owner of a file.
    Owners,
    /// See [`Abilities::attributes`].
    Attributes,
    /// See [`Abilities::take_up`].
    TakeUp,
    /// Reporting the free space.
    Space,
    /// See [`Abilities::unnamed`].
    Unnamed,
    /// Listing a directory.
    List,
}

impl fmt::Display for Ability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Update => "writing into a file that exists",
            Self::Rename => "renaming",
            Self::NameIfAbsent => "refusing a name that is taken",
            Self::Exchange => "exchanging two names",
            Self::Links => "symbolic links",
            Self::Modes => "permission bits",
            Self::Times => "modification times",
            Self::Owners => "changing owners",
            Self::Attributes => "extended attributes",
            Self::TakeUp => "resuming an unfinished file",
            Self::Space => "telling its free space",
            Self::Unnamed => "using a file that has no name",
            Self::List => "listing a directory",
        })
    }
}
