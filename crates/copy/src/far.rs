//! `hikyaku serve --stdio`: the far side of a copy, started by ssh.

use crate::engine::{Meter, Roots};
use crate::hello::{Hello, PROTOCOL, Start};
use crate::meet::{Door, Invitation};
use crate::patterns::{Allowed, expand};
use crate::relay::Relay;
use crate::session::{Order, Session};
use crate::watch::{Fate, Gone, watch};
use anyhow::{Context, Result, bail};
use clap::Args;
use hikyaku_crypto::Fingerprint;
use hikyaku_net::blocking::{Cut, Stop, wait};
use hikyaku_net::{Connection, EndpointConfig, Stream};
use std::ffi::OsString;
use std::io::{BufReader, Read, Write};
use std::net::{IpAddr, SocketAddr};
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
/// Whose address is which field of SSH_CONNECTION (sshd(8)): the client's as the server sees it, and
/// the server's as the client reached it.
const SSH_CLIENT: usize = 0;
const SSH_SERVER: usize = 2;

/// Serves one copy.
pub fn serve(_: &ServeArgs) -> Result<()> {
    let mut input = BufReader::new(std::io::stdin());
    let start = Start::read(&mut input).context("standard input does not begin as it should")?;
    let ports = start.ports.0..=start.ports.1;
    let door = Door::open(&ports, &start.tuning, EndpointConfig::default().closing)?;
    let hello = Hello {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        protocol: PROTOCOL,
        addresses: ssh_address(SSH_SERVER),
        door: door.invitation().clone(),
    };
    let near: Fingerprint = start.key.parse()?;
    let mut output = std::io::stdout();
    output.write_all(hello.line().as_bytes()).and_then(|()| output.flush())?;
    let (connection, stream) = accept(&door, near, start.door, input)?;
    attend(connection, stream)
}

/// Does what the other end of `connection` wants, which has begun to speak on `stream`.
pub(crate) fn attend(connection: Connection, stream: Stream) -> Result<()> {
    let (session, order) = Session::obey(connection.clone(), stream)?;
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

/// Addresses of an end of ssh's own connection.
fn ssh_address(field: usize) -> Vec<IpAddr> {
    let connection = std::env::var("SSH_CONNECTION").unwrap_or_default();
    let found = connection.split_whitespace().nth(field).and_then(|text| text.parse().ok());
    found.into_iter().collect()
}

/// The near side's connection. Without it, the end of standard input is the end of us.
fn accept(
    door: &Door,
    key: Fingerprint,
    near: Option<Invitation>,
    input: impl Read + Send + 'static,
) -> Result<(Connection, Stream)> {
    let (hand_over, connected) = sync_channel::<Connection>(1);
    let port = door.invitation().port;
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
            Ok(connection) => watch(std::io::empty(), &connection, &Fate::default(), || Gone::Lost),
            Err(_) => {
                ours.set();
                us.unpark();
            }
        }
    })?;
    let at = |port| ssh_address(SSH_CLIENT).into_iter().map(move |ip| SocketAddr::new(ip, port));
    let near = near.map(|near| (at(near.port).collect(), near));
    let met = door.be_met(key, near, PATIENCE);
    match wait(met, &stop, Some(Instant::now() + PATIENCE)) {
        Ok(met) => {
            let (connection, stream) = met?;
            let _ = hand_over.send(connection.clone());
            Ok((connection, stream))
        }
        Err(Cut::Stopped) => bail!("the near side has gone"),
        Err(Cut::TooLate) => bail!("the near side has not come"),
    }
}
