//! One busy stream beside many idle ones on the same connection: what the processor's time is for a gigabyte.
//!
//! Two connections on loopback, each with sockets and threads of its own, all in this process: one has a busy stream and
//! nothing else, the other has idle ones beside it. Each of those was opened, has carried a message in each direction, and
//! stays open with nothing to say. The busy streams move a slice in turn, so that a machine that drifts hits both alike.
#![forbid(unsafe_code)]

use anyhow::{Context, Result, ensure};
use clap::Parser;
use hikyaku_crypto::{Identity, ServerCredentials, Trust};
use hikyaku_net::blocking::block_on;
use hikyaku_net::{
    Bytes, ConnectConfig, Connection, Endpoint, EndpointConfig, Listener, ListenerConfig, OnDrop,
    Stream,
};
use hikyaku_units::Rate;
use rustix::time::{ClockId, clock_gettime};
use serde::Serialize;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

/// Moves bytes over one stream beside others that are idle and beside none, and prints what both cost as JSON.
#[derive(Parser)]
struct Args {
    /// How many streams are open and idle
    #[arg(long)]
    streams: u32,
    /// How often both are measured
    #[arg(long, default_value_t = 20)]
    rounds: u32,
    /// How many megabytes are moved each time
    #[arg(long, default_value_t = 1000)]
    megabytes: u32,
}

/// What came of it.
#[derive(Serialize)]
struct Report {
    streams: u32,
    rounds: Vec<Round>,
    /// Bytes that were sent again over both: work that a run without loss does not have.
    repeated: u64,
}

/// What a slice cost without and with idle streams.
#[derive(Serialize)]
struct Round {
    without: Cost,
    with: Cost,
}

#[derive(Clone, Copy, Serialize)]
struct Cost {
    seconds: f64,
    /// Of all threads, in the program and in the kernel.
    processor_seconds: f64,
}

/// What an idle stream has carried in each direction.
const MESSAGE: &[u8] = &[7; 100];
/// Streams that are opened before the answers on them are read.
const AT_ONCE: usize = 100;
/// Bytes of one write.
const CHUNK: usize = 256 << 10;
/// How fast slices go: a path without a bottleneck has no rate of its own, and at another rate a byte has another cost.
const RATE: Rate = Rate::from_bits_per_sec(16_000_000_000);
/// Slices that are not counted: the rate has been found by then.
const BEFORE: u32 = 2;

fn main() -> Result<()> {
    let args = Args::parse();
    let slice = u64::from(args.megabytes) * 1_000_000;
    let [without, with] = [Pair::new(0, slice)?, Pair::new(args.streams, slice)?];
    for pair in [&without, &with].repeat(BEFORE as usize) {
        pair.step()?;
    }
    let mut rounds = Vec::new();
    for round in 0..args.rounds {
        // Neither is always the first.
        let (with, without) = if round % 2 == 0 {
            let first = without.step()?;
            (with.step()?, first)
        } else {
            (with.step()?, without.step()?)
        };
        rounds.push(Round { without, with });
    }
    let repeated = without.end()? + with.end()?;
    let report = Report { streams: args.streams, rounds, repeated };
    println!("{}", serde_json::to_string(&report)?);
    Ok(())
}

/// Both ends of a connection.
struct Pair {
    /// A word moves a slice.
    start: Sender<()>,
    done: Receiver<()>,
    sender: thread::JoinHandle<Result<u64>>,
    receiver: thread::JoinHandle<Result<()>>,
}

impl Pair {
    /// A connection with so many idle streams and one over which slices go.
    fn new(streams: u32, slice: u64) -> Result<Self> {
        let identity = Identity::generate()?;
        let quiet = || {
            let mut config = EndpointConfig::default();
            config.on_drop = OnDrop::Wait;
            config
        };
        let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let mut config = ListenerConfig::new(ServerCredentials::new(&identity));
        config.endpoint = quiet();
        // The busy stream is one more.
        config.transport.max_streams = streams + 1;
        let listener = Listener::bind(any, config)?;
        let endpoint = Endpoint::bind(any, quiet())?;
        let (address, trust) = (listener.local_addr(), Trust::Pinned(identity.fingerprint()));
        let (start, started) = channel();
        let (tell, done) = channel();
        let receiver = thread::spawn(move || block_on(receive(&listener, streams, slice, &tell)));
        let sender = thread::spawn(move || {
            block_on(async {
                let connection = endpoint.connect(address, ConnectConfig::new(trust)).await?;
                send(&connection, streams, slice, &started).await
            })
        });
        Ok(Self { start, done, sender, receiver })
    }

    /// Moves a slice.
    fn step(&self) -> Result<Cost> {
        let (began, worked) = (Instant::now(), processor_time());
        self.start.send(()).context("the sender has ended")?;
        self.done.recv().context("the receiver has ended")?;
        let (seconds, worked) = (began.elapsed(), processor_time() - worked);
        Ok(Cost { seconds: seconds.as_secs_f64(), processor_seconds: worked.as_secs_f64() })
    }

    /// Ends both; gives how many bytes were sent again.
    fn end(self) -> Result<u64> {
        drop(self.start);
        let repeated = self.sender.join().ok().context("the sender has panicked")??;
        self.receiver.join().ok().context("the receiver has panicked")??;
        Ok(repeated)
    }
}

/// Answers on `streams` streams, and reads the busy one to its end; tells of each slice.
async fn receive(listener: &Listener, streams: u32, slice: u64, done: &Sender<()>) -> Result<()> {
    let connection = listener.accept().await?;
    let mut idle = Vec::new();
    for _ in 0..streams {
        let mut stream = connection.accept_stream().await?;
        hear(&mut stream).await?;
        stream.write_chunk(Bytes::from_static(MESSAGE)).await?;
        idle.push(stream);
    }
    let mut busy = connection.accept_stream().await?;
    let mut got = 0;
    while let Some(run) = busy.read_chunk().await? {
        got += run.len() as u64;
        if got == slice {
            done.send(()).context("nobody waits for slices")?;
            got = 0;
        }
        // The next begins when this has come.
        ensure!(got < slice, "more came than was sent");
    }
    Ok(())
}

/// Reads a message.
async fn hear(stream: &mut Stream) -> Result<()> {
    let mut got = 0;
    while got < MESSAGE.len() {
        got += stream.read_chunk().await?.context("the stream has ended too early")?.len();
    }
    Ok(())
}

/// Opens the streams that will be idle, then sends slices over one more. Gives how many bytes were sent again.
async fn send(
    connection: &Connection,
    streams: u32,
    slice: u64,
    start: &Receiver<()>,
) -> Result<u64> {
    let mut idle = Vec::new();
    while idle.len() < streams as usize {
        let from = idle.len();
        for _ in 0..AT_ONCE.min(streams as usize - from) {
            let mut stream = connection.open_stream().await?;
            stream.write_chunk(Bytes::from_static(MESSAGE)).await?;
            idle.push(stream);
        }
        for stream in &mut idle[from..] {
            hear(stream).await?;
        }
    }
    connection.set_payload_rate(Some(RATE));
    let mut busy = connection.open_stream().await?;
    let chunk = Bytes::from(vec![7; CHUNK]);
    while start.recv().is_ok() {
        let mut left = slice;
        while left > 0 {
            let len = left.min(CHUNK as u64);
            busy.write_chunk(chunk.slice(..len as usize)).await?;
            left -= len;
        }
    }
    busy.finish();
    busy.delivered().await?;
    Ok(connection.stats().await.context("the connection was lost")?.resent.bytes())
}

/// What all threads have taken, in the program and in the kernel.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec as u32)
}
