//! The client: connects, sends the plan of the test to the server, and runs its own end of the
//! test.

mod connect;
mod pair;
mod through_ssh;

pub(crate) use connect::pin_drivers;

use crate::args::{ClientArgs, Ways};
use crate::compete::{self, Compete, Lines};
use crate::control::control;
use crate::limit::Targets;
use crate::log::RunLog;
use crate::message::{Hello, Join, Message, Welcome};
use crate::output::{Output, OutputState, Sink};
use crate::plan::{Direction, Limit, Plan};
use crate::port_probe;
use crate::report::{self, Connected, ESTIMATE, Server, Start, TestStart, Timestamp};
use crate::session::{
    ControlChannel, DataThreads, Event, Outcome, Session, Side, paths, readers, writers,
};
use crate::socket::Socket;
use crate::usage::{self, Usage};
use crate::wait::{Stop, wait};
use crate::worker::Gate;
use crate::{latency, limit, prom, sweep, trouble};
use anyhow::{Context, Error, Result, bail};
use connect::{Link, connect, cut};
use hikyaku_console::{ExitCode, Interrupt, Scope};
use hikyaku_crypto::{cipher_name, random_array};
use hikyaku_net::{AppCode, Connection, Policy};
use hikyaku_units::Rate;
use pair::{PairMember, Step};
use std::net::{SocketAddr, UdpSocket};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

/// How long a connected server may take to answer a control message.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);
const NOT_A_PERF_SERVER: &str = "the server does not follow the `hikyaku perf` protocol";

/// Runs one test, or two for `--bidir`.
pub(crate) fn run(args: &ClientArgs, interrupt: &Interrupt) -> Result<()> {
    interrupt.listen().context("cannot listen for Ctrl-C")?;
    let scope = interrupt.scope();
    let sink = Sink::open(args.common.format, args.common.logfile.as_deref())?;
    // Once the output cannot be written, the test ends.
    let tests = scope.clone();
    sink.on_loss(move || tests.stop());
    let title = format!("perf {}", args.host);
    let log = args.records.log_dir.as_deref().map(|dir| RunLog::begin(dir, &title)).transpose()?;
    let done = match (&args.records.sweep, args.ways) {
        (Some(targets), _) => sweep::run(args, targets, &scope, (&sink, log.as_ref())),
        (None, _) if args.records.latency => latency::run(args, &scope, (&sink, log.as_ref())),
        (None, Ways::One) => alone(args, &scope, &sink, log.as_ref()),
        (None, Ways::Both) => pair::run(args, &scope, &sink, log.as_ref()),
    };
    log.into_iter().for_each(|log| log.end(&done));
    interrupt.end_by_signal();
    match sink.state() {
        OutputState::Written => done,
        OutputState::ReaderClosed => Ok(()),
        OutputState::Failed(error) => Err(error),
    }
}

/// Runs a single test.
fn alone(args: &ClientArgs, scope: &Scope, sink: &Sink, log: Option<&RunLog>) -> Result<()> {
    let output = Output::new(sink.clone(), args.common.title.clone(), String::new());
    let log = log.map(|log| log.flow(&args.host, args.plan.direction));
    let mut output = output.with_log(log);
    let measured = test(args, scope, &mut output, None);
    let whole = measured.as_ref().ok().filter(|measured| measured.broken.is_none());
    let kept = prom::keep(args, whole.map(|measured| &measured.end));
    match measured {
        Ok(Measured { end, broken, .. }) => {
            output.end(Some(&end), broken.as_ref().map(hikyaku_console::causes));
            broken.map_or(kept, Err)?;
            enough(&end, args.records.min)
        }
        Err(error) => {
            output.end(None, Some(hikyaku_console::causes(&error)));
            Err(error)
        }
    }
}

