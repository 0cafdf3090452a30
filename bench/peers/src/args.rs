//! The command line, the same for all stacks.

use clap::{Parser, ValueEnum};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// One end of a memory-to-memory transfer.
#[derive(Parser)]
pub struct Args {
    /// Which end
    #[arg(value_enum)]
    pub role: Role,
    /// Where the server is
    #[arg(long)]
    pub address: SocketAddr,
    /// The server writes its certificate here, the client trusts it
    #[arg(long)]
    pub certificate: PathBuf,
    /// How long to send
    #[arg(long, default_value_t = 10.0)]
    pub seconds: f64,
    /// Congestion control
    #[arg(long, value_enum, default_value_t = Control::Cubic)]
    pub control: Control,
    /// Bytes of flow control and send window
    #[arg(long, default_value_t = 64 << 20)]
    pub window: u32,
    /// Size of an IP packet
    #[arg(long, default_value_t = 1500)]
    pub mtu: u16,
    /// In which order the server reads
    #[arg(long, value_enum, default_value_t = Reads::Ordered)]
    pub reads: Reads,
}

impl Args {
    /// How long to send.
    pub fn duration(&self) -> Duration {
        Duration::from_secs_f64(self.seconds)
    }

    /// The largest UDP payload over IPv4.
    pub fn payload(&self) -> u16 {
        self.mtu - 28
    }
}

/// Which end.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Role {
    /// Receives and counts
    Server,
    /// Sends
    Client,
}

/// Congestion control.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Control {
    /// What the stacks have as their default
    Cubic,
    /// Whichever version the stack has
    Bbr,
}

/// In which order the server reads.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Reads {
    /// As TCP
    Ordered,
    /// As it comes
    Unordered,
}
