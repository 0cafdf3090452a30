//! Retry tokens: a client shows that it receives at its address by repeating what it was sent
//! there. The listener keeps nothing but one key.

use crate::random::random_array;
use aws_lc_rs::hmac;
use core::time::Duration;
use hikyaku_proto::ConnectionId;
use hikyaku_units::Instant;
use std::net::{IpAddr, SocketAddr};

#[cfg(test)]
mod tests;

/// A token is good for this long: many round trips, too short to collect them.
const LIFETIME: Duration = Duration::from_secs(10);
const TIME_LEN: usize = 8;

/// The key of one listener's tokens. Made at its start and never stored: tokens of another run are
/// refused.
pub struct TokenKey(hmac::Key);

impl TokenKey {
    /// A key from random bytes.
    pub fn generate() -> Self {
        Self(hmac::Key::new(hmac::HMAC_SHA256, &random_array::<32>()))
    }

    /// A token for a client at `address` whose first packet went to `destination`.
    pub fn mint(&self, now: Instant, address: SocketAddr, destination: ConnectionId) -> Vec<u8> {
        let mut token = now.as_nanos().to_le_bytes().to_vec();
        let tag = hmac::sign(&self.0, &statement(now, address, destination));
        token.extend_from_slice(tag.as_ref());
        token
    }

    /// Whether `token` was minted by this key for this client, not longer than ten seconds ago.
    /// The comparison takes the same time wherever the first difference is.
    // fuzz: strangers
    pub fn check(
        &self,
        now: Instant,
        address: SocketAddr,
        destination: ConnectionId,
        token: &[u8],
    ) -> bool {
        let Some((time, tag)) = token.split_first_chunk::<TIME_LEN>() else { return false };
        let minted = Instant::from_nanos(u64::from_le_bytes(*time));
        let is_ours = hmac::verify(&self.0, &statement(minted, address, destination), tag).is_ok();
        is_ours && minted <= now && now.since(minted) <= LIFETIME
    }
}

/// What a token says. Every field has one length, so that no two statements have the same bytes.
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
