//! What carries a part: hikyaku at the far side, or an SFTP server.

use super::bootstrap::{Bootstrap, bootstrap};
use super::part::{Part, Plan};
use super::patience::Attempt;
use crate::args::By;
use crate::engine::Meter;
use crate::far::Far;
use crate::session::Session;
use crate::sftp::{self, LoggedIn, Server};
use crate::table::TABLE;
use anyhow::{Context, Error, Result};
use hikyaku_console::{Way, headline};
use hikyaku_reach::{Login, ReachError};

/// The far sides of a part, started.
pub(super) enum Opened {
    /// Programs of ours.
    Fars {
        fars: Vec<Far>,
        /// The SFTP server whose login they share, if there is one. It ends after them.
        _login: Option<Server>,
    },
    /// A server that knows nothing of us, and what its user is told.
    Sftp(Server, Vec<String>),
}

impl Opened {
    /// Starts them. Where the far side has no hikyaku, it gets one, or SFTP serves.
    pub(super) fn of(part: &Part, plan: &Plan<'_>) -> Result<Self> {
        if let Some(open) = plan.server.filter(|_| plan.attempt == Attempt::First) {
            return Ok(Self::Sftp(Server::of(open), Vec::new()));
        }
        let by = plan.args.by();
        if by == By::Sftp && part.far().is_some() {
            return Self::sftp(part, plan, None, "as --via sftp says, data go");
        }
        let error = match part.open(plan, None) {
            Ok(fars) => return Ok(Self::Fars { fars, _login: None }),
            Err(error) => error,
        };
        let (server, why) = match bootstrap(part, plan, &error)? {
            Bootstrap::Done { path, server } => {
                let fars = part.open(plan, Some((&path, &server)))?;
                return Ok(Self::Fars { fars, _login: Some(server) });
            }
            Bootstrap::NotTried => (None, None),
            Bootstrap::Failed(server, why) => (Some(server), Some(why)),
        };
        let commands = sftp::commands(&error).filter(|_| by == By::Auto && part.far().is_some());
        let Some(commands) = commands else {
            return Err(match why {
                Some(why) => error.context(why),
                None => error,
            });
        };
        let host = part.host().unwrap_or_default();
        let why = why.unwrap_or_else(|| format!("{host} has no hikyaku that can be started"));
        // It said where hikyaku was looked for.
        let given = plan.args.given().without("remote_path");
        let notes = TABLE.check(&given, &[Way::Sftp]).map_err(|refused| {
            // The remedy stays where the user looks for it.
            let text = headline(&refused);
            refused.context(format!("{why}, and by SFTP {text}"))
        })?;
        match Self::sftp(part, plan, server, &format!("{why}: data go")) {
            Ok(Self::Sftp(server, advice)) => {
                let advice = advice.into_iter().chain(notes).collect();
                Ok(Self::Sftp(server.with_commands(commands), advice))
            }
            // What the far side said when hikyaku was to be started is the better reason.
            Err(_) if is_said(&error) => Err(error),
            other => other,
        }
    }

    /// By the `server` that has been started, if one has.
    fn sftp(part: &Part, plan: &Plan<'_>, server: Option<Server>, why: &str) -> Result<Self> {
        let login = &part.far().context("no far side")?.login;
        let is_first = plan.args.by() == By::Sftp;
        let logged_in = if is_first { LoggedIn::NotYet } else { LoggedIn::Before };
        let opened = server.map_or_else(
            || Server::open((&plan.args.ssh(), login), (logged_in, Login::Alone), plan.scope),
            Ok,
        );
        let advice = format!(
            "{why} by SFTP, over one TCP connection and without hashes of the far side\n\
             try: install hikyaku on {host}, or have it copied there (--bootstrap), or say where it is \
             (--remote-path), for the rate of the path",
            host = login.host
        );
        Ok(Self::Sftp(opened?, vec![advice]))
    }

    /// What would make it faster, for the user.
    pub(super) fn advice(&self) -> Vec<&str> {
        match self {
            Self::Fars { fars, .. } => {
                fars.iter().filter_map(|far| far.advice.as_deref()).collect()
            }
            Self::Sftp(_, advice) => advice.iter().map(String::as_str).collect(),
        }
    }

    /// Copies the part.
    pub(super) fn work(&mut self, part: &Part, plan: &Plan<'_>, meter: &Meter) -> Result<()> {
        match self {
            Self::Fars { fars, .. } => {
                let sessions = fars.iter_mut().map(|far: &mut Far| far.session.take());
                let sessions: Vec<Session> =
                    sessions.collect::<Option<_>>().context("no session")?;
                part.work(sessions, plan, meter)
            }
            Self::Sftp(server, _) => part.work_by_sftp(server, plan, meter),
        }
    }
}

/// Whether the far side has said in words of its own why hikyaku is not started there.
fn is_said(error: &Error) -> bool {
    let is_it = |error: &ReachError| matches!(error, ReachError::NoHello { .. });
    error.chain().any(|link| link.downcast_ref::<ReachError>().is_some_and(is_it))
}
