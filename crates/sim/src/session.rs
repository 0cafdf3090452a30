//! A substitute for TLS: the same flights and sizes, with keys that detect corruption but keep
//! nothing secret.

use hikyaku_proto::{
    CipherId, ConnectionId, KeyChain, KeyPair, PacketKey, Session, SessionError, Side,
};
use hikyaku_wire::{LongHeader, LongType};

/// Sizes of the handshake messages, as in TLS 1.3 with a post-quantum key share: the client hello
/// takes two packets, the server's flight two to three.
const HELLO_BYTES: usize = 1300;
const CERTIFICATE_BYTES: usize = 900;
const FINISHED_BYTES: usize = 36;
/// The secret of the handshake keys.
const HANDSHAKE_SECRET: u64 = 0x4853;
/// The secret of the first data keys.
const FIRST_SECRET: u64 = 0xda7b;

/// A handshake for the simulator.
pub struct SimSession {
    side: Side,
    params: Vec<u8>,
    peer_params: Option<Vec<u8>>,
    incoming: Vec<u8>,
    step: Step,
    keys: Option<Box<dyn KeyChain>>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Step {
    ClientHello,
    AwaitServer,
    ClientFinish,
    AwaitClient,
    ServerHello,
    ServerFinish,
    AwaitFinish,
    Complete,
}

impl SimSession {
    /// A session that announces the transport parameters `params`.
    pub fn new(side: Side, params: Vec<u8>) -> Self {
        let step = match side {
            Side::Client => Step::ClientHello,
            Side::Server => Step::AwaitClient,
        };
        let keys: Box<dyn KeyChain> = Box::new(SimChain { generation: 0, side });
        Self { side, params, peer_params: None, incoming: Vec::new(), step, keys: Some(keys) }
    }

    /// A session with other data keys, which `K` derives from the usual ones.
    pub fn with_keys<K: KeyChain + 'static>(
        mut self,
        make: impl FnOnce(Box<dyn KeyChain>) -> K,
    ) -> Self {
        self.keys = self.keys.map(|keys| Box::new(make(keys)) as Box<dyn KeyChain>);
        self
    }

    /// The data keys of `side` after this many key updates. They are public.
    pub fn data_pair(side: Side, generation: u64) -> KeyPair {
        pair(FIRST_SECRET + generation, side)
    }

    /// The handshake keys of `side`.
    pub fn handshake_pair(side: Side) -> KeyPair {
        pair(HANDSHAKE_SECRET, side)
    }

    /// Whether `to` would open this datagram as a packet under handshake keys.
    pub(crate) fn is_of_handshake(datagram: &[u8], to: Side) -> bool {
        let Ok((header, len)) = LongHeader::decode(datagram) else { return false };
        let (aad, sealed) = datagram.split_at(len);
        let number = u64::from(header.packet_number);
        let keys = Self::handshake_pair(to);
        header.kind == LongType::Handshake
            && keys.open.open(number, aad, &mut sealed.to_vec()).is_some()
    }

    fn message(out: &mut Vec<u8>, body: &[u8], size: usize) {
        let len = body.len().max(size);
        out.extend_from_slice(&(len as u32).to_le_bytes());
        out.extend_from_slice(&(body.len() as u32).to_le_bytes());
        out.extend_from_slice(body);
        out.resize(out.len() + len - body.len(), 0x5a);
    }

    fn take(&mut self) -> Option<Vec<u8>> {
        let word = |at: usize| {
            let bytes = self.incoming.get(at..at + 4)?;
            Some(u32::from_le_bytes(bytes.try_into().ok()?) as usize)
        };
        let (len, body) = (word(0)?, word(4)?);
        if self.incoming.len() < 8 + len || body > len {
            return None;
        }
        let message = self.incoming[8..8 + body].to_vec();
        self.incoming.drain(..8 + len);
        Some(message)
    }
}

impl Session for SimSession {
    fn initial_keys(&self, destination: ConnectionId) -> KeyPair {
        pair(destination.0, self.side)
    }

    fn read(&mut self, bytes: &[u8]) -> Result<(), SessionError> {
        self.incoming.extend_from_slice(bytes);
        while let Some(message) = self.take() {
            self.step = match self.step {
                Step::AwaitServer if self.peer_params.is_none() => {
                    self.peer_params = Some(message);
                    Step::AwaitServer
                }
                Step::AwaitServer => Step::ClientFinish,
                Step::AwaitClient => {
                    self.peer_params = Some(message);
                    Step::ServerHello
                }
                Step::AwaitFinish => Step::Complete,
                other => return Err(SessionError(format!("unexpected message in {other:?}"))),
            };
        }
        Ok(())
    }

