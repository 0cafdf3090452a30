//! Writing, storing, and the ways in which that fails.

use super::{Answer, Store};
use crate::faults::Told;
use crate::node::{Content, Kind};
use fuser::Errno;

impl Store {
    pub(crate) fn content(&self, number: u64) -> Answer<&Content> {
        match &self.node(number)?.kind {
            Kind::File(content) => Ok(content),
            _ => Err(Errno::EINVAL),
        }
    }

    fn content_mut(&mut self, number: u64) -> Answer<&mut Content> {
        match &mut self.node_mut(number)?.kind {
            Kind::File(content) => Ok(content),
            _ => Err(Errno::EINVAL),
        }
    }

    pub(crate) fn write(&mut self, number: u64, offset: u64, data: &[u8]) -> Answer<()> {
        self.faults.check_change(None)?;
        let begin = usize::try_from(offset).map_err(|_| Errno::EFBIG)?;
        let end = begin.checked_add(data.len()).ok_or(Errno::EFBIG)?;
        self.has_room(number, end, Told::AtWrite)?;
        let content = self.content_mut(number)?;
        if content.now.len() < end {
            content.now.resize(end, 0);
        }
        content.now[begin..end].copy_from_slice(data);
        content.is_unclosed = true;
        self.is_dirty(number)
    }

    pub(crate) fn set_length(&mut self, number: u64, length: u64) -> Answer<()> {
        let length = usize::try_from(length).map_err(|_| Errno::EFBIG)?;
        self.has_room(number, length, Told::AtWrite)?;
        let content = self.content_mut(number)?;
        if content.now.len() == length {
            return Ok(());
        }
        content.now.resize(length, 0);
        self.is_dirty(number)
    }

    fn is_dirty(&mut self, number: u64) -> Answer<()> {
        self.content_mut(number)?.is_unsynced = true;
        self.touch(number)
    }

    /// Whether a file of `length` bytes fits, if it is `told` who does not.
    fn has_room(&self, number: u64, length: usize, told: Told) -> Answer<()> {
        let Some(quota) = self.faults.quota.filter(|quota| quota.told == told) else {
            return Ok(());
        };
        let others = self.nodes.iter().filter(|(other, node)| **other != number && node.links > 0);
        let used: u64 = others.map(|(_, node)| room(&node.kind, told)).sum();
        if used + length as u64 > quota.bytes { Err(quota.errno) } else { Ok(()) }
    }

    /// The flush at `close`.
    pub(crate) fn close(&mut self, number: u64) -> Answer<()> {
        if self.content(number).is_err() {
            return Ok(());
        }
        self.content_mut(number)?.is_unclosed = false;
        self.store_if(number, &[Told::AtClose, Told::AtSyncOrClose])
    }

    /// `fsync`.
    pub(crate) fn sync(&mut self, number: u64) -> Answer<()> {
        *self.record.file_syncs.entry(number).or_default() += 1;
        let length = self.content(number)?.now.len() as u64;
        if self.faults.failing_sync.is_some_and(|failing| length >= failing.from) {
            self.faults.failing_sync = None;
            self.drop_unstored(number)?;
            return Err(Errno::EIO);
        }
        self.content_mut(number)?.is_unsynced = false;
        match self.faults.quota {
            None => self.store(number),
            Some(_) => self.store_if(number, &[Told::AtSync, Told::AtSyncOrClose]),
        }
    }

    /// The last handle is gone: what nobody asked for is stored, or dropped without a word.
    pub(crate) fn release(&mut self, number: u64) {
        // Nobody hears the answer; that is the fault.
        let _ = self.store_if(number, &[Told::AtSync]);
    }

    fn store_if(&mut self, number: u64, told: &[Told]) -> Answer<()> {
        let quota = self.faults.quota.filter(|quota| told.contains(&quota.told));
        let Some(quota) = quota else { return Ok(()) };
        let length = self.content(number)?.now.len();
        let answer = self.has_room(number, length, quota.told);
        match answer {
            Ok(()) => self.store(number),
            Err(_) => self.drop_unstored(number).and(answer),
        }
    }

    fn store(&mut self, number: u64) -> Answer<()> {
        let content = self.content_mut(number)?;
        if content.stored != content.now {
            content.stored.clone_from(&content.now);
        }
        Ok(())
    }

    fn drop_unstored(&mut self, number: u64) -> Answer<()> {
        let content = self.content_mut(number)?;
        content.now.clone_from(&content.stored);
        content.is_unsynced = false;
        Ok(())
    }
}

/// What a node takes: of what is stored late, only what was stored.
fn room(kind: &Kind, told: Told) -> u64 {
    match kind {
        Kind::File(content) if told == Told::AtWrite => content.now.len() as u64,
        Kind::File(content) => content.stored.len() as u64,
        Kind::Dir(_) | Kind::Link(_) | Kind::Special(_) => 0,
    }
}
