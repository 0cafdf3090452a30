//! A file whose size is known at its end only: its bytes come in order, and once.

use super::{InPlace, Target};
use crate::fetch::Taking;
use hikyaku_store::{Draft, ErrorKind, Make, Result, StoreError};
use hikyaku_transfer::{Durable, FileHash, Verify, Write};

/// Bytes that are read back at once.
const BLOCK_BYTES: usize = 1 << 20;

/// Such a file while it is written. If it is dropped before its end, nothing of it gets the name.
pub(crate) struct Poured<'t, 'a> {
    target: &'t Target<'a>,
    draft: Box<dyn Draft>,
    size: u64,
    all: blake3::Hasher,
}

impl<'a> Target<'a> {
    /// Begins the file without a size.
    pub(crate) fn pour(&self) -> Result<Poured<'_, 'a>> {
        let draft: Box<dyn Draft> = match self.writing.write {
            Write::Beside => {
                let make = Make { mode: self.finish.made, ..Make::default() };
                self.store.create(&self.path, &make)?
            }
            Write::InPlace => Box::new(InPlace::open(&self.store, &self.path)?),
        };
        Ok(Poured { target: self, draft, size: 0, all: blake3::Hasher::new() })
    }
}

impl Poured<'_, '_> {
    /// Writes the next bytes.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.draft.write_at(self.size, bytes)?;
        self.all.update(bytes);
        self.size += bytes.len() as u64;
        Ok(())
    }

    /// Brings the file to the disk and gives it its name. Returns its size and its hash.
    pub(crate) fn finish(self) -> Result<(u64, FileHash)> {
        let hash = self.all.finalize();
        let Self { target, draft, size, .. } = self;
        let (writing, is_file) = (target.writing, target.taking == Taking::AnyOrder);
        if is_file && writing.write == Write::InPlace {
            draft.set_len(size)?;
        }
        let is_read = writing.verify == Verify::ReadBack && is_file;
        if is_read || writing.durable == Durable::Disk {
            draft.sync()?;
        }
        if is_read && read_back(&*draft, size)? != hash {
            return Err(StoreError::new("read back", &target.path, ErrorKind::Damaged));
        }
        if is_file {
            draft.name(target.naming, &target.finish)?;
        }
        Ok((size, FileHash(*hash.as_bytes())))
    }
}

/// The hash of the content in the storage.
fn read_back(draft: &dyn Draft, size: u64) -> Result<blake3::Hash> {
    draft.forget_cache()?;
    let (mut all, mut bytes, mut at) = (blake3::Hasher::new(), vec![0; BLOCK_BYTES], 0);
    while at < size {
        let wanted = (size - at).min(BLOCK_BYTES as u64) as usize;
        let length = draft.read_at(at, &mut bytes[..wanted])?;
        if length == 0 {
            break;
        }
        all.update(&bytes[..length]);
        at += length as u64;
    }
    Ok(all.finalize())
}
