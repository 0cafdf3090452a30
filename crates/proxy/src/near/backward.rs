//! Flows that come in at listeners of the far gateway (`-R`): they are connected from here.

use super::Gateway;
use crate::args::Forward;
use crate::board::Asking;
use crate::control::Messages;
use crate::far::{Targets, dial::dial};
use crate::http::Body;
use crate::limits::{CONNECT_TIMEOUT, HALF_IDLE, HEAD_TIMEOUT};
use crate::relay::{Begin, Outcome, Relay};
use crate::socket::Socket;
use crate::switch::{Mode, Route};
use bytes::Bytes;
use hikyaku_forward::{Answer, Arrived, Goal, Loopback, Open, Verdict, framed};
use hikyaku_reach::{Connection, Stream};
use std::sync::Arc;
use std::time::Instant;
use tokio::task::JoinSet;
use tokio::time::timeout;

/// Takes flows of the far gateway until the connection is over.
pub(super) async fn accept(gateway: &Arc<Gateway>, connection: &Connection, remote: &[Forward]) {
    let goals: Arc<[Goal]> = remote.iter().map(|forward| forward.goal.clone()).collect();
    // Flows that are left at the end are dropped, which resets their sockets.
    let mut flows = JoinSet::new();
    loop {
        tokio::select! {
            stream = connection.accept_stream() => match stream {
                Ok(stream) => {
                    flows.spawn(carry(gateway.clone(), stream, goals.clone()));
                }
                Err(_) => return,
            },
            Some(_) = flows.join_next(), if !flows.is_empty() => {}
        }
    }
}

async fn carry(gateway: Arc<Gateway>, stream: Stream, goals: Arc<[Goal]>) {
    let (mut send, receive) = stream.split();
    let mut messages = Messages::new(receive);
    let Ok(Ok(message)) = timeout(HEAD_TIMEOUT, messages.next()).await else { return };
    let (receive, rest) = messages.into_rest();
    let goal = Arrived::decode(&message).ok().and_then(|arrived| {
        // A far gateway has no listeners but those that were asked for.
        goals.get(arrived.listener as usize).cloned()
    });
    let Some(goal) = goal else { return };
    if gateway.switch.position().mode == Mode::Draining {
        return;
    }
    let target = format!("{goal} (-R)");
    let mut place =
        gateway.board.enter(Asking { ends: None, target: target.clone() }, Instant::now());
    let connected = tokio::select! {
        connected = connect(&gateway, goal) => connected,
        // Before the end of the stream this is an error: the program does not wait any more.
        _ = send.delivered() => return,
    };
    let answer = match &connected {
        Ok(_) => Answer::connected(None),
        Err(answer) => answer.clone(),
    };
    place.set_end(answer.to_string());
    if send.write_chunk(Bytes::from(framed(&answer.encode()))).await.is_err() {
        return;
    }
    let Ok((socket, _permit)) = connected else {
        send.finish();
        gateway.tell(|| format!("{target}: {answer}"));
        return;
    };
    place.set_stream(Route::Carried, send.id().0);
    let relay = Relay {
        socket,
        meters: place.meters(),
        send,
        receive,
        early: Bytes::new(),
        body: Body::Everything,
        begin: Begin::Bytes(rest),
        half_idle: HALF_IDLE,
    };
    if let Outcome::Over(end) = relay.run().await {
        gateway.tell(|| format!("{target}: {end}"));
        place.set_end(end.to_string());
    }
}

/// Connects a flow, as far as there is room. The permit is held as long as the flow.
async fn connect(
    gateway: &Gateway,
    target: Goal,
) -> Result<(Socket, tokio::sync::SemaphorePermit<'_>), Answer> {
    let permit = gateway.flows.try_acquire().map_err(|_| {
        let text = "the near gateway carries as many connections as it can";
        Answer::failed(Verdict::OutOfResources, text)
    })?;
    // The user has named the target.
    let open = Open { target, loopback: Loopback::Named };
    match timeout(CONNECT_TIMEOUT, dial(&open, &Targets::OfUser)).await {
        Ok(connected) => Ok((connected?, permit)),
        Err(_) => Err(Answer::failed(Verdict::TimedOut, "")),
    }
}
