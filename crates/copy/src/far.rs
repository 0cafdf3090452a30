//! `hikyaku serve --stdio`: the far side of a copy, started by ssh.

use crate::engine::{Meter, Roots};
use crate::hello::{Hello, PROTOCOL, Start};
use crate::patterns::{Allowed, expand};
use crate::relay::Relay;
use crate::session::{MOST_OBJECTS, Order, Session};
use crate::watch::{KEEP_ALIVE, watch};
use anyhow::{Context, Result, bail};
use clap::Args;
use hikyaku_crypto::{Identity, Secret, ServerCredentials};
use hikyaku_net::blocking::{Cut, Stop, wait};
use hikyaku_net::{Connection, Listener, ListenerConfig, Side};
use std::ffi::OsString;
use std::io::{BufReader, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::sync::mpsc::sync_channel;
use std::thread;
use std::time::{Duration, Instant};

/// The far side of a copy; `hikyaku cp` starts it through ssh
#[derive(Clone, Debug, Args)]
pub struct ServeArgs {
    /// Talk to the near side through standard input and output
    #[arg(long, required = true)]
    stdio: bool,
}

/// Nobody came: the near side has given up long before.
const PATIENCE: Duration = Duration::from_secs(60);
/// Ports that are tried before giving up.
const TRIES: u32 = 64;

/// Serves one copy.
pub fn serve(_: &ServeArgs) -> Result<()> {
    let mut input = BufReader::new(std::io::stdin());
    let start = Start::read(&mut input).context("standard input does not begin as it should")?;
    let identity = Identity::generate()?;
    let secret = Secret::generate();
    let listener = listen(&identity, &secret, start.ports)?;
    let hello = Hello {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        protocol: PROTOCOL,
        addresses: addresses(),
        port: listener.local_addr().port(),
        key: identity.fingerprint().to_string(),
        secret: secret.to_hex().to_string(),
    };
    let mut output = std::io::stdout();
    output.write_all(hello.line().as_bytes()).and_then(|()| output.flush())?;
    let connection = accept(&listener, input)?;
    attend(connection, &secret)
}

/// Does what the other end of `connection` wants.
pub(crate) fn attend(connection: Connection, secret: &Secret) -> Result<()> {
    let (session, order) = Session::obey(connection.clone(), secret, Side::Server)?;
    let done = obey(session, &order);
    if let Err(error) = &done {
        connection.close(hikyaku_net::code::APPLICATION, &format!("{error:#}"));
    }
    // The other end has a user, and tells.
    Ok(())
}

fn obey(session: Session, order: &Order) -> Result<()> {
    let meter = Meter::default();
    match order {
        Order::Put { target, options } => {
            session.receive(&path(target), &Allowed::anything(), options, &meter)
        }
        Order::Get { sources, options } => {
            let mut paths = Vec::new();
            for source in sources {
                paths.extend(expand(&path(source))?);
            }
            session.send(&Roots::new(&paths, &options.files), options, &meter)
        }
    }
}

/// A path as the user wrote it: relative to the home directory, where ssh has put us.
fn path(bytes: &[u8]) -> PathBuf {
    let home = || std::env::var_os("HOME").map(PathBuf::from);
    let path = match bytes {
        b"" | b"~" => home(),
        [b'~', b'/', rest @ ..] => home().map(|home| home.join(OsString::from_vec(rest.to_vec()))),
        _ => None,
    };
    path.unwrap_or_else(|| PathBuf::from(OsString::from_vec(bytes.to_vec())))
}

fn listen(identity: &Identity, secret: &Secret, (from, to): (u16, u16)) -> Result<Listener> {
    let mut config = ListenerConfig::new(ServerCredentials::new(identity));
    config.secret = Some(secret.clone());
    config.transport.max_streams = MOST_OBJECTS;
    config.transport.keep_alive = KEEP_ALIVE;
    let span = u64::from(to.saturating_sub(from)) + 1;
    let mut last = None;
    for _ in 0..TRIES {
        let port = from + (hikyaku_crypto::random_u64() % span) as u16;
        for ip in [IpAddr::from(Ipv6Addr::UNSPECIFIED), IpAddr::from(Ipv4Addr::UNSPECIFIED)] {
            match Listener::bind(SocketAddr::new(ip, port), config.clone()) {
                Ok(listener) => return Ok(listener),
                Err(error) => last = Some(error),
            }
        }
    }
    match last {
        Some(error) => Err(error).context(format!("no UDP port from {from} to {to} is free")),
        None => bail!("no UDP port from {from} to {to} is free"),
    }
}

/// Our own addresses: first the one at which ssh was reached.
fn addresses() -> Vec<IpAddr> {
    let connection = std::env::var("SSH_CONNECTION").unwrap_or_default();
    let reached = connection.split_whitespace().nth(2).and_then(|text| text.parse().ok());
    reached.into_iter().collect()
}

/// The near side's connection. Without it, the end of standard input is the end of us.
fn accept(listener: &Listener, input: impl Read + Send + 'static) -> Result<Connection> {
    let (hand_over, connected) = sync_channel::<Connection>(1);
    let port = listener.local_addr().port();
    let stop = Stop::default();
    let (ours, us) = (stop.clone(), thread::current());
    thread::Builder::new().name("serve-stdin".to_owned()).spawn(move || {
        // What comes now is either datagrams, because UDP is blocked, or the end of the near side.
        if let Ok(relay) = Relay::to(port)
            && relay.carry_out(std::io::stdout()).is_ok()
        {
            relay.carry_in(input);
        }
        match connected.try_recv() {
            Ok(connection) => watch(std::io::empty(), &connection, "the near side"),
            Err(_) => {
                ours.set();
                us.unpark();
            }
        }
    })?;
    match wait(listener.accept(), &stop, Some(Instant::now() + PATIENCE)) {
        Ok(connection) => {
            let connection = connection?;
            let _ = hand_over.send(connection.clone());
            Ok(connection)
        }
        Err(Cut::Stopped) => bail!("the near side has gone"),
        Err(Cut::TooLate) => bail!("the near side has not come"),
    }
}
