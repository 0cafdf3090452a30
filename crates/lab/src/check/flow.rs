//! Sends datagrams from one host to another and records when they arrive.

use super::judge::wire_bits;
use crate::report::DirectionReport;
use anyhow::{Context, Result};
use hikyaku_tun::{in_namespace, prefer_this_thread};
use hikyaku_udp::{
    Interest, Message, Poller, RecvBatch, SendOutcome, SocketOptions, Transmit, UdpSocket,
    segments_in_batch,
};
use rustix::time::{ClockId, clock_gettime};
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Size of the IPv4 and UDP headers, in bytes.
pub(super) const HEADER_BYTES: u32 = 28;
/// Largest packet that is sent, in bytes, even if the link accepts larger ones.
const MTU_MAX: u32 = 1500;
/// Upper bound on the time to wait for the queue to drain, for queues without a limit.
const QUEUE_DELAY_MAX: Duration = Duration::from_secs(20);
/// Number of single datagrams, and the interval between them.
const SINGLES_COUNT: u64 = 40;
const SINGLES_INTERVAL: Duration = Duration::from_millis(5);
/// Payload of a single datagram, in bytes: a timestamp of eight bytes, then zeros.
pub(super) const SINGLE_BYTES: usize = 100;
/// Extra time to wait for the last datagram, because the relay may be late.
const LATENESS_MARGIN: Duration = Duration::from_millis(400);
/// Longest time that one batch of the flood takes at the flood's rate.
const BATCH_TIME_MAX: Duration = Duration::from_micros(500);
/// Rate of the flood on a link without a rate limit, in bits per second.
const UNLIMITED_LINK_RATE: f64 = 200e6;
/// Rate of the flood as a multiple of the link's rate.
const OVERLOAD_FACTOR: f64 = 1.1;
/// Least number of datagrams in a flood.
const FLOOD_DATAGRAMS_MIN: f64 = 300.0;
/// Longest duration of a flood, as a multiple of the requested one.
const FLOOD_DURATION_FACTOR_MAX: f64 = 10.0;

/// The two sockets of a measurement.
struct Ends {
    sender: UdpSocket,
    receiver: UdpSocket,
    to: SocketAddr,
}

/// The parameters of a flood.
struct Flood {
    /// Payload of each datagram, in bytes.
    payload: usize,
    /// Bits per second, Ethernet framing included.
    rate: f64,
    seconds: f64,
}

impl Flood {
    fn new(asked: &DirectionReport, duration: Duration) -> Self {
        let payload = (asked.mtu.unwrap_or(MTU_MAX).min(MTU_MAX) - HEADER_BYTES) as usize;
        let excess = OVERLOAD_FACTOR + asked.background_share;
        let rate = asked.rate_bits_per_sec.map_or(UNLIMITED_LINK_RATE, |rate| rate as f64 * excess);
        let fewest = FLOOD_DATAGRAMS_MIN * wire_bits(payload) / rate;
        let duration = duration.as_secs_f64();
        Self {
            payload,
            rate,
            seconds: fewest.clamp(duration, duration * FLOOD_DURATION_FACTOR_MAX),
        }
    }
}

/// The received part of a flood.
#[derive(Debug, Default)]
pub(super) struct Received {
    pub(super) datagrams: u64,
    /// Time of arrival of each received message, in nanoseconds of CLOCK_REALTIME, and the number
    /// of datagrams in it.
    pub(super) messages: Vec<(u64, u32)>,
    /// Messages that the receiving socket dropped because its buffer was full.
    pub(super) dropped_by_host: u32,
}

/// Everything that was sent and received in one direction.
#[derive(Debug)]
pub(super) struct Flow {
    /// One-way delays of the single datagrams.
    pub(super) delays: Vec<Duration>,
    /// Payload of each datagram of the flood, in bytes.
    pub(super) payload: usize,
    /// Number of datagrams sent, the single ones included.
    pub(super) sent: u64,
    /// The received part of the flood.
    pub(super) received: Received,
}

/// Sends single datagrams and then a flood for about the time `duration` from one namespace to another,
/// where `to` is.
pub(super) fn run(
    places: [&Path; 2],
    to: Ipv4Addr,
    asked: &DirectionReport,
    duration: Duration,
) -> Result<Flow> {
    let ends = Ends::bind(places, to)?;
    let delay_max =
        Duration::from_secs_f64((asked.delay_ms + asked.jitter_ms) / 1e3) + queue_max(asked);
    let delays = ends.singles(delay_max)?;
    let flood = Flood::new(asked, duration);
    let (sent, received) = ends.flood(&flood, delay_max)?;
    Ok(Flow { delays, payload: flood.payload, sent: sent + SINGLES_COUNT, received })
}

/// How long a full queue takes to drain.
fn queue_max(asked: &DirectionReport) -> Duration {
    let Some(rate) = asked.rate_bits_per_sec else { return Duration::ZERO };
    let packets =
        asked.queue_limit_packets.map_or(0.0, |packets| f64::from(packets) * f64::from(MTU_MAX));
    let bytes = asked.queue_limit_bytes.map_or(packets, |bytes| bytes as f64);
    Duration::try_from_secs_f64(bytes * 8.0 / rate as f64)
        .unwrap_or(QUEUE_DELAY_MAX)
        .min(QUEUE_DELAY_MAX)
}

