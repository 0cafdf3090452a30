//! Connections to daemons.

use anyhow::Result;
use hikyaku_crypto::Fingerprint;
use hikyaku_image_source::Picking;
use hikyaku_reach::daemon::{IMAGES, PICKS, STORE};
use hikyaku_reach::dial::{Address, Servers};
use hikyaku_remote::Client;
use hikyaku_session::{ANSWER_TIME, ClientConfig, ConnectArgs, Connector, SetupError, SilenceArgs};
use hikyaku_units::RetryPolicy;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// A daemon that could be reached.
pub(crate) struct Server {
    pub(crate) address: Address,
    link: Mutex<Link>,
    keys: Arc<[Fingerprint]>,
}

struct Link {
    has: Linked,
    /// When it was last tried to connect again.
    tried: Option<Instant>,
}

/// A connection to a daemon, and what that can do.
#[derive(Clone)]
pub(crate) struct Linked {
    pub(crate) client: Client,
    pub(crate) picking: Picking,
    pub(crate) views: Views,
}

/// Whether a daemon makes windows of pictures.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Views {
    Offered,
    Missing,
}

/// Connects to daemons.
pub(crate) struct Phone {
    connector: Connector,
}

impl Phone {
    /// A client of these servers, as the user wants to connect.
    pub(crate) fn new(
        (connect, silence): (&ConnectArgs, SilenceArgs),
        servers: &Servers,
    ) -> Result<Self> {
        let silence = silence.timeout;
        let config = ClientConfig { silence, ..connect.client(&servers.servers)? };
        let connector = Connector::new(config, servers.servers.len(), STORE);
        Ok(Self { connector: connector.map_err(SetupError::explained)? })
    }

    /// Connects to all of them concurrently. One connection is enough; the failures of the others are printed.
    pub(crate) fn connect(&self, servers: &Servers) -> Result<Vec<Server>> {
        let keys: Arc<[Fingerprint]> = servers.keys.as_slice().into();
        let reached = self.connector.connect_any(servers, |address, dialled| {
            let link = Link::new(Client::new(dialled.connection)?, &dialled.features);
            let (address, keys) = (address.clone(), keys.clone());
            Ok(Server { address, link: Mutex::new(link), keys })
        })?;
        Ok(reached.into_iter().flatten().collect())
    }

    /// A connection to this server that works as far as is known. One that was lost is made again, with a pause between
    /// attempts.
    pub(crate) fn link(&self, server: &Server) -> Linked {
        let mut link = server.link.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let is_lost = link.has.client.connection().close_reason().is_some();
        let pause = RetryPolicy::VIEW.wait(1);
        if is_lost && link.tried.is_none_or(|tried| tried.elapsed() >= pause) {
            link.tried = Some(Instant::now());
            let dialled = self.connector.connect(&server.address, &server.keys, ANSWER_TIME);
            if let Ok(dialled) = dialled
                && let Ok(client) = Client::new(dialled.connection)
            {
                *link = Link::new(client, &dialled.features);
            }
        }
        link.has.clone()
    }
}

impl Link {
    fn new(client: Client, features: &BTreeSet<String>) -> Self {
        let picking = if features.contains(PICKS) { Picking::Offered } else { Picking::Segments };
        let views = if features.contains(IMAGES) { Views::Offered } else { Views::Missing };
        Self { has: Linked { client, picking, views }, tried: None }
    }
}
