//! `hikyaku keys list` and `keys forget`: the remembered keys of daemons.

use anyhow::{Context, Result};
use clap::{Args, Subcommand};
use hikyaku_console::{Document, DocumentArgs, Folder, Form, Tone, print, say, with_remedy};
use hikyaku_crypto::{KnownPeer, KnownPeers, Peers};
use serde_json::json;

#[derive(Debug, Subcommand)]
pub(crate) enum Known {
    /// List the daemons with their remembered keys and the date of their first use
    List(DocumentArgs),
    /// Forget the remembered key of a daemon; the next connection accepts a new one
    Forget {
        /// The daemon as `list` prints it; without a port, all daemons of the host
        #[arg(value_name = "HOST[:PORT]")]
        peers: Peers,
    },
}

/// Options of `hikyaku known-peers`, the name that `keys list` and `keys forget` had in version 0.1.
#[derive(Debug, Args)]
pub(crate) struct KnownPeersArgs {
    #[command(subcommand)]
    verb: Known,
}

/// Runs `hikyaku known-peers`.
pub(crate) fn run_by_old_name(args: &KnownPeersArgs) -> Result<()> {
    let verb = match args.verb {
        Known::List(_) => "list",
        Known::Forget { .. } => "forget",
    };
    say(Tone::Note, format_args!("known-peers {verb} is now: hikyaku keys {verb}"));
    run(&args.verb)
}

/// Prints or changes the list.
pub(super) fn run(verb: &Known) -> Result<()> {
    let folder = Folder::State.of_user();
    let folder = folder.context("no directory to keep the keys of servers in")?;
    let list = KnownPeers::at(folder.join(KnownPeers::FILE_NAME));
    match verb {
        Known::List(args) => {
            let known = list.list().map_err(|error| {
                let remedy = error.remedy();
                with_remedy(error.into(), remedy)
            })?;
            print(match args.form() {
                Form::Words => lines(known),
                Form::Document | Form::Lines => document(known),
            })
        }
        Known::Forget { peers } => {
            let forgotten = list.forget(peers)?;
            let line = |name: &String| format!("forgot the key of {name}\n");
            print(match forgotten.is_empty() {
                true => format!("{peers} has no remembered key\n"),
                false => forgotten.iter().map(line).collect(),
            })
        }
    }
}

fn lines(known: Vec<KnownPeer>) -> String {
    if known.is_empty() {
        return "no key of a server is remembered\n".to_owned();
    }
    let line = |peer: KnownPeer| format!("{} {} {}\n", peer.name, peer.fingerprint, peer.since);
    known.into_iter().map(line).collect()
}

fn document(known: Vec<KnownPeer>) -> String {
    let key = |peer: KnownPeer| {
        json!({
            "server": peer.name,
            "fingerprint": peer.fingerprint.to_string(),
            "since": peer.since,
        })
    };
    Document::new(json!({ "keys": known.into_iter().map(key).collect::<Vec<_>>() })).line()
}
