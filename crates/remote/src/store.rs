//! A daemon as a [`Store`]: every call is a request, and calls that belong together are sent together.

mod batch;
mod draft;
mod flow;
mod listing;
mod open;
mod room;
#[cfg(test)]
mod tests;

use crate::client::Client;
use crate::error::RemoteError;
use crate::message::Edit;
use crate::upload::Uploads;
use draft::{Drafts, RemoteDraft};
pub use flow::{Flow, Pace};
use hikyaku_reach::daemon::{UNSIZED_UPLOADS, UPLOADS, WRITES};
use hikyaku_store::{
    Abilities, Ability, Access, Attribute, Change, Cursor, Doing, Draft, Entry, ErrorKind, Fetcher,
    Found, Kind, Latency, Make, Op, Open, Page, Place, Replace, Reply, Result, Space, Store,
    StoreError, StorePath, Token, Versions, Writes, doing,
};
use listing::Listings;
use open::RemoteOpen;
use room::Room;
use rustix::io::Errno;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// The files of a daemon. Clones share the connection.
///
/// A file is recognized by its size and modification time; if it gets others while it is read, the read fails as
/// `Changed`. Drafts take their bytes in order, and a daemon that does not let this client write refuses them as
/// `ReadOnly`. Content is on the daemon's disk before a file gets its name, whatever the caller asks for. If the connection
/// is lost, every call fails as `Unreachable`.
///
/// A connection needs one `RemoteStore`, which is cloned: each opens a stream for what it writes, and servers limit the number of
/// streams.
#[derive(Clone)]
pub struct RemoteStore {
    inner: Arc<Inner>,
}

struct Inner {
    client: Client,
    /// The stream of uploads, once one was needed.
    uploads: Mutex<Option<Arc<Uploads>>>,
    /// Bytes under way to the server.
    room: OnceLock<Arc<Room>>,
    drafts: Arc<Drafts>,
    listings: Listings,
    next_token: AtomicU64,
}

impl RemoteStore {
    /// The files of the server that `client` is connected to. The server must have the feature
    /// [`MOUNTS`](hikyaku_reach::daemon::MOUNTS).
    pub fn new(client: Client) -> Self {
        let drafts = Arc::new(Drafts::new(client.has(UNSIZED_UPLOADS)));
        let inner = Inner {
            client,
            uploads: Mutex::default(),
            room: OnceLock::new(),
            drafts,
            listings: Listings::default(),
            next_token: AtomicU64::new(0),
        };
        Self { inner: Arc::new(inner) }
    }

    /// The connection that it uses.
    pub fn client(&self) -> &Client {
        &self.inner.client
    }

    /// The room for bytes under way.
    fn room(&self) -> &Arc<Room> {
        self.inner.room.get_or_init(|| Arc::new(Room::new(self.client().round_trip())))
    }

    /// The stream of uploads, which is opened for the first one.
    fn uploads(&self) -> std::result::Result<Arc<Uploads>, RemoteError> {
        let mut uploads = self.inner.uploads.lock().unwrap_or_else(PoisonError::into_inner);
        match &*uploads {
            Some(uploads) => Ok(uploads.clone()),
            None => Ok(uploads.insert(Arc::new(self.client().uploads()?)).clone()),
        }
    }

    /// Whether names can be changed. A server that does not let this client write may close the connection for the attempt.
    fn may_change(&self) -> std::result::Result<(), ErrorKind> {
        match self.client().has(UPLOADS) || self.client().has(WRITES) {
            true => Ok(()),
            false => Err(ErrorKind::ReadOnly),
        }
    }

    /// The stream of uploads, if this client may write.
    fn may_upload(&self) -> std::result::Result<Arc<Uploads>, ErrorKind> {
        match self.client().has(UPLOADS) {
            true => Ok(self.uploads()?),
            false => Err(ErrorKind::ReadOnly),
        }
    }

    /// Makes one change. Returns the metadata after it, where the server sends them.
    fn edit(&self, doing: Doing<'_>, edit: Edit) -> Result<Option<Found>> {
        doing.or(self.may_change())?;
        doing.or(answer(|done| self.client().edit_then(edit, &[], done)))
    }
}

