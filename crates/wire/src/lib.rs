//! The wire format of `docs/internals/protocol.md`: packet headers, frames, acknowledgements and transport
//! parameters. When they are sent is decided elsewhere.
//!
//! Decoders take a peer's bytes. They check every length and count before use. Malformed input
//! gives a [`DecodeError`]; it never causes a panic, nor an allocation larger than the input.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod ack;
mod error;
mod frame;
mod header;
mod params;
mod varint;

pub use ack::{Ack, Block, MAX_BLOCK_LEN, Sample};
pub use error::DecodeError;
pub use frame::{Frame, StreamId, StreamKind};
pub use header::{
    ConnectionId, KeyPhase, LONG_HEADER_LEN, LongHeader, LongType, MIN_INITIAL_LEN, PacketKind,
    SHORT_HEADER_LEN, ShortHeader, TAG_LEN, TRAILER_LEN, Trailer, Version, expand_packet_number,
    is_long,
};
pub use params::{CipherId, Params};
pub use varint::{Reader, put_varint, varint_len};

/// Bytes that a data packet adds to its payload: header, trailer and authentication tag.
pub const DATA_OVERHEAD: usize = SHORT_HEADER_LEN + TRAILER_LEN + TAG_LEN;
