//! The server as a store.

use crate::at_once::SMALL_BYTES;
use crate::convert::{found, is_unknown, kind, reason};
use crate::draft::FtpDraft;
use crate::ftp::{Ftp, Modes, Times};
use crate::held::WINDOW_BYTES;
use crate::open::FtpOpen;
use crate::reading::Reading;
use crate::visit::{Next, Visited};
use crate::writing::{Names, NewModes};
use hikyaku_fs::Token as Partial;
use hikyaku_gridftp::{Facts, Mode, Rename};
use hikyaku_store::{
    Abilities, Ability, Access, Attribute, Change, Clock, Cursor, Doing, Draft, Entry, ErrorKind,
    Fetcher, Found, Growing, Kind, Latency, Make, Op, Open, Page, Place, Replace, Reply, Result,
    Space, Store, StorePath, Token, Umask, Versions, Writes, doing, runs,
};
use hikyaku_transfer::Links;
use std::borrow::Cow;
use std::ops::ControlFlow;
use std::sync::Arc;

impl Ftp {
    /// The metadata of a path.
    pub(crate) fn found(&self, facts: &Facts, path: &StorePath) -> Found {
        let is_link = self.writing().links == Links::Kept;
        let facts = &match is_link {
            true => Cow::Borrowed(facts),
            false => Cow::Owned(Facts { link: None, ..facts.clone() }),
        };
        match *path == StorePath::ROOT {
            true => Found { kind: Kind::Dir, ..found(facts, path) },
            false => found(facts, path),
        }
    }

    /// The kind of the entry at a path.
    fn kind(&self, doing: Doing<'_>) -> Result<Kind> {
        Ok(kind(&self.facts(doing)?))
    }

    /// Whether a new name can be made: its directory exists.
    pub(crate) fn spot(&self, doing: Doing<'_>) -> Result<()> {
        let Some((dir, name)) = doing.path().split() else { return doing.fail(ErrorKind::Exists) };
        if Partial::of(&name).is_some() {
            return doing.fail(ErrorKind::BadName);
        }
        if dir == StorePath::ROOT {
            return Ok(());
        }
        let full = self.full(&dir);
        match doing.or(self.with(|channel| channel.facts(&full)).map_err(|error| reason(&error)))? {
            None => doing.fail(self.missing(doing.path())),
            Some(facts) => match kind(&facts) {
                Kind::Dir => Ok(()),
                Kind::File => doing.fail(ErrorKind::NotDir),
                Kind::Link | Kind::Special => doing.fail(ErrorKind::Link),
            },
        }
    }

    /// Whether new entries get permission bits that the caller names.
    pub(crate) fn new_modes(&self) -> Modes {
        match self.writing().modes {
            NewModes::Named => self.traits().modes,
            NewModes::OfServer => Modes::Unknown,
        }
    }

    fn lacks<T>(&self, what: &'static str, path: &StorePath, ability: Ability) -> Result<T> {
        doing(what, path).fail(ErrorKind::Unsupported(ability))
    }

    /// Sets permission bits, if the server has them.
    pub(crate) fn set_mode(&self, doing: Doing<'_>, full: &[u8], mode: u32) -> Result<()> {
        if self.traits().modes == Modes::Unknown {
            return doing.fail(ErrorKind::Unsupported(Ability::Modes));
        }
        match self.with(|channel| channel.set_mode(full, mode)) {
            Err(error) if is_unknown(&error) => doing.fail(ErrorKind::Unsupported(Ability::Modes)),
            done => doing.or(done.map_err(|error| reason(&error))),
        }
    }

    /// Sets a modification time in seconds, if the server can.
    pub(crate) fn set_modified(&self, doing: Doing<'_>, full: &[u8], seconds: i64) -> Result<()> {
        // The digits of the protocol begin with a year, and a server counts from 1970.
        if self.traits().times == Times::OfServer || seconds < 0 {
            return doing.fail(ErrorKind::Unsupported(Ability::Times));
        }
        match self.with(|channel| channel.set_modified(full, seconds)) {
            Err(error) if is_unknown(&error) => doing.fail(ErrorKind::Unsupported(Ability::Times)),
            done => doing.or(done.map_err(|error| reason(&error))),
        }
    }
}

