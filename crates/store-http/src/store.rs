//! The store, and its operations on names.

use crate::error::kind_of;
use crate::fetcher::{Answers, Server};
use crate::found;
use crate::open::HttpOpen;
use crate::shared::Shared;
use hikyaku_http::{Client, Fault, NamedBy, Place, Source, Stop, Turn, Url, name};
use hikyaku_net::Memory;
use hikyaku_store::{
    Abilities, Ability, Access, Attribute, Change, Cursor, Doing, Draft, Entry, ErrorKind, Fetcher,
    Found, Kind, Latency, Make, Open, Page, Replace, Result, Space, Store, StorePath, Token,
    Versions, Writes, doing,
};
use hikyaku_units::RetryPolicy;
use std::ops::ControlFlow;
use std::sync::Arc;

/// Bytes of the request that opens a file: a small file comes with it.
const FIRST_BYTES: u64 = 1 << 20;

/// The directory of a URL. Clones share its connections.
#[derive(Clone)]
pub struct HttpStore {
    shared: Arc<Shared>,
    versions: Versions,
    /// The connections of fetchers know what became of earlier requests.
    server: Arc<Server>,
}

/// The conduct of a store after failures, and at the end of a command.
#[derive(Clone, Debug)]
pub struct Conduct {
    /// Failed requests in a row without a byte, after the first, before a read fails.
    pub retries: u32,
    /// The waits between attempts for which the server asks no other wait.
    pub retry: RetryPolicy,
    /// Ends all requests.
    pub stop: Stop,
    /// Where the least round-trip times of paths are remembered: transfers beside each other so see the queue that they share.
    pub memory: Memory,
}

/// The file of a URL cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The request for it failed.
    #[error(transparent)]
    Fault(#[from] Fault),
    /// Neither the server nor the URL has a name for it.
    #[error("{0} has no name that a file could have")]
    Nameless(Url),
}

impl OpenError {
    /// The reason as that of an operation on a file.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Fault(fault) => kind_of(fault),
            Self::Nameless(_) => ErrorKind::BadName,
        }
    }
}

impl HttpStore {
    /// Opens the store of a file's directory. Returns the path of the file as well. One request is sent, and repeated only
    /// if the caller calls again. Stores with one client share its connections and the cookies of answers.
    ///
    /// # Errors
    ///
    /// The request fails, or the file has no name.
    pub fn open(
        client: Arc<Client>,
        url: Url,
        conduct: Conduct,
    ) -> std::result::Result<(Self, StorePath), OpenError> {
        let source = Source::new(Place::new(url.clone(), NamedBy::User));
        let first =
            source.first(&client, 1, (&conduct.stop, Turn::Waits)).map_err(OpenError::Fault)?;
        let named = name(first.offer.disposition.as_deref(), &url);
        let path = named.and_then(|name| StorePath::ROOT.join(&name).ok());
        let path = path.ok_or_else(|| OpenError::Nameless(url.clone()))?;
        let shared = Shared::new(client, conduct, url.dir(), (path.clone(), source.place));
        let (versions, shared) = (found::versions(&first.offer), Arc::new(shared));
        let answers = Answers::of(&found::known(first.offer.clone()));
        shared.keep_after(first);
        let server = Arc::new(Server::of_store(&shared, answers));
        Ok((Self { shared, versions, server }, path))
    }

    fn find(&self, doing: Doing<'_>) -> Result<Found> {
        let path = doing.path();
        if *path == StorePath::ROOT {
            return Ok(found::dir(&self.shared.dir));
        }
        // One byte shows the size, and whether the server sends ranges. Servers answer HEAD less reliably.
        let (source, first) = doing.or(self.shared.first(path, 1))?;
        let found = found::file(&first.offer, &source.place.current(), self.shared.begin);
        self.shared.keep_after(first);
        Ok(found)
    }
}

fn read_only<T>(what: &'static str, path: &StorePath) -> Result<T> {
    doing(what, path).fail(ErrorKind::ReadOnly)
}

impl Store for HttpStore {
    fn abilities(&self) -> Abilities {
        Abilities {
            writes: Writes::Never,
            versions: self.versions,
            latency: Latency::RoundTrip,
            ..Abilities::default()
        }
    }

    fn look(&self, path: &StorePath) -> Result<Found> {
        self.find(doing("look at", path))
    }

    fn list(&self, dir: &StorePath, _after: Option<&Cursor>, _room: usize) -> Result<Page> {
        doing("list", dir).fail(ErrorKind::Unsupported(Ability::List))
    }

    fn open(&self, path: &StorePath, access: Access) -> Result<Box<dyn Open>> {
        let doing = doing("open", path);
        if access == Access::Update {
            return doing.fail(ErrorKind::ReadOnly);
        }
        if *path == StorePath::ROOT {
            return doing.fail(ErrorKind::IsDir);
        }
        let (source, first) = doing.or(self.shared.first(path, FIRST_BYTES))?;
        match HttpOpen::new(&self.shared, path, source, first) {
            Some(open) => Ok(Box::new(open)),
            None => doing.fail(ErrorKind::SPECIAL),
        }
    }

    fn create(&self, path: &StorePath, _make: &Make) -> Result<Box<dyn Draft>> {
        read_only("create", path)
    }

    fn take_up(&self, path: &StorePath, _token: &Token) -> Result<Box<dyn Draft>> {
        read_only("resume", path)
    }

    fn make_dir(&self, path: &StorePath, _mode: u32) -> Result<()> {
        read_only("make the directory", path)
    }

    fn make_link(&self, path: &StorePath, _text: &[u8]) -> Result<()> {
        read_only("make the link", path)
    }

    fn read_link(&self, path: &StorePath) -> Result<Vec<u8>> {
        doing("read the link", path).fail(ErrorKind::Unsupported(Ability::Links))
    }

    fn remove(&self, path: &StorePath, _kind: Kind) -> Result<()> {
        read_only("remove", path)
    }

    fn rename(&self, from: &StorePath, _to: &StorePath, _replace: Replace) -> Result<()> {
        read_only("rename", from)
    }

    fn change(&self, path: &StorePath, _change: &Change) -> Result<()> {
        read_only("change", path)
    }

    fn attributes(&self, path: &StorePath) -> Result<Vec<Attribute>> {
        doing("read the attributes of", path).fail(ErrorKind::Unsupported(Ability::Attributes))
    }

    fn space(&self) -> Result<Space> {
        let doing = doing("report the space of", &StorePath::ROOT);
        doing.fail(ErrorKind::Unsupported(Ability::Space))
    }

    fn places(&self, _path: &StorePath) -> Result<Vec<hikyaku_store::Place>> {
        Ok(Vec::new())
    }

    fn own_fetchers(&self, count: usize) -> Result<Vec<Arc<dyn Fetcher>>> {
        Ok(self.server.fetchers(count))
    }

    fn sync(&self, _dirs: &[StorePath]) -> Result<()> {
        Ok(())
    }

    /// One file. A directory cannot be listed.
    fn walk(&self, root: &StorePath, each: &mut dyn FnMut(Entry) -> ControlFlow<()>) -> Result<()> {
        let doing = doing("list", root);
        let found = self.find(doing)?;
        if found.kind == Kind::Dir {
            return doing.fail(ErrorKind::Unsupported(Ability::List));
        }
        let content = found::content(&found);
        let _ = each(Entry { content, ..Entry::new(root.clone(), Ok(found), None) });
        Ok(())
    }
}
