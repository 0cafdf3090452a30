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

/// How many of the kinds of replies can be read from these bytes. For tests that send any bytes: none may end the process
/// or make it hold more than it was sent.
pub fn readable(bytes: &[u8]) -> usize {
    let mut block = [0; 64];
    let kinds = [
        opened(b"a/b", &mut Reader::new(bytes)).is_ok(),
        replicas(&mut Reader::new(bytes)).is_ok(),
        entries(&mut Reader::new(bytes)).is_ok(),
        hosts(&mut Reader::new(bytes)).is_ok(),
        Reader::new(bytes).text().is_ok(),
        Reader::new(bytes).block(&mut block).is_ok(),
    ];
    kinds.into_iter().filter(|is_good| *is_good).count()
}
