//! Where data connections come from and go to.

use super::Channel;
use crate::address::{extended_passive, passive, striped_passive};
use crate::command::Command;
use crate::data::Data;
use crate::error::FtpError;
use crate::settings::{DataHosts, Settings};
use crate::transfer::Flow;
use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

/// How long a data connection to a server may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(20);
/// How long one may take while others wait for it: a lost SYN is sent again after 1 and 3 s.
const CONNECT_TOO_TIMEOUT: Duration = Duration::from_secs(4);

impl Channel {
    /// Listens for data connections, at the address that the server knows this end by.
    pub(super) fn listen(&self) -> Result<TcpListener, FtpError> {
        let address = SocketAddr::new(self.control.local()?.ip(), 0);
        let listener =
            hikyaku_tcp::listen(address, &self.settings.tcp).map_err(FtpError::Listen)?;
        listener.set_nonblocking(true).map_err(|error| FtpError::Listen(error.into()))?;
        Ok(listener)
    }

    /// The next data connection, if one has come. Connections of other hosts are closed, which is reported if the part then
    /// fails.
    pub(super) fn accept(&self, listener: &TcpListener) -> Result<Option<TcpStream>, FtpError> {
        let server = self.control.peer()?.ip();
        loop {
            match listener.accept() {
                Ok((stream, from)) => {
                    let is_server = from.ip() == server;
                    let is_server = is_server || self.nodes.contains(&from.ip());
                    if is_server || self.settings.data_hosts == DataHosts::Any {
                        return Ok(Some(stream));
                    }
                    self.odd.stranger.set(Some(from.ip()));
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
                // The connection was reset while it waited.
                Err(error) if error.kind() == ErrorKind::ConnectionAborted => {}
                Err(error) => return Err(FtpError::Listen(error.into())),
            }
        }
    }

    /// Asks where to connect to: an address for each data node that carries a part.
    pub(super) fn passive_all(&mut self) -> Result<Vec<SocketAddr>, FtpError> {
        if self.nodes.is_empty() {
            return Ok(vec![self.passive()?]);
        }
        let addresses = self.nodes_listen()?;
        match addresses.len() == self.nodes.len() {
            true => Ok(addresses),
            false => Err(FtpError::Lie("has another number of data nodes than before")),
        }
    }

    /// Lets all data nodes listen, and asks where.
    pub(super) fn nodes_listen(&mut self) -> Result<Vec<SocketAddr>, FtpError> {
        let reply = self.control.demand(&Command::new("SPAS"))?;
        striped_passive(&reply).ok_or(FtpError::Lie("tells addresses that cannot be read"))
    }

    /// Asks where to connect to.
    pub(super) fn passive(&mut self) -> Result<SocketAddr, FtpError> {
        let server = self.control.peer()?;
        let unread = FtpError::Lie("tells an address that cannot be read");
        if server.is_ipv6() {
            let reply = self.control.demand(&Command::new("EPSV"))?;
            let port = extended_passive(&reply).ok_or(unread)?;
            return Ok(SocketAddr::new(server.ip(), port));
        }
        let reply = self.control.demand(&Command::new("PASV"))?;
        let told = passive(&reply).ok_or(unread)?;
        let used = match self.settings.data_hosts {
            DataHosts::Any => told,
            DataHosts::Server => SocketAddr::new(server.ip(), told.port()),
        };
        self.odd.elsewhere = (used != told).then_some((told, used));
        Ok(used)
    }

    /// A failure of a part, with what this end did otherwise than the server wanted it.
    pub(super) fn explained(&self, failure: FtpError) -> FtpError {
        let is_own = matches!(failure, FtpError::Stopped | FtpError::Local(_));
        let server = self.control.peer().map(|server| server.ip());
        match (failure, self.odd.stranger.take(), self.odd.elsewhere, server) {
            (failure, ..) if is_own => failure,
            (failure, Some(from), _, Ok(server)) => {
                FtpError::Stranger { from, server, source: Box::new(failure) }
            }
            (FtpError::Connect { address, source, .. }, _, Some((told, used)), _)
                if address == used =>
            {
                FtpError::Connect { address, told: Some(told), source }
            }
            // The server that sends is to connect to the one that receives.
            (failure @ FtpError::Refused { .. }, _, Some((told, used)), _)
                if failure.is_of("ERET") =>
            {
                FtpError::Elsewhere { told, used, source: Box::new(failure) }
            }
            (failure, ..) => failure,
        }
    }
}

/// A data connection to a server.
pub(super) fn connect(
    node: (SocketAddr, usize),
    settings: &Settings,
    flow: &Flow<'_>,
) -> Result<Data, FtpError> {
    connect_within(CONNECT_TIMEOUT, node, settings, flow)
}

/// A data connection beside others, which wait for it.
pub(super) fn connect_too(
    node: (SocketAddr, usize),
    settings: &Settings,
    flow: &Flow<'_>,
) -> Result<Data, FtpError> {
    connect_within(CONNECT_TOO_TIMEOUT, node, settings, flow)
}

fn connect_within(
    timeout: Duration,
    (address, stripe): (SocketAddr, usize),
    settings: &Settings,
    flow: &Flow<'_>,
) -> Result<Data, FtpError> {
    hikyaku_tcp::connect(address, &settings.tcp, timeout)
        .map_err(|source| FtpError::Connect { address, told: None, source })
        .and_then(|stream| Data::connected((stream, stripe), settings.guard.as_ref(), flow))
}
