//! The server: collects the connections of each test and runs its own end of it. Tests may overlap;
//! each has a thread of its own, and all of them share a budget.

mod acceptor;
mod arrived;
mod budget;
mod compete;
mod gather;
mod watch;

use crate::args::{Common, Lifetime, Rules, ServerArgs, Tests};
use crate::client::{
    broken, connected, facts, now, pin_drivers, program, small_buffers, test_start,
};
use crate::compete::{Competition, await_start, begin};
use crate::limit::{Targets, payload_target};
use crate::log::RunLog;
use crate::message::{Hello, Message, RefusalKind, Welcome};
use crate::output::{Output, OutputState, Sink};
use crate::plan::{Direction, Plan};
use crate::report::{self, ESTIMATE, Start};
use crate::session::{ControlChannel, DataThreads, Event, Session, Side, paths, readers, writers};
use crate::socket::Socket;
use crate::usage::{self, Usage};
use crate::wait::{Stop, wait};
use crate::worker::Gate;
use crate::{home, trouble};

pub use arrived::{SERVICE, attend};

use acceptor::Acceptor;
use anyhow::{Context, Error, Result, anyhow};
use budget::{Budget, Places};
use gather::Gathered;
use hikyaku_console::{Interrupt, Scope};
use hikyaku_crypto::ServerCredentials;
use hikyaku_net::{AppCode, Connection, Listener, ListenerConfig};
use hikyaku_tcp::{Standard, was_closed};
use hikyaku_units::Rate;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// How long competing TCP flows may take to connect.
const TCP_CONNECT_TIMEOUT: Duration = Duration::from_secs(15);

/// How long to wait until a client has received the reason for a refusal.
const REFUSAL_TIMEOUT: Duration = Duration::from_secs(5);

/// State that all tests share.
struct Server {
    args: Common,
    tests: Tests,
    rules: Rules,
    places: Arc<Places>,
    /// Whether a test with competing flows is running. Only one at a time, because two would
    /// disturb each other's figures.
    is_competing: AtomicBool,
    /// `None` where the only client has come already.
    listener: Option<Listener>,
    socket: Socket,
    sink: Sink,
    scope: Scope,
    /// Where each test is written as well.
    log: Option<RunLog>,
    count: AtomicU32,
    /// Whether the first test of a `--bidir` pair has begun.
    has_pair: AtomicBool,
}

/// Ends the server when its standard input ends.
fn end_with_input(scope: &Scope) -> Result<()> {
    let scope = scope.clone();
    let read = move || {
        let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
        scope.stop();
    };
    let named = std::thread::Builder::new().name("perf-input".to_owned());
    named.spawn(read).map(drop).map_err(trouble::no_thread)
}

/// Serves until a signal arrives, or until one test is done with `-1`.
pub(crate) fn run(args: &ServerArgs, interrupt: &Interrupt) -> Result<()> {
    interrupt.listen().context("cannot listen for Ctrl-C")?;
    let sink = match args.common.logfile.as_deref() {
        // Nobody wants to hear of the tests.
        None if was_closed(Standard::Output) => Sink::silent(),
        file => Sink::open(args.common.format, file)?,
    };
    let identity = home::identity()?;
    let budget = Budget::new(&args.rules);
    let mut common = args.common.clone();
    common.limit_windows_to_memory(budget.memory);
    let listener = listen(&common, &ServerCredentials::new(&identity))?;
    pin_drivers(args.common.cpu)?;
    if let Some(advice) = listener.advice() {
        sink.note(&format!("warning: {}", small_buffers("this host", advice)));
    }
    sink.note(&format!("listening on {} (UDP)", listener.local_addr()));
    sink.note(&format!("key {}", identity.fingerprint()));
    sink.note(&budget.line());
    if let OutputState::Failed(error) = sink.state() {
        return Err(error);
    }
    let port = listener.local_addr().port();
    let log = args.log_dir.as_deref().map(|dir| RunLog::of_server(dir, port)).transpose()?;
    let scope = interrupt.scope();
    if args.lifetime == Lifetime::WhileInput {
        end_with_input(&scope)?;
    }
    let server = Arc::new(Server {
        args: common,
        tests: args.tests,
        rules: args.rules,
        places: Arc::new(Places::new(budget)),
        is_competing: AtomicBool::new(false),
        socket: Socket::of(listener.endpoint()),
        listener: Some(listener),
        sink,
        scope,
        log,
        count: AtomicU32::new(0),
        has_pair: AtomicBool::new(false),
    });
    server.serve();
    interrupt.end_by_signal();
    // An output error does not end tests of a server; it is reported at the end.
    match server.sink.state() {
        OutputState::Failed(error) => Err(error),
        OutputState::Written | OutputState::ReaderClosed => Ok(()),
    }
}

