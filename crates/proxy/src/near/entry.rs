//! What happens to a connection of a program: its request is read, if the port has one, and the flow is opened.

use super::Gateway;
use crate::board::{Asking, Ends, Place};
use crate::front::Front;
use crate::hand::{self, Order};
use crate::http::{self, Body, Kind};
use crate::limits::{HEAD_BYTES_MAX, HEAD_TIMEOUT};
use crate::page::Page;
use crate::relay::{Begin, Outcome, Relay};
use crate::socket::Socket;
use crate::socks::{Step, Talk};
use bytes::Bytes;
use hikyaku_forward::{Answer, Goal, Loopback, Open, Verdict, framed};
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::timeout;

/// What a port is.
pub(crate) enum Entry {
    /// All its flows go to one target.
    Target(Goal, Loopback),
    /// A SOCKS proxy.
    Socks(Loopback),
    /// An HTTP proxy, which has the page of the gateway as well.
    Http(Loopback, Arc<Page>),
}

/// A flow that a program wants.
struct Wanted {
    open: Open,
    /// Where it goes, for people.
    target: String,
    front: Front,
    /// Bytes for the server that are known already.
    early: Vec<u8>,
    body: Body,
}

/// Why there is no flow.
enum NoFlow {
    /// The program is told this.
    Told(Vec<u8>),
    /// The program gets a download that this gateway asks for.
    HandedOver(Box<Order>),
    /// It is told nothing: it has gone, or does not speak what is spoken here.
    Silent,
}

/// A program that was told why there is no flow has so long to read it.
const LAST_WORD: Duration = Duration::from_secs(2);
/// Bytes that one read takes of a request.
const READ_BYTES: usize = 4096;

/// Carries a connection of `program` to its end.
pub(super) async fn carry(
    gateway: Arc<Gateway>,
    entry: Arc<Entry>,
    (socket, program): (Socket, Option<SocketAddr>),
    asking: OwnedSemaphorePermit,
) {
    let asked = timeout(HEAD_TIMEOUT, entry.ask(&socket, program)).await;
    drop(asking);
    let wanted = match asked {
        Ok(Ok(wanted)) => wanted,
        Ok(Err(NoFlow::Told(words))) => return farewell(socket, &words).await,
        Ok(Err(NoFlow::HandedOver(order))) => return hand::run(socket, *order).await,
        Ok(Err(NoFlow::Silent)) => return,
        // Browsers connect before they know what to ask for: a connection without a request just ends.
        Err(_) => return socket.end_clean(),
    };
    let (target, front) = (wanted.target.clone(), wanted.front);
    let ends = program.zip(socket.local_addr());
    let ends = ends.map(|(program, gateway)| Ends { program, gateway });
    let asking = Asking { ends, target: target.clone() };
    let mut place = gateway.board.enter(asking, Instant::now());
    let outcome = match gateway.flows.try_acquire() {
        Ok(_permit) => relay(&gateway, socket, wanted, &place).await,
        Err(_) => {
            let text = "this gateway carries as many connections as it can";
            Some(Outcome::Refused(Answer::failed(Verdict::OutOfResources, text), socket))
        }
    };
    let end = match &outcome {
        Some(Outcome::Over(end)) => end.to_string(),
        Some(Outcome::Refused(answer, _)) => answer.to_string(),
        None => "the far side is lost".to_owned(),
    };
    let program = program.map_or_else(|| "a program".to_owned(), |program| program.to_string());
    gateway.tell(|| format!("{program} to {target}: {end}"));
    place.set_end(end);
    drop(place);
    if let Some(Outcome::Refused(answer, socket)) = outcome {
        farewell(socket, &front.reply(&answer)).await;
    }
}

/// Opens a stream for a flow and relays it; `None` if the connection to the far gateway is lost.
async fn relay(
    gateway: &Gateway,
    socket: Socket,
    wanted: Wanted,
    place: &Place,
) -> Option<Outcome> {
    let (route, connection, open) = match gateway.connect(&wanted.open).await {
        Ok(connected) => connected,
        Err(answer) => return Some(Outcome::Refused(answer, socket)),
    };
    let (mut send, receive) = connection.open_stream().await.ok()?.split();
    let mut early = framed(&open.encode());
    place.meters().outgoing.add(wanted.early.len());
    early.extend(wanted.early);
    send.write_chunk(Bytes::from(early)).await.ok()?;
    place.set_stream(route, send.id().0);
    let relay = Relay::new(socket, (send, receive), Begin::Answer(wanted.front), place.meters());
    let relay = Relay { body: wanted.body, ..relay };
    Some(relay.run().await)
}

