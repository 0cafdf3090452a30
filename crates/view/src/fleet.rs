//! Connections to daemons.

use anyhow::{Context, Result};
use hikyaku_console::{Folder, Tone, causes, say};
use hikyaku_crypto::{Fingerprint, Identity, KnownPeers};
use hikyaku_image_source::Picking;
use hikyaku_net::Memory;
use hikyaku_reach::daemon::{IMAGES, PICKS, STORE};
use hikyaku_reach::dial::{Address, Carrier, DialError, Dialled, Dialler, Servers, Via, trust};
use hikyaku_remote::Client;
use hikyaku_units::RetryPolicy;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

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
    dialler: Dialler,
    known: KnownPeers,
    own_key: String,
}

/// How long a daemon may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);

impl Phone {
    /// Without connections yet. `via` decides whether UDP, TCP or both are tried.
    pub(crate) fn new(servers: usize, via: Via) -> Result<Self> {
        let state = Folder::State.of_user()?;
        let identity = Identity::load_or_create(&state.join("identity"))?;
        let own_key = identity.public_key().to_string();
        let dialler = Dialler::new(identity, servers, Memory::of_user(), via)?;
        if let Some(advice) = dialler.advice() {
            say(Tone::Note, advice);
        }
        Ok(Self { dialler, known: KnownPeers::at(state.join("known_peers")), own_key })
    }

    /// Connects to all of them concurrently. One connection is enough; the failures of the others are printed.
    pub(crate) fn connect(&self, servers: &Servers) -> Result<Vec<Server>> {
        let keys: Arc<[Fingerprint]> = servers.keys.as_slice().into();
        let dialled: Vec<_> = thread::scope(|scope| {
            let keys = &keys;
            let dial = |address| scope.spawn(move || self.dial(address, keys));
            let all: Vec<_> = servers.servers.iter().map(dial).collect();
            all.into_iter().map(|one| one.join().ok()).collect()
        });
        let (mut reached, mut first) = (Vec::new(), None);
        for (address, dialled) in servers.servers.iter().zip(dialled) {
            let dialled = dialled.context("a thread that connects panicked")?;
            match dialled {
                Ok(Dialled { connection, first_use, carrier, features }) => {
                    if let Some(key) = first_use {
                        say(Tone::Note, format_args!("{address} is new, its key is {key}"));
                    }
                    if carrier == Carrier::Tcp {
                        say(Tone::Note, format_args!("{address} is reached over TCP"));
                    }
                    let link = Link::new(Client::new(connection)?, &features);
                    let (address, keys) = (address.clone(), keys.clone());
                    reached.push(Server { address, link: Mutex::new(link), keys });
                }
                Err(error) => {
                    let error = error.explained(address, &self.own_key);
                    if servers.servers.len() > 1 {
                        say(Tone::Error, causes(&error));
                    }
                    first.get_or_insert(error);
                }
            }
        }
        match (reached.is_empty(), first) {
            (true, Some(error)) => Err(error),
            _ => Ok(reached),
        }
    }

    fn dial(&self, address: &Address, keys: &Arc<[Fingerprint]>) -> Result<Dialled, DialError> {
        self.dialler.dial(address, trust(keys, &self.known), &STORE, PATIENCE)
    }

    /// A connection to this server that works as far as is known. One that was lost is made again, with a pause between
    /// attempts.
    pub(crate) fn link(&self, server: &Server) -> Linked {
        let mut link = server.link.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let is_lost = link.has.client.connection().close_reason().is_some();
        let pause = RetryPolicy::VIEW.wait(1);
        if is_lost && link.tried.is_none_or(|tried| tried.elapsed() >= pause) {
            link.tried = Some(Instant::now());
            if let Ok(dialled) = self.dial(&server.address, &server.keys)
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