fn listen(common: &Common, credentials: &ServerCredentials) -> Result<Listener> {
    let mut failure = None;
    for address in common.addresses(common.port) {
        let mut config = ListenerConfig::new(credentials.clone());
        config.endpoint = common.endpoint.clone();
        config.transport = common.transport.clone();
        match Listener::bind(address, config) {
            Ok(listener) => return Ok(listener),
            // The first error is reported: if the port is taken, it is taken for both address
            // families.
            Err(error) => failure = failure.or(Some(error)),
        }
    }
    Err(failure.map_or_else(|| anyhow!("no address to bind to"), trouble::of_endpoint))
}

impl Server {
    fn serve(self: &Arc<Self>) {
        let stop = Stop::default();
        let _registration = self.scope.on_stop({
            let (stop, thread) = (stop.clone(), thread::current());
            move || {
                stop.set();
                thread.unpark();
            }
        });
        Acceptor::new(self.clone()).run(&stop);
    }

    /// Runs one test, on a thread of its own.
    fn test(&self, gathered: Gathered) {
        if self.is_last(&gathered.hello) {
            self.stop_accepting();
        }
        let number = self.count.fetch_add(1, Ordering::Relaxed) + 1;
        let remote = gathered.connections[0].remote_addr();
        let prefix = format!("[{number}] ");
        let mut output = Output::new(self.sink.clone(), self.args.title.clone(), prefix);
        let connections = gathered.connections.clone();
        if let Err(error) = self.run_test(gathered, &mut output) {
            let line = hikyaku_console::causes(&error);
            output.note(&format!("{remote}: {line}"));
        }
        connections
            .iter()
            .for_each(|connection| connection.close(AppCode::DONE, "the test is over"));
        if self.tests == Tests::One {
            // The second test of a pair may never have arrived.
            self.stop_accepting();
        }
    }

    fn stop_accepting(&self) {
        self.listener.iter().for_each(Listener::stop_accepting);
    }

    /// Whether this is the last test of a server with `-1`. The first test of a pair is not: the
    /// second one follows.
    fn is_last(&self, hello: &Hello) -> bool {
        let is_first = hello.pair.is_some() && !self.has_pair.swap(true, Ordering::Relaxed);
        self.tests == Tests::One && !is_first
    }

    fn run_test(&self, gathered: Gathered, output: &mut Output) -> Result<()> {
        // `place` returns the test's share of the budget when it is dropped at the end.
        let Gathered { hello, connections, rivals, control_channel: (sender, reader), place } =
            gathered;
        let mut control_channel = match ControlChannel::new(sender, reader) {
            Ok(control_channel) => control_channel,
            Err((mut sender, error)) => {
                let error = trouble::no_thread(error);
                let message = Message::Refused {
                    reason: hikyaku_console::causes(&error),
                    lasts: RefusalKind::ForNow,
                };
                sender.send(&message)?;
                let _ = sender.finish(REFUSAL_TIMEOUT);
                return Err(error);
            }
        };
        let post = control_channel.post.clone();
        place.begin(&hello.plan, &self.rules, post.clone(), Instant::now());
        let _registration = self.scope.on_stop(move || drop(post.send(Event::Interrupt)));
        let mut plan = hello.plan.clone();
        let (_turn, lines) = self.compete(&mut plan, rivals, &mut control_channel)?.unzip();
        let welcome = Message::Welcome(Box::new(self.welcome(&plan)));
        let sends = plan.direction == Direction::Download;
        if sends {
            let rate = self.payload_rate(&plan);
            connections.iter().for_each(|connection| connection.set_payload_rate(rate));
        }
        output.start(self.start(&hello, &plan, &connections), sends);
        let guest = connections[0].remote_addr().ip().to_canonical().to_string();
        let direction = if sends { Direction::Upload } else { Direction::Download };
        output.keep(self.log.as_ref().map(|log| log.guest(&guest, direction)));
        let (data_threads, competition, opening) = if sends {
            let gate = Gate::default();
            let writers = writers(&connections, &plan, &control_channel, &gate);
            let writers =
                writers.map_err(|error| refuse_without_thread(error, &mut control_channel))?;
            control_channel.sender.send(&welcome)?;
            let competition = await_start(lines, &plan, &control_channel, output)?;
            gate.open_for(&writers);
            (DataThreads::Writers(writers), competition, None)
        } else {
            let (competition, opening) = match lines {
                None => (None, welcome),
                Some(lines) => {
                    control_channel.sender.send(&welcome)?;
                    (Some(begin(lines, &plan, &mut control_channel, output)?), Message::Start)
                }
            };
            let data_threads =
                self.readers(&connections, &plan, &mut control_channel, competition.as_ref())?;
            (data_threads, competition, Some(opening))
        };
        let session = Session {
            side: Side::Server,
            plan: plan.clone(),
            before: paths(&connections, 0.0),
            connections,
            control_channel,
            output: std::mem::replace(output, Output::silent()),
            usage: Usage::start(),
            opening,
            data_threads,
            competition,
        };
        let (outcome, done, connections) = session.run();
        *output = done;
        let error = broken(&outcome, &connections);
        let wire = if sends {
            self.args.wire_target()
        } else {
            hello.wire_target.map(Rate::from_bits_per_sec)
        };
        let targets = Targets { payload: payload_target(&plan), wire };
        let end = report::end(&outcome, targets);
        output.end(Some(&end), error.as_ref().map(hikyaku_console::causes));
        error.map_or(Ok(()), Err)
    }

