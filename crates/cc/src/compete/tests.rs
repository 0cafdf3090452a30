//! The window beside others.

use super::deaf::{Company, Heard, Neighbours};
use super::*;
use alloc::vec::Vec;

const PACKET: f64 = 1448.0;
/// Bytes a second.
const CAPACITY: f64 = 50e6;

/// A round of 40 ms.
fn round(now: Instant) -> Beside {
    Beside {
        now,
        round_trip: 0.04,
        packet: PACKET,
        plenty: f64::INFINITY,
        modest: 0.0,
        among_deaf: None,
        overflowed: false,
        is_used: true,
    }
}

/// The window after so many seconds in rounds of 40 ms.
fn grown(compete: &mut Compete, from: f64, seconds: f64) -> f64 {
    let rounds = (seconds / 0.04) as u64;
    for nth in 0..rounds {
        let now = Instant::from_nanos(((from + nth as f64 * 0.04) * 1e9) as u64);
        compete.on_round(&round(now));
    }
    compete.window() / PACKET
}

fn overflow(compete: &mut Compete, at_ms: u64, modest: f64) {
    let round = round(Instant::from_millis(at_ms));
    compete.on_round(&Beside { overflowed: true, modest: modest * PACKET, ..round });
}

// spec: rate-4
#[test]
fn it_is_the_window_of_rfc_9438() {
    let mut compete = Compete::new(1000.0 * PACKET);
    overflow(&mut compete, 1000, 0.0);
    assert!((compete.window() / PACKET - 700.0).abs() < 1.0);
    // K = cbrt(1000 * 0.3 / 0.4) = 9.09 s: then it has what it had, and goes on from there.
    let again = grown(&mut compete, 1.0, 9.1);
    assert!((995.0..1005.0).contains(&again), "{again}");
    let later = grown(&mut compete, 10.1, 5.0);
    assert!((1040.0..1060.0).contains(&later), "{later}");
}

#[test]
fn who_loses_ground_makes_room() {
    let mut compete = Compete::new(1000.0 * PACKET);
    overflow(&mut compete, 1000, 0.0);
    overflow(&mut compete, 1100, 0.0);
    // It was 700 and is 490; what is aimed at is 0.85 of 700.
    let again = grown(&mut compete, 1.1, 9.0);
    assert!((595.0..615.0).contains(&again), "{again}");
}

#[test]
fn before_the_first_overflow_it_grows_by_a_tenth_a_round() {
    let mut compete = Compete::new(100.0 * PACKET);
    let grown = grown(&mut compete, 1.0, 0.4);
    assert!((255.0..265.0).contains(&grown), "{grown}");
}

// spec: rate-4
#[test]
fn who_was_alone_for_a_while_goes_on_where_it_was() {
    let mut before = Compete::new(1000.0 * PACKET);
    overflow(&mut before, 1000, 0.0);
    let mut compete = before.resumed(300.0 * PACKET);
    // Nine tenths more: then it has what the overflow left, and is where it was then.
    let back = grown(&mut compete, 5.0, 0.4);
    assert!((690.0..715.0).contains(&back), "{back}");
    let again = grown(&mut compete, 5.4, 9.1);
    assert!((985.0..1005.0).contains(&again), "{again}");
}

// spec: rate-4
#[test]
fn an_overflow_of_others_is_no_measure_for_who_has_next_to_nothing() {
    let mut compete = Compete::new(20.0 * PACKET);
    overflow(&mut compete, 1000, 200.0);
    assert!((compete.window() / PACKET - 14.0).abs() < 1.0);
    // By RFC 9438 alone it would have 21 after five seconds and 24 after ten.
    let soon = grown(&mut compete, 1.0, 2.0);
    assert!((140.0..180.0).contains(&soon), "{soon}");
}

/// What one of ours does in rounds of 60 ms of 100 packets each.
struct Scene {
    neighbours: Neighbours,
    compete: Compete,
    company: Company,
    rate: f64,
}

impl Scene {
    fn beside(company: Company) -> Self {
        let mut neighbours = Neighbours::new();
        neighbours.carried(CAPACITY);
        Self { neighbours, compete: Compete::new(100.0 * PACKET), company, rate: 1e6 }
    }

