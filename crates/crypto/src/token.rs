//! Retry tokens: a client proves that it receives at its address by returning the token that was
//! sent there. The listener stores only one key, no state for the client.

use crate::random::random_array;
use aws_lc_rs::hmac;
use core::time::Duration;
use hikyaku_proto::ConnectionId;
use hikyaku_units::Instant;
use std::net::{IpAddr, SocketAddr};

#[cfg(test)]
mod tests;

/// How long a token is valid. It allows many round trips, and is too short to collect tokens for a
/// later attack.
const TOKEN_LIFETIME: Duration = Duration::from_secs(10);
const TIME_BYTES: usize = 8;

/// The key that authenticates one listener's tokens. It is generated when the listener starts and
/// never stored, so tokens of an earlier run are refused.
pub struct TokenKey(hmac::Key);

impl TokenKey {
    /// Generates a random key.
    pub fn generate() -> Self {
        Self(hmac::Key::new(hmac::HMAC_SHA256, &random_array::<32>()))
    }

    /// A token for a client at `address` whose first packet was sent to the id `destination`.
    pub fn mint(&self, now: Instant, address: SocketAddr, destination: ConnectionId) -> Vec<u8> {
        let mut token = now.as_nanos().to_le_bytes().to_vec();
        let tag = hmac::sign(&self.0, &statement(now, address, destination));
        token.extend_from_slice(tag.as_ref());
        token
    }

    /// Whether `token` was minted with this key for this client at most ten seconds ago. The
    /// comparison runs in constant time.
    // fuzz: strangers
    pub fn check(
        &self,
        now: Instant,
        address: SocketAddr,
        destination: ConnectionId,
        token: &[u8],
    ) -> bool {
        let Some((time, tag)) = token.split_first_chunk::<TIME_BYTES>() else { return false };
        let minted = Instant::from_nanos(u64::from_le_bytes(*time));
        let is_ours = hmac::verify(&self.0, &statement(minted, address, destination), tag).is_ok();
        is_ours && minted <= now && now.since(minted) <= TOKEN_LIFETIME
    }
}

/// The message that the tag authenticates. All fields have a fixed length, so the encoding is
/// unambiguous.
fn statement(minted: Instant, address: SocketAddr, destination: ConnectionId) -> Vec<u8> {
    let ip = match address.ip() {
        IpAddr::V4(ip) => ip.to_ipv6_mapped(),
        IpAddr::V6(ip) => ip,
    };
    let mut bytes = b"hikyaku retry ".to_vec();
    bytes.extend_from_slice(&minted.as_nanos().to_le_bytes());
    bytes.extend_from_slice(&ip.octets());
    bytes.extend_from_slice(&address.port().to_le_bytes());
    bytes.extend_from_slice(&destination.0.to_le_bytes());
    bytes
}
