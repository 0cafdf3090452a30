//! A short test of the path to a host that ssh reaches, for programs that want the figures and print them themselves.

use crate::args::{ClientArgs, Common, Records, ThroughSsh, Ways};
use crate::client;
use crate::limit::LimitedBy;
use crate::plan::{Direction, Handling, Kind, Limit, Plan, StartUp};
use crate::report;
use anyhow::{Context, Result};
use hikyaku_console::Scope;
use hikyaku_reach::bootstrap::BootstrapArgs;
use hikyaku_reach::{Destination, SshOptions};
use std::ops::RangeInclusive;

/// Seconds of one test, after those that [`OMITTED_SECONDS`] counts.
const SECONDS: f64 = 3.0;
/// Seconds at the start of a test, in which the sender looks for the capacity of the path.
const OMITTED_SECONDS: f64 = 1.0;
/// Seconds between two reports, which nothing prints.
const INTERVAL_SECONDS: f64 = 1.0;

/// The path to a host.
#[derive(Clone, Debug)]
pub struct TestedPath<'a> {
    /// The host.
    pub host: &'a Destination,
    /// How ssh gets there.
    pub ssh: &'a SshOptions,
    /// Where hikyaku is on the host. Default: where ssh finds it. The test sends no program.
    pub remote_path: Option<&'a str>,
    /// UDP ports of which each end takes one. Default: those that are set for the host, or 60001 to 60999.
    pub udp_ports: Option<RangeInclusive<u16>>,
}

/// The result of a test that came to its end.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Measured {
    /// Goodput that the receiver counted.
    pub bits_per_second: f64,
    /// Bytes that the receiver counted.
    pub bytes: u64,
    /// The cause that limited the rate of the test.
    pub limited_by: LimitedBy,
    /// The least round-trip time, in milliseconds.
    pub base_rtt_ms: f64,
    /// The time that the queue of the path added to it, in milliseconds.
    pub queue_ms: f64,
    /// The share of packets that were lost.
    pub lost_percent: f64,
    /// The share of packets that were lost for other reasons than congestion.
    pub ambient_loss_percent: f64,
    /// This end.
    pub near: End,
    /// The host.
    pub far: End,
}

/// One end of a test.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct End {
    /// Datagrams that its kernel dropped, because the buffer of its socket was full.
    pub drops: u64,
    /// The receive buffer of its socket, in bytes.
    pub granted_recv_buffer: u64,
    /// The time of its busiest thread, in percent of a processor.
    pub busiest_percent: f64,
}

impl TestedPath<'_> {
    /// Runs a test of four seconds, of which the first does not count.
    ///
    /// # Errors
    ///
    /// No UDP gets through (a [`hikyaku_reach::ReachError`] in the chain), the host cannot be reached otherwise, or the
    /// connection is lost.
    pub fn measure(&self, direction: Direction, scope: &Scope) -> Result<Measured> {
        let (quiet, broken) = client::quiet(&self.arguments(direction), scope, None)?;
        if let Some(error) = broken {
            return Err(error);
        }
        let start = quiet.start.context("the test has not begun")?;
        Ok(measured(&quiet.end, &start))
    }

    fn arguments(&self, direction: Direction) -> ClientArgs {
        ClientArgs {
            common: Common::usual(),
            host: self.host.host.clone(),
            ways: Ways::One,
            plan: Plan {
                direction,
                limit: Limit::Seconds(SECONDS),
                streams: 1,
                interval: INTERVAL_SECONDS,
                omit: OMITTED_SECONDS,
                target: None,
                kind: Kind::Ordered,
                handling: Handling::ZeroCopy,
                length: 256 << 10,
                stall: None,
                compete: None,
            },
            start_up: StartUp::Counted,
            pin: None,
            ssh: Some(Box::new(ThroughSsh {
                destination: self.host.clone(),
                ssh: self.ssh.clone(),
                remote_path: self.remote_path.map(str::to_owned),
                bootstrap: BootstrapArgs::never(),
                ports: self.udp_ports.clone(),
                cipher: None,
            })),
            records: Records::default(),
        }
    }
}

fn measured(end: &report::End, start: &report::Start) -> Measured {
    let busiest = |thread: &Option<report::Busiest>| thread.as_ref().map_or(0.0, |it| it.percent);
    let received = end.sum_received.as_ref();
    Measured {
        bits_per_second: received.map_or(0.0, |sum| sum.bits_per_second),
        bytes: received.map_or(0, |sum| sum.bytes),
        limited_by: end.limited_by,
        base_rtt_ms: end.base_rtt_ms,
        queue_ms: end.queue_ms,
        lost_percent: end.lost_percent,
        ambient_loss_percent: end.ambient_loss_percent,
        near: End {
            drops: end.host_drops_local,
            granted_recv_buffer: start.granted_recv_buffer,
            busiest_percent: busiest(&end.busiest_thread_local),
        },
        far: End {
            drops: end.host_drops_remote.unwrap_or_default(),
            granted_recv_buffer: start.server.as_ref().map_or(0, |far| far.granted_recv_buffer),
            busiest_percent: busiest(&end.busiest_thread_remote),
        },
    }
}
