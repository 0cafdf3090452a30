//! The servers of a mount, of which each has some of the files.
//!
//! The union of their files looks like one tree. If several have a name, the newest file counts; the servers that have
//! it with this size and time are its places, and its bytes are requested from the place with the least under way. A server that has
//! been lost for a while counts as empty, so that a name that the others do not have counts as absent.

mod gather;

use gather::Gather;
use hikyaku_remote::{
    Attempt, Client, Decided, Edit, Extent, Give, Incoming, Leased, Listed, Piece, RemoteError,
    RequestId,
};
use hikyaku_store::{Found, Identity, Kind, Space, StorePath};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The servers that have a file, a bit for each.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Places(u64);

/// The servers as they are at one time.
#[derive(Clone)]
pub(crate) struct Crew {
    members: Vec<Member>,
    /// A server that has been lost for longer is not waited for.
    patience: Duration,
}

#[derive(Clone)]
enum Member {
    Up(Up),
    Lost(Instant),
}

/// A connection to a server.
#[derive(Clone)]
struct Up {
    client: Client,
    /// The number of the connection, over all servers.
    number: u64,
    /// Bytes of files that were asked for and have not come.
    under_way: Arc<AtomicU64>,
    /// Requested bytes of files since the start.
    asked: Arc<AtomicU64>,
    /// When something of what is under way came last, or when it was asked for if nothing was under way before.
    heard: Arc<Mutex<Instant>>,
}

/// A request for segments, and the connection that it went over.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Line {
    number: u64,
    request: RequestId,
}

/// Bytes, or a question, that are under way over a connection until this is dropped.
pub(crate) struct Load {
    under_way: Arc<AtomicU64>,
    heard: Arc<Mutex<Instant>>,
    bytes: u64,
}

/// A part of the answer to a listing.
pub(crate) enum Told {
    /// Entries of a directory, and whether they are all of it.
    Entries(StorePath, Vec<(Listed, Places)>, Whole),
    /// A lease of a directory whose entries follow.
    Leased(StorePath, Leased),
    End,
}

/// Whether a listing of a directory is complete.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Whole {
    Yes,
    NotYet,
}

/// The most servers of a mount.
pub(crate) const SERVERS_MAX: usize = 64;

impl Places {
    /// The server of this index alone.
    pub(crate) const fn only(server: usize) -> Self {
        Self(1 << server)
    }

    pub(crate) const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    const fn has(self, server: usize) -> bool {
        self.0 >> server & 1 == 1
    }
}

impl Crew {
    /// Servers, of which some are connected.
    pub(crate) fn new(clients: Vec<Option<Client>>, patience: Duration) -> Self {
        // One that could not be reached at the start is not waited for.
        let long_ago = Instant::now().checked_sub(patience).unwrap_or_else(Instant::now);
        let member = |(number, client): (u64, Option<Client>)| match client {
            Some(client) => Member::Up(Up::new(client, number)),
            None => Member::Lost(long_ago),
        };
        Self { members: (0..).zip(clients).map(member).collect(), patience }
    }

    /// A server has been connected; `number` was not given to a connection before.
    pub(crate) fn set_up(&mut self, server: usize, client: Client, number: u64) {
        if let Some(member) = self.members.get_mut(server) {
            *member = Member::Up(Up::new(client, number));
        }
    }

    /// A server has been lost.
    pub(crate) fn set_lost(&mut self, server: usize) {
        if let Some(member) = self.members.get_mut(server) {
            *member = Member::Lost(Instant::now());
        }
    }

    /// Whether any server is connected.
    pub(crate) fn is_up(&self) -> bool {
        self.up().next().is_some()
    }

    /// Connected servers, and all of them.
    pub(crate) fn counts(&self) -> (usize, usize) {
        (self.up().count(), self.members.len())
    }

