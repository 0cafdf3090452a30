//! The ports on which the near gateway listens.

use super::entry::Entry;
use crate::args::{Bind, FarLoopback, Listen, Place, Plan};
use crate::board::Board;
use crate::page::Page;
use crate::trouble;
use crate::unix::UnixPort;
use anyhow::{Context, Error, Result, bail};
use hikyaku_forward::{Goal, Loopback, is_named_loopback};
use hikyaku_page::Gate;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::sync::Arc;

/// A port that is taken.
pub(super) struct Bound {
    pub(super) listener: Listener,
    pub(super) entry: Arc<Entry>,
    /// What it is, for the user.
    pub(super) label: String,
}

/// What programs connect to.
pub(super) enum Listener {
    Tcp(TcpListener),
    Unix(UnixPort),
}

/// Takes all ports. Those of HTTP proxies have the page of the board as well.
pub(super) fn bind(plan: &Plan, board: &Arc<Board>) -> Result<(Vec<Bound>, Option<Arc<Page>>)> {
    let mut all: Vec<Bound> = Vec::new();
    let take = |listen: &Listen| {
        let taken = take(listen);
        let taken = taken.map_err(|error| trouble::of_bind(&listen.to_string(), error))?;
        Ok::<_, Error>(taken.into_iter().map(Listener::Tcp).collect::<Vec<_>>())
    };
    let mut add = |listeners: Vec<Listener>, entry: Entry, label: String| {
        let entry = Arc::new(entry);
        all.extend(listeners.into_iter().map(|listener| Bound {
            listener,
            entry: entry.clone(),
            label: label.clone(),
        }));
    };
    for forward in &plan.local {
        let loopback = match &forward.goal {
            Goal::Tcp(target) => is_named_loopback(&target.host),
            Goal::Socket(_) => Loopback::Refused,
        };
        let listeners = match &forward.place {
            Place::Port(listen) => take(listen)?,
            Place::Socket(path) => {
                let port = UnixPort::bind_early(path);
                vec![Listener::Unix(port.map_err(|e| trouble::of_bind(path.as_str(), e))?)]
            }
        };
        add(
            listeners,
            Entry::Target(forward.goal.clone(), loopback),
            format!("to {}", forward.goal),
        );
    }
    let loopback = match plan.far_loopback {
        FarLoopback::Refused => Loopback::Refused,
        FarLoopback::Allowed => Loopback::Named,
    };
    for listen in &plan.socks {
        add(take(listen)?, Entry::Socks(loopback), "SOCKS proxy".to_owned());
    }
    let mut first = None;
    for listen in &plan.http {
        let listeners = take(listen)?;
        let Some(Listener::Tcp(first_port)) = listeners.first() else { bail!("no port is taken") };
        let port = first_port.local_addr()?.port();
        let gate = match &plan.token {
            Some(token) => {
                Gate::with_token(token, port).context("the token of the page is none")?
            }
            None => Gate::new(port).context("no random numbers")?,
        };
        let page =
            Page::new(gate, board.clone(), plan.sites.clone()).context("no random numbers")?;
        let page = Arc::new(page);
        add(listeners, Entry::Http(loopback, page.clone()), "HTTP proxy".to_owned());
        first = first.or(Some(page));
    }
    Ok((all, first))
}

/// Takes a port, of both families where no address is given. A machine without IPv6 has only the first.
fn take(listen: &Listen) -> io::Result<Vec<TcpListener>> {
    let (first, second): (IpAddr, Option<IpAddr>) = match &listen.bind {
        Bind::Default | Bind::Loopback => {
            (Ipv4Addr::LOCALHOST.into(), Some(Ipv6Addr::LOCALHOST.into()))
        }
        // A socket of IPv6 takes IPv4 as well (ipv6(7)), unless the machine has no IPv6.
        Bind::All => (Ipv6Addr::UNSPECIFIED.into(), None),
        Bind::Address(address) => (address.ip(), None),
    };
    let listener = match TcpListener::bind(SocketAddr::new(first, listen.port)) {
        Err(error) if listen.bind == Bind::All && error.kind() != ErrorKind::AddrInUse => {
            TcpListener::bind((Ipv4Addr::UNSPECIFIED, listen.port))?
        }
        listener => listener?,
    };
    let port = listener.local_addr()?.port();
    let mut all = vec![listener];
    match second.map(|second| TcpListener::bind(SocketAddr::new(second, port))) {
        Some(Ok(listener)) => all.push(listener),
        Some(Err(error)) if error.kind() == ErrorKind::AddrInUse && listen.port != 0 => {
            return Err(error);
        }
        _ => {}
    }
    Ok(all)
}
