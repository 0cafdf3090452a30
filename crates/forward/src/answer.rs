//! The answer of the far gateway: connected, or why not.

use crate::access::Forbidden;
use crate::fields::{Fields, MessageError, put_address, put_text};
use alloc::borrow::ToOwned;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;
use core::net::{IpAddr, SocketAddr};

/// How connecting a flow has ended.
///
/// | field | bytes |
/// |---|---|
/// | verdict | 1 |
/// | bound address | 1: 0 for none, 4 or 6; then 4 or 16 bytes and the port, 2 |
/// | text | 1 for the length, and at most 200 |
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Answer {
    /// Connected, or why not.
    pub verdict: Verdict,
    /// The address of the far gateway's socket, if it is connected.
    pub bound: Option<SocketAddr>,
    /// More for a person, without control characters. Often empty.
    pub text: String,
}

/// Connected, or why not.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Verdict {
    /// The flow is connected.
    Connected,
    /// The host refuses connections to this port.
    Refused,
    /// There is no route to the host's network.
    NetworkUnreachable,
    /// There is no way to the host.
    HostUnreachable,
    /// The host does not answer.
    TimedOut,
    /// The far gateway does not connect flows to this address.
    NotAllowed,
    /// No host has this name, or no name server answers.
    NameNotFound,
    /// The far gateway has too much to do.
    OutOfResources,
    /// The far gateway does not understand the request.
    NotUnderstood,
}

const VERDICTS: [(Verdict, &str); 9] = [
    (Verdict::Connected, "connected"),
    (Verdict::Refused, "connection refused"),
    (Verdict::NetworkUnreachable, "network unreachable"),
    (Verdict::HostUnreachable, "host unreachable"),
    (Verdict::TimedOut, "timed out"),
    (Verdict::NotAllowed, "not allowed"),
    (Verdict::NameNotFound, "name not found"),
    (Verdict::OutOfResources, "out of resources"),
    (Verdict::NotUnderstood, "not understood"),
];

/// Bytes of the text at most.
const TEXT_BYTES_MAX: u8 = 200;

impl Answer {
    /// Connected, from this address.
    pub const fn connected(bound: Option<SocketAddr>) -> Self {
        Self { verdict: Verdict::Connected, bound, text: String::new() }
    }

    /// Not connected.
    pub fn failed(verdict: Verdict, text: &str) -> Self {
        Self { verdict, bound: None, text: text.to_owned() }
    }

    /// The message, without its length.
    pub fn encode(&self) -> Vec<u8> {
        let place = VERDICTS.iter().position(|(verdict, _)| *verdict == self.verdict);
        // The table has all verdicts, and nine places fit in a byte.
        let mut out = Vec::from([place.unwrap_or_default() as u8]);
        match self.bound {
            None => out.push(0),
            Some(bound) => {
                put_address(&mut out, bound.ip());
                out.extend_from_slice(&bound.port().to_be_bytes());
            }
        }
        put_text(&mut out, &self.text, TEXT_BYTES_MAX);
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
        let value = fields.byte()?;
        let unknown = MessageError::Value { field: "the verdict", value };
        let (verdict, _) = *VERDICTS.get(usize::from(value)).ok_or(unknown)?;
        let bound = match fields.byte()? {
            0 => None,
            family => {
                let ip: IpAddr = fields.address(family)?;
                Some(SocketAddr::new(ip, fields.short()?))
            }
        };
        let plain = |c: char| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c };
        let text = fields.text()?.chars().map(plain).collect();
        fields.end()?;
        Ok(Self { verdict, bound, text })
    }
}

impl From<Forbidden> for Answer {
    fn from(forbidden: Forbidden) -> Self {
        Self::failed(Verdict::NotAllowed, &forbidden.to_string())
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = VERDICTS.iter().find(|(verdict, _)| verdict == self).map(|(_, text)| *text);
        f.write_str(text.unwrap_or_default())
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.verdict.fmt(f)?;
        if self.text.is_empty() { Ok(()) } else { write!(f, ": {}", self.text) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples() -> Vec<Answer> {
        let mut all = Vec::from([
            Answer::connected(None),
            Answer::connected(Some("10.0.0.2:40000".parse().unwrap())),
            Answer::connected(Some("[2001:db8::1]:1".parse().unwrap())),
        ]);
        all.extend(VERDICTS.map(|(verdict, _)| Answer::failed(verdict, "why")));
        all
    }

    #[test]
    fn a_message_is_decoded_as_it_was_encoded() {
        for answer in samples() {
            assert_eq!(Answer::decode(&answer.encode()), Ok(answer));
        }
    }

    #[test]
    fn every_cut_and_every_longer_message_is_refused() {
        for answer in samples() {
            let mut bytes = answer.encode();
            for length in 0..bytes.len() {
                assert!(Answer::decode(&bytes[..length]).is_err(), "{answer:?} {length}");
            }
            bytes.push(0);
            assert_eq!(Answer::decode(&bytes), Err(MessageError::Long));
        }
        assert!(Answer::decode(&[9, 0, 0]).is_err());
    }

    #[test]
    fn a_long_text_is_cut_at_a_character_and_control_characters_are_replaced() {
        let long = Answer::failed(Verdict::Refused, &"\u{e9}".repeat(150));
        let read = Answer::decode(&long.encode()).unwrap();
        assert_eq!(read.text, "\u{e9}".repeat(100));
        let bell = Answer::failed(Verdict::Refused, "a\u{7}\u{1b}[2J");
        assert!(!Answer::decode(&bell.encode()).unwrap().text.contains(char::is_control));
    }

    #[test]
    fn random_bytes_cause_no_panic() {
        let mut rng = fastrand::Rng::with_seed(2);
        for _ in 0..20_000 {
            let bytes: Vec<u8> = (0..rng.usize(..40)).map(|_| rng.u8(..12)).collect();
            let _ = Answer::decode(&bytes);
        }
    }
}
