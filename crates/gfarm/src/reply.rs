//! Replies of gfmd, as they are read.

use crate::code::Reader;
use crate::config::Address;
use crate::error::CallError;
use crate::request::names;
use crate::stat::Stat;
use std::io::Read;

/// A file-system node as gfmd knows it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Host {
    /// Its name and the port of its gfsd.
    pub address: Address,
    /// Its architecture, as its administrator calls it.
    pub architecture: String,
    /// Its processors.
    pub processors: u32,
}

/// A replica of a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Replica {
    /// The name of the node.
    pub host: String,
    /// The generation of its content.
    pub generation: u64,
    /// Whether it is whole.
    pub is_complete: bool,
    /// Whether gfmd hears from the node.
    pub is_up: bool,
}

/// A node to which a file may be written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Candidate {
    /// Its name and the port of its gfsd.
    pub address: Address,
    /// Its free space in bytes.
    pub free: u64,
}

/// The space of all nodes together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Space {
    /// Bytes that are used.
    pub used: u64,
    /// Bytes that are free.
    pub free: u64,
    /// Files.
    pub files: u64,
}

/// The name of an entry of a directory, and what gfmd knows of it.
pub type Entry = (Vec<u8>, Stat);

/// Entries of a directory in one answer.
pub(crate) const ENTRIES_MAX: usize = 512;
/// Replicas of a file, and hosts of a file system.
const HOSTS_MAX: usize = 65_536;
/// Flags of a replica: not whole; on a host that is down; obsolete on a host that is down.
const INCOMPLETE: i32 = 1;
const HOST_DOWN: i32 = 2 | 4;

/// The answers to [`Writer::open`](crate::code::Writer::open).
// fuzz: gfarm
pub(crate) fn opened(path: &[u8], reply: &mut Reader<impl Read>) -> Result<(), CallError> {
    reply.good()?;
    for _ in names(path) {
        reply.good()?;
        let [_inode, _generation] = [reply.count()?, reply.count()?];
        let _mode = reply.int()?;
    }
    Ok(())
}

// fuzz: gfarm
pub(crate) fn replicas(reply: &mut Reader<impl Read>) -> Result<Vec<Replica>, CallError> {
    let count = reply.entries(HOSTS_MAX)?;
    let replica = |_| {
        let (host, generation, flags) = (reply.word()?, reply.count()?, reply.int()?);
        let (is_complete, is_up) = (flags & INCOMPLETE == 0, flags & HOST_DOWN == 0);
        Ok(Replica { host, generation, is_complete, is_up })
    };
    (0..count).map(replica).collect()
}

// fuzz: gfarm
pub(crate) fn entries(reply: &mut Reader<impl Read>) -> Result<Vec<Entry>, CallError> {
    let count = reply.entries(ENTRIES_MAX)?;
    (0..count).map(|_| Ok((reply.text()?, Stat::read(reply)?))).collect()
}

// fuzz: gfarm
pub(crate) fn hosts(reply: &mut Reader<impl Read>) -> Result<Vec<Host>, CallError> {
    let count = reply.entries(HOSTS_MAX)?;
    let host = |_| {
        let (host, architecture) = (reply.word()?, reply.word()?);
        let (processors, port, _flags) = (reply.int()?, reply.int()?, reply.int()?);
        let _aliases = reply.int()?;
        let port = u16::try_from(port).map_err(|_| CallError::Protocol("no port"))?;
        let address = Address { host, port };
        Ok(Host { address, architecture, processors: processors.unsigned_abs() })
    };
    (0..count).map(host).collect()
}

/// gfmd counts space in units of 1,024 bytes.
const SPACE_UNIT: u64 = 1024;

// fuzz: gfarm
pub(crate) fn candidates(reply: &mut Reader<impl Read>) -> Result<Vec<Candidate>, CallError> {
    let count = reply.entries(HOSTS_MAX)?;
    let candidate = |_| {
        let (host, port) = (reply.word()?, reply.int()?);
        let [_processors, _load] = [reply.int()?, reply.int()?];
        let [_cached, _used, free, _rtt_cached] =
            [reply.long()?, reply.long()?, reply.long()?, reply.long()?];
        let [_round_trip, _flags] = [reply.int()?, reply.int()?];
        let port = u16::try_from(port).map_err(|_| CallError::Protocol("no port"))?;
        let free = u64::try_from(free).unwrap_or(0).saturating_mul(SPACE_UNIT);
        Ok(Candidate { address: Address { host, port }, free })
    };
    (0..count).map(candidate).collect()
}

// fuzz: gfarm
pub(crate) fn space(reply: &mut Reader<impl Read>) -> Result<Space, CallError> {
    let [used, free] = [reply.count()?, reply.count()?];
    let in_bytes = |units: u64| units.saturating_mul(SPACE_UNIT);
    Ok(Space { used: in_bytes(used), free: in_bytes(free), files: reply.count()? })
}

/// How many of the kinds of replies can be read from these bytes. For tests that send any bytes: none may end the process
/// or make it hold more than it was sent.
pub fn readable(bytes: &[u8]) -> usize {
    let mut block = [0; 64];
    let kinds = [
        opened(b"a/b", &mut Reader::new(bytes)).is_ok(),
        replicas(&mut Reader::new(bytes)).is_ok(),
        entries(&mut Reader::new(bytes)).is_ok(),
        hosts(&mut Reader::new(bytes)).is_ok(),
        candidates(&mut Reader::new(bytes)).is_ok(),
        space(&mut Reader::new(bytes)).is_ok(),
        Reader::new(bytes).text().is_ok(),
        Reader::new(bytes).block(&mut block).is_ok(),
    ];
    kinds.into_iter().filter(|is_good| *is_good).count()
}