impl Ends {
    /// Binds a socket in each of the two namespaces; `to` is the address of the second.
    fn bind(places: [&Path; 2], to: Ipv4Addr) -> Result<Self> {
        let bind = |place: &Path, address: Ipv4Addr| {
            in_namespace(place, || {
                UdpSocket::bind((address, 0).into(), &SocketOptions::default())
                    .map_err(io::Error::other)
            })
        };
        let sender = bind(places[0], Ipv4Addr::UNSPECIFIED)?;
        let receiver = bind(places[1], to)?;
        let to = receiver.local_addr();
        Ok(Self { sender, receiver, to })
    }

    /// Sends single datagrams. Returns the delays of those that arrived.
    fn singles(&self, delay_max: Duration) -> Result<Vec<Duration>> {
        let mut delays = Vec::new();
        self.send_and_receive(
            || {
                for _ in 0..SINGLES_COUNT {
                    let mut contents = [0; SINGLE_BYTES];
                    contents[..8].copy_from_slice(&calendar_nanos().to_le_bytes());
                    self.send(&Transmit::to(self.to, &contents))?;
                    thread::sleep(SINGLES_INTERVAL);
                }
                Ok(())
            },
            delay_max,
            |message| {
                let arrived = message.meta.arrived.unwrap_or_default();
                let sent =
                    message.datagrams().filter_map(|contents| contents.first_chunk().copied());
                let took = sent.map(|sent| arrived.saturating_sub(u64::from_le_bytes(sent)));
                delays.extend(took.map(Duration::from_nanos));
            },
        )?;
        Ok(delays)
    }

    /// Sends a flood. Returns the number of datagrams sent, and what arrived of them.
    fn flood(&self, flood: &Flood, delay_max: Duration) -> Result<(u64, Received)> {
        let bits = wire_bits(flood.payload);
        let in_time = (BATCH_TIME_MAX.as_secs_f64() * flood.rate / bits) as usize;
        let in_batch = in_time.clamp(1, segments_in_batch(flood.payload));
        let contents = vec![0; in_batch * flood.payload];
        let batch =
            Transmit { segment_size: Some(flood.payload), ..Transmit::to(self.to, &contents) };
        let batch_seconds = bits * in_batch as f64 / flood.rate;
        let mut received = Received::default();
        let mut sent = 0;
        let send = || {
            let begin = Instant::now();
            for number in 0.. {
                let due = f64::from(number) * batch_seconds;
                if due > flood.seconds {
                    break;
                }
                wait_until(begin + Duration::from_secs_f64(due));
                sent += self.send(&batch)? / flood.payload as u64;
            }
            Ok(())
        };
        self.send_and_receive(send, delay_max, |message| {
            let count = message.datagrams().len() as u32;
            received.datagrams += u64::from(count);
            received.messages.push((message.meta.arrived.unwrap_or_default(), count));
            received.dropped_by_host = received.dropped_by_host.max(message.meta.overflows);
        })?;
        Ok((sent, received))
    }

    /// Sends as much as the socket accepts. Returns the number of bytes sent.
    fn send(&self, transmit: &Transmit<'_>) -> Result<u64> {
        Ok(match self.sender.send(transmit)? {
            SendOutcome::Sent => transmit.contents.len() as u64,
            SendOutcome::Stopped { sent } => sent as u64,
        })
    }

    /// Runs `send` on a thread and passes every received message to `take`, until no more can
    /// arrive.
    fn send_and_receive(
        &self,
        send: impl FnOnce() -> Result<()> + Send,
        delay_max: Duration,
        mut take: impl FnMut(&mut Message<'_>),
    ) -> Result<()> {
        let is_sent = AtomicBool::new(false);
        thread::scope(|scope| {
            let sender = scope.spawn(|| {
                // With real-time priority if permitted: if the sender is not scheduled in time, the
                // queue runs empty and the link seems slower than it is.
                let _ = prefer_this_thread();
                let result = send();
                is_sent.store(true, Ordering::Release);
                result
            });
            let poller = Poller::new()?;
            let mut batch = RecvBatch::new(64);
            let mut deadline = None;
            loop {
                while self.receiver.recv(&mut batch)? > 0 {
                    batch.messages().for_each(|mut message| take(&mut message));
                    deadline = None;
                }
                if deadline.is_none() && is_sent.load(Ordering::Acquire) {
                    deadline = Some(Instant::now() + delay_max + LATENESS_MARGIN);
                }
                if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                    break;
                }
                poller.wait(&self.receiver, Interest::Readable, Some(Duration::from_millis(20)))?;
            }
            sender.join().ok().context("the sending thread has panicked")?
        })
    }
}

fn wait_until(due: Instant) {
    if let Some(left) = due.checked_duration_since(Instant::now()) {
        thread::sleep(left);
    }
}

/// CLOCK_REALTIME, by which the kernel timestamps received datagrams.
fn calendar_nanos() -> u64 {
    let now = clock_gettime(ClockId::Realtime);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}
