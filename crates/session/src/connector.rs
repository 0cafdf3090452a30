//! Connections to one or many daemons.

use crate::config::{ClientConfig, SetupError};
use crate::notes::announce;
use anyhow::{Error, Result};
use hikyaku_console::{Tone, causes, say};
use hikyaku_crypto::{Fingerprint, KnownPeers};
use hikyaku_reach::daemon::Offered;
use hikyaku_reach::dial::{Address, DialError, Dialled, Dialler, Servers, Via, trust};
use hikyaku_transfer::Pace;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// How long a daemon may take to answer.
pub const ANSWER_TIME: Duration = Duration::from_secs(10);

/// A client of one service of daemons. All its connections share a socket.
pub struct Connector {
    dialler: Dialler,
    known: KnownPeers,
    own_key: String,
    service: Offered<'static>,
    via: Via,
    silence: Option<Duration>,
    /// The rate limits of all connections together: of sent and of received bytes.
    paces: Option<[Arc<Pace>; 2]>,
}

impl Connector {
    /// Binds a socket for connections to about `servers` daemons.
    ///
    /// # Errors
    ///
    /// No socket can be had.
    pub fn new(
        config: ClientConfig,
        servers: usize,
        service: Offered<'static>,
    ) -> Result<Self, SetupError> {
        let own_key = config.own_key();
        let ClientConfig { identity, known, memory, via, pipes, family, window, rate, silence } =
            config;
        let mut dialler = Dialler::new(identity, servers, memory, via)?;
        dialler = dialler.with_pipes(pipes).with_family(family);
        if let Some(window) = window {
            dialler = dialler.with_window(window);
        }
        if let Some(silence) = silence {
            dialler = dialler.with_silence(silence);
        }
        let paces = rate.map(|rate| [(); 2].map(|()| Arc::new(Pace::new(rate))));
        Ok(Self { dialler, known, own_key, service, via, silence, paces })
    }

    /// Prepares for streams that many programs read, as those of carried flows. A daemon that sends nothing for `silence`
    /// counts as lost.
    pub fn for_flows(self, silence: Duration) -> Self {
        Self { dialler: self.dialler.for_flows(silence), ..self }
    }

    /// A command that would make this machine's socket faster, if there is one.
    pub fn advice(&self) -> Option<&str> {
        self.dialler.advice()
    }

    /// The line of this client's key, which a server's list of keys needs.
    pub fn own_key(&self) -> &str {
        &self.own_key
    }

    /// Connects to a daemon and requests the service, each within `time`, or within the longest silence of the configuration.
    /// The daemon has one of these keys; without any, the key that it had at its first use.
    ///
    /// # Errors
    ///
    /// It cannot be reached, has another key, or does not offer the service.
    pub fn connect(
        &self,
        address: &Address,
        keys: &[Fingerprint],
        time: Duration,
    ) -> Result<Dialled, DialError> {
        let time = self.silence.map_or(time, |silence| silence.min(time));
        let dialled = self.dialler.dial(address, trust(keys, &self.known), &self.service, time)?;
        // The daemon does not receive the rate limit, so this end also limits the bytes that it receives.
        if let Some([sent, received]) = &self.paces {
            dialled.connection.limit(sent, received);
        }
        Ok(dialled)
    }

    /// The error of a command that needs the daemon at `address`, with its exit code and with what the user can do.
    pub fn explained(&self, address: &Address, error: DialError) -> Error {
        error.explained(address, &self.own_key)
    }

    /// Connects to all servers at once, and makes of each connection what the command uses; in the order of the servers.
    /// Prints the key of each new server, and the error of each of several servers that cannot be used.
    ///
    /// # Errors
    ///
    /// No server can be used: the error of the first one.
    pub fn connect_any<T>(
        &self,
        servers: &Servers,
        make: impl Fn(&Address, Dialled) -> Result<T>,
    ) -> Result<Vec<Option<T>>> {
        if let Some(advice) = self.advice() {
            say(Tone::Note, advice);
        }
        let dialled =
            at_once(&servers.servers, |address| self.connect(address, &servers.keys, ANSWER_TIME));
        let mut first = None;
        let mut one = |(address, dialled): (&Address, Result<Dialled, DialError>)| {
            let made =
                dialled.map_err(|error| self.explained(address, error)).and_then(|dialled| {
                    announce(address, (dialled.first_use, dialled.carrier), self.via);
                    make(address, dialled)
                });
            let error = match made {
                Ok(made) => return Some(made),
                Err(error) => error,
            };
            if servers.servers.len() > 1 {
                say(Tone::Error, causes(&error));
            }
            first.get_or_insert(error);
            None
        };
        let all: Vec<_> = servers.servers.iter().zip(dialled).map(&mut one).collect();
        match first {
            Some(error) if all.iter().all(Option::is_none) => Err(error),
            _ => Ok(all),
        }
    }
}

/// Does the same work for all of these at once, each on a thread of its own. The results are in their order.
pub fn at_once<I: IntoIterator<Item: Send>, T: Send>(
    items: I,
    work: impl Fn(I::Item) -> T + Sync,
) -> Vec<T> {
    let work = &work;
    thread::scope(|scope| {
        let all: Vec<_> = items.into_iter().map(|item| scope.spawn(move || work(item))).collect();
        let result = |thread: thread::ScopedJoinHandle<'_, T>| {
            thread.join().unwrap_or_else(|panic| resume_unwind(panic))
        };
        all.into_iter().map(result).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Barrier;

    #[test]
    fn work_is_done_at_once_and_results_keep_their_order() {
        let mut items = [1, 2, 3];
        // None of them passes before all of them have begun.
        let begun = Barrier::new(items.len());
        let results = at_once(&mut items, |item| {
            begun.wait();
            *item *= 10;
            *item
        });
        assert_eq!((results, items), (vec![10, 20, 30], [10, 20, 30]));
    }
}
