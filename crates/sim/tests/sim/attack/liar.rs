//! A lying receiver: an honest one whose acknowledgements are changed as they leave.

use hikyaku_proto::{CipherId, KeyPair, Session, Side};
use hikyaku_sim::{Meddler, SimSession};
use hikyaku_units::{Instant, Rate};
use hikyaku_wire::{
    Ack, Frame, PacketKind, Reader, SHORT_HEADER_LEN, ShortHeader, TAG_LEN, is_long,
};
use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

/// What an observer of both ends has seen of the sender's packets.
#[derive(Default)]
pub(crate) struct Seen {
    pub(crate) sent: Vec<Left>,
    /// The largest packet number sent.
    pub(crate) largest_sent: u64,
    /// The largest packet number that arrived.
    pub(crate) largest: u64,
    /// Sent UDP payload.
    pub(crate) bytes: u64,
}

/// A sent datagram.
#[derive(Clone, Copy)]
pub(crate) struct Left {
    pub(crate) at: Instant,
    /// Bytes on the wire, with all headers.
    wire: u64,
    pub(crate) number: Option<u64>,
    /// UDP payload sent until then in total.
    offered: u64,
}

/// Changes an acknowledgement. `None`: it is not sent.
pub(crate) type Lie = Box<dyn FnMut(Instant, &Seen, Ack) -> Option<Ack>>;

/// Changes the server's acknowledgements.
pub(crate) struct Liar {
    keys: KeyPair,
    /// Opens what the server seals.
    other: KeyPair,
    lie: Lie,
    seen: Rc<RefCell<Seen>>,
}

/// Bytes of Ethernet, IP and UDP headers of a datagram.
const HEADER_BYTES: u64 = 66;

impl Liar {
    /// A liar that applies `lie`, and what it observes.
    pub(crate) fn new(lie: Lie) -> (Box<Self>, Rc<RefCell<Seen>>) {
        let seen = Rc::new(RefCell::new(Seen::default()));
        let liar =
            Self { keys: keys(Side::Server), other: keys(Side::Client), lie, seen: seen.clone() };
        (Box::new(liar), seen)
    }

    fn changed(&mut self, now: Instant, mut bytes: Vec<u8>) -> Vec<u8> {
        let Some(frames) = opened(&self.other, &bytes) else { return bytes };
        let seen = self.seen.borrow();
        let frames = frames.into_iter().filter_map(|frame| match frame {
            Frame::Ack(ack) => (self.lie)(now, &seen, ack).map(Frame::Ack),
            other => Some(other),
        });
        bytes.truncate(SHORT_HEADER_LEN);
        frames.for_each(|frame| frame.encode(&mut bytes));
        bytes.resize(bytes.len() + TAG_LEN, 0);
        let header = ShortHeader::decode(&bytes).expect("it was opened");
        let (aad, body) = bytes.split_at_mut(SHORT_HEADER_LEN);
        self.keys.seal.seal(header.packet_number, aad, body);
        bytes
    }
}

impl Meddler for Liar {
    fn on_sent(&mut self, now: Instant, from: Side, bytes: Vec<u8>) -> Vec<Vec<u8>> {
        match from {
            Side::Server => vec![self.changed(now, bytes)],
            Side::Client => {
                let mut seen = self.seen.borrow_mut();
                let number = number(&bytes);
                seen.bytes += bytes.len() as u64;
                let (wire, offered) = (bytes.len() as u64 + HEADER_BYTES, seen.bytes);
                seen.sent.push(Left { at: now, wire, number, offered });
                seen.largest_sent = seen.largest_sent.max(number.unwrap_or(0));
                vec![bytes]
            }
        }
    }

    fn on_arrival(&mut self, _: Instant, to: Side, bytes: Vec<u8>) -> Vec<(Duration, Vec<u8>)> {
        if to == Side::Server {
            let mut seen = self.seen.borrow_mut();
            seen.largest = seen.largest.max(number(&bytes).unwrap_or(0));
        }
        vec![(Duration::ZERO, bytes)]
    }
}

impl Seen {
    /// The maximum bytes sent in any interval of this length, as a fraction of what a link of
    /// `rate` carries.
    pub(crate) fn most(&self, rate: Rate, time: Duration) -> f64 {
        let (mut most, mut sum, mut from) = (0, 0, 0);
        for left in &self.sent {
            sum += left.wire;
            while left.at - self.sent[from].at > time {
                sum -= self.sent[from].wire;
                from += 1;
            }
            most = most.max(sum);
        }
        most as f64 / rate.bytes_per_sec() / time.as_secs_f64()
    }

    /// What was sent from `from` on, as (datagrams, bytes).
    pub(crate) fn since(&self, from: Instant) -> (usize, u64) {
        let later = self.sent.iter().filter(|left| left.at >= from);
        later.fold((0, 0), |(count, sum), left| (count + 1, sum + left.wire))
    }

    /// When this packet number was sent, and the payload sent until then.
    pub(crate) fn of(&self, number: u64) -> Option<(Instant, u64)> {
        let index = self.sent.partition_point(|left| left.number.is_none_or(|n| n < number));
        let left = self.sent.get(index).filter(|left| left.number == Some(number))?;
        Some((left.at, left.offered))
    }
}

/// The packet number of a short-header packet.
pub(crate) fn number(datagram: &[u8]) -> Option<u64> {
    let header = ShortHeader::decode(datagram).ok().filter(|_| !is_long(datagram))?;
    Some(header.packet_number)
}

/// The first data keys of an end.
pub(crate) fn keys(side: Side) -> KeyPair {
    let chain = SimSession::new(side, Vec::new()).data_keys(CipherId::Aegis128L);
    chain.expect("the simulator has every cipher").next_pair()
}

/// The frames of a control packet.
fn opened(keys: &KeyPair, datagram: &[u8]) -> Option<Vec<Frame>> {
    let header = ShortHeader::decode(datagram).ok().filter(|_| !is_long(datagram))?;
    if header.kind != PacketKind::Control {
        return None;
    }
    let (aad, body) = datagram.split_at(SHORT_HEADER_LEN);
    let mut body = body.to_vec();
    let len = keys.open.open(header.packet_number, aad, &mut body)?;
    let mut reader = Reader::new(&body[..len]);
    let frames = std::iter::from_fn(|| Frame::decode(&mut reader).ok().flatten());
    Some(frames.collect())
}
