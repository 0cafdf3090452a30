//! The first message of a flow: where it goes.

use crate::access::Loopback;
use crate::fields::{Fields, MessageError, VERSION};
use crate::goal::{Goal, SocketPath};
use crate::target::Target;
use alloc::vec::Vec;

/// Asks the far gateway to connect a flow.
///
/// | field | bytes |
/// |---|---|
/// | version | 1 |
/// | kind | 1: TCP is 1, a Unix socket 2 |
/// | flags | 1: bit 0 is set if the user has named the target's loopback address; 0 for a Unix socket |
/// | target | 1: 4, 6, or 1 for a name; then 4 or 16 bytes, or a length and the name; then the port, 2 |
/// | Unix socket | in place of the target: 1 for the length, and the path |
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Open {
    /// Where the flow goes.
    pub target: Goal,
    /// Whether loopback addresses of the far gateway are among the targets.
    pub loopback: Loopback,
}

const TCP: u8 = 1;
const SOCKET: u8 = 2;
const NAMES_LOOPBACK: u8 = 1;

impl Open {
    /// The message, without its length.
    pub fn encode(&self) -> Vec<u8> {
        match &self.target {
            Goal::Tcp(target) => {
                let flags = match self.loopback {
                    Loopback::Refused => 0,
                    Loopback::Named => NAMES_LOOPBACK,
                };
                let mut out = Vec::from([VERSION, TCP, flags]);
                target.put(&mut out);
                out
            }
            Goal::Socket(path) => {
                let mut out = Vec::from([VERSION, SOCKET, 0]);
                path.put(&mut out);
                out
            }
        }
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
        let loopback = match (kind, fields.byte()?) {
            (TCP | SOCKET, 0) => Loopback::Refused,
            (TCP, NAMES_LOOPBACK) => Loopback::Named,
            (TCP | SOCKET, value) => {
                return Err(MessageError::Value { field: "the flags of a flow", value });
            }
            (value, _) => return Err(MessageError::Value { field: "the kind of a flow", value }),
        };
        let target = match kind {
            TCP => Goal::Tcp(Target::read(&mut fields)?),
            _ => Goal::Socket(SocketPath::read(&mut fields)?),
        };
        fields.end()?;
        Ok(Self { target, loopback })
    }
}

#[cfg(test)]
mod tests;
