//! `hikyaku known-peers`: the remembered keys of servers.

use anyhow::{Context, Result};
use clap::{Args, Subcommand};
use hikyaku_console::{Folder, print, with_remedy};
use hikyaku_crypto::{KnownPeer, KnownPeers, PeerName};

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
pub(crate) fn run(args: &KnownPeersArgs) -> Result<()> {
    let folder = Folder::State.of_user();
    let folder = folder.context("no directory to keep the keys of servers in")?;
    let list = KnownPeers::at(folder.join(KnownPeers::FILE_NAME));
    match &args.command {
        Command::List => print(lines(&list)?),
        Command::Forget { peer } => print(match list.forget(peer)? {
            0 => format!("{peer} has no remembered key\n"),
            _ => format!("forgot the key of {peer}\n"),
        }),
    }
}

fn lines(list: &KnownPeers) -> Result<String> {
    let known = list.list().map_err(|error| {
        let remedy = error.remedy();
        with_remedy(error.into(), remedy)
    })?;
    if known.is_empty() {
        return Ok("no key of a server is remembered\n".to_owned());
    }
    let line = |peer: KnownPeer| format!("{} {} {}\n", peer.name, peer.fingerprint, peer.since);
    Ok(known.into_iter().map(line).collect())
}

fn peer(text: &str) -> Result<PeerName, String> {
    let (host, port) = text.rsplit_once(':').ok_or("must be HOST:PORT")?;
    let port = port.parse().map_err(|_| format!("'{port}' is not a port"))?;
    PeerName::new(host, port).map_err(|error| error.to_string())
}