impl Store for Ftp {
    fn abilities(&self) -> Abilities {
        let traits = self.traits();
        Abilities {
            rename: true,
            modes: traits.modes == Modes::Shown,
            times: traits.times == Times::Settable,
            clock: Clock::Seconds,
            identities: traits.identities,
            writes: match traits.mode {
                Mode::Extended => Writes::Anywhere,
                Mode::Stream => Writes::Window { bytes: WINDOW_BYTES },
            },
            take_up: true,
            versions: Versions::SizeAndTime,
            latency: Latency::RoundTrip,
            umask: match self.writing().modes {
                NewModes::Named => Umask::Caller,
                NewModes::OfServer => Umask::Store,
            },
            put_bytes: match traits.mode {
                Mode::Extended => SMALL_BYTES as u64,
                Mode::Stream => 0,
            },
            ..Abilities::default()
        }
    }

    fn look(&self, path: &StorePath) -> Result<Found> {
        Ok(self.found(&self.facts(doing("look at", path))?, path))
    }

    fn list(&self, dir: &StorePath, after: Option<&Cursor>, room: usize) -> Result<Page> {
        self.page(doing("list", dir), after, room)
    }

    fn open(&self, path: &StorePath, access: Access) -> Result<Box<dyn Open>> {
        let doing = doing("open", path);
        let facts = self.facts(doing)?;
        match kind(&facts) {
            Kind::Dir => doing.fail(ErrorKind::IsDir),
            Kind::Link | Kind::Special => doing.fail(ErrorKind::SPECIAL),
            Kind::File if access == Access::Update => {
                doing.fail(ErrorKind::Unsupported(Ability::Update))
            }
            Kind::File => Ok(Box::new(FtpOpen::new(self, path, facts))),
        }
    }

    fn create(&self, path: &StorePath, make: &Make) -> Result<Box<dyn Draft>> {
        let doing = doing("create", path);
        if self.writing().names == Names::Unknown {
            self.spot(doing)?;
        }
        Ok(Box::new(FtpDraft::new(self, doing, make)?))
    }

    fn grow(&self, path: &StorePath, make: &Make, growing: Growing) -> Result<Box<dyn Draft>> {
        match growing {
            Growing::Anew => Ok(Box::new(FtpDraft::anew(self, doing("write", path), make)?)),
            Growing::Behind(_) => self.lacks("append to", path, Ability::Update),
        }
    }

    fn take_up(&self, path: &StorePath, token: &Token) -> Result<Box<dyn Draft>> {
        Ok(Box::new(FtpDraft::take_up(self, doing("resume", path), token)?))
    }

    fn make_dir(&self, path: &StorePath, mode: u32) -> Result<()> {
        let doing = doing("make the directory", path);
        if path.below_root().is_none() {
            return doing.fail(ErrorKind::Exists);
        }
        let full = self.full(path);
        if let Err(error) = self.with(|channel| channel.make_new_dir(&full)) {
            return doing.fail(match self.why(path, &error) {
                // The path exists, so that is the reason.
                _ if self.facts(doing).is_ok() => ErrorKind::Exists,
                // Nothing is in the way.
                ErrorKind::NotFound if self.spot(doing).is_ok() => reason(&error),
                kind => kind,
            });
        }
        match self.new_modes() {
            Modes::Shown => self.set_mode(doing, &full, mode),
            Modes::Unknown => Ok(()),
        }
    }

    fn make_link(&self, path: &StorePath, _: &[u8]) -> Result<()> {
        self.lacks("make the link", path, Ability::Links)
    }

    fn read_link(&self, path: &StorePath) -> Result<Vec<u8>> {
        self.lacks("read the link", path, Ability::Links)
    }

    fn remove(&self, path: &StorePath, wanted: Kind) -> Result<()> {
        let doing = doing("remove", path);
        if path.below_root().is_none() {
            return doing.fail(ErrorKind::Busy);
        }
        let (is, full) = (self.kind(doing)?, self.full(path));
        match (is, wanted) {
            (Kind::Dir, Kind::Dir) => {
                let removed = self.with(|channel| channel.remove_dir(&full));
                let Err(error) = removed else { return Ok(()) };
                let is_full =
                    self.with(|channel| channel.list(&full)).is_ok_and(|all| !all.is_empty());
                doing.fail(if is_full { ErrorKind::NotEmpty } else { self.why(path, &error) })
            }
            (Kind::Dir, _) => doing.fail(ErrorKind::IsDir),
            (_, Kind::Dir) => doing.fail(ErrorKind::NotDir),
            _ => {
                let removed = self.with(|channel| channel.remove(&full));
                doing.or(removed.map_err(|error| self.why(path, &error)))
            }
        }
    }

