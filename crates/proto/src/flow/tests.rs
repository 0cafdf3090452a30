//! The receive window follows the arrival rate and stays below its maximum.

use super::*;

const RTT: Duration = Duration::from_millis(100);

/// The window after round trips of 100 MB each with the given loss rates.
fn window(losses: &[f64]) -> u64 {
    let mut flow = ReceiveFlow::new(1 << 20, u64::MAX);
    flow.set_rtt(RTT);
    let mut now = Instant::from_millis(1000);
    let mut arrived = Arrived::default();
    flow.measure(now, arrived);
    for loss in losses {
        now += RTT;
        arrived.of += 100_000;
        arrived.packets += (100_000.0 * (1.0 - loss)) as u64;
        arrived.bytes += 100_000_000;
        flow.measure(now, arrived);
    }
    flow.window()
}

/// The window after quarters of a round trip with the given megabytes each.
fn quarters(megabytes: &[u64]) -> u64 {
    let mut flow = ReceiveFlow::new(1 << 20, u64::MAX);
    flow.set_rtt(RTT);
    let mut now = Instant::from_millis(1000);
    let mut arrived = Arrived::default();
    flow.measure(now, arrived);
    for megabytes in megabytes {
        now += RTT / 4;
        arrived.bytes += megabytes * 1_000_000;
        flow.measure(now, arrived);
    }
    flow.window()
}

#[test]
fn the_window_grows_within_a_round_trip_for_a_fast_sender() {
    let full = (100e6 * WINDOW_PRODUCTS) as u64;
    assert_eq!(quarters(&[25, 25]), full, "half a round trip tells");
    assert_eq!(quarters(&[25, 0, 50, 25]), full, "a stall and what it held back do not");
}

#[test]
fn unread_bytes_of_stalled_streams_extend_the_window_up_to_its_maximum() {
    let mut flow = ReceiveFlow::new(1000, 3000);
    flow.on_received(1000).unwrap();
    assert_eq!(flow.set_stale(600), Some(1600));
    assert_eq!(flow.set_stale(5000), Some(3000), "not more than the bound");
    assert!(flow.on_received(2001).is_err());
}

#[test]
fn the_window_follows_lasting_loss_but_not_one_overflow() {
    let clean = (100e6 * WINDOW_PRODUCTS) as u64;
    assert_eq!(window(&[0.0; 5]), clean, "no loss");
    assert_eq!(window(&[0.5, 0.4, 0.0, 0.0, 0.0]), clean, "an overflow at the start");
    let lossy = window(&[0.02; 5]) as f64 / 100e6;
    assert!((lossy - WINDOW_PRODUCTS - 0.02 * WINDOW_PRODUCTS_PER_LOSS).abs() < 0.01, "{lossy}");
}
