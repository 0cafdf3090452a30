//! The connection to the far gateway over time: when it is lost, another one is made, again and again with longer pauses.
//!
//! Connections of programs that were carried by the lost one are reset. New ones wait a short time for the next one, and
//! are then refused with the reason.

use super::Gateway;
use super::backward;
use crate::args::FarWay;
use crate::args::{FarEnd, Place, Remote};
use crate::control::{Messages, NoMessage, say_hello};
use crate::link::Link;
use crate::switch::Far;
use crate::trouble;
use anyhow::{Context, Error, Result};
use bytes::Bytes;
use hikyaku_console::{Tone, say};
use hikyaku_forward::{Answer, Listen, Listening, Report, Verdict, framed};
use hikyaku_reach::Connection;
use hikyaku_reach::bootstrap::Asking;
use hikyaku_units::{Retries, RetryPolicy};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant as StdInstant};
use tokio::sync::watch;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, interval_at, sleep, timeout};

/// How the far gateway is reached.
#[derive(Clone)]
pub(super) struct Reach {
    pub(super) far: FarEnd,
    pub(super) way: FarWay,
    /// What the far gateway listens on.
    pub(super) remote: Vec<Remote>,
}

/// A far gateway that has said hello.
pub(super) struct Greeted {
    connection: Connection,
    messages: Messages,
    /// Listeners that it does not have.
    missing: Vec<u32>,
}

/// A listener that the far gateway has.
pub(super) struct Listener<'a> {
    pub(super) forward: &'a Remote,
    /// Its port; 0 for a Unix socket.
    pub(super) port: u16,
}

/// The connection that there is at present.
pub(crate) struct Uplink {
    /// The host of the far gateway, for people.
    host: String,
    current: watch::Sender<Option<Connection>>,
    /// Keeps it.
    link: Mutex<Option<Link>>,
}

/// The far gateway has so long for its hello.
const HELLO_TIMEOUT: Duration = Duration::from_secs(30);
/// A connection of a program waits so long for the far gateway.
const PATIENCE: Duration = Duration::from_secs(3);
/// The far gateway is asked again for listeners after so long.
const LISTEN_AGAIN: Duration = Duration::from_secs(10);
/// How often it is looked whether the far gateway is heard.
const LOOK: Duration = Duration::from_secs(1);
/// A far gateway of which nothing is heard for so long is silent. A living one is heard every two seconds.
const SILENCE: Duration = Duration::from_secs(8);

impl Uplink {
    /// The first connection.
    pub(super) fn new(link: Link, host: &str) -> Self {
        let current = watch::Sender::new(Some(link.connection.clone()));
        Self { host: host.to_owned(), current, link: Mutex::new(Some(link)) }
    }

    /// The connection, if there is one.
    pub(crate) fn current(&self) -> Option<Connection> {
        self.current.borrow().clone().filter(|connection| connection.close_reason().is_none())
    }

    /// The connection for a new flow.
    ///
    /// # Errors
    ///
    /// There is none, and none comes in time: what the program is told.
    pub(crate) async fn connection(&self) -> Result<Connection, Answer> {
        let mut current = self.current.subscribe();
        let is_there = |connection: &Option<Connection>| {
            connection.as_ref().is_some_and(|connection| connection.close_reason().is_none())
        };
        let waited = timeout(PATIENCE, current.wait_for(is_there)).await;
        let found = waited.ok().and_then(Result::ok).and_then(|connection| connection.clone());
        found.ok_or_else(|| self.refusal())
    }

    /// What a program is told while there is no connection.
    pub(crate) fn refusal(&self) -> Answer {
        let host = &self.host;
        let text = format!("the connection to the far gateway at {host} is lost; it is made again");
        Answer::failed(Verdict::HostUnreachable, &text)
    }

    /// Ends the connection in order.
    pub(super) fn close(&self) {
        let link = self.link().take();
        if let Some(link) = &link {
            link.connection.close(hikyaku_net::code::DONE, "");
        }
        drop(link);
    }

