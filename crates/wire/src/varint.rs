//! Variable-length integers (RFC 9000, section 16), and the reader of a peer's bytes.

use crate::error::DecodeError;
use alloc::vec::Vec;

/// Appends `value` in the shortest of 1, 2, 4 or 8 bytes. Values above 2^62 - 1 are clamped; no
/// quantity of the protocol reaches that.
pub fn put_varint(out: &mut Vec<u8>, value: u64) {
    match value {
        0..=0x3f => out.push(value as u8),
        0x40..=0x3fff => out.extend_from_slice(&(value as u16 | 0x4000).to_be_bytes()),
        0x4000..=0x3fff_ffff => out.extend_from_slice(&(value as u32 | 0x8000_0000).to_be_bytes()),
        _ => out.extend_from_slice(&(value.min((1 << 62) - 1) | (3 << 62)).to_be_bytes()),
    }
}

/// The length of the encoding by [`put_varint`] in bytes.
pub const fn varint_len(value: u64) -> usize {
    match value {
        0..=0x3f => 1,
        0x40..=0x3fff => 2,
        0x4000..=0x3fff_ffff => 4,
        _ => 8,
    }
}

/// Reads fields from a peer's bytes. Every read beyond the end fails with
/// [`DecodeError::Truncated`].
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// A reader at the start of `bytes`.
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// The bytes not read yet.
    pub const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Whether all bytes have been read.
    pub const fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// The next `n` bytes.
    pub fn bytes(&mut self, n: usize) -> Result<&'a [u8], DecodeError> {
        let (head, rest) = self.rest.split_at_checked(n).ok_or(DecodeError::Truncated)?;
        self.rest = rest;
        Ok(head)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let (head, rest) = self.rest.split_first_chunk::<N>().ok_or(DecodeError::Truncated)?;
        self.rest = rest;
        Ok(*head)
    }

    /// One byte.
    pub fn u8(&mut self) -> Result<u8, DecodeError> {
        Ok(self.array::<1>()?[0])
    }

    /// Two bytes, little endian.
    pub fn u16(&mut self) -> Result<u16, DecodeError> {
        self.array().map(u16::from_le_bytes)
    }

    /// Four bytes, little endian.
    pub fn u32(&mut self) -> Result<u32, DecodeError> {
        self.array().map(u32::from_le_bytes)
    }

    /// Eight bytes, little endian.
    pub fn u64(&mut self) -> Result<u64, DecodeError> {
        self.array().map(u64::from_le_bytes)
    }

    /// A variable-length integer.
    pub fn varint(&mut self) -> Result<u64, DecodeError> {
        let first = *self.rest.first().ok_or(DecodeError::Truncated)?;
        let value = match first >> 6 {
            0 => u64::from(self.u8()?),
            1 => u64::from(u16::from_be_bytes(self.array()?) & 0x3fff),
            2 => u64::from(u32::from_be_bytes(self.array()?) & 0x3fff_ffff),
            _ => u64::from_be_bytes(self.array()?) & ((1 << 62) - 1),
        };
        Ok(value)
    }

    /// Reads a length: a variable-length integer that is at most the number of bytes left.
    pub fn length(&mut self) -> Result<usize, DecodeError> {
        let len = usize::try_from(self.varint()?).map_err(|_| DecodeError::Truncated)?;
        if len > self.rest.len() { Err(DecodeError::Truncated) } else { Ok(len) }
    }
}

#[cfg(test)]
mod tests;
