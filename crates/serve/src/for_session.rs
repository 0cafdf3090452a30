//! Servers that ssh has started for a user who has logged in. They serve all files that this user may use. [`attend`] serves
//! one session of `hikyaku serve --stdio`. [`run_for_session`] is a daemon: it lets the client in whose key is the first line of
//! its standard input, and ends with its standard input.

use crate::args::open;
use crate::authorized::Permit;
use crate::daemon::{
    Admission, Carries, Changes, Daemon, Forward, Grant, PATIENCE, Settings, features,
};
use anyhow::{Context, Result};
use hikyaku_console::print;
use hikyaku_crypto::{Fingerprint, Identity, PublicKey, random_u64};
use hikyaku_net::blocking::Stop;
use hikyaku_reach::Arrival;
use hikyaku_reach::daemon::{HOMES, Offered, STORE, offer_on};
use hikyaku_reach::launch::LAUNCHED;
use hikyaku_reach::options::UDP_PORTS;
use hikyaku_remote::{Limits, Server, Writes};
use hikyaku_run_log::SharedProbe;
use hikyaku_store::Store;
use hikyaku_units::DataSize;
use std::env;
use std::io::{self, BufRead, BufReader, Read, stdin};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::unix::ffi::OsStringExt;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// All files of the machine: the client could log in.
const ROOT: &str = "/";
/// Bytes of the line with the key.
const LINE_BYTES_MAX: u64 = 200;
/// Connections of the client at once: one for each session, and those that replace lost ones.
const SESSIONS_MAX: usize = 8;
/// Time for open sessions once standard input has ended: the client is gone by then.
const DRAIN: Duration = Duration::from_secs(1);
/// Ports that are tried before any that is free is taken.
const TRIES: usize = 8;

/// Time for the last answers when the session has ended: ssh carries queued messages.
const LAST_WORD: Duration = Duration::from_secs(5);

/// Serves all files of this machine to one near side that has come through ssh, until its connection ends.
///
/// # Errors
///
/// The root cannot be opened, or the near side requests another service.
pub fn attend(arrival: Arrival) -> Result<()> {
    let store = open(Path::new(ROOT))?;
    let home = env::current_dir().context("the directory of the session is unknown")?;
    let (connection, stream, _door) = arrival.split();
    let names = [&features(false, false, Changes::Everything)[..], &[HOMES]].concat();
    let offered = [Offered { features: &names, ..STORE }];
    offer_on(&connection, stream, &offered, PATIENCE)?;
    let limits = Limits { writes: Writes::Allowed, ..Limits::default() };
    let server = Server::new(store, limits).with_home(Some(home.into_os_string().into_vec()));
    server
        .with_reports(Some(Arc::new(SharedProbe::new(Some(ROOT.into())))))
        .with_locks(Some(Arc::default()))
        .attend(connection.clone())?;
    connection.flush(LAST_WORD);
    Ok(())
}

/// Serves until standard input ends.
///
/// # Errors
///
/// Standard input does not begin with a key, or no port can be had.
pub fn run_for_session(forward: Forward, memory: DataSize) -> Result<()> {
    let mut line = String::new();
    let mut input = BufReader::new(stdin());
    input.by_ref().take(LINE_BYTES_MAX).read_line(&mut line).context("cannot read the key")?;
    let client: PublicKey = line.trim().parse()?;
    let identity = Identity::generate()?;
    let store = open(Path::new(ROOT))?;
    let daemon = bind(&identity, client.fingerprint(), store, (forward, memory))?;
    let (port, key) = (daemon.local_addr().port(), identity.fingerprint());
    print(format!("{LAUNCHED} {port} {key}\n"))?;
    let (stop, main) = (Stop::default(), thread::current());
    let told = stop.clone();
    thread::Builder::new().name("serve-input".to_owned()).spawn(move || {
        // Nothing more is expected there but its end.
        let _ = io::copy(&mut input, &mut io::sink());
        told.set();
        main.unpark();
    })?;
    Ok(daemon.run(&stop)?)
}

/// The client that has logged in: it may do what its user may.
struct OneClient {
    key: Fingerprint,
    store: Arc<dyn Store>,
}

impl Admission for OneClient {
    fn permit(&self, key: &Fingerprint) -> Option<Permit> {
        let permit = Permit { max_sessions: Some(SESSIONS_MAX), ..Permit::default() };
        (*key == self.key).then_some(permit)
    }

    fn grant(&self, _: &Fingerprint, _: &Permit) -> Result<Grant, String> {
        let limits = Limits { writes: Writes::Allowed, ..Limits::default() };
        Ok(Grant { store: Some(self.store.clone()), limits, flows: None, rate: None })
    }
}

/// A daemon at a port of those that firewalls let through to `hikyaku`, or at any.
fn bind(
    identity: &Identity,
    client: Fingerprint,
    store: Arc<dyn Store>,
    (forward, memory): (Forward, DataSize),
) -> Result<Daemon> {
    let settings = |listen| Settings {
        listen,
        identity: identity.clone(),
        admission: Box::new(OneClient { key: client, store: store.clone() }),
        render: None,
        probe: Arc::new(SharedProbe::new(Some(ROOT.into()))),
        recorder: None,
        leases: None,
        sessions: SESSIONS_MAX,
        drain: DRAIN,
        forward,
        unread: memory,
        carries: Carries::Files,
    };
    let (from, to) = (*UDP_PORTS.start(), *UDP_PORTS.end());
    let some = || from + (random_u64() % u64::from(to - from + 1)) as u16;
    let ports = (0..TRIES).map(|_| some()).chain([0]);
    let mut error = None;
    for port in ports {
        // A machine without IPv6 has no socket for it.
        for ip in [IpAddr::V6(Ipv6Addr::UNSPECIFIED), IpAddr::V4(Ipv4Addr::UNSPECIFIED)] {
            match Daemon::bind(settings(SocketAddr::new(ip, port))) {
                Ok(daemon) => return Ok(daemon),
                Err(failed) => error = Some(failed),
            }
        }
    }
    Err(error.context("no port was tried")?.into())
}
