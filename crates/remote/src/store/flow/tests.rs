//! Tests of the rate and the window of a stream of uploads.

use super::*;

const RTT: Duration = Duration::from_millis(200);

/// Sends all that may be sent to a server that takes `rate` bytes a second, for some seconds. `look` sees the state after
/// each step. If `is_late`, the first third of each second brings no answer: a packet was lost.
fn run_with(rate: u64, seconds: u64, is_late: bool, mut look: impl FnMut(&Flow, Duration)) -> Flow {
    let mut flow = Flow::new(RTT, Duration::ZERO);
    // What was sent is answered a round trip later, and not faster than the server writes.
    let step = Duration::from_millis(10);
    let mut under_way = std::collections::VecDeque::new();
    let mut now = Duration::ZERO;
    let mut budget = 0;
    while now < Duration::from_secs(seconds) {
        while flow.has_room() {
            flow.sent(256 << 10, now);
            under_way.push_back(now + RTT);
        }
        budget = (budget + rate / 100).min(rate);
        let is_silent = is_late && now.subsec_millis() < 333;
        while !is_silent && budget >= 256 << 10 && under_way.front().is_some_and(|due| *due <= now)
        {
            under_way.pop_front();
            budget -= 256 << 10;
            flow.answered(256 << 10, now);
        }
        look(&flow, now);
        now += step;
    }
    flow
}

fn run(rate: u64, seconds: u64) -> Flow {
    run_with(rate, seconds, false, |_, _| {})
}

#[test]
fn a_fast_path_gets_a_window_that_fills_it() {
    let rate = 1_000_000_000;
    let flow = run(rate, 5);
    assert!(flow.window as f64 > rate as f64 * 0.9 * 1.4, "{flow:?}");
}

#[test]
fn a_slow_server_holds_little() {
    let flow = run(4_000_000, 20);
    assert!(flow.window < WINDOW_BYTES_MIN, "{flow:?}");
    let rate = flow.rate(Duration::from_secs(20)).unwrap();
    assert!((3e6..5e6).contains(&rate), "{rate}");
}

#[test]
fn answers_that_come_late_and_all_at_once_do_not_change_the_rate() {
    for (rate, allowed) in [(4_000_000, 2.5e6..6e6), (500_000, 3e5..8e5)] {
        let mut outside = Vec::new();
        run_with(rate, 20, true, |flow, now| {
            let rate = flow.rate(now).filter(|_| flow.pace() == Pace::Settled);
            let is_outside = rate.is_some_and(|rate| !allowed.contains(&rate));
            outside.extend(is_outside.then_some((now, rate)));
        });
        assert!(outside.is_empty(), "{outside:?}");
    }
}

#[test]
fn a_silent_server_slows_down() {
    let mut flow = run(50_000_000, 5);
    flow.sent(1 << 20, Duration::from_secs(5));
    assert!(flow.rate(Duration::from_secs(5)).unwrap() > 4e7);
    assert!(flow.rate(Duration::from_secs(15)).unwrap() < 1e7);
}
