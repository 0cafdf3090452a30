//! The one-way chain of data keys.
//!
//! The TLS exporter provides the first secret. Each generation expands its secret (HKDF-Expand, RFC
//! 5869) into a key and an IV for each direction, and into the secret of the next generation. The
//! old secret is then erased. So an attacker who takes over the machine cannot decrypt recorded
//! packets of earlier generations.

use crate::packet_key::{KeyMaterial, packet_key};
use aws_lc_rs::hkdf::{HKDF_SHA256, KeyType, Prk};
use hikyaku_proto::{CipherId, KeyChain, KeyPair, Side};
use zeroize::Zeroizing;

#[cfg(test)]
mod tests;

/// The secret of one generation.
pub(crate) type Secret = Zeroizing<[u8; 32]>;

/// The data keys of one end of a connection, generation by generation.
pub(crate) struct DataChain {
    secret: Secret,
    cipher: CipherId,
    side: Side,
    max_datagram: u64,
}

impl DataChain {
    /// A chain whose first generation expands `secret`.
    pub(crate) const fn new(
        secret: Secret,
        cipher: CipherId,
        side: Side,
        max_datagram: u64,
    ) -> Self {
        Self { secret, cipher, side, max_datagram }
    }
}

impl KeyChain for DataChain {
    fn next_pair(&mut self) -> KeyPair {
        let generation = Prk::new_less_safe(HKDF_SHA256, self.secret.as_slice());
        let key = |direction: Direction| {
            packet_key(
                self.cipher,
                &Branch { generation: &generation, direction },
                self.max_datagram,
            )
        };
        let (up, down) = (key(Direction::ClientToServer), key(Direction::ServerToClient));
        // `Zeroizing` erases the old secret when it is dropped here.
        self.secret = expand(&generation, &[b"hikyaku next"]);
        match self.side {
            Side::Client => KeyPair { seal: up, open: down },
            Side::Server => KeyPair { seal: down, open: up },
        }
    }
}

#[derive(Clone, Copy)]
enum Direction {
    ClientToServer,
    ServerToClient,
}

impl Direction {
    const fn label(self) -> &'static [u8] {
        match self {
            Self::ClientToServer => b"hikyaku client ",
            Self::ServerToClient => b"hikyaku server ",
        }
    }
}

/// The key material of one direction in one generation.
struct Branch<'a> {
    generation: &'a Prk,
    direction: Direction,
}

impl KeyMaterial for Branch<'_> {
    fn key<const N: usize>(&self) -> Zeroizing<[u8; N]> {
        expand(self.generation, &[self.direction.label(), b"key"])
    }

    fn iv<const N: usize>(&self) -> Zeroizing<[u8; N]> {
        expand(self.generation, &[self.direction.label(), b"iv"])
    }
}

struct Length(usize);

impl KeyType for Length {
    fn len(&self) -> usize {
        self.0
    }
}

fn expand<const N: usize>(secret: &Prk, label: &[&[u8]]) -> Zeroizing<[u8; N]> {
    let mut out = Zeroizing::new([0; N]);
    secret
        .expand(label, Length(N))
        .and_then(|material| material.fill(out.as_mut_slice()))
        .expect("HKDF gives up to 255 hashes of material");
    out
}
