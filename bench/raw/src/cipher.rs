//! Sealing and opening one packet: each cipher in place and from one buffer into another.

use crate::packet::{HEADER, TAG, TRAILER};
use aegis::aegis128l::Aegis128L;
use aegis::aegis128x2::Aegis128X2;
use anyhow::{Result, anyhow};
use aws_lc_rs::aead::{self, Aad, LessSafeKey, Nonce, UnboundKey};
use clap::ValueEnum;
use serde::Serialize;

/// What is done to a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Cipher {
    /// AEGIS-128L.
    Aegis128l,
    /// AEGIS-128X2: two of the former side by side, for processors with wide AES instructions.
    Aegis128x2,
    /// AES-128-GCM.
    Aes128gcm,
    /// ChaCha20-Poly1305.
    Chacha20,
    /// Nothing: what the system calls cost.
    None,
    /// A copy where the cipher would be, in the mode out of place; as nothing otherwise.
    Memcpy,
}

/// Where the plaintext lies.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Mode {
    /// In the packet, as if read there from a file; the receiver leaves it there.
    Inplace,
    /// In another buffer, copied to or from the packet beside the cipher.
    Copy,
    /// In another buffer, with the cipher going from one to the other.
    Outofplace,
}

impl Cipher {
    /// In the order of their discriminants.
    pub(crate) const ALL: [Self; 6] = [
        Self::Aegis128l,
        Self::Aegis128x2,
        Self::Aes128gcm,
        Self::Chacha20,
        Self::None,
        Self::Memcpy,
    ];
}

impl Mode {
    /// In the order of their discriminants.
    pub(crate) const ALL: [Self; 3] = [Self::Inplace, Self::Copy, Self::Outofplace];
}

/// A cipher with its key. The key is no secret: this program measures.
pub(crate) enum Aead {
    Aegis([u8; 16]),
    AegisX2([u8; 16]),
    AwsLc(Box<LessSafeKey>),
    None,
    Memcpy,
}

impl Aead {
    pub(crate) fn new(cipher: Cipher) -> Result<Self> {
        let aws_lc = |algorithm, key: &[u8]| -> Result<Self> {
            Ok(Self::AwsLc(Box::new(LessSafeKey::new(UnboundKey::new(algorithm, key)?))))
        };
        match cipher {
            Cipher::Aegis128l => Ok(Self::Aegis([7; 16])),
            Cipher::Aegis128x2 => Ok(Self::AegisX2([7; 16])),
            Cipher::Aes128gcm => aws_lc(&aead::AES_128_GCM, &[7; 16]),
            Cipher::Chacha20 => aws_lc(&aead::CHACHA20_POLY1305, &[7; 32]),
            Cipher::None => Ok(Self::None),
            Cipher::Memcpy => Ok(Self::Memcpy),
        }
    }

    /// Seals what lies between the header and the tag of `packet`.
    pub(crate) fn seal_in_place(&self, number: u64, packet: &mut [u8]) -> Result<()> {
        let (header, body, tag) = parts(packet)?;
        match self {
            Self::Aegis(key) => {
                *tag = aegis(key, number).encrypt_in_place(body, header);
            }
            Self::AegisX2(key) => {
                *tag = aegis_x2(key, number).encrypt_in_place(body, header);
            }
            Self::AwsLc(key) => {
                let made =
                    key.seal_in_place_separate_tag(nonce(number), Aad::from(*header), body)?;
                tag.copy_from_slice(made.as_ref());
            }
            Self::None | Self::Memcpy => {}
        }
        Ok(())
    }