    /// Rounds with so many packets lost and so many milliseconds of queue. Gives what was paced then.
    fn pass(&mut self, rounds: u64, told: impl Fn(u64) -> (u64, f64)) -> Vec<Option<f64>> {
        let one = |round| {
            let (lost, queue) = told(round);
            self.neighbours.carried(self.rate);
            let heard = Heard { seen: (100, lost), queue: queue / 1e3, rate: self.rate };
            self.neighbours.on_round(heard, self.company);
            self.compete.on_round(&Beside {
                now: Instant::from_millis(1000 + 60 * round),
                among_deaf: self.neighbours.pace(0.04),
                round_trip: 0.06,
                packet: PACKET,
                plenty: f64::INFINITY,
                modest: 0.0,
                overflowed: lost > 0,
                is_used: true,
            });
            let pace = self.compete.pace();
            self.rate = pace.unwrap_or(self.rate) * (1.0 - lost as f64 / 100.0);
            pace
        };
        (0..rounds).map(one).collect()
    }
}

// spec: rate-6
#[test]
fn among_the_deaf_it_sends_what_arrives_and_now_and_then_more() {
    let mut scene = Scene::beside(Company::Others);
    let paces = scene.pass(200, |_| (5, 20.0));
    assert!(paces[..20].iter().all(Option::is_none), "it must last");
    let late: Vec<f64> = paces[30..].iter().map(|pace| pace.expect("deaf neighbours")).collect();
    // A quarter more and a twentieth less: each cycle of eight rounds gains.
    assert!(late[32] > 1.8 * late[0], "{} and {}", late[0], late[32]);
    let most = late.iter().copied().fold(0.0, f64::max);
    assert!((0.25 * CAPACITY..0.4 * CAPACITY).contains(&most), "{most}");
    assert!(late.iter().zip(&late[1..]).any(|(a, b)| *b > 1.2 * a));
    assert!(late.iter().zip(&late[1..]).any(|(a, b)| *b < 0.8 * a));
    // Once nothing is lost any more it is as before.
    let paces = scene.pass(100, |_| (0, 20.0));
    assert!(paces[30..].iter().all(Option::is_none));
}

#[test]
fn who_overflows_a_queue_once_in_a_while_is_not_deaf() {
    let mut scene = Scene::beside(Company::Others);
    let paces = scene.pass(400, |round| if round % 25 == 0 { (40, 20.0) } else { (0, 10.0) });
    assert!(paces.iter().all(Option::is_none));
}

/// Every third round ends with a full queue.
fn filled(round: u64) -> f64 {
    [3.0, 9.0, 20.0][(round % 3) as usize]
}

// spec: rate-4
#[test]
fn who_has_next_to_nothing_where_a_full_queue_overflows_is_starved() {
    let mut scene = Scene::beside(Company::None);
    scene.pass(30, |round| if filled(round) > 15.0 { (3, 20.0) } else { (0, filled(round)) });
    assert!(scene.neighbours.starve_us());
    // It sends no more for it before others have been seen.
    assert_eq!(scene.neighbours.pace(0.04), None);
}

#[test]
fn a_path_that_loses_packets_by_itself_starves_nobody() {
    let mut scene = Scene::beside(Company::None);
    let slowly = |round| 2.0 + (round % 12) as f64;
    scene.pass(100, |round| (1, slowly(round)));
    assert!(!scene.neighbours.starve_us());
    // Nor is all of what is lost beside others their doing.
    let mut scene = Scene::beside(Company::Others);
    let paces = scene.pass(100, |round| (1, slowly(round)));
    assert_eq!(paces, [None; 100]);
}

/// In the lab, beside one flow of BBR at 1 Gbit/s and 40 ms.
fn pulsing(round: u64) -> f64 {
    [5.0, 5.0, 9.0, 6.0, 5.0, 5.0, 4.0, 5.0][(round % 8) as usize]
}

// spec: rate-6
#[test]
fn who_lengthens_the_queue_every_eight_rounds_is_one_flow_of_bbr() {
    let mut scene = Scene::beside(Company::Others);
    let paces = scene.pass(100, |round| (0, pulsing(round)));
    assert!(paces[..20].iter().all(Option::is_none), "it must last");
    assert!(paces[30..].iter().all(Option::is_some));
    // Then it is gone.
    let paces = scene.pass(100, |_| (0, 5.0));
    assert!(paces[30..].iter().all(Option::is_none));
    // It sends no more for it before others have been seen, but looks at drains as who is starved.
    let mut scene = Scene::beside(Company::None);
    assert_eq!(scene.pass(100, |round| (0, pulsing(round))), [None; 100]);
    assert!(scene.neighbours.starve_us());
    // TCP that answers to loss fills a queue for long, and empties it at once.
    let mut scene = Scene::beside(Company::Others);
    let paces =
        scene.pass(400, |round| (u64::from(round % 9 == 8), 3.0 + 2.0 * (round % 9) as f64));
    assert_eq!(paces, [None; 400]);
}

