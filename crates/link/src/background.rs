//! Cross traffic: packets of other senders that share the bottleneck queue and leave the path after
//! it.
//!
//! Their mean rate is a given share of the link's rate, framing included. They do not react to
//! loss, like a UDP sender without congestion control. The interval between two packets is drawn
//! uniformly from zero to twice the mean, so that cross traffic does not synchronise with a
//! measured flow.

use crate::bottleneck::FRAMING;
use crate::dice::rng;
use crate::spec::LinkSpec;
use fastrand::Rng;
use hikyaku_units::{Instant, Probability};

/// The amount of cross traffic.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BackgroundSpec {
    /// Its rate as a share of the link's rate.
    pub share: Probability,
}

/// The size of its packets in bytes of IP, unless the MTU is smaller.
const PACKET_BYTES: u32 = 1500;
/// The number of this random source in [`rng`].
const RANDOM_SOURCE: u64 = 6;

/// The source of cross traffic; without a sender it generates none.
#[derive(Debug)]
pub(crate) struct Background {
    rng: Rng,
    sender: Option<Sender>,
}

#[derive(Debug)]
struct Sender {
    bytes: u32,
    /// The mean interval between two packets in picoseconds. In nanoseconds, rounding would make
    /// the rate at 100 Gbit/s too high.
    mean_picos: u128,
    /// When the next packet is offered, in picoseconds.
    next_picos: u128,
}

const PICOS_PER_NANO: u128 = 1000;

impl Background {
    pub(crate) fn new(spec: &LinkSpec, seed: u64) -> Self {
        let mut background = Self { rng: rng(seed, RANDOM_SOURCE), sender: None };
        background.set(Instant::ZERO, spec);
        background
    }

    /// Changes to `spec` at `now`.
    pub(crate) fn set(&mut self, now: Instant, spec: &LinkSpec) {
        let Some((bytes, mean_picos)) = pace(spec) else {
            self.sender = None;
            return;
        };
        match &mut self.sender {
            Some(sender) if sender.mean_picos == mean_picos => sender.bytes = bytes,
            sender => {
                let next_picos = u128::from(now.as_nanos()) * PICOS_PER_NANO;
                let sender = sender.insert(Sender { bytes, mean_picos, next_picos });
                sender.next_picos += draw(&mut self.rng, mean_picos);
            }
        }
    }

    /// The next packet that is due by `now`: its time and its size.
    #[inline]
    pub(crate) fn next_by(&mut self, now: Instant) -> Option<(Instant, u32)> {
        let sender = self.sender.as_mut()?;
        let at = sender.next_picos / PICOS_PER_NANO;
        if at > u128::from(now.as_nanos()) {
            return None;
        }
        sender.next_picos += draw(&mut self.rng, sender.mean_picos);
        Some((Instant::from_nanos(at as u64), sender.bytes))
    }
}

/// The size of the packets, and their mean interval in picoseconds. `None` without cross traffic,
/// and on a link of unlimited rate, of which there is no share.
fn pace(spec: &LinkSpec) -> Option<(u32, u128)> {
    let (share, rate) = (spec.background?.share.get(), spec.rate?.bits_per_sec());
    if share <= 0.0 || rate == 0 {
        return None;
    }
    let bytes = spec.mtu.map_or(PACKET_BYTES, |mtu| mtu.min(PACKET_BYTES));
    let bits = f64::from(bytes + FRAMING) * 8.0;
    Some((bytes, ((bits * 1e12 / (rate as f64 * share)) as u128).max(1)))
}

/// Draws uniformly from zero to twice the mean.
fn draw(rng: &mut Rng, mean_picos: u128) -> u128 {
    (2 * mean_picos * u128::from(rng.u32(..))) >> 32
}

#[cfg(test)]
mod tests;
