//! The reading half of a store.

use crate::convert::{self, found};
use crate::gfarm::{Gfarm, Trouble, one};
use crate::here::LocalOpen;
use crate::open::GfarmOpen;
use hikyaku_fs::Name;
use hikyaku_store::{
    Abilities, Access, Attribute, Change, Cursor, Draft, ErrorKind, Found, Item, Kind, Make, Open,
    Page, Place, Replace, Result, Space, Store, StorePath, Token, doing,
};

impl Gfarm {
    fn stat(&self, path: &StorePath) -> std::result::Result<hikyaku_gfarm::Stat, Trouble> {
        one(self.ask(|session| session.look(&[path.as_bytes()]))?.1)
    }
}

impl From<Trouble> for ErrorKind {
    fn from(trouble: Trouble) -> Self {
        trouble.kind()
    }
}

impl Store for Gfarm {
    /// Those of a store that is only read.
    fn abilities(&self) -> Abilities {
        Abilities { links: true, modes: true, times: true, replicas: true, ..Abilities::default() }
    }

    fn look(&self, path: &StorePath) -> Result<Found> {
        let doing = doing("look at", path);
        doing.or(self.stat(path)).map(|stat| found(&stat))
    }

    /// gfmd tells a directory as a whole. Pages are in the order of the names.
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
        if access == Access::Update {
            return doing.fail(ErrorKind::ReadOnly);
        }
        match doing.or(self.stat(path)).map(|stat| convert::kind(stat.kind))? {
            Kind::File => {}
            Kind::Dir => return doing.fail(ErrorKind::IsDir),
            Kind::Link => return doing.fail(ErrorKind::Link),
            Kind::Special => return doing.fail(ErrorKind::System(convert::ENXIO)),
        }
        let told = self.ask(|session| session.replicas(&[path.as_bytes()]));
        let (stat, replicas) = doing.or(told.and_then(|(_, told)| one(told)))?;
        match LocalOpen::new(self, path, &stat, &replicas) {
            Some(open) => Ok(Box::new(open)),
            None => Ok(Box::new(GfarmOpen::new(self, path, &stat, &replicas)?)),
        }
    }

    fn create(&self, path: &StorePath, _: &Make) -> Result<Box<dyn Draft>> {
        doing("create", path).fail(ErrorKind::ReadOnly)
    }

    fn take_up(&self, path: &StorePath, _: &Token) -> Result<Box<dyn Draft>> {
        doing("resume", path).fail(ErrorKind::ReadOnly)
    }

    fn make_dir(&self, path: &StorePath, _: u32) -> Result<()> {
        doing("make the directory", path).fail(ErrorKind::ReadOnly)
    }

    fn make_link(&self, path: &StorePath, _: &[u8]) -> Result<()> {
        doing("make the link", path).fail(ErrorKind::ReadOnly)
    }

    fn read_link(&self, path: &StorePath) -> Result<Vec<u8>> {
        let doing = doing("read the link", path);
        let told = self.ask(|session| session.read_links(&[path.as_bytes()]));
        doing.or(told.and_then(|(_, told)| one(told)))
    }

    fn remove(&self, path: &StorePath, _: Kind) -> Result<()> {
        doing("remove", path).fail(ErrorKind::ReadOnly)
    }

    fn rename(&self, from: &StorePath, _: &StorePath, _: Replace) -> Result<()> {
        doing("rename", from).fail(ErrorKind::ReadOnly)
    }

    fn change(&self, path: &StorePath, _: &Change) -> Result<()> {
        doing("change", path).fail(ErrorKind::ReadOnly)
    }

    fn attributes(&self, path: &StorePath) -> Result<Vec<Attribute>> {
        let lacks = ErrorKind::Unsupported(hikyaku_store::Ability::Attributes);
        doing("read the attributes of", path).fail(lacks)
    }

    fn space(&self) -> Result<Space> {
        let lacks = ErrorKind::Unsupported(hikyaku_store::Ability::Space);
        doing("ask for the space of", &StorePath::ROOT).fail(lacks)
    }

    /// The nodes with a whole replica of the present content.
    fn places(&self, path: &StorePath) -> Result<Vec<Place>> {
        let doing = doing("find the replicas of", path);
        let told = self.ask(|session| session.replicas(&[path.as_bytes()]));
        let (stat, replicas) = doing.or(told.and_then(|(_, told)| one(told)))?;
        let good = replicas
            .into_iter()
            .filter(|replica| replica.is_complete && replica.generation == stat.handle.generation);
        let mut places: Vec<Place> =
            good.map(|replica| Place { host: replica.host, is_up: replica.is_up }).collect();
        places.sort_by_key(|place| !place.is_up);
        Ok(places)
    }

    fn sync(&self, _: &[StorePath]) -> Result<()> {
        Ok(())
    }
}
