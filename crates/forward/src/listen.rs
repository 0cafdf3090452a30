//! Listeners of the far gateway (`-R`): what the near gateway asks for, what becomes of it, and the flows that come in there.

use crate::fields::{Fields, MessageError, VERSION, put_address, put_text};
use crate::goal::SocketPath;
use alloc::string::String;
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Asks the far gateway to listen. The near gateway sends it behind its hello.
///
/// | field | bytes |
/// |---|---|
/// | version | 1 |
/// | kind | 1: a port is 1, a Unix socket 2 |
/// | number | 4: the near gateway's own |
/// | port | address: 1 for the kind (0: loopback, 4, 6), and 0, 4 or 16 bytes; port, 2 (0: any) |
/// | Unix socket | 1 for the length, and the path |
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Listen {
    /// The number of the listener.
    pub listener: u32,
    /// Where.
    pub at: At,
}

/// Where a gateway listens.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum At {
    /// At a port of TCP; 0 is any that is free.
    Port {
        /// The address; `None` is loopback of both families.
        address: Option<IpAddr>,
        /// The port.
        port: u16,
    },
    /// At a Unix socket, which does not exist yet.
    Socket(SocketPath),
}

/// The result of a [`Listen`].
///
/// | field | bytes |
/// |---|---|
/// | kind | 1: 2, which no report begins with |
/// | number | 4 |
/// | result | 1: 0 is refused, 1 is done |
/// | port | 2, if it is done; 0 for a Unix socket |
/// | text | 1 for the length, and at most 200, if it is refused |
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Listening {
    /// The number of the listener.
    pub listener: u32,
    /// The port, or why there is none.
    pub result: Result<u16, String>,
}

/// The first message of a flow that has come in at a listener of the far gateway, which opens the stream. The near gateway
/// answers as the far one does.
///
/// | field | bytes |
/// |---|---|
/// | version | 1 |
/// | kind | 1: 3 |
/// | number of the listener | 4 |
/// | program | 1: 0 for none, 4 or 6; then 4 or 16 bytes and the port, 2 |
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Arrived {
    /// The number of the listener.
    pub listener: u32,
    /// Where the program is; `None` at a Unix socket.
    pub program: Option<SocketAddr>,
}

const PORT: u8 = 1;
const SOCKET: u8 = 2;
const ARRIVED: u8 = 3;
const LISTENING: u8 = 2;
const NONE: u8 = 0;
const REFUSED: u8 = 0;
const DONE: u8 = 1;
const TEXT_BYTES_MAX: u8 = 200;

impl Listen {
    /// The message, without its length.
    pub fn encode(&self) -> Vec<u8> {
        let kind = match self.at {
            At::Port { .. } => PORT,
            At::Socket(_) => SOCKET,
        };
        let mut out = Vec::from([VERSION, kind]);
        out.extend_from_slice(&self.listener.to_be_bytes());
        match &self.at {
            At::Port { address, port } => {
                match address {
                    None => out.push(NONE),
                    Some(address) => put_address(&mut out, *address),
                }
                out.extend_from_slice(&port.to_be_bytes());
            }
            At::Socket(path) => path.put(&mut out),
        }
        out
    }

    /// Reads a message.
    ///
    /// # Errors
    ///
    /// It is of another version, or is no such message.
    // fuzz: forward
    pub fn decode(message: &[u8]) -> Result<Self, MessageError> {
        let mut fields = Fields::new(message);
        fields.version()?;
        let kind = fields.byte()?;
        let listener = fields.word()?;
        let at = match kind {
            PORT => {
                let address = match fields.byte()? {
                    NONE => None,
                    family => Some(fields.address(family)?),
                };
                At::Port { address, port: fields.short()? }
            }
            SOCKET => At::Socket(SocketPath::read(&mut fields)?),
            value => return Err(MessageError::Value { field: "the kind of a listener", value }),
        };
        fields.end()?;
        Ok(Self { listener, at })
    }
}

impl At {
    /// The addresses of a port that are listened on.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        match self {
            Self::Port { address: Some(address), port } => {
                Vec::from([SocketAddr::new(*address, *port)])
            }
            Self::Port { address: None, port } => Vec::from([
                SocketAddr::new(Ipv4Addr::LOCALHOST.into(), *port),
                SocketAddr::new(Ipv6Addr::LOCALHOST.into(), *port),
            ]),
            Self::Socket(_) => Vec::new(),
        }
    }
}

