//! The connections of a client: resolves the server's address, opens a socket and performs the
//! handshakes.

use super::through_ssh;
use crate::args::{ClientArgs, Common};
use crate::compete::{self, Compete, Kind};
use crate::output::Output;
use crate::plan::{Direction, Plan};
use crate::port_probe::{self, ClosedPort};
use crate::socket::Socket;
use crate::usage;
use crate::wait::{Cut, Stop, all, wait};
use crate::{home, trouble};
use anyhow::{Context, Error, Result, anyhow};
use hikyaku_console::{ExitCode, Scope, Tone, say};
use hikyaku_crypto::TrustOutcome;
use hikyaku_net::{ConnectConfig, ConnectError, Connection, Endpoint, Target};
use hikyaku_reach::{Family, FarSide};
use std::net::{SocketAddr, ToSocketAddrs};
use std::thread;
use std::time::{Duration, Instant};

/// The connections of a test and the endpoint that carries them.
pub(super) struct Link {
    pub(super) socket: Socket,
    pub(super) holder: Holder,
    pub(super) connections: Vec<Connection>,
    /// Connections of competing hikyaku flows.
    pub(super) rivals: Vec<Connection>,
    /// When the first connection began its handshake.
    pub(super) first_packet: Instant,
    pub(super) handshake: Duration,
}

/// What has to live as long as the connections. Dropping it sends what is left to say.
#[expect(dead_code, reason = "held for its drop")]
pub(super) enum Holder {
    Endpoint(Box<Endpoint>),
    FarSide(Box<FarSide>),
}

/// Opens as many connections as the plan needs.
pub(super) fn connect(args: &ClientArgs, scope: &Scope, output: &Output) -> Result<Link> {
    if let Some(ssh) = &args.ssh {
        return through_ssh::connect(args, ssh, scope);
    }
    let stop = Stop::default();
    let _registration = scope.on_stop({
        let (stop, thread) = (stop.clone(), thread::current());
        move || {
            stop.set();
            thread.unpark();
        }
    });
    let endpoint = bind(&args.common)?;
    let (target, server_name) = target(args)?;
    let closed_port = ClosedPort::default();
    let addresses =
        if args.common.has_device() { Vec::new() } else { reachable(&target, &endpoint) };
    for address in &addresses {
        say(Tone::Detail, format_args!("dialling {address} by UDP"));
    }
    // If no thread can be started for the probe, only the handshake's timeout detects a closed port.
    let _probe = port_probe::before(
        addresses,
        args.common.local(),
        &closed_port,
        (stop.clone(), thread::current()),
    );
    let transport = {
        let mut transport = args.common.transport.clone();
        if args.plan.direction == Direction::Upload {
            transport.payload_rate = args.plan.target.map(hikyaku_units::Rate::from_bits_per_sec);
        }
        transport
    };
    let mut config = ConnectConfig::new(home::trust(args.pin)?);
    config.transport = transport;
    config.server_name = server_name;
    let count = args.plan.streams as usize;
    let mut configs = vec![config.clone(); count];
    configs.extend(rival_configs(&args.plan, &config));
    let attempts: Vec<_> =
        configs.into_iter().map(|config| endpoint.connect(target.clone(), config)).collect();
    let connections = wait(all(attempts), &stop, None).map_err(|why| {
        let nobody = || trouble::nobody_there(&args.host, args.common.port);
        if closed_port.is_found() { nobody() } else { cut(why) }
    })?;
    let connections: Result<Vec<Connection>, ConnectError> = connections.into_iter().collect();
    let mut connections = connections.map_err(|error| trouble::of_connect(&args.host, error))?;
    pin_drivers(args.common.cpu)?;
    let rivals = connections.split_off(count);
    let met = connections.iter().find_map(|connection| match connection.trust() {
        Some(TrustOutcome::FirstUse(fingerprint)) => Some(fingerprint),
        _ => None,
    });
    if let Some(fingerprint) = met {
        output.note(&format!("first use of this server: its key {fingerprint} is remembered"));
    }
    let now = Instant::now();
    let stats = wait(connections[0].stats(), &stop, None).map_err(cut)?;
    let handshake = stats.and_then(|stats| stats.handshake).unwrap_or_default();
    Ok(Link {
        socket: Socket::of(&endpoint),
        holder: Holder::Endpoint(Box::new(endpoint)),
        connections,
        rivals,
        first_packet: now - handshake,
        handshake,
    })
}

