//! What both ends do with every stack.

use crate::{Args, Goodput, Role, goodput::cpu_seconds};
use anyhow::Result;
use clap::Parser;
use std::time::{Duration, Instant};
use tokio::time::{timeout, timeout_at};

/// How long a client goes on after the server should have ended the connection.
const GRACE: Duration = Duration::from_secs(5);

/// Does what the command line asks for, on the one thread that an end has.
///
/// # Errors
/// Those of the two, and if there is no runtime to be had.
pub fn run(
    serve: impl AsyncFnOnce(&Args) -> Result<()>,
    send: impl AsyncFnOnce(&Args) -> Result<()>,
) -> Result<()> {
    let args = Args::parse();
    let work = async {
        match args.role {
            Role::Server => serve(&args).await,
            Role::Client => send(&args).await,
        }
    };
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(work)
}

/// Counts what `receive` takes until the time is over, and prints the report. The handshake is done when this is called.
/// A connection that ends sooner is a result as well.
///
/// # Errors
/// None that a connection can cause.
pub async fn count(
    args: &Args,
    receive: impl AsyncFnOnce(&mut Goodput) -> Result<()>,
) -> Result<()> {
    let begin = Instant::now();
    let mut goodput = Goodput::new(begin);
    let until = begin + args.duration();
    let ended = timeout_at(until.into(), receive(&mut goodput)).await;
    let error = ended.ok().map(|result| result.err().map_or("ended".into(), |e| format!("{e:#}")));
    goodput.report(Instant::now(), error).print()
}

/// Lets `send` go on until the server ends the connection, and prints what it cost. Whichever way it ends, the server
/// tells.
pub async fn send_until_over(args: &Args, send: impl Future<Output = ()>) {
    let _ = timeout(args.duration() + GRACE, send).await;
    println!("{{\"cpu_seconds\":{}}}", cpu_seconds());
}
