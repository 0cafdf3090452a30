//! The store.

use crate::convert::{self, found};
use crate::draft::GfarmDraft;
use crate::gfarm::{Gfarm, Trouble, one};
use crate::here::LocalOpen;
use crate::open::GfarmOpen;
use crate::place::{place, spot};
use crate::update::GfarmUpdate;
use crate::walk::{places, whole};
use hikyaku_fs::{Name, Token as Copy};
use hikyaku_gfarm::{CallError, Code, Metadata};
use hikyaku_store::{
    Abilities, Ability, Access, Attribute, Change, Cursor, Doing, Draft, Entry, ErrorKind, Found,
    Item, Kind, Latency, Make, Op, Open, Page, Place, Replace, Reply, Result, Space, Store,
    StorePath, Token, Writes, doing,
};
use std::ops::ControlFlow;

impl Gfarm {
    fn stat(&self, path: &StorePath) -> std::result::Result<hikyaku_gfarm::Stat, Trouble> {
        one(self.ask(|session| session.look(&[path.as_bytes()]))?.1)
    }

    /// Makes a change whose answer is only whether it was made.
    fn make(
        &self,
        doing: Doing<'_>,
        change: impl Fn(&Metadata) -> std::result::Result<std::result::Result<(), Code>, CallError>,
    ) -> Result<()> {
        doing.or(self.ask(change).and_then(|(_, made)| Ok(made?)))
    }
}

/// Permission bits that can be set: those of set-id are for gfmd's administrator.
const MODE: u32 = 0o1777;

impl From<Trouble> for ErrorKind {
    fn from(trouble: Trouble) -> Self {
        trouble.kind()
    }
}

impl Store for Gfarm {
    fn abilities(&self) -> Abilities {
        Abilities {
            update: true,
            rename: true,
            name_if_absent: true,
            links: true,
            modes: true,
            times: true,
            replicas: true,
            writes: Writes::Runs,
            latency: Latency::RoundTrip,
            ..Abilities::default()
        }
    }

    fn look(&self, path: &StorePath) -> Result<Found> {
        let doing = doing("look at", path);
        if path != &StorePath::ROOT {
            place(doing)?;
        }
        let mut looked = found(&doing.or(self.stat(path))?);
        if looked.kind == Kind::Link {
            looked.size = self.read_link(path)?.len() as u64;
        }
        Ok(looked)
    }

    /// gfmd sends a directory as a whole. Pages are in the order of the names.
    fn list(&self, dir: &StorePath, after: Option<&Cursor>, room: usize) -> Result<Page> {
        let doing = doing("list", dir);
        let listed = self.ask(|session| session.list(&[dir.as_bytes()]));
        let mut entries = doing.or(listed.and_then(|(_, listed)| one(listed)))?;
        entries.sort_unstable_by(|one, other| one.0.cmp(&other.0));
        let from = match after {
            Some(Cursor(last)) => entries.partition_point(|(name, _)| name <= last),
            None => 0,
        };
        let mut page = Page::default();
        let mut rest = entries.drain(from..).peekable();
        while let Some((name, stat)) = rest.next() {
            match Name::new(&name) {
                Ok(name) if Copy::of(&name).is_some() => {}
                Ok(name) => page.items.push(Item { name, found: found(&stat) }),
                Err(_) => page.skipped += 1,
            }
            if page.items.len() >= room.max(1) && rest.peek().is_some() {
                page.next = Some(Cursor(name));
                break;
            }
        }
        Ok(page)
    }

    fn open(&self, path: &StorePath, access: Access) -> Result<Box<dyn Open>> {
        let doing = doing("open", path);
        match doing.or(self.stat(path)).map(|stat| convert::kind(stat.kind))? {
            Kind::File => {}
            Kind::Dir => return doing.fail(ErrorKind::IsDir),
            Kind::Link => return doing.fail(ErrorKind::Link),
            Kind::Special => return doing.fail(ErrorKind::System(convert::ENXIO)),
        }
        if access == Access::Update {
            place(doing)?;
            return Ok(Box::new(GfarmUpdate::new(self, path)?));
        }
        let told = self.ask(|session| session.replicas(&[path.as_bytes()]));
        let (stat, replicas) = doing.or(told.and_then(|(_, told)| one(told)))?;
        match LocalOpen::new(self, path, &stat, &replicas) {
            Some(open) => Ok(Box::new(open)),
            None => Ok(Box::new(GfarmOpen::new(self, path, &stat, &replicas)?)),
        }
    }

    fn create(&self, path: &StorePath, make: &Make) -> Result<Box<dyn Draft>> {
        Ok(Box::new(GfarmDraft::new(self, path, make)?))
    }

    fn take_up(&self, path: &StorePath, _: &Token) -> Result<Box<dyn Draft>> {
        doing("resume", path).fail(ErrorKind::Unsupported(Ability::TakeUp))
    }

    fn make_dir(&self, path: &StorePath, mode: u32) -> Result<()> {
        let doing = doing("make the directory", path);
        let spot = spot(self, doing)?;
        self.make(doing, |session| session.make_dir(spot.place(), mode & MODE))
    }

    fn make_link(&self, path: &StorePath, text: &[u8]) -> Result<()> {
        let doing = doing("make the link", path);
        let spot = spot(self, doing)?;
        self.make(doing, |session| session.make_link(spot.place(), text))
    }

