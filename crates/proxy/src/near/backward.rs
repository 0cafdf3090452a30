//! Flows that come in at listeners of the far gateway (`-R`): they are connected from here.
//!
//! A listener without a target is a SOCKS proxy. Its programs are spoken to from here, over the stream of the flow: the far
//! gateway only passes the bytes on.

use super::Gateway;
use crate::args::{Leads, Remote};
use crate::board::{Asking, Place};
use crate::control::Messages;
use crate::far::{Targets, dial::dial};
use crate::limits::{CONNECT_TIMEOUT, HEAD_BYTES_MAX, HEAD_TIMEOUT};
use crate::relay::{Begin, Outcome, Relay};
use crate::socket::Socket;
use crate::socks::{self, Step, Talk, Version};
use crate::switch::{Mode, Route};
use bytes::Bytes;
use hikyaku_forward::{Answer, Arrived, Loopback, Open, Target, Verdict, framed};
use hikyaku_net::Run;
use hikyaku_reach::{Connection, ReceiveHalf, SendHalf, Stream};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;
use tokio::time::timeout;

/// A flow whose target is known.
struct Wanted {
    send: SendHalf,
    receive: ReceiveHalf,
    /// Bytes of the program that have come.
    rest: Option<Run>,
    open: Open,
    /// In which words the program is told whether it is connected.
    told: Told,
}

/// Who tells the program whether its flow is connected.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Told {
    /// The far gateway, which gets an answer.
    ByGateway,
    /// This one, as SOCKS has it.
    BySocks(Version),
}

impl Told {
    /// The bytes for the stream.
    fn bytes(self, answer: &Answer) -> Vec<u8> {
        match self {
            Self::ByGateway => framed(&answer.encode()),
            Self::BySocks(version) => socks::reply(version, answer),
        }
    }
}

/// A program that was refused has so long to read why.
const LAST_WORD: Duration = Duration::from_secs(2);

/// Takes flows of the far gateway until the connection is over.
pub(super) async fn accept(gateway: &Arc<Gateway>, connection: &Connection, remote: &[Remote]) {
    let leads: Arc<[Leads]> = remote.iter().map(|remote| remote.leads.clone()).collect();
    // Flows that are left at the end are dropped, which resets their sockets.
    let mut flows = JoinSet::new();
    loop {
        tokio::select! {
            stream = connection.accept_stream() => match stream {
                Ok(stream) => {
                    flows.spawn(carry(gateway.clone(), stream, leads.clone()));
                }
                Err(_) => return,
            },
            Some(_) = flows.join_next(), if !flows.is_empty() => {}
        }
    }
}

async fn carry(gateway: Arc<Gateway>, stream: Stream, leads: Arc<[Leads]>) {
    let asked = timeout(HEAD_TIMEOUT, ask(stream, &leads, &gateway)).await;
    // A far gateway or a program that says nothing, or something else, is told nothing.
    let Some(wanted) = asked.ok().flatten() else { return };
    let target = format!("{} (-R)", wanted.open.target);
    let asking = Asking { ends: None, target: target.clone() };
    let place = gateway.board.enter(asking, Instant::now());
    let end = relay(&gateway, wanted, place).await;
    gateway.tell(|| format!("{target}: {}", end.unwrap_or_else(|| "it was given up".to_owned())));
}

/// Learns where a flow goes. `None` if it goes nowhere.
async fn ask(stream: Stream, leads: &[Leads], gateway: &Gateway) -> Option<Wanted> {
    let (mut send, receive) = stream.split();
    let mut messages = Messages::new(receive);
    let arrived = Arrived::decode(&messages.next().await.ok()?).ok()?;
    // A far gateway has no listeners but those that were asked for.
    let leads = leads.get(arrived.listener as usize)?;
    let (mut receive, rest) = messages.into_rest();
    if gateway.switch.position().mode == Mode::Draining {
        return None;
    }
    match leads {
        Leads::To(goal) => {
            // The user has named the target.
            let open = Open { target: goal.clone(), loopback: Loopback::Named };
            Some(Wanted { send, receive, rest, open, told: Told::ByGateway })
        }
        Leads::Anywhere => {
            // The far gateway then passes on what the program says.
            let connected = framed(&Answer::connected(None).encode());
            send.write_chunk(Bytes::from(connected)).await.ok()?;
            let (version, target, early) = talk(&mut send, &mut receive, rest).await?;
            let rest = (!early.is_empty()).then(|| Run::copied(early));
            let open = Open { target: target.into(), loopback: Loopback::Refused };
            Some(Wanted { send, receive, rest, open, told: Told::BySocks(version) })
        }
    }
}