/// The addresses of `target` to which `endpoint` can send.
fn reachable(target: &Target, endpoint: &Endpoint) -> Vec<SocketAddr> {
    let local = endpoint.local_addr();
    let is_reachable = |address: &SocketAddr| match local {
        SocketAddr::V4(_) => address.is_ipv4(),
        SocketAddr::V6(v6) => address.is_ipv6() || v6.ip().is_unspecified(),
    };
    // An error in resolving the name is reported by the connection attempt itself.
    let addresses = (target.host(), target.port()).to_socket_addrs();
    addresses.into_iter().flatten().filter(is_reachable).collect()
}

/// Settings for competing hikyaku flows: those of the measured flows, without rate limits and with
/// the policy given in `--compete`.
fn rival_configs(plan: &Plan, config: &ConnectConfig) -> Vec<ConnectConfig> {
    let groups = plan.compete.iter().flat_map(Compete::flows);
    let ours = groups.filter(|group| group.kind == Kind::Hikyaku);
    let rival = |group: &compete::Group| {
        let mut config = config.clone();
        config.transport.payload_rate = None;
        config.transport.wire_rate = None;
        let policy = group.manner.as_ref().and_then(|policy| policy.0.parse().ok());
        config.transport.policy = policy.unwrap_or_default();
        config
    };
    ours.map(rival).collect()
}

/// Binds to the first address that works.
pub(crate) fn bind(common: &Common) -> Result<Endpoint> {
    let mut result = None;
    for address in common.addresses(0) {
        match Endpoint::bind(address, common.endpoint.clone()) {
            Ok(endpoint) => return Ok(endpoint),
            Err(error) => result = result.or(Some(error)),
        }
    }
    Err(result.map_or_else(|| anyhow!("no address to bind to"), trouble::of_endpoint))
}

/// Pins the threads that drive sockets to processor `cpu` and the ones that follow it, one to each; behind the last processor of
/// the host comes the first.
pub(crate) fn pin_drivers(cpu: Option<usize>) -> Result<()> {
    let Some(first) = cpu else { return Ok(()) };
    let processors = thread::available_parallelism().map_or(1, usize::from);
    if first >= rustix::thread::CpuSet::MAX_CPU {
        return Err(ExitCode::WillFail.error(format!("this host has no processor {first}")));
    }
    for (at, thread) in usage::driver_threads().into_iter().enumerate() {
        let cpu = if at == 0 { first } else { (first + at) % processors };
        let mut set = rustix::thread::CpuSet::new();
        set.set(cpu);
        let thread = rustix::process::Pid::from_raw(thread as i32);
        rustix::thread::sched_setaffinity(thread, &set)
            .with_context(|| format!("cannot run the driver on processor {cpu}"))?;
    }
    Ok(())
}

/// The server to connect to. If an address family is demanded, it is an address of that family
/// together with the name under which the server's key is remembered.
fn target(args: &ClientArgs) -> Result<(Target, Option<String>)> {
    let port = args.common.port;
    let Some(family) = args.common.family else {
        return Ok((Target::new(args.host.clone(), port), None));
    };
    let addresses = (args.host.as_str(), port).to_socket_addrs();
    let mut addresses = addresses.map_err(|error| trouble::unknown_host(&args.host, &error))?;
    let address =
        addresses.find(|address| address.is_ipv4() == (family == Family::V4)).ok_or_else(|| {
            let name = if family == Family::V4 { "IPv4" } else { "IPv6" };
            trouble::no_address(&args.host, name)
        })?;
    Ok((address.into(), Some(args.host.clone())))
}

/// The user's message for a wait that ended early.
pub(super) fn cut(cut: Cut) -> Error {
    match cut {
        Cut::Stopped => anyhow!("stopped by the user"),
        Cut::TooLate => anyhow!("the server accepted the connection, but does not answer"),
    }
}
