//! The connections to the servers, which are made again when they are lost.

use crate::core::{Access, Core, Ending};
use crate::crew::SERVERS_MAX;
use crate::leases::new_name;
use crate::locks::Locking;
use anyhow::Result;
use hikyaku_console::{ExitCode, misuse, with_remedy};
use hikyaku_net::blocking::block_on;
use hikyaku_reach::daemon::{LEASES, LOCKS, MOUNTS, STORE, SUCCESSORS, WRITES};
use hikyaku_reach::dial::{DialError, Dialled, Servers};
use hikyaku_remote::{Client, Holder, RemoteError};
use hikyaku_session::{ANSWER_TIME, ConnectArgs, Connector, SetupError};
use hikyaku_units::{Retries, RetryPolicy};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// Servers, and what connects to them.
pub(crate) struct Links {
    connector: Connector,
    servers: Servers,
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

impl Links {
    /// Connects for the first time. One of several servers is enough; the others are reported, and connected when they can be
    /// reached.
    pub(crate) fn connect(
        servers: &Servers,
        leasing: Leasing,
        connect: &ConnectArgs,
    ) -> Result<(Self, Vec<Option<Client>>, Access, Locking)> {
        let count = servers.servers.len();
        if count > SERVERS_MAX {
            let text = format!("{count} servers: a mount has at most {SERVERS_MAX}");
            return Err(misuse(text, "fewer servers"));
        }
        let config = connect.client(&servers.servers)?;
        let connector = Connector::new(config, count, STORE).map_err(SetupError::explained)?;
        let (servers, process) = (servers.clone(), new_name());
        let links = Self { connector, servers, leasing, process };
        let reached = links.connector.connect_any(&links.servers, |address, dialled| {
            links.first(dialled).map_err(|error| error.context(address.to_string()))
        })?;
        // Several servers do not agree on who has which file, so nothing is written to them.
        let alone = reached.first().and_then(Option::as_ref).filter(|_| count == 1);
        let (access, locking) =
            alone.map_or((Access::Read, Locking::Local), |&(_, access, locking)| (access, locking));
        let clients = reached.into_iter().map(|one| one.map(|(client, ..)| client)).collect();
        Ok((links, clients, access, locking))
    }

    /// Begins to use a first connection.
    fn first(&self, dialled: Dialled) -> Result<(Client, Access, Locking)> {
        if !dialled.features.contains(MOUNTS) {
            let error = ExitCode::WillFail.error("its hikyaku is too old to be mounted");
            return Err(with_remedy(error, Some("a newer hikyaku on the server")));
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
        let is_wanted = self.leasing == Leasing::Wanted && self.servers.servers.len() == 1;
        let has_leases = dialled.features.contains(LEASES) && is_wanted;
        let client = Client::new(dialled.connection)?.with_features(dialled.features);
        if client.has(SUCCESSORS) {
            client.process_then((self.process, Vec::new()), drop);
        }
        if has_leases { client.with_leases() } else { Ok(client) }
    }

    fn dial(&self, server: usize) -> Result<Dialled, DialError> {
        let Servers { servers, keys, .. } = &self.servers;
        self.connector.connect(&servers[server], keys, ANSWER_TIME)
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
