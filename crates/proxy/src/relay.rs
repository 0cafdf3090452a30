//! The relay of one flow: bytes from the socket to the stream and back, until both directions are over.
//!
//! Two tasks in one move the bytes and report how their direction ends; [`Flow`] decides what that means.

mod incoming;
mod outgoing;

pub(crate) use incoming::Begin;

use crate::http::{Body, Switch};
use crate::limits::{HALF_IDLE, RESET_CODE};
use crate::meter::Meters;
use crate::socket::Socket;
use hikyaku_forward::{Act, Answer, End, Event, Flow};
use hikyaku_reach::{ReceiveHalf, SendHalf};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::sleep;

/// What a flow begins with.
pub(crate) struct Relay {
    pub(crate) socket: Socket,
    pub(crate) send: SendHalf,
    pub(crate) receive: ReceiveHalf,
    /// Which bytes of the program belong to the flow.
    pub(crate) body: Body,
    /// What comes first out of the stream.
    pub(crate) begin: Begin,
    /// What passes.
    pub(crate) meters: Arc<Meters>,
}

/// How a flow was.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// It was connected, and has ended so.
    Over(End),
    /// The far gateway has not connected it. The socket is still open.
    Refused(Answer, Socket),
}

/// Waits until nothing has passed for `time`.
async fn nothing_for(meters: &Meters, time: Duration) {
    loop {
        let before = meters.bytes();
        sleep(time).await;
        if meters.bytes() == before {
            return;
        }
    }
}

impl Relay {
    /// A flow to which all bytes of its program belong.
    pub(crate) fn new(
        socket: Socket,
        (send, receive): (SendHalf, ReceiveHalf),
        begin: Begin,
        meters: Arc<Meters>,
    ) -> Self {
        Self { socket, send, receive, body: Body::Everything, begin, meters }
    }

    /// Relays to the end of the flow, and closes the socket.
    pub(crate) async fn run(self) -> Outcome {
        let Self { socket, send, receive, body, begin, meters } = self;
        let (mut flow, mut sender, mut receiver) = (Flow::default(), None, None);
        // What the server says of a switch to another protocol, where the program has asked for one.
        let (decides, decided) = watch::channel::<Option<Switch>>(None);
        let decides = (body == Body::Switched).then_some(decides);
        let end = {
            let outgoing = outgoing::run(&socket, send, (body, decided), &meters.outgoing);
            let incoming = incoming::run(&socket, receive, (begin, decides), &meters.incoming);
            // A direction that is dropped before its end resets its half of the stream.
            let (mut outgoing, mut incoming) = (Some(Box::pin(outgoing)), Some(Box::pin(incoming)));
            let mut forgotten = Box::pin(nothing_for(&meters, HALF_IDLE));
            loop {
                let is_half = outgoing.is_some() != incoming.is_some();
                let event = tokio::select! {
                    (half, event) = wait_for(&mut outgoing) => {
                        (outgoing, sender) = (None, Some(half));
                        event
                    }
                    (half, told) = wait_for(&mut incoming) => {
                        (incoming, receiver) = (None, Some(half));
                        match told {
                            Ok(event) => event,
                            Err(answer) => break Err(answer),
                        }
                    }
                    // A direction that waits for nothing of the socket does not see its reset.
                    () = socket.broken(), if outgoing.is_none() => Event::SocketReset,
                    () = &mut forgotten, if is_half => Event::Forgotten,
                };
                let step = flow.on(event);
                match step.act {
                    Some(Act::FinishStream) => sender.iter_mut().for_each(SendHalf::finish),
                    Some(Act::ResetStream) => {
                        sender.iter_mut().for_each(|half| half.reset_after(RESET_CODE));
                    }
                    Some(Act::StopStream) => {
                        receiver.iter_mut().for_each(|half| half.stop(RESET_CODE));
                    }
                    Some(Act::ShutSocket) => socket.shut(),
                    None => {}
                }
                if let Some(end) = step.end {
                    break Ok(end);
                }
            }
        };
        match end {
            Ok(End::Clean) => socket.end_clean(),
            Ok(End::Reset) => socket.reset_after_delivery().await,
            Ok(End::Abort) => drop(socket),
            Err(answer) => return Outcome::Refused(answer, socket),
        }
        Outcome::Over(end.unwrap_or(End::Abort))
    }
}

/// Waits for the end of a direction, or for ever if it has ended.
async fn wait_for<F: Future + Unpin>(direction: &mut Option<F>) -> F::Output {
    match direction {
        Some(direction) => direction.await,
        None => std::future::pending().await,
    }
}
