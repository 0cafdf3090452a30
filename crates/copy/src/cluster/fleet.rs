//! Connections to the daemons of a copy.

use crate::args::CopyArgs;
use crate::outcome::failed;
use anyhow::{Error, Result, bail};
use hikyaku_console::{Folder, with_remedy};
use hikyaku_crypto::{Fingerprint, Identity, KnownPeers};
use hikyaku_fan::ServerId;
use hikyaku_net::Memory;
use hikyaku_reach::daemon::{NoService, REPORTS, STORE, UPLOADS, WRITES};
use hikyaku_reach::dial::{Address, Carrier, DialError, Dialled, Dialler, Servers, Via, trust};
use hikyaku_remote::Client;
use hikyaku_transfer::FailureKind;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// How long a daemon may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// The same for one that was there before: the transfer waits for it at its end.
const PATIENCE_AGAIN: Duration = Duration::from_secs(3);

/// The servers that could be reached, and what connects to them again.
pub(super) struct Fleet {
    dialler: Dialler,
    known: KnownPeers,
    keys: Arc<[Fingerprint]>,
    /// The servers that could be reached, in the order of `clients`.
    pub(super) addresses: Vec<Address>,
    pub(super) clients: Vec<Client>,
    /// The features of the service that they and this program have, in the same order.
    features: Vec<BTreeSet<String>>,
}

impl Fleet {
    /// Connects to all servers at once. Those that cannot be reached are told; one must be there.
    pub(super) fn connect(args: &CopyArgs, servers: &Servers) -> Result<Self> {
        let state = Folder::State.of_user()?;
        let identity = Identity::load_or_create(&state.join("identity"))?;
        let own_key = identity.public_key();
        let (count, via) = (servers.servers.len(), args.via()?);
        let mut fleet = Self {
            dialler: Dialler::new(identity, count, Memory::of_user(), via)?
                .with_pipes(args.pipes()),
            known: KnownPeers::at(state.join("known_peers")),
            keys: servers.keys.as_slice().into(),
            addresses: Vec::new(),
            clients: Vec::new(),
            features: Vec::new(),
        };
        let is_told = !args.is_quiet();
        if let Some(advice) = fleet.dialler.advice().filter(|_| is_told) {
            eprintln!("hikyaku: {advice}");
        }
        let caller = &fleet;
        let dialled: Vec<Option<_>> = thread::scope(|scope| {
            let dial = |address| scope.spawn(move || caller.dial(address, PATIENCE));
            let all: Vec<_> = servers.servers.iter().map(dial).collect();
            all.into_iter().map(|one| one.join().ok()).collect()
        });
        let mut first = None;
        for (address, dialled) in servers.servers.iter().zip(dialled) {
            match dialled {
                Some(Ok(Dialled { connection, first_use, carrier, features })) => {
                    if let Some(key) = first_use.filter(|_| is_told) {
                        eprintln!("hikyaku: {address} is new, its key is {key}");
                    }
                    if carrier == Carrier::Tcp && is_told {
                        let why = match via {
                            Via::Auto => ": no UDP gets through",
                            Via::Udp | Via::Tcp => "",
                        };
                        eprintln!("hikyaku: {address} is reached over TCP{why}");
                    }
                    fleet.clients.push(Client::new(connection)?);
                    fleet.addresses.push(address.clone());
                    fleet.features.push(features);
                }
                Some(Err(error)) => {
                    let hint = match &error {
                        DialError::Service(NoService::NotAuthorised(_)) => {
                            format!("; the line of this client's key is {own_key}")
                        }
                        _ => String::new(),
                    };
                    let error = explained(error, &own_key.to_string());
                    if count > 1 {
                        eprintln!("hikyaku: {address}: {}{hint}", error.root_cause());
                    }
                    first.get_or_insert_with(|| error.context(address.to_string()));
                }
                None => bail!("a thread that connects to {address} panicked"),
            }
        }
        match (fleet.clients.is_empty(), first) {
            (true, Some(error)) => Err(error),
            _ => Ok(fleet),
        }
    }

    fn dial(&self, address: &Address, patience: Duration) -> Result<Dialled, DialError> {
        self.dialler.dial(address, trust(&self.keys, &self.known), &STORE, patience)
    }

    pub(super) fn names(&self) -> Vec<String> {
        self.addresses.iter().map(Address::to_string).collect()
    }

    /// Whether the server tells its state.
    pub(super) fn tells(&self, server: ServerId) -> bool {
        self.features.get(server.0).is_some_and(|features| features.contains(REPORTS))
    }

    /// Whether all servers take uploads.
    ///
    /// # Errors
    ///
    /// One does not, with what to do about it.
    pub(super) fn check_uploads(&self) -> Result<()> {
        for (address, features) in self.addresses.iter().zip(&self.features) {
            let (kind, text, remedy) = match (features.contains(UPLOADS), features.contains(WRITES))
            {
                (true, _) => continue,
                (false, true) => (
                    FailureKind::Unsupported,
                    "this server has an older hikyaku, which takes no uploads",
                    "a newer hikyaku at the server",
                ),
                (false, false) => (
                    FailureKind::ReadOnly,
                    "this server does not let this client write: it was started without --writable, or the client's \
                     key is marked 'ro' there",
                    "let the server's administrator start it with --writable, and take the 'ro' from the line of the key",
                ),
            };
            let error = failed(kind, format!("{address}: {text}"));
            return Err(with_remedy(error, Some(remedy)));
        }
        Ok(())
    }

    /// Connects again to a server whose connection was lost.
    pub(super) fn again(&self, server: ServerId) -> Option<Client> {
        let dialled = self.dial(self.addresses.get(server.0)?, PATIENCE_AGAIN).ok()?;
        Client::new(dialled.connection).ok()
    }
}

/// What the user can do about a daemon that cannot be used.
pub(crate) fn explained(error: DialError, key: &str) -> Error {
    match error {
        DialError::Service(NoService::NotAuthorised(text)) => failed(FailureKind::Denied, text)
            .context(format!(
                "try: let the server's administrator put this line into its list of keys: {key}"
            )),
        DialError::Service(NoService::Later(text)) => failed(FailureKind::Busy, text),
        DialError::Service(error) => failed(FailureKind::Unsupported, error.to_string()),
        DialError::Connect(error) => error.into(),
        DialError::Tcp(error) => error.into(),
    }
}
