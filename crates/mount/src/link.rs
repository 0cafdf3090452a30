//! The connection to the server, which is made again when it is lost.

use crate::core::{Access, Core};
use anyhow::{Context, Error, Result, bail, ensure};
use hikyaku_console::{Folder, with_remedy};
use hikyaku_crypto::{Fingerprint, Identity, KnownPeers};
use hikyaku_net::Memory;
use hikyaku_net::blocking::block_on;
use hikyaku_reach::daemon::{MOUNTS, NoService, STORE, WRITES};
use hikyaku_reach::dial::{Address, DialError, Dialled, Dialler, Servers, Via, trust};
use hikyaku_remote::Client;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// A server, and what connects to it.
pub(crate) struct Link {
    dialler: Dialler,
    address: Address,
    known: KnownPeers,
    keys: Arc<[Fingerprint]>,
}

/// How long a server may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// The time between two attempts to connect again: the first, and the longest.
const PAUSE_MIN: Duration = Duration::from_millis(500);
const PAUSE_MAX: Duration = Duration::from_secs(5);

impl Link {
    /// Connects for the first time.
    pub(crate) fn connect(servers: &Servers) -> Result<(Self, Client, Access)> {
        let [address] = &servers.servers[..] else {
            bail!("'{servers}': a mount of several servers is not possible yet; try: one of them");
        };
        let state = Folder::State.of_user()?;
        let identity = Identity::load_or_create(&state.join("identity")).map_err(|error| {
            let remedy = error.remedy();
            with_remedy(error.into(), remedy)
        })?;
        let own_key = identity.public_key();
        let link = Self {
            dialler: Dialler::new(identity, 1, Memory::of_user(), Via::Auto)?,
            address: address.clone(),
            known: KnownPeers::at(state.join("known_peers")),
            keys: servers.keys.as_slice().into(),
        };
        if let Some(advice) = link.dialler.advice() {
            eprintln!("hikyaku: {advice}");
        }
        let dialled = link.dial().map_err(|error| explained(error, &own_key.to_string()));
        let dialled = dialled.with_context(|| address.to_string())?;
        if let Some(key) = &dialled.first_use {
            eprintln!("hikyaku: {address} is new, its key is {key}");
        }
        ensure!(
            dialled.features.contains(MOUNTS),
            "{address} has an older hikyaku, which cannot be mounted; try: a newer one there"
        );
        let access = match dialled.features.contains(WRITES) {
            true => Access::Write,
            false => Access::Read,
        };
        Ok((link, Client::new(dialled.connection)?, access))
    }

    fn dial(&self) -> Result<Dialled, DialError> {
        self.dialler.dial(&self.address, trust(&self.keys, &self.known), &STORE, PATIENCE)
    }

    /// Looks after the connection for as long as the process lives, on threads of its own.
    pub(crate) fn keep(self, core: &Arc<Core>, mut client: Client) -> Result<()> {
        let named = |name: &str| thread::Builder::new().name(name.to_owned());
        let ticks = core.clone();
        named("mount-clock").spawn(move || ticks.tick())?;
        let core = core.clone();
        named("mount-link").spawn(move || {
            loop {
                block_on(client.connection().closed());
                core.on_down();
                client = self.again();
                core.on_up(client.clone());
            }
        })?;
        Ok(())
    }

    /// Connects until that succeeds.
    fn again(&self) -> Client {
        let mut pause = PAUSE_MIN;
        loop {
            let begin = Instant::now();
            if let Ok(dialled) = self.dial()
                && let Ok(client) = Client::new(dialled.connection)
            {
                return client;
            }
            thread::sleep(pause.saturating_sub(begin.elapsed()));
            pause = PAUSE_MAX.min(pause * 2);
        }
    }
}

/// How often requests that are late are looked for.
const TICK: Duration = Duration::from_millis(250);

impl Core {
    /// Fails what is late, and measures the path.
    fn tick(self: &Arc<Self>) {
        loop {
            thread::sleep(TICK);
            self.expire();
            let client = self.state().client.clone();
            if let Some(client) = client
                && let Some(seen) = block_on(client.connection().seen())
            {
                self.state().pace.set_round_trip(seen.round_trip);
            }
        }
    }
}

/// What the user can do about a server that cannot be used.
fn explained(error: DialError, key: &str) -> Error {
    match error {
        DialError::Service(NoService::NotAuthorised(text)) => Error::msg(text).context(format!(
            "try: let the server's administrator put this line into its list of keys: {key}"
        )),
        DialError::Service(error) => error.into(),
        DialError::Connect(error) => error.into(),
        DialError::Tcp(error) => error.into(),
    }
}