/// Waits for the answer to a request.
fn answer<T: Send + 'static>(
    ask: impl FnOnce(Box<dyn FnOnce(std::result::Result<T, RemoteError>) + Send>),
) -> std::result::Result<T, RemoteError> {
    let (say, hear) = channel();
    // The receiver lives until the answer has come.
    ask(Box::new(move |answer| drop(say.send(answer))));
    hear.recv().unwrap_or(Err(RemoteError::Closed(None)))
}

impl From<RemoteError> for ErrorKind {
    fn from(error: RemoteError) -> Self {
        match error {
            RemoteError::Refused { kind, .. } => kind,
            RemoteError::Closed(_) => Self::Unreachable,
            RemoteError::Protocol(_) => Self::of(Errno::PROTO),
        }
    }
}

/// The bytes of a path in a message.
fn bytes(path: &StorePath) -> Vec<u8> {
    path.as_bytes().to_vec()
}

impl Store for RemoteStore {
    fn abilities(&self) -> Abilities {
        let client = self.client();
        let is_writable = client.has(UPLOADS);
        Abilities {
            update: client.has(WRITES),
            rename: is_writable,
            name_if_absent: is_writable && client.has(UNSIZED_UPLOADS),
            links: true,
            modes: true,
            times: true,
            writes: if is_writable { Writes::InOrder } else { Writes::Never },
            versions: Versions::SizeAndTime,
            latency: Latency::RoundTrip,
            ..Abilities::default()
        }
    }

    fn look(&self, path: &StorePath) -> Result<Found> {
        doing("look at", path).or(self.client().look(path))
    }

    fn list(&self, dir: &StorePath, after: Option<&Cursor>, room: usize) -> Result<Page> {
        doing("list", dir).or(self.inner.listings.page(self.client(), dir, after, room))
    }

    fn open(&self, path: &StorePath, access: Access) -> Result<Box<dyn Open>> {
        let doing = doing("open", path);
        if access == Access::Update && !self.client().has(WRITES) {
            return doing.fail(match self.may_change() {
                Ok(()) => ErrorKind::Unsupported(Ability::Update),
                Err(kind) => kind,
            });
        }
        let found = doing.or(self.client().look(path))?;
        match found.kind {
            Kind::File => Ok(Box::new(RemoteOpen::new(self.clone(), path.clone(), access, found))),
            Kind::Dir => doing.fail(ErrorKind::IsDir),
            Kind::Link => doing.fail(ErrorKind::Link),
            Kind::Special => doing.fail(ErrorKind::SPECIAL),
        }
    }

    /// Its directory is looked at, which takes a round trip; nothing else of the draft waits for an answer before it gets its name.
    fn create(&self, path: &StorePath, make: &Make) -> Result<Box<dyn Draft>> {
        let doing = doing("create", path);
        if !self.client().has(UPLOADS) {
            return doing.fail(ErrorKind::ReadOnly);
        }
        let Some((dir, _)) = path.split() else { return doing.fail(ErrorKind::IsDir) };
        match doing.or(self.client().look(&dir))?.kind {
            Kind::Dir => {}
            Kind::Link => return doing.fail(ErrorKind::Link),
            Kind::File | Kind::Special => return doing.fail(ErrorKind::NotDir),
        }
        let token = self.inner.next_token.fetch_add(1, Ordering::Relaxed);
        Ok(Box::new(RemoteDraft::new(self.clone(), path.clone(), *make, token)))
    }

    fn take_up(&self, path: &StorePath, _token: &Token) -> Result<Box<dyn Draft>> {
        doing("take up", path).fail(ErrorKind::Unsupported(Ability::TakeUp))
    }

    fn make_dir(&self, path: &StorePath, mode: u32) -> Result<()> {
        let edit = Edit::MakeDir { path: bytes(path), mode };
        self.edit(doing("make the directory", path), edit).map(drop)
    }

