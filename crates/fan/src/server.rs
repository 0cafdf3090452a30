//! What a file may come from: a daemon of ours, a node of a Gfarm file system, or a store that this machine reads itself.

mod paced;
mod stored;

use crate::census::File;
use hikyaku_gfarm::Handle;
use hikyaku_net::blocking::{Stop, wait};
use hikyaku_remote::{Class, Client, Give, RemoteError, RequestId, Wanted};
use hikyaku_spread::{Asking, Settings};
use hikyaku_store::{ErrorKind, StorePath};
use hikyaku_store_gfarm::{Cut, Handles, Node, Small, Trouble};
use hikyaku_transfer::{Geometry, SegmentHash, SegmentIndex};
use hikyaku_units::{DataSize, Rate};
use paced::Paced;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};
use stored::StoreCut;

pub use stored::StoreServer;

/// A server, which several threads may use at once.
#[derive(Clone)]
pub enum Server {
    /// A daemon (`hikyaku serve`), by a connection of the transport.
    Daemon(Client),
    /// A node of a Gfarm file system, by Gfarm's own protocol.
    Gfarm(GfarmNode),
    /// A store, such as a bucket, by one request at a time.
    Store(StoreServer),
}

/// A node, and what the files have to be. Clones share it.
#[derive(Clone)]
pub struct GfarmNode {
    node: Arc<Node>,
    /// The contents of the files as they were found.
    handles: Arc<Handles>,
    /// Its protocol knows no limit: this end reads no faster, and the windows of TCP hold the node back.
    paced: Paced,
}

/// A request under way, to be cut.
pub(crate) enum Request {
    Daemon(Client, RequestId),
    Gfarm(Cut),
    Store(StoreCut),
}

/// A segment whose bytes are right: a daemon has told its hash, or gfmd that the content was the same all the while.
pub(crate) struct Segment<'a> {
    pub(crate) index: SegmentIndex,
    pub(crate) hash: SegmentHash,
    pub(crate) bytes: &'a [u8],
}

/// The round-trip time of a connection that does not tell.
const USUAL_RTT: Duration = Duration::from_millis(100);

/// What a store is asked for at a time: as much as one part of an upload has (Amazon S3 user guide, "Performance guidelines"
/// has 8 to 16 MB).
const PIECE_BYTES: u64 = 8 << 20;

impl Server {
    /// How the scheduler is to use servers of this kind.
    pub(crate) fn settings(&self) -> Settings {
        match self {
            Self::Daemon(_) | Self::Gfarm(_) => Settings::default(),
            // A file of any size is a request of its own. A service is not told that a request is not wanted any more: it
            // goes on with it, and each costs its owner money.
            Self::Store(_) => Settings {
                small_file: DataSize::ZERO,
                asking: Asking::Pieces(DataSize::from_bytes(PIECE_BYTES)),
                ..Settings::default()
            },
        }
    }

    /// Whether it answers.
    pub(crate) fn is_alive(&self) -> bool {
        match self {
            Self::Daemon(client) => {
                client.connection().close_reason().is_none()
                    && client.look(&StorePath::ROOT).is_ok()
            }
            Self::Gfarm(gfarm) => gfarm.node.probe().is_ok(),
            Self::Store(stored) => stored.is_alive(),
        }
    }

    /// The round-trip time to it.
    pub(crate) fn round_trip(&self) -> Duration {
        let seen = match self {
            Self::Daemon(client) => {
                let until = Some(Instant::now() + USUAL_RTT);
                let seen = wait(client.connection().seen(), &Stop::default(), until);
                seen.ok().flatten().map(|seen| seen.round_trip)
            }
            Self::Gfarm(gfarm) => gfarm.node.round_trip(),
            Self::Store(stored) => stored.round_trip(),
        };
        seen.filter(|rtt| !rtt.is_zero()).unwrap_or(USUAL_RTT)
    }

    /// Ends its requests: nothing of them is wanted.
    pub(crate) fn close(&self, why: &str) {
        match self {
            Self::Daemon(client) => {
                client.connection().close(hikyaku_net::code::APPLICATION, why);
            }
            Self::Gfarm(gfarm) => {
                gfarm.paced.close();
                gfarm.node.hang_up();
            }
            Self::Store(stored) => stored.close(),
        }
    }

    /// Limits the rate at which it sends.
    pub(crate) fn cap(&self, rate: Option<Rate>) {
        match self {
            Self::Daemon(client) => client.cap(rate),
            Self::Gfarm(gfarm) => gfarm.paced.cap(rate),
            Self::Store(stored) => stored.cap(rate),
        }
    }