    /// Connections without a byte of a pending answer for this time, if other connections exist.
    pub(crate) fn quiet(&self, limit: Duration) -> Vec<Client> {
        let quiet = |up: &&Up| up.is_quiet(limit);
        let quiet: Vec<Client> =
            self.up().map(|(_, up)| up).filter(quiet).map(|up| up.client.clone()).collect();
        if quiet.len() < self.up().count() { quiet } else { Vec::new() }
    }

    /// Bytes that each server was asked for over its present connection.
    pub(crate) fn asked(&self) -> Vec<u64> {
        let asked = |member: &Member| match member {
            Member::Up(up) => up.asked.load(Ordering::Relaxed),
            Member::Lost(_) => 0,
        };
        self.members.iter().map(asked).collect()
    }

    /// The connections.
    pub(crate) fn clients(&self) -> impl Iterator<Item = &Client> {
        self.up().map(|(_, up)| &up.client)
    }

    fn up(&self) -> impl Iterator<Item = (usize, &Up)> {
        self.members.iter().enumerate().filter_map(|(server, member)| match member {
            Member::Up(up) => Some((server, up)),
            Member::Lost(_) => None,
        })
    }

    /// The only server, if there is one only.
    fn only(&self) -> Option<&Client> {
        match &self.members[..] {
            [Member::Up(up)] => Some(&up.client),
            _ => None,
        }
    }

    /// The server, if there is one only.
    pub(crate) fn alone(&self) -> Option<&Client> {
        self.only()
    }

    /// The server that grants leases, if there is one only and it does.
    pub(crate) fn leasing(&self) -> Option<&Client> {
        self.only().filter(|client| client.has_leases())
    }

    /// Makes a change that was decided here.
    pub(crate) fn held_then(
        &self,
        edit: (Edit, Attempt),
        bytes: &[u8],
        done: impl FnOnce(Result<Decided, RemoteError>) + Send + 'static,
    ) {
        match self.leasing() {
            Some(client) => client.held_then(edit, bytes, done),
            None => done(Err(RemoteError::Closed(None))),
        }
    }

    /// Whether a server is lost for a short time, so that its files are unknown.
    fn is_waited_for(&self) -> bool {
        let waited = |member: &Member| matches!(member, Member::Lost(since) if since.elapsed() < self.patience);
        self.members.iter().any(waited)
    }

    /// The metadata of a path, and the servers that have it so.
    pub(crate) fn look_then(
        &self,
        path: &StorePath,
        done: impl FnOnce(Result<(Found, Places), RemoteError>) + Send + 'static,
    ) {
        if let Some(client) = self.only() {
            return client.look_then(path, |found| done(found.map(|found| (found, Places(1)))));
        }
        let gather = Gather::new(self.up().count(), self.is_waited_for(), move |found, error| {
            done(newest(&found).ok_or_else(|| error.unwrap_or_else(absent)));
        });
        for (server, up) in self.up() {
            let (gather, load) = (gather.clone(), up.question());
            up.client.look_then(path, move |found| {
                drop(load);
                gather.take(server, found);
            });
        }
        gather.start();
    }

