//! Ranges of a file on their way in.

use crate::client::Pending;
use crate::error::RemoteError;
use crate::message::{Reply, RequestId};
use hikyaku_net::ReadError;
use hikyaku_net::blocking::block_on;
use hikyaku_transfer::{Assembly, Geometry, Layout, SegmentHash, SegmentIndex, Whole};
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// A request for ranges whose bytes are to come.
pub struct Incoming {
    pending: Pending,
    file: Geometry,
    layout: Layout,
}

/// A segment whose bytes have the hash that the server told.
pub struct Proven<'a> {
    /// Its index.
    pub index: SegmentIndex,
    /// Its place in the file.
    pub offset: u64,
    /// Its bytes.
    pub bytes: &'a [u8],
    /// Their hash.
    pub hash: SegmentHash,
}

/// How a request for ranges ended.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Outcome {
    /// Segments that were asked for and have not come: the request was cut.
    pub missing: Vec<SegmentIndex>,
    /// Segments whose bytes did not have their hash.
    pub damaged: Vec<SegmentIndex>,
}

/// Bytes that have come and were not told of yet. Whoever is told may take a lock for it, with a hundred requests under way.
struct Progress {
    bytes: u64,
    told: Instant,
}

/// So much is told of at once, or what has come in [`TELL_TIME`].
const TELL_BYTES: u64 = 256 << 10;
const TELL_TIME: Duration = Duration::from_millis(20);

impl Progress {
    fn new() -> Self {
        Self { bytes: 0, told: Instant::now() }
    }

    fn tell_if_due(&mut self, arrived: &mut impl FnMut(u64)) {
        if self.bytes >= TELL_BYTES || self.told.elapsed() >= TELL_TIME {
            self.tell(arrived);
        }
    }

    fn tell(&mut self, arrived: &mut impl FnMut(u64)) {
        if self.bytes > 0 {
            arrived(std::mem::take(&mut self.bytes));
        }
        self.told = Instant::now();
    }
}

/// Bytes of segments that may wait for their hashes: the hash is sent first.
const AHEAD_MAX: usize = 64;

impl Incoming {
    pub(crate) const fn new(pending: Pending, file: Geometry, layout: Layout) -> Self {
        Self { pending, file, layout }
    }

    /// The number of the request, for [`Client::cut`](crate::Client::cut).
    pub const fn id(&self) -> RequestId {
        self.pending.id
    }

    /// Bytes that were asked for.
    pub fn asked(&self) -> u64 {
        self.layout.length()
    }

