//! The peer's address, and path validation before a change of it is accepted (RFC 9000, sections
//! 8.2 and 9).
//!
//! The source of the authentic packet with the largest packet number is taken as the peer's
//! possible new address. It changes when an address translator (NAT) assigns another port, or when
//! the peer changes networks. Until a PATH_CHALLENGE to that address has been answered, this end
//! sends no more bytes to it than arrived from it, and sends no stream data. A newer packet from
//! the validated address cancels the migration. So an attacker who forwards captured packets from
//! another address gains nothing: the peer's next packet cancels the migration. During the
//! handshake, when no challenge can be sent yet, a server may send three times the bytes received
//! from the address, as to any unvalidated address.

use core::net::SocketAddr;
use core::time::Duration;
use hikyaku_units::Instant;

/// The peer's validated address, and the one to which it may have migrated.
#[derive(Clone, Debug)]
pub(crate) struct PeerAddress {
    proven: SocketAddr,
    claim: Option<Claim>,
    /// The claim that was abandoned last. It is kept because the response to its challenge may
    /// still be in flight on a path with a longer round-trip time.
    lapsed: Option<Claim>,
}

#[derive(Clone, Debug)]
struct Claim {
    address: SocketAddr,
    /// The token of the first challenge; each later challenge uses the next number.
    token: u64,
    /// Bytes that arrived from this address and have not been used up by bytes sent to it.
    credit: u64,
    challenges: Challenges,
    /// Challenges that were sent before the peer resumed this claim after it had been abandoned.
    before: u64,
}

/// The challenges of a claim and their sending times.
#[derive(Clone, Debug, Default)]
struct Challenges {
    count: u64,
    /// The sending times of the last challenges, newest first.
    times: [Option<Instant>; CHALLENGE_TIMES_KEPT],
}

/// What part of the peer's address changed in a validated migration.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Moved {
    /// The port only. The path is most likely unchanged, so its measured properties are kept.
    Port,
    /// The host address. Nothing is known of the new path.
    Host,
}

/// The maximum length in bytes of a packet with a challenge. No packet is shorter than this, so the
/// credit of one received packet is enough to send a challenge.
pub(crate) const CHALLENGE_BYTES_MAX: usize = 48;
/// Unanswered challenges after which the claim is abandoned until more packets arrive from its
/// address.
const CHALLENGES_MAX: u64 = 6;
const CHALLENGE_INTERVAL_MIN: Duration = Duration::from_millis(10);
/// Challenges whose responses are still accepted. The interval between challenges doubles up to 32
/// times the first one.
const CHALLENGE_TIMES_KEPT: usize = 8;

impl Claim {
    fn new(address: SocketAddr, token: u64) -> Self {
        Self { address, token, credit: 0, challenges: Challenges::default(), before: 0 }
    }
}

impl Challenges {
    fn note(&mut self, now: Instant) {
        self.count += 1;
        self.times.rotate_right(1);
        self.times[0] = Some(now);
    }

    /// The sending time of challenge `number`, counted from zero.
    fn at(&self, number: u64) -> Option<Instant> {
        let age = self.count.checked_sub(number)?.checked_sub(1)?;
        *self.times.get(usize::try_from(age).ok()?)?
    }
}

impl PeerAddress {
    pub(crate) const fn new(address: SocketAddr) -> Self {
        Self { proven: address, claim: None, lapsed: None }
    }

    /// The peer's validated address.
    pub(crate) const fn proven(&self) -> SocketAddr {
        self.proven
    }

    /// Records that authentic packets of `bytes` bytes came from `source`. `order` is that of the
    /// newest of them. `token` supplies the first challenge's token if `source` is a new address.
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
            // A reordered packet tells where the peer was earlier, not where it is.
            _ if order == Order::Overtaken => {}
            _ if source == self.proven => (self.claim, self.lapsed) = (None, None),
            _ => {
                let again = self.lapsed.take_if(|lapsed| lapsed.address == source);
                let claim = again.unwrap_or_else(|| Claim::new(source, token()));
                self.claim = Some(Claim { credit: bytes, before: claim.challenges.count, ..claim });
            }
        }
    }

    /// Whether a migration is not yet validated. Stream data waits until it is.
    pub(crate) const fn is_in_doubt(&self) -> bool {
        self.claim.is_some()
    }

    /// The token of the challenge to send now to [`PeerAddress::destination`].
    pub(crate) fn challenge(&mut self, now: Instant, srtt: Duration) -> Option<u64> {
        if self.next_timeout(srtt)? > now {
            return None;
        }
        let claim = self.claim.as_mut()?;
        // Without credit a challenge would go to the validated address and be answered from there.
        // The claim is abandoned after enough unanswered challenges, and the next packet from its
        // address resumes it.
        let is_exhausted = claim.challenges.count - claim.before >= CHALLENGES_MAX;
        if is_exhausted || claim.credit < CHALLENGE_BYTES_MAX as u64 {
            self.lapsed = self.claim.take();
            return None;
        }
        let token = claim.token.wrapping_add(claim.challenges.count);
        claim.challenges.note(now);
        Some(token)
    }

    /// When the next challenge is due, or when the claim is to be abandoned.
    pub(crate) fn next_timeout(&self, srtt: Duration) -> Option<Instant> {
        let claim = self.claim.as_ref()?;
        let Some(asked) = claim.challenges.times[0] else {
            return (claim.credit >= CHALLENGE_BYTES_MAX as u64).then_some(Instant::ZERO);
        };
        let interval = (srtt + srtt / 2).max(CHALLENGE_INTERVAL_MIN);
        // The interval doubles, because the packet that carries the response may be lost as well.
        let doublings = claim.challenges.count.min(CHALLENGES_MAX) - 1;
        Some(asked + interval * (1 << doublings))
    }

    /// Where to send a datagram of `bytes` bytes: to the claimed address as long as its credit
    /// lasts, otherwise to the validated address.
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

    /// Handles the response to a challenge. Returns how the peer's address changed and when that
    /// challenge was sent.
    pub(crate) fn on_response(&mut self, token: u64) -> Option<(Moved, Instant)> {
        let answered = |claim: &Claim| {
            Some((claim.address, claim.challenges.at(token.wrapping_sub(claim.token))?))
        };
        let (address, asked) =
            [&self.claim, &self.lapsed].into_iter().flatten().find_map(answered)?;
        let moved = if address.ip() == self.proven.ip() { Moved::Port } else { Moved::Host };
        *self = Self::new(address);
        Some((moved, asked))
    }
}

/// The order of a packet relative to those received before it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Order {
    /// A packet with a larger packet number arrived before it.
    Overtaken,
    /// It has the largest packet number so far.
    Newest,
}

#[cfg(test)]
mod tests;
