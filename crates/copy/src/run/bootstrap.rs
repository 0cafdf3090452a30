//! A far side without hikyaku gets one, if the user wants that.

use super::part::{Part, Plan};
use super::patience::Attempt;
use crate::sftp::{LoggedIn, Server};
use anyhow::{Context, Error, Result};
use hikyaku_console::Audience;
use hikyaku_reach::bootstrap::{Answer, Consent, Hosts, Install};
use hikyaku_reach::{Destination, Login, NoHello, ReachError};
use hikyaku_units::DataSize;
use std::io::{IsTerminal, stderr, stdin};

/// What came of it.
pub(super) enum Bootstrap {
    /// A program runs at the far side.
    Done {
        /// Where it is.
        path: String,
        /// The SFTP server by which it was sent, whose login it may share.
        server: Server,
    },
    /// The user has not wanted it, or there is nothing to send.
    NotTried,
    /// It did not succeed, for this reason. The SFTP server is there all the same.
    Failed(Server, String),
}

/// Whether another hikyaku at the far side would help: there is none, or it speaks another protocol.
fn lacks_hikyaku(error: &Error) -> bool {
    let is_it = |error: &ReachError| {
        matches!(
            error,
            ReachError::NotThere { .. }
                | ReachError::NoHello { source: NoHello::Version { .. }, .. }
        )
    };
    error.chain().any(|link| link.downcast_ref::<ReachError>().is_some_and(is_it))
}

/// Puts hikyaku on the far side of `part`, which could not be opened because of `error`.
pub(super) fn bootstrap(part: &Part, plan: &Plan<'_>, error: &Error) -> Result<Bootstrap> {
    let Some(login) = part.far().map(|remote| &remote.login) else {
        return Ok(Bootstrap::NotTried);
    };
    let way = plan.args.way(&login.host, plan.settings)?;
    if way.programs.is_empty() || !lacks_hikyaku(error) || !is_wanted(login, plan)? {
        return Ok(Bootstrap::NotTried);
    }
    let logged_in = (LoggedIn::Before, Login::Shared);
    let server = Server::open((&way.ssh, login), logged_in, plan.scope)?;
    let sending = |bytes| {
        if !plan.args.is_quiet() {
            let size = DataSize::from_bytes(bytes);
            eprintln!(
                "hikyaku: copying hikyaku ({size}) to ~/.cache/hikyaku/bin on {}",
                login.host
            );
        }
    };
    let ssh = server.ssh(&way.ssh);
    let (programs, scope) = (&way.programs, plan.scope);
    let install = Install { ssh: &ssh, login, programs, scope, sending: &sending };
    match install.run(server.client()) {
        Ok(installed) => Ok(Bootstrap::Done { path: installed.path, server }),
        Err(error) => Ok(Bootstrap::Failed(server, error.to_string())),
    }
}

/// Whether the user wants that. A person is asked once in a copy.
fn is_wanted(login: &Destination, plan: &Plan<'_>) -> Result<bool> {
    let hosts = Hosts::of_user().ok();
    let host = login.to_string();
    match plan.args.consent(&login.host, plan.settings)? {
        Consent::Always => Ok(true),
        Consent::Never => Ok(false),
        Consent::Ask if hosts.as_ref().is_some_and(|hosts| hosts.has(&host)) => Ok(true),
        Consent::Ask if plan.attempt == Attempt::First && may_ask(plan) => {
            let answer = ask(&host)?;
            if answer == Answer::Always {
                let kept = hosts.context("no state folder").and_then(|hosts| Ok(hosts.add(&host)?));
                if let Err(error) = kept {
                    eprintln!("hikyaku: the answer is not remembered: {error:#}");
                }
            }
            Ok(answer != Answer::No)
        }
        Consent::Ask => Ok(false),
    }
}

/// Whether a person is there who may be asked.
fn may_ask(plan: &Plan<'_>) -> bool {
    let is_person = matches!(plan.args.audience(), Audience::Person | Audience::Lines);
    is_person && !plan.args.ssh().batch && stdin().is_terminal() && stderr().is_terminal()
}

fn ask(host: &str) -> Result<Answer> {
    eprint!(
        "hikyaku: {host} has no hikyaku that can be started. May it be copied there, to ~/.cache/hikyaku/bin?\n\
         y: yes; a: yes, and always on {host}; N: no, go by SFTP, which is slower [y/N/a] "
    );
    let mut line = String::new();
    stdin().read_line(&mut line).context("cannot read the answer")?;
    Ok(Answer::of(&line))
}