    /// The entries of a directory. Of one server about `ahead` entries of directories below it come along.
    pub(crate) fn list_then(
        &self,
        path: &StorePath,
        (extent, ahead): (Extent, u32),
        mut each: impl FnMut(Result<Told, RemoteError>) + Send + 'static,
    ) {
        use hikyaku_remote::Listing::{End, Entries};
        if let Some(client) = self.only() {
            let told = move |listing: Result<hikyaku_remote::Listing, RemoteError>| {
                each(listing.map(|listing| match listing {
                    End => Told::End,
                    hikyaku_remote::Listing::Leased { dir, leased } => Told::Leased(dir, leased),
                    Entries { dir, entries, is_last } => {
                        let entries = entries.into_iter().map(|entry| (entry, Places(1)));
                        let whole = if is_last { Whole::Yes } else { Whole::NotYet };
                        Told::Entries(dir, entries.collect(), whole)
                    }
                }));
            };
            return match client.has_leases() {
                true => client.take_then(path, (extent, ahead), told),
                false => client.list_then(path, ahead, told),
            };
        }
        let dir = path.clone();
        let done = move |lists: Vec<(usize, Vec<Listed>)>, error: Option<RemoteError>| match error {
            // A listing without the names of one server would not be complete.
            Some(error) => each(Err(error)),
            None if lists.is_empty() => each(Err(absent())),
            None => {
                each(Ok(Told::Entries(dir, union(lists), Whole::Yes)));
                each(Ok(Told::End));
            }
        };
        let gather = Gather::new(self.up().count(), self.is_waited_for(), done);
        for (server, up) in self.up() {
            let (gather, mut all, load) = (gather.clone(), Vec::new(), up.question());
            up.client.list_then(path, 0, move |listing| match listing {
                Ok(Entries { entries, .. }) => {
                    load.arrived();
                    all.extend(entries);
                }
                // Leases are not asked for of several servers.
                Ok(hikyaku_remote::Listing::Leased { .. }) => {}
                Ok(End) => gather.take(server, Ok(std::mem::take(&mut all))),
                Err(error) => gather.take(server, Err(error)),
            });
        }
        gather.start();
    }

    /// The text of a link that these servers have.
    pub(crate) fn read_link_then(
        &self,
        path: &StorePath,
        at: Places,
        done: impl FnOnce(Result<Vec<u8>, RemoteError>) + Send + 'static,
    ) {
        let first = move |texts: Vec<(usize, Vec<u8>)>, error: Option<RemoteError>| {
            let text = texts.into_iter().next().map(|(_, text)| text);
            done(text.ok_or_else(|| error.unwrap_or_else(absent)));
        };
        let up = || self.up().filter(|(server, _)| at.has(*server));
        let gather = Gather::new(up().count(), self.is_waited_for(), first);
        for (server, up) in up() {
            let gather = gather.clone();
            up.client.read_link_then(path, move |text| gather.take(server, text));
        }
        gather.start();
    }

    /// The space of all servers together.
    pub(crate) fn space_then(
        &self,
        done: impl FnOnce(Result<Space, RemoteError>) + Send + 'static,
    ) {
        let sum = move |spaces: Vec<(usize, Space)>, error: Option<RemoteError>| {
            let sum = spaces.into_iter().map(|(_, space)| space).reduce(|a, b| Space {
                free: a.free.saturating_add(b.free),
                total: a.total.saturating_add(b.total),
                files: a.files.zip(b.files).map(|(a, b)| a.saturating_add(b)),
            });
            done(sum.ok_or_else(|| error.unwrap_or_else(absent)));
        };
        let gather = Gather::new(self.up().count(), self.is_waited_for(), sum);
        for (server, up) in self.up() {
            let gather = gather.clone();
            up.client.space_then(move |space| gather.take(server, space));
        }
        gather.start();
    }

    /// Changes the store, of which there is one server only.
    pub(crate) fn edit_then(
        &self,
        edit: Edit,
        bytes: &[u8],
        done: impl FnOnce(Result<Option<Found>, RemoteError>) + Send + 'static,
    ) {
        match self.only() {
            Some(client) => client.edit_then(edit, bytes, done),
            None => done(Err(RemoteError::Closed(None))),
        }
    }

    /// A short range of a file that these servers have. Nothing is asked if none of them is connected.
    pub(crate) fn piece_then(
        &self,
        at: Places,
        piece: Piece,
        done: impl FnOnce(Result<Vec<u8>, RemoteError>) + Send + 'static,
    ) {
        let Some(up) = self.least_busy(at) else { return done(Err(RemoteError::Closed(None))) };
        let load = up.load(piece.length.into());
        up.client.piece_then(piece, move |bytes| {
            drop(load);
            done(bytes);
        });
    }

