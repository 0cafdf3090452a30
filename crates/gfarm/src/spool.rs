//! A connection to a file-system node (gfsd), which reads and writes files that are open at gfmd.
//!
//! A connection carries one request at a time: gfsd waits for new bytes on the socket before each request, so a request
//! that came together with the one before it would stay unread in its buffer. A range is therefore asked for as a whole
//! (`BULKREAD`) and comes as fast as the path carries it. A reader that has enough before the end leaves the connection
//! unusable, because the node sends the rest.

use crate::account::Account;
use crate::code::Writer;
use crate::config::Address;
use crate::error::{CallError, ConnectError};
use crate::link::{HangUp, Link};
use crate::login::log_in;
use crate::metadata::OpenFile;
use crate::process::Process;
use crate::request::{BLOCK_BYTES_MAX, gfsd};
use std::ops::{ControlFlow, Range};
use std::time::Duration;

mod write;

/// A connection to one node. It carries one request after the other.
#[derive(Debug)]
pub struct Spool {
    pub(crate) link: Link,
    block: Vec<u8>,
    pub(crate) is_usable: bool,
}

/// Ends a connection from another thread.
#[derive(Debug)]
pub struct End(HangUp);

impl End {
    /// Ends it. Whoever reads from it gets an error.
    pub fn now(&self) {
        self.0.now();
    }
}

/// The largest chunk of a range, a limit of gfsd itself.
const CHUNK_BYTES_MAX: usize = 1 << 20;
/// The most bytes that may follow of a range for the connection to be kept when the reader has enough.
const REST_BYTES_MAX: u64 = 1 << 20;

impl Spool {
    /// Connects to a node and logs in.
    ///
    /// # Errors
    ///
    /// The node cannot be reached or does not accept the user.
    pub fn connect(
        server: &Address,
        account: &Account,
        process: &Process,
    ) -> Result<Self, ConnectError> {
        Self::begin(Link::connect(server, account.dial)?, server, account, process)
    }

    /// Logs in and announces the process.
    pub(crate) fn begin(
        mut link: Link,
        server: &Address,
        account: &Account,
        process: &Process,
    ) -> Result<Self, ConnectError> {
        let failed = |error| ConnectError::Call { server: server.to_string(), error };
        log_in(&mut link, server, account)?;
        let mut ask = Writer::default();
        let set = link.send(ask.process(process)).and_then(|()| link.reply.good());
        set.map_err(failed)?;
        Ok(Self { link, block: vec![0; BLOCK_BYTES_MAX], is_usable: true })
    }

    /// The round-trip time to the node, as its connection was made.
    pub const fn round_trip(&self) -> Duration {
        self.link.round_trip
    }

    /// What ends it from another thread.
    ///
    /// # Errors
    ///
    /// The process has no room for another descriptor.
    pub fn end(&self) -> std::io::Result<End> {
        self.link.hang_up().map(End)
    }

    /// Whether it can be used again. It cannot after an error of the connection, or after a reader stopped before the end.
    pub const fn is_usable(&self) -> bool {
        self.is_usable
    }

    /// Opens a file at the node.
    ///
    /// # Errors
    ///
    /// The node refuses it, for example because it has no replica any more; then the connection goes on. Or the connection
    /// has ended.
    pub fn open(&mut self, file: &OpenFile) -> Result<(), CallError> {
        self.call(|ask| ask.int(gfsd::OPEN).int(file.number))
    }

    /// Closes a file at the node. [`Metadata::close`](crate::Metadata::close) comes after this.
    ///
    /// # Errors
    ///
    /// The node does not know the file, or the connection has ended.
    pub fn close(&mut self, file: &OpenFile) -> Result<(), CallError> {
        self.call(|ask| ask.int(gfsd::CLOSE).int(file.number))
    }

    /// Reads a range of an open file and hands each block to `each` with its offset: a block begins where the one before
    /// it ended, and has a mebibyte unless the range ends. `each` stops the reading by `Break`.
    ///
    /// # Errors
    ///
    /// The node has fewer bytes of the file than the range says ([`CallError::Short`]), cannot read it, or the connection
    /// has ended.
    // fuzz: none, the node is read through `Reader`
    pub fn read(
        &mut self,
        file: &OpenFile,
        range: Range<u64>,
        mut each: impl FnMut(u64, &[u8]) -> ControlFlow<()>,
    ) -> Result<(), CallError> {
        if range.is_empty() {
            return Ok(());
        }
        let (from, length) = (range.start.cast_signed(), (range.end - range.start).cast_signed());
        self.send(|ask| ask.int(gfsd::BULKREAD).int(file.number).long(length).long(from))?;
        self.good()?;
        self.is_usable = false;
        let (mut at, mut is_enough) = (range.start, false);
        let mut chunk = 0;
        while at < range.end {
            let length = (range.end - at).min(BLOCK_BYTES_MAX as u64) as usize;
            let mut filled = 0;
            while filled < length {
                if chunk == 0 {
                    chunk = self.link.reply.entries(CHUNK_BYTES_MAX)?;
                }
                if chunk == 0 {
                    // The end of the file, or the disk failed: the node's reason follows.
                    self.good()?;
                    return Err(CallError::Short);
                }
                let part = chunk.min(length - filled);
                self.link.reply.fill(&mut self.block[filled..filled + part])?;
                filled += part;
                chunk -= part;
            }
            is_enough = is_enough || each(at, &self.block[..length]).is_break();
            at += length as u64;
            if is_enough && range.end - at > REST_BYTES_MAX {
                return Ok(());
            }
        }
        if chunk != 0 || self.link.reply.entries(CHUNK_BYTES_MAX)? != 0 {
            return Err(CallError::Protocol("more bytes than were asked for"));
        }
        self.good()
    }

    /// Reads an open file of at most a mebibyte whole.
    ///
    /// # Errors
    ///
    /// As for [`Self::read`].
    pub fn read_small(&mut self, file: &OpenFile) -> Result<&[u8], CallError> {
        let size = file.stat.size.min(BLOCK_BYTES_MAX as u64) as i32;
        self.call(|ask| ask.int(gfsd::PREAD).int(file.number).int(size).long(0))?;
        self.is_usable = false;
        let block = self.link.reply.block(&mut self.block)?;
        self.is_usable = true;
        if block.len() as u64 == file.stat.size { Ok(block) } else { Err(CallError::Short) }
    }

    /// Asks and waits for an answer without an error. After one with an error the connection goes on.
    fn call(&mut self, ask: impl FnOnce(&mut Writer) -> &mut Writer) -> Result<(), CallError> {
        self.send(ask)?;
        self.good()
    }

    pub(crate) fn send(
        &mut self,
        ask: impl FnOnce(&mut Writer) -> &mut Writer,
    ) -> Result<(), CallError> {
        self.is_usable = false;
        let mut request = Writer::default();
        ask(&mut request);
        self.link.send(&request)
    }

    fn good(&mut self) -> Result<(), CallError> {
        let answer = self.link.reply.good();
        self.is_usable = matches!(answer, Ok(()) | Err(CallError::Refused(_)));
        answer
    }
}
