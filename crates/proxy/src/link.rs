//! The connection to the far gateway: through ssh, which starts it, or to a daemon.

use crate::args::FarEnd;
use crate::trouble;
use anyhow::Result;
use hikyaku_console::{Folder, Tone, say, with_remedy};
use hikyaku_crypto::{Identity, KnownPeers};
use hikyaku_net::Memory;
use hikyaku_reach::daemon::FORWARD;
use hikyaku_reach::dial::{Address, Carrier, Dialler, Via, trust};
use hikyaku_reach::{Carriers, Connection, FarSide, Fate, Pace, Way};
use hikyaku_units::Rate;
use std::sync::Arc;
use std::time::Duration;

/// A connection to a far gateway. Dropping it ends ssh.
pub(crate) struct Link {
    pub(crate) connection: Connection,
    /// What is found out of the far side when the connection ends.
    pub(crate) fate: Fate,
    /// What would make it faster, in words for the user.
    pub(crate) advice: Option<String>,
    _keeps: Keeps,
}

/// What keeps the connection.
enum Keeps {
    Ssh { _side: FarSide },
    Daemon { _dialler: Box<Dialler> },
}

/// How long a daemon may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);

impl Link {
    /// Connects.
    pub(crate) fn open(far: &FarEnd, way: &Way) -> Result<Self> {
        match far {
            FarEnd::Ssh(destination) => {
                let reached = way.open(destination).map_err(trouble::of_reach)?;
                let (connection, fate) = (reached.connection, reached.fate);
                let keeps = Keeps::Ssh { _side: reached.side };
                Ok(Self { connection, fate, advice: reached.advice, _keeps: keeps })
            }
            FarEnd::Daemon(address) => Self::to_daemon(address, way),
        }
    }

    fn to_daemon(address: &Address, way: &Way) -> Result<Self> {
        let state = Folder::State.of_user()?;
        let identity = Identity::load_or_create(&state.join("identity")).map_err(|error| {
            let remedy = error.remedy();
            with_remedy(error.into(), remedy)
        })?;
        let own_key = identity.public_key().to_string();
        let via = if way.carriers == Carriers::NoUdp { Via::Tcp } else { Via::Auto };
        let silence = Duration::from_secs(way.tuning.timeout.unwrap_or(SILENCE_SECONDS));
        let dialler = Dialler::new(identity, 1, Memory::of_user(), via)?.for_flows(silence);
        let trust = trust(&[], &KnownPeers::at(state.join("known_peers")));
        let dialled = dialler.dial(address, trust, &FORWARD, PATIENCE);
        let dialled = dialled.map_err(|error| trouble::of_dial(address, error, &own_key))?;
        if let Some(key) = &dialled.first_use {
            say(Tone::Note, format_args!("{address} is new, its key is {key}"));
        }
        if let Some(rate) = way.tuning.rate.map(Rate::from_bits_per_sec) {
            // The daemon is told no rate, so this end takes no more than that either.
            let [sent, received] = [(); 2].map(|()| Arc::new(Pace::new(rate)));
            dialled.connection.limit(&sent, &received);
        }
        let advice = match dialled.carrier {
            Carrier::Udp => dialler.advice().map(str::to_owned),
            Carrier::Tcp if via == Via::Tcp => None,
            Carrier::Tcp => Some(format!(
                "no UDP gets through to {address}: the data go through TLS over TCP, which is slower\n\
                 try: let its UDP port {} through",
                address.port
            )),
        };
        let keeps = Keeps::Daemon { _dialler: Box::new(dialler) };
        Ok(Self { connection: dialled.connection, fate: Fate::default(), advice, _keeps: keeps })
    }
}

/// A daemon that is not heard for so long is gone, unless the user says otherwise. It gives a silent client up after the same
/// time.
const SILENCE_SECONDS: u64 = 180;
