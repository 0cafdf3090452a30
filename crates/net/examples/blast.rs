//! One stream as fast as it goes: the client writes, the server reads and counts.
//!
//! ```text
//! blast serve 10.0.0.2:5201                   # prints the fingerprint
//! blast send 10.0.0.2:5201 FINGERPRINT SECONDS
//! ```
//!
//! Each end prints its rate, and the processor time that its whole process took for a gigabyte.

use hikyaku_net::blocking::block_on;
use hikyaku_net::{
    Bytes, ConnectConfig, Connection, Endpoint, EndpointConfig, Identity, Listener, ListenerConfig,
    OnDrop, ServerCredentials, Trust,
};
use std::error::Error;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// Bytes of one write.
const CHUNK: usize = 256 << 10;

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args.as_slice() {
        ["serve", address] => serve(address.parse()?),
        ["send", target, fingerprint, seconds] => {
            let time = Duration::from_secs_f64(seconds.parse()?);
            send(target.parse()?, Trust::Pinned(fingerprint.parse()?), time)
        }
        _ => Err("usage: blast serve ADDRESS | send ADDRESS FINGERPRINT SECONDS".into()),
    }
}

fn serve(address: SocketAddr) -> Result<()> {
    let identity = Identity::generate()?;
    let mut endpoint = EndpointConfig::default();
    endpoint.on_drop = OnDrop::Wait;
    let mut config = ListenerConfig::new(ServerCredentials::new(&identity));
    config.endpoint = endpoint;
    let listener = Listener::bind(address, config)?;
    println!("{}", identity.fingerprint());
    block_on(async {
        let connection = listener.accept().await?;
        let mut stream = connection.accept_stream().await?;
        let mut meter = Meter::start();
        while let Some(run) = stream.read_chunk().await? {
            meter.bytes += run.len() as u64;
        }
        meter.print("received");
        print_stats(&connection).await;
        Ok(())
    })
}

fn send(target: SocketAddr, trust: Trust, time: Duration) -> Result<()> {
    let any = if target.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
    let mut config = EndpointConfig::default();
    config.on_drop = OnDrop::Wait;
    let endpoint = Endpoint::bind(any.parse()?, config)?;
    if let Some(advice) = endpoint.advice() {
        eprintln!("small buffers: {advice}");
    }
    let chunk = Bytes::from(vec![0x5a; CHUNK]);
    block_on(async {
        let connection = endpoint.connect(target, ConnectConfig::new(trust)).await?;
        let mut stream = connection.open_stream().await?;
        let mut meter = Meter::start();
        while meter.start.elapsed() < time {
            stream.write_chunk(chunk.clone()).await?;
            meter.bytes += CHUNK as u64;
        }
        stream.finish();
        stream.delivered().await?;
        meter.print("sent");
        print_stats(&connection).await;
        Ok(())
    })
}

async fn print_stats(connection: &Connection) {
    if let Some(stats) = connection.stats().await {
        eprintln!("{stats:#?}");
    }
}

struct Meter {
    start: Instant,
    processor: Duration,
    bytes: u64,
}

impl Meter {
    fn start() -> Self {
        Self { start: Instant::now(), processor: processor_time(), bytes: 0 }
    }

    fn print(&self, what: &str) {
        let seconds = self.start.elapsed().as_secs_f64();
        let processor = (processor_time() - self.processor).as_secs_f64();
        let gigabytes = self.bytes as f64 / 1e9;
        let (rate, cost) = (gigabytes * 8.0 / seconds, processor / gigabytes);
        println!("{what} {gigabytes:.2} GB: {rate:.2} Gbit/s, {cost:.3} CPU s/GB");
    }
}

/// Processor time of this process until this moment, in user and in kernel mode.
fn processor_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec as u32)
}
