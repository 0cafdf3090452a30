//! The traits that every storage engine implements.

use crate::abilities::{Abilities, Ability};
use crate::batch::{Op, Reply, do_one};
use crate::error::{ErrorKind, Result, doing};
use crate::fetch::Fetcher;
use crate::found::{Found, Kind, Owner, Space, Time, Version};
use crate::lead::{Root, follow_by_names};
use crate::path::StorePath;
use crate::walk::{Entry, walk_by_listing};
use hikyaku_fs::Name;
use std::ops::{ControlFlow, Range};
use std::sync::Arc;

/// A tree of files, directories and links. See the rules R1 to R11 in the documentation of this crate.
pub trait Store: Send + Sync {
    /// The abilities of the store. They do not change while the store is open.
    fn abilities(&self) -> Abilities;

    /// The metadata of a name. A symbolic link is not followed.
    ///
    /// # Errors
    ///
    /// `NotFound` if no entry has the name, `NotDir` or `Link` if a part of the path is not a
    /// directory.
    fn look(&self, path: &StorePath) -> Result<Found>;

    /// A page of a directory's entries with their metadata, in an order of the store's choice.
    /// Drafts and the entries `.` and `..` are omitted. A page has at most `room` entries. `after`
    /// is the cursor of the previous page, or `None` for the first page. An entry that exists
    /// during the whole listing is listed exactly once.
    fn list(&self, dir: &StorePath, after: Option<&Cursor>, room: usize) -> Result<Page>;

    /// Opens a file.
    ///
    /// # Errors
    ///
    /// `IsDir` for a directory, `Link` for a symbolic link, `System` for a special file.
    fn open(&self, path: &StorePath, access: Access) -> Result<Box<dyn Open>>;

    /// Creates a draft for the file `path`.
    ///
    /// # Errors
    ///
    /// `NotFound` if its directory does not exist, `Denied`, `NoSpace` and others of the storage.
    fn create(&self, path: &StorePath, make: &Make) -> Result<Box<dyn Draft>>;

    /// Opens the file `path` for writing under its own name, and makes it if that is missing, with the bits of
    /// [`Make::mode`]. Written bytes stay there, also if the draft is discarded; [`Draft::name`] sets the metadata that
    /// are given. Default: the store cannot do that.
    ///
    /// # Errors
    ///
    /// Those of [`Store::create`] and [`Store::open`].
    fn grow(&self, path: &StorePath, _make: &Make, _growing: Growing) -> Result<Box<dyn Draft>> {
        doing("write", path).fail(ErrorKind::Unsupported(Ability::Update))
    }

    /// Resumes a draft of `path` that an earlier process created and did not discard.
    ///
    /// # Errors
    ///
    /// `NotFound` if there is none with this token, `Busy` if another writer has it.
    fn take_up(&self, path: &StorePath, token: &Token) -> Result<Box<dyn Draft>>;

    /// Creates a directory with these permission bits.
    ///
    /// # Errors
    ///
    /// `Exists` if an entry has the name.
    fn make_dir(&self, path: &StorePath, mode: u32) -> Result<()>;

    /// Creates a symbolic link with the target `text`, which is not interpreted.
    ///
    /// # Errors
    ///
    /// `Exists` if an entry has the name.
    fn make_link(&self, path: &StorePath, text: &[u8]) -> Result<()>;

    /// The target of a symbolic link.
    fn read_link(&self, path: &StorePath) -> Result<Vec<u8>>;

    /// Removes a name whose entry is of this kind. A directory must be empty.
    ///
    /// # Errors
    ///
    /// `IsDir` or `NotDir` if it is of another kind, `NotEmpty`, `NotFound`.
    fn remove(&self, path: &StorePath, kind: Kind) -> Result<()>;

    /// Renames a file, link or directory.
    ///
    /// # Errors
    ///
    /// `Exists` with [`Replace::Never`]; `IsDir`, `NotDir` and `NotEmpty` as in rename(2).
    fn rename(&self, from: &StorePath, to: &StorePath, replace: Replace) -> Result<()>;

