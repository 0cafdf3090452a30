//! The client: it connects, says what is wanted, and does its part of the test.

use crate::args::{ClientArgs, Common, IpFamily};
use crate::compete::{self, Compete, Kind, Lines};
use crate::control::control;
use crate::interrupt::Interrupt;
use crate::limit::Targets;
use crate::message::{Hello, Join, Message, Welcome};
use crate::output::{Output, Sink};
use crate::plan::{Direction, Limit, Plan};
use crate::report::{self, Connected, ESTIMATE, Server, Start, TestStart, Timestamp};
use crate::session::{Event, Outcome, Session, Side, Talk, begin_writing, paths};
use crate::usage::{self, Usage};
use crate::wait::{Cut, Stop, wait};
use crate::{home, limit, trouble};
use anyhow::{Context, Error, Result, anyhow, bail};
use hikyaku_crypto::{TrustOutcome, cipher_name, random_array};
use hikyaku_net::{ConnectConfig, ConnectError, Connection, Endpoint, Policy, Target, code};
use std::future::{Future, poll_fn};
use std::net::{SocketAddr, ToSocketAddrs, UdpSocket};
use std::pin::Pin;
use std::process::ExitCode;
use std::task::Poll;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

/// How long the server may take to answer once it is connected.
const ANSWER_WITHIN: Duration = Duration::from_secs(30);
const SPEAKS_OTHERWISE: &str = "the server does not speak as `hikyaku perf -s`";

/// Does one test.
pub(crate) fn run(args: &ClientArgs) -> Result<ExitCode> {
    let interrupt = Interrupt::listen().context("cannot listen for Ctrl-C")?;
    let sink = Sink::open(args.common.format, args.common.logfile.as_deref())?;
    let mut output = Output::new(sink, args.common.title.clone(), String::new());
    match test(args, &interrupt, &mut output) {
        Ok(()) => Ok(ExitCode::SUCCESS),
        Err(Failure { error, reported: Reported::Yes }) => Err(error),
        Err(Failure { error, reported: Reported::No }) => {
            output.end(None, Some(trouble::line(&error)));
            Err(error)
        }
    }
}

/// An error, and whether the output has it.
struct Failure {
    error: Error,
    reported: Reported,
}

enum Reported {
    Yes,
    No,
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self { error, reported: Reported::No }
    }
}

/// The connections of a test, and the endpoint below them.
struct Link {
    endpoint: Endpoint,
    connections: Vec<Connection>,
    /// Competitors of our own.
    rivals: Vec<Connection>,
    /// When the first of them began its handshake.
    first_packet: Instant,
    handshake: Duration,
}

fn test(args: &ClientArgs, interrupt: &Interrupt, output: &mut Output) -> Result<(), Failure> {
    let mut plan = agreeable(&args.plan)?;
    let link = connect(args, interrupt, output)?;
    let stop = Stop::default();
    let stream =
        wait(link.connections[0].open_stream(), &stop, Some(Instant::now() + ANSWER_WITHIN));
    let stream = stream.map_err(cut)?.map_err(Error::from)?;
    let (mut sender, reader) = control(stream);
    let token = token();
    let hello = Hello {
        version: Hello::version(&plan),
        program: program(),
        token: token.clone(),
        plan: plan.clone(),
        policy: args.common.policy(),
        wire_target: args.common.wire_target().map(|rate| rate.bits_per_sec()),
    };
    sender.send(&Message::Hello(Box::new(hello))).map_err(Error::from)?;
    join(link.connections.iter().chain(&link.rivals), &token)?;
    let mut talk = Talk::new(sender, reader);
    let post = talk.post.clone();
    let _subscription = interrupt.on_signal(move || drop(post.send(Event::Interrupt)));
    let lines = match &mut plan.compete {
        Some(compete) => Some(meet(&talk, &link, args, compete)?),
        None => None,
    };
    let before = paths(&link.connections, 0.0);
    let sends = plan.direction == Direction::Upload;
    let mut writers = Vec::new();
    if sends && lines.is_none() {
        writers = begin_writing(&link.connections, &plan, &talk);
    }
    let (welcome, answered) = welcome(&talk, &link)?;
    // By now the round trip has been measured.
    let answer = paths(&link.connections, 0.0);
    let since =
        lines.is_none().then(|| since_first_packet(&plan, &link, &answer.streams[0], answered));
    output.start(start(args, &plan, &link, &welcome, since), sends);
    let competition = match lines {
        None => None,
        Some(lines) if sends => {
            let competition = compete::await_start(Some(lines), &plan, &talk, output)?;
            writers = begin_writing(&link.connections, &plan, &talk);
            competition
        }
        Some(lines) => Some(compete::begin(lines, &plan, &mut talk, output)?),
    };
    let opening = (!sends).then_some(Message::Start);
    let session = Session {
        side: Side::Client,
        plan,
        connections: link.connections,
        talk,
        output: std::mem::replace(output, Output::silent()),
        before,
        usage: Usage::start(),
        opening,
        writers,
        competition,
    };
    let (outcome, done, connections) = session.run();
    *output = done;
    let error = broken(&outcome, &connections);
    let targets =
        Targets { payload: limit::payload_target(&args.plan), wire: args.common.wire_target() };
    output.end(Some(&report::end(&outcome, targets)), error.as_ref().map(trouble::line));
    connections.iter().for_each(|connection| connection.close(code::DONE, "the test is over"));
    drop(connections);
    drop(link.endpoint);
    error.map_or(Ok(()), |error| Err(Failure { error, reported: Reported::Yes }))
}

