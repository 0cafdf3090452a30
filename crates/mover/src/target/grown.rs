//! A file that is written under its own name from its first byte on, as sftp(1) writes it. It is written in order, so that its
//! length is the number of bytes that have come.

use crate::in_order::InOrder;
use crate::target::{Manner, Target};
use hikyaku_store::{
    Draft, ErrorKind, Finish, Found, Growing, Naming, Result, StoreError, StorePath, Token,
};
use hikyaku_transfer::SEGMENT;

/// Bytes at the end of the existing part that are compared with the source.
const COMPARED_BYTES: u64 = 1 << 20;

/// The treatment of an existing file of the name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Growth {
    /// It is emptied.
    Anew,
    /// It goes on where it ends, if its end is the same as in the source. A longer one than the source fails as
    /// [`ErrorKind::TooLarge`], and one with another end as [`ErrorKind::Changed`], both as a failure to [`RESUME`] it.
    Continued,
}

/// The operation that fails for a file that does not begin as the source does.
pub const RESUME: &str = "resume";

impl Growth {
    /// The bytes that stay of a file at the target, which has `there` bytes, if it is to get `size` bytes.
    ///
    /// # Errors
    ///
    /// It has more.
    pub(crate) fn of(self, (there, size): (u64, u64)) -> std::result::Result<Growing, ErrorKind> {
        match self {
            Self::Continued if there > size => Err(ErrorKind::TooLarge),
            Self::Continued if there > 0 => Ok(Growing::Behind(there)),
            Self::Continued | Self::Anew => Ok(Growing::Anew),
        }
    }
}

/// The offset of the first byte that is fetched, and the number of existing bytes.
const fn begin(growing: Growing) -> (u64, u64) {
    match growing {
        Growing::Anew => (0, 0),
        Growing::Behind(there) => (there.saturating_sub(COMPARED_BYTES) / SEGMENT * SEGMENT, there),
    }
}

impl Target<'_> {
    /// The file, which grows under its own name. Without a mode of its own it keeps the bits that it is made with.
    pub(crate) fn growing(mut self, growing: Growing, is_dressed: bool) -> Self {
        let mode = self.finish.made.or(self.finish.mode);
        self.finish.made = mode;
        self.finish.mode = self.finish.mode.filter(|_| is_dressed);
        self.manner = Manner::InOrder(InOrder::from(begin(growing).0));
        Self { growing: Some(growing), ..self }
    }

    /// Existing bytes of the file that are not fetched.
    pub(crate) fn skipped(&self) -> u64 {
        self.growing.map_or(0, |growing| begin(growing).0)
    }
}

/// A file of which a part exists. The end of this part is compared with the bytes to be written.
pub(super) struct Compared {
    draft: Box<dyn Draft>,
    path: StorePath,
    there: u64,
}

impl Compared {
    pub(super) fn new(draft: Box<dyn Draft>, path: StorePath, growing: Growing) -> Self {
        Self { draft, path, there: begin(growing).1 }
    }
}

impl Draft for Compared {
    fn write_at(&self, at: u64, bytes: &[u8]) -> Result<()> {
        let known = usize::try_from(self.there.saturating_sub(at)).unwrap_or(usize::MAX);
        let (known, new) = bytes.split_at(known.min(bytes.len()));
        let mut here = vec![0; known.len()];
        if !known.is_empty() && (self.draft.read_at(at, &mut here)? != here.len() || here != known)
        {
            return Err(StoreError::new(RESUME, &self.path, ErrorKind::Changed));
        }
        match new {
            [] => Ok(()),
            new => self.draft.write_at(at + known.len() as u64, new),
        }
    }

    fn read_at(&self, at: u64, into: &mut [u8]) -> Result<usize> {
        self.draft.read_at(at, into)
    }

    fn set_len(&self, length: u64) -> Result<()> {
        self.draft.set_len(length)
    }

    fn token(&self) -> Token {
        self.draft.token()
    }

    fn keep(&self) {
        self.draft.keep();
    }

    fn sync(&self) -> Result<()> {
        self.draft.sync()
    }

    fn name(self: Box<Self>, naming: Naming, finish: &Finish) -> Result<Found> {
        self.draft.name(naming, finish)
    }

    fn discard(self: Box<Self>) {
        self.draft.discard();
    }
}
