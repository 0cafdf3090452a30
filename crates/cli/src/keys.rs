//! `hikyaku keys`: the keys by which clients and daemons know each other.

mod known;

pub(crate) use known::{KnownPeersArgs, run_by_old_name};

use anyhow::{Context, Error, Result};
use clap::{Args, Subcommand};
use hikyaku_console::{ExitCode, Folder, Settings, print, print_error, with_remedy};
use hikyaku_crypto::{Identity, KnownPeers, LoadIdentity, PeerName, PublicKey, Recorded};
use hikyaku_reach::dial::Address;
use hikyaku_reach::{Destination, NO_CONNECTION, SshOptions};
use hikyaku_units::counted;
use known::Known;
use std::ffi::OsString;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::SystemTime;

/// Options of `hikyaku keys`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct KeysArgs {
    #[command(subcommand)]
    verb: Verb,
}

const EXAMPLES: &str = "\
A daemon (hikyaku serve) lets in the clients whose keys are in its file authorized_keys, a line each:
  [OPTIONS] ed25519:KEY [COMMENT]
with the options, separated by commas:
  root=DIR               the client sees only this directory, below that of the daemon
  ro                     the client only reads
  max-rate=RATE          the client's sessions are sent at most this much together, and send as much
  max-sessions=N         so many sessions of the client at once
and of a daemon that forwards:
  max-flows=N            so many connections of the client at once
  forward=HOST:PORTS     of the targets that --allow names, the client reaches these only
  no-forward             the client reaches none of them
  listen=ADDRESS:PORTS   the daemon listens there for the client

Examples:
  hikyaku keys show | ssh node1 'cat >> .local/state/hikyaku/authorized_keys'
  hikyaku keys fetch lab      the keys of all servers of [cluster.lab], through ssh
  hikyaku keys forget node1   node1 was installed anew";

#[derive(Debug, Subcommand)]
enum Verb {
    /// Make this user's key, unless there is one, and print its line for a daemon's authorized_keys
    New(Which),
    /// Print the line of this user's key for a daemon's authorized_keys
    Show(Which),
    /// Remember the keys of daemons, which are asked for through ssh
    Fetch(Fetch),
    #[command(flatten)]
    Known(Known),
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

#[derive(Debug, Args)]
struct Fetch {
    /// A cluster of the settings, or the host of a daemon: HOST or HOST:PORT
    #[arg(required = true, value_name = "CLUSTER|HOST")]
    names: Vec<String>,
    /// Where hikyaku is on the servers, if a shell there does not find it
    #[arg(long, value_name = "PATH")]
    remote_path: Option<String>,
    /// Program in place of ssh
    #[arg(short = 'S', value_name = "PROGRAM")]
    program: Option<OsString>,
    /// Configuration file of ssh
    #[arg(short = 'F', value_name = "FILE")]
    config: Option<OsString>,
    /// Option of ssh
    #[arg(short = 'o', value_name = "OPTION")]
    option: Vec<OsString>,
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
        Verb::Fetch(fetch) => fetch.run(),
        Verb::Known(verb) => known::run(verb),
    }
}

fn explained(error: LoadIdentity) -> Error {
    let remedy = error.remedy();
    with_remedy(error.into(), remedy)
}

/// The line of a key, with whom it belongs to as a comment.
fn line(identity: &Identity) -> String {
    let user = std::env::var("USER").or_else(|_| std::env::var("LOGNAME"));
    let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let comment = format!("{}@{}", user.unwrap_or_default(), host.trim());
    let comment: String = comment.chars().filter(|c| c.is_ascii_graphic()).collect();
    format!("{} {comment}\n", identity.public_key())
}

impl Which {
    fn path(&self) -> Result<PathBuf> {
        let name = if self.server { "server_key" } else { "identity" };
        self.key.clone().map_or_else(|| Ok(Folder::State.of_user()?.join(name)), Ok)
    }
}

impl Fetch {
    fn run(&self) -> Result<()> {
        let list = KnownPeers::at(Folder::State.of_user()?.join(KnownPeers::FILE_NAME));
        let settings = hikyaku_reach::settings::of_user()?;
        let mut codes = Vec::new();
        for address in self.addresses(&settings)? {
            match self.one(&address, &list) {
                Ok(text) => print(text)?,
                Err(error) => {
                    codes.push(crate::failure(&error).code());
                    print_error(crate::failure(&error.context(address.to_string())));
                }
            }
        }
        match codes.len() {
            0 => Ok(()),
            missed => {
                let text = format!("the keys of {} are missing", counted(missed, "server"));
                Err(ExitCode::of_pieces(codes).error(text))
            }
        }
    }

    fn addresses(&self, settings: &Settings) -> Result<Vec<Address>> {
        let mut all = Vec::new();
        for name in &self.names {
            match settings.cluster(name) {
                Some(cluster) => all.extend(cluster.hosts.iter().map(|host| Address {
                    host: host.clone(),
                    port: cluster.port.map_or(hikyaku_reach::dial::PORT, Into::into),
                })),
                None => all.push(name.parse().with_context(|| {
                    format!("there is no [cluster.{name}] in the settings either")
                })?),
            }
        }
        Ok(all)
    }

    /// Asks one server, and remembers its key.
    fn one(&self, address: &Address, list: &KnownPeers) -> Result<String> {
        let key = self.ask(address)?.fingerprint();
        let peer = PeerName::new(&address.host, address.port)?;
        match list.record(&peer, key, SystemTime::now())? {
            Recorded::Present(known) if known.fingerprint != key => {
                let (other, since) = (known.fingerprint, known.since);
                let text =
                    format!("the key of {peer} is {key}, but {other} is recorded since {since}");
                let remedy = format!("hikyaku keys forget {peer}, if the daemon has got a new key");
                Err(with_remedy(ExitCode::WillFail.error(text), Some(remedy)))
            }
            Recorded::Added | Recorded::Present(_) => Ok(format!("{peer} {key}\n")),
        }
    }

    fn ask(&self, address: &Address) -> Result<PublicKey> {
        let options = SshOptions {
            program: self.program.clone(),
            config: self.config.clone(),
            options: self.option.clone(),
            ..SshOptions::default()
        };
        // The port of an address is that of the daemon.
        let destination = Destination::parse(address.host.as_bytes())?;
        let words =
            options.start(&destination, self.remote_path.as_deref(), "keys show --server")?;
        let (program, rest) = words.split_first().context("no program")?;
        let mut child = Command::new(program)
            .args(rest)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start {}", Path::new(program).display()))?;
        let mut text = String::new();
        if let Some(output) = child.stdout.take() {
            let _ = output.take(ANSWER_BYTES_MAX).read_to_string(&mut text);
        }
        let status = child.wait()?;
        let line = text.lines().rev().find(|line| line.starts_with("ed25519:"));
        match line.and_then(|line| line.split_whitespace().next()) {
            Some(key) if status.success() => Ok(key.parse()?),
            _ => {
                // What ssh itself fails with may pass.
                let is_ssh = status.code() == Some(NO_CONNECTION);
                let code = if is_ssh { ExitCode::MayPass } else { ExitCode::WillFail };
                let remedy = options.by_hand(&destination);
                Err(code.error(format!("no key came through ssh; try: {remedy}")))
            }
        }
    }
}

/// What a login may print before the key.
const ANSWER_BYTES_MAX: u64 = 64 << 10;