/// The plan with the names of what this end is to use; refuses what it does not have.
fn agreeable(plan: &Plan) -> Result<Plan> {
    let mut plan = plan.clone();
    if let (Direction::Upload, Some(compete)) = (plan.direction, &mut plan.compete) {
        compete::resolve(compete, &Policy::default().to_string())?;
    }
    Ok(plan)
}

/// The connections of the competitors, made where the server says.
fn meet(talk: &Talk, link: &Link, args: &ClientArgs, compete: &mut Compete) -> Result<Lines> {
    let is_answer = |message: &Message| matches!(message, Message::Meet(_));
    let (Message::Meet(meet), _) = answer(talk, link, is_answer)? else { bail!(SPEAKS_OTHERWISE) };
    let local = args.common.bind.as_ref().and_then(|local| local.address);
    let tcp = compete::connect(compete, &meet, link.connections[0].remote_addr().ip(), local)?;
    let lines = Lines::new(compete, tcp, link.rivals.clone());
    match args.plan.direction {
        Direction::Upload => lines.set_controls(compete)?,
        // What the server sends by.
        Direction::Download if meet.compete.is_as_many(compete) => *compete = meet.compete,
        Direction::Download => bail!(SPEAKS_OTHERWISE),
    }
    Ok(lines)
}

/// Why the test is not complete, if it is not.
pub(crate) fn broken(outcome: &Outcome, connections: &[Connection]) -> Option<Error> {
    let text = outcome.broken.clone()?;
    let reason = connections.iter().find_map(Connection::close_reason);
    let error = reason.map_or_else(|| anyhow!(text), |reason| trouble::of_close(&reason));
    Some(error.context("the test broke off"))
}

fn connect(args: &ClientArgs, interrupt: &Interrupt, output: &Output) -> Result<Link> {
    let stop = Stop::default();
    let _subscription = interrupt.on_signal({
        let (stop, thread) = (stop.clone(), thread::current());
        move || {
            stop.set();
            thread.unpark();
        }
    });
    let endpoint = bind(&args.common)?;
    pin_driver(args.common.cpu)?;
    let (target, server_name) = target(args)?;
    let transport = {
        let mut transport = args.common.transport.clone();
        if args.plan.direction == Direction::Upload {
            transport.payload_rate = args.plan.target.map(hikyaku_units::Rate::from_bits_per_sec);
        }
        transport
    };
    let base = ConnectConfig::new(home::trust(args.pin)?);
    let config = ConnectConfig { transport, server_name, ..base };
    let count = args.plan.streams as usize;
    let mut configs = vec![config.clone(); count];
    configs.extend(rival_configs(&args.plan, &config));
    let attempts: Vec<_> =
        configs.into_iter().map(|config| endpoint.connect(target.clone(), config)).collect();
    let connections = wait(all(attempts), &stop, None).map_err(cut)?;
    let connections: Result<Vec<Connection>, ConnectError> = connections.into_iter().collect();
    let mut connections = connections.map_err(trouble::of_connect)?;
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
    Ok(Link { endpoint, connections, rivals, first_packet: now - handshake, handshake })
}

/// The settings of competitors of our own: those of the measured, but without limits and with the
/// policy that was given.
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

/// A socket at the first address that there is one for.
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

