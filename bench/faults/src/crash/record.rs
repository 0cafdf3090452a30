//! What a copy does to the disk, in its order.

use crate::calls::Call;
use crate::place::Area;
use crate::tracee::Seen;
use crate::tracer::{Verdict, Watch};
use anyhow::{Context, Result, bail};
use nix::libc;
use std::ffi::OsString;
use std::fs;
use std::ops::Range;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

/// A file, directory or link, by its number: the file system of a rig gives none twice.
pub(crate) type Number = u64;

/// A name in a directory.
pub(crate) type Slot = (Number, OsString);

/// What happened.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Event {
    /// A name was given to something new, or to something that has one already.
    Put(Slot, Number, Made),
    /// A name was given away.
    Move(Slot, Slot),
    /// A name was taken away.
    Drop(Slot),
    Write(Number, u64, Vec<u8>),
    Resize(Number, u64),
    Punch(Number, Range<u64>),
    /// The disk was asked to keep a file's content or a directory's names.
    Sync(Number),
    /// It was asked to keep everything.
    SyncAll,
    /// The program told its user that all is done.
    Told,
}

/// What a name was given to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Made {
    File,
    Dir,
    Link(PathBuf),
    /// It was there.
    Known,
}

/// Who records.
pub(crate) struct Recorder {
    pub(crate) events: Vec<Event>,
    pace: Duration,
    before: Before,
}

/// What must be asked before the kernel does a call.
#[derive(Default)]
struct Before {
    was_there: bool,
    offset: u64,
    bytes: Vec<u8>,
    slot: Option<Slot>,
}

impl Recorder {
    /// Nothing has happened yet; reads of sources take `pace`.
    pub(crate) fn new(pace: Duration) -> Self {
        Self { events: Vec::new(), pace, before: Before::default() }
    }

    fn event(&mut self, seen: &Seen) -> Result<Option<Event>> {
        let before = std::mem::take(&mut self.before);
        let from = || before.slot.clone().context("a name was looked up before");
        let number = || -> Result<Number> { Ok(fs::metadata(seen.link())?.ino()) };
        let new = |made| -> Result<Event> {
            Ok(Event::Put(from()?, fs::symlink_metadata(&seen.path)?.ino(), made))
        };
        let opens = matches!(seen.call, Call::Create | Call::Open);
        Ok(Some(match seen.call {
            Call::Create if !before.was_there => new(Made::File)?,
            _ if opens && seen.empties() => Event::Resize(fs::metadata(&seen.path)?.ino(), 0),
            Call::Mkdir => new(Made::Dir)?,
            Call::Symlink => new(Made::Link(fs::read_link(&seen.path)?))?,
            Call::Link => {
                let to = seen.to.as_ref().context("a link has two names")?;
                Event::Put(slot(to)?, fs::symlink_metadata(to)?.ino(), Made::Known)
            }
            Call::Rename => {
                Event::Move(from()?, slot(seen.to.as_ref().context("a rename has two names")?)?)
            }
            Call::Unlink => Event::Drop(from()?),
            Call::Write => Event::Write(number()?, before.offset, before.bytes),
            Call::Truncate => Event::Resize(number()?, seen.arguments[1]),
            Call::Fallocate => hole(number()?, &seen.arguments)?,
            Call::Fsync | Call::Fdatasync => Event::Sync(number()?),
            Call::Syncfs => Event::SyncAll,
            Call::CopyRange => bail!("the rig does not know what {seen:?} copies"),
            // It promises nothing about what has lasted.
            _ => return Ok(None),
        }))
    }
}

impl Watch for Recorder {
    fn enter(&mut self, seen: &Seen) -> Result<Verdict> {
        if seen.call == Call::Read && seen.area == Area::Source {
            thread::sleep(self.pace);
        }
        self.before = Before {
            was_there: fs::symlink_metadata(&seen.path).is_ok(),
            offset: if seen.call == Call::Write { seen.offset()? } else { 0 },
            bytes: if seen.call == Call::Write { seen.bytes()? } else { Vec::new() },
            slot: if seen.descriptor.is_none() { slot(&seen.path).ok() } else { None },
        };
        Ok(Verdict::Do)
    }

    fn left(&mut self, seen: &Seen, result: i64) -> Result<()> {
        if result < 0 || seen.area == Area::Source {
            return Ok(());
        }
        if seen.call == Call::Write {
            self.before.bytes.truncate(result as usize);
        }
        let event = self.event(seen)?;
        self.events.extend(event);
        Ok(())
    }
}

/// Where a path stands.
fn slot(path: &Path) -> Result<Slot> {
    let parent = path.parent().context("a path has a parent")?;
    let name = path.file_name().context("a path has a name")?;
    let name = OsString::from_vec(name.as_encoded_bytes().to_vec());
    Ok((fs::metadata(parent)?.ino(), name))
}

fn hole(number: Number, arguments: &[u64; 6]) -> Result<Event> {
    let [_, mode, at, length, ..] = *arguments;
    if mode as i32 & libc::FALLOC_FL_PUNCH_HOLE == 0 {
        bail!("the rig does not know fallocate with mode {mode}");
    }
    Ok(Event::Punch(number, at..at + length))
}