    /// Seals `payload` and `trailer` into `packet`, whose header is written already.
    pub(crate) fn seal_from(
        &self,
        number: u64,
        payload: &[u8],
        trailer: &[u8; TRAILER],
        packet: &mut [u8],
    ) -> Result<()> {
        let (header, rest) = packet.split_first_chunk_mut::<HEADER>().ok_or_else(too_short)?;
        let (body, tail) = rest.split_at_mut(payload.len());
        match self {
            Self::Aegis(key) => {
                let mut encryptor = aegis(key, number).encryptor(header);
                encryptor.update(payload, body);
                encryptor.update(trailer, &mut tail[..TRAILER]);
                tail[TRAILER..].copy_from_slice(&encryptor.finalize());
            }
            Self::AegisX2(key) => {
                let mut encryptor = aegis_x2(key, number).encryptor(header);
                encryptor.update(payload, body);
                encryptor.update(trailer, &mut tail[..TRAILER]);
                tail[TRAILER..].copy_from_slice(&encryptor.finalize());
            }
            Self::AwsLc(key) => {
                let aad = Aad::from(*header);
                key.seal_out_of_place_scatter(nonce(number), aad, payload, body, trailer, tail)?;
            }
            Self::None => {}
            Self::Memcpy => {
                body.copy_from_slice(payload);
                tail[..TRAILER].copy_from_slice(trailer);
            }
        }
        Ok(())
    }

    /// Opens `packet` where it lies.
    pub(crate) fn open_in_place(&self, number: u64, packet: &mut [u8]) -> Result<()> {
        let (header, body, tag) = parts(packet)?;
        match self {
            Self::Aegis(key) => {
                aegis(key, number).decrypt_in_place(body, tag, header).map_err(|_| forged())?;
            }
            Self::AegisX2(key) => {
                aegis_x2(key, number).decrypt_in_place(body, tag, header).map_err(|_| forged())?;
            }
            Self::AwsLc(key) => {
                key.open_in_place_separate_tag(nonce(number), Aad::from(*header), tag, body)
                    .map_err(|_| forged())?;
            }
            Self::None | Self::Memcpy => {}
        }
        Ok(())
    }

    /// Opens `packet` into `plain`, which is as long as payload and trailer together.
    pub(crate) fn open_into(&self, number: u64, packet: &mut [u8], plain: &mut [u8]) -> Result<()> {
        let (header, body, tag) = parts(packet)?;
        match self {
            Self::Aegis(key) => {
                let cipher = aegis(key, number);
                let mut decryptor = cipher.decryptor(header, plain);
                decryptor.update(body).map_err(|_| too_short())?;
                decryptor.finalize(tag).map_err(|_| forged())?;
            }
            Self::AegisX2(key) => {
                let cipher = aegis_x2(key, number);
                let mut decryptor = cipher.decryptor(header, plain);
                decryptor.update(body).map_err(|_| too_short())?;
                decryptor.finalize(tag).map_err(|_| forged())?;
            }
            Self::AwsLc(key) => {
                let aad = Aad::from(*header);
                key.open_separate_gather(nonce(number), aad, body, tag, plain)
                    .map_err(|_| forged())?;
            }
            Self::None => {}
            Self::Memcpy => plain.copy_from_slice(body),
        }
        Ok(())
    }
}

/// The sealed part of a packet.
pub(crate) fn body(packet: &mut [u8]) -> &mut [u8] {
    let end = packet.len() - TAG;
    &mut packet[HEADER..end]
}

type Parts<'a> = (&'a mut [u8; HEADER], &'a mut [u8], &'a mut [u8; TAG]);

fn parts(packet: &mut [u8]) -> Result<Parts<'_>> {
    let (header, rest) = packet.split_first_chunk_mut().ok_or_else(too_short)?;
    let (body, tag) = rest.split_last_chunk_mut().ok_or_else(too_short)?;
    Ok((header, body, tag))
}

fn aegis(key: &[u8; 16], number: u64) -> Aegis128L<TAG> {
    Aegis128L::new(key, &aegis_nonce(number))
}

fn aegis_x2(key: &[u8; 16], number: u64) -> Aegis128X2<TAG> {
    Aegis128X2::new(key, &aegis_nonce(number))
}

fn aegis_nonce(number: u64) -> [u8; 16] {
    let mut nonce = [0; 16];
    nonce[8..].copy_from_slice(&number.to_le_bytes());
    nonce
}

fn nonce(number: u64) -> Nonce {
    let mut nonce = [0; 12];
    nonce[4..].copy_from_slice(&number.to_le_bytes());
    Nonce::assume_unique_for_key(nonce)
}

fn forged() -> anyhow::Error {
    anyhow!("a packet does not open")
}

fn too_short() -> anyhow::Error {
    anyhow!("a packet is too short")
}

#[cfg(test)]
mod tests;
