//! `hikyaku far`: hikyaku on other hosts.

mod install;

use anyhow::{Context, Error, Result};
use blake3::{Hash, Hasher};
use clap::{Args, Subcommand};
use hikyaku_console::{
    At, Document, DocumentArgs, ExitCode, Form, Noise, NoiseArgs, Scope, print, with_remedy,
};
use hikyaku_reach::bootstrap::{Hosts, Programs, Sent, identity, remove, sent};
use hikyaku_reach::{
    Destination, FamilyArgs, Letters, Login, NO_CONNECTION, NoSftp, SftpServer, SshArgs, SshFailed,
    SshOptions,
};
use hikyaku_sftp::{Client, Failed};
use hikyaku_units::DataSize;
use install::Install;
use jiff::Timestamp;
use serde_json::json;
use std::fs::File;

/// Options of `hikyaku far`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct FarArgs {
    #[command(subcommand)]
    verb: Verb,
}

const EXAMPLES: &str = "\
'install' puts this program on other hosts, at ~/.local/bin/hikyaku.
--bootstrap of other commands copies it to a host that has none, to
~/.cache/hikyaku/bin/HASH/hikyaku: 'list' and 'remove' are about those.
These commands need SFTP there, and no hikyaku.

Examples:
  hikyaku far install example.org me@node2
  hikyaku far list example.org
  hikyaku far remove me@example.org  all but the newest
  hikyaku far remove --all me@example.org
      all, and what was answered for this host is forgotten";

#[derive(Debug, Subcommand)]
enum Verb {
    /// Put this program on hosts, at ~/.local/bin/hikyaku
    Install(Install),
    /// List the programs that were copied to a host
    List {
        #[command(flatten)]
        form: DocumentArgs,
        #[command(flatten)]
        there: There,
    },
    /// Remove those but the newest
    Remove {
        /// The newest one too
        #[arg(long)]
        all: bool,
        #[command(flatten)]
        there: There,
    },
    /// Print what this program is, as 'hikyaku cp --bootstrap' asks it at the far side
    #[command(hide = true)]
    Id,
}

/// A host, and how ssh gets there.
#[derive(Debug, Args)]
#[command(mut_args(|arg| Letters::Scp.added(arg)))]
struct There {
    /// The host, as ssh takes it
    #[arg(value_name = "[USER@]HOST")]
    host: String,
    #[command(flatten)]
    ssh: SshArgs,
    #[command(flatten)]
    family: FamilyArgs,
    #[command(flatten)]
    noise: NoiseArgs,
}

impl FarArgs {
    /// The messages on standard error.
    pub(crate) const fn says(&self) -> Noise {
        match &self.verb {
            Verb::Install(install) => install.noise.noise(),
            Verb::List { there, .. } | Verb::Remove { there, .. } => there.noise.noise(),
            Verb::Id => Noise::Usual,
        }
    }
}

/// Runs `hikyaku far`.
pub(crate) fn run(args: &FarArgs) -> Result<()> {
    match &args.verb {
        Verb::Install(install) => install.run(),
        Verb::List { form, there } => {
            let (server, _) = there.open()?;
            let own = Programs::own().hashes();
            let all = sent(server.client()).map_err(refused)?;
            if form.form() != Form::Words {
                return print(document(&all, &own));
            }
            if all.is_empty() {
                return print("no hikyaku was copied to this host\n");
            }
            let lines = all.iter().map(|sent| {
                let mark = if own.contains(&sent.hash) { "  this version" } else { "" };
                format!("{}{mark}\n", line(sent))
            });
            print(lines.collect::<String>())
        }
        Verb::Remove { all, there } => {
            let (server, login) = there.open()?;
            let kept = if *all { 0 } else { 1 };
            let removed = remove_but(server.client(), kept)?;
            if *all {
                Hosts::of_user()?.forget(&login.to_string())?;
            }
            print(removed)
        }
        Verb::Id => {
            let own = std::env::current_exe().context("this program is not found")?;
            let read = File::open(&own).and_then(|file| {
                let mut hasher = Hasher::new();
                hasher.update_reader(file)?;
                Ok(hasher.finalize())
            });
            print(identity(&read.at(own.display())?))
        }
    }
}

/// Removes all but the newest of that number; says which.
fn remove_but(client: &Client, kept: usize) -> Result<String> {
    let mut said = String::new();
    // What was not sent to its end is no version that could be kept.
    let (whole, parts): (Vec<_>, Vec<_>) =
        sent(client).map_err(refused)?.into_iter().partition(|sent| sent.size.is_some());
    for old in whole.iter().skip(kept).chain(&parts) {
        remove(client, &old.hash).map_err(refused)?;
        said += &format!("removed {}\n", line(old));
    }
    Ok(said)
}

/// The programs as a document.
fn document(all: &[Sent], own: &[Hash]) -> String {
    let program = |sent: &Sent| {
        json!({
            "hash": sent.hash.to_hex().as_str(),
            "size": sent.size,
            "modified": sent.time,
            "is_this_version": own.contains(&sent.hash),
        })
    };
    Document::new(json!({ "programs": all.iter().map(program).collect::<Vec<_>>() })).line()
}

/// A program as it is listed.
fn line(sent: &Sent) -> String {
    let size = sent
        .size
        .map_or_else(|| "unfinished".to_owned(), |bytes| DataSize::from_bytes(bytes).to_string());
    let date = sent.time.and_then(|time| Timestamp::from_second(time.into()).ok());
    let date = date.map_or_else(String::new, |date| date.strftime("  %Y-%m-%d").to_string());
    format!("{}  {size:>10}{date}", sent.hash.to_hex())
}

fn refused(error: Failed) -> Error {
    Error::new(error).context("the SFTP server refuses something")
}

impl There {
    /// Starts an SFTP server there.
    fn open(&self) -> Result<(SftpServer, Destination)> {
        let ssh = SshOptions { family: self.family.family(), ..self.ssh.options() };
        let login = Destination::parse(self.host.as_bytes())?;
        let opened = SftpServer::open(&ssh, &login, Login::Alone, &Scope::default());
        let server = opened.map_err(|error| no_server(error, (&ssh, &login)))?;
        Ok((server, login))
    }
}

/// Why there is no SFTP server, and what the user can do.
fn no_server(error: NoSftp, (ssh, login): (&SshOptions, &Destination)) -> Error {
    match error {
        error @ NoSftp::Spawn { .. } => error.into(),
        NoSftp::NoServer { code, source } => {
            let host = login.host.clone();
            let error = match code {
                Some(NO_CONNECTION) => Error::new(SshFailed::Ended { host }),
                _ => ExitCode::WillFail.error(format!("no SFTP server: {source}")).context(host),
            };
            with_remedy(error, Some(ssh.by_hand(login)))
        }
    }
}
