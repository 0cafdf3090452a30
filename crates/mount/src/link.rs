//! The connections to the servers, which are made again when they are lost.

use crate::core::{Access, Core, Ending};
use crate::crew::SERVERS_MAX;
use crate::leases::new_name;
use crate::locks::Locking;
use anyhow::{Context, Error, Result};
use hikyaku_console::{ExitCode, Folder, Tone, causes, misuse, say, with_remedy};
use hikyaku_crypto::{Fingerprint, Identity, KnownPeers};
use hikyaku_net::Memory;
use hikyaku_net::blocking::block_on;
use hikyaku_reach::daemon::{LEASES, LOCKS, MOUNTS, STORE, SUCCESSORS, WRITES};
use hikyaku_reach::dial::{Address, DialError, Dialled, Dialler, Servers, Via, trust};
use hikyaku_remote::{Client, Holder, RemoteError};
use hikyaku_units::{Retries, RetryPolicy};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// Servers, and what connects to them.
pub(crate) struct Links {
    dialler: Dialler,
    addresses: Vec<Address>,
    known: KnownPeers,
    keys: Arc<[Fingerprint]>,
    leasing: Leasing,
    /// The name of this process.
    process: Holder,
}

/// Whether leases are asked for where a server grants them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Leasing {
    Wanted,
    Unwanted,
}

/// How long a server may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);

impl Links {
    /// Connects for the first time. One of several servers is enough; the others are reported, and connected when they can be
    /// reached.
    pub(crate) fn connect(
        servers: &Servers,
        leasing: Leasing,
        via: Via,
    ) -> Result<(Self, Vec<Option<Client>>, Access, Locking)> {
        let count = servers.servers.len();
        if count > SERVERS_MAX {
            let text = format!("{count} servers: a mount has at most {SERVERS_MAX}");
            return Err(misuse(text, "fewer servers"));
        }
        let state = Folder::State.of_user()?;
        let identity = Identity::load_or_create(&state.join("identity")).map_err(|error| {
            let remedy = error.remedy();
            with_remedy(error.into(), remedy)
        })?;
        let own_key = identity.public_key().to_string();
        let links = Self {
            dialler: Dialler::new(identity, count, Memory::of_user(), via)?,
            addresses: servers.servers.clone(),
            known: KnownPeers::at(state.join("known_peers")),
            keys: servers.keys.as_slice().into(),
            leasing,
            process: new_name(),
        };
        if let Some(advice) = links.dialler.advice() {
            say(Tone::Note, advice);
        }
        let dialled: Vec<_> = thread::scope(|scope| {
            let all: Vec<_> = (0..count)
                .map(|server| {
                    let links = &links;
                    scope.spawn(move || links.first(server))
                })
                .collect();
            all.into_iter().map(|one| one.join().ok()).collect()
        });
        let (mut clients, mut access, mut first) = (Vec::new(), Access::Read, None);
        let mut locking = Locking::Local;
        for (address, dialled) in servers.servers.iter().zip(dialled) {
            match dialled.context("a thread that connects panicked")? {
                Ok((client, allowed, locks)) => {
                    (access, locking) = (allowed, locks);
                    clients.push(Some(client));
                }
                Err(error) => {
                    let error = error.explained(address, &own_key);
                    if count > 1 {
                        say(Tone::Error, causes(&error));
                    }
                    first.get_or_insert(error);
                    clients.push(None);
                }
            }
        }
        match (clients.iter().any(Option::is_some), first) {
            (false, Some(error)) => Err(error),
            // Several servers do not agree on who has which file, so nothing is written to them.
            _ if count > 1 => Ok((links, clients, Access::Read, Locking::Local)),
            _ => Ok((links, clients, access, locking)),
        }
    }

    /// Connects to a server, and shows its key to the user at the first connection.
    fn first(&self, server: usize) -> Result<(Client, Access, Locking), NoLink> {
        let dialled = self.dial(server)?;
        if let Some(key) = &dialled.first_use {
            say(Tone::Note, format_args!("{} is new, its key is {key}", self.addresses[server]));
        }
        if !dialled.features.contains(MOUNTS) {
            return Err(NoLink::Old);
        }
        let access = match dialled.features.contains(WRITES) {
            true => Access::Write,
            false => Access::Read,
        };
        let locking = match dialled.features.contains(LOCKS) {
            true => Locking::Server,
            false => Locking::Local,
        };
        Ok((self.client(dialled)?, access, locking))
    }

