//! The ports on which the near gateway listens.

use super::entry::Entry;
use crate::args::{Bind, FarLoopback, Listen, Plan};
use crate::trouble;
use anyhow::Result;
use hikyaku_forward::{Loopback, is_named_loopback};
use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::sync::Arc;

/// A port that is taken.
pub(super) struct Bound {
    pub(super) listener: TcpListener,
    pub(super) entry: Arc<Entry>,
    /// What it is, for the user.
    pub(super) label: String,
}

/// Takes all ports.
pub(super) fn bind(plan: &Plan) -> Result<Vec<Bound>> {
    let mut all = Vec::new();
    let mut add = |listen: &Listen, entry: Entry, label: String| -> Result<()> {
        let entry = Arc::new(entry);
        let listeners =
            take(listen).map_err(|error| trouble::of_bind(&listen.to_string(), error))?;
        all.extend(listeners.into_iter().map(|listener| Bound {
            listener,
            entry: entry.clone(),
            label: label.clone(),
        }));
        Ok(())
    };
    for forward in &plan.local {
        let (target, loopback) = (forward.target.clone(), is_named_loopback(&forward.target.host));
        add(&forward.listen, Entry::Target(target, loopback), format!("to {}", forward.target))?;
    }
    let loopback = match plan.far_loopback {
        FarLoopback::Refused => Loopback::Refused,
        FarLoopback::Allowed => Loopback::Named,
    };
    for listen in &plan.socks {
        add(listen, Entry::Socks(loopback), "SOCKS proxy".to_owned())?;
    }
    for listen in &plan.http {
        add(listen, Entry::Http(loopback), "HTTP proxy".to_owned())?;
    }
    Ok(all)
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
