//! A transfer in which every byte is known beforehand, over the transport's public API: does what
//! arrives on a bad path equal what was sent?
//!
//! The server takes one connection with one ordered stream, checks for `--seconds`, and prints one
//! line of JSON; the client sends until the server is done. This measures nothing else: `hikyaku
//! perf` does.
#![forbid(unsafe_code)]

mod pattern;

use anyhow::{Context, Result};
use clap::{Parser, ValueEnum};
use hikyaku_console::Folder;
use hikyaku_crypto::{Identity, KnownPeers, ServerCredentials, Trust};
use hikyaku_net::blocking::block_on;
use hikyaku_net::{
    ConnectConfig, Endpoint, EndpointConfig, Listener, ListenerConfig, OnDrop, Stream,
};
use hikyaku_units::parse_duration;
use pattern::Pattern;
use serde::Serialize;
use std::net::{Ipv4Addr, SocketAddr};
use std::thread;
use std::time::{Duration, Instant};

/// One end of a transfer of known bytes.
#[derive(Parser)]
struct Args {
    /// Which end
    #[arg(value_enum)]
    role: Role,
    /// Where the server is
    #[arg(long)]
    address: SocketAddr,
    /// How long to check
    #[arg(long, default_value = "10", value_parser = parse_duration)]
    seconds: Duration,
}

#[derive(Clone, Copy, ValueEnum)]
enum Role {
    /// Receives and checks
    Server,
    /// Sends
    Client,
}

/// The line that the server prints.
#[derive(Serialize, Default)]
struct Report {
    bytes: u64,
    wrong: u64,
    seconds: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// Bytes of one write.
const CHUNK: usize = 256 << 10;
/// How long a client goes on after the server should be done.
const GRACE: Duration = Duration::from_secs(5);

fn main() -> Result<()> {
    let args = Args::parse();
    match args.role {
        Role::Server => serve(&args),
        Role::Client => send(&args),
    }
}

fn serve(args: &Args) -> Result<()> {
    let identity = Identity::generate()?;
    let mut endpoint = EndpointConfig::default();
    endpoint.on_drop = OnDrop::Wait;
    let credentials = ServerCredentials::new(&identity);
    let mut config = ListenerConfig::new(credentials);
    config.endpoint = endpoint;
    let listener = Listener::bind(args.address, config)?;
    let (connection, mut stream) = block_on(async {
        let connection = listener.accept().await?;
        let stream = connection.accept_stream().await?;
        anyhow::Ok((connection, stream))
    })?;
    let seconds = args.seconds;
    // A path may fall silent: time is up all the same.
    let checking = thread::spawn(move || block_on(check(&mut stream, seconds)));
    let deadline = Instant::now() + seconds + GRACE;
    while !checking.is_finished() && Instant::now() < deadline {
        thread::sleep(Duration::from_millis(20));
    }
    let silent = || Report { error: Some("nothing came any more".into()), ..Report::default() };
    let report = if checking.is_finished() {
        checking.join().ok().context("the check has panicked")?
    } else {
        silent()
    };
    println!("{}", serde_json::to_string(&report)?);
    drop(connection);
    std::process::exit(0)
}

async fn check(stream: &mut Stream, time: Duration) -> Report {
    let pattern = Pattern::new();
    let start = Instant::now();
    let mut report = Report::default();
    while start.elapsed() < time {
        match stream.read_chunk().await {
            Ok(Some(run)) => {
                for piece in run.pieces() {
                    report.wrong += pattern.wrong(report.bytes, piece);
                    report.bytes += piece.len() as u64;
                }
            }
            Ok(None) => break,
            Err(error) => {
                report.error = Some(error.to_string());
                break;
            }
        }
    }
    report.seconds = start.elapsed().as_secs_f64();
    report
}

fn send(args: &Args) -> Result<()> {
    let mut config = EndpointConfig::default();
    config.on_drop = OnDrop::Wait;
    let endpoint = Endpoint::bind(SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)), config)?;
    let folder = Folder::State.of_user()?;
    let trust = Trust::FirstUse(KnownPeers::at(folder.join(KnownPeers::FILE_NAME)));
    let until = Instant::now() + args.seconds + GRACE;
    // The server ends by leaving; a client that waits for it has nothing more to say.
    thread::spawn(move || {
        thread::sleep(until.duration_since(Instant::now()));
        std::process::exit(0)
    });
    block_on(async {
        let connection = endpoint.connect(args.address, ConnectConfig::new(trust)).await?;
        let mut stream = connection.open_stream().await?;
        let pattern = Pattern::new();
        let mut offset = 0;
        loop {
            let chunk = pattern.from(offset, CHUNK);
            offset += chunk.len() as u64;
            if stream.write_chunk(chunk).await.is_err() {
                break;
            }
        }
        anyhow::Ok(())
    })
}