    /// Hands each proven segment to `sink` as it comes, in any order, and returns when the request has ended. `arrived`
    /// is told of bytes as they come.
    ///
    /// # Errors
    ///
    /// The server cannot read the file, it has changed ([`RemoteError::Refused`]; nothing that came of it is of use), or
    /// the connection has ended.
    pub fn receive(
        self,
        mut arrived: impl FnMut(u64),
        mut sink: impl FnMut(Proven<'_>),
    ) -> Result<Outcome, RemoteError> {
        let mut object = match self.pending.next()?.0 {
            Reply::Giving { object } => self.pending.shared.object(object)?,
            // It was cut before it began.
            Reply::Given { .. } => return Ok(self.outcome(&HashMap::new())),
            _ => return Err(RemoteError::Protocol("another answer than an object")),
        };
        let mut state = State::new(self.file);
        let mut parts = Vec::new();
        let mut progress = Progress::new();
        loop {
            let (offset, run) = match block_on(object.next()) {
                Ok(Some(part)) => part,
                // The end, or the server gave it up and says why.
                Ok(None) | Err(ReadError::Reset(_)) => break,
                Err(error) => return Err(error.into()),
            };
            let mut offset = offset;
            for piece in run.pieces() {
                let mut piece = piece;
                progress.bytes += piece.len() as u64;
                while !piece.is_empty() {
                    let place = self.layout.locate(offset);
                    let (at, room) =
                        place.ok_or(RemoteError::Protocol("more bytes than were asked for"))?;
                    let (here, rest) = piece.split_at(piece.len().min(room as usize));
                    let placed = state.assembly.place(at, here, &mut parts);
                    placed.map_err(|_| RemoteError::Protocol("bytes beyond the end"))?;
                    offset += here.len() as u64;
                    piece = rest;
                }
            }
            progress.tell_if_due(&mut arrived);
            while let Some(reply) = self.pending.try_next() {
                self.on_reply(reply?.0, &mut state, &mut sink)?;
            }
            for whole in parts.drain(..) {
                state.on_whole(self.file, whole, &mut sink)?;
            }
        }
        progress.tell(&mut arrived);
        while !state.is_over {
            let (reply, _) = self.pending.next()?;
            self.on_reply(reply, &mut state, &mut sink)?;
        }
        Ok(self.outcome(&state.seen))
    }

    fn on_reply(
        &self,
        reply: Reply,
        state: &mut State,
        sink: &mut impl FnMut(Proven<'_>),
    ) -> Result<(), RemoteError> {
        match reply {
            Reply::Hashes { first, hashes } => {
                for (at, hash) in (first.0..).zip(hashes) {
                    state.on_hash(self.file, (SegmentIndex(at), hash), sink)?;
                }
                Ok(())
            }
            Reply::Given { .. } => {
                state.is_over = true;
                Ok(())
            }
            _ => Err(RemoteError::Protocol("another answer than hashes")),
        }
    }

    fn outcome(&self, seen: &HashMap<SegmentIndex, Verdict>) -> Outcome {
        let of = |wanted: Option<Verdict>| {
            let segments = self.layout.segments();
            segments.filter(|index| seen.get(index).copied() == wanted).collect()
        };
        Outcome { missing: of(None), damaged: of(Some(Verdict::Damaged)) }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Verdict {
    Right,
    Damaged,
}

/// What has come of a request.
struct State {
    assembly: Assembly,
    hashes: HashMap<SegmentIndex, SegmentHash>,
    /// Segments whose hashes have not come.
    early: HashMap<SegmentIndex, Vec<u8>>,
    seen: HashMap<SegmentIndex, Verdict>,
    is_over: bool,
}

impl State {
    fn new(file: Geometry) -> Self {
        Self {
            assembly: Assembly::new(file),
            hashes: HashMap::new(),
            early: HashMap::new(),
            seen: HashMap::new(),
            is_over: false,
        }
    }

    fn on_hash(
        &mut self,
        file: Geometry,
        (index, hash): (SegmentIndex, SegmentHash),
        sink: &mut impl FnMut(Proven<'_>),
    ) -> Result<(), RemoteError> {
        self.hashes.insert(index, hash);
        if self.hashes.len() as u64 > file.segments() {
            return Err(RemoteError::Protocol("more hashes than segments"));
        }
        match self.early.remove(&index) {
            Some(bytes) => self.on_whole(file, Whole { index, bytes }, sink),
            None => Ok(()),
        }
    }

    fn on_whole(
        &mut self,
        file: Geometry,
        Whole { index, bytes }: Whole,
        sink: &mut impl FnMut(Proven<'_>),
    ) -> Result<(), RemoteError> {
        let Some(&wanted) = self.hashes.get(&index) else {
            self.early.insert(index, bytes);
            return match self.early.len() > AHEAD_MAX {
                true => Err(RemoteError::Protocol("bytes without their hashes")),
                false => Ok(()),
            };
        };
        match SegmentHash::new(file, index, &bytes) {
            Some(hash) if hash == wanted => {
                self.seen.insert(index, Verdict::Right);
                let offset = file.range(index).map_or(0, |range| range.start);
                sink(Proven { index, offset, bytes: &bytes, hash });
            }
            _ => {
                self.seen.insert(index, Verdict::Damaged);
            }
        }
        self.assembly.recycle(bytes);
        Ok(())
    }
}
