//! `hikyaku perf`: how fast is this path, and what holds it back.
//!
//! A client and a server move random bytes over one or more connections and count them where they
//! arrive: every figure of goodput is the receiving application's, each byte once, at both ends.
//! One ordered stream carries the talk between the two (`message`); the data has streams or
//! objects of its own, so that a lost packet of data holds up no record.
//!
//! Names of options and of JSON keys are those of iperf3 where the meaning is the same.
#![forbid(unsafe_code)]

mod args;
mod client;
mod compete;
mod control;
mod home;
mod interrupt;
mod limit;
mod message;
mod output;
mod plan;
mod report;
mod sample;
mod server;
mod session;
mod trouble;
mod usage;
mod wait;
mod worker;

pub use args::PerfArgs;
pub use message::is_message;

use anyhow::Result;
use std::process::ExitCode;

/// Does what the arguments say.
pub fn run(args: PerfArgs) -> Result<ExitCode> {
    match args.role()? {
        args::Role::Client(client) => client::run(&client),
        args::Role::Server(server) => server::run(&server),
    }
}