    /// The name of this process.
    pub(crate) const fn process(&self) -> Holder {
        self.process
    }

    /// A client over a connection, which asks for leases if its server is the only one and grants them.
    fn client(&self, dialled: Dialled) -> Result<Client, RemoteError> {
        let is_wanted = self.leasing == Leasing::Wanted && self.addresses.len() == 1;
        let has_leases = dialled.features.contains(LEASES) && is_wanted;
        let client = Client::new(dialled.connection)?.with_features(dialled.features);
        if client.has(SUCCESSORS) {
            client.process_then((self.process, Vec::new()), drop);
        }
        if has_leases { client.with_leases() } else { Ok(client) }
    }

    fn dial(&self, server: usize) -> Result<Dialled, DialError> {
        let trust = trust(&self.keys, &self.known);
        self.dialler.dial(&self.addresses[server], trust, &STORE, PATIENCE)
    }

    /// Looks after the connections for as long as the process lives, on threads of its own.
    pub(crate) fn keep(self, core: &Arc<Core>, clients: Vec<Option<Client>>) -> Result<()> {
        let named = |name: &str| thread::Builder::new().name(name.to_owned());
        let ticks = core.clone();
        named("mount-clock").spawn(move || ticks.tick())?;
        let links = Arc::new(self);
        for (server, mut client) in clients.into_iter().enumerate() {
            let (links, core) = (links.clone(), core.clone());
            named("mount-link").spawn(move || {
                loop {
                    if let Some(client) = client {
                        block_on(client.connection().closed());
                        if core.state().ending == Ending::Begun {
                            return;
                        }
                        core.on_down(server);
                    }
                    let again = links.again(server);
                    core.on_up(server, again.clone());
                    client = Some(again);
                }
            })?;
        }
        Ok(())
    }

    /// Connects until that succeeds.
    fn again(&self, server: usize) -> Client {
        let mut retries = Retries::new(RetryPolicy::MOUNT);
        loop {
            let begin = Instant::now();
            if let Ok(dialled) = self.dial(server)
                && dialled.features.contains(MOUNTS)
                && let Ok(client) = self.client(dialled)
            {
                return client;
            }
            thread::sleep(retries.next(fastrand::f64()).saturating_sub(begin.elapsed()));
        }
    }
}

/// Minimum time after which a server without a byte of a pending answer is given up. It grows with the round-trip time.
const QUIET: Duration = Duration::from_secs(2);
const QUIET_ROUND_TRIPS: u32 = 4;
/// How often requests that are late are looked for.
const TICK: Duration = Duration::from_millis(250);

impl Core {
    /// Fails what is late, and measures the path.
    fn tick(self: &Arc<Self>) {
        loop {
            thread::sleep(TICK);
            self.expire();
            let crew = self.state().crew.clone();
            // The window of reads is that of the server with the longest round trip.
            let seen = crew.clients().filter_map(|client| block_on(client.connection().seen()));
            let Some(round_trip) = seen.map(|seen| seen.round_trip).max() else { continue };
            self.state().pace.set_round_trip(round_trip);
            // Others may have what a silent server is asked for. It is connected again.
            for client in crew.quiet(QUIET.max(QUIET_ROUND_TRIPS * round_trip)) {
                client.connection().close(hikyaku_net::code::DONE, "the server is silent");
            }
        }
    }
}

/// Why a server cannot be used.
#[derive(Debug, thiserror::Error)]
enum NoLink {
    #[error(transparent)]
    Dial(#[from] DialError),
    #[error(transparent)]
    Remote(#[from] RemoteError),
    #[error("its hikyaku is too old to be mounted")]
    Old,
}

impl NoLink {
    /// The error for the user, with what can be done about it.
    fn explained(self, address: &Address, key: &str) -> Error {
        match self {
            Self::Dial(error) => error.explained(address, key),
            Self::Remote(error) => Error::from(error).context(address.to_string()),
            error @ Self::Old => {
                let error =
                    ExitCode::WillFail.error(error.to_string()).context(address.to_string());
                with_remedy(error, Some("a newer hikyaku on the server"))
            }
        }
    }
}