/// Ties the threads that drive sockets to processor `cpu`.
pub(crate) fn pin_driver(cpu: Option<usize>) -> Result<()> {
    let Some(cpu) = cpu else { return Ok(()) };
    if cpu >= rustix::thread::CpuSet::MAX_CPU {
        bail!("there is no processor {cpu}");
    }
    let mut set = rustix::thread::CpuSet::new();
    set.set(cpu);
    for thread in usage::driver_threads() {
        let thread = rustix::process::Pid::from_raw(thread as i32);
        rustix::thread::sched_setaffinity(thread, &set)
            .with_context(|| format!("cannot run the driver on processor {cpu}"))?;
    }
    Ok(())
}

/// The address if a family is demanded, with the name by which the server is known; else the name.
fn target(args: &ClientArgs) -> Result<(Target, Option<String>)> {
    let port = args.common.port;
    let Some(family) = args.common.family else {
        return Ok((Target::new(args.host.clone(), port), None));
    };
    let addresses = (args.host.as_str(), port).to_socket_addrs();
    let mut addresses =
        addresses.with_context(|| format!("cannot find an address for {}", args.host))?;
    let address = addresses.find(|address| family.has(address.ip())).with_context(|| {
        let name = if family == IpFamily::V4 { "IPv4" } else { "IPv6" };
        format!("{} has no {name} address", args.host)
    })?;
    Ok((address.into(), Some(args.host.clone())))
}