    /// Changes the metadata of a file or directory. Of a symbolic link only its time and owner can
    /// change.
    fn change(&self, path: &StorePath, change: &Change) -> Result<()>;

    /// Extended attributes of a file or directory.
    fn attributes(&self, path: &StorePath) -> Result<Vec<Attribute>>;

    /// The free and the total space.
    fn space(&self) -> Result<Space>;

    /// The machines that have a replica of the file, the preferred one first. Empty if the store
    /// has no replicas.
    fn places(&self, path: &StorePath) -> Result<Vec<Place>>;

    /// Makes changes of these directories durable: names that were created, renamed or removed in
    /// them survive a power failure.
    fn sync(&self, dirs: &[StorePath]) -> Result<()>;

    /// Everything at and below `root`, a directory before its entries, until `each` breaks. Links are reported with their text
    /// and not followed. An entry that cannot be read is reported with its error, and so is a directory that was not listed to
    /// its end; the walk goes on. A path is reported once, apart from that error. Default: directory by directory
    /// ([`walk_by_listing`]). A store behind a long path sends fewer requests.
    ///
    /// # Errors
    ///
    /// Those of [`Store::look`] for `root`, or the store is lost during the walk.
    fn walk(&self, root: &StorePath, each: &mut dyn FnMut(Entry) -> ControlFlow<()>) -> Result<()> {
        walk_by_listing(self, root, each)
    }

    /// The place to which a path leads, with all symbolic links on it followed, and its metadata. Default: name by name
    /// ([`follow_by_names`]), where absolute links lead nowhere, because the root may be any directory. A server that resolves
    /// paths itself is asked once.
    ///
    /// # Errors
    ///
    /// `NotFound` if nothing is at the end of the path, `Link` if links lead out of the store, or back to themselves.
    fn follow(&self, path: &StorePath) -> Result<(StorePath, Found)> {
        follow_by_names(self, path, Root::Somewhere)
    }

    /// Independent operations. `each` is called exactly once for every operation with its index, in any order, on the calling
    /// thread. Operations on one path take effect in their order; others in any. Default: one after the other ([`do_one`]). A
    /// store behind a long path sends many at once.
    fn batch(&self, ops: &[Op<'_>], each: &mut dyn FnMut(usize, Result<Reply>)) {
        for (index, op) in ops.iter().enumerate() {
            each(index, do_one(self, op));
        }
    }

    /// Why every later call fails, if the connection to the store has ended. A store that can reconnect returns `None`.
    fn lost(&self) -> Option<ErrorKind> {
        None
    }

    /// Channels of the store's own that read files, at most `count`. Empty if it has none; then files are read by
    /// [`Open::stream`].
    ///
    /// # Errors
    ///
    /// The store cannot be reached.
    fn own_fetchers(&self, _count: usize) -> Result<Vec<Arc<dyn Fetcher>>> {
        Ok(Vec::new())
    }
}

/// An open file.
pub trait Open: Send + Sync {
    /// The present metadata of the file.
    fn found(&self) -> Result<Found>;

    /// Whether the file still has the content with which it was opened for reading, as far as the store can determine it: if
    /// so, the pieces that were read are of one content. A store whose reads fail with `Changed` by themselves returns true.
    fn is_unchanged(&self) -> Result<bool> {
        Ok(true)
    }

    /// Reads from `at` until `into` is full or the file ends. Returns the number of bytes (rule
    /// R1).
    ///
    /// # Errors
    ///
    /// `Changed` if the file no longer has the version with which it was opened. Only a store that
    /// can detect this reports it.
    fn read_at(&self, at: u64, into: &mut [u8]) -> Result<usize>;

