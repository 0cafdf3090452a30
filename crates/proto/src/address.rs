//! Where the peer is, and what it takes to believe that it has moved (RFC 9000, sections 8.2 and 9).
//!
//! The newest packet that opens says where the peer is: behind an address translator that has
//! forgotten the old port, or on another network. Until a challenge has come back from there, no more
//! goes there than came from there, and data wait; a newer packet from the old address ends the doubt.
//! So whoever repeats a packet from elsewhere gains nothing: the peer's own next packet undoes it. In a handshake,
//! in which nothing can be asked yet, a server sends three times of what came from there, as to any stranger.

use core::net::SocketAddr;
use core::time::Duration;
use hikyaku_units::Instant;

/// The peer's address, and the one it may have moved to.
#[derive(Clone, Debug)]
pub(crate) struct PeerAddress {
    proven: SocketAddr,
    claim: Option<Claim>,
}

#[derive(Clone, Debug)]
struct Claim {
    address: SocketAddr,
    token: u64,
    /// Bytes that came from there and have not been answered.
    credit: u64,
    /// When it was challenged last, and how often.
    asked: Option<Instant>,
    tries: u32,
}

/// How far the peer has moved.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Moved {
    /// To another port of the same host: the path is most likely the same.
    Port,
    /// To another host address: nothing is known of the path.
    Host,
}

/// Bytes of a packet with a challenge, at the most. No packet is shorter than this, so that one is
/// enough to be challenged.
pub(crate) const CHALLENGE_LEN: usize = 48;
const MOST_TRIES: u32 = 6;
const LEAST_PATIENCE: Duration = Duration::from_millis(10);

impl PeerAddress {
    pub(crate) const fn new(address: SocketAddr) -> Self {
        Self { proven: address, claim: None }
    }

    /// The address known to be the peer's.
    pub(crate) const fn proven(&self) -> SocketAddr {
        self.proven
    }

    /// Packets that opened came from `source`; `order` is that of the newest of them. `token` is what is to be
    /// asked should the peer be new there.
    // spec: path-1
    pub(crate) fn on_packet(
        &mut self,
        source: SocketAddr,
        bytes: u64,
        order: Order,
        token: impl FnOnce() -> u64,
    ) {
        match &mut self.claim {
            Some(claim) if claim.address == source => claim.credit += bytes,
            None if source == self.proven => {}
            // What was overtaken says where the peer was.
            _ if order == Order::Overtaken => {}
            _ if source == self.proven => self.claim = None,
            _ => {
                let token = token();
                self.claim =
                    Some(Claim { address: source, token, credit: bytes, asked: None, tries: 0 });
            }
        }
    }

    /// Whether the peer may be elsewhere, so that data wait for the answer.
    pub(crate) const fn is_in_doubt(&self) -> bool {
        self.claim.is_some()
    }

    /// The challenge to be sent now to [`PeerAddress::destination`].
    pub(crate) fn challenge(&mut self, now: Instant, srtt: Duration) -> Option<u64> {
        if self.next_timeout(srtt)? > now {
            return None;
        }
        let claim = self.claim.as_mut()?;
        // A question that went to the old address would be answered from there. Where nothing more came
        // from there is nobody; should there be somebody after all, the next packet begins anew.
        if claim.tries >= MOST_TRIES || claim.credit < CHALLENGE_LEN as u64 {
            self.claim = None;
            return None;
        }
        claim.asked = Some(now);
        claim.tries += 1;
        Some(claim.token)
    }

    /// When there is something to ask, or nothing more to wait for.
    pub(crate) fn next_timeout(&self, srtt: Duration) -> Option<Instant> {
        let claim = self.claim.as_ref()?;
        let Some(asked) = claim.asked else {
            return (claim.credit >= CHALLENGE_LEN as u64).then_some(Instant::ZERO);
        };
        let patience = (srtt + srtt / 2).max(LEAST_PATIENCE);
        // A packet that is to be answered may be lost as well.
        Some(asked + patience * 2_u32.pow(claim.tries.saturating_sub(1)))
    }

    /// Where `bytes` go now: as much as came from there to where the peer seems to be, the rest to
    /// where it was.
    // spec: path-2
    pub(crate) fn destination(&mut self, bytes: u64) -> SocketAddr {
        match &mut self.claim {
            Some(claim) if claim.credit >= bytes => {
                claim.credit -= bytes;
                claim.address
            }
            _ => self.proven,
        }
    }

    /// The answer to a challenge; says how far the peer has moved and when that was asked last.
    pub(crate) fn on_response(&mut self, token: u64) -> Option<(Moved, Instant)> {
        let claim = self.claim.take_if(|claim| claim.token == token)?;
        let moved = if claim.address.ip() == self.proven.ip() { Moved::Port } else { Moved::Host };
        self.proven = claim.address;
        Some((moved, claim.asked?))
    }
}

/// How a packet came relative to those before it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Order {
    /// A packet sent later came before it.
    Overtaken,
    /// It has the largest number of all.
    Newest,
}

#[cfg(test)]
mod tests;
