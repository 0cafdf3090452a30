//! What sealing and opening one packet cost, with packets side by side as in a super-packet.

use crate::args::{SealArgs, pin};
use crate::cipher::{Aead, Cipher, Mode, body};
use crate::packet::{HEADER, TAG, TRAILER};
use anyhow::Result;
use hikyaku_udp::segments_in_batch;
use serde::Serialize;
use std::time::{Duration, Instant};

const BUFFER: usize = 4 << 20;

/// One case. The best is what the processor can do; the median is what a shared machine gives.
#[derive(Serialize)]
struct Cost {
    cipher: Cipher,
    mode: Mode,
    sealed_bytes: usize,
    seal_best_ns: u64,
    seal_median_ns: u64,
    open_best_ns: u64,
    open_median_ns: u64,
}

pub(crate) fn run(args: &SealArgs) -> Result<()> {
    pin(args.cpu)?;
    for &size in &args.sizes {
        for cipher in [Cipher::Aegis128l, Cipher::Aegis128x2, Cipher::Aes128gcm, Cipher::Chacha20] {
            for mode in Mode::ALL {
                let cost = measure(cipher, mode, size, args.time)?;
                println!("{}", serde_json::to_string(&cost)?);
            }
        }
    }
    Ok(())
}

fn measure(cipher: Cipher, mode: Mode, size: usize, time: Duration) -> Result<Cost> {
    let aead = Aead::new(cipher)?;
    let datagram = HEADER + size + TAG;
    let count = segments_in_batch(datagram);
    let mut packets = vec![0; count * datagram];
    let mut outside = vec![1; BUFFER];
    let mut offset = 0;
    let (mut seals, mut opens) = (Vec::new(), Vec::new());
    let end = Instant::now() + time;
    while Instant::now() < end {
        // A new place for each round, so that the outside is not in the first-level cache.
        offset = if offset + 2 * count * size > BUFFER { 0 } else { offset + count * size };
        let outside = &mut outside[offset..offset + count * size];
        let places = || 0..count as u64;
        seals.push(timed(count, || {
            let pairs = packets.chunks_exact_mut(datagram).zip(outside.chunks_exact(size));
            places()
                .zip(pairs)
                .try_for_each(|(number, (packet, plain))| seal(&aead, mode, number, packet, plain))
        })?);
        opens.push(timed(count, || {
            let pairs = packets.chunks_exact_mut(datagram).zip(outside.chunks_exact_mut(size));
            places()
                .zip(pairs)
                .try_for_each(|(number, (packet, plain))| open(&aead, mode, number, packet, plain))
        })?);
    }
    let (seal_best_ns, seal_median_ns) = best_and_median(seals);
    let (open_best_ns, open_median_ns) = best_and_median(opens);
    Ok(Cost {
        cipher,
        mode,
        sealed_bytes: size,
        seal_best_ns,
        seal_median_ns,
        open_best_ns,
        open_median_ns,
    })
}

fn seal(aead: &Aead, mode: Mode, number: u64, packet: &mut [u8], plain: &[u8]) -> Result<()> {
    match mode {
        Mode::Inplace => aead.seal_in_place(number, packet),
        Mode::Copy => {
            body(packet).copy_from_slice(plain);
            aead.seal_in_place(number, packet)
        }
        Mode::Outofplace => {
            let payload = &plain[..plain.len() - TRAILER];
            aead.seal_from(number, payload, &[0; TRAILER], packet)
        }
    }
}

fn open(aead: &Aead, mode: Mode, number: u64, packet: &mut [u8], plain: &mut [u8]) -> Result<()> {
    match mode {
        Mode::Inplace => aead.open_in_place(number, packet),
        Mode::Copy => {
            aead.open_in_place(number, packet)?;
            plain.copy_from_slice(body(packet));
            Ok(())
        }
        Mode::Outofplace => aead.open_into(number, packet, plain),
    }
}

/// Nanoseconds a packet.
fn timed(count: usize, work: impl FnOnce() -> Result<()>) -> Result<u64> {
    let start = Instant::now();
    work()?;
    let nanos = start.elapsed().as_nanos() / count as u128;
    Ok(u64::try_from(nanos)?)
}

fn best_and_median(mut times: Vec<u64>) -> (u64, u64) {
    times.sort_unstable();
    let best = times.first().copied().unwrap_or_default();
    (best, times.get(times.len() / 2).copied().unwrap_or(best))
}