    /// Reads `range` in order and passes its bytes to `each` as they arrive, until that breaks. Returns the number of passed
    /// bytes: fewer than `range` has if the file ends or `each` breaks. A store behind a long path sends one request; others
    /// read by [`Open::read_at`].
    fn stream(
        &self,
        range: Range<u64>,
        each: &mut dyn FnMut(&[u8]) -> ControlFlow<()>,
    ) -> Result<u64> {
        let mut at = range.start;
        let mut block = vec![0; (range.end.saturating_sub(at)).min(STREAM_BLOCK_BYTES) as usize];
        while at < range.end {
            let length = (range.end - at).min(STREAM_BLOCK_BYTES) as usize;
            let length = self.read_at(at, &mut block[..length])?;
            at += length as u64;
            if length == 0 || each(&block[..length]).is_break() {
                break;
            }
        }
        Ok(at - range.start)
    }

    /// The path with which it was opened, for the errors of a store that opens files for reading only.
    fn path(&self) -> &StorePath {
        &StorePath::ROOT
    }

    /// Writes all of `bytes` at `at`. The file must be open for [`Access::Update`].
    fn write_at(&self, _at: u64, _bytes: &[u8]) -> Result<()> {
        doing("write", self.path()).fail(ErrorKind::ReadOnly)
    }

    /// Truncates the file, or extends it by a range that reads as zeros.
    fn set_len(&self, _length: u64) -> Result<()> {
        doing("change the length of", self.path()).fail(ErrorKind::ReadOnly)
    }

    /// The ranges of data and of holes within `range`, in order, up to the end of the file. A store that does not report holes
    /// has data everywhere.
    fn extents(&self, range: Range<u64>) -> Result<Vec<Extent>> {
        let range = range.start..range.end.min(self.found()?.size);
        Ok(Vec::from_iter((!range.is_empty()).then_some(Extent::Data(range))))
    }

    /// Makes written data durable: it survives a power failure.
    fn sync(&self, _scope: SyncScope) -> Result<()> {
        Ok(())
    }
}

/// Bytes that [`Open::stream`] reads at once.
const STREAM_BLOCK_BYTES: u64 = 1 << 20;

/// A file that is being written and has no name yet. If it is dropped without a name, it is
/// removed, unless [`Draft::keep`] was called.
pub trait Draft: Send + Sync {
    /// Writes all of `bytes` at `at`. Several threads may write at once, in the order that [`Abilities::writes`] names. The
    /// bytes are copied, and they may still be on their way when the call returns: a later call then reports a failure, at
    /// the latest [`Draft::sync`] or [`Draft::name`].
    fn write_at(&self, at: u64, bytes: &[u8]) -> Result<()>;

    /// Reads back what was written, for verification.
    fn read_at(&self, at: u64, into: &mut [u8]) -> Result<usize>;

    /// Sets the length: bytes after it are removed, and missing bytes read as zeros.
    fn set_len(&self, length: u64) -> Result<()>;

    /// The token with which it can be resumed later.
    fn token(&self) -> Token;

    /// Keeps the draft when it is dropped, so that it can be resumed.
    fn keep(&self);

    /// Makes its content durable. After the first failure every later call fails, because the
    /// operating system reports a lost write only once (fsync(2)).
    fn sync(&self) -> Result<()>;

    /// Its present modification time; `None` if the store reports none. A draft that is resumed and is older than it
    /// was has lost data: its volume was restored from a snapshot.
    fn modified(&self) -> Result<Option<Time>> {
        Ok(None)
    }

    /// The length that the store has of a draft that was resumed, if it is written in order and bytes at its end may be lost
    /// that a call had taken, also one before the last [`Draft::sync`]. `None`: only bytes of calls after the last sync may be
    /// lost.
    fn stored(&self) -> Result<Option<u64>> {
        Ok(None)
    }

    /// Lets later reads come from the storage and not from a cache of this machine, as far as that is possible.
    fn forget_cache(&self) -> Result<()> {
        Ok(())
    }

    /// Gives the draft its name, mode, time and attributes. For every reader this is one atomic
    /// step (rule R3). The name survives a power failure only after the directory has been synced.
    fn name(self: Box<Self>, naming: Naming, finish: &Finish) -> Result<Found>;

