//! A secret that both ends received over another channel before the first packet.
//!
//! The client's first packet carries a MAC under this secret. A listener ignores all other first
//! packets, so a port scan does not find it. An attacker who has seen the packet can replay its
//! token; the token therefore does not authenticate the client. Keys do that
//! ([`crate::ServerCredentials::mutual`]).

use crate::random::random_array;
use aws_lc_rs::hmac;
use hikyaku_proto::ConnectionId;
use std::fmt;
use std::str::FromStr;
use zeroize::Zeroizing;

#[cfg(test)]
mod tests;

const SECRET_BYTES: usize = 32;

/// A shared secret of 32 random bytes.
#[derive(Clone)]
pub struct Secret(Zeroizing<[u8; SECRET_BYTES]>);

impl Secret {
    /// Generates a new secret.
    pub fn generate() -> Self {
        Self(Zeroizing::new(random_array()))
    }

    /// The token for a first packet to `destination`: HMAC-SHA-256 under the secret.
    pub fn token(&self, destination: ConnectionId) -> Vec<u8> {
        hmac::sign(&self.key(), &invitation(destination)).as_ref().to_vec()
    }

    /// Whether `token` was made with this secret for a first packet to `destination`.
    // fuzz: strangers
    pub fn admits(&self, destination: ConnectionId, token: &[u8]) -> bool {
        hmac::verify(&self.key(), &invitation(destination), token).is_ok()
    }

    /// The secret in 64 hexadecimal digits, to be passed over a confidential channel.
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

/// The text is not a secret. The error does not contain the text, because it may be a mistyped
/// secret.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("not a secret: expected 64 hexadecimal digits")]
pub struct NotASecret;

impl FromStr for Secret {
    type Err = NotASecret;

    // fuzz: lines
    fn from_str(text: &str) -> Result<Self, NotASecret> {
        if text.len() != 2 * SECRET_BYTES || !text.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return Err(NotASecret);
        }
        let mut bytes = Zeroizing::new([0; SECRET_BYTES]);
        for (byte, at) in bytes.iter_mut().zip((0..).step_by(2)) {
            *byte = u8::from_str_radix(&text[at..at + 2], 16).map_err(|_| NotASecret)?;
        }
        Ok(Self(bytes))
    }
}
