//! The number of connections: what is measured for the tuner, and what it decides.
//!
//! An epoch begins when as many connections carry bytes as were asked for, or after [`SETTLE`] with as many as there are:
//! what slow start costs belongs to no number. It ends after the time or the bytes that the tuner asks for.

use crate::fetch::{End, Fetch};
use crate::show::Epoch;
use hikyaku_http::Fault;
use hikyaku_tuner::{Decision, LimitedBy, Next, Sample, Tuner};
use hikyaku_units::DataSize;
use std::thread;
use std::time::{Duration, Instant};

/// How often it looks.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Time that connections have to come up.
const SETTLE: Duration = Duration::from_secs(5);
/// Round trips between the last connection's first byte and the beginning of an epoch.
const SETTLE_ROUND_TRIPS: u32 = 4;
/// The number of round trips that an epoch has at least.
const EPOCH_ROUND_TRIPS: u32 = 6;
/// Connections spend more than this share of their time in writing: the disk limits.
const DISK_SHARE: f64 = 0.5;

/// The measured values at the beginning of an epoch.
struct Measured {
    since: Instant,
    bytes: u64,
    disk: Duration,
    n: usize,
}

/// Starts workers by `spawn`, which says whether it could, and changes their number until the fetch is over.
pub(crate) fn steer(fetch: &Fetch<'_>, tuner: &mut Tuner, mut spawn: impl FnMut(usize) -> bool) {
    let mut asked = tuner.start();
    let (mut spawned, mut asked_at) = (0, Instant::now());
    let mut measured: Option<Measured> = None;
    let mut full_since: Option<Instant> = None;
    loop {
        let mut state = fetch.state();
        if state.end.is_some() {
            return;
        }
        if fetch.interrupted.is_set() {
            drop(state);
            return fetch.end(End::Fault(Fault::Stopped));
        }
        let wanted = asked.n.min(fetch.conduct.cap).max(1) as usize;
        state.wanted = wanted;
        let (flowing, bytes, disk) = (state.flowing, state.bytes, state.disk);
        let rtt = state.rtt.unwrap_or_default();
        drop(state);
        while spawned < wanted && spawn(spawned) {
            spawned += 1;
        }
        let now = Instant::now();
        match &measured {
            None => {
                let is_full = flowing >= wanted;
                full_since = if is_full { full_since.or(Some(now)) } else { None };
                let settled = full_since.is_some_and(|at| now - at >= rtt * SETTLE_ROUND_TRIPS);
                let is_late = now - asked_at >= SETTLE && flowing > 0;
                if settled || is_late {
                    measured = Some(Measured { since: now, bytes, disk, n: flowing });
                }
            }
            Some(begin) if is_over(&asked, begin, (now, bytes), rtt) => {
                let epoch = epoch(&asked, begin, (now, bytes, disk), flowing);
                fetch.show.epoch(&epoch);
                asked = tuner.handle_sample(&epoch.sample);
                (measured, full_since, asked_at) = (None, None, now);
            }
            Some(_) => {}
        }
        thread::sleep(LOOK_EVERY);
    }
}

fn is_over(
    asked: &Decision,
    begin: &Measured,
    (now, bytes): (Instant, u64),
    rtt: Duration,
) -> bool {
    let elapsed = now - begin.since;
    match asked.next {
        Next::Bytes(size) => bytes - begin.bytes >= size.bytes(),
        Next::For(time) => elapsed >= time.max(rtt * EPOCH_ROUND_TRIPS),
        Next::Rest => false,
    }
}

fn epoch(
    asked: &Decision,
    begin: &Measured,
    (now, bytes, disk): (Instant, u64, Duration),
    flowing: usize,
) -> Epoch {
    let elapsed = now - begin.since;
    let n = begin.n.min(flowing);
    let of_all = elapsed.as_secs_f64() * n.max(1) as f64;
    let is_disk = (disk - begin.disk).as_secs_f64() > DISK_SHARE * of_all;
    let sample = Sample {
        n: u32::try_from(n).unwrap_or(u32::MAX),
        bytes: DataSize::from_bytes(bytes - begin.bytes),
        elapsed,
        limited_by: if is_disk { LimitedBy::Disk } else { LimitedBy::Network },
    };
    Epoch { sample, phase: asked.phase }
}
