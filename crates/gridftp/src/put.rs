//! Uploads in extended block mode: this end connects, and deals blocks to whichever connection has room.

use crate::block::{data_header, end_header};
use crate::control::is_pause;
use crate::error::FtpError;
use crate::transfer::{Flow, Part};
use std::io::{self, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Supplies the bytes at an offset; all of them.
pub(crate) type Supply<'a> = dyn Fn(u64, &mut [u8]) -> io::Result<()> + Sync + 'a;

/// The blocks of a part that are not dealt yet.
#[derive(Debug)]
pub(crate) struct Deal {
    /// Offset of the part in the file.
    offset: u64,
    length: u64,
    next: AtomicU64,
    block_bytes: u64,
    connections: u32,
    /// Connections that still send. The last of them tells how many there were.
    unfinished: AtomicU32,
}

impl Deal {
    pub(crate) fn new(part: &Part<'_>, block_bytes: u32, connections: u32) -> Self {
        Self {
            offset: part.offset,
            length: part.length,
            next: AtomicU64::new(0),
            block_bytes: u64::from(block_bytes.max(1)),
            connections,
            unfinished: AtomicU32::new(connections),
        }
    }

    /// The next block: its offset within the part, and its length.
    fn next(&self) -> Option<(u64, u64)> {
        let at = self.next.fetch_add(self.block_bytes, Ordering::Relaxed);
        (at < self.length).then(|| (at, self.block_bytes.min(self.length - at)))
    }
}

/// Sends blocks over one connection until none is left. Failures end the flow.
pub(crate) fn send(
    mut stream: TcpStream,
    flow: &Flow<'_>,
    deal: &Deal,
    supply: &Supply<'_>,
) -> Option<TcpStream> {
    match send_all(&mut stream, flow, deal, supply) {
        Ok(()) => Some(stream),
        Err(error) => {
            flow.fail(error);
            None
        }
    }
}

fn send_all(
    stream: &mut TcpStream,
    flow: &Flow<'_>,
    deal: &Deal,
    supply: &Supply<'_>,
) -> Result<(), FtpError> {
    let mut bytes = Vec::new();
    while let Some((at, length)) = deal.next() {
        bytes.resize(length as usize, 0);
        flow.locally(|| supply(deal.offset + at, &mut bytes)).map_err(FtpError::Local)?;
        write(stream, flow, &data_header(at, length))?;
        for piece in bytes.chunks(64 << 10) {
            write(stream, flow, piece)?;
            flow.counted.fetch_add(piece.len() as u64, Ordering::Relaxed);
        }
    }
    let is_last = deal.unfinished.fetch_sub(1, Ordering::AcqRel) == 1;
    let end = end_header(is_last.then_some(u64::from(deal.connections)));
    write(stream, flow, &end)
}

fn write(stream: &mut TcpStream, flow: &Flow<'_>, mut bytes: &[u8]) -> Result<(), FtpError> {
    while !bytes.is_empty() {
        if flow.is_over() {
            return Err(FtpError::Stopped);
        }
        match stream.write(bytes) {
            Ok(written) => bytes = &bytes[written..],
            Err(error) if is_pause(error.kind()) => {}
            Err(error) => return Err(FtpError::Data(error)),
        }
    }
    Ok(())
}
