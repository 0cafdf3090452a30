//! A store that one machine serves and another uses, over any carrier.
//!
//! The client asks and the server answers: metadata, listings, whole trees of names, ranges of files, many small files
//! at a time. Bytes of large files travel as objects of the carrier, so that a lost packet delays no other bytes.
//! Everything else travels on ordered streams. A request has a number, and answers come as they are ready, so that a
//! client may have many requests under way.
//!
//! The client decides what is sent when: a server sends nothing that was not asked for, and the client takes back with
//! [`Client::cut`] what has not been sent yet. So a scheduler at the client (`hikyaku-spread`) can distribute work over
//! many servers.
//!
//! Uploads are the other direction: small files whole, large ones in pieces that the server compares with their hashes
//! before it writes them, each on ordered streams of their own ([`Uploads`]).
//!
//! [`RemoteStore`] makes a [`Store`](hikyaku_store::Store) of a client.
//!
//! Bytes of files are proven: with each segment of one mebibyte the server tells its BLAKE3 hash, and
//! [`Incoming::receive`] hands on only segments whose bytes have it. A request for ranges names the size and the time
//! that the client expects of the file; a file that has others, or that changes while it is read, is refused as
//! [`Changed`](hikyaku_store::ErrorKind::Changed), never mixed.
#![forbid(unsafe_code)]

mod calls;
mod client;
mod error;
mod fetcher;
mod incoming;
mod leasing;
mod message;
mod picked;
mod server;
mod store;
mod upload;
mod viewing;

#[cfg(test)]
mod tests;

pub use calls::{LISTED_MAX, Listing};
pub use client::Client;
pub use error::{RemoteError, code_of};
pub use incoming::{Incoming, Outcome, Proven};
pub use leasing::Decided;
pub use message::{
    Answer, Asked, Attempt, Class, Coding, Edit, Entry, Extent, Give, Holder, Lease, Leased,
    Listed, Lock, MachineReport, NewFile, PICKED_RANGES_MAX, PathReport, Patience, Piece, Put,
    Refusal, Reply, Report, Request, RequestId, SMALL_BYTES_MAX, Seen, Taken, View, Wanted, Wish,
};
pub use server::{
    FILES, HIDDEN_PREFIX, Leases, Limits, Locks, Party, Processes, Render, Rendered, ServeError,
    Server, Writes,
};
pub use store::{Flow, Pace, RemoteStore};
pub use upload::Uploads;
pub use viewing::Viewing;