    /// Why the connection is over.
    fn reason(&self) -> Option<Error> {
        let link = self.link();
        let link = link.as_ref()?;
        let reason = link.connection.close_reason()?;
        Some(trouble::of_close(&self.host, &reason, &link.fate))
    }

    /// The connection is over. Returns why.
    fn lose(&self) -> String {
        let why = self.reason().map_or_else(|| "it is over".to_owned(), |error| error.to_string());
        self.current.send_replace(None);
        let link = self.link().take();
        // This ends ssh, and waits for it.
        spawn_blocking(move || drop(link));
        why
    }

    fn renew(&self, link: Link) {
        let connection = link.connection.clone();
        *self.link() = Some(link);
        self.current.send_replace(Some(connection));
    }

    fn link(&self) -> MutexGuard<'_, Option<Link>> {
        self.link.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Says hello over the first connection, and asks for the listeners of the far gateway.
///
/// # Errors
///
/// The far gateway does not answer, is no gateway, or does not listen.
pub(super) async fn begin<'a>(
    uplink: &Uplink,
    reach: &'a Reach,
) -> Result<(Greeted, Vec<Listener<'a>>)> {
    let connection = uplink.current().context("the connection is over")?;
    let greeted = greet(&connection, &reach.remote).await;
    // The close reason of the connection is more exact than the error of the interrupted greeting.
    let (greeted, results) = greeted.map_err(|error| uplink.reason().unwrap_or(error))?;
    let mut listeners = Vec::new();
    for (forward, result) in results {
        let port = result.map_err(|why| trouble::of_remote(&uplink.host, forward, &why))?;
        listeners.push(Listener { forward, port });
    }
    Ok((greeted, listeners))
}

/// The answers to `-R`, in the order of the options: the port, or why the far gateway does not listen.
type Results<'a> = Vec<(&'a Remote, Result<u16, String>)>;

async fn greet<'a>(
    connection: &Connection,
    remote: &'a [Remote],
) -> Result<(Greeted, Results<'a>)> {
    let (mut send, receive) = connection.open_stream().await?.split();
    let mut messages = Messages::new(receive);
    say_hello(&mut send).await?;
    for (listener, forward) in (0..).zip(remote) {
        let listen = Listen { listener, at: forward.at() };
        send.write_chunk(Bytes::from(framed(&listen.encode()))).await?;
    }
    messages.keep(send);
    let hear = async {
        messages.hello().await?;
        let mut results = BTreeMap::new();
        while results.len() < remote.len() {
            let message = messages.next().await?;
            if !Listening::is_one(&message) {
                continue;
            }
            let Listening { listener, result } = Listening::decode(&message)?;
            if (listener as usize) < remote.len() {
                results.insert(listener, result);
            }
        }
        Ok::<_, NoMessage>(results)
    };
    let heard = timeout(HELLO_TIMEOUT, hear).await;
    let results = heard.context("the far side does not say hello")??;
    let is_missing =
        |(listener, result): (&u32, &Result<u16, String>)| result.is_err().then_some(*listener);
    let missing = results.iter().filter_map(is_missing).collect();
    let results = remote.iter().zip(results.into_values()).collect();
    Ok((Greeted { connection: connection.clone(), messages, missing }, results))
}

/// Keeps a connection to the far gateway, and hears what it says of its flows.
pub(super) async fn keep(
    gateway: &Arc<Gateway>,
    reach: &Reach,
    mut greeted: Greeted,
) -> Infallible {
    loop {
        let connection = greeted.connection.clone();
        tokio::select! {
            never = hear(gateway, reach, greeted) => match never {},
            () = backward::accept(gateway, &connection, &reach.remote) => {}
            () = watch_silence(gateway) => {}
        }
        let why = gateway.uplink.lose();
        gateway.set_far(Far::Away);
        say(
            Tone::Warning,
            format_args!(
                "{why}; carried connections are reset, and the far gateway is connected again"
            ),
        );
        greeted = again(gateway, reach).await;
        gateway.board.forget_far();
        gateway.set_far(Far::Up);
        say(Tone::Note, format_args!("connected to {} again", gateway.uplink.host));
    }
}

