//! The session of a copy with daemons, and what its user is told of it.

use super::Order;
use crate::outcome::failed;
use anyhow::{Context, Error, Result, ensure};
use hikyaku_console::{Tone, causes, say, with_remedy};
use hikyaku_mover::{HostError, Session, SessionError, Setup};
use hikyaku_reach::daemon::NoService;
use hikyaku_reach::dial::{DialError, Servers};
use hikyaku_reach::launch::Fleet;
use hikyaku_session::announce;
use std::sync::Arc;

/// A session, and its servers if they were started for it.
pub(super) struct Connected {
    pub(super) session: Arc<Session>,
    _servers: Option<Fleet>,
}

/// Connects to all servers, which are started before if the user wants that. Those that cannot be started are told; one must
/// be there.
pub(super) fn connect(order: &Order<'_>, servers: &Servers) -> Result<Connected> {
    let mut setup = Setup::of_user(servers).map_err(of_session)?;
    let Some(launcher) = order.plan.launcher(order.scope) else {
        return Ok(Connected { session: Arc::new(begin(order, setup)?), _servers: None });
    };
    let hosts: Vec<String> = servers.servers.iter().map(|server| server.host.clone()).collect();
    let (fleet, failed) = launcher.launch(&hosts, &setup.client.identity.public_key());
    for error in failed {
        let error = error.explained();
        if hosts.len() == 1 {
            return Err(error);
        }
        say(Tone::Error, causes(&error));
    }
    ensure!(!fleet.addresses().is_empty(), "no server could be started");
    (setup.servers, setup.keys) = (fleet.addresses(), fleet.keys());
    Ok(Connected { session: Arc::new(begin(order, setup)?), _servers: Some(fleet) })
}

/// Connects to all servers at once. Those that cannot be reached are told; one must be there.
pub(super) fn session(order: &Order<'_>, servers: &Servers) -> Result<Session> {
    begin(order, Setup::of_user(servers).map_err(of_session)?)
}

fn begin(order: &Order<'_>, mut setup: Setup) -> Result<Session> {
    let (plan, via) = (order.plan, order.via);
    (setup.client.via, setup.client.pipes) = (via, plan.transport.way.pipes);
    setup.client.family = plan.transport.way.ssh.family;
    setup.client.silence = order.silence;
    setup.parameters = order.parameters;
    let own_key = setup.client.own_key();
    let count = setup.servers.len();
    let session = match setup.start() {
        Ok(session) => session,
        Err(SessionError::NoServer(hosts)) => {
            tell(&hosts, count, &own_key);
            let first = hosts.into_iter().next().context("no server was named")?;
            return Err(first.source.explained(&first.address, &own_key));
        }
        Err(error) => return Err(of_session(error)),
    };
    session.advice().iter().for_each(|advice| say(Tone::Note, advice));
    for met in session.met() {
        announce(&met.address, (met.first_use, met.carrier), via);
    }
    tell(session.missing(), count, &own_key);
    Ok(session)
}

/// Tells of servers that cannot be used. Of a single one the error of the command tells.
fn tell(hosts: &[HostError], count: usize, own_key: &str) {
    for HostError { address, source } in hosts.iter().filter(|_| count > 1) {
        let hint = match source {
            DialError::Service(NoService::NotAuthorised(_)) => {
                format!("; the line of this client's key is {own_key}")
            }
            _ => String::new(),
        };
        say(Tone::Error, format_args!("{address}: {}{hint}", source.cause()));
    }
}

/// An error of a session, with what the user can do about it and with the kind that decides the exit code.
pub(crate) fn of_session(error: SessionError) -> Error {
    let remedy = error.remedy();
    let error = match error {
        SessionError::Refused { kind, text } => failed(kind.as_file(), text),
        SessionError::Setup(error) => return error.explained(),
        SessionError::Thread(error) => Error::new(error).context("cannot start a thread"),
        error @ SessionError::NoServer(_) => error.into(),
    };
    with_remedy(error, remedy)
}
