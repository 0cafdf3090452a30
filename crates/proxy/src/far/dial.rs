//! Connects to a target: its addresses are looked up, judged, and tried one after the other, each a little later than the
//! one before (RFC 8305, "Happy Eyeballs").

use super::Targets;
use crate::socket::{self, Socket};
use hikyaku_forward::{Answer, Goal, Host, Loopback, Open, Target, Verdict, check};
use hikyaku_tcp::{ATTEMPT_DELAY, in_turn};
use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr};
use tokio::net::{TcpStream, UnixStream, lookup_host};
use tokio::task::JoinSet;
use tokio::time::sleep;

/// Addresses of a name that are tried at most.
const ADDRESSES_MAX: usize = 16;

/// Connects to the target of a flow, as far as it is one of these.
pub(crate) async fn dial(open: &Open, targets: &Targets) -> Result<Socket, Answer> {
    match &open.target {
        Goal::Tcp(target) => dial_host(target, open.loopback, targets).await.map(Socket::Tcp),
        Goal::Socket(path) => match targets {
            Targets::OfUser => {
                let connected = UnixStream::connect(path.as_str()).await;
                connected.map(Socket::Unix).map_err(|error| answer(&error))
            }
            Targets::Listed(_) | Targets::Direct => {
                let text = "Unix sockets are reached only through ssh";
                Err(Answer::failed(Verdict::NotAllowed, text))
            }
        },
    }
}

async fn dial_host(
    target: &Target,
    loopback: Loopback,
    targets: &Targets,
) -> Result<TcpStream, Answer> {
    let port = target.port;
    let found = match &target.host {
        Host::Address(address) => vec![*address],
        Host::Name(name) => look_up(name, port).await?,
    };
    let (mut allowed, mut refusal) = (Vec::new(), None);
    for address in found {
        match targets.check(target, loopback, address) {
            Ok(()) => allowed.push(SocketAddr::new(address.to_canonical(), port)),
            Err(answer) => refusal = refusal.or(Some(answer)),
        }
    }
    match (allowed.is_empty(), refusal) {
        (false, _) => first_of(in_turn(&allowed, ADDRESSES_MAX)).await,
        (true, Some(answer)) => Err(answer),
        (true, None) => Err(Answer::failed(Verdict::NameNotFound, "the name has no address")),
    }
}

impl Targets {
    /// Whether a flow may be connected to an address that its target has.
    fn check(&self, target: &Target, loopback: Loopback, address: IpAddr) -> Result<(), Answer> {
        let lists = match self {
            Self::OfUser | Self::Direct => return Ok(check(address, loopback)?),
            Self::Listed(lists) => lists,
        };
        // The lists say which addresses of loopback are allowed; what is never dialled they cannot allow.
        check(address, Loopback::Named)?;
        let (host, port) = (&target.host, target.port);
        match lists.iter().all(|list| list.permits(host, address, port)) {
            true => Ok(()),
            false => Err(Answer::failed(
                Verdict::NotAllowed,
                &format!("the far gateway does not forward to {target} for this key"),
            )),
        }
    }
}

async fn look_up(name: &str, port: u16) -> Result<Vec<IpAddr>, Answer> {
    match lookup_host((name, port)).await {
        Ok(found) => Ok(found.map(|address| address.ip()).collect()),
        Err(error) => Err(Answer::failed(Verdict::NameNotFound, &error.to_string())),
    }
}

/// The first connection that comes about.
async fn first_of(addresses: Vec<SocketAddr>) -> Result<TcpStream, Answer> {
    let mut attempts = JoinSet::new();
    let mut rest = addresses.into_iter();
    let mut last = None;
    loop {
        match rest.next() {
            Some(address) => {
                attempts.spawn(attempt(address));
            }
            None if attempts.is_empty() => break,
            None => {}
        }
        let is_last = rest.len() == 0;
        tokio::select! {
            Some(attempted) = attempts.join_next() => match attempted {
                Ok(Ok(socket)) => return Ok(socket),
                Ok(Err(error)) => last = Some(error),
                Err(_) => {}
            },
            () = sleep(ATTEMPT_DELAY), if !is_last => {}
        }
    }
    Err(last.map_or_else(|| Answer::failed(Verdict::HostUnreachable, ""), |error| answer(&error)))
}

async fn attempt(address: SocketAddr) -> io::Result<TcpStream> {
    let socket = TcpStream::connect(address).await?;
    socket::prepare(&socket)?;
    Ok(socket)
}

/// What an error of `connect` means.
fn answer(error: &io::Error) -> Answer {
    let verdict = match error.kind() {
        ErrorKind::ConnectionRefused => Verdict::Refused,
        ErrorKind::NetworkUnreachable => Verdict::NetworkUnreachable,
        ErrorKind::HostUnreachable => Verdict::HostUnreachable,
        ErrorKind::TimedOut => Verdict::TimedOut,
        // A packet filter of the host says so, or the mode of a Unix socket.
        ErrorKind::PermissionDenied => Verdict::NotAllowed,
        // There is no Unix socket of this name.
        ErrorKind::NotFound => Verdict::HostUnreachable,
        _ => return Answer::failed(Verdict::OutOfResources, &error.to_string()),
    };
    Answer::failed(verdict, "")
}

#[cfg(test)]
mod tests;