/// All of these at once.
async fn all<F: Future>(futures: Vec<F>) -> Vec<F::Output> {
    let mut futures: Vec<Pin<Box<F>>> = futures.into_iter().map(Box::pin).collect();
    let mut outputs: Vec<Option<F::Output>> = futures.iter().map(|_| None).collect();
    poll_fn(|context| {
        for (future, output) in futures.iter_mut().zip(&mut outputs) {
            if output.is_none()
                && let Poll::Ready(value) = future.as_mut().poll(context)
            {
                *output = Some(value);
            }
        }
        if outputs.iter().all(Option::is_some) { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    outputs.into_iter().flatten().collect()
}

/// Says on every further connection to which test it belongs.
fn join<'a>(connections: impl Iterator<Item = &'a Connection>, token: &str) -> Result<()> {
    for (index, connection) in connections.enumerate().skip(1) {
        let until = Some(Instant::now() + ANSWER_WITHIN);
        let stream = wait(connection.open_stream(), &Stop::default(), until).map_err(cut)??;
        let (mut sender, _) = control(stream);
        let join = Join { token: token.to_owned(), index: index as u32 };
        sender.send(&Message::Join(join))?;
        sender.end();
    }
    Ok(())
}

/// That the server is ready, and when it said so.
fn welcome(talk: &Talk, link: &Link) -> Result<(Welcome, Instant)> {
    match answer(talk, link, |message| matches!(message, Message::Welcome(_)))? {
        (Message::Welcome(welcome), at) => Ok((*welcome, at)),
        _ => bail!(SPEAKS_OTHERWISE),
    }
}

/// The server's answer, and when it came.
fn answer(
    talk: &Talk,
    link: &Link,
    is_answer: impl Fn(&Message) -> bool,
) -> Result<(Message, Instant)> {
    let until = Instant::now() + ANSWER_WITHIN;
    let mut early = Vec::new();
    loop {
        match talk.next(until) {
            Some(Event::Message(message)) if is_answer(&message) => {
                // What the writers have said by now is for the session.
                early.into_iter().for_each(|event| drop(talk.post.send(event)));
                return Ok((message, Instant::now()));
            }
            Some(Event::Message(Message::Refused { reason })) => {
                return Err(trouble::refused(&reason));
            }
            Some(Event::Message(_)) => bail!(SPEAKS_OTHERWISE),
            Some(Event::Interrupt) => bail!("stopped by the user"),
            Some(Event::ControlLost(error)) => {
                let reason = link.connections[0].close_reason();
                return Err(reason.map_or_else(|| error.into(), |r| trouble::of_close(&r)));
            }
            Some(event) => early.push(event),
            None => bail!("the server is there, but does not answer"),
        }
    }
}

/// From the client's first packet to the receiver's time zero.
fn since_first_packet(
    plan: &Plan,
    link: &Link,
    path: &crate::sample::PathSample,
    answered: Instant,
) -> f64 {
    match plan.direction {
        Direction::Upload => {
            let answered = (answered - link.first_packet).as_secs_f64();
            (answered - path.rtt_ms / 2e3).max(0.0)
        }
        Direction::Download => link.first_packet.elapsed().as_secs_f64(),
    }
}

fn start(
    args: &ClientArgs,
    plan: &Plan,
    link: &Link,
    welcome: &Welcome,
    since: Option<f64>,
) -> Start {
    let granted = link.endpoint.granted();
    let local = link.endpoint.local_addr();
    let (cipher, datagram) = facts(&link.connections[0]);
    let mut warnings: Vec<String> = welcome.warnings.clone();
    warnings.extend(link.endpoint.advice().map(|advice| small_buffers("this host", advice)));
    let wire = args.common.wire_target().map_or(0, |rate| rate.bits_per_sec());
    Start {
        version: program(),
        system_info: usage::system(),
        connected: connected(&link.connections, local),
        timestamp: now(),
        test_start: test_start(plan, wire),
        cipher,
        policy: match args.plan.direction {
            Direction::Upload => args.common.policy(),
            Direction::Download => welcome.policy.clone(),
        },
        mtu_payload: datagram,
        granted_recv_buffer: granted.recv_buffer.bytes(),
        granted_send_buffer: granted.send_buffer.bytes(),
        server: Some(Server::from(welcome)),
        warnings,
        handshake_seconds: link.handshake.as_secs_f64(),
        since_first_packet: since,
        since_first_packet_method: ESTIMATE,
    }
}

/// The name of the cipher and the payload of a full packet.
pub(crate) fn facts(connection: &Connection) -> (String, u16) {
    let until = Some(Instant::now() + Duration::from_secs(5));
    let stats = wait(connection.stats(), &Stop::default(), until).ok().flatten();
    let cipher = stats.and_then(|stats| stats.cipher).map_or("unknown", cipher_name);
    (cipher.to_owned(), stats.map_or(0, |stats| stats.datagram))
}

pub(crate) fn small_buffers(host: &str, advice: &str) -> String {
    format!("{host} gives UDP sockets small buffers, which can cost packets; as root: {advice}")
}

pub(crate) fn test_start(plan: &Plan, wire_target: u64) -> TestStart {
    let (duration, bytes) = match plan.limit {
        Limit::Seconds(seconds) => (seconds, 0),
        Limit::Bytes(bytes) => (0.0, bytes),
    };
    TestStart {
        protocol: "HIKYAKU",
        num_streams: plan.streams,
        blksize: plan.length,
        omit: plan.omit,
        duration,
        bytes,
        reverse: u8::from(plan.direction == Direction::Download),
        interval: plan.interval,
        target_bitrate: plan.target.unwrap_or(0),
        wire_target_bitrate: wire_target,
        streams: plan.kind,
        compete: plan.compete.as_ref().map(ToString::to_string),
    }
}

pub(crate) fn connected(connections: &[Connection], bound: SocketAddr) -> Vec<Connected> {
    let ends = |(index, connection): (usize, &Connection)| {
        let remote = connection.remote_addr();
        Connected {
            socket: index as u32 + 1,
            local_host: local_host(bound, remote),
            local_port: bound.port(),
            remote_host: remote.ip().to_canonical().to_string(),
            remote_port: remote.port(),
        }
    };
    connections.iter().enumerate().map(ends).collect()
}

/// The local address of the route to `remote`, as the system would choose it.
fn local_host(bound: SocketAddr, remote: SocketAddr) -> String {
    let ask = || {
        let socket = UdpSocket::bind(bound_to_any_port(bound)).ok()?;
        socket.connect(remote).ok()?;
        socket.local_addr().ok()
    };
    ask().unwrap_or(bound).ip().to_canonical().to_string()
}

fn bound_to_any_port(bound: SocketAddr) -> SocketAddr {
    SocketAddr::new(bound.ip(), 0)
}

pub(crate) fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Timestamp { timesecs: since.as_secs() }
}

pub(crate) fn program() -> String {
    format!("hikyaku {}", env!("CARGO_PKG_VERSION"))
}

/// Nobody else's test has this name.
fn token() -> String {
    random_array::<16>().iter().map(|byte| format!("{byte:02x}")).collect()
}

fn cut(cut: Cut) -> Error {
    match cut {
        Cut::Stopped => anyhow!("stopped by the user"),
        Cut::TooLate => anyhow!("the server is there, but does not answer"),
    }
}
