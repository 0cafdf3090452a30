//! `hikyaku known-peers`: the list of servers whose keys are remembered.

use anyhow::{Context, Error, Result};
use clap::{Args, Subcommand};
use hikyaku_crypto::{KnownPeers, PeerName};
use std::io::{ErrorKind, Write, stdout};
use std::process::ExitCode;

/// Options of `hikyaku known-peers`.
#[derive(Debug, Args)]
pub(crate) struct KnownPeersArgs {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Print the servers, their keys, and the day of their first use
    List,
    /// Forget a server's key; the next connection accepts a new one
    Forget {
        /// As `list` prints it: HOST:PORT
        #[arg(value_name = "HOST:PORT", value_parser = peer)]
        peer: PeerName,
    },
}

/// Shows or changes the list.
pub(crate) fn run(args: &KnownPeersArgs) -> Result<ExitCode> {
    let list = KnownPeers::of_user()
        .context("try: set HOME or XDG_STATE_HOME")
        .context("there is no folder in which servers are remembered")?;
    match &args.command {
        Command::List => print(&list)?,
        Command::Forget { peer } => match list.forget(peer)? {
            0 => println!("{peer} was not known"),
            _ => println!("{peer} is forgotten"),
        },
    }
    Ok(ExitCode::SUCCESS)
}

fn print(list: &KnownPeers) -> Result<()> {
    let known = list.list().map_err(|error| match error.remedy() {
        Some(remedy) => {
            let text = error.to_string();
            Error::from(error).context(remedy).context(text)
        }
        None => error.into(),
    })?;
    for peer in known {
        match writeln!(stdout(), "{} {} {}", peer.name, peer.fingerprint, peer.since) {
            // A reader that has seen enough (`| head`) is no error.
            Err(error) if error.kind() == ErrorKind::BrokenPipe => break,
            written => written?,
        }
    }
    Ok(())
}

fn peer(text: &str) -> Result<PeerName, String> {
    let (host, port) = text.rsplit_once(':').ok_or("give HOST:PORT")?;
    let port = port.parse().map_err(|_| format!("'{port}' is no port"))?;
    PeerName::new(host, port).map_err(|error| error.to_string())
}
