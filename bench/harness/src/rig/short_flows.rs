//! Short TCP flows, as the web makes them: so many a second of so many bytes, each on a connection of its
//! own, and how long each took from its first packet to the receiver's word that it has all.
//!
//! `bench short-flows`, which benches run at both ends of a lab.

use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand};
use rustix::net::sockopt::set_tcp_congestion;
use serde::{Deserialize, Serialize};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

/// One of the two ends.
#[derive(Args)]
pub(crate) struct ShortArgs {
    #[command(subcommand)]
    role: Role,
}

#[derive(Subcommand)]
enum Role {
    /// Take flows until ended
    Serve {
        /// TCP port
        #[arg(long)]
        port: u16,
    },
    /// Send flows and print how long each took, as JSON
    Send(Load),
}

/// What is sent.
#[derive(Args, Clone)]
struct Load {
    /// The end that takes them
    #[arg(long)]
    to: SocketAddr,
    /// Flows a second, at random times
    #[arg(long)]
    rate: f64,
    /// Bytes of each
    #[arg(long)]
    bytes: usize,
    /// For how long flows begin
    #[arg(long)]
    seconds: f64,
    /// Their congestion control
    #[arg(long, default_value = "cubic")]
    control: String,
    /// Decides when they begin
    #[arg(long)]
    seed: u64,
}

/// What is printed.
#[derive(Serialize, Deserialize)]
pub(crate) struct Done {
    /// Seconds that each took, of those that were done.
    pub(crate) took: Vec<f64>,
    /// How many were not.
    pub(crate) failed: usize,
}

/// More flows at once than this are no longer what is measured.
const MOST_AT_ONCE: usize = 1000;
/// What takes so long has failed.
const PATIENCE: Duration = Duration::from_secs(20);
const STACK: usize = 64 << 10;
const CHUNK: usize = 32 << 10;
const DONE: u8 = 1;

/// Does what one end does.
pub(crate) fn run(args: &ShortArgs) -> Result<ExitCode> {
    match &args.role {
        Role::Serve { port } => serve(*port)?,
        Role::Send(load) => println!("{}", serde_json::to_string(&send(load)?)?),
    }
    Ok(ExitCode::SUCCESS)
}

/// Takes flows, each on a thread of its own, until the process is ended.
fn serve(port: u16) -> Result<()> {
    let address = SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), port);
    let listener = TcpListener::bind(address).with_context(|| format!("no port {port}"))?;
    for stream in listener.incoming() {
        let stream = stream?;
        thread::Builder::new().stack_size(STACK).spawn(move || drop(take(stream)))?;
    }
    Ok(())
}

/// Reads all, and says so.
fn take(mut stream: TcpStream) -> std::io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut buffer = vec![0; CHUNK];
    while stream.read(&mut buffer)? > 0 {}
    stream.write_all(&[DONE])
}

/// Begins flows at random times and waits for all of them.
fn send(load: &Load) -> Result<Done> {
    let begins = begins(load);
    let all = begins.len();
    let (post, done) = channel();
    let at_once = AtomicUsize::new(0);
    let zero = Instant::now();
    thread::scope(|scope| -> Result<()> {
        for at in begins {
            thread::sleep(Duration::from_secs_f64(at).saturating_sub(zero.elapsed()));
            if at_once.fetch_add(1, Ordering::Relaxed) >= MOST_AT_ONCE {
                bail!("more than {MOST_AT_ONCE} short flows at once");
            }
            let (post, at_once) = (post.clone(), &at_once);
            let work = move || {
                // The channel is read after the last.
                let _ = one(load).map(|took| post.send(took));
                at_once.fetch_sub(1, Ordering::Relaxed);
            };
            thread::Builder::new().stack_size(STACK).spawn_scoped(scope, work)?;
        }
        Ok(())
    })?;
    drop(post);
    let took: Vec<f64> = done.into_iter().map(|took: Duration| took.as_secs_f64()).collect();
    Ok(Done { failed: all - took.len(), took })
}

/// When flows begin: at random, as users do who know nothing of each other.
fn begins(load: &Load) -> Vec<f64> {
    let mut rng = fastrand::Rng::with_seed(load.seed);
    let mut at = 0.0;
    let mut begins = Vec::new();
    loop {
        at -= (1.0 - rng.f64()).ln() / load.rate;
        if at >= load.seconds {
            return begins;
        }
        begins.push(at);
    }
}

/// One flow.
fn one(load: &Load) -> std::io::Result<Duration> {
    let began = Instant::now();
    let mut stream = TcpStream::connect_timeout(&load.to, PATIENCE)?;
    set_tcp_congestion(&stream, &load.control)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let chunk = [0x5a; CHUNK];
    let mut left = load.bytes;
    while left > 0 {
        left -= stream.write(&chunk[..left.min(CHUNK)])?;
    }
    stream.shutdown(Shutdown::Write)?;
    stream.read_exact(&mut [0])?;
    Ok(began.elapsed())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(to: SocketAddr) -> Load {
        let control = "reno".to_owned();
        Load { to, rate: 100.0, bytes: 100_000, seconds: 0.3, control, seed: 3 }
    }

    #[test]
    fn every_flow_that_arrives_is_timed() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let load = load(listener.local_addr().unwrap());
        let all = begins(&load).len();
        assert!(all > 5, "{all}");
        let server = thread::spawn(move || {
            // The first is sent away.
            drop(listener.accept().unwrap());
            (1..all).for_each(|_| take(listener.accept().unwrap().0).unwrap());
        });
        let done = send(&load).unwrap();
        server.join().unwrap();
        assert_eq!((done.took.len(), done.failed), (all - 1, 1));
        assert!(done.took.iter().all(|took| *took > 0.0));
    }

    #[test]
    fn flows_begin_at_their_rate() {
        let to = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 1);
        let many = Load { seconds: 1000.0, ..load(to) };
        let begins = begins(&many);
        assert!((99_000..101_000).contains(&begins.len()), "{}", begins.len());
        assert!(begins.is_sorted() && begins.iter().all(|at| *at < 1000.0));
    }
}