    /// Removes the draft.
    fn discard(self: Box<Self>);
}

/// How a file is opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access {
    /// For reading.
    Read,
    /// For reading, and for writing in place.
    Update,
}

/// The treatment of the existing bytes of a file that is written under its own name ([`Store::grow`]).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Growing {
    /// They are removed.
    Anew,
    /// They stay, this number of them.
    Behind(u64),
}

/// Options for creating a draft.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Make {
    /// The expected size, if it is known. A store may reserve space for it.
    pub size: Option<u64>,
    /// About how many of its bytes are in no holes, if that is known. If they are fewer than the size, a store that has holes
    /// reserves no space, and makes holes of zeros.
    pub data: Option<u64>,
    /// The modification time that the file is going to get, if it is known. A store whose large files get their metadata when
    /// they are begun uses it; all others take it from [`Finish`].
    pub modified: Option<Time>,
    /// The permission bits of the new file before the store removes those of its umask ([`Abilities::umask`]). The file keeps
    /// what is left, unless [`Finish::mode`] names bits. Default: only the user of the store reads the draft.
    pub mode: Option<u32>,
}

impl Make {
    /// Whether the file has holes.
    pub const fn has_holes(&self) -> bool {
        matches!((self.size, self.data), (Some(size), Some(data)) if data < size)
    }
}

/// The treatment of an existing file of the name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Naming {
    /// It is replaced.
    Replace,
    /// It stays, and naming fails with `Exists`.
    IfAbsent,
    /// It is replaced if it has this version; otherwise naming fails with `Changed`.
    IfVersion(Version),
}

/// The treatment of an existing entry of the new name when an entry is renamed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Replace {
    /// The existing entry is replaced.
    Allowed,
    /// The existing entry stays, and renaming fails with `Exists`.
    Never,
    /// The two names are exchanged.
    Exchange,
}

/// Metadata that a draft gets with its name. The store chooses what is `None`.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Finish {
    /// Permission bits. Default: those of a new file.
    pub mode: Option<u32>,
    /// The bits with which it was made ([`Make::mode`]), if it keeps what the umask of the store has left of them.
    pub made: Option<u32>,
    /// Modification time. Default: the present time.
    pub modified: Option<Time>,
    /// Owner. Default: the user that runs the store.
    pub owner: Option<Owner>,
    /// Extended attributes.
    pub attributes: Vec<Attribute>,
}

/// A change of a file's metadata. Fields that are `None` stay unchanged.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Change {
    /// Permission bits.
    pub mode: Option<u32>,
    /// Modification time.
    pub modified: Option<Time>,
    /// Owner.
    pub owner: Option<Owner>,
    /// Attributes to set.
    pub attributes: Vec<Attribute>,
}

/// An extended attribute.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Attribute {
    /// Its name with the namespace (`user.origin`).
    pub name: Vec<u8>,
    /// Its value.
    pub value: Vec<u8>,
}

/// The extent of a sync of an open file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SyncScope {
    /// Its bytes and its length.
    Data,
    /// Times and mode as well.
    All,
}

/// A range of a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Extent {
    /// Bytes that were written.
    Data(Range<u64>),
    /// A range that was never written and reads as zeros.
    Hole(Range<u64>),
}

/// Identifies a draft that is to be resumed. Only the store that issued it can interpret it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Token(pub Vec<u8>);

/// The position in a listing. Only the store that issued it can interpret it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cursor(pub Vec<u8>);

/// An entry of a directory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Item {
    /// Its name.
    pub name: Name,
    /// Its metadata.
    pub found: Found,
}

/// A page of a listing.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Page {
    /// Entries.
    pub items: Vec<Item>,
    /// The start of the next page; `None` if this one is the last.
    pub next: Option<Cursor>,
    /// The number of omitted names in the directory that cannot be part of a path (too long, or
    /// invalid).
    pub skipped: u64,
}

/// A machine with a replica of a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Place {
    /// Its host name as the store knows it.
    pub host: String,
    /// Whether it can be reached, as far as the store knows.
    pub is_up: bool,
}
