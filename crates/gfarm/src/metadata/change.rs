//! Changes of names, and files that are made.

use super::{Each, Metadata, OpenFile};
use crate::code::Writer;
use crate::error::{CallError, Code};
use crate::link::Replies;
use crate::reply::{Candidate, Space, candidates, opened, space};
use crate::request::{Access, CREATE_FLAGS, gfmd};
use crate::stat::{Stat, Time};

/// The place of a name: the path of its directory, and the name there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Place<'a> {
    /// The path of the directory.
    pub dir: &'a [u8],
    /// The name.
    pub name: &'a [u8],
}

/// The answer to one question: an error of the session outside, gfmd's refusal inside.
type Answer<T> = Result<Result<T, Code>, CallError>;

impl Metadata {
    /// Makes a file and opens it for reading and writing.
    ///
    /// # Errors
    ///
    /// The session has ended (outside), or gfmd refuses it (inside).
    pub fn create(&self, at: Place<'_>, mode: u32) -> Answer<OpenFile> {
        let ask = |at: &Place<'_>, ask: &mut Writer| {
            ask.open(at.dir, Access::Look).int(gfmd::CREATE).string(at.name);
            ask.int(CREATE_FLAGS).int(mode.cast_signed()).int(gfmd::FSTAT).int(gfmd::GET_FD);
        };
        self.one(at, ask, |at, reply| {
            opened(at.dir, reply)?;
            reply.good()?;
            let [_inode, _generation] = [reply.count()?, reply.count()?];
            let _mode = reply.int()?;
            open_file(reply)
        })
    }

    /// Opens a file that is there for reading and writing.
    ///
    /// # Errors
    ///
    /// As for [`Self::create`].
    pub fn open_to_write(&self, path: &[u8]) -> Answer<OpenFile> {
        let ask = |path: &&[u8], ask: &mut Writer| {
            ask.open(path, Access::Write).int(gfmd::FSTAT).int(gfmd::GET_FD);
        };
        self.one(path, ask, |path, reply| {
            opened(path, reply)?;
            open_file(reply)
        })
    }

    /// The nodes to which an open file may be written. For a file with content these are the nodes that have it.
    ///
    /// # Errors
    ///
    /// As for [`Self::create`].
    pub fn schedule(&self, file: &OpenFile) -> Answer<Vec<Candidate>> {
        let ask = |file: &OpenFile, ask: &mut Writer| {
            // Nodes of any domain.
            ask.int(gfmd::PUT_FD).int(file.number()).int(gfmd::SCHEDULE_FILE).string(b"");
        };
        self.one(file.clone(), ask, |_, reply| {
            reply.good()?;
            reply.good()?;
            candidates(reply)
        })
    }

    /// Makes a directory.
    ///
    /// # Errors
    ///
    /// As for [`Self::create`].
    pub fn make_dir(&self, at: Place<'_>, mode: u32) -> Answer<()> {
        self.change(at.dir, |ask| {
            ask.int(gfmd::MKDIR).string(at.name).int(mode.cast_signed());
        })
    }

    /// Makes a symbolic link.
    ///
    /// # Errors
    ///
    /// As for [`Self::create`].
    pub fn make_link(&self, at: Place<'_>, text: &[u8]) -> Answer<()> {
        self.change(at.dir, |ask| {
            ask.int(gfmd::SYMLINK).string(text).string(at.name);
        })
    }

    /// Removes a name of any kind. A directory must be empty.
    ///
    /// # Errors
    ///
    /// As for [`Self::create`].
    pub fn remove(&self, at: Place<'_>) -> Answer<()> {
        self.change(at.dir, |ask| {
            ask.int(gfmd::REMOVE).string(at.name);
        })
    }

    /// Sets permission bits.
    ///
    /// # Errors
    ///
    /// As for [`Self::create`].
    pub fn set_mode(&self, path: &[u8], mode: u32) -> Answer<()> {
        self.change(path, |ask| {
            ask.int(gfmd::FCHMOD).int(mode.cast_signed());
        })
    }

    /// Sets the time of the last change, and of the last access to the same.
    ///
    /// # Errors
    ///
    /// As for [`Self::create`].
    pub fn set_time(&self, path: &[u8], time: Time) -> Answer<()> {
        self.change(path, |ask| {
            ask.int(gfmd::FUTIMES);
            for _ in ["accessed", "modified"] {
                ask.long(time.secs).int(time.nanos.cast_signed());
            }
        })
    }

    /// Renames. What has the new name is replaced.
    ///
    /// # Errors
    ///
    /// As for [`Self::create`].
    pub fn rename(&self, from: Place<'_>, to: Place<'_>) -> Answer<()> {
        self.change_second((from.dir, to.dir), |ask| {
            ask.int(gfmd::RENAME).string(from.name).string(to.name);
        })
    }

    /// Gives a file a second name, which must not be there.
    ///
    /// # Errors
    ///
    /// As for [`Self::create`].
    pub fn link(&self, path: &[u8], to: Place<'_>) -> Answer<()> {
        self.change_second((path, to.dir), |ask| {
            ask.int(gfmd::FLINK).string(to.name);
        })
    }

    /// The space of all nodes together.
    ///
    /// # Errors
    ///
    /// The session has ended.
    pub fn space(&self) -> Result<Space, CallError> {
        let mut link = self.locked();
        let mut ask = Writer::default();
        let told = link.send(ask.int(gfmd::STATFS)).and_then(|()| {
            link.reply.good()?;
            space(&mut link.reply)
        });
        told.map_err(|error| self.named(error))
    }

    /// A change whose answer has nothing but an error number, of what `path` names.
    fn change(&self, path: &[u8], change: impl Fn(&mut Writer) + Sync) -> Answer<()> {
        let ask = |path: &&[u8], ask: &mut Writer| change(ask.open(path, Access::Look));
        self.one(path, ask, |path, reply| {
            opened(path, reply)?;
            reply.good()
        })
    }

    /// A change that concerns two paths. The first one is the saved file of the compound, the second one its file.
    fn change_second(
        &self,
        paths: (&[u8], &[u8]),
        change: impl Fn(&mut Writer) + Sync,
    ) -> Answer<()> {
        let ask = |(first, second): &(&[u8], &[u8]), ask: &mut Writer| {
            ask.open(first, Access::Look).int(gfmd::SAVE_FD);
            change(ask.open(second, Access::Look));
        };
        self.one(paths, ask, |(first, second), reply| {
            opened(first, reply)?;
            reply.good()?;
            opened(second, reply)?;
            reply.good()
        })
    }

    /// Asks one compound.
    fn one<T: Sync, A>(
        &self,
        item: T,
        ask: impl Fn(&T, &mut Writer) + Sync,
        answer: impl Fn(&T, &mut Replies) -> Result<A, CallError>,
    ) -> Answer<A> {
        let told: Each<A> = self.each(std::slice::from_ref(&item), ask, answer)?;
        told.into_iter().next().ok_or(CallError::Protocol("no answer"))
    }
}

/// The answers to an FSTAT and a GET_FD.
pub(super) fn open_file(reply: &mut Replies) -> Result<OpenFile, CallError> {
    reply.good()?;
    let stat = Stat::read(reply)?;
    reply.good()?;
    Ok(OpenFile { number: reply.int()?, stat })
}