    fn read_link(&self, path: &StorePath) -> Result<Vec<u8>> {
        let doing = doing("read the link", path);
        let told = self.ask(|session| session.read_links(&[path.as_bytes()]));
        doing.or(told.and_then(|(_, told)| one(told)))
    }

    fn remove(&self, path: &StorePath, kind: Kind) -> Result<()> {
        let doing = doing("remove", path);
        let found = self.look(path).or_else(|error| doing.fail(error.kind))?;
        match (kind, found.kind) {
            (Kind::Dir, Kind::Dir) => {}
            (Kind::Dir, _) => return doing.fail(ErrorKind::NotDir),
            (_, Kind::Dir) => return doing.fail(ErrorKind::IsDir),
            _ => {}
        }
        let at = place(doing)?;
        self.make(doing, |session| session.remove(at.place()))
    }

    /// A file is refused an existing name atomically. A directory or a link is refused it by a look before.
    fn rename(&self, from: &StorePath, to: &StorePath, replace: Replace) -> Result<()> {
        let (doing, onto) = (doing("rename", from), doing("rename to", to));
        if replace == Replace::Exchange {
            return doing.fail(ErrorKind::Unsupported(Ability::Exchange));
        }
        let found = self.look(from).or_else(|error| doing.fail(error.kind))?;
        let (old, new) = (place(doing)?, spot(self, onto)?);
        if replace == Replace::Never && found.kind == Kind::File {
            self.make(onto, |session| session.link(from.as_bytes(), new.place()))?;
            return self.make(doing, |session| session.remove(old.place()));
        }
        match (self.look(to).map(|found| found.kind), replace) {
            (Err(error), _) if error.kind == ErrorKind::NotFound => {}
            (Err(error), _) => return onto.fail(error.kind),
            (Ok(_), Replace::Never) => return onto.fail(ErrorKind::Exists),
            (Ok(Kind::Dir), _) if found.kind != Kind::Dir => return onto.fail(ErrorKind::IsDir),
            (Ok(kind), _) if kind != Kind::Dir && found.kind == Kind::Dir => {
                return onto.fail(ErrorKind::NotDir);
            }
            (Ok(_), _) => {}
        }
        self.make(onto, |session| session.rename(old.place(), new.place()))
    }

    fn change(&self, path: &StorePath, change: &Change) -> Result<()> {
        let doing = doing("change", path);
        let found = self.look(path).or_else(|error| doing.fail(error.kind))?;
        if change.owner.is_some_and(|owner| owner != found.owner) {
            return doing.fail(ErrorKind::Unsupported(Ability::Owners));
        }
        if !change.attributes.is_empty() {
            return doing.fail(ErrorKind::Unsupported(Ability::Attributes));
        }
        let at = path.as_bytes();
        if let Some(mode) = change.mode.filter(|_| found.kind != Kind::Link) {
            self.make(doing, |session| session.set_mode(at, mode & MODE))?;
        }
        if let Some(time) = change.modified {
            self.make(doing, |session| session.set_time(at, convert::time(time)))?;
        }
        Ok(())
    }

    fn attributes(&self, path: &StorePath) -> Result<Vec<Attribute>> {
        let lacks = ErrorKind::Unsupported(Ability::Attributes);
        doing("read the attributes of", path).fail(lacks)
    }

    /// The space of all nodes together.
    fn space(&self) -> Result<Space> {
        let doing = doing("ask for the space of", &StorePath::ROOT);
        let told = doing.or(self.ask(Metadata::space))?.1;
        Ok(Space { free: told.free, total: told.used.saturating_add(told.free), files: None })
    }

    /// The nodes with a whole replica of the present content.
    fn places(&self, path: &StorePath) -> Result<Vec<Place>> {
        let doing = doing("find the replicas of", path);
        let told = self.ask(|session| session.replicas(&[path.as_bytes()]));
        let (stat, replicas) = doing.or(told.and_then(|(_, told)| one(told)))?;
        Ok(places(whole(&stat, replicas)))
    }

    fn walk(&self, root: &StorePath, each: &mut dyn FnMut(Entry) -> ControlFlow<()>) -> Result<()> {
        self.walk_below(root, each)
    }

    fn batch(&self, ops: &[Op<'_>], each: &mut dyn FnMut(usize, Result<Reply>)) {
        self.do_all(ops, each);
    }

    /// gfmd has each change in its journal when it answers. After an outage of gfmd it is an error: what it has now is to be
    /// looked at again.
    fn sync(&self, dirs: &[StorePath]) -> Result<()> {
        let paths: Vec<&[u8]> = dirs.iter().map(StorePath::as_bytes).collect();
        let told = self.ask(|session| session.look(&paths)).map(|(_, told)| told);
        let told = doing("sync", dirs.first().unwrap_or(&StorePath::ROOT)).or(told)?;
        if self.was_away() {
            let dir = dirs.first().unwrap_or(&StorePath::ROOT);
            return doing("sync", dir).fail(ErrorKind::Unreachable);
        }
        for (dir, stat) in dirs.iter().zip(told) {
            doing("sync", dir).or(stat.map_err(Trouble::from))?;
        }
        Ok(())
    }
}
