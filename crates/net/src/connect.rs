//! Connecting to a name: its addresses are looked up, and a handshake is prepared for each. The driver
//! runs the race between them (`driver/race.rs`).

use crate::command::Command;
use crate::config::ConnectConfig;
use crate::connection::{Connection, Known};
use crate::driver::{Attempt, ConnectRequest};
use crate::endpoint::Context;
use crate::error::ConnectError;
use crate::mailbox::Mailbox;
use crate::paths::Memory;
use crate::reply::{Reply, ask};
use crate::target::Target;
use crate::tune;
use hikyaku_crypto::{PeerName, SettleTrust, random_u64};
use hikyaku_proto::{ClientIds, Config};
use std::collections::VecDeque;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::thread;
use std::time::SystemTime;

/// Addresses of one name that are tried.
const MAX_ADDRESSES: usize = 6;

pub(crate) async fn connect(
    mailbox: &Arc<Mailbox>,
    context: Context,
    target: Target,
    config: ConnectConfig,
) -> Result<Connection, ConnectError> {
    let (reply, question) = ask();
    // The resolver and the disk block, which a task of the caller's executor must not, so they are
    // asked on a thread.
    let prepare = move || prepare(&context, &target, &config, reply);
    thread::Builder::new()
        .name("hikyaku-resolve".to_owned())
        .spawn(prepare)
        .map_err(|source| ConnectError::NotFound { host: "the host".to_owned(), source })?;
    let request = question.await.ok_or(ConnectError::EndpointClosed)??;
    let (reply, question) = ask();
    mailbox.send(Command::Connect(Box::new(request), reply));
    let connected = question.await.ok_or(ConnectError::EndpointClosed)??;
    let outcome = connected.trust.settle(SystemTime::now()).map_err(not_settled)?;
    Ok(Connection::new(connected.handle, Known::Server(outcome)))
}

fn not_settled(error: SettleTrust) -> ConnectError {
    match error {
        SettleTrust::Untrusted(refusal) => ConnectError::Untrusted(refusal),
        other => ConnectError::Trust(other),
    }
}

fn prepare(
    context: &Context,
    target: &Target,
    config: &ConnectConfig,
    reply: Reply<Result<ConnectRequest, ConnectError>>,
) {
    reply.send(request(context, target, config));
}

fn request(
    context: &Context,
    target: &Target,
    config: &ConnectConfig,
) -> Result<ConnectRequest, ConnectError> {
    let host = target.host().to_owned();
    let name = config.server_name.as_deref().unwrap_or(&host);
    let peer = PeerName::new(name, target.port())?;
    let mut attempts = VecDeque::new();
    for address in addresses(context, target)? {
        let transport = tune::fit(&config.transport, address, context.device.as_deref());
        attempts.push_back(attempt(context, address, transport, config, &peer)?);
    }
    Ok(ConnectRequest { host, port: target.port(), attempts })
}

/// The addresses of `target` that the endpoint's socket can send to. Addresses of the two families
/// alternate, beginning with the family of the first (RFC 8305 section 4).
fn addresses(context: &Context, target: &Target) -> Result<Vec<SocketAddr>, ConnectError> {
    let host = || target.host().to_owned();
    let not_found = |source: io::Error| ConnectError::NotFound { host: host(), source };
    let found: Vec<_> = match target.addresses() {
        [] => (target.host(), target.port()).to_socket_addrs().map_err(not_found)?.collect(),
        known => known.to_vec(),
    };
    if found.is_empty() {
        return Err(not_found(io::Error::new(io::ErrorKind::NotFound, "the name has no address")));
    }
    let reachable = |address: &&SocketAddr| match context.local {
        SocketAddr::V4(_) => address.is_ipv4(),
        SocketAddr::V6(local) => address.is_ipv6() || local.ip().is_unspecified(),
    };
    let (first, second): (Vec<_>, Vec<_>) = found
        .iter()
        .filter(reachable)
        .copied()
        .partition(|address| address.is_ipv6() == found[0].is_ipv6());
    let mut addresses = Vec::new();
    let (mut first, mut second) = (first.into_iter(), second.into_iter());
    loop {
        let pair = [first.next(), second.next()];
        if pair == [None, None] {
            break;
        }
        for address in pair.into_iter().flatten() {
            if !addresses.contains(&address) {
                addresses.push(address);
            }
        }
    }
    addresses.truncate(MAX_ADDRESSES);
    if addresses.is_empty() {
        return Err(ConnectError::WrongFamily { host: host(), local: context.local });
    }
    Ok(addresses)
}

fn attempt(
    context: &Context,
    address: SocketAddr,
    mut transport: Config,
    config: &ConnectConfig,
    peer: &PeerName,
) -> Result<Attempt, ConnectError> {
    let path = match &context.memory {
        Memory::File(_) => tune::path_to(address),
        Memory::Off => None,
    };
    if let (Memory::File(cache), None, Some(path)) = (&context.memory, transport.hint, &path) {
        transport.hint = cache.recall(path, SystemTime::now());
    }
    let (local, destination) = (context.ids.random(), context.aim.id());
    let ids = ClientIds { local, destination, seed: random_u64() };
    let params =
        hikyaku_proto::Connection::local_params(&transport, ids.local, ids.destination).encode();
    let (session, trust) = config.credentials.session(peer, params)?;
    let token = config.secret.as_ref().map(|secret| secret.token(ids.destination));
    let session = Box::new(session);
    Ok(Attempt { address, config: transport, ids, token, session, trust, path })
}
