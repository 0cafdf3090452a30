//! The configuration of a client of daemons.

use anyhow::Error;
use hikyaku_console::{Folder, NoFolder, with_remedy};
use hikyaku_crypto::{Identity, KnownPeers, LoadIdentity};
use hikyaku_net::{EndpointError, Memory};
use hikyaku_reach::Family;
use hikyaku_reach::dial::Via;
use hikyaku_reach::tcp::Pipes;
use hikyaku_units::{DataSize, Rate};
use std::time::Duration;

/// The key of a client, the servers that it knows, and the carriers that it may use.
#[derive(Clone)]
pub struct ClientConfig {
    /// The key by which the servers know this client.
    pub identity: Identity,
    /// The list of servers that were met before.
    pub known: KnownPeers,
    /// Whether the rates of paths are remembered.
    pub memory: Memory,
    /// The carriers that are tried. Default: UDP, and TCP where no UDP gets through.
    pub via: Via,
    /// How many TCP connections to each server, where TCP carries them. Default: found by measuring.
    pub pipes: Pipes,
    /// The only family of addresses that is used. Default: both.
    pub family: Option<Family>,
    /// Memory for data of one connection that are not read yet. Default: 512 MB divided by the number of servers, 16 MB at
    /// least.
    pub window: Option<DataSize>,
    /// The payload that all connections together send in a second at most, and receive. Default: no limit.
    pub rate: Option<Rate>,
    /// The time after which a silent server counts as lost. Default: 10 s.
    pub silence: Option<Duration>,
}

/// Why this machine cannot connect to any server.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// It has no place for the user's keys.
    #[error(transparent)]
    Folder(#[from] NoFolder),
    /// The user's key cannot be read or made.
    #[error(transparent)]
    Identity(#[from] LoadIdentity),
    /// It has no socket.
    #[error(transparent)]
    Endpoint(#[from] EndpointError),
}

impl ClientConfig {
    /// The client of the user who runs this process: the key and the list of known servers are in the state folder.
    ///
    /// # Errors
    ///
    /// There is no such folder, or the key cannot be read or made.
    pub fn of_user() -> Result<Self, SetupError> {
        let state = Folder::State.of_user()?;
        Ok(Self {
            identity: Identity::load_or_create(&state.join("identity"))?,
            known: KnownPeers::at(state.join(KnownPeers::FILE_NAME)),
            memory: Memory::of_user(),
            via: Via::default(),
            pipes: Pipes::default(),
            family: None,
            window: None,
            rate: None,
            silence: None,
        })
    }

    /// The line of this client's key, which a server's list of keys needs.
    pub fn own_key(&self) -> String {
        self.identity.public_key().to_string()
    }
}

impl SetupError {
    /// The remedy for the user, which begins with `try: `.
    pub fn remedy(&self) -> Option<String> {
        match self {
            Self::Identity(error) => error.remedy(),
            Self::Folder(_) | Self::Endpoint(_) => None,
        }
    }

    /// The error of a command, with what the user can do.
    pub fn explained(self) -> Error {
        let remedy = self.remedy();
        let error = match self {
            Self::Folder(error) => error.into(),
            Self::Identity(error) => error.into(),
            Self::Endpoint(error) => error.into(),
        };
        with_remedy(error, remedy)
    }
}