/// An error if less was received than the user wants at least.
fn enough(end: &report::End, least: Option<Rate>) -> Result<()> {
    let received = end.sum_received.as_ref().map_or(0.0, |sum| sum.bits_per_second);
    let received = Rate::from_bits_per_sec(received as u64);
    match least {
        Some(least) if received < least => {
            let text = format!("{received} was received, and --min {least} is wanted");
            Err(ExitCode::Failed.error(text))
        }
        _ => Ok(()),
    }
}

/// Runs a single test and prints nothing. Returns its result, and why it is incomplete if it is.
pub(crate) fn quiet(
    args: &ClientArgs,
    scope: &Scope,
    log: Option<&RunLog>,
) -> Result<(Quiet, Option<Error>)> {
    let log = log.map(|log| log.flow(&args.host, args.plan.direction));
    let mut output = Output::silent().with_log(log);
    let Measured { end, omitted_seconds, broken } = test(args, scope, &mut output, None)?;
    output.end(Some(&end), None);
    Ok((Quiet { start: output.into_start(), end, omitted_seconds }, broken))
}

/// Runs a single test, prints nothing, and returns the sender's round-trip times of all intervals in milliseconds.
pub(crate) fn round_trips(args: &ClientArgs, scope: &Scope) -> Result<Vec<f64>> {
    let rtts = Arc::new(Mutex::default());
    let mut output = Output::silent().with_round_trips(rtts.clone());
    let measured = test(args, scope, &mut output, None)?;
    let rtts = std::mem::take(&mut *rtts.lock().unwrap_or_else(PoisonError::into_inner));
    measured.broken.map_or(Ok(rtts), Err)
}

/// The result of a test that printed nothing.
pub(crate) struct Quiet {
    pub(crate) start: Option<Start>,
    pub(crate) end: report::End,
    /// The time that was left out of it.
    pub(crate) omitted_seconds: f64,
}

/// The result of a test that had begun.
struct Measured {
    end: report::End,
    omitted_seconds: f64,
    /// Why the test is incomplete, if it is.
    broken: Option<Error>,
}

