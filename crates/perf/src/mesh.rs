//! `--mesh`: a test from each host to each other one, started from here through ssh.
//!
//! A server for one test runs on one host, a client on the other. Pairs are tested in rounds in which no host takes part in two
//! tests. The server ends when the test is done, or when its standard input ends: so nothing stays on the hosts when this
//! command is gone.

mod hosts;
mod one;
mod output;
mod sent;

pub(crate) use hosts::Hosts;

use crate::output::Sink;
use anyhow::{Error, Result, bail};
use hikyaku_console::{ExitCode, Scope, with_remedy};
use hikyaku_reach::SshOptions;
use hikyaku_reach::bootstrap::BootstrapArgs;
use hosts::rounds;
use output::Table;
use std::thread;

/// What a mesh needs to know.
#[derive(Clone, Debug)]
pub(crate) struct MeshArgs {
    pub(crate) hosts: Hosts,
    /// Seconds of a test.
    pub(crate) seconds: f64,
    pub(crate) ssh: SshOptions,
    /// Where hikyaku is on the hosts, if it is not to be looked for.
    pub(crate) remote_path: Option<String>,
    pub(crate) bootstrap: BootstrapArgs,
    pub(crate) title: String,
}

/// What a test from one host to another one has measured, or why there is nothing.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Pair {
    pub(crate) from: usize,
    pub(crate) to: usize,
    pub(crate) measured: Result<Measured, Failed>,
}

/// Why a pair was not measured, and what that means for the command.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Failed {
    pub(crate) text: String,
    pub(crate) code: ExitCode,
}

impl Failed {
    fn of(error: &Error) -> Self {
        Self { text: format!("{error:#}"), code: ExitCode::of(error, &[]) }
    }
}

/// The figures of a pair.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Measured {
    pub(crate) received_bits_per_second: f64,
    pub(crate) rtt_ms: f64,
    pub(crate) lost_percent: f64,
}

/// Tests all pairs, and prints the table. A pair that fails costs its own place only.
///
/// # Errors
///
/// The user has stopped it, or no pair could be tested.
pub(crate) fn run(args: &MeshArgs, scope: &Scope, sink: &Sink) -> Result<()> {
    let args = &sent::to_hosts(args, scope)?;
    let mut table = Table::new(args);
    for round in rounds(args.hosts.0.len()) {
        let pairs: Vec<Pair> = thread::scope(|threads| {
            let both = |(a, b)| {
                threads.spawn(move || {
                    [(a, b), (b, a)].map(|(from, to)| {
                        let measured = one::test(args, (from, to), scope);
                        Pair { from, to, measured: measured.map_err(|error| Failed::of(&error)) }
                    })
                })
            };
            let all: Vec<_> = round.into_iter().map(both).collect();
            all.into_iter().filter_map(|both| both.join().ok()).flatten().collect()
        });
        for pair in pairs {
            table.add(sink, pair);
        }
        if scope.stop_cause().is_some() {
            break;
        }
    }
    table.end(sink);
    if scope.stop_cause().is_some() {
        bail!("stopped by the user");
    }
    match table.failures() {
        Some(codes) => {
            let error = ExitCode::of_pieces(codes).error("no pair of hosts could be tested");
            Err(with_remedy(error, Some("hikyaku perf HOST for one of them, which tells more")))
        }
        None => Ok(()),
    }
}
