//! Where a flow goes: a host and a port.

use crate::fields::{Fields, MessageError, put_address, put_text};
use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::net::IpAddr;

/// The host and the port that a flow is to be connected to.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Target {
    /// The host.
    pub host: Host,
    /// The port, which is not 0.
    pub port: u16,
}

/// A host, as a program names it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Host {
    /// An address.
    Address(IpAddr),
    /// A name that the far gateway looks up. It has 1 to 255 visible ASCII characters.
    Name(String),
}

/// A text that is no host.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("a host name has 1 to 255 visible ASCII characters, and none of /@[]?#")]
pub struct BadHost;

/// Bytes of a name at most (RFC 1928, section 5: its length is one byte).
const NAME_BYTES_MAX: u8 = 255;
/// The kind of host that is a name; other kinds are families of addresses.
const NAME: u8 = 1;

impl Host {
    /// Reads a host: an address, in brackets or without, or a name.
    ///
    /// # Errors
    ///
    /// The text is empty, too long, or has characters that no name has.
    // fuzz: forward
    pub fn parse(text: &str) -> Result<Self, BadHost> {
        let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']'));
        if let Ok(address) = bare.unwrap_or(text).parse() {
            return Ok(Self::Address(address));
        }
        let is_name = |byte: u8| byte.is_ascii_graphic() && !b"/@[]?#\\\"<>".contains(&byte);
        let fits = (1..=usize::from(NAME_BYTES_MAX)).contains(&text.len());
        match fits && text.bytes().all(is_name) {
            true => Ok(Self::Name(text.to_owned())),
            false => Err(BadHost),
        }
    }
}

impl Target {
    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        match &self.host {
            Host::Address(address) => put_address(out, *address),
            Host::Name(name) => {
                out.push(NAME);
                put_text(out, name, NAME_BYTES_MAX);
            }
        }
        out.extend_from_slice(&self.port.to_be_bytes());
    }

    // fuzz: forward
    pub(crate) fn read(fields: &mut Fields<'_>) -> Result<Self, MessageError> {
        let host = match fields.byte()? {
            NAME => Host::parse(fields.text()?).map_err(|BadHost| MessageError::Host)?,
            family => Host::Address(fields.address(family)?),
        };
        match fields.short()? {
            0 => Err(MessageError::Port),
            port => Ok(Self { host, port }),
        }
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(IpAddr::V6(address)) => write!(f, "[{address}]"),
            Self::Address(IpAddr::V4(address)) => address.fmt(f),
            Self::Name(name) => f.write_str(name),
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn hosts_are_addresses_or_names() {
        for (text, wanted) in [
            ("10.0.0.1", Some("10.0.0.1")),
            ("::1", Some("[::1]")),
            ("[::1]", Some("[::1]")),
            ("a.example", Some("a.example")),
            ("xn--bcher-kva.example", Some("xn--bcher-kva.example")),
            ("my_host", Some("my_host")),
            ("", None),
            ("a b", None),
            ("a\nb", None),
            ("a/b", None),
            ("user@a", None),
            ("[::1", None),
            ("b\u{fc}cher", None),
        ] {
            let host = Host::parse(text).ok().map(|host| host.to_string());
            assert_eq!(host.as_deref(), wanted, "{text:?}");
        }
        assert!(Host::parse(&"a".repeat(255)).is_ok());
        assert_eq!(Host::parse(&"a".repeat(256)), Err(BadHost));
    }
}
