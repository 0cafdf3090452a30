//! The acceptor: one thread that accepts all connections, reads the first message of each, and
//! starts tests. A connection without a test costs no thread, so many silent connections do not
//! keep a client out.

use super::Server;
use super::budget::{Host, Needs};
use super::gather::{Announced, Gathered, Gathering, refusal};
use super::watch;
use crate::control::{ControlReader, ControlSender, control};
use crate::message::{Hello, Message, RefusalKind};
use crate::trouble;
use crate::wait::{Cut, Stop, wait};
use anyhow::{Error, Result};
use hikyaku_net::{AcceptError, AppCode, Connection};
use std::future::{Future, poll_fn};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::task::{Context, Poll};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// All connections that do not belong to a running test.
pub(super) struct Acceptor {
    server: Arc<Server>,
    /// The pending `accept`; `None` once the listener accepts nobody.
    accepting: Option<AcceptFuture>,
    /// Connections whose first message is awaited, oldest first.
    pending: Vec<PendingClient>,
    gathering: Gathering,
    sessions: Vec<JoinHandle<()>>,
    checked_at: Instant,
    log_limiter: LogLimiter,
}

/// A connection whose first message is awaited, or that is being told why it is refused.
struct PendingClient {
    since: Instant,
    connection: Connection,
    work: Pin<Box<dyn Future<Output = ClientOutcome>>>,
}

type AcceptFuture = Pin<Box<dyn Future<Output = Result<Connection, AcceptError>>>>;

/// The result of a pending client's future.
enum ClientOutcome {
    FirstMessage(Message, (ControlSender, ControlReader)),
    /// The client has received the reason for the refusal.
    Refused,
    Failed(Error),
}

enum AcceptorEvent {
    Connected(Connection),
    Closed,
    Finished(usize, ClientOutcome),
}

/// Rate limiter for log lines about pending clients, because any host can cause any number of them.
struct LogLimiter {
    second: Instant,
    count: u32,
}

/// Maximal number of pending clients. When it is exceeded, the oldest is closed: an honest client speaks
/// within a round trip.
const PENDING_CLIENTS_MAX: usize = 256;
/// How long a client may take to send its first message, or to receive a refusal.
const PENDING_TIMEOUT: Duration = Duration::from_secs(10);
const LOG_LINES_PER_SECOND: u32 = 10;

impl Acceptor {
    pub(super) fn new(server: Arc<Server>) -> Self {
        let (accepting, now) = (Some(next(server.clone())), Instant::now());
        let log_limiter = LogLimiter { second: now, count: 0 };
        Self {
            server,
            accepting,
            pending: Vec::new(),
            gathering: Gathering::default(),
            sessions: Vec::new(),
            checked_at: now,
            log_limiter,
        }
    }

    /// Accepts connections until `stop` is set or the listener is closed, then waits for the
    /// running tests.
    pub(super) fn run(mut self, stop: &Stop) {
        loop {
            let until = self.has_clients().then(|| self.checked_at + watch::CHECK_INTERVAL);
            match wait(poll_fn(|context| self.poll(context)), stop, until) {
                Ok(AcceptorEvent::Connected(connection)) => self.receive(connection),
                Ok(AcceptorEvent::Finished(at, outcome)) => self.on_outcome(at, outcome),
                Ok(AcceptorEvent::Closed) | Err(Cut::Stopped) => break,
                Err(Cut::TooLate) => {}
            }
            if self.checked_at.elapsed() >= watch::CHECK_INTERVAL {
                self.check();
            }
        }
        drop((self.pending, self.gathering));
        for session in self.sessions {
            // The thread has printed its panic already.
            let _ = session.join();
        }
    }

    fn has_clients(&self) -> bool {
        let has_tests = || !self.server.places.held().is_empty();
        !self.pending.is_empty() || !self.gathering.is_empty() || has_tests()
    }

    /// Polls the pending clients first, then the pending `accept`.
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<AcceptorEvent> {
        for (at, client) in self.pending.iter_mut().enumerate() {
            if let Poll::Ready(outcome) = client.work.as_mut().poll(context) {
                return Poll::Ready(AcceptorEvent::Finished(at, outcome));
            }
        }
        if let Some(accepting) = &mut self.accepting
            && let Poll::Ready(came) = accepting.as_mut().poll(context)
        {
            let came = came.ok();
            self.accepting = came.as_ref().map(|_| next(self.server.clone()));
            if let Some(connection) = came {
                return Poll::Ready(AcceptorEvent::Connected(connection));
            }
        }
        if self.accepting.is_none() && self.pending.is_empty() {
            return Poll::Ready(AcceptorEvent::Closed);
        }
        Poll::Pending
    }

    fn receive(&mut self, connection: Connection) {
        if self.pending.len() >= PENDING_CLIENTS_MAX {
            let client = self.pending.remove(0);
            client.connection.close(AppCode::FIRST, "closed in favour of newer connections");
        }
        let work = Box::pin(read_first_message(connection.clone()));
        self.pending.push(PendingClient { since: Instant::now(), connection, work });
    }

