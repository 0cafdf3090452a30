//! The model against the pseudocode of RFC 8289, which decides when packets leave.

use super::*;
use crate::{DropCause, Link, LinkSpec, Verdict};
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use fastrand::Rng;
use hikyaku_units::Rate;

const RATE: u64 = 100_000_000;
/// The time of one byte on a line of this rate.
const NANOS_PER_BYTE: u64 = 80;
const MTU: u64 = 1500;

fn managed(signal: Signal) -> LinkSpec {
    let aqm = Some(CodelSpec::usual(signal));
    LinkSpec { rate: Some(Rate::from_bits_per_sec(RATE)), aqm, ..LinkSpec::default() }
}

/// Packets of a load that fluctuates around the line's rate. Packets arrive often enough that the
/// queue behind a departing packet is never shorter than one packet.
fn offers(seed: u64, count: usize) -> Vec<(u64, u32)> {
    let mut rng = Rng::with_seed(seed);
    let (mut now, mut load) = (0, 1.0);
    let mut offers = Vec::new();
    for index in 0..count {
        if index % 2000 == 0 {
            load = 0.4 + 1.6 * rng.f64();
        }
        let bytes = rng.u32(1000..=1500);
        offers.push((now, bytes));
        now += (2.0 * rng.f64() * 1288.0 * NANOS_PER_BYTE as f64 / load) as u64;
    }
    offers
}

/// The queue of RFC 8289, section 5: `dequeue` is called whenever the line is free.
#[derive(Default)]
struct Reference {
    queue: VecDeque<(usize, u64, u32)>,
    first_above: u64,
    drop_next: u64,
    count: u64,
    last_count: u64,
    is_dropping: bool,
    dropped: Vec<usize>,
}

const TARGET: u64 = 5_000_000;
const INTERVAL: u64 = 100_000_000;

impl Reference {
    fn control_law(&self, t: u64) -> u64 {
        t + (INTERVAL as f64 / (self.count as f64).sqrt_by_newton()) as u64
    }

    fn do_dequeue(&mut self, now: u64) -> (Option<(usize, u64, u32)>, bool) {
        let Some(packet) = self.queue.pop_front() else {
            self.first_above = 0;
            return (None, false);
        };
        let bytes: u64 = self.queue.iter().map(|(_, _, bytes)| u64::from(*bytes)).sum();
        let mut is_ok_to_drop = false;
        if now - packet.1 < TARGET || bytes <= MTU {
            self.first_above = 0;
        } else if self.first_above == 0 {
            self.first_above = now + INTERVAL;
        } else if now >= self.first_above {
            is_ok_to_drop = true;
        }
        (Some(packet), is_ok_to_drop)
    }

    fn dequeue(&mut self, now: u64) -> Option<(usize, u64, u32)> {
        let (mut packet, mut is_ok) = self.do_dequeue(now);
        if self.is_dropping {
            if !is_ok {
                self.is_dropping = false;
            }
            while now >= self.drop_next && self.is_dropping {
                self.dropped.extend(packet.map(|(index, ..)| index));
                self.count += 1;
                (packet, is_ok) = self.do_dequeue(now);
                if is_ok {
                    self.drop_next = self.control_law(self.drop_next);
                } else {
                    self.is_dropping = false;
                }
            }
        } else if is_ok {
            self.dropped.extend(packet.map(|(index, ..)| index));
            packet = self.do_dequeue(now).0;
            self.is_dropping = true;
            let delta = self.count - self.last_count;
            self.count = 1;
            if delta > 1 && now.saturating_sub(self.drop_next) < 16 * INTERVAL {
                self.count = delta;
            }
            self.drop_next = self.control_law(now);
            self.last_count = self.count;
        }
        packet
    }

    fn run(mut self, offers: &[(u64, u32)]) -> Vec<usize> {
        let (mut free, mut next) = (0, 0);
        loop {
            if self.queue.is_empty() {
                let Some((at, _)) = offers.get(next) else { return self.dropped };
                free = free.max(*at);
            }
            while let Some(&(at, bytes)) = offers.get(next).filter(|(at, _)| *at <= free) {
                self.queue.push_back((next, at, bytes));
                next += 1;
            }
            if let Some((_, _, bytes)) = self.dequeue(free) {
                free += (u64::from(bytes) + 38) * NANOS_PER_BYTE;
            }
        }
    }
}

/// Square roots without the standard library.
trait Root {
    fn sqrt_by_newton(self) -> f64;
}

