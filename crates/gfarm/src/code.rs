//! How Gfarm encodes values.
//!
//! Integers are big-endian, of 4 bytes (`i`) or 8 bytes (`l`). Byte strings and texts (`b`, `s`) are a length of 4 bytes,
//! then the bytes. Nothing is padded, and a message has neither a length nor a number: what it consists of follows from the
//! request. A reply begins with an error number; if that is not 0, nothing follows.

use crate::error::{CallError, Code};
use std::io::Read;

/// The most bytes of a name, a user or a host that a server may send.
pub(crate) const TEXT_BYTES_MAX: usize = 4096;

/// Requests that are sent together.
#[derive(Clone, Debug, Default)]
pub(crate) struct Writer {
    bytes: Vec<u8>,
}

impl Writer {
    pub(crate) fn int(&mut self, value: i32) -> &mut Self {
        self.bytes.extend_from_slice(&value.to_be_bytes());
        self
    }

    pub(crate) fn long(&mut self, value: i64) -> &mut Self {
        self.bytes.extend_from_slice(&value.to_be_bytes());
        self
    }

    /// A byte string. Its length fits, because callers send names, keys and blocks of at most a mebibyte.
    pub(crate) fn string(&mut self, bytes: &[u8]) -> &mut Self {
        self.int(i32::try_from(bytes.len()).unwrap_or(i32::MAX));
        self.bytes.extend_from_slice(bytes);
        self
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
    }
}

/// Replies as they come.
#[derive(Debug)]
pub(crate) struct Reader<R> {
    source: R,
}

impl<R: Read> Reader<R> {
    pub(crate) const fn new(source: R) -> Self {
        Self { source }
    }

    pub(crate) const fn source(&self) -> &R {
        &self.source
    }

    /// The beginning of a reply: an error number.
    pub(crate) fn good(&mut self) -> Result<(), CallError> {
        match self.int()? {
            0 => Ok(()),
            number => Err(CallError::Refused(Code(number))),
        }
    }

    pub(crate) fn int(&mut self) -> Result<i32, CallError> {
        let mut bytes = [0; 4];
        self.fill(&mut bytes)?;
        Ok(i32::from_be_bytes(bytes))
    }

    pub(crate) fn long(&mut self) -> Result<i64, CallError> {
        let mut bytes = [0; 8];
        self.fill(&mut bytes)?;
        Ok(i64::from_be_bytes(bytes))
    }

    /// A number that is never negative: an inode, a size, a generation.
    pub(crate) fn count(&mut self) -> Result<u64, CallError> {
        u64::try_from(self.long()?).map_err(|_| CallError::Protocol("a negative number"))
    }

    /// How many entries follow, at most `most`.
    pub(crate) fn entries(&mut self, most: usize) -> Result<usize, CallError> {
        let count = usize::try_from(self.int()?);
        let count = count.ok().filter(|&count| count <= most);
        count.ok_or(CallError::Protocol("more entries than can be held"))
    }

    /// A name, a user or a host.
    pub(crate) fn text(&mut self) -> Result<Vec<u8>, CallError> {
        let length = self.entries(TEXT_BYTES_MAX)?;
        let mut bytes = vec![0; length];
        self.fill(&mut bytes)?;
        Ok(bytes)
    }

    /// A name of a host or a user, which is ASCII in practice.
    pub(crate) fn word(&mut self) -> Result<String, CallError> {
        Ok(String::from_utf8_lossy(&self.text()?).into_owned())
    }

    /// A byte string into `into`; the part that was filled.
    pub(crate) fn block<'a>(&mut self, into: &'a mut [u8]) -> Result<&'a [u8], CallError> {
        let length = self.entries(into.len())?;
        let into = &mut into[..length];
        self.fill(into)?;
        Ok(into)
    }

    /// Bytes without a length.
    pub(crate) fn fill(&mut self, into: &mut [u8]) -> Result<(), CallError> {
        Ok(self.source.read_exact(into)?)
    }
}

#[cfg(test)]
mod tests;
