//! The number of copies in which lost stream data is retransmitted.

use super::*;

const PATH: PathState =
    PathState { srtt: Duration::from_millis(200), ambient_loss: 0.01, window: 1 << 24 };

/// The number of copies after an outcome with these packets, on a connection whose first packet was
/// sent at 1000 ms.
fn copies(repairs: &mut Repairs, at_ms: u64, arrived: u64, lost: u64) -> u32 {
    let settled = Settled { arrived, lost, ..Settled::default() };
    let outcome = Outcome { settled, ..Outcome::default() };
    repairs.copies(Instant::from_millis(at_ms), &outcome, PATH)
}

fn begun() -> Repairs {
    let mut repairs = Repairs::default();
    repairs.on_sent(Instant::from_millis(1000));
    repairs
}

// spec: loss-4
#[test]
fn sparse_early_losses_are_sent_twice() {
    let mut repairs = begun();
    assert_eq!(copies(&mut repairs, 1200, 99, 1), 2, "an acknowledgement");
    assert_eq!(copies(&mut repairs, 1300, 0, 1), 2, "a timer");
    assert_eq!(copies(&mut repairs, 4000, 99, 1), 1, "not early any more");
}

#[test]
fn losses_of_a_queue_overflow_are_not_sent_twice() {
    let mut repairs = begun();
    assert_eq!(copies(&mut repairs, 1200, 100, 40), 1);
    assert_eq!(copies(&mut repairs, 1210, 20, 0), 1, "nor what is found with it");
    for at in 0..50 {
        copies(&mut repairs, 1220 + at, 100, 1);
    }
    assert_eq!(copies(&mut repairs, 1400, 100, 1), 2, "until it is over");
}

/// How many times a range of this generation is sent in total, if it is lost and `copies` are
/// wanted.
fn sent_in_all(generation: u8, copies: u32) -> usize {
    let mut repairs = Repairs::default();
    let again = Again { stream: StreamId(0), offset: 0, len: 1000, generation };
    repairs.push(Instant::from_millis(1000), again, copies, PATH.srtt);
    repairs.on_time(Instant::from_millis(1000));
    assert_eq!(repairs.due().len(), 1, "the others follow later");
    repairs.on_time(Instant::from_millis(1200));
    repairs.due().len()
}

// spec: loss-4
#[test]
fn repeated_losses_are_sent_in_two_and_then_three_copies() {
    assert_eq!([1, 2, 3, 4, 200].map(|generation| sent_in_all(generation, 1)), [1, 2, 3, 3, 3]);
    assert_eq!(sent_in_all(1, 8), 8);
}

// spec: loss-4
#[test]
fn at_the_tail_the_number_of_copies_follows_the_loss_rate() {
    let lost = |packets: u64| Volume { packets, bytes: packets * 1000 };
    let copies = |packets, ambient_loss, tail| {
        let mut repairs = Repairs::default();
        repairs.set_tail(tail);
        repairs.tail_copies(lost(packets), PathState { ambient_loss, ..PATH })
    };
    assert_eq!(copies(10, 0.1, false), 1, "there is something new to send");
    // 10 x 0.1^n ranges are missing after n copies: below 0.01 with four.
    assert_eq!(copies(10, 0.1, true), 4);
    assert_eq!(copies(10, 0.5, true), TAIL_COPIES_MAX);
    // A quarter of 16 MB has room for four copies of 1 MB, and for one of 3 MB.
    assert_eq!(copies(1000, 0.5, true), 4);
    assert_eq!(copies(3000, 0.5, true), 1);
}

#[test]
fn a_range_whose_copies_are_all_lost_does_not_become_ever_more_of_them() {
    let mut repairs = Repairs::default();
    let again = Again { stream: StreamId(0), offset: 0, len: 1000, generation: 5 };
    let mut now = Instant::from_millis(1000);
    repairs.push(now, again, 3, PATH.srtt);
    for _ in 0..200_000 {
        now += PATH.srtt;
        repairs.on_time(now);
        let sent = repairs.due().pop_front().expect("a copy");
        // Said to be lost, as all before it.
        repairs.push(now, sent, 3, PATH.srtt);
    }
    assert!(repairs.len() <= (1 << 16) + 2, "{} ranges", repairs.len());
}
