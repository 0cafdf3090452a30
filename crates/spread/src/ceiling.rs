//! A ceiling for the sum of all servers, divided among them.

use alloc::vec;
use alloc::vec::Vec;
use hikyaku_units::Rate;

/// The use that a server made of its limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Demand {
    /// The rate that it sent at since the last division.
    pub used: Rate,
    /// The limit that it had; `None` if it had none, which counts as used up.
    pub cap: Option<Rate>,
}

/// A server that used more than this share of its limit may want more.
const HUNGRY_SHARE: f64 = 0.9;

/// A server that did not use up its limit gets this multiple of what it used. The inverse is well below
/// [`HUNGRY_SHARE`], so a steady server is not taken for a hungry one at the next division.
const ROOM_FACTOR: f64 = 1.25;

/// Divides the ceiling among servers, max-min fair. The sum of the limits is the ceiling, less at most one bit a
/// second a server.
///
/// A server that used up to 90 % of its limit wishes 1.25 times of what it used, any other as much as there is.
/// No server gets more than it wishes while another gets less than it wishes and less than the first. The
/// rest is divided equally, so that a server that speeds up has room until the next division.
pub fn divide(ceiling: Rate, demands: &[Demand]) -> Vec<Rate> {
    let wish = |demand: &Demand| match demand.cap {
        Some(cap) if demand.used <= cap.scaled(HUNGRY_SHARE) => demand.used.scaled(ROOM_FACTOR),
        _ => Rate::from_bits_per_sec(u64::MAX),
    };
    let mut order: Vec<(u64, usize)> =
        demands.iter().map(|demand| wish(demand).bits_per_sec()).zip(0..).collect();
    order.sort_unstable();
    let mut limits = vec![0; demands.len()];
    let mut rest = ceiling.bits_per_sec();
    for (at, &(wish, server)) in order.iter().enumerate() {
        limits[server] = wish.min(rest / (order.len() - at) as u64);
        rest -= limits[server];
    }
    let extra = rest / demands.len().max(1) as u64;
    limits.into_iter().map(|limit| Rate::from_bits_per_sec(limit + extra)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Mbit/s used, and the limit.
    type Sent = (u64, Option<u64>);

    fn divided(ceiling: u64, demands: &[Sent]) -> Vec<u64> {
        let rate = |mbit: u64| Rate::from_bits_per_sec(mbit * 1_000_000);
        let demand =
            |&(used, cap): &(u64, Option<u64>)| Demand { used: rate(used), cap: cap.map(rate) };
        let demands: Vec<Demand> = demands.iter().map(demand).collect();
        let limits = divide(rate(ceiling), &demands);
        limits.into_iter().map(|limit| limit.bits_per_sec() / 1_000_000).collect()
    }

    #[test]
    fn a_ceiling_is_divided_max_min() {
        let cases: &[(u64, &[Sent], &[u64])] = &[
            (300, &[(0, None), (0, None), (0, None)], &[100, 100, 100]),
            // One uses a fifth of its limit: the others get what it leaves.
            (300, &[(20, Some(100)), (100, Some(100)), (95, Some(100))], &[25, 137, 137]),
            // Wishes of 25, 50 and 100 leave 125, which are divided equally.
            (300, &[(20, Some(100)), (40, Some(100)), (80, Some(100))], &[66, 91, 141]),
            // A steady server beside hungry ones is not hungry.
            (300, &[(20, Some(25)), (137, Some(137)), (137, Some(137))], &[25, 137, 137]),
            (0, &[(20, Some(25)), (1, None)], &[0, 0]),
            (300, &[], &[]),
        ];
        for (ceiling, demands, expected) in cases {
            let limits = divided(*ceiling, demands);
            assert!(limits.iter().sum::<u64>() <= *ceiling);
            assert_eq!(limits, *expected, "{demands:?}");
        }
    }
}