    /// Fetches ranges of a file, which are whole segments. `begun` is told what cuts the request, `arrived` of bytes as they
    /// come, and `each` of each segment that is right. Returns how many segments came damaged.
    pub(crate) fn ranges(
        &self,
        file: &File,
        ranges: &[Range<u64>],
        begun: impl FnOnce(Request),
        mut arrived: impl FnMut(u64),
        mut each: impl FnMut(Segment<'_>),
    ) -> Result<usize, RemoteError> {
        match self {
            Self::Daemon(client) => {
                let ranges = ranges.iter().map(|range| (range.start, range.end)).collect();
                let path = file.path.as_bytes().to_vec();
                let give = Give { path, seen: file.seen, ranges, class: Class::Bulk };
                let incoming = client.give(give)?;
                begun(Request::Daemon(client.clone(), incoming.id()));
                let outcome = incoming.receive(arrived, |segment| {
                    let (index, hash, bytes) = (segment.index, segment.hash, segment.bytes);
                    each(Segment { index, hash, bytes });
                })?;
                Ok(outcome.damaged.len())
            }
            Self::Gfarm(gfarm) => {
                let path = file.path.as_bytes();
                let (handle, geometry) = (gfarm.handle(path)?, Geometry::new(file.seen.size));
                let cut = Cut::default();
                begun(Request::Gfarm(cut.clone()));
                let pace = gfarm.paced.pace();
                let arrived = |bytes| {
                    gfarm.paced.wait(&pace, bytes);
                    arrived(bytes);
                };
                let read = gfarm.node.ranges((path, handle), ranges, &cut, arrived, |at, bytes| {
                    let index = geometry.and_then(|geometry| geometry.at(at));
                    let hash = geometry
                        .zip(index)
                        .and_then(|(geometry, index)| SegmentHash::new(geometry, index, bytes));
                    if let (Some(index), Some(hash)) = (index, hash) {
                        each(Segment { index, hash, bytes });
                    }
                });
                read.map(|()| 0).map_err(|trouble| remote(path, trouble))
            }
            Self::Store(stored) => {
                let cut = StoreCut::default();
                begun(Request::Store(cut.clone()));
                stored.ranges(file, ranges, &cut, arrived, each).map(|()| 0)
            }
        }
    }

    /// Fetches small files whole: each is told with its index, and its content or why there is none.
    pub(crate) fn many(
        &self,
        files: &[&File],
        begun: impl FnOnce(Request),
        arrived: impl Fn(u64) + Sync,
        mut each: impl FnMut(usize, Result<Vec<u8>, ErrorKind>),
    ) -> Result<(), RemoteError> {
        match self {
            Self::Daemon(client) => {
                let wanted =
                    |file: &&File| Wanted { path: file.path.as_bytes().to_vec(), seen: file.seen };
                let wanted = files.iter().map(wanted).collect();
                let begun = |request| begun(Request::Daemon(client.clone(), request));
                client.give_many(wanted, begun, |index, content| {
                    if let Ok(bytes) = &content {
                        arrived(bytes.len() as u64);
                    }
                    each(index, content);
                })
            }
            Self::Gfarm(gfarm) => {
                let mut small = Vec::with_capacity(files.len());
                for file in files {
                    let path = file.path.as_bytes();
                    small.push(Small { path, handle: gfarm.handle(path)? });
                }
                let cut = Cut::default();
                begun(Request::Gfarm(cut.clone()));
                let pace = gfarm.paced.pace();
                let arrived = |bytes| {
                    gfarm.paced.wait(&pace, bytes);
                    arrived(bytes);
                };
                let read = gfarm.node.small(&small, &cut, arrived, each);
                read.map_err(|trouble| remote(b"", trouble))
            }
            Self::Store(stored) => {
                let cut = StoreCut::default();
                begun(Request::Store(cut.clone()));
                stored.many(files, &cut, arrived, each)
            }
        }
    }
}

impl Request {
    /// Takes back what has not been sent, from the byte `from` of the answer on.
    pub(crate) fn cut(&self, from: DataSize) {
        match self {
            Self::Daemon(client, request) => client.cut(*request, from.bytes()),
            Self::Gfarm(cut) => cut.at(from.bytes()),
            Self::Store(cut) => cut.at(from.bytes()),
        }
    }
}

impl GfarmNode {
    /// A node that has replicas of files with these contents.
    pub fn new(node: Arc<Node>, handles: Arc<Handles>) -> Self {
        Self { node, handles, paced: Paced::default() }
    }

    fn handle(&self, path: &[u8]) -> Result<Handle, RemoteError> {
        let handle = self.handles.get(path).copied();
        handle.ok_or_else(|| remote(path, Trouble::Refused(ErrorKind::NotFound)))
    }
}

impl From<Client> for Server {
    fn from(client: Client) -> Self {
        Self::Daemon(client)
    }
}

/// The error as a daemon would tell it.
fn remote(path: &[u8], trouble: Trouble) -> RemoteError {
    match trouble {
        Trouble::Refused(kind) => remote_error(path, kind),
        Trouble::Away(_) | Trouble::MetadataAway(_) => RemoteError::Closed(None),
    }
}

/// The error as a daemon would tell it that cannot read a file.
fn remote_error(path: &[u8], kind: ErrorKind) -> RemoteError {
    let path = StorePath::new(path).unwrap_or(StorePath::ROOT);
    let text = hikyaku_store::StoreError::new("read", &path, kind).to_string();
    RemoteError::Refused { kind, text }
}
