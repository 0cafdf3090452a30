//! Helpers of the end-to-end tests: skipping without root, and streams whose contents can be
//! checked.

use hikyaku_lab::{Lab, LabSpec, Side};
use hikyaku_link::{PathSpec, Setting};
use hikyaku_udp::{RecvBatch, SocketOptions, Transmit, UdpSocket};
use hikyaku_units::Instant;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, sleep};
use std::time::Duration;

/// A lab with these settings, or `None` without root.
pub(crate) fn lab(settings: &[&str]) -> Option<Lab> {
    lab_with(settings, LabSpec::default())
}

/// The same, with a description as base.
pub(crate) fn lab_with(settings: &[&str], spec: LabSpec) -> Option<Lab> {
    let mut path = PathSpec::default();
    for setting in settings {
        setting.parse::<Setting>().unwrap().apply(&mut path, Instant::ZERO);
    }
    match Lab::up(LabSpec { path, ..spec }) {
        Ok(lab) => Some(lab),
        Err(error) => skipped(&error),
    }
}

/// Returns `None` and prints why, if the lab could not be created for lack of root.
pub(crate) fn skipped<T>(error: &anyhow::Error) -> Option<T> {
    assert!(error.to_string().contains("needs root"), "{error:#}");
    eprintln!("\n*** SKIPPED, because {error:#} ***\n");
    None
}

/// Payload of each datagram of [`blast`], in bytes.
pub(crate) const DATAGRAM_BYTES: usize = 1200;
/// Number of datagrams in each super-packet of [`blast`].
const BATCH_DATAGRAMS: u64 = 40;
/// Number of datagrams of [`blast`] that may be in flight or lost. A receiver's socket buffer holds
/// this many while the receiver is not scheduled. No test loses more.
const OUTSTANDING_MAX: u64 = 5000;
/// How long [`blast`] waits for a receiver or relay that makes no progress.
const PROGRESS_TIMEOUT: Duration = Duration::from_secs(10);

/// Sends `count` numbered datagrams from the client to the server as super-packets, one batch every
/// `pause`. Returns how often each number arrived, and how many datagrams were corrupted.
pub(crate) fn blast(
    lab: &Lab,
    count: u64,
    pause: Duration,
    settle: Duration,
) -> (HashMap<u64, u32>, u64) {
    let to: SocketAddr = (hikyaku_lab::ipv4(1), 9000).into();
    let receiver = bind(lab, Side::Server(1), to);
    let sender = bind(lab, Side::Client, (hikyaku_lab::ipv4(0), 0).into());
    let (sent, arrived) = (AtomicBool::new(false), AtomicU64::new(0));
    thread::scope(|scope| {
        let collected = scope.spawn(|| collect(&receiver, &sent, &arrived, settle));
        for first in (0..count).step_by(BATCH_DATAGRAMS as usize) {
            let batch: Vec<u8> =
                (first..count.min(first + BATCH_DATAGRAMS)).flat_map(datagram).collect();
            let transmit =
                Transmit { segment_size: Some(DATAGRAM_BYTES), ..Transmit::to(to, &batch) };
            wait_until(|| first <= arrived.load(Ordering::Relaxed) + OUTSTANDING_MAX);
            sender.send(&transmit).unwrap();
            // Without this wait, a relay that was not scheduled would see two batches at the same
            // time.
            let so_far = first + batch.len().div_ceil(DATAGRAM_BYTES) as u64;
            wait_until(|| lab.report().unwrap().up.segments >= so_far);
            sleep(pause);
        }
        sent.store(true, Ordering::Relaxed);
        collected.join().unwrap()
    })
}

fn wait_until(is_so: impl Fn() -> bool) {
    let begin = std::time::Instant::now();
    while !is_so() && begin.elapsed() < PROGRESS_TIMEOUT {
        sleep(Duration::from_micros(200));
    }
}

fn bind(lab: &Lab, side: Side, address: SocketAddr) -> UdpSocket {
    let bind =
        || UdpSocket::bind(address, &SocketOptions::default()).map_err(std::io::Error::other);
    lab.within(side, bind).unwrap()
}

fn collect(
    socket: &UdpSocket,
    sent: &AtomicBool,
    arrived: &AtomicU64,
    settle: Duration,
) -> (HashMap<u64, u32>, u64) {
    let mut batch = RecvBatch::new(64);
    let (mut seen, mut damaged) = (HashMap::new(), 0);
    let mut quiet = std::time::Instant::now();
    while !sent.load(Ordering::Relaxed) || quiet.elapsed() < settle {
        if socket.recv(&mut batch).unwrap() == 0 {
            sleep(Duration::from_micros(200));
            continue;
        }
        quiet = std::time::Instant::now();
        for mut message in batch.messages() {
            for datagram_seen in message.datagrams() {
                arrived.fetch_add(1, Ordering::Relaxed);
                let number = u64::from_le_bytes(*datagram_seen.first_chunk().unwrap());
                if datagram_seen == datagram(number) {
                    *seen.entry(number).or_insert(0) += 1;
                } else {
                    damaged += 1;
                }
            }
        }
    }
    (seen, damaged)
}

/// The contents of a datagram, derived from its number.
fn datagram(number: u64) -> [u8; DATAGRAM_BYTES] {
    let mut bytes = [0; DATAGRAM_BYTES];
    bytes[..8].copy_from_slice(&number.to_le_bytes());
    for (index, byte) in bytes.iter_mut().enumerate().skip(8) {
        *byte = pattern(number * DATAGRAM_BYTES as u64 + index as u64);
    }
    bytes
}

/// The byte at `offset` of every stream.
pub(crate) fn pattern(offset: u64) -> u8 {
    (offset.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
}
