//! What UDP moves within this machine: the kernel's share of a transfer, without encryption.

use crate::check::{Check, Id, State};
use hikyaku_fs::words;
use hikyaku_udp::{RecvBatch, SendOutcome, SocketOptions, Transmit, UdpSocket, segments_in_batch};
use hikyaku_units::Rate;
use std::io::{Error, Result};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// How long datagrams are sent.
const TRIAL: Duration = Duration::from_millis(400);
/// Bytes of a datagram: what an MTU of 1,500 leaves.
const DATAGRAM_BYTES: usize = 1_472;
/// Messages of one receive call.
const MESSAGES: usize = 16;

/// Measures it.
pub(super) fn check() -> (Check, Option<Rate>) {
    match rate() {
        Ok(rate) => {
            let check = Check::ok(Id::UdpLoopback, format!("{rate} within this machine"));
            (check.measured(rate.bits_per_sec() as f64, "bit/s"), Some(rate))
        }
        Err(error) => {
            let found = format!("no UDP within this machine: {}", words(&error));
            let remedy =
                "look for a firewall rule that drops UDP on the device lo: nft list ruleset";
            (Check::new(Id::UdpLoopback, State::Fail, found).with_remedy(remedy), None)
        }
    }
}

fn rate() -> Result<Rate> {
    let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let bind = || UdpSocket::bind(any, &SocketOptions::default()).map_err(Error::other);
    let (near, far) = (bind()?, bind()?);
    let is_over = AtomicBool::new(false);
    let begin = Instant::now();
    let received = thread::scope(|scope| {
        let receiver = scope.spawn(|| receive(&far, &is_over));
        let sent = send(&near, far.local_addr());
        is_over.store(true, Ordering::Relaxed);
        let received = receiver.join().unwrap_or_else(|_| Err(Error::other("a thread ended")));
        sent.and(received)
    })?;
    if received == 0 {
        return Err(Error::other("nothing arrived"));
    }
    let seconds = begin.elapsed().as_secs_f64();
    Ok(Rate::from_bits_per_sec((received as f64 * 8.0 / seconds) as u64))
}

fn send(socket: &UdpSocket, destination: SocketAddr) -> Result<()> {
    let contents = vec![0x5a; segments_in_batch(DATAGRAM_BYTES) * DATAGRAM_BYTES];
    let segment_size = Some(DATAGRAM_BYTES);
    let batch = Transmit { segment_size, ..Transmit::to(destination, &contents) };
    let begin = Instant::now();
    while begin.elapsed() < TRIAL {
        match socket.send(&batch).map_err(Error::other)? {
            SendOutcome::Sent => {}
            SendOutcome::Stopped { .. } => thread::yield_now(),
        }
    }
    Ok(())
}

/// Counts bytes until the sender is done and nothing more waits.
fn receive(socket: &UdpSocket, is_over: &AtomicBool) -> Result<u64> {
    let mut batch = RecvBatch::new(MESSAGES);
    let mut bytes = 0;
    loop {
        let was_over = is_over.load(Ordering::Relaxed);
        if socket.recv(&mut batch)? > 0 {
            bytes += batch.messages().map(|message| message.meta.len as u64).sum::<u64>();
        } else if was_over {
            return Ok(bytes);
        } else {
            thread::yield_now();
        }
    }
}