    fn write(&mut self, out: &mut Vec<u8>) -> Option<KeyPair> {
        match self.step {
            Step::ClientHello => {
                Self::message(out, &self.params, HELLO_BYTES);
                self.step = Step::AwaitServer;
                None
            }
            Step::ServerHello => {
                Self::message(out, &self.params, HELLO_BYTES);
                self.step = Step::ServerFinish;
                Some(Self::handshake_pair(self.side))
            }
            Step::ServerFinish => {
                Self::message(out, b"certificate", CERTIFICATE_BYTES);
                self.step = Step::AwaitFinish;
                None
            }
            Step::ClientFinish => {
                self.step = Step::Complete;
                Self::message(out, b"finished", FINISHED_BYTES);
                None
            }
            // A client has handshake keys as soon as it has the server hello.
            Step::AwaitServer if self.peer_params.is_some() && !self.params.is_empty() => {
                self.params.clear();
                Some(Self::handshake_pair(self.side))
            }
            Step::AwaitServer | Step::AwaitClient | Step::AwaitFinish | Step::Complete => None,
        }
    }

    fn peer_params(&self) -> Option<Vec<u8>> {
        self.peer_params.clone()
    }

    fn is_complete(&self) -> bool {
        self.step == Step::Complete
    }

    fn data_keys(&mut self, _: CipherId) -> Option<Box<dyn KeyChain>> {
        self.keys.take()
    }
}

struct SimChain {
    generation: u64,
    side: Side,
}

impl KeyChain for SimChain {
    fn next_pair(&mut self) -> KeyPair {
        self.generation += 1;
        SimSession::data_pair(self.side, self.generation - 1)
    }
}

fn pair(secret: u64, side: Side) -> KeyPair {
    let client = Box::new(SimKey(secret.wrapping_mul(3)));
    let server = Box::new(SimKey(secret.wrapping_mul(5)));
    match side {
        Side::Client => KeyPair { seal: client, open: server },
        Side::Server => KeyPair { seal: server, open: client },
    }
}

/// A keyed checksum in place of an AEAD.
struct SimKey(u64);

impl SimKey {
    fn tag(&self, packet_number: u64, header: &[u8], body: &[u8]) -> [u8; 16] {
        let state = self.0 ^ packet_number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        // A processor computes four of them at once. Most of a simulation's time is spent here.
        let mut lanes = [0, 1, 2, 3].map(|lane| mixed(state.rotate_left(lane)));
        for part in [header, body] {
            let (blocks, rest) = part.as_chunks::<32>();
            for block in blocks {
                for (lane, word) in lanes.iter_mut().zip(block.as_chunks().0) {
                    *lane = mixed(lane.rotate_left(23) ^ u64::from_le_bytes(*word));
                }
            }
            let (words, rest) = rest.as_chunks();
            for (lane, word) in lanes.iter_mut().zip(words) {
                *lane = mixed(lane.rotate_left(11) ^ u64::from_le_bytes(*word));
            }
            for byte in rest {
                lanes[3] = mixed(lanes[3].rotate_left(7) ^ u64::from(*byte));
            }
        }
        let state = lanes.into_iter().fold(0, |sum: u64, lane| mixed(sum.rotate_left(23) ^ lane));
        let mut tag = [0; 16];
        tag[..8].copy_from_slice(&state.to_le_bytes());
        tag[8..].copy_from_slice(&state.rotate_left(32).to_le_bytes());
        tag
    }
}

/// A multiplication propagates changes upwards only. Without the shift, two flipped bits of a
/// packet could leave its tag unchanged.
const fn mixed(state: u64) -> u64 {
    let product = state.wrapping_mul(0xff51_afd7_ed55_8ccd);
    product ^ product >> 32
}

impl PacketKey for SimKey {
    fn seal(&self, packet_number: u64, header: &[u8], buffer: &mut [u8]) {
        let at = buffer.len() - 16;
        let tag = self.tag(packet_number, header, &buffer[..at]);
        buffer[at..].copy_from_slice(&tag);
    }

    fn open(&self, packet_number: u64, header: &[u8], buffer: &mut [u8]) -> Option<usize> {
        let at = buffer.len().checked_sub(16)?;
        (self.tag(packet_number, header, &buffer[..at]) == buffer[at..]).then_some(at)
    }

    fn packet_limit(&self) -> u64 {
        u64::MAX
    }
}

#[cfg(test)]
mod tests;