    fn make_link(&self, path: &StorePath, text: &[u8]) -> Result<()> {
        let edit = Edit::MakeLink { path: bytes(path), text: text.to_vec() };
        self.edit(doing("make the link", path), edit).map(drop)
    }

    fn read_link(&self, path: &StorePath) -> Result<Vec<u8>> {
        let text = answer(|done| self.client().read_link_then(path, done));
        doing("read the link", path).or(text)
    }

    fn remove(&self, path: &StorePath, kind: Kind) -> Result<()> {
        let edit = Edit::Remove { path: bytes(path), kind };
        self.edit(doing("remove", path), edit).map(drop)
    }

    fn rename(&self, from: &StorePath, to: &StorePath, replace: Replace) -> Result<()> {
        let doing = doing("rename", from);
        let edit = doing.or(renaming(from, to, replace))?;
        self.edit(doing, edit).map(drop)
    }

    fn change(&self, path: &StorePath, change: &Change) -> Result<()> {
        let doing = doing("change", path);
        let edit = doing.or(changing(path, change))?;
        self.edit(doing, edit).map(drop)
    }

    fn attributes(&self, path: &StorePath) -> Result<Vec<Attribute>> {
        doing("read the attributes of", path).fail(ErrorKind::Unsupported(Ability::Attributes))
    }

    fn space(&self) -> Result<Space> {
        let space = answer(|done| self.client().space_then(done));
        doing("look at the space of", &StorePath::ROOT).or(space)
    }

    fn places(&self, path: &StorePath) -> Result<Vec<Place>> {
        self.look(path).map(|_| Vec::new())
    }

    fn sync(&self, dirs: &[StorePath]) -> Result<()> {
        let Some(first) = dirs.first() else { return Ok(()) };
        doing("sync", first).or(self.may_change())?;
        let (say, hear) = channel();
        for (number, dir) in dirs.iter().enumerate() {
            let say = say.clone();
            let done = move |answer| drop(say.send((number, answer)));
            self.client().edit_then(Edit::Sync { path: bytes(dir) }, &[], done);
        }
        drop(say);
        let mut failed = None;
        for (number, answer) in hear {
            if let Err(error) = doing("sync", &dirs[number]).or(answer) {
                failed.get_or_insert(error);
            }
        }
        failed.map_or(Ok(()), Err)
    }

    /// One request. The server sends the names as it finds them.
    fn walk(&self, root: &StorePath, each: &mut dyn FnMut(Entry) -> ControlFlow<()>) -> Result<()> {
        let walked = self.client().walk(root, |path, entry| {
            let found = entry.found.map_err(|kind| StoreError::new("read", &path, kind));
            each(Entry::new(path, found, entry.link))
        });
        doing("walk through", root).or(walked)
    }

    fn batch(&self, ops: &[Op<'_>], each: &mut dyn FnMut(usize, Result<Reply>)) {
        batch::run(self, ops, each);
    }

    /// One: a connection carries any number of requests.
    fn own_fetchers(&self, count: usize) -> Result<Vec<Arc<dyn Fetcher>>> {
        let fetcher: Arc<dyn Fetcher> = Arc::new(self.client().clone());
        Ok(std::iter::once(fetcher).take(count).collect())
    }
}

/// The request for a new name.
fn renaming(
    from: &StorePath,
    to: &StorePath,
    replace: Replace,
) -> std::result::Result<Edit, ErrorKind> {
    let replaces = match replace {
        Replace::Allowed => true,
        Replace::Never => false,
        Replace::Exchange => return Err(ErrorKind::Unsupported(Ability::Exchange)),
    };
    Ok(Edit::Rename { from: bytes(from), to: bytes(to), replaces })
}

/// The request for other metadata.
fn changing(path: &StorePath, change: &Change) -> std::result::Result<Edit, ErrorKind> {
    let Change { mode, modified, owner, attributes } = change;
    if owner.is_some() {
        return Err(ErrorKind::Unsupported(Ability::Owners));
    }
    if !attributes.is_empty() {
        return Err(ErrorKind::Unsupported(Ability::Attributes));
    }
    Ok(Edit::Change { path: bytes(path), mode: *mode, modified: *modified })
}
