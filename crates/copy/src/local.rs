//! Within one machine: the far side is a thread of this program, at the other end of the loopback, so
//! that a local copy is as safe, is taken up again and is shown like any other.

use crate::far;
use crate::meet::invited;
use crate::near::Far;
use crate::session::{Order, Session};
use crate::watch::Fate;
use anyhow::Result;
use hikyaku_crypto::{Identity, Secret, ServerCredentials, Trust};
use hikyaku_net::blocking::block_on;
use hikyaku_net::{ConnectConfig, Endpoint, EndpointConfig, Listener, ListenerConfig, Memory};
use std::net::{Ipv4Addr, SocketAddr};
use std::thread;

/// Starts a far side here and gives it `order`.
pub(crate) fn open(order: &Order) -> Result<Far> {
    let (ours, theirs, secret) = (Identity::generate()?, Identity::generate()?, Secret::generate());
    let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let endpoint_config = EndpointConfig { memory: Memory::Off, ..EndpointConfig::default() };
    let mut config = ListenerConfig::new(ServerCredentials::mutual(&theirs));
    config.secret = Some(secret.clone());
    config.endpoint = endpoint_config.clone();
    let listener = Listener::bind(any, config)?;
    let address = listener.local_addr();
    let us = ours.fingerprint();
    thread::Builder::new().name("copy-local".to_owned()).spawn(move || {
        if let Ok(connection) = block_on(invited(&listener, us))
            && let Ok(stream) = block_on(connection.accept_stream())
        {
            // The other end has the same user, and tells.
            let _ = far::attend(connection, stream);
        }
    })?;
    let endpoint = Endpoint::bind(any, endpoint_config)?;
    let mut config = ConnectConfig::new(Trust::Pinned(theirs.fingerprint()));
    config.credentials = config.credentials.with_identity(&ours);
    config.secret = Some(secret);
    let connection = block_on(endpoint.connect(address, config))?;
    let session = Session::order(connection, order, Fate::default())?;
    Ok(Far::here(session, endpoint))
}