    /// Ranges of a file that these servers have, what takes them back, and their load, which is to be dropped at the end.
    pub(crate) fn give(
        &self,
        at: Places,
        give: Give,
    ) -> Result<(Incoming, Line, Load), RemoteError> {
        let up = self.least_busy(at).ok_or(RemoteError::Closed(None))?;
        let incoming = up.client.give(give)?;
        let line = Line { number: up.number, request: incoming.id() };
        let load = up.load(incoming.asked());
        Ok((incoming, line, load))
    }

    /// Takes a request for segments back.
    pub(crate) fn cut(&self, line: &Line) {
        if let Some((_, up)) = self.up().find(|(_, up)| up.number == line.number) {
            up.client.cut(line.request, 0);
        }
    }

    /// The connected server among these that has the least under way.
    fn least_busy(&self, at: Places) -> Option<&Up> {
        let up = self.up().filter(|(server, _)| at.has(*server)).map(|(_, up)| up);
        up.min_by_key(|up| [&up.under_way, &up.asked].map(|bytes| bytes.load(Ordering::Relaxed)))
    }
}

impl Up {
    fn new(client: Client, number: u64) -> Self {
        let heard = Arc::new(Mutex::new(Instant::now()));
        Self { client, number, under_way: Arc::default(), asked: Arc::default(), heard }
    }

    fn load(&self, bytes: u64) -> Load {
        if self.under_way.fetch_add(bytes, Ordering::Relaxed) == 0 {
            note(&self.heard);
        }
        self.asked.fetch_add(bytes, Ordering::Relaxed);
        Load { under_way: self.under_way.clone(), heard: self.heard.clone(), bytes }
    }

    /// A question, which counts as a byte.
    fn question(&self) -> Load {
        self.load(1)
    }

    /// Whether no byte of a pending answer has arrived for this time.
    fn is_quiet(&self, limit: Duration) -> bool {
        let heard = *self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        self.under_way.load(Ordering::Relaxed) > 0 && heard.elapsed() > limit
    }
}

impl Load {
    /// Some of it has come.
    pub(crate) fn arrived(&self) {
        note(&self.heard);
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.under_way.fetch_sub(self.bytes, Ordering::Relaxed);
        note(&self.heard);
    }
}

fn note(heard: &Mutex<Instant>) {
    *heard.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
}

/// No server has it.
fn absent() -> RemoteError {
    let kind = hikyaku_store::ErrorKind::NotFound;
    RemoteError::Refused { kind, text: kind.to_string() }
}

/// The newest file among those of a name, and the servers that have it. All directories count as equal.
fn newest(found: &[(usize, Found)]) -> Option<(Found, Places)> {
    let age = |found: &Found| (found.modified.secs, found.modified.nanos, found.size);
    let (_, mut best) = *found.iter().max_by_key(|(_, found)| age(found))?;
    let is_same = |found: &Found| match (best.kind, found.kind) {
        (Kind::Dir, Kind::Dir) => true,
        (a, b) => a == b && age(found) == age(&best),
    };
    let same = found.iter().filter(|(_, found)| is_same(found));
    let at = same.fold(Places::default(), |all, (server, _)| all.with(Places::only(*server)));
    // Each server has numbers of its own for its files.
    best.identity = Identity { device: 0, number: 0 };
    Some((best, at))
}

/// The entries that any server has.
fn union(lists: Vec<(usize, Vec<Listed>)>) -> Vec<(Listed, Places)> {
    let mut all: Vec<(usize, Listed)> = lists
        .into_iter()
        .flat_map(|(server, entries)| entries.into_iter().map(move |entry| (server, entry)))
        .collect();
    all.sort_by(|(_, a), (_, b)| a.name.cmp(&b.name));
    let one = |same: &[(usize, Listed)]| {
        let (found, at) =
            newest(&same.iter().map(|(server, entry)| (*server, entry.found)).collect::<Vec<_>>())?;
        let (_, entry) = same.iter().find(|(server, _)| at.has(*server))?;
        Some((Listed { found, ..entry.clone() }, at))
    };
    all.chunk_by(|(_, a), (_, b)| a.name == b.name).filter_map(one).collect()
}

#[cfg(test)]
mod tests;