// spec: rate-4
#[test]
fn who_has_plenty_grows_by_the_clock_from_there() {
    let mut compete = Compete::new(100.0 * PACKET);
    // A round of 40 ms is a tenth of a second here.
    let mut pass = |rounds: core::ops::Range<u64>, plenty: f64| {
        for nth in rounds {
            let round = round(Instant::from_millis(100 * nth));
            compete.on_round(&Beside { plenty: plenty * PACKET, ..round });
        }
        compete.window() / PACKET
    };
    // A tenth a round: 40 rounds would be 45 times as much.
    let there = pass(0..40, 1000.0);
    assert!((1000.0..1050.0).contains(&there), "{there}");
    let later = pass(40..125, 1000.0);
    assert!((1300.0..1600.0).contains(&later), "0.4 * 10^3 packets more in ten seconds: {later}");
    // A drain has shown that the path carries more.
    assert!(pass(125..135, 5000.0) > 2.0 * later);
}

/// A drain of 20 ms of queue on a path of 40 ms, after which `kept` was left of what should have been gone at its half.
fn drained(millis: u64, kept: f64) -> Drained {
    Drained { now: Instant::from_millis(millis), queue: 0.02, base: 0.04, kept, had: 1.0 }
}

// spec: rate-4
#[test]
fn who_gives_back_what_is_beyond_half_keeps_to_that_for_a_while() {
    let mut compete = Compete::new(1000.0 * PACKET);
    overflow(&mut compete, 1000, 0.0);
    // One drain that leaves little may be a pause of theirs; of two, more was left after the second.
    compete.make_room(&drained(1500, 0.1));
    compete.make_room(&drained(1600, 0.7));
    compete.make_room(&drained(1700, 0.1));
    let before = compete.window();
    assert!((before - 700.0 * PACKET).abs() < 1.0, "{before}");
    compete.make_room(&drained(2000, 0.375));
    let given = 0.8 * before / PACKET;
    // As after an overflow at that window: K = cbrt(560 * 0.3 / 0.4) = 7.5 s.
    let later = grown(&mut compete, 2.0, 7.2);
    assert!((given - 1.0..given + 5.0).contains(&later), "{later}");
    assert!(grown(&mut compete, 9.5, 8.0) > 1.2 * given);
    // Three tenths at the most, whatever a drain has shown.
    let before = compete.window();
    compete.make_room(&drained(18_000, 0.0));
    compete.make_room(&drained(18_100, 0.0));
    assert!((compete.window() / before - BETA * 0.8).abs() < 1e-9);
}

// spec: rate-4
#[test]
fn a_queue_of_more_than_a_round_trip_is_one_of_several_who_are_left_two_thirds() {
    // Drains have left 60 %.
    let given = |queue: f64, had: f64| {
        let mut compete = Compete::new(1000.0 * PACKET);
        for millis in [1000, 6000] {
            compete.make_room(&Drained { queue, had, ..drained(millis, 0.6) });
        }
        compete.window() / PACKET
    };
    assert!((given(0.044, 0.5) - 1000.0).abs() < 1e-6);
    let many = given(0.046, 0.5);
    assert!((many - 1000.0 / 3.0 / 0.4).abs() < 1e-6, "{many}");
    // But our rate says that it is less than that.
    assert!((given(0.046, 0.33) - 1000.0).abs() < 1e-6);
}

// spec: rate-4
#[test]
fn what_the_path_carries_is_not_what_one_drain_says_in_which_others_grew() {
    let mut neighbours = Neighbours::new();
    neighbours.carried(300.0);
    assert!((neighbours.bottleneck() - 300.0).abs() < 1e-9);
    // Of 1000; in the second they began, in the fourth they paused.
    for (rate, kept) in [(500.0, 0.5), (600.0, 0.8), (500.0, 0.52), (200.0, 0.05), (400.0, 0.58)] {
        neighbours.kept(rate, kept);
    }
    let carries = neighbours.bottleneck();
    assert!((900.0..1100.0).contains(&carries), "{carries}");
}

#[test]
fn who_is_not_deaf_any_more_and_overflowed_nothing_is_no_overflow() {
    for lost in [0, 2] {
        let mut scene = Scene::beside(Company::Others);
        scene.pass(100, |round| (if round % 8 == 2 { lost } else { 0 }, pulsing(round)));
        assert!(scene.compete.pace().is_some());
        let before = scene.compete.window();
        scene.pass(40, |_| (0, 5.0));
        assert_eq!(scene.compete.pace(), None);
        assert_eq!(scene.compete.last_overflow().is_some(), lost > 0);
        assert!(lost > 0 || scene.compete.window() > before);
    }
}
