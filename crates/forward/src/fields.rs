//! Fields of a message: numbers are big-endian, and every length is checked against what has arrived.

use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Why bytes are not a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum MessageError {
    /// A field reaches beyond the end of the message.
    #[error("a message that ends before its fields")]
    Short,
    /// The message goes on after its last field.
    #[error("a message that goes on after its fields")]
    Long,
    /// The message announces more bytes than any message has.
    #[error("a message of {0} bytes, which is too long")]
    TooLong(usize),
    /// The other end speaks another version of these messages.
    #[error("messages of version {0}, and this program speaks version {VERSION}")]
    Version(u8),
    /// A field has a value that means nothing.
    #[error("a message in which {field} is {value}")]
    Value {
        /// The field.
        field: &'static str,
        /// Its value.
        value: u8,
    },
    /// A host name that no host has.
    #[error("a message with an invalid host name")]
    Host,
    /// A port that no server has.
    #[error("a message with the port 0")]
    Port,
    /// A path that no Unix socket has.
    #[error("a message with an invalid path of a Unix socket")]
    Socket,
    /// A text that is not UTF-8.
    #[error("a message with a text that is not UTF-8")]
    Text,
}

/// The version of all messages.
pub(crate) const VERSION: u8 = 1;

const V4: u8 = 4;
const V6: u8 = 6;

/// The rest of a message that is read.
pub(crate) struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    pub(crate) const fn new(message: &'a [u8]) -> Self {
        Self(message)
    }

    pub(crate) fn bytes(&mut self, length: usize) -> Result<&'a [u8], MessageError> {
        let (bytes, rest) = self.0.split_at_checked(length).ok_or(MessageError::Short)?;
        self.0 = rest;
        Ok(bytes)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], MessageError> {
        let (bytes, rest) = self.0.split_first_chunk().ok_or(MessageError::Short)?;
        self.0 = rest;
        Ok(*bytes)
    }

    pub(crate) fn byte(&mut self) -> Result<u8, MessageError> {
        Ok(self.array::<1>()?[0])
    }

    pub(crate) fn short(&mut self) -> Result<u16, MessageError> {
        self.array().map(u16::from_be_bytes)
    }

    pub(crate) fn word(&mut self) -> Result<u32, MessageError> {
        self.array().map(u32::from_be_bytes)
    }

    pub(crate) fn version(&mut self) -> Result<(), MessageError> {
        match self.byte()? {
            VERSION => Ok(()),
            other => Err(MessageError::Version(other)),
        }
    }

    /// A text of at most 255 bytes.
    pub(crate) fn text(&mut self) -> Result<&'a str, MessageError> {
        let length = self.byte()?;
        let bytes = self.bytes(usize::from(length))?;
        core::str::from_utf8(bytes).map_err(|_| MessageError::Text)
    }

    /// An address of the family that was read before.
    pub(crate) fn address(&mut self, family: u8) -> Result<IpAddr, MessageError> {
        match family {
            V4 => self.array::<4>().map(|bytes| Ipv4Addr::from(bytes).into()),
            V6 => self.array::<16>().map(|bytes| Ipv6Addr::from(bytes).into()),
            value => Err(MessageError::Value { field: "the kind of an address", value }),
        }
    }

    /// The message ends here.
    pub(crate) fn end(self) -> Result<(), MessageError> {
        self.0.is_empty().then_some(()).ok_or(MessageError::Long)
    }
}

/// Appends a text of at most 255 bytes; what is longer is cut at a character.
pub(crate) fn put_text(out: &mut Vec<u8>, text: &str, most: u8) {
    let mut length = text.len().min(usize::from(most));
    while !text.is_char_boundary(length) {
        length -= 1;
    }
    // `most` is a byte, so the length is one.
    out.push(length as u8);
    out.extend_from_slice(&text.as_bytes()[..length]);
}

/// Appends the family and the bytes of an address.
pub(crate) fn put_address(out: &mut Vec<u8>, address: IpAddr) {
    match address {
        IpAddr::V4(address) => {
            out.push(V4);
            out.extend_from_slice(&address.octets());
        }
        IpAddr::V6(address) => {
            out.push(V6);
            out.extend_from_slice(&address.octets());
        }
    }
}
