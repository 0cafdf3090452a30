//! How a liar meets the honest end: as the far side that `ssh` starts, or as the near side that starts
//! `hikyaku serve`.

use crate::order::Order;
use crate::peer::Peer;
use hikyaku_crypto::{Fingerprint, Identity, Secret, ServerCredentials, Trust};
use hikyaku_net::blocking::{Stop, block_on, wait};
use hikyaku_net::{ConnectConfig, Connection, Listener, ListenerConfig, Memory, OnDrop};
use hikyaku_reach::{Greeting, Hello, Invitation, Speaks, Start, Tuning};
use std::io::{self, BufRead, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};

/// A port at which a liar listens, and the key that it shows there.
pub struct Door {
    /// What listens.
    pub listener: Listener,
    /// The key.
    pub identity: Identity,
    /// What is said of it, if nothing is lied about.
    pub invitation: Invitation,
}

/// Objects that either end opens at once, as the honest ends have it.
const MOST_OBJECTS: u32 = 16;
/// What a liar can hold, of which it makes no use.
pub const WINDOW: u64 = 64_000_000;
const PATIENCE: Duration = Duration::from_secs(10);

impl Door {
    /// One at a port of these.
    pub fn open((from, to): (u16, u16)) -> io::Result<Self> {
        let identity = Identity::generate().map_err(io::Error::other)?;
        let secret = Secret::generate();
        let mut config = ListenerConfig::new(ServerCredentials::mutual(&identity));
        config.secret = Some(secret.clone());
        config.endpoint.memory = Memory::Off;
        config.endpoint.closing = Duration::ZERO;
        config.endpoint.linger = Duration::ZERO;
        config.endpoint.on_drop = OnDrop::Wait;
        config.transport.max_streams = MOST_OBJECTS;
        let mut last = io::Error::other("no port is free");
        for _ in 0..64 {
            let address = SocketAddr::from((Ipv4Addr::UNSPECIFIED, fastrand::u16(from..=to)));
            match Listener::bind(address, config.clone()) {
                Ok(listener) => {
                    let port = listener.local_addr().port();
                    let (key, secret) = (identity.fingerprint().to_string(), secret.to_hex());
                    let secret = secret.to_string();
                    let invitation = Invitation { port, key, secret, window: WINDOW };
                    return Ok(Self { listener, identity, invitation });
                }
                Err(error) => last = io::Error::other(error),
            }
        }
        Err(last)
    }

    /// Dials the other end's door with `identity`.
    pub fn dial(&self, there: &Invitation, identity: &Identity) -> Option<Connection> {
        let mut config = ConnectConfig::new(Trust::Pinned(there.key.parse().ok()?));
        config.credentials = config.credentials.with_identity(identity);
        config.secret = Some(there.secret.parse().ok()?);
        config.transport.max_streams = MOST_OBJECTS;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, there.port));
        let connecting = self.listener.endpoint().connect(address, config);
        wait(connecting, &Stop::default(), Some(Instant::now() + PATIENCE)).ok()?.ok()
    }
}

/// The far side: its input and output are the channel of ssh.
pub struct Far<R, W> {
    /// What comes from the near side.
    pub input: R,
    /// What goes to it.
    pub output: W,
}

impl<R: BufRead, W: Write> Far<R, W> {
    /// Says bytes through the channel.
    pub fn print(&mut self, bytes: &[u8]) {
        let _ = self.output.write_all(bytes).and_then(|()| self.output.flush());
    }

    /// Greets, and hears what the near side says to that.
    pub fn begin(&mut self) -> io::Result<Start> {
        self.print(&Greeting::ours().line());
        Start::read(&mut self.input).map_err(io::Error::other)
    }

    /// Does all of it as an honest far side would.
    pub fn met(&mut self) -> io::Result<(Peer, Door)> {
        let start = self.begin()?;
        let door = Door::open(start.ports)?;
        let addresses = vec![Ipv4Addr::LOCALHOST.into()];
        self.print(&Hello { addresses, door: door.invitation.clone() }.line());
        Ok((self.await_near(&start, &door)?, door))
    }

    /// Waits for the near side, and for its order.
    pub fn await_near(&mut self, start: &Start, door: &Door) -> io::Result<Peer> {
        let key: Fingerprint = start.key.parse().map_err(io::Error::other)?;
        loop {
            let connection = block_on(door.listener.accept()).map_err(io::Error::other)?;
            if connection.client_key() != Some(key) {
                continue;
            }
            let stream = block_on(connection.accept_stream()).map_err(io::Error::other)?;
            let mut peer = Peer::new(connection, stream);
            peer.hear().ok_or(io::ErrorKind::UnexpectedEof)?;
            return Ok(peer);
        }
    }
}

/// What a near side says first, if nothing is lied about.
pub(crate) fn start(door: &Door) -> Start {
    let tuning = Tuning { window: Some(WINDOW), ..Tuning::default() };
    let key = door.invitation.key.clone();
    Start {
        version: "0".to_owned(),
        speaks: Speaks::ours(),
        service: "copy".to_owned(),
        ports: PORTS,
        tuning,
        key,
        door: None,
    }
}

/// Those of `hikyaku cp`.
pub(crate) const PORTS: (u16, u16) = (60001, 60999);

/// A near side that gives the far side at the other end of `output` and `input` this order.
pub(crate) fn near(
    output: &mut dyn Write,
    input: &mut dyn BufRead,
    order: &Order,
) -> Option<(Peer, Door)> {
    let door = Door::open(PORTS).ok()?;
    let hello = greeted(output, input, &start(&door))?;
    let connection = door.dial(&hello.door, &door.identity)?;
    let stream = block_on(connection.open_stream()).ok()?;
    let mut peer = Peer::new(connection, stream);
    peer.order(order).then_some((peer, door))
}

/// What the far side says to this start.
pub(crate) fn greeted(
    output: &mut dyn Write,
    mut input: &mut dyn BufRead,
    start: &Start,
) -> Option<Hello> {
    Greeting::read(&mut input).ok()?;
    output.write_all(&start.line()).and_then(|()| output.flush()).ok()?;
    Hello::read(&mut input).ok()
}
