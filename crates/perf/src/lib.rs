//! `hikyaku perf`: measures the goodput of a path and reports what limits it.
//!
//! A client and a server send random bytes over one or more connections. The receiving application
//! counts them, each byte once, and both ends print the receiver's count as goodput. The two ends
//! exchange control messages (`message`) over one ordered stream. Test data use separate streams or
//! objects, so that a lost data packet does not delay a control message.
//!
//! Options and JSON keys have iperf3's names where the meaning is the same.
#![forbid(unsafe_code)]

mod args;
mod client;
mod compete;
mod control;
mod guests;
mod home;
mod latency;
mod limit;
mod log;
mod measure;
mod memory;
mod mesh;
mod message;
mod output;
mod plan;
mod port_probe;
mod prom;
mod report;
mod sample;
mod server;
mod session;
mod socket;
mod sweep;
mod trouble;
mod usage;
mod wait;
mod worker;

pub use args::PerfArgs;
pub use limit::LimitedBy;
pub use measure::{End, Measured, TestedPath};
pub use message::is_message;
pub use plan::Direction;
pub use server::{SERVICE, attend};

use anyhow::{Context, Result};
use hikyaku_console::{Interrupt, Tone, say};

/// Runs the client or the server, as the arguments ask. A signal ends all tests, and then the process.
pub fn run(args: PerfArgs, interrupt: &Interrupt) -> Result<()> {
    for note in args.others.check()? {
        say(Tone::Note, note);
    }
    match args.role()? {
        args::Role::Client(client) => client::run(&client, interrupt),
        args::Role::Server(server) => server::run(&server, interrupt),
        args::Role::Mesh(mesh) => mesh_of(&mesh, interrupt),
    }
}

/// Runs the tests of a mesh.
fn mesh_of(args: &args::Mesh, interrupt: &Interrupt) -> Result<()> {
    interrupt.listen().context("cannot listen for Ctrl-C")?;
    let sink = output::Sink::open(args.format, args.logfile.as_deref())?;
    let done = mesh::run(&args.mesh, &interrupt.scope(), &sink);
    interrupt.end_by_signal();
    match sink.state() {
        output::OutputState::Failed(error) => Err(error),
        output::OutputState::ReaderClosed => Ok(()),
        output::OutputState::Written => done,
    }
}
