//! `hikyaku known-peers`: the remembered keys of servers.

use crate::output;
use anyhow::{Context, Error, Result};
use clap::{Args, Subcommand};
use hikyaku_crypto::{KnownPeer, KnownPeers, PeerName};
use std::io::{self, ErrorKind};
use std::process::ExitCode;

/// Options of `hikyaku known-peers`.
#[derive(Debug, Args)]
pub(crate) struct KnownPeersArgs {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// List the servers with their keys and the date of their first use
    List,
    /// Forget the key of a server; the next connection accepts a new one
    Forget {
        /// The server as `list` prints it: HOST:PORT
        #[arg(value_name = "HOST:PORT", value_parser = peer)]
        peer: PeerName,
    },
}

/// Prints or changes the list.
pub(crate) fn run(args: &KnownPeersArgs) -> Result<ExitCode> {
    let no_home = || io::Error::new(ErrorKind::NotFound, "HOME is not set");
    let list = KnownPeers::of_user()
        .ok_or_else(no_home)
        .context("try: set HOME or XDG_STATE_HOME")
        .context("no directory to keep the keys of servers in")?;
    match &args.command {
        Command::List => output::print(lines(&list)?),
        Command::Forget { peer } => output::print(match list.forget(peer)? {
            0 => format!("{peer} has no remembered key\n"),
            _ => format!("forgot the key of {peer}\n"),
        }),
    }
}

fn lines(list: &KnownPeers) -> Result<String> {
    let known = list.list().map_err(|error| match error.remedy() {
        Some(remedy) => {
            let text = error.to_string();
            Error::from(error).context(remedy).context(text)
        }
        None => error.into(),
    })?;
    let line = |peer: KnownPeer| format!("{} {} {}\n", peer.name, peer.fingerprint, peer.since);
    Ok(known.into_iter().map(line).collect())
}

fn peer(text: &str) -> Result<PeerName, String> {
    let (host, port) = text.rsplit_once(':').ok_or("must be HOST:PORT")?;
    let port = port.parse().map_err(|_| format!("'{port}' is not a port"))?;
    PeerName::new(host, port).map_err(|error| error.to_string())
}
