//! SOCKS: version 5 without authentication (RFC 1928), and versions 4 and 4a. CONNECT only: BIND and UDP are refused.
//!
//! Names go to the far gateway as they are. The readers take what has arrived and say whether it is enough.

#[cfg(test)]
mod tests;

use hikyaku_forward::{Answer, Host, Target, Verdict};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// The version that a program speaks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Version {
    /// Versions 4 and 4a.
    Four,
    /// Version 5.
    Five,
}

/// What a program has said, and how many bytes that were.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Asked {
    /// The greeting of version 5; this is the answer to it.
    Greeting(usize, [u8; 2]),
    /// A connection.
    Connect(usize, Target),
    /// More bytes are to come.
    Incomplete,
    /// Something that cannot be done; this is the answer.
    Refused(Vec<u8>),
    /// No SOCKS.
    Nonsense,
}

/// A request of version 4 has a name of the user and of the host, of which each is shorter.
const NAME_BYTES_MAX: usize = 256;
const CONNECT: u8 = 1;
const NO_AUTHENTICATION: u8 = 0;
const NO_ACCEPTABLE_METHOD: u8 = 0xff;

/// A conversation with a program, as far as it has come.
#[derive(Debug, Default)]
pub(crate) struct Talk {
    /// What the program has said and was not understood yet. More is added at the end.
    pub(crate) bytes: Vec<u8>,
    /// Version 5 was agreed on, and the request is to come.
    version: Option<Version>,
}

/// What comes next in a conversation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Step {
    /// The program is told this, and says more.
    Say([u8; 2]),
    /// The program has to say more.
    Hear,
    /// It wants a connection to this target. The bytes are its first ones for the server.
    Connect(Version, Target, Vec<u8>),
    /// It is told this, and the conversation is over.
    Refused(Vec<u8>),
    /// It does not speak SOCKS.
    Nonsense,
}

impl Talk {
    /// Takes what was understood out of the bytes, and tells what comes next.
    // fuzz: forward
    pub(crate) fn step(&mut self) -> Step {
        let (spoken, asked) = match self.version {
            None => read_first(&self.bytes),
            Some(spoken) => (spoken, read_five(&self.bytes)),
        };
        match asked {
            Asked::Greeting(length, reply) if self.version.is_none() => {
                self.bytes.drain(..length);
                self.version = Some(spoken);
                Step::Say(reply)
            }
            Asked::Connect(length, target) => {
                Step::Connect(spoken, target, self.bytes.split_off(length))
            }
            Asked::Refused(words) => Step::Refused(words),
            Asked::Incomplete => Step::Hear,
            Asked::Nonsense | Asked::Greeting(..) => Step::Nonsense,
        }
    }
}

/// Reads the first words of a program.
// fuzz: forward
pub(crate) fn read_first(bytes: &[u8]) -> (Version, Asked) {
    match bytes.first() {
        Some(5) => (Version::Five, greeting(bytes)),
        Some(4) => (Version::Four, read_four(bytes)),
        Some(_) => (Version::Five, Asked::Nonsense),
        None => (Version::Five, Asked::Incomplete),
    }
}

fn greeting(bytes: &[u8]) -> Asked {
    let Some(&count) = bytes.get(1) else { return Asked::Incomplete };
    match bytes.get(2..2 + usize::from(count)) {
        None => Asked::Incomplete,
        Some(methods) if methods.contains(&NO_AUTHENTICATION) => {
            Asked::Greeting(2 + methods.len(), [5, NO_AUTHENTICATION])
        }
        Some(_) => Asked::Refused(vec![5, NO_ACCEPTABLE_METHOD]),
    }
}

/// Reads the request of version 5.
// fuzz: forward
pub(crate) fn read_five(bytes: &[u8]) -> Asked {
    let Some(&[version, command, _, kind, first]) = bytes.first_chunk() else {
        return Asked::Incomplete;
    };
    if version != 5 {
        return Asked::Nonsense;
    }
    let length = match kind {
        1 => 4,
        3 => 1 + usize::from(first),
        4 => 16,
        _ => return Asked::Refused(five(ADDRESS_TYPE_NOT_SUPPORTED, None)),
    };
    let (Some(address), Some(port)) =
        (bytes.get(4..4 + length), bytes.get(4 + length..).and_then(<[u8]>::first_chunk))
    else {
        return Asked::Incomplete;
    };
    if command != CONNECT {
        return Asked::Refused(five(COMMAND_NOT_SUPPORTED, None));
    }
    let host = match (address.first_chunk::<4>(), address.first_chunk::<16>()) {
        (Some(v4), _) if kind == 1 => Some(Host::Address(Ipv4Addr::from(*v4).into())),
        (_, Some(v6)) if kind == 4 => Some(Host::Address(Ipv6Addr::from(*v6).into())),
        _ => name(&address[1..]),
    };
    match target(host, u16::from_be_bytes(*port)) {
        Some(target) => Asked::Connect(4 + length + 2, target),
        None => Asked::Refused(five(GENERAL_FAILURE, None)),
    }
}