    fn rename(&self, from: &StorePath, to: &StorePath, replace: Replace) -> Result<()> {
        let doing = doing("rename", from);
        match replace {
            Replace::Allowed => {}
            Replace::Never => return doing.fail(ErrorKind::Unsupported(Ability::NameIfAbsent)),
            Replace::Exchange => return doing.fail(ErrorKind::Unsupported(Ability::Exchange)),
        }
        let is = self.kind(doing)?;
        if from == to {
            return Ok(());
        }
        let (full, full_to) = (self.full(from), self.full(to));
        let there = self.with(|channel| channel.facts(&full_to));
        let there = doing.or(there.map_err(|error| reason(&error)))?.map(|facts| kind(&facts));
        match (is, there) {
            (_, None) | (Kind::Dir, Some(Kind::Dir)) => {}
            (Kind::Dir, Some(_)) => return doing.fail(ErrorKind::NotDir),
            (_, Some(Kind::Dir)) => return doing.fail(ErrorKind::IsDir),
            (_, Some(_)) => {}
        }
        let rename = Rename { from: &full, to: &full_to, mode: None, modified: None };
        let Err(error) = self.with(|channel| channel.rename(&rename)) else { return Ok(()) };
        doing.fail(match there {
            Some(Kind::Dir) => ErrorKind::NotEmpty,
            Some(_) => reason(&error),
            None => match self.spot(hikyaku_store::doing("rename", to)) {
                Err(error) => error.kind,
                Ok(()) => reason(&error),
            },
        })
    }

    fn change(&self, path: &StorePath, change: &Change) -> Result<()> {
        let doing = doing("change", path);
        self.kind(doing)?;
        if change.owner.is_some() {
            return doing.fail(ErrorKind::Unsupported(Ability::Owners));
        }
        if !change.attributes.is_empty() {
            return doing.fail(ErrorKind::Unsupported(Ability::Attributes));
        }
        let full = self.full(path);
        change.mode.map_or(Ok(()), |mode| self.set_mode(doing, &full, mode))?;
        let seconds = change.modified.map(|time| time.secs);
        seconds.map_or(Ok(()), |seconds| self.set_modified(doing, &full, seconds))
    }

    fn attributes(&self, path: &StorePath) -> Result<Vec<Attribute>> {
        self.lacks("read the attributes of", path, Ability::Attributes)
    }

    fn space(&self) -> Result<Space> {
        self.lacks("ask for the space of", &StorePath::ROOT, Ability::Space)
    }

    fn places(&self, path: &StorePath) -> Result<Vec<Place>> {
        self.facts(doing("find the replicas of", path)).map(|_| Vec::new())
    }

    fn walk(&self, root: &StorePath, each: &mut dyn FnMut(Entry) -> ControlFlow<()>) -> Result<()> {
        let facts = self.facts(doing("look at", root))?;
        let found = self.found(&facts, root);
        if each(Entry::new(root.clone(), Ok(found), None)).is_break() || found.kind != Kind::Dir {
            return Ok(());
        }
        self.visit((root, &facts), Links::Kept, &mut |dir, visited| {
            let (entries, skipped) = match visited {
                Visited::Listed { entries, skipped } => (entries, skipped),
                Visited::Unlisted(error) => {
                    let found = self.not_listed(dir, &error);
                    let flow = each(Entry::new(dir.clone(), found, None));
                    return if flow.is_break() { Next::Stop } else { Next::Go };
                }
            };
            let found = entries.iter().map(|item| {
                Entry::new(item.path.clone(), Ok(self.found(&item.facts, &item.path)), None)
            });
            let bad = (skipped > 0).then(|| Entry::of_bad_name(dir));
            match found.chain(bad).try_for_each(&mut *each) {
                ControlFlow::Continue(()) => Next::Go,
                ControlFlow::Break(()) => Next::Stop,
            }
        });
        Ok(())
    }

    fn batch(&self, ops: &[Op<'_>], each: &mut dyn FnMut(usize, Result<Reply>)) {
        let _turn = self.turn();
        for run in runs(ops) {
            let of_run: Vec<(usize, Op<'_>)> = run.clone().zip(ops[run].iter().copied()).collect();
            self.at_once(&of_run, each);
        }
    }

    /// FTP has no command for it: a server has stored what it has confirmed.
    fn sync(&self, dirs: &[StorePath]) -> Result<()> {
        if self.writing().names == Names::Looked {
            return Ok(());
        }
        dirs.iter().try_for_each(|dir| self.facts(doing("sync", dir)).map(drop))
    }

    fn own_fetchers(&self, count: usize) -> Result<Vec<Arc<dyn Fetcher>>> {
        let reading = Reading { connections: self.writing().connections, ..Reading::default() };
        Ok(self.readers(count.min(self.readers_max()), &reading))
    }
}
