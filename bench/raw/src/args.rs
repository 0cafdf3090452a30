//! The command line.

use crate::cipher::{Cipher, Mode};
use clap::{Parser, Subcommand};
use hikyaku_units::{DataSize, parse_duration};
use rustix::thread::{CpuSet, sched_setaffinity};
use std::net::SocketAddr;
use std::time::Duration;

/// Measures what sealing and sockets cost, with no transport between them.
#[derive(Parser)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Sends sealed packets as fast as the receiver's credit allows
    Send(SendArgs),
    /// Receives and opens packets of one sender, then ends
    Recv(RecvArgs),
    /// Times sealing and opening alone, without sockets
    Seal(SealArgs),
}

#[derive(clap::Args)]
pub(crate) struct SendArgs {
    /// Address of the receiver
    #[arg(long)]
    pub(crate) to: SocketAddr,
    /// How long to send
    #[arg(long, default_value = "5", value_parser = parse_duration)]
    pub(crate) seconds: Duration,
    /// Size of an IP packet
    #[arg(long, default_value_t = 1500)]
    pub(crate) mtu: usize,
    /// What is done to each packet
    #[arg(long, value_enum, default_value_t = Cipher::Aegis128l)]
    pub(crate) cipher: Cipher,
    /// Where the plaintext lies
    #[arg(long, value_enum, default_value_t = Mode::Inplace)]
    pub(crate) mode: Mode,
    /// How much may be under way
    #[arg(long, default_value = "3MB")]
    pub(crate) credit: DataSize,
    /// Processor to stay on
    #[arg(long)]
    pub(crate) cpu: Option<usize>,
}

#[derive(clap::Args)]
pub(crate) struct RecvArgs {
    /// Address to receive on; the cipher and the mode are the sender's
    #[arg(long)]
    pub(crate) bind: SocketAddr,
    /// How many messages of 64 KB one call may receive
    #[arg(long, default_value_t = 8)]
    pub(crate) batch: usize,
    /// Processor to stay on
    #[arg(long)]
    pub(crate) cpu: Option<usize>,
}

#[derive(clap::Args)]
pub(crate) struct SealArgs {
    /// How long to measure each case
    #[arg(long, default_value = "300ms", value_parser = parse_duration)]
    pub(crate) time: Duration,
    /// Sizes of the sealed part
    #[arg(long, value_delimiter = ',', default_value = "1444,8944")]
    pub(crate) sizes: Vec<usize>,
    /// Processor to stay on
    #[arg(long)]
    pub(crate) cpu: Option<usize>,
}

/// Ties the calling thread to a processor.
pub(crate) fn pin(cpu: Option<usize>) -> anyhow::Result<()> {
    if let Some(cpu) = cpu {
        let mut set = CpuSet::new();
        set.set(cpu);
        sched_setaffinity(None, &set)?;
    }
    Ok(())
}
