//! The connection to the far gateway: through ssh, which starts it, or to a daemon.

use crate::args::{FarEnd, FarWay};
use crate::trouble;
use anyhow::Result;
use hikyaku_reach::daemon::FORWARD;
use hikyaku_reach::dial::{Address, Carrier, Via};
use hikyaku_reach::{Connection, FarSide, Fate};
use hikyaku_session::{ANSWER_TIME, ClientConfig, Connector, SetupError, announce_key};
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
    Daemon { _connector: Box<Connector> },
}

impl Link {
    /// Connects.
    pub(crate) fn open(far: &FarEnd, way: &FarWay) -> Result<Self> {
        match far {
            FarEnd::Ssh(destination) => {
                let reached = way.way.open(destination).map_err(trouble::of_reach)?;
                let (connection, fate) = (reached.connection, reached.fate);
                let keeps = Keeps::Ssh { _side: reached.side };
                Ok(Self { connection, fate, advice: reached.advice, _keeps: keeps })
            }
            FarEnd::Daemon(address) => Self::to_daemon(address, way),
        }
    }

    fn to_daemon(
        address: &Address,
        FarWay { way, connect, silence: chosen }: &FarWay,
    ) -> Result<Self> {
        let silence = Duration::from_secs(way.tuning.timeout.unwrap_or(SILENCE_SECONDS));
        let config = ClientConfig { silence: *chosen, ..connect.client([address])? };
        let via = config.via;
        let connector = Connector::new(config, 1, FORWARD).map_err(SetupError::explained)?;
        let connector = connector.for_flows(silence);
        let dialled = connector.connect(address, &[], ANSWER_TIME);
        let dialled =
            dialled.map_err(|error| trouble::of_dial(address, error, connector.own_key()))?;
        announce_key(address, dialled.first_use);
        let advice = match dialled.carrier {
            Carrier::Udp => connector.advice().map(str::to_owned),
            Carrier::Tcp if via == Via::Tcp => None,
            Carrier::Tcp => Some(format!(
                "no UDP gets through to {address}: the data go through TLS over TCP, which is slower\n\
                 try: let its UDP port {} through",
                address.port
            )),
        };
        let keeps = Keeps::Daemon { _connector: Box::new(connector) };
        Ok(Self { connection: dialled.connection, fate: Fate::default(), advice, _keeps: keeps })
    }
}

/// A daemon that is not heard for so long is gone, unless the user says otherwise. It gives a silent client up after the same
/// time.
const SILENCE_SECONDS: u64 = 180;