/// Speaks SOCKS with a program, until it has said where it wants to go.
async fn talk(
    send: &mut SendHalf,
    receive: &mut ReceiveHalf,
    rest: Option<Run>,
) -> Option<(Version, Target, Vec<u8>)> {
    let mut talk = Talk::default();
    talk.bytes.extend(rest.iter().flat_map(Run::to_vec));
    loop {
        match talk.step() {
            Step::Say(reply) => send.write_chunk(Bytes::copy_from_slice(&reply)).await.ok()?,
            Step::Hear if talk.bytes.len() > HEAD_BYTES_MAX => return None,
            Step::Hear => talk.bytes.extend(receive.read_chunk().await.ok()??.to_vec()),
            Step::Connect(version, target, early) => return Some((version, target, early)),
            Step::Refused(words) => {
                farewell(send, receive, words).await;
                return None;
            }
            Step::Nonsense => return None,
        }
    }
}

/// Tells a program why it is not connected, and lets it read that: a stream that is dropped before its end is a reset.
async fn farewell(send: &mut SendHalf, receive: &mut ReceiveHalf, words: Vec<u8>) {
    if send.write_chunk(Bytes::from(words)).await.is_err() {
        return;
    }
    send.finish();
    let drain = async { while let Ok(Some(_)) = receive.read_chunk().await {} };
    let _ = timeout(LAST_WORD, drain).await;
}

/// Connects a flow and relays it. Returns how it ended, or `None` if its program does not wait any more.
async fn relay(gateway: &Gateway, wanted: Wanted, mut place: Place) -> Option<String> {
    let Wanted { mut send, mut receive, rest, open, told } = wanted;
    let connected = tokio::select! {
        connected = connect(gateway, &open) => connected,
        // Before the end of the stream this is an error: the program does not wait any more.
        _ = send.delivered() => return None,
    };
    let answer = match &connected {
        // Where this host has made the connection from is nothing for the far side.
        Ok(_) => Answer::connected(None),
        Err(answer) => answer.clone(),
    };
    place.set_end(answer.to_string());
    let words = told.bytes(&answer);
    let Ok((socket, _permit)) = connected else {
        match told {
            Told::BySocks(_) => farewell(&mut send, &mut receive, words).await,
            Told::ByGateway => {
                send.write_chunk(Bytes::from(words)).await.ok()?;
                send.finish();
            }
        }
        return Some(answer.to_string());
    };
    send.write_chunk(Bytes::from(words)).await.ok()?;
    place.set_stream(Route::Carried, send.id().0);
    let relay = Relay::new(socket, (send, receive), Begin::Bytes(rest), place.meters());
    match relay.run().await {
        Outcome::Over(end) => {
            place.set_end(end.to_string());
            Some(end.to_string())
        }
        Outcome::Refused(answer, _) => Some(answer.to_string()),
    }
}

/// Connects a flow, as far as there is room. The permit is held as long as the flow.
async fn connect<'a>(
    gateway: &'a Gateway,
    open: &Open,
) -> Result<(Socket, tokio::sync::SemaphorePermit<'a>), Answer> {
    let permit = gateway.flows.try_acquire().map_err(|_| {
        let text = "the near gateway carries as many connections as it can";
        Answer::failed(Verdict::OutOfResources, text)
    })?;
    match timeout(CONNECT_TIMEOUT, dial(open, &Targets::OfUser)).await {
        Ok(connected) => Ok((connected?, permit)),
        Err(_) => Err(Answer::failed(Verdict::TimedOut, "")),
    }
}