    fn readers(
        &self,
        connections: &[Connection],
        plan: &Plan,
        control_channel: &mut ControlChannel,
        competition: Option<&Competition>,
    ) -> Result<DataThreads> {
        let readers =
            readers(connections, plan, control_channel, competition, self.most_each(plan));
        Ok(DataThreads::Readers(
            readers.map_err(|error| refuse_without_thread(error, control_channel))?,
        ))
    }

    /// Largest payload rate of each stream under the server's `--max-rate`.
    fn most_each(&self, plan: &Plan) -> Option<Rate> {
        let most = self.rules.rate?.bits_per_sec();
        Some(Rate::from_bits_per_sec(most / u64::from(plan.streams.max(1))))
    }

    /// Payload rate of each stream that this end sends: the plan's target or the server's limit,
    /// whichever is lower.
    fn payload_rate(&self, plan: &Plan) -> Option<Rate> {
        let wanted = plan.target.map(Rate::from_bits_per_sec);
        [wanted, self.most_each(plan)].into_iter().flatten().min()
    }

    fn welcome(&self, plan: &Plan) -> Welcome {
        let granted = self.socket.granted;
        let warnings =
            self.socket.advice.as_deref().map(|advice| small_buffers("the server", advice));
        let wanted = payload_target(plan);
        let limit = self.rules.rate.filter(|most| wanted.is_none_or(|wanted| wanted > *most));
        let limit = limit.map(|most| format!("the server limits each test to {most} (--max-rate)"));
        Welcome {
            program: program(),
            system: usage::system(),
            granted_recv_buffer: granted.recv_buffer.bytes(),
            granted_send_buffer: granted.send_buffer.bytes(),
            policy: self.args.policy(),
            warnings: warnings.into_iter().chain(limit).collect(),
        }
    }

    fn start(&self, hello: &Hello, plan: &Plan, connections: &[Connection]) -> Start {
        let granted = self.socket.granted;
        let (cipher, mtu_payload) = facts(&connections[0]);
        let advice = self.socket.advice.as_deref().map(|advice| small_buffers("this host", advice));
        Start {
            version: program(),
            system_info: usage::system(),
            connected: connected(connections, self.socket.local),
            timestamp: now(),
            test_start: test_start(plan, hello.wire_target.unwrap_or(0)),
            cipher,
            policy: match hello.plan.direction {
                Direction::Upload => hello.policy.clone(),
                Direction::Download => self.args.policy(),
            },
            mtu_payload,
            granted_recv_buffer: granted.recv_buffer.bytes(),
            granted_send_buffer: granted.send_buffer.bytes(),
            server: None,
            warnings: advice.into_iter().collect(),
            handshake_seconds: handshake_seconds(&connections[0]),
            since_first_packet: None,
            since_first_packet_method: ESTIMATE,
        }
    }
}

/// No thread could be started for the test. Tells the client so.
fn refuse_without_thread(error: std::io::Error, control_channel: &mut ControlChannel) -> Error {
    let error = trouble::no_thread(error);
    let message =
        Message::Refused { reason: hikyaku_console::causes(&error), lasts: RefusalKind::ForNow };
    // The client may have disconnected; then nobody needs the message.
    let _ = control_channel.sender.send(&message);
    let _ = control_channel.sender.finish(REFUSAL_TIMEOUT);
    error
}

fn handshake_seconds(connection: &Connection) -> f64 {
    let until = Some(Instant::now() + Duration::from_secs(5));
    let stats = wait(connection.stats(), &Stop::default(), until).ok().flatten();
    stats.and_then(|stats| stats.handshake).unwrap_or_default().as_secs_f64()
}