impl Listening {
    /// Whether a message is one of these, and no report.
    pub fn is_one(message: &[u8]) -> bool {
        message.first() == Some(&LISTENING)
    }

    /// The message, without its length.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::from([LISTENING]);
        out.extend_from_slice(&self.listener.to_be_bytes());
        match &self.result {
            Ok(port) => {
                out.push(DONE);
                out.extend_from_slice(&port.to_be_bytes());
            }
            Err(text) => {
                out.push(REFUSED);
                put_text(&mut out, text, TEXT_BYTES_MAX);
            }
        }
        out
    }

    /// Reads a message.
    ///
    /// # Errors
    ///
    /// It is no such message.
    // fuzz: forward
    pub fn decode(message: &[u8]) -> Result<Self, MessageError> {
        let mut fields = Fields::new(message);
        match fields.byte()? {
            LISTENING => {}
            value => return Err(MessageError::Value { field: "the kind of a message", value }),
        }
        let listener = fields.word()?;
        let plain = |c: char| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c };
        let result = match fields.byte()? {
            DONE => Ok(fields.short()?),
            REFUSED => Err(fields.text()?.chars().map(plain).collect::<String>()),
            value => return Err(MessageError::Value { field: "a result", value }),
        };
        fields.end()?;
        Ok(Self { listener, result })
    }
}

impl Arrived {
    /// The message, without its length.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::from([VERSION, ARRIVED]);
        out.extend_from_slice(&self.listener.to_be_bytes());
        match self.program {
            None => out.push(NONE),
            Some(program) => {
                put_address(&mut out, program.ip());
                out.extend_from_slice(&program.port().to_be_bytes());
            }
        }
        out
    }

    /// Reads a message.
    ///
    /// # Errors
    ///
    /// It is of another version, or is no such message.
    // fuzz: forward
    pub fn decode(message: &[u8]) -> Result<Self, MessageError> {
        let mut fields = Fields::new(message);
        fields.version()?;
        match fields.byte()? {
            ARRIVED => {}
            value => return Err(MessageError::Value { field: "the kind of a flow", value }),
        }
        let listener = fields.word()?;
        let program = match fields.byte()? {
            NONE => None,
            family => Some(SocketAddr::new(fields.address(family)?, fields.short()?)),
        };
        fields.end()?;
        Ok(Self { listener, program })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::borrow::ToOwned;

    fn cut_and_longer<T>(bytes: &[u8], decode: impl Fn(&[u8]) -> Result<T, MessageError>) {
        for length in 0..bytes.len() {
            assert!(decode(&bytes[..length]).is_err(), "{bytes:?} {length}");
        }
        let longer = [bytes, &[0]].concat();
        assert_eq!(decode(&longer).err(), Some(MessageError::Long), "{bytes:?}");
    }

    #[test]
    fn messages_are_decoded_as_they_were_encoded_and_no_others() {
        let path = SocketPath::parse("/run/a.sock").unwrap();
        for at in [
            At::Port { address: None, port: 0 },
            At::Port { address: Some(Ipv4Addr::UNSPECIFIED.into()), port: 80 },
            At::Port { address: Some(Ipv6Addr::LOCALHOST.into()), port: 65_535 },
            At::Socket(path),
        ] {
            let listen = Listen { listener: 7, at };
            let bytes = listen.encode();
            assert_eq!(Listen::decode(&bytes), Ok(listen));
            cut_and_longer(&bytes, Listen::decode);
        }
        for result in [Ok(0), Ok(8080), Err("not here".to_owned()), Err(String::new())] {
            let listening = Listening { listener: 7, result };
            let bytes = listening.encode();
            assert_eq!(Listening::decode(&bytes), Ok(listening));
            assert!(Listening::is_one(&bytes) && !Listening::is_one(&[VERSION]));
            cut_and_longer(&bytes, Listening::decode);
        }
        for program in [None, Some("10.0.0.1:5".parse().unwrap()), Some("[::1]:5".parse().unwrap())]
        {
            let arrived = Arrived { listener: u32::MAX, program };
            let bytes = arrived.encode();
            assert_eq!(Arrived::decode(&bytes), Ok(arrived));
            cut_and_longer(&bytes, Arrived::decode);
        }
    }

    #[test]
    fn what_a_listener_says_has_no_control_characters() {
        let listening = Listening { listener: 1, result: Err("a\x1b[2J".to_owned()) };
        let heard = Listening::decode(&listening.encode()).unwrap();
        assert_eq!(heard.result, Err("a\u{fffd}[2J".to_owned()));
    }
}
