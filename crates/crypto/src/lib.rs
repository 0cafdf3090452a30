//! Encryption and authentication of connections, behind the traits of `hikyaku-proto`.
//!
//! The handshake is TLS 1.3 by `rustls` in its QUIC form (RFC 9001), with a post-quantum key
//! exchange. The data keys are derived from the TLS exporter through a one-way chain, so the data
//! may use AEGIS-128L, which has no TLS cipher suite. A server is authenticated by the fingerprint
//! of its public key, as in ssh: pinned by the caller, or remembered at first use. All primitives
//! come from `aws-lc-rs` and `aegis`; this crate only composes them.
//!
//! The crate opens no socket. It reads and writes two files, the identity and the list of known
//! servers, and only when the caller asks.
#![forbid(unsafe_code)]

mod base64;
mod chain;
mod cipher;
mod client;
mod cores;
mod date;
mod fingerprint;
mod identity;
mod known_peers;
mod packet_key;
mod peer;
mod private_file;
mod provider;
mod public_key;
mod random;
mod raw_key;
mod secret;
mod server;
mod session;
mod stream;
#[cfg(test)]
mod testing;
mod token;
mod trust;

pub use cipher::{UnknownCipher, cipher_name, parse_cipher, preferred_ciphers};
pub use client::{ClientCredentials, StartClient};
pub use cores::leave_no_core;
pub use fingerprint::{Fingerprint, NotAFingerprint};
pub use identity::{CreateIdentity, Identity, LoadIdentity};
pub use known_peers::{KnownPeer, KnownPeers, ReadKnownPeers, Recorded, WriteKnownPeers};
pub use peer::{NotAPeerName, NotPeers, PeerName, Peers};
pub use public_key::{NotAPublicKey, PublicKey};
pub use random::{random_array, random_u64};
pub use secret::{NotASecret, Secret};
pub use server::{ServerCredentials, StartServer};
pub use session::TlsSession;
pub use stream::{Handshake, TlsReader, TlsStream, TlsWriter};
pub use token::TokenKey;
pub use trust::{PeerKey, SettleTrust, Trust, TrustHandle, TrustOutcome, Untrusted};
