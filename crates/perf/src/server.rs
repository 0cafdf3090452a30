//! The server: it gathers the connections of a test and does its part; many tests at once if need
//! be, each on a thread of its own.

mod compete;
mod gather;

use crate::args::{Common, Competitors, ServerArgs, Tests};
use crate::client::{
    broken, connected, facts, now, pin_driver, program, small_buffers, test_start,
};
use crate::compete::{await_start, begin};
use crate::control::control;
use crate::interrupt::Interrupt;
use crate::limit::{Targets, payload_target};
use crate::message::{Hello, Message, Welcome};
use crate::output::{Output, Sink};
use crate::plan::{Direction, Plan};
use crate::report::{self, ESTIMATE, Start};
use crate::session::{Event, Session, Side, Talk, begin_writing, paths};
use crate::usage::{self, Usage};
use crate::wait::{Cut, Stop, wait};
use crate::{home, trouble};
use anyhow::{Context, Result, anyhow, bail};
use gather::{Gathered, Gathering};
use hikyaku_crypto::ServerCredentials;
use hikyaku_net::{Connection, Listener, ListenerConfig, code};
use hikyaku_units::Rate;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// How long a client may take to say what it wants, and to connect all its connections.
const GATHER_WITHIN: Duration = Duration::from_secs(15);

/// What all tests share.
struct Server {
    args: Common,
    tests: Tests,
    competitors: Competitors,
    /// Whether competitors run: two tests with some would disturb each other.
    is_competing: AtomicBool,
    listener: Listener,
    sink: Sink,
    interrupt: Interrupt,
    gathering: Gathering,
    count: AtomicU32,
}

/// Serves until Ctrl-C, or for one test.
pub(crate) fn run(args: &ServerArgs) -> Result<ExitCode> {
    let interrupt = Interrupt::listen().context("cannot listen for Ctrl-C")?;
    let sink = Sink::open(args.common.format, args.common.logfile.as_deref())?;
    let identity = home::identity()?;
    let listener = listen(&args.common, &ServerCredentials::new(&identity))?;
    pin_driver(args.common.cpu)?;
    if let Some(advice) = listener.advice() {
        sink.note(&format!("warning: {}", small_buffers("this host", advice)));
    }
    sink.note(&format!("listening on {} (UDP)", listener.local_addr()));
    sink.note(&format!("key {}", identity.fingerprint()));
    let server = Arc::new(Server {
        args: args.common.clone(),
        tests: args.tests,
        competitors: args.competitors,
        is_competing: AtomicBool::new(false),
        listener,
        sink,
        interrupt,
        gathering: Gathering::default(),
        count: AtomicU32::new(0),
    });
    server.accept()?;
    Ok(ExitCode::SUCCESS)
}

fn listen(common: &Common, credentials: &ServerCredentials) -> Result<Listener> {
    let mut failure = None;
    for address in common.addresses(common.port) {
        let config = ListenerConfig {
            endpoint: common.endpoint.clone(),
            transport: common.transport.clone(),
            ..ListenerConfig::new(credentials.clone())
        };
        match Listener::bind(address, config) {
            Ok(listener) => return Ok(listener),
            // A taken port is taken whatever the family.
            Err(error) => failure = failure.or(Some(error)),
        }
    }
    Err(failure.map_or_else(|| anyhow!("no address to bind to"), trouble::of_endpoint))
}

impl Server {
    fn accept(self: &Arc<Self>) -> Result<()> {
        let stop = Stop::default();
        let _subscription = self.interrupt.on_signal({
            let (stop, thread) = (stop.clone(), thread::current());
            move || {
                stop.set();
                thread.unpark();
            }
        });
        let mut threads = Vec::new();
        // The accepting ends when the one test has begun.
        while let Ok(Ok(connection)) = wait(self.listener.accept(), &stop, None) {
            threads.retain(|thread: &thread::JoinHandle<()>| !thread.is_finished());
            let server = self.clone();
            let work = move || server.serve(connection);
            let thread = thread::Builder::new().name("perf-session".to_owned()).spawn(work);
            threads.push(thread.context("cannot start a thread for a test")?);
        }
        for thread in threads {
            // A panic in it has been printed.
            let _ = thread.join();
        }
        Ok(())
    }

    /// One connection. The one that completes a test carries it on.
    fn serve(&self, connection: Connection) {
        let remote = connection.remote_addr();
        match self.gather(connection) {
            Ok(Some(gathered)) => self.test(gathered),
            Ok(None) => {}
            Err(error) => self.sink.note(&format!("{remote}: {}", trouble::line(&error))),
        }
    }