impl Entry {
    /// Learns where the flow goes.
    async fn ask(&self, socket: &Socket, program: Option<SocketAddr>) -> Result<Wanted, NoFlow> {
        match self {
            Self::Target(target, loopback) => Ok(Wanted {
                open: Open { target: target.clone(), loopback: *loopback },
                target: target.to_string(),
                front: Front::Plain,
                early: Vec::new(),
                body: Body::Everything,
            }),
            Self::Socks(loopback) => ask_socks(socket, *loopback).await,
            Self::Http(loopback, page) => ask_http(socket, *loopback, (page, program)).await,
        }
    }
}

async fn ask_socks(socket: &Socket, loopback: Loopback) -> Result<Wanted, NoFlow> {
    let mut talk = Talk::default();
    loop {
        match talk.step() {
            Step::Say(reply) => socket.write_all(&reply).await.map_err(|_| NoFlow::Silent)?,
            Step::Hear => read_more(socket, &mut talk.bytes).await?,
            Step::Connect(version, target, early) => {
                return Ok(Wanted {
                    target: target.to_string(),
                    open: Open { target: target.into(), loopback },
                    front: Front::Socks(version),
                    early,
                    body: Body::Everything,
                });
            }
            Step::Refused(words) => return Err(NoFlow::Told(words)),
            Step::Nonsense => return Err(NoFlow::Silent),
        }
    }
}

async fn ask_http(
    socket: &Socket,
    loopback: Loopback,
    (page, program): (&Page, Option<SocketAddr>),
) -> Result<Wanted, NoFlow> {
    let mut bytes = Vec::new();
    let bad = |http::Bad(status, text)| NoFlow::Told(http::response(status, text));
    let mut asked = loop {
        match http::read_head(&bytes) {
            Ok(Some(asked)) => break asked,
            Ok(None) => {}
            Err(error) => {
                if let Some(order) = page.order(&bytes, program) {
                    return Err(NoFlow::HandedOver(Box::new(order)));
                }
                let answer = page.answer(&bytes, program);
                return Err(answer.map_or_else(|| bad(error), NoFlow::Told));
            }
        }
        read_more(socket, &mut bytes).await?;
    };
    let rest = bytes.split_off(asked.length);
    let taken = asked.body.take(&rest);
    let taken = taken.map_err(|_| bad(http::Bad(400, "the body of the request makes no sense")))?;
    let mut early = asked.head;
    early.extend_from_slice(&rest[..taken]);
    Ok(Wanted {
        target: asked.shown,
        open: Open { target: asked.target.into(), loopback },
        front: match asked.kind {
            Kind::Tunnel => Front::Tunnel,
            Kind::Request => Front::Request,
        },
        early,
        body: asked.body,
    })
}

/// Reads more of a request, of which less than a head has come.
async fn read_more(socket: &Socket, bytes: &mut Vec<u8>) -> Result<(), NoFlow> {
    if bytes.len() > HEAD_BYTES_MAX {
        return Err(NoFlow::Silent);
    }
    match read(socket, bytes).await {
        Ok(0) | Err(_) => Err(NoFlow::Silent),
        Ok(_) => Ok(()),
    }
}

async fn read(socket: &Socket, bytes: &mut Vec<u8>) -> io::Result<usize> {
    let mut buffer = [0; READ_BYTES];
    loop {
        socket.readable().await?;
        match socket.try_read(&mut buffer) {
            Ok(length) => {
                bytes.extend_from_slice(&buffer[..length]);
                return Ok(length);
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
}

/// Tells the program why there is no flow, and closes the socket. Without words the socket is reset.
async fn farewell(socket: Socket, words: &[u8]) {
    if words.is_empty() || socket.write_all(words).await.is_err() {
        return;
    }
    socket.shut();
    // A close with unread bytes is a reset, which would take the words away from the program.
    let mut rest = Vec::new();
    let drain = async {
        while rest.len() < HEAD_BYTES_MAX && read(&socket, &mut rest).await.is_ok_and(|n| n > 0) {}
    };
    let _ = timeout(LAST_WORD, drain).await;
    socket.end_clean();
}
