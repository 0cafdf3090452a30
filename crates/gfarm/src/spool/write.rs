//! Writing of an open file.

use super::Spool;
use crate::code::Writer;
use crate::error::CallError;
use crate::metadata::OpenFile;
use crate::request::{BLOCK_BYTES_MAX, SYNC_ALL, gfsd};

impl Spool {
    /// Begins to write an open file at `at`. Blocks follow ([`Self::write`]), which the node does not acknowledge, and an
    /// end ([`Self::end_write`]). Nothing else can be asked meanwhile.
    ///
    /// # Errors
    ///
    /// The node refuses it, or the connection has ended.
    pub fn begin_write(&mut self, file: &OpenFile, at: u64) -> Result<(), CallError> {
        self.send(|ask| ask.int(gfsd::BULKWRITE).int(file.number()).long(at.cast_signed()))?;
        self.good()?;
        self.is_usable = false;
        Ok(())
    }

    /// Sends bytes that follow those before them.
    ///
    /// # Errors
    ///
    /// The connection has ended.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), CallError> {
        for block in bytes.chunks(BLOCK_BYTES_MAX) {
            let mut length = Writer::default();
            self.link.send(length.int(block.len() as i32))?;
            self.link.send_bytes(block)?;
        }
        Ok(())
    }

    /// Ends the writing; how many bytes the node has written since its begin.
    ///
    /// # Errors
    ///
    /// The node could not write all of it, for example because its disk is full, or the connection has ended.
    pub fn end_write(&mut self) -> Result<u64, CallError> {
        self.send(|ask| ask.int(0))?;
        self.good()?;
        self.is_usable = false;
        let written = self.link.reply.count()?;
        self.is_usable = true;
        Ok(written)
    }

    /// Sets the length of an open file.
    ///
    /// # Errors
    ///
    /// The node refuses it, or the connection has ended.
    pub fn set_length(&mut self, file: &OpenFile, length: u64) -> Result<(), CallError> {
        let length = length.cast_signed();
        self.call(|ask| ask.int(gfsd::FTRUNCATE).int(file.number()).long(length))
    }

    /// Waits until the node's disk has what was written of an open file.
    ///
    /// # Errors
    ///
    /// The node's disk failed, or the connection has ended.
    pub fn sync(&mut self, file: &OpenFile) -> Result<(), CallError> {
        self.call(|ask| ask.int(gfsd::FSYNC).int(file.number()).int(SYNC_ALL))
    }
}
