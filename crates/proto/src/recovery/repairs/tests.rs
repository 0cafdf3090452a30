//! How often what is lost is sent again.

use super::*;

const PATH: Circumstances =
    Circumstances { srtt: Duration::from_millis(200), ambient_loss: 0.01, window: 1 << 24 };

/// Copies of what is lost by an outcome with so many packets, on a connection that has begun.
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
fn sparse_early_losses_go_twice_whoever_finds_them() {
    let mut repairs = begun();
    assert_eq!(copies(&mut repairs, 1200, 99, 1), 2, "an acknowledgement");
    assert_eq!(copies(&mut repairs, 1300, 0, 1), 2, "a timer");
    assert_eq!(copies(&mut repairs, 4000, 99, 1), 1, "not early any more");
}

#[test]
fn an_overflow_is_not_sent_twice() {
    let mut repairs = begun();
    assert_eq!(copies(&mut repairs, 1200, 100, 40), 1);
    assert_eq!(copies(&mut repairs, 1210, 20, 0), 1, "nor what is found with it");
    for at in 0..50 {
        copies(&mut repairs, 1220 + at, 100, 1);
    }
    assert_eq!(copies(&mut repairs, 1400, 100, 1), 2, "until it is over");
}

/// How many times a range of this generation goes in all, if it is lost with one copy wanted.
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
fn what_is_lost_again_goes_twice_and_then_three_times() {
    assert_eq!([1, 2, 3, 4, 200].map(|generation| sent_in_all(generation, 1)), [1, 2, 3, 3, 3]);
    assert_eq!(sent_in_all(1, 8), 8);
}

// spec: loss-4
#[test]
fn at_the_end_lost_parts_go_as_often_as_makes_sure_of_them() {
    let lost = |packets: u64| Volume { packets, bytes: packets * 1000 };
    let copies = |packets, ambient_loss, tail| {
        let mut repairs = Repairs::default();
        repairs.set_tail(tail);
        repairs.tail_copies(lost(packets), Circumstances { ambient_loss, ..PATH })
    };
    assert_eq!(copies(10, 0.1, false), 1, "there is something new to send");
    // 10 x 0.1^n missing: below a hundredth with three.
    assert_eq!(copies(10, 0.1, true), 4);
    assert_eq!(copies(10, 0.5, true), MAX_TAIL_COPIES);
    // A quarter of 16 MB holds four times a megabyte, and once three.
    assert_eq!(copies(1000, 0.5, true), 4);
    assert_eq!(copies(3000, 0.5, true), 1);
}