/// Makes another connection.
async fn again(gateway: &Gateway, reach: &Reach) -> Greeted {
    let mut retries = Retries::new(RetryPolicy::PROXY);
    let mut pause = retries.next(fastrand::f64());
    loop {
        sleep(pause).await;
        pause = retries.next(fastrand::f64());
        let (far, way) = (reach.far.clone(), reach.way.clone());
        let opened = spawn_blocking(move || Link::open(&far, &without_questions(way))).await;
        let error = match opened {
            Ok(Ok(link)) => match greet(&link.connection, &reach.remote).await {
                Ok((greeted, results)) => {
                    for (forward, result) in results {
                        tell_listener(gateway, forward, &result);
                    }
                    gateway.uplink.renew(link);
                    return greeted;
                }
                Err(error) => {
                    spawn_blocking(move || drop(link));
                    error
                }
            },
            Ok(Err(error)) => error,
            Err(error) => error.into(),
        };
        let seconds = pause.as_secs_f64();
        gateway.tell(|| format!("{error:#}; the next attempt is made in {seconds:.1} s"));
    }
}

/// Tells what has become of a listener of another connection.
fn tell_listener(gateway: &Gateway, forward: &Remote, result: &Result<u16, String>) {
    let host = &gateway.uplink.host;
    match (result, &forward.place) {
        (Err(why), place) => say(
            Tone::Warning,
            format_args!("{host} does not listen on {place}: {why}; it is asked again"),
        ),
        // The system has chosen another one, of which programs do not know.
        (Ok(port), Place::Port(listen)) if listen.port == 0 => {
            say(Tone::Note, format_args!("{host} listens on port {port}"));
        }
        (Ok(_), _) => {}
    }
}

/// Hears what the far gateway says of its flows, and asks again for listeners that it does not have: the gateway before it
/// may still have had them. When it says no more, or something else, nothing is known of its flows.
async fn hear(gateway: &Gateway, reach: &Reach, greeted: Greeted) -> Infallible {
    let Greeted { mut messages, mut missing, .. } = greeted;
    let mut ticks = interval_at(Instant::now() + LISTEN_AGAIN, LISTEN_AGAIN);
    loop {
        tokio::select! {
            message = messages.next() => {
                let Ok(message) = message else { break };
                if let Ok(Listening { listener, result }) = Listening::decode(&message) {
                    if let Some(forward) = reach.remote.get(listener as usize).filter(|_| result.is_ok()) {
                        missing.retain(|missing| *missing != listener);
                        tell_listener(gateway, forward, &result);
                    }
                } else if let Ok(report) = Report::decode(&message) {
                    gateway.board.hear(&report, StdInstant::now());
                } else {
                    break;
                }
            }
            _ = ticks.tick(), if !missing.is_empty() => {
                for &listener in &missing {
                    let Some(forward) = reach.remote.get(listener as usize) else { continue };
                    let listen = Listen { listener, at: forward.at() };
                    if messages.say(&listen.encode()).await.is_err() {
                        break;
                    }
                }
            }
        }
    }
    // The stream stays open: its end would be the end of the session.
    let _messages = messages;
    std::future::pending().await
}

/// Watches the connection until it is over, and tells the switch while nothing is heard.
async fn watch_silence(gateway: &Gateway) {
    let Some(connection) = gateway.uplink.current() else { return };
    let (mut heard, mut since, mut told) = (None, Instant::now(), Far::Up);
    loop {
        tokio::select! {
            _ = connection.closed() => return,
            () = sleep(LOOK) => {}
        }
        let Some(seen) = connection.seen().await else { return };
        if heard != Some(seen.heard) {
            (heard, since) = (Some(seen.heard), Instant::now());
        }
        let far = if since.elapsed() > SILENCE { Far::Silent } else { Far::Up };
        if far != told {
            told = far;
            gateway.set_far(far);
        }
    }
}

/// The same way, where nobody is at hand who could answer ssh: it asks for no password.
fn without_questions(mut far: FarWay) -> FarWay {
    let way = &mut far.way;
    way.ssh.options.push("BatchMode=yes".into());
    way.offer.asking = Asking::Never;
    far
}
