//! From the socket to the stream.

use crate::http::{Body, Switch};
use crate::meter::{Meter, Wait};
use crate::socket::Socket;
use bytes::{Bytes, BytesMut};
use hikyaku_forward::Event;
use hikyaku_net::WriteError;
use hikyaku_reach::SendHalf;
use std::io::ErrorKind;
use std::time::Instant;
use tokio::sync::watch::Receiver;

/// Bytes of a read at first.
const READ_BYTES_MIN: usize = 16 << 10;
/// A piece of fewer bytes is copied.
const COPY_BYTES_MAX: usize = 4 << 10;
/// Bytes of a read when the program sends at full rate.
const READ_BYTES_MAX: usize = 256 << 10;

/// Writes what comes from the socket to the stream, as far as it belongs to `body`. If that depends on a switch to another
/// protocol, nothing is read before `decided` has it. Returns how this direction ended.
pub(super) async fn run(
    socket: &Socket,
    mut send: SendHalf,
    (mut body, mut decided): (Body, Receiver<Option<Switch>>),
    meter: &Meter,
) -> (SendHalf, Event) {
    let (mut buffer, mut size) = (BytesMut::new(), READ_BYTES_MIN);
    if body == Body::Switched {
        meter.wait(Some(Wait::Source), Instant::now());
        tokio::select! {
            switch = decided.wait_for(Option::is_some) => {
                if switch.is_ok_and(|switch| *switch == Some(Switch::Made)) {
                    body = Body::Everything;
                }
            }
            stopped = send.delivered() => {
                let event = stopped.err().map_or(Event::Lost, |error| of_write(&error));
                return (send, event);
            }
            () = socket.broken() => return (send, Event::SocketReset),
        }
    }
    loop {
        meter.wait(Some(Wait::Source), Instant::now());
        let is_readable = tokio::select! {
            biased;
            readable = socket.readable() => readable.is_ok(),
            // Before the end of the stream this ends only with an error.
            stopped = send.delivered() => {
                let event = stopped.err().map_or(Event::Lost, |error| of_write(&error));
                return (send, event);
            }
        };
        if !is_readable {
            return (send, Event::SocketReset);
        }
        if buffer.capacity() < size / 4 {
            buffer = BytesMut::with_capacity(size);
        }
        match socket.try_read_buf(&mut buffer) {
            Ok(0) => return (send, Event::SocketEnd),
            Ok(bytes) => {
                meter.add(bytes);
                size = match bytes {
                    _ if bytes == size => (size * 4).min(READ_BYTES_MAX),
                    _ if bytes < size / 8 => READ_BYTES_MIN,
                    _ => size,
                };
                // A small piece is copied, so that neither it nor a flow that waits holds a whole buffer.
                let mut piece = match bytes < COPY_BYTES_MAX {
                    true => Bytes::copy_from_slice(&std::mem::take(&mut buffer)),
                    false => buffer.split().freeze(),
                };
                // What is not part of the request has no meaning to the server, and is left out.
                let Ok(length) = body.take(&piece) else { return (send, Event::SocketReset) };
                piece.truncate(length);
                meter.wait(Some(Wait::Sink), Instant::now());
                if let Err(error) = send.write_chunk(piece).await {
                    return (send, of_write(&error));
                }
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(_) => return (send, Event::SocketReset),
        }
    }
}

/// What an error of the stream means for the flow.
fn of_write(error: &WriteError) -> Event {
    match error {
        WriteError::Stopped(_) => Event::StreamStopped,
        _ => Event::Lost,
    }
}