/// Runs a test. `member` coordinates it with the other test of a `--bidir` pair.
fn test(
    args: &ClientArgs,
    scope: &Scope,
    output: &mut Output,
    member: Option<&PairMember<'_>>,
) -> Result<Measured> {
    let mut plan = with_congestion_controls(&args.plan)?;
    member.map_or(Ok(()), PairMember::turn)?;
    let link = connect(args, scope, output)?;
    plan = args.start_up.of(plan, link.handshake);
    member.map_or(Ok(()), |member| member.reach(Step::Connected))?;
    let stop = Stop::default();
    let stream =
        wait(link.connections[0].open_stream(), &stop, Some(Instant::now() + ANSWER_TIMEOUT));
    let stream = stream.map_err(cut)?.map_err(|error| lost(&link, error.into()))?;
    let (mut sender, reader) = control(stream);
    let token = token();
    let hello = Hello {
        version: Hello::version(&plan),
        program: program(),
        token: token.clone(),
        plan: plan.clone(),
        policy: args.common.policy(),
        wire_target: args.common.wire_target().map(|rate| rate.bits_per_sec()),
        pair: member.map(PairMember::name),
    };
    let hello = sender.send(&Message::Hello(Box::new(hello)));
    hello.map_err(|error| lost(&link, error.into()))?;
    let joined = join(link.connections.iter().chain(&link.rivals), &token);
    joined.map_err(|error| lost(&link, error))?;
    let control_channel = ControlChannel::new(sender, reader);
    let mut control_channel = control_channel.map_err(|(_, error)| trouble::no_thread(error))?;
    let post = control_channel.post.clone();
    let _registration = scope.on_stop(move || drop(post.send(Event::Interrupt)));
    let lines = match &mut plan.compete {
        Some(compete) => Some(meet(&control_channel, &link, args, compete)?),
        None => None,
    };
    let before = paths(&link.connections, 0.0);
    let sends = plan.direction == Direction::Upload;
    let gate = if lines.is_none() { Gate::open() } else { Gate::default() };
    let writing = sends.then(|| writers(&link.connections, &plan, &control_channel, &gate));
    let writing = writing.transpose().map_err(trouble::no_thread)?;
    let (welcome, answered) = welcome(&control_channel, &link)?;
    // The round-trip time has been measured by the time the answer arrives.
    let answer = paths(&link.connections, 0.0);
    let since =
        lines.is_none().then(|| since_first_packet(&plan, &link, &answer.streams[0], answered));
    let start = start(args, &plan, &link, &welcome, since);
    match member {
        None => output.start(start, sends),
        Some(member) => member.start(start, output)?,
    }
    let competition = match lines {
        None => None,
        Some(lines) if sends => compete::await_start(Some(lines), &plan, &control_channel, output)?,
        Some(lines) => Some(compete::begin(lines, &plan, &mut control_channel, output)?),
    };
    let opening = (!sends).then_some(Message::Start);
    let data_threads = match writing {
        Some(writers) => {
            gate.open_for(&writers);
            DataThreads::Writers(writers)
        }
        None => {
            let readers =
                readers(&link.connections, &plan, &control_channel, competition.as_ref(), None);
            DataThreads::Readers(readers.map_err(trouble::no_thread)?)
        }
    };
    let (local, omitted_seconds) = (args.common.local(), plan.omit);
    // The end of a server that ssh has started is known through ssh.
    let is_probed = !args.common.has_device() && args.ssh.is_none();
    let port_probe = is_probed.then(|| {
        port_probe::during(link.connections[0].clone(), local, control_channel.post.clone())
    });
    let session = Session {
        side: Side::Client,
        plan,
        connections: link.connections,
        control_channel,
        output: std::mem::replace(output, Output::silent()),
        before,
        usage: Usage::start(),
        opening,
        data_threads,
        competition,
    };
    let (outcome, done, connections) = session.run();
    drop(port_probe);
    *output = done;
    let broken = broken(&outcome, &connections);
    let targets =
        Targets { payload: limit::payload_target(&args.plan), wire: args.common.wire_target() };
    let end = report::end(&outcome, targets);
    connections.iter().for_each(|connection| connection.close(AppCode::DONE, "the test is over"));
    drop(connections);
    drop(link.holder);
    Ok(Measured { end, omitted_seconds, broken })
}

/// The plan with the congestion controls that this end will use filled in. Fails if the kernel
/// lacks one of them.
fn with_congestion_controls(plan: &Plan) -> Result<Plan> {
    let mut plan = plan.clone();
    if let (Direction::Upload, Some(compete)) = (plan.direction, &mut plan.compete) {
        compete::resolve(compete, &Policy::default().to_string())?;
    }
    Ok(plan)
}

/// Connects the competing flows to the address that the server announces.
fn meet(
    control_channel: &ControlChannel,
    link: &Link,
    args: &ClientArgs,
    compete: &mut Compete,
) -> Result<Lines> {
    let is_answer = |message: &Message| matches!(message, Message::Meet(_));
    let (Message::Meet(meet), _) = answer(control_channel, link, is_answer)? else {
        bail!(NOT_A_PERF_SERVER)
    };
    let there = link.connections[0].remote_addr().ip();
    let tcp = compete::connect(compete, &meet, there, args.common.local())?;
    let lines = Lines::new(compete, tcp, link.rivals.clone());
    match args.plan.direction {
        Direction::Upload => lines.set_controls(compete)?,
        // The server sends, so its message names the congestion controls in use.
        Direction::Download if meet.compete.is_as_many(compete) => *compete = meet.compete,
        Direction::Download => bail!(NOT_A_PERF_SERVER),
    }
    Ok(lines)
}

