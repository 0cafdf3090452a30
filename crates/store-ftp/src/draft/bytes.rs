//! The way of the bytes of a draft: into memory, and from there to the server.

use super::{FtpDraft, Place, State, There};
use crate::held::{Held, WHOLE_BYTES_MAX};
use crate::sending::Sending;
use hikyaku_store::ErrorKind;
use std::io;
use std::sync::atomic::Ordering;

/// Bytes of small files in memory. Further files are sent as they come.
const HELD_BYTES_MAX: u64 = 64 << 20;
/// In stream mode these bytes are handed to the connection at once.
const BLOCK_BYTES: u64 = 1 << 20;
/// A connection is not worth opening for fewer bytes than these: those of one block of a server.
const CONNECTION_BYTES_MIN: u64 = 256 << 10;

impl FtpDraft {
    pub(super) fn write(
        &self,
        state: &mut State,
        at: u64,
        bytes: &[u8],
    ) -> std::result::Result<(), ErrorKind> {
        let end = at.checked_add(bytes.len() as u64).ok_or(ErrorKind::TooLarge)?;
        let is_resumed = state.place == Place::Server && state.held.is_untouched();
        if is_resumed && self.is_in_order() {
            // A draft that was resumed goes on anywhere within its bytes.
            state.held = Held::from(at.min(state.length));
        }
        let is_small = state.place == Place::Memory
            && end.max(state.length) <= WHOLE_BYTES_MAX
            && self.count(state, bytes.len() as u64);
        let is_held = self.is_in_order() || is_small;
        if is_held {
            state.held.write(at, bytes).map_err(|_| out_of_order())?;
        } else {
            self.push_written(state)?;
            self.push(state, at, bytes.to_vec())?;
        }
        state.length = state.length.max(end);
        if state.there == There::Whole {
            state.there = There::Part;
        }
        if is_held && !is_small && state.held.ready() >= BLOCK_BYTES {
            let (at, bytes) = state.held.take_ready();
            self.push(state, at, bytes)?;
        }
        Ok(())
    }

    /// Counts bytes of a small file that wait in memory. Returns whether there is room for them beside those of other files.
    fn count(&self, state: &mut State, bytes: u64) -> bool {
        let held = self.ftp.held();
        let has_room = held.fetch_add(bytes, Ordering::Relaxed) + bytes <= HELD_BYTES_MAX;
        match has_room {
            true => state.counted += bytes,
            false => drop(held.fetch_sub(bytes, Ordering::Relaxed)),
        }
        has_room
    }

    /// The bytes of the file do not wait in memory any more.
    pub(super) fn uncount(&self, state: &mut State) {
        self.ftp.held().fetch_sub(std::mem::take(&mut state.counted), Ordering::Relaxed);
    }

    /// Hands all ranges that were written to the upload, each at its offset.
    fn push_written(&self, state: &mut State) -> std::result::Result<(), ErrorKind> {
        let parts = state.held.take_written();
        parts.into_iter().try_for_each(|(at, bytes)| self.push(state, at, bytes))
    }

    /// Hands bytes to the upload, which is begun if there is none.
    fn push(
        &self,
        state: &mut State,
        at: u64,
        bytes: Vec<u8>,
    ) -> std::result::Result<(), ErrorKind> {
        if bytes.is_empty() {
            return Ok(());
        }
        (state.there, state.place) = (There::Part, Place::Server);
        self.uncount(state);
        let begin = || Sending::begin(&self.ftp, self.partial.clone(), at, worth(self.size));
        let pushed = state.sending.get_or_insert_with(begin).push(at, bytes);
        if pushed.is_ok() {
            return Ok(());
        }
        // Its thread returns the reason.
        match state.sending.take().map(Sending::finish) {
            Some(Err(error)) => Err(self.ftp.refused(&self.path, error)),
            _ => Err(ErrorKind::Unreachable),
        }
    }

    /// Sends all that is held, and waits until the server has confirmed it.
    pub(super) fn finish(&self, state: &mut State) -> std::result::Result<(), ErrorKind> {
        let was = state.there;
        if was == There::Whole {
            return Ok(());
        }
        match (state.place, self.is_in_order()) {
            (Place::Memory, _) => {
                state.there = There::Part;
                self.put_whole(state.held.bytes(), was)?;
                self.uncount(state);
                state.there = There::Whole;
                return Ok(());
            }
            (Place::Server, true) => {
                let (at, bytes) = state.held.take_all();
                self.push(state, at, bytes)?;
            }
            (Place::Server, false) => self.push_written(state)?,
        }
        if let Some(sending) = state.sending.take() {
            sending.finish().map_err(|error| self.ftp.refused(&self.path, error))?;
        }
        state.there = There::Whole;
        Ok(())
    }

    /// Stores a file that is in memory.
    pub(super) fn put_whole(&self, bytes: &[u8], was: There) -> std::result::Result<(), ErrorKind> {
        let path = self.partial.as_slice();
        // The file of an earlier sync may be longer. An empty one has no bytes that make it.
        let emptied = match was != There::Nothing || bytes.is_empty() {
            true => self.ftp.with_retries(|channel| channel.empty(path)),
            false => Ok(()),
        };
        let sent = emptied.and_then(|()| match bytes {
            [] => Ok(()),
            bytes => {
                let connections_max = worth(Some(bytes.len() as u64));
                let mut sending = Sending::begin(&self.ftp, path.to_vec(), 0, connections_max);
                // Its thread returns the reason of a failure.
                let _ = sending.push(0, bytes.to_vec());
                sending.finish()
            }
        });
        sent.map_err(|error| self.ftp.refused(&self.path, error))
    }

    pub(super) fn set_end(
        &self,
        state: &mut State,
        length: u64,
    ) -> std::result::Result<(), ErrorKind> {
        if length == state.length {
            return Ok(());
        }
        if state.place == Place::Memory || self.is_in_order() {
            state.held.set_end(length).map_err(|_| out_of_order())?;
        } else if length > state.length {
            // The bytes between are those of a hole.
            self.push(state, length - 1, vec![0])?;
        } else {
            return Err(out_of_order());
        }
        state.length = length;
        if state.there == There::Whole {
            state.there = There::Part;
        }
        Ok(())
    }
}

/// Data connections that are worth opening for a file of this size.
fn worth(size: Option<u64>) -> u32 {
    let worth = size.unwrap_or(u64::MAX).div_ceil(CONNECTION_BYTES_MIN);
    u32::try_from(worth).unwrap_or(u32::MAX).max(1)
}

/// A write that the order of the store does not allow.
fn out_of_order() -> ErrorKind {
    ErrorKind::from(io::Error::from(io::ErrorKind::InvalidInput))
}
