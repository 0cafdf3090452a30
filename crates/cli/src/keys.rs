//! `hikyaku keys`: the keys by which clients and daemons know each other.

mod exchange;
mod fetch;
mod hosts;
mod install;
mod known;
mod login;
mod receive;

pub(crate) use known::{KnownPeersArgs, run_by_old_name};

use anyhow::{Error, Result};
use clap::{Args, Subcommand};
use fetch::Fetch;
use hikyaku_console::{Folder, Noise, print, with_remedy};
use hikyaku_crypto::{Identity, LoadIdentity};
use install::Install;
use known::Known;
use std::fs;
use std::path::PathBuf;

/// Options of `hikyaku keys`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct KeysArgs {
    #[command(subcommand)]
    verb: Verb,
}

const EXAMPLES: &str = "\
A daemon (hikyaku serve) lets in the clients whose keys are in its file
authorized_keys, a line each:
  [OPTIONS] ed25519:KEY [COMMENT]
with the options, separated by commas:
  root=DIR               the client sees only this directory of the daemon
  ro                     the client only reads
  max-rate=RATE          limit of the client's sessions together, each way
  max-sessions=N         so many sessions of the client at once
and of a daemon that forwards:
  max-flows=N            so many connections of the client at once
  forward=HOST:PORTS     the client reaches only these targets of --allow
  no-forward             the client reaches none of them
  listen=ADDRESS:PORTS   the daemon listens there for the client

Examples:
  hikyaku keys install node1 node2
      this user's key to two daemons, and their keys to this host
  hikyaku keys install --root /runs --ro lab
      all servers of [cluster.lab]: only /runs, only to read
  hikyaku keys fetch lab     only the keys of the servers, through ssh
  hikyaku keys forget node1  node1 was installed anew";

#[derive(Debug, Subcommand)]
enum Verb {
    /// Make this user's key, unless there is one, and print its line for a daemon's authorized_keys
    New(Which),
    /// Print the line of this user's key for a daemon's authorized_keys
    Show(Which),
    /// Add this user's key to the lists of daemons and record the keys of these, through ssh
    Install(Install),
    /// Record the keys of daemons, which are asked for through ssh
    Fetch(Fetch),
    #[command(flatten)]
    Known(Known),
    /// Add the key on standard input to this user's list, as 'hikyaku keys install' asks for through ssh
    #[command(hide = true)]
    Receive,
}

/// Which key.
#[derive(Debug, Args)]
struct Which {
    /// The key of this machine's daemon, in place of the client's
    #[arg(long)]
    server: bool,
    /// The file of the key. Default: identity, or server_key, in the state folder
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
}

impl KeysArgs {
    /// The messages on standard error.
    pub(crate) const fn says(&self) -> Noise {
        match &self.verb {
            Verb::Install(install) => install.says(),
            Verb::Fetch(fetch) => fetch.says(),
            _ => Noise::Usual,
        }
    }
}

/// Runs `hikyaku keys`.
pub(crate) fn run(args: &KeysArgs) -> Result<()> {
    match &args.verb {
        Verb::New(which) => {
            let path = which.path()?;
            print(line(&Identity::load_or_create(&path).map_err(explained)?))
        }
        Verb::Show(which) => {
            let path = which.path()?;
            let identity = Identity::load(&path).map_err(|error| match error {
                LoadIdentity::Read { .. } => {
                    let what = if which.server { " --server" } else { "" };
                    with_remedy(error.into(), Some(format!("try: hikyaku keys new{what}")))
                }
                error => explained(error),
            })?;
            print(line(&identity))
        }
        Verb::Install(install) => install.run(),
        Verb::Fetch(fetch) => fetch.run(),
        Verb::Known(verb) => known::run(verb),
        Verb::Receive => receive::run(),
    }
}

fn explained(error: LoadIdentity) -> Error {
    let remedy = error.remedy();
    with_remedy(error.into(), remedy)
}

/// The line of a key, with its user and host as a comment.
fn line(identity: &Identity) -> String {
    format!("{} {}\n", identity.public_key(), comment())
}

/// This user and this host.
fn comment() -> String {
    let user = std::env::var("USER").or_else(|_| std::env::var("LOGNAME"));
    let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let comment = format!("{}@{}", user.unwrap_or_default(), host.trim());
    comment.chars().filter(|c| c.is_ascii_graphic()).collect()
}

impl Which {
    fn path(&self) -> Result<PathBuf> {
        let name = if self.server { "server_key" } else { "identity" };
        self.key.clone().map_or_else(|| Ok(Folder::State.of_user()?.join(name)), Ok)
    }
}
