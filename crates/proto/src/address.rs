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
    /// The claim that was given up last: its answer may still be on a path that is longer than the old one.
    lapsed: Option<Claim>,
}

#[derive(Clone, Debug)]
struct Claim {
    address: SocketAddr,
    /// What the first question asks; each later one asks for a number more.
    token: u64,
    /// Bytes that came from there and have not been answered.
    credit: u64,
    asked: Asked,
    /// Questions before the peer went on with it.
    before: u64,
}

/// When a claim was challenged.
#[derive(Clone, Debug, Default)]
struct Asked {
    count: u64,
    /// The last times, newest first.
    times: [Option<Instant>; LAST_TIMES],
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
/// So many questions without an answer are enough, until more comes from there.
const MOST_TRIES: u64 = 6;
const LEAST_PATIENCE: Duration = Duration::from_millis(10);
/// Questions whose answers are waited for: each is asked after twice the pause of the one before, up to 32 pauses.
const LAST_TIMES: usize = 8;

impl Claim {
    fn new(address: SocketAddr, token: u64) -> Self {
        Self { address, token, credit: 0, asked: Asked::default(), before: 0 }
    }
}

impl Asked {
    fn note(&mut self, now: Instant) {
        self.count += 1;
        self.times.rotate_right(1);
        self.times[0] = Some(now);
    }

    /// When the question of this number was asked.
    fn at(&self, number: u64) -> Option<Instant> {
        let age = self.count.checked_sub(number)?.checked_sub(1)?;
        *self.times.get(usize::try_from(age).ok()?)?
    }
}

impl PeerAddress {
    pub(crate) const fn new(address: SocketAddr) -> Self {
        Self { proven: address, claim: None, lapsed: None }
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
            // What was overtaken says where the peer was.
            _ if order == Order::Overtaken => {}
            _ if source == self.proven => (self.claim, self.lapsed) = (None, None),
            _ => {
                let again = self.lapsed.take_if(|lapsed| lapsed.address == source);
                let claim = again.unwrap_or_else(|| Claim::new(source, token()));
                self.claim = Some(Claim { credit: bytes, before: claim.asked.count, ..claim });
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
        // from there is nobody; should there be somebody after all, the next packet goes on with this claim.
        let is_enough = claim.asked.count - claim.before >= MOST_TRIES;
        if is_enough || claim.credit < CHALLENGE_LEN as u64 {
            self.lapsed = self.claim.take();
            return None;
        }
        let token = claim.token.wrapping_add(claim.asked.count);
        claim.asked.note(now);
        Some(token)
    }

    /// When there is something to ask, or nothing more to wait for.
    pub(crate) fn next_timeout(&self, srtt: Duration) -> Option<Instant> {
        let claim = self.claim.as_ref()?;
        let Some(asked) = claim.asked.times[0] else {
            return (claim.credit >= CHALLENGE_LEN as u64).then_some(Instant::ZERO);
        };
        let patience = (srtt + srtt / 2).max(LEAST_PATIENCE);
        // A packet that is to be answered may be lost as well.
        let doublings = claim.asked.count.min(MOST_TRIES) - 1;
        Some(asked + patience * (1 << doublings))
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

    /// The answer to a challenge; says how far the peer has moved and when that was asked.
    pub(crate) fn on_response(&mut self, token: u64) -> Option<(Moved, Instant)> {
        let answered =
            |claim: &Claim| Some((claim.address, claim.asked.at(token.wrapping_sub(claim.token))?));
        let (address, asked) =
            [&self.claim, &self.lapsed].into_iter().flatten().find_map(answered)?;
        let moved = if address.ip() == self.proven.ip() { Moved::Port } else { Moved::Host };
        *self = Self::new(address);
        Some((moved, asked))
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