    fn gather(&self, connection: Connection) -> Result<Option<Gathered>> {
        let stop = Stop::default();
        let until = Some(Instant::now() + GATHER_WITHIN);
        let too_late = |_: Cut| anyhow!("connected, but did not say what for");
        let stream = wait(connection.accept_stream(), &stop, until).map_err(too_late)??;
        let (mut sender, mut reader) = control(stream);
        match reader.receive(&stop, until)? {
            Message::Hello(hello) => {
                if let Some(reason) = gather::refusal(&hello, self.competitors) {
                    sender.send(&Message::Refused { reason: reason.clone() })?;
                    // So that the reason arrives before the end.
                    let _ = sender.finish(Duration::from_secs(5));
                    bail!("refused: {reason}");
                }
                let talk = Talk::new(sender, reader);
                self.gathering.hello(*hello, connection, talk)
            }
            Message::Join(join) => self.gathering.join(&join, connection),
            _ => bail!("did not begin with a greeting"),
        }
    }

    fn test(&self, gathered: Gathered) {
        if self.tests == Tests::One {
            self.listener.stop_accepting();
        }
        let number = self.count.fetch_add(1, Ordering::Relaxed) + 1;
        let remote = gathered.connections[0].remote_addr();
        let prefix = format!("[{number}] ");
        let mut output = Output::new(self.sink.clone(), self.args.title.clone(), prefix);
        let connections = gathered.connections.clone();
        if let Err(error) = self.run_test(gathered, &mut output) {
            let line = trouble::line(&error);
            output.note(&format!("{remote}: {line}"));
        }
        connections.iter().for_each(|connection| connection.close(code::DONE, "the test is over"));
    }

    fn run_test(&self, gathered: Gathered, output: &mut Output) -> Result<()> {
        let Gathered { hello, connections, rivals, mut talk } = gathered;
        let post = talk.post.clone();
        let _subscription = self.interrupt.on_signal(move || drop(post.send(Event::Interrupt)));
        let mut plan = hello.plan.clone();
        let (_turn, lines) = self.compete(&mut plan, rivals, &mut talk)?.unzip();
        let welcome = Message::Welcome(Box::new(self.welcome()));
        let sends = plan.direction == Direction::Download;
        if let (true, Some(bits)) = (sends, plan.target) {
            let rate = Some(Rate::from_bits_per_sec(bits));
            connections.iter().for_each(|connection| connection.set_payload_rate(rate));
        }
        output.start(self.start(&hello, &plan, &connections), sends);
        let (competition, opening) = match (sends, lines) {
            (false, None) => (None, Some(welcome)),
            (false, Some(lines)) => {
                talk.sender.send(&welcome)?;
                let competition = begin(lines, &plan, &mut talk, output)?;
                (Some(competition), Some(Message::Start))
            }
            (true, lines) => {
                talk.sender.send(&welcome)?;
                (await_start(lines, &plan, &talk, output)?, None)
            }
        };
        let before = paths(&connections, 0.0);
        let writers = if sends { begin_writing(&connections, &plan, &talk) } else { Vec::new() };
        let session = Session {
            side: Side::Server,
            plan: plan.clone(),
            connections,
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
        let wire = if sends {
            self.args.wire_target()
        } else {
            hello.wire_target.map(Rate::from_bits_per_sec)
        };
        let targets = Targets { payload: payload_target(&plan), wire };
        let end = report::end(&outcome, targets);
        output.end(Some(&end), error.as_ref().map(trouble::line));
        error.map_or(Ok(()), Err)
    }

    fn welcome(&self) -> Welcome {
        let granted = self.listener.granted();
        let warnings = self.listener.advice().map(|advice| small_buffers("the server", advice));
        Welcome {
            program: program(),
            system: usage::system(),
            granted_recv_buffer: granted.recv_buffer.bytes(),
            granted_send_buffer: granted.send_buffer.bytes(),
            policy: self.args.policy(),
            warnings: warnings.into_iter().collect(),
        }
    }

    fn start(&self, hello: &Hello, plan: &Plan, connections: &[Connection]) -> Start {
        let granted = self.listener.granted();
        let (cipher, mtu_payload) = facts(&connections[0]);
        let advice = self.listener.advice().map(|advice| small_buffers("this host", advice));
        Start {
            version: program(),
            system_info: usage::system(),
            connected: connected(connections, self.listener.local_addr()),
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

fn handshake_seconds(connection: &Connection) -> f64 {
    let until = Some(Instant::now() + Duration::from_secs(5));
    let stats = wait(connection.stats(), &Stop::default(), until).ok().flatten();
    stats.and_then(|stats| stats.handshake).unwrap_or_default().as_secs_f64()
}
