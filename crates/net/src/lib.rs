//! Encrypted connections over UDP for long fat networks: many streams and objects in one connection.
//!
//! An [`Endpoint`] connects and a [`Listener`] accepts. Both yield a [`Connection`], which carries
//! any number of [`Stream`]s (ordered bytes in both directions) and objects ([`ObjectSender`] and
//! [`ObjectReceiver`]: bytes in one direction, delivered with their offsets in the order in which
//! they arrive).
//!
//! # Executors
//!
//! The async functions run on any executor, and need no reactor of an async runtime: each endpoint
//! has a driver thread, which owns the socket and wakes the tasks. The traits
//! [`AsyncRead`](tokio::io::AsyncRead) and [`AsyncWrite`](tokio::io::AsyncWrite) of Tokio are
//! implemented for streams. [`blocking`] has the same operations without async.
//!
//! ```text
//!   handles ── queues, counters ──▶ driver thread ── owns ──▶ socket, all connections
//!      ◀──────── queues, wakers ────────┘
//! ```
//!
//! # Streams
//!
//! A stream in each direction, over loopback:
//!
//! ```
//! use hikyaku_net::blocking::block_on;
//! use hikyaku_net::{
//!     Bytes, ConnectConfig, Endpoint, EndpointConfig, Identity, Listener, ListenerConfig,
//!     ServerCredentials, Trust,
//! };
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let identity = Identity::generate()?;
//! let config = ListenerConfig::new(ServerCredentials::new(&identity));
//! let listener = Listener::bind("127.0.0.1:0".parse()?, config)?;
//! let endpoint = Endpoint::bind("127.0.0.1:0".parse()?, EndpointConfig::default())?;
//! // The client accepts the server that holds this key, and no other.
//! let config = ConnectConfig::new(Trust::Pinned(identity.fingerprint()));
//!
//! // Any executor does; `block_on` runs one task on the calling thread.
//! block_on(async {
//!     let client = endpoint.connect(listener.local_addr(), config).await?;
//!     let server = listener.accept().await?;
//!
//!     let mut question = client.open_stream().await?;
//!     question.write_chunk(Bytes::from_static(b"how far is it?")).await?;
//!     question.finish();
//!
//!     // The peer learns of a stream from its first bytes.
//!     let mut answer = server.accept_stream().await?;
//!     let mut received = Vec::new();
//!     while let Some(run) = answer.read_chunk().await? {
//!         received.extend(run.to_vec());
//!     }
//!     assert_eq!(received, b"how far is it?");
//!
//!     answer.write_chunk(Bytes::from_static(b"200 ms")).await?;
//!     answer.finish();
//!     let run = question.read_chunk().await?.expect("the answer is not empty");
//!     assert_eq!(run.to_vec(), b"200 ms");
//!     Ok(())
//! })
//! # }
//! ```
//!
//! # Objects
//!
//! A lost packet delays nothing but its own bytes, so an object suits data that has a place to go
//! to, such as a file:
//!
//! ```
//! # use hikyaku_net::blocking::block_on;
//! # use hikyaku_net::{
//! #     Bytes, ConnectConfig, Endpoint, EndpointConfig, Identity, Listener, ListenerConfig,
//! #     ServerCredentials, Trust,
//! # };
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let identity = Identity::generate()?;
//! # let config = ListenerConfig::new(ServerCredentials::new(&identity));
//! # let listener = Listener::bind("127.0.0.1:0".parse()?, config)?;
//! # let endpoint = Endpoint::bind("127.0.0.1:0".parse()?, EndpointConfig::default())?;
//! # let config = ConnectConfig::new(Trust::Pinned(identity.fingerprint()));
//! # block_on(async {
//! # let client = endpoint.connect(listener.local_addr(), config).await?;
//! # let server = listener.accept().await?;
//! let mut sender = client.open_object().await?;
//! sender.write_chunk(Bytes::from(vec![7; 100_000])).await?;
//! sender.finish();
//!
//! let mut receiver = server.accept_object().await?;
//! let mut file = vec![0; 100_000];
//! while let Some((offset, run)) = receiver.next().await? {
//!     let at = offset as usize;
//!     file[at..at + run.len()].copy_from_slice(&run.to_vec());
//! }
//! assert!(file.iter().all(|byte| *byte == 7));
//! // The peer's transport has acknowledged every byte.
//! sender.delivered().await?;
//! # Ok(())
//! # })
//! # }
//! ```
//!
//! # Back-pressure and ends
//!
//! A write waits while the driver holds enough bytes to send. A peer waits while the reader here
//! has enough bytes to read. A stream's end is reported only if the peer finished the stream and
//! the reader has read all of it; every other end is an error.
//!
//! A program ends with [`Endpoint::shutdown`] or [`Listener::shutdown`], which wait until the peers
//! have acknowledged the close. Dropping an endpoint does not block; its driver thread continues until
//! the peers have done so, or the process exits ([`OnDrop`]).
#![forbid(unsafe_code)]
#![warn(missing_debug_implementations)]

pub mod blocking;
mod budget;
mod clock;
mod codes;
mod command;
mod config;
mod connect;
mod connection;
mod crew;
mod driver;
mod endpoint;
mod error;
mod ids;
mod inbox;
mod link;
mod listener;
mod load;
mod lobby;
mod mailbox;
mod notify;
mod object;
mod outbox;
mod paths;
mod pool;
mod receive_half;
mod reply;
mod round_trip;
mod route;
mod send_half;
mod stream;
mod sync;
mod target;
mod tune;

pub use codes::{AppCode, StreamCode};
pub use config::{ConnectConfig, Drivers, EndpointConfig, ListenerConfig, OnDrop};
pub use connection::Connection;
pub use endpoint::Endpoint;
pub use error::{AcceptError, ConnectError, EndpointError, OpenError, ReadError, WriteError};
pub use listener::Listener;
pub use object::{ObjectReceiver, ObjectSender};
pub use paths::{Memory, PathCache, UdpSeen};
pub use receive_half::ReceiveHalf;
pub use round_trip::LeastRoundTrip;
pub use send_half::SendHalf;
pub use stream::Stream;
pub use target::{Target, TargetError};

// Types of other crates that the interface mentions. A program depends on this crate alone.
pub use bytes::Bytes;
pub use hikyaku_crypto::{
    ClientCredentials, CreateIdentity, Fingerprint, Identity, KnownPeer, KnownPeers, LoadIdentity,
    NotAFingerprint, NotAPeerName, NotASecret, ReadKnownPeers, Secret, ServerCredentials,
    SettleTrust, StartClient, Trust, TrustOutcome, UnknownCipher, Untrusted, WriteKnownPeers,
    cipher_name, parse_cipher,
};
pub use hikyaku_proto::{
    CipherId, CloseReason, Config, Delivery, Holdings, NoPolicy, PathHint, Phase, Policy, Priority,
    Run, Side, Snapshot, StalledStreams, Stats, StreamId, StreamKind, StreamTotals, code,
};
pub use hikyaku_udp::{BindError, Family, Granted, Offload, SocketOptions, Support};
pub use hikyaku_units::{DataSize, ParseUnitError, Probability, Rate};
pub use hikyaku_wire::Version;

#[cfg(test)]
mod tests;
