//! The ciphers that seal packets.
//!
//! The nonce is the IV XOR the packet number, which is encoded big endian into the last eight bytes
//! (as in RFC 9001, section 5.3). The packet header is the additional data. The security of all
//! these ciphers requires that no packet number is used twice under one key.

use aegis::aegis128l::Aegis128L;
use aws_lc_rs::aead::{AES_128_GCM, Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};
use hikyaku_proto::{CipherId, PacketKey};
use hikyaku_wire::TAG_LEN;
use zeroize::Zeroizing;

#[cfg(test)]
mod tests;

/// The blocks that AES-GCM may process under one key: 2^35.5. An attacker who sees all of them has
/// an advantage of (2^35.5)^2 / 2^128 = 2^-57 (RFC 9001, appendix B.1).
const GCM_BLOCKS_MAX: u64 = 48_592_007_999;
/// The blocks of a packet in addition to its payload: one each for the header, the lengths and the
/// mask of the tag.
const GCM_EXTRA_BLOCKS: u64 = 3;
/// The packets that one key of AEGIS-128L or ChaCha20-Poly1305 may seal: 2^36. These ciphers have
/// no limit below the number of packet numbers (RFC 9001, section 6.6, for ChaCha20-Poly1305). This
/// one bounds the data exposed by the loss of one key, and lasts two hours at ten million packets a
/// second.
const PACKETS_PER_KEY_MAX: u64 = 1 << 36;
/// The largest UDP payload in bytes, used if the peer's limit is not known.
pub(crate) const DATAGRAM_BYTES_MAX: u64 = 65_535;

/// The source of the key material of one direction.
pub(crate) trait KeyMaterial {
    /// The key of a cipher.
    fn key<const N: usize>(&self) -> Zeroizing<[u8; N]>;
    /// The IV, which is combined with packet numbers.
    fn iv<const N: usize>(&self) -> Zeroizing<[u8; N]>;
}

/// The key of `cipher` for datagrams of at most `max_datagram` bytes.
pub(crate) fn packet_key(
    cipher: CipherId,
    material: &impl KeyMaterial,
    max_datagram: u64,
) -> Box<dyn PacketKey> {
    match cipher {
        CipherId::Aegis128L => Box::new(AegisKey { key: material.key(), iv: material.iv() }),
        CipherId::Aes128Gcm => Box::new(AeadKey {
            key: unbound(&AES_128_GCM, material.key::<16>().as_slice()),
            iv: material.iv(),
            limit: gcm_packets(max_datagram),
        }),
        CipherId::ChaCha20Poly1305 => Box::new(AeadKey {
            key: unbound(&CHACHA20_POLY1305, material.key::<32>().as_slice()),
            iv: material.iv(),
            limit: PACKETS_PER_KEY_MAX,
        }),
    }
}

/// The packets of at most `max_datagram` bytes that AES-GCM may seal under one key: 2^28.9 of 1472
/// bytes, 2^26.3 of 9000, 2^23.5 of 65,535.
const fn gcm_packets(max_datagram: u64) -> u64 {
    GCM_BLOCKS_MAX / (max_datagram.div_ceil(16) + GCM_EXTRA_BLOCKS)
}

fn unbound(algorithm: &'static aws_lc_rs::aead::Algorithm, key: &[u8]) -> LessSafeKey {
    let key = UnboundKey::new(algorithm, key).expect("the key has the algorithm's length");
    LessSafeKey::new(key)
}

/// `iv` XOR the packet number.
fn nonce<const N: usize>(iv: &[u8; N], packet_number: u64) -> [u8; N] {
    let mut nonce = *iv;
    for (byte, number) in nonce[N - 8..].iter_mut().zip(packet_number.to_be_bytes()) {
        *byte ^= number;
    }
    nonce
}

/// Splits a buffer into plaintext and the place of the tag.
fn split_tag(buffer: &mut [u8]) -> (&mut [u8], &mut [u8; TAG_LEN]) {
    buffer.split_last_chunk_mut().expect("who seals leaves room for the tag")
}

/// AEGIS-128L, in place.
struct AegisKey {
    key: Zeroizing<[u8; 16]>,
    iv: Zeroizing<[u8; 16]>,
}

impl AegisKey {
    fn cipher(&self, packet_number: u64) -> Aegis128L<TAG_LEN> {
        Aegis128L::new(&self.key, &nonce(&self.iv, packet_number))
    }
}

impl PacketKey for AegisKey {
    fn seal(&self, packet_number: u64, header: &[u8], buffer: &mut [u8]) {
        let (body, tag) = split_tag(buffer);
        *tag = self.cipher(packet_number).encrypt_in_place(body, header);
    }

    fn open(&self, packet_number: u64, header: &[u8], buffer: &mut [u8]) -> Option<usize> {
        let (body, tag) = buffer.split_last_chunk_mut()?;
        self.cipher(packet_number).decrypt_in_place(body, tag, header).ok()?;
        Some(body.len())
    }

    fn packet_limit(&self) -> u64 {
        PACKETS_PER_KEY_MAX
    }
}

/// AES-128-GCM or ChaCha20-Poly1305.
struct AeadKey {
    key: LessSafeKey,
    iv: Zeroizing<[u8; 12]>,
    limit: u64,
}

impl PacketKey for AeadKey {
    fn seal(&self, packet_number: u64, header: &[u8], buffer: &mut [u8]) {
        let nonce = Nonce::assume_unique_for_key(nonce(&self.iv, packet_number));
        let (body, tag) = split_tag(buffer);
        let sealed = self.key.seal_in_place_separate_tag(nonce, Aad::from(header), body);
        let sealed = sealed.expect("only bodies of many gigabytes are refused");
        tag.copy_from_slice(sealed.as_ref());
    }

    fn open(&self, packet_number: u64, header: &[u8], buffer: &mut [u8]) -> Option<usize> {
        let nonce = Nonce::assume_unique_for_key(nonce(&self.iv, packet_number));
        let opened = self.key.open_in_place(nonce, Aad::from(header), buffer).ok()?;
        Some(opened.len())
    }

    fn packet_limit(&self) -> u64 {
        self.limit
    }
}

/// A TLS key for handshake packets.
pub(crate) struct HandshakeKey(pub(crate) Box<dyn rustls::quic::PacketKey>);

impl PacketKey for HandshakeKey {
    fn seal(&self, packet_number: u64, header: &[u8], buffer: &mut [u8]) {
        let (body, tag) = split_tag(buffer);
        let sealed = self.0.encrypt_in_place(packet_number, header, body);
        tag.copy_from_slice(sealed.expect("only bodies of many gigabytes are refused").as_ref());
    }

    fn open(&self, packet_number: u64, header: &[u8], buffer: &mut [u8]) -> Option<usize> {
        let opened = self.0.decrypt_in_place(packet_number, header, buffer).ok()?;
        Some(opened.len())
    }

    fn packet_limit(&self) -> u64 {
        self.0.confidentiality_limit()
    }
}
