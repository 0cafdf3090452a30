//! What carries a part: hikyaku at the far side, or an SFTP server.

use super::part::{Part, Plan};
use crate::args::By;
use crate::engine::Meter;
use crate::far::Far;
use crate::outcome::failed;
use crate::session::Session;
use crate::sftp::{self, LoggedIn, Server};
use anyhow::{Context, Result};
use hikyaku_transfer::FailureKind;

/// The far sides of a part, started.
pub(super) enum Opened {
    /// Programs of ours.
    Fars(Vec<Far>),
    /// A server that knows nothing of us.
    Sftp(Server, String),
}

impl Opened {
    /// Starts them. Where the far side has no hikyaku, and SFTP serves, that is used.
    pub(super) fn of(part: &Part, plan: &Plan<'_>) -> Result<Self> {
        let by = plan.args.by();
        if by == By::Sftp && part.far().is_some() {
            return Self::sftp(part, plan, LoggedIn::NotYet, "as --via sftp says, data go");
        }
        match part.open(plan) {
            Err(error)
                if by == By::Auto && part.far().is_some() && sftp::is_the_way_out(&error) =>
            {
                let missing = sftp::missing(plan.options, plan.args.manifest().is_some());
                if !missing.is_empty() {
                    let text = format!("a copy by SFTP has no {}", missing.join(", "));
                    return Err(error.context(text));
                }
                let host = part.host().unwrap_or_default();
                let why = format!("{host} has no hikyaku that can be started: data go");
                Self::sftp(part, plan, LoggedIn::Before, &why)
            }
            fars => fars.map(Self::Fars),
        }
    }

    fn sftp(part: &Part, plan: &Plan<'_>, logged_in: LoggedIn, why: &str) -> Result<Self> {
        let missing = sftp::missing(plan.options, plan.args.manifest().is_some());
        if !missing.is_empty() {
            let text = format!("a copy by SFTP has no {}", missing.join(", "));
            return Err(failed(FailureKind::Unsupported, text));
        }
        let login = &part.far().context("no far side")?.login;
        let server = Server::open((&plan.args.ssh(), login), logged_in, plan.scope)?;
        let advice = format!(
            "{why} by SFTP, over one TCP connection and without hashes of the far side\n\
             try: install hikyaku on {}, or say where it is (--remote-path), for the rate of the path",
            login.host
        );
        Ok(Self::Sftp(server, advice))
    }

    /// What would make it faster, for the user.
    pub(super) fn advice(&self) -> Vec<&str> {
        match self {
            Self::Fars(fars) => fars.iter().filter_map(|far| far.advice.as_deref()).collect(),
            Self::Sftp(_, advice) => vec![advice],
        }
    }

    /// Copies the part.
    pub(super) fn work(&mut self, part: &Part, plan: &Plan<'_>, meter: &Meter) -> Result<()> {
        match self {
            Self::Fars(fars) => {
                let sessions = fars.iter_mut().map(|far: &mut Far| far.session.take());
                let sessions: Vec<Session> =
                    sessions.collect::<Option<_>>().context("no session")?;
                part.work(sessions, plan, meter)
            }
            Self::Sftp(server, _) => part.work_by_sftp(server, plan, meter),
        }
    }
}