/// Why the test is incomplete, if it is.
pub(crate) fn broken(outcome: &Outcome, connections: &[Connection]) -> Option<Error> {
    let text = outcome.broken.clone()?;
    let reason = connections.iter().find_map(Connection::close_reason);
    let error = reason.map_or_else(|| trouble::gone(text), |reason| trouble::of_close(&reason));
    Some(error.context("the test ended early"))
}

/// Sends on every connection but the first which test it belongs to.
fn join<'a>(connections: impl Iterator<Item = &'a Connection>, token: &str) -> Result<()> {
    for (index, connection) in connections.enumerate().skip(1) {
        let until = Some(Instant::now() + ANSWER_TIMEOUT);
        let stream = wait(connection.open_stream(), &Stop::default(), until).map_err(cut)??;
        let (mut sender, _) = control(stream);
        let join = Join { token: token.to_owned(), index: index as u32 };
        sender.send(&Message::Join(join))?;
        sender.end();
    }
    Ok(())
}

/// Waits for the server's welcome. Returns it with its time of arrival.
fn welcome(control_channel: &ControlChannel, link: &Link) -> Result<(Welcome, Instant)> {
    match answer(control_channel, link, |message| matches!(message, Message::Welcome(_)))? {
        (Message::Welcome(welcome), at) => Ok((*welcome, at)),
        _ => bail!(NOT_A_PERF_SERVER),
    }
}

/// Waits for the server's answer. Returns it with its time of arrival.
fn answer(
    control_channel: &ControlChannel,
    link: &Link,
    is_answer: impl Fn(&Message) -> bool,
) -> Result<(Message, Instant)> {
    let until = Instant::now() + ANSWER_TIMEOUT;
    let mut early = Vec::new();
    loop {
        match control_channel.next(until) {
            Some(Event::Message(message)) if is_answer(&message) => {
                // Events of the writers that arrived before the answer are left to the session.
                early.into_iter().for_each(|event| drop(control_channel.post.send(event)));
                return Ok((message, Instant::now()));
            }
            Some(Event::Message(Message::Refused { reason, lasts })) => {
                return Err(trouble::refused(&reason, lasts));
            }
            Some(Event::Message(_)) => bail!(NOT_A_PERF_SERVER),
            Some(Event::Interrupt) => bail!("stopped by the user"),
            Some(Event::ControlLost(error)) => return Err(lost(link, error.into())),
            Some(event) => early.push(event),
            None => bail!("the server accepted the connection, but does not answer"),
        }
    }
}

/// The reason that the server gave for closing the connection, or else `error`.
fn lost(link: &Link, error: Error) -> Error {
    let mut reasons = link.connections.iter().filter_map(Connection::close_reason);
    reasons.next().map_or(error, |reason| trouble::of_early_end(&reason))
}

/// Seconds from the client's first packet to the receiver's time zero.
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
    let Socket { granted, local, .. } = link.socket;
    let (cipher, datagram) = facts(&link.connections[0]);
    let mut warnings: Vec<String> = welcome.warnings.clone();
    let advice = link.socket.advice.as_deref();
    warnings.extend(advice.map(|advice| small_buffers("this host", advice)));
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

/// The name of the cipher, and the UDP payload of a full packet in bytes.
pub(crate) fn facts(connection: &Connection) -> (String, u16) {
    let until = Some(Instant::now() + Duration::from_secs(5));
    let stats = wait(connection.stats(), &Stop::default(), until).ok().flatten();
    let cipher = stats.and_then(|stats| stats.cipher).map_or("unknown", cipher_name);
    (cipher.to_owned(), stats.map_or(0, |stats| stats.datagram))
}

pub(crate) fn small_buffers(host: &str, advice: &str) -> String {
    format!("{host} limits UDP socket buffers, so packets may be dropped; as root: {advice}")
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
        bidir: 0,
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

/// The local address of the route to `remote`: that of a socket connected to it.
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

/// A random name for a test, so that no two tests share one.
fn token() -> String {
    random_array::<16>().iter().map(|byte| format!("{byte:02x}")).collect()
}