    fn on_outcome(&mut self, at: usize, outcome: ClientOutcome) {
        let connection = self.pending.remove(at).connection;
        let remote = connection.remote_addr();
        let done = match outcome {
            ClientOutcome::FirstMessage(Message::Hello(hello), control_channel) => {
                self.announce(*hello, connection, control_channel);
                Ok(())
            }
            ClientOutcome::FirstMessage(Message::Join(join), _) => {
                let joined = self.gathering.join(join, connection, Instant::now());
                joined.map(|gathered| gathered.into_iter().for_each(|test| self.begin(test)))
            }
            ClientOutcome::FirstMessage(..) => {
                Err(anyhow::anyhow!("the first message was neither hello nor join"))
            }
            ClientOutcome::Refused => Ok(()),
            ClientOutcome::Failed(error) => Err(error),
        };
        if let Err(error) = done {
            self.log(remote, &hikyaku_console::causes(&error));
        }
    }

    fn announce(
        &mut self,
        hello: Hello,
        connection: Connection,
        control_channel: (ControlSender, ControlReader),
    ) {
        let now = Instant::now();
        let remote = connection.remote_addr();
        let place = match refusal(&hello, &self.server.rules) {
            Some(reason) => Err((reason, RefusalKind::Always)),
            None => self.server.places.take(Host::of(remote.ip()), Needs::of(&hello.plan), now),
        };
        match place {
            Ok(place) => {
                place.add(&connection);
                let announced = Announced { hello, connection, control_channel, place };
                if let Some(test) = self.gathering.announce(announced, now) {
                    self.begin(test);
                }
            }
            Err((reason, lasts)) => self.refuse(connection, control_channel.0, reason, lasts),
        }
    }

    /// Sends the client the reason for a refusal.
    fn refuse(
        &mut self,
        connection: Connection,
        sender: ControlSender,
        reason: String,
        lasts: RefusalKind,
    ) {
        self.log(connection.remote_addr(), &format!("refused: {reason}"));
        let message = Message::Refused { reason, lasts };
        let work = Box::pin(async move {
            // The client may have disconnected; then nobody needs the message.
            let _ = sender.leave(&message).await;
            ClientOutcome::Refused
        });
        self.pending.push(PendingClient { since: Instant::now(), connection, work });
    }

    /// Starts the thread of a test whose connections have all arrived.
    fn begin(&mut self, test: Gathered) {
        self.sessions.retain(|session| !session.is_finished());
        let server = self.server.clone();
        let (give, take) = channel::<Gathered>();
        let work = move || {
            if let Ok(test) = take.recv() {
                server.test(test);
            }
        };
        match thread::Builder::new().name("perf-session".to_owned()).spawn(work) {
            Ok(session) => {
                self.sessions.push(session);
                // The thread waits for exactly this.
                let _ = give.send(test);
            }
            Err(error) => {
                let connection = test.connections[0].clone();
                let reason = hikyaku_console::causes(&trouble::no_thread(error));
                self.refuse(connection, test.control_channel.0, reason, RefusalKind::ForNow);
            }
        }
    }

    /// Closes pending clients that have waited too long or hold too much memory.
    fn check(&mut self) {
        let now = Instant::now();
        self.checked_at = now;
        self.gathering.expire(now);
        let early = self.gathering.early();
        let connections: Vec<Connection> =
            self.pending.iter().map(|client| &client.connection).chain(early).cloned().collect();
        let pending = self.pending.len();
        let mut greedy = self.server.places.check(now, &connections);
        // Removed from the end, so that the remaining indices stay valid.
        greedy.sort_unstable_by_key(|at| std::cmp::Reverse(*at));
        for at in greedy {
            match at.checked_sub(pending) {
                Some(at) => self.gathering.dismiss_early(at),
                None => self
                    .pending
                    .remove(at)
                    .connection
                    .close(AppCode::FIRST, watch::MEMORY_EXHAUSTED),
            }
        }
        while let Some(oldest) = self.pending.first()
            && now.saturating_duration_since(oldest.since) > PENDING_TIMEOUT
        {
            let client = self.pending.remove(0);
            client.connection.close(AppCode::FIRST, "connected, but sent no request");
            self.log(client.connection.remote_addr(), "connected, but sent no request");
        }
    }

    fn log(&mut self, who: SocketAddr, line: &str) {
        if self.log_limiter.second.elapsed() >= Duration::from_secs(1) {
            let left_out = self.log_limiter.count.saturating_sub(LOG_LINES_PER_SECOND);
            if left_out > 0 {
                self.server.sink.note(&format!("{left_out} similar lines suppressed"));
            }
            self.log_limiter = LogLimiter { second: Instant::now(), count: 0 };
        }
        self.log_limiter.count += 1;
        if self.log_limiter.count <= LOG_LINES_PER_SECOND {
            self.server.sink.note(&format!("{who}: {line}"));
        }
    }
}

fn next(server: Arc<Server>) -> AcceptFuture {
    Box::pin(async move {
        match &server.listener {
            Some(listener) => listener.accept().await,
            None => Err(AcceptError::Closed),
        }
    })
}

/// Reads a client's first message.
async fn read_first_message(connection: Connection) -> ClientOutcome {
    let stream = match connection.accept_stream().await {
        Ok(stream) => stream,
        Err(error) => return ClientOutcome::Failed(error.into()),
    };
    let (sender, mut reader) = control(stream);
    match reader.read_message().await {
        Ok(message) => ClientOutcome::FirstMessage(message, (sender, reader)),
        Err(error) => ClientOutcome::Failed(error.into()),
    }
}