/// Reads a request of version 4, and of 4a, in which the address 0.0.0.x stands for a name that follows.
// fuzz: forward
fn read_four(bytes: &[u8]) -> Asked {
    let Some(&[_, command, p, q, a, b, c, d]) = bytes.first_chunk() else {
        return Asked::Incomplete;
    };
    let Some((user, after)) = text(&bytes[8..]) else { return unended(&bytes[8..]) };
    if command != CONNECT {
        return Asked::Refused(four(FOUR_FAILED));
    }
    let mut length = 8 + user.len() + 1;
    let host = if [a, b, c] == [0; 3] && d != 0 {
        let Some((host, _)) = text(after) else { return unended(after) };
        length += host.len() + 1;
        name(host)
    } else {
        Some(Host::Address(Ipv4Addr::new(a, b, c, d).into()))
    };
    match target(host, u16::from_be_bytes([p, q])) {
        Some(target) => Asked::Connect(length, target),
        None => Asked::Refused(four(FOUR_FAILED)),
    }
}

/// The bytes up to a zero, and those behind it.
fn text(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = bytes.iter().position(|&byte| byte == 0)?;
    Some((&bytes[..end], &bytes[end + 1..]))
}

fn unended(bytes: &[u8]) -> Asked {
    if bytes.len() > NAME_BYTES_MAX { Asked::Nonsense } else { Asked::Incomplete }
}

fn name(bytes: &[u8]) -> Option<Host> {
    std::str::from_utf8(bytes).ok().and_then(|text| Host::parse(text).ok())
}

fn target(host: Option<Host>, port: u16) -> Option<Target> {
    host.filter(|_| port != 0).map(|host| Target { host, port })
}

const GENERAL_FAILURE: u8 = 1;
const NOT_ALLOWED: u8 = 2;
const NETWORK_UNREACHABLE: u8 = 3;
const HOST_UNREACHABLE: u8 = 4;
const CONNECTION_REFUSED: u8 = 5;
const TTL_EXPIRED: u8 = 6;
const COMMAND_NOT_SUPPORTED: u8 = 7;
const ADDRESS_TYPE_NOT_SUPPORTED: u8 = 8;
const FOUR_GRANTED: u8 = 90;
const FOUR_FAILED: u8 = 91;

/// The reply to a request (RFC 1928, section 6).
pub(crate) fn reply(version: Version, answer: &Answer) -> Vec<u8> {
    let code = match answer.verdict {
        Verdict::Connected => 0,
        Verdict::Refused => CONNECTION_REFUSED,
        Verdict::NetworkUnreachable => NETWORK_UNREACHABLE,
        Verdict::HostUnreachable | Verdict::NameNotFound => HOST_UNREACHABLE,
        Verdict::TimedOut => TTL_EXPIRED,
        Verdict::NotAllowed => NOT_ALLOWED,
        Verdict::OutOfResources | Verdict::NotUnderstood => GENERAL_FAILURE,
    };
    match version {
        Version::Five => five(code, answer.bound),
        Version::Four => four(if code == 0 { FOUR_GRANTED } else { FOUR_FAILED }),
    }
}

fn five(code: u8, bound: Option<SocketAddr>) -> Vec<u8> {
    let mut out = vec![5, code, 0];
    let bound = bound.unwrap_or_else(|| SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), 0));
    match bound.ip() {
        IpAddr::V4(address) => {
            out.push(1);
            out.extend(address.octets());
        }
        IpAddr::V6(address) => {
            out.push(4);
            out.extend(address.octets());
        }
    }
    out.extend(bound.port().to_be_bytes());
    out
}

fn four(code: u8) -> Vec<u8> {
    vec![0, code, 0, 0, 0, 0, 0, 0]
}
