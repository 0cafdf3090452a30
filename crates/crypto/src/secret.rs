//! A secret that two ends were given over another channel, before the first packet.
//!
//! A client's first packet carries a MAC under it, so that a listener can be silent to everybody else: to a
//! scan of its ports it does not exist. Who has seen that packet can repeat its token, so it proves nothing
//! of the client; keys do that ([`crate::ServerCredentials::mutual`]).

use crate::random::random_array;
use aws_lc_rs::hmac;
use hikyaku_proto::ConnectionId;
use std::fmt;
use std::str::FromStr;
use zeroize::Zeroizing;

#[cfg(test)]
mod tests;

const LEN: usize = 32;

/// 32 random bytes that both ends know and nobody else.
#[derive(Clone)]
pub struct Secret(Zeroizing<[u8; LEN]>);

impl Secret {
    /// A new one.
    pub fn generate() -> Self {
        Self(Zeroizing::new(random_array()))
    }

    /// The token of a first packet to `destination`.
    pub fn token(&self, destination: ConnectionId) -> Vec<u8> {
        hmac::sign(&self.key(), &invitation(destination)).as_ref().to_vec()
    }

    /// Whether `token` was made with this secret for a first packet to `destination`.
    // fuzz: strangers
    pub fn admits(&self, destination: ConnectionId, token: &[u8]) -> bool {
        hmac::verify(&self.key(), &invitation(destination), token).is_ok()
    }

    /// The secret in hexadecimal digits, for a channel that is as secret as it is.
    pub fn to_hex(&self) -> Zeroizing<String> {
        Zeroizing::new(self.0.iter().map(|byte| format!("{byte:02x}")).collect())
    }

    fn key(&self) -> hmac::Key {
        hmac::Key::new(hmac::HMAC_SHA256, &self.0[..])
    }
}

fn invitation(destination: ConnectionId) -> Vec<u8> {
    let mut bytes = b"hikyaku first packet ".to_vec();
    bytes.extend_from_slice(&destination.0.to_le_bytes());
    bytes
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// A text that is no secret. It is not repeated: it may nearly be one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("not a secret: expected 64 hexadecimal digits")]
pub struct NotASecret;

impl FromStr for Secret {
    type Err = NotASecret;

    // fuzz: lines
    fn from_str(text: &str) -> Result<Self, NotASecret> {
        if text.len() != 2 * LEN || !text.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return Err(NotASecret);
        }
        let mut bytes = Zeroizing::new([0; LEN]);
        for (byte, at) in bytes.iter_mut().zip((0..).step_by(2)) {
            *byte = u8::from_str_radix(&text[at..at + 2], 16).map_err(|_| NotASecret)?;
        }
        Ok(Self(bytes))
    }
}
