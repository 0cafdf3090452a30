//! The upper limit for any encrypted transport on a machine: a sender that seals and sends, a
//! receiver that receives and opens, and between them no more than a credit.
//!
//! There are no retransmissions, acknowledged ranges, streams or congestion control here, so what
//! the real transport takes beyond this is the price of being one.
#![forbid(unsafe_code)]

mod args;
mod cipher;
mod cost;
mod packet;
mod receiver;
mod report;
mod sender;

use args::{Args, Command};
use clap::Parser;

fn main() -> anyhow::Result<()> {
    match Args::parse().command {
        Command::Send(args) => sender::run(&args),
        Command::Recv(args) => receiver::run(&args),
        Command::Seal(args) => cost::run(&args),
    }
}