impl Root for f64 {
    fn sqrt_by_newton(self) -> f64 {
        (0..60).fold(self.max(1.0), |root, _| (root + self / root) / 2.0)
    }
}

#[test]
fn drops_equal_those_of_the_rfc_pseudocode() {
    for seed in 0..8 {
        let offers = offers(seed, 30_000);
        let mut link = Link::new(managed(Signal::Drop), 1);
        let dropped: Vec<usize> = (0..)
            .zip(&offers)
            .filter(|(_, (at, bytes))| {
                let verdict = link.offer(Instant::from_nanos(*at), *bytes);
                verdict == Verdict::Dropped(DropCause::Aqm)
            })
            .map(|(index, _)| index)
            .collect();
        let expected = Reference::default().run(&offers);
        assert!(expected.len() > 50, "seed {seed}: {} dropped", expected.len());
        assert_eq!(dropped, expected, "seed {seed}");
        assert_eq!(link.counters().aqm_dropped, expected.len() as u64);
    }
}

/// Offers twice the line's rate for `seconds`. Returns the indices of the packets that were marked
/// and of those that were dropped.
fn overload(link: &mut Link, seconds: u64, ecn: impl Fn(u64) -> Ecn) -> (Vec<u64>, Vec<u64>) {
    let (mut marked, mut dropped) = (Vec::new(), Vec::new());
    let step = 1538 * NANOS_PER_BYTE / 2;
    for index in 0..seconds * 1_000_000_000 / step {
        let now = Instant::from_nanos(index * step);
        match link.offer_as(now, 1500, ecn(index)) {
            Verdict::Deliver(delivery) if delivery.marked_ce => marked.push(index),
            Verdict::Deliver(_) => {}
            Verdict::Dropped(_) => dropped.push(index),
        }
    }
    (marked, dropped)
}

#[test]
fn ecn_capable_packets_are_marked_and_not_dropped() {
    let mut link = Link::new(managed(Signal::Mark), 1);
    let (marked, dropped) = overload(&mut link, 2, |_| Ecn::Capable);
    assert!(marked.len() > 50 && dropped.is_empty(), "{} {}", marked.len(), dropped.len());
    assert_eq!(link.counters().marked, marked.len() as u64);
    let gaps: Vec<u64> = marked.windows(2).map(|pair| pair[1] - pair[0]).collect();
    // The interval between marks falls with the square root of their count: between the second and
    // the tenth gap by more than a factor of two.
    assert!(gaps[1] > 2 * gaps[9], "{gaps:?}");
    let mut link = Link::new(managed(Signal::Mark), 1);
    let half = |index: u64| if index.is_multiple_of(2) { Ecn::Capable } else { Ecn::Not };
    let (marked, dropped) = overload(&mut link, 2, half);
    assert!(!marked.is_empty() && marked.iter().all(|index| index % 2 == 0));
    assert!(!dropped.is_empty() && dropped.iter().all(|index| index % 2 == 1));
}

#[test]
fn nothing_is_dropped_below_the_target() {
    let mut link = Link::new(managed(Signal::Drop), 1);
    // Bursts of 4.9 ms that leave before the next one begins.
    for burst in 0..200 {
        let now = Instant::from_millis(burst * 6);
        for _ in 0..40 {
            assert!(matches!(link.offer(now, 1462), Verdict::Deliver(_)));
        }
    }
    assert_eq!(link.counters().aqm_dropped, 0);
}

#[test]
fn a_slower_line_starts_dropping() {
    let spec = managed(Signal::Drop);
    let mut link = Link::new(spec.clone(), 1);
    let offer = |link: &mut Link, from: u64, to: u64| {
        for index in from..to {
            link.offer(Instant::from_micros(index * 130), 1500);
        }
        link.counters().aqm_dropped
    };
    assert_eq!(offer(&mut link, 0, 5000), 0);
    let slower = LinkSpec { rate: Some(Rate::from_bits_per_sec(RATE / 2)), ..spec.clone() };
    link.set_spec(Instant::from_micros(650_000), slower);
    let dropped = offer(&mut link, 5000, 15_000);
    assert!(dropped > 20, "{dropped}");
    // When the line is fast again, dropping ends once the queue has drained.
    link.set_spec(Instant::from_micros(15_000 * 130), spec);
    let settled = offer(&mut link, 15_000, 150_000);
    assert_eq!(offer(&mut link, 150_000, 160_000), settled);
}
