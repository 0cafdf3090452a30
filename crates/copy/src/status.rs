//! `hikyaku status`: which daemons can be reached, and what they have.

use crate::cluster::explained;
use crate::settings::add_keys;
use anyhow::{Context, Result, bail};
use clap::Args;
use hikyaku_console::{ExitCode, Folder, Keys, Settings, print};
use hikyaku_crypto::{Identity, KnownPeers};
use hikyaku_net::blocking::block_on;
use hikyaku_net::{Memory, Trust};
use hikyaku_reach::daemon::{STORE, WRITES};
use hikyaku_reach::dial::{Address, Carrier, Dialler, Servers, Via, trust};
use hikyaku_remote::{Client, RemoteError};
use hikyaku_store::Space;
use hikyaku_units::DataSize;
use serde::Serialize;
use std::fmt::Write;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// Options of `hikyaku status`.
#[derive(Clone, Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct StatusArgs {
    /// A cluster of the settings, or daemons: hikyaku://HOST:PORT,HOST:PORT
    #[arg(required = true, value_name = "CLUSTER|DAEMONS")]
    of: Vec<String>,
    /// Print a JSON object a line for each server
    #[arg(long)]
    json: bool,
    /// Use TCP at once, as where UDP is blocked
    #[arg(long)]
    no_udp: bool,
}

const EXAMPLES: &str = "\
Exit codes: 0 if all servers answer, 5 if some do not.

Examples:
  hikyaku status lab                         all servers of [cluster.lab]
  hikyaku status hikyaku://node1,node2:5300";

/// How long a daemon may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// What is known of one server.
#[derive(Debug, Serialize)]
struct Line {
    server: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    answer: Option<Answer>,
    /// Why it does not answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// What a server that answers has said.
#[derive(Debug, Serialize)]
struct Answer {
    carrier: &'static str,
    access: &'static str,
    round_trip_ms: f64,
    /// Bytes that may still be written, and in all; `None` if the server cannot tell.
    free_bytes: Option<u64>,
    total_bytes: Option<u64>,
}

/// Asks all servers at once, and prints a line for each in the order of the arguments.
///
/// # Errors
///
/// The names mean nothing, or this machine cannot ask anybody.
pub fn status(args: &StatusArgs) -> Result<ExitCode> {
    let settings = Settings::of_user(&add_keys(Keys::default()))?;
    let mut all = Vec::new();
    for name in &args.of {
        let servers = match settings.cluster(name.strip_suffix(':').unwrap_or(name)) {
            Some(cluster) => Servers::of_cluster(cluster, b""),
            None => Servers::parse(name.as_bytes()).transpose()?.with_context(|| {
                format!("'{name}' is no [cluster.{name}] of the settings and no hikyaku://HOST")
            })?,
        };
        let keys = servers.keys;
        all.extend(servers.servers.into_iter().map(|address| (address, keys.clone())));
    }
    let state = Folder::State.of_user()?;
    let identity = Identity::load_or_create(&state.join("identity"))?;
    let own_key = identity.public_key().to_string();
    let via = if args.no_udp { Via::Tcp } else { Via::Auto };
    let dialler = Dialler::new(identity, all.len(), Memory::of_user(), via)?;
    let known = KnownPeers::at(state.join(KnownPeers::FILE_NAME));
    let lines: Vec<Line> = thread::scope(|scope| {
        let ask = |(address, keys): &(Address, Vec<_>)| {
            let trust = trust(keys, &known);
            let (address, dialler, own_key) = (address.clone(), &dialler, &own_key);
            scope.spawn(move || {
                let answer = ask(dialler, &address, trust, own_key);
                let error = answer.as_ref().err().map(|error| error.root_cause().to_string());
                Line { server: address.to_string(), answer: answer.ok(), error }
            })
        };
        let asked: Vec<_> = all.iter().map(ask).collect();
        asked.into_iter().filter_map(|asked| asked.join().ok()).collect()
    });
    if lines.len() < all.len() {
        bail!("a thread that asks a server panicked");
    }
    print(if args.json { json(&lines)? } else { table(&lines) })?;
    let is_missing = lines.iter().any(|line| line.answer.is_none());
    Ok(if is_missing { ExitCode::MayPass } else { ExitCode::Success })
}

fn ask(dialler: &Dialler, address: &Address, trust: Trust, own_key: &str) -> Result<Answer> {
    let dialled = dialler.dial(address, trust, &STORE, PATIENCE);
    let dialled = dialled.map_err(|error| explained(error, own_key))?;
    let carrier = match dialled.carrier {
        Carrier::Udp => "UDP",
        Carrier::Tcp => "TCP",
    };
    let access = if dialled.features.contains(WRITES) { "read, write" } else { "read" };
    let client = Client::new(dialled.connection)?;
    let (say, answers) = mpsc::channel();
    // Nobody listens any more if it comes too late.
    client.space_then(move |space| drop(say.send(space)));
    let space: Option<Space> = match answers.recv_timeout(PATIENCE) {
        Ok(Ok(space)) => Some(space),
        Ok(Err(RemoteError::Refused { .. })) => None,
        Ok(Err(error)) => return Err(error.into()),
        Err(_) => bail!("the server does not answer"),
    };
    let seen = block_on(client.connection().seen()).context("the connection has ended")?;
    Ok(Answer {
        carrier,
        access,
        round_trip_ms: (seen.round_trip.as_secs_f64() * 1e5).round() / 1e2,
        free_bytes: space.map(|space| space.free),
        total_bytes: space.map(|space| space.total),
    })
}

fn json(lines: &[Line]) -> Result<String> {
    let mut text = String::new();
    for line in lines {
        text += &serde_json::to_string(line)?;
        text.push('\n');
    }
    Ok(text)
}

fn table(lines: &[Line]) -> String {
    let width = lines.iter().map(|line| line.server.len()).max().unwrap_or(0).max("SERVER".len());
    let mut text = format!(
        "{:width$}  {:3}  {:>10}  {:11}  {:>10}  {:>10}\n",
        "SERVER", "BY", "ROUND TRIP", "ACCESS", "FREE", "OF"
    );
    for line in lines {
        // Writing to a text cannot fail.
        let _ = match (&line.answer, &line.error) {
            (Some(answer), _) => writeln!(
                text,
                "{:width$}  {:3}  {:>7.1} ms  {:11}  {:>10}  {:>10}",
                line.server,
                answer.carrier,
                answer.round_trip_ms,
                answer.access,
                size(answer.free_bytes),
                size(answer.total_bytes)
            ),
            (None, error) => {
                let error = error.as_deref().unwrap_or("no answer");
                writeln!(text, "{:width$}  -    {error}", line.server)
            }
        };
    }
    text
}

fn size(bytes: Option<u64>) -> String {
    bytes.map_or_else(|| "-".to_owned(), |bytes| DataSize::from_bytes(bytes).to_string())
}
