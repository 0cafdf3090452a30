//! An end of a copy that says what it likes: messages, bytes that are none, objects, or nothing at all.

use bytes::Bytes;
use hikyaku_net::blocking::{Stop, block_on, wait};
use hikyaku_net::{Connection, ObjectSender, ReceiveHalf, SendHalf, Stream};
use hikyaku_transfer::{FromSender, decode, encode, encode_long, frame, frame_len};
use serde::Serialize;
use std::thread;
use std::time::{Duration, Instant};

/// The liar's end of the connection and of the stream of messages.
pub struct Peer {
    /// The connection.
    pub connection: Connection,
    send: SendHalf,
    receive: Option<ReceiveHalf>,
    heard: Vec<u8>,
}

/// Whoever is not heard for so long does not listen any more.
const PATIENCE: Duration = Duration::from_secs(3);

fn soon() -> Option<Instant> {
    Some(Instant::now() + PATIENCE)
}

impl Peer {
    /// An end that speaks on `stream`.
    pub fn new(connection: Connection, stream: Stream) -> Self {
        let (send, receive) = stream.split();
        Self { connection, send, receive: Some(receive), heard: Vec::new() }
    }

    /// Says a message. False, when nobody hears it any more.
    pub fn say(&mut self, message: &impl Serialize) -> bool {
        self.say_with(message, &[])
    }

    /// A message with bytes behind it.
    pub fn say_with(&mut self, message: &impl Serialize, tail: &[u8]) -> bool {
        encode(message, tail).is_some_and(|frame| self.raw(frame))
    }

    /// Says an order.
    pub fn order(&mut self, order: &impl Serialize) -> bool {
        encode_long(order, usize::MAX).is_some_and(|frames| self.raw(frames.flatten().collect()))
    }

    /// Bytes that may be no message.
    pub fn raw(&mut self, bytes: Vec<u8>) -> bool {
        let write = self.send.write_chunk(Bytes::from(bytes));
        matches!(wait(write, &Stop::default(), soon()), Ok(Ok(())))
    }

    /// Says a message, over and over, until nobody hears it any more or it was said so often. Whether it was.
    pub fn flood<T: Serialize>(
        &mut self,
        times: u64,
        mut message: impl FnMut(u64) -> (T, Vec<u8>),
    ) -> bool {
        const TOGETHER: usize = 256 << 10;
        let mut bytes = Vec::new();
        for at in 0..times {
            let (message, tail) = message(at);
            bytes.extend(encode(&message, &tail).unwrap_or_default());
            if bytes.len() >= TOGETHER && !self.raw(std::mem::take(&mut bytes)) {
                return false;
            }
        }
        self.raw(bytes)
    }

    /// Nothing more is said.
    pub fn finish(&mut self) {
        self.send.finish();
    }

    /// The next message of the other end.
    pub fn hear(&mut self) -> Option<Vec<u8>> {
        loop {
            if let Some(body) = frame(&self.heard).ok()? {
                let (body, whole) = (body.to_vec(), frame_len(body));
                self.heard.drain(..whole);
                return Some(body);
            }
            let receive = self.receive.as_mut()?;
            let run = wait(receive.read_chunk(), &Stop::default(), soon()).ok()?.ok()??;
            run.pieces().for_each(|piece| self.heard.extend_from_slice(piece));
        }
    }

    /// Lets the other end say whatever it likes, and hears none of it.
    pub fn let_talk(&mut self) {
        if let Some(mut receive) = self.receive.take() {
            thread::spawn(move || while let Ok(Some(_)) = block_on(receive.read_chunk()) {});
        }
    }

    /// Hears the sender out until a message is the one, and what follows that.
    pub fn hear_until(&mut self, mut is_it: impl FnMut(&FromSender) -> bool) -> Option<FromSender> {
        loop {
            let body = self.hear()?;
            let (message, _) = decode::<FromSender>(&body).ok()?;
            if is_it(&message) {
                return Some(message);
            }
        }
    }

    /// An object of the transport.
    pub fn object(&self) -> Option<ObjectSender> {
        wait(self.connection.open_object(), &Stop::default(), soon()).ok()?.ok()
    }

    /// Waits until the other end has closed.
    pub fn wait(&self, most: Duration) {
        let _ = wait(self.connection.closed(), &Stop::default(), Some(Instant::now() + most));
    }
}

/// Writes to an object; false, when nobody takes it.
pub(crate) fn write(object: &mut ObjectSender, bytes: Vec<u8>) -> bool {
    let write = object.write_chunk(Bytes::from(bytes));
    matches!(wait(write, &Stop::default(), soon()), Ok(Ok(())))
}
