//! What carries a part: hikyaku at the far side, or an SFTP server.

use super::part::{Part, Turn};
use super::patience::Attempt;
use crate::plan::By;
use crate::sftp::{self, LoggedIn, Server};
use crate::table::TABLE;
use anyhow::{Context, Error, Result};
use hikyaku_console::{Way, headline};
use hikyaku_job::Meter;
use hikyaku_pair::{Far, Session};
use hikyaku_reach::bootstrap::Spare;
use hikyaku_reach::{Login, ReachError};
use std::sync::Arc;

/// The far sides of a part, started.
pub(super) enum Opened {
    /// Programs of ours.
    Fars { fars: Vec<Far> },
    /// A server that knows nothing of us, and what its user is told.
    Sftp(Server, Vec<String>),
}

impl Opened {
    /// Starts them. Where the far side has no hikyaku, it gets one, or SFTP serves.
    pub(super) fn of(part: &Part, turn: &Turn<'_>) -> Result<Self> {
        if let Some(open) = turn.server.filter(|_| turn.attempt == Attempt::First) {
            return Ok(Self::Sftp(Server::of(open), Vec::new()));
        }
        let by = turn.copy.transport.by;
        if by == By::Sftp && part.far().is_some() {
            let remedy = "try: without --via, for the rate of the path, if the host has hikyaku";
            return Self::sftp(part, turn, None, ("as --via sftp says, data go", remedy));
        }
        let spare = Spare::default();
        let error = match part.open(turn, &spare) {
            Ok(fars) => return Ok(Self::Fars { fars }),
            Err(error) => error,
        };
        let commands = sftp::commands(&error).filter(|_| by == By::Auto && part.far().is_some());
        let Some(commands) = commands else { return Err(error) };
        let host = part.host().unwrap_or_default();
        let reached = || error.chain().find_map(|link| link.downcast_ref::<ReachError>());
        let undelivered =
            reached().filter(|error| matches!(error, ReachError::NotDelivered { .. }));
        let why = match undelivered {
            Some(undelivered) => undelivered.to_string(),
            None => format!("{host} has no hikyaku that can be started"),
        };
        let remedy = reached().and_then(ReachError::remedy).unwrap_or_else(|| {
            format!("try: install hikyaku on {host}, or --remote-path PATH if it is installed")
        });
        // They said where hikyaku was looked for, and that it was to be sent.
        let given = ["remote_path", "bootstrap", "far_binary"]
            .iter()
            .fold(turn.copy.given.clone(), |given, id| given.without(id));
        let notes = TABLE.check(&given, &[Way::Sftp]).map_err(|refused| {
            // The remedy stays where the user looks for it.
            let text = headline(&refused);
            refused.context(format!("{why}, and by SFTP {text}"))
        })?;
        let server = spare.take().map(Server::from);
        match Self::sftp(part, turn, server, (&format!("{why}: data go"), &remedy)) {
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
    fn sftp(
        part: &Part,
        turn: &Turn<'_>,
        server: Option<Server>,
        (why, remedy): (&str, &str),
    ) -> Result<Self> {
        let login = &part.far().context("no far side")?.login;
        let is_first = turn.copy.transport.by == By::Sftp;
        let logged_in = if is_first { LoggedIn::NotYet } else { LoggedIn::Before };
        let opened = server.map_or_else(
            || {
                let way = turn.copy.way(&login.host, turn.settings)?;
                Server::open((&way.ssh, login), (logged_in, Login::Alone), turn.scope)
            },
            Ok,
        );
        let advice = format!(
            "{why} by SFTP, over one TCP connection and without hashes of the far side\n{remedy}"
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
    pub(super) fn work(&mut self, part: &Part, turn: &Turn<'_>, meter: &Arc<Meter>) -> Result<()> {
        match self {
            Self::Fars { fars, .. } => {
                let sessions = fars.iter_mut().map(|far: &mut Far| far.session.take());
                let sessions: Vec<Session> =
                    sessions.collect::<Option<_>>().context("no session")?;
                part.work(sessions, turn, meter)
            }
            Self::Sftp(server, _) => part.work_by_sftp(server, turn, meter),
        }
    }
}

/// Whether the far side has said in words of its own why hikyaku is not started there.
fn is_said(error: &Error) -> bool {
    let is_it = |error: &ReachError| matches!(error.without_delivery(), ReachError::NoHello { .. });
    error.chain().any(|link| link.downcast_ref::<ReachError>().is_some_and(is_it))
}
