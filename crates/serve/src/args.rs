//! `hikyaku serve`: from arguments to a daemon that runs.

use crate::authorized::Authorized;
use crate::daemon::{Daemon, Grant, Settings};
use anyhow::{Context, Result, ensure};
use clap::Args;
use hikyaku_console::{Folder, Interrupt, with_remedy};
use hikyaku_crypto::Identity;
use hikyaku_net::blocking::Stop;
use hikyaku_reach::dial::PORT;
use hikyaku_remote::{Limits, Writes};
use hikyaku_store_local::{Local, NewModes};
use hikyaku_units::Rate;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// Options of the daemon.
#[derive(Clone, Debug, Args)]
pub struct DaemonArgs {
    /// Serve the files below this directory
    #[arg(long, value_name = "DIR")]
    pub root: Option<PathBuf>,
    /// Address and port, both UDP: PORT, ADDRESS or ADDRESS:PORT (port 0: any that is free)
    #[arg(long, value_name = "ADDRESS", value_parser = listen, requires = "root")]
    pub listen: Option<SocketAddr>,
    /// File with the keys of clients that may come in, a line each. Default: authorized_keys beside the server's own key
    #[arg(long, value_name = "FILE", requires = "root")]
    pub authorized_keys: Option<PathBuf>,
    /// The server's own key. Default: server_key in the state folder, made at the first start
    #[arg(long, value_name = "FILE", requires = "root")]
    pub key: Option<PathBuf>,
    /// Send each client at most this much
    #[arg(long, value_name = "RATE", requires = "root")]
    pub rate: Option<Rate>,
    /// Let clients change files; without this they can only read
    #[arg(long, requires = "root")]
    pub writable: bool,
    /// Attend to so many clients at once
    #[arg(long, value_name = "COUNT", default_value_t = 200, requires = "root")]
    pub max_clients: usize,
}

/// How long sessions may go on after SIGTERM.
const DRAIN: Duration = Duration::from_secs(30);

/// Runs the daemon until SIGTERM or SIGINT.
pub fn run(args: &DaemonArgs, interrupt: &Interrupt) -> Result<()> {
    let root = args.root.as_ref().context("try: hikyaku serve --root DIR")?;
    let state = Folder::State.of_user()?;
    let key = args.key.clone().unwrap_or_else(|| state.join("server_key"));
    let identity = Identity::load_or_create(&key).map_err(|error| {
        let remedy = error.remedy();
        with_remedy(error.into(), remedy)
    })?;
    let list = args.authorized_keys.clone().unwrap_or_else(|| state.join("authorized_keys"));
    let authorized = Authorized::read(&list)?;
    let store = Local::open(root, NewModes::default())
        .with_context(|| format!("cannot serve {}", root.display()))?;
    let fingerprint = identity.fingerprint();
    let writes = if args.writable { Writes::Allowed } else { Writes::Refused };
    let limits = Limits { rate: args.rate, writes, ..Limits::default() };
    let settings = |listen| Settings {
        listen,
        identity: identity.clone(),
        store: Arc::new(store),
        authorize: Box::new(move |key| authorized.has(key).then_some(Grant { limits })),
        sessions: args.max_clients,
        drain: DRAIN,
    };
    let any = SocketAddr::new(IpAddr::V6(Ipv6Addr::UNSPECIFIED), PORT);
    let daemon = Daemon::bind(settings(args.listen.unwrap_or(any)))?;
    if let Some(advice) = daemon.advice() {
        eprintln!("hikyaku: {advice}");
    }
    println!("serving {} at {}, key {fingerprint}", root.display(), daemon.local_addr());
    interrupt.listen().context("cannot listen for signals")?;
    let stop = Stop::default();
    let (scope, told, main) = (interrupt.scope(), stop.clone(), thread::current());
    let _stopped = scope.on_stop(move || {
        told.set();
        main.unpark();
    });
    Ok(daemon.run(&stop)?)
}

/// `PORT`, `ADDRESS` or `ADDRESS:PORT`.
fn listen(text: &str) -> Result<SocketAddr> {
    let any = IpAddr::V6(Ipv6Addr::UNSPECIFIED);
    if let Ok(port) = text.parse::<u16>() {
        return Ok(SocketAddr::new(any, port));
    }
    if let Ok(address) = text.parse::<SocketAddr>() {
        return Ok(address);
    }
    let plain = text.trim_start_matches('[').trim_end_matches(']');
    let ip: Result<IpAddr, _> = plain.parse();
    ensure!(ip.is_ok(), "expected PORT, ADDRESS or ADDRESS:PORT, as in 5209 or 0.0.0.0:5209");
    Ok(SocketAddr::new(ip.unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED)), PORT))
}
