//! Sweeps of targets, and what is kept of tests beside the output.

use crate::mesh::Hosts;
use crate::sweep::Targets;
use clap::Args;
use hikyaku_units::{Rate, parse_limit};
use std::path::PathBuf;

/// Sweeps of targets, and what is kept of tests beside the output.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Curves and records (client)")]
pub(crate) struct Records {
    /// One test for each of these target rates, in a random order: 200M,400M or FROM..TO:COUNT (100M..1G:10), or in
    /// percent of what a first test without a target receives (10%..110%:8). Prints the curve of received against
    /// target rate
    #[arg(long, value_name = "RATES")]
    #[arg(conflicts_with_all = ["server", "bitrate", "bytes", "bidir", "compete", "stall"])]
    pub(crate) sweep: Option<Targets>,
    /// Measure the round-trip time by a small flow of its own: while the path is idle, and while tests load it up, down
    /// and both for -t seconds each
    #[arg(long)]
    #[arg(conflicts_with_all = ["server", "bytes", "bidir", "reverse", "compete", "stall", "sweep", "mesh"])]
    pub(crate) latency: bool,
    /// Test from each of these hosts to each other one, and print a table: `[USER@]HOST[=ADDRESS]`, several separated by
    /// commas, or @FILE. Each host is reached through ssh from here; ADDRESS is what the others reach it by, if that
    /// is not HOST; '.' is this machine
    #[arg(long, value_name = "HOSTS")]
    #[arg(conflicts_with_all = ["sweep", "bitrate", "bytes", "bidir", "reverse", "compete", "stall", "peer_key"])]
    pub(crate) mesh: Option<Hosts>,
    /// Write into this directory what the tests look like, for 'hikyaku report DIR'; also at a server
    #[arg(long, value_name = "DIR", conflicts_with = "mesh")]
    pub(crate) log_dir: Option<PathBuf>,
    /// Print values between commas: a line for each interval and one for the test, or one for each target
    #[arg(long, conflicts_with_all = ["json", "json_lines", "server", "bidir", "compete"])]
    pub(crate) csv: bool,
    /// Write the figures into FILE for the textfile collector of Prometheus' node_exporter
    #[arg(long, value_name = "FILE.prom", conflicts_with_all = ["server", "bidir", "sweep", "mesh", "latency"])]
    #[arg(value_parser = prom)]
    pub(crate) prom: Option<PathBuf>,
    /// Fail (exit code 2) if less than RATE was received
    #[arg(long, value_name = "RATE", value_parser = parse_limit)]
    #[arg(conflicts_with_all = ["server", "bidir", "sweep", "mesh", "latency", "compete"])]
    pub(crate) min: Option<Rate>,
}

fn prom(text: &str) -> Result<PathBuf, String> {
    match text.ends_with(".prom") {
        true => Ok(text.into()),
        false => Err("the collector reads files whose names end in .prom".to_owned()),
    }
}
