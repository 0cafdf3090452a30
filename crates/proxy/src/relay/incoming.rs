//! From the stream to the socket.

use crate::front::Front;
use crate::http::{Switch, Upgraded};
use crate::meter::{Meter, Wait};
use crate::socket::Socket;
use hikyaku_forward::{Answer, Event, Gather, Verdict};
use hikyaku_net::{ReadError, Run};
use hikyaku_reach::ReceiveHalf;
use std::io::{self, ErrorKind, IoSlice};
use std::time::Instant;
use tokio::sync::watch::Sender;

/// What comes first out of a stream.
pub(crate) enum Begin {
    /// At the near gateway: the answer, which the program is told in the words of what it speaks.
    Answer(Front),
    /// At the far gateway: bytes of the program that came with the first message.
    Bytes(Option<Run>),
}

/// What became of an answer.
enum Answered {
    /// The flow goes on with these bytes.
    Connected(Option<Run>),
    Refused(Answer),
    Failed(Event),
}

/// Pieces of a run that one call writes.
const PIECES_MAX: usize = 64;

/// Writes what comes from the stream to the socket. If the program has asked for another protocol, `decides` is told what
/// the server says to that. Returns how this direction ended, or the answer if the far gateway has not connected the flow.
pub(super) async fn run(
    socket: &Socket,
    mut receive: ReceiveHalf,
    (begin, decides): (Begin, Option<Sender<Option<Switch>>>),
    meter: &Meter,
) -> (ReceiveHalf, Result<Event, Answer>) {
    meter.wait(Some(Wait::Source), Instant::now());
    let mut next = match begin {
        Begin::Bytes(rest) => rest,
        Begin::Answer(front) => match answer(socket, &mut receive, &front).await {
            Answered::Connected(rest) => rest,
            Answered::Refused(answer) => return (receive, Err(answer)),
            Answered::Failed(event) => return (receive, Ok(event)),
        },
    };
    let mut upgraded = decides.map(|decides| (decides, Upgraded::default()));
    loop {
        if let Some((decides, response)) = &mut upgraded
            && let Some(run) = next.take()
        {
            match response.take(&run.to_vec()) {
                Ok(None) => {}
                Ok(Some((switch, bytes))) => {
                    decides.send_replace(Some(switch));
                    (next, upgraded) = (Some(Run::copied(bytes)), None);
                }
                Err(_) => return (receive, Ok(Event::StreamReset)),
            }
        }
        if let Some(run) = next.take() {
            meter.wait(None, Instant::now());
            if write_run(socket, run, meter).await.is_err() {
                return (receive, Ok(Event::WriteFailed));
            }
        }
        meter.wait(Some(Wait::Source), Instant::now());
        next = match receive.read_chunk().await {
            Ok(Some(run)) => Some(run),
            // A response that was cut off must not look whole.
            Ok(None) if upgraded.is_some() => return (receive, Ok(Event::StreamReset)),
            Ok(None) => return (receive, Ok(Event::StreamEnd)),
            Err(error) => return (receive, Ok(of_read(&error))),
        };
    }
}

/// Reads the answer, and tells the program if its flow is connected.
async fn answer(socket: &Socket, receive: &mut ReceiveHalf, front: &Front) -> Answered {
    let mut gather = Gather::default();
    loop {
        let mut run = match receive.read_chunk().await {
            Ok(Some(run)) => run,
            Ok(None) => return Answered::Failed(Event::StreamReset),
            Err(error) => return Answered::Failed(of_read(&error)),
        };
        while !run.is_empty() {
            let message = match gather.take(run.piece()) {
                Ok((taken, message)) => {
                    run.advance(taken);
                    message.map(|message| Answer::decode(&message))
                }
                Err(error) => Some(Err(error)),
            };
            let answer = match message {
                None => continue,
                Some(Ok(answer)) => answer,
                Some(Err(error)) => Answer::failed(Verdict::NotUnderstood, &error.to_string()),
            };
            if answer.verdict != Verdict::Connected {
                return Answered::Refused(answer);
            }
            if socket.write_all(&front.reply(&answer)).await.is_err() {
                return Answered::Failed(Event::WriteFailed);
            }
            return Answered::Connected(Some(run));
        }
    }
}

async fn write_run(socket: &Socket, mut run: Run, meter: &Meter) -> io::Result<()> {
    while !run.is_empty() {
        let pieces: Vec<IoSlice<'_>> = run.pieces().take(PIECES_MAX).map(IoSlice::new).collect();
        match socket.try_write_vectored(&pieces) {
            Ok(written) => {
                meter.add(written);
                run.advance(written);
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                meter.wait(Some(Wait::Sink), Instant::now());
                socket.writable().await?;
                meter.wait(None, Instant::now());
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// What an error of the stream means for the flow.
fn of_read(error: &ReadError) -> Event {
    match error {
        ReadError::Reset(_) => Event::StreamReset,
        _ => Event::Lost,
    }
}
