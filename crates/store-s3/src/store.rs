//! The bucket as a tree.

use crate::connect::{Parents, S3};
use crate::draft::S3Draft;
use crate::key::{key, prefix};
use crate::objects::{Condition, Depth, Head, PAGE_ROOM, dir};
use crate::open::S3Open;
use bytes::Bytes;
use hikyaku_fs::Name;
use hikyaku_store::{
    Abilities, Ability, Access, Attribute, Change, Cursor, Doing, Draft, Entry, ErrorKind, Found,
    Item, Kind, Make, Op, Open, Page, Place, Replace, Reply, Result, Space, Store, StorePath,
    Token, do_at_once, doing, runs,
};
use std::ops::ControlFlow;

/// The entry at a path.
enum There {
    File(String, Head),
    Dir,
    Nothing,
}

impl S3 {
    fn there(&self, path: &StorePath) -> std::result::Result<There, ErrorKind> {
        if path == &StorePath::ROOT {
            return Ok(There::Dir);
        }
        let (key, inner) = (key(path)?, &self.inner);
        if let Some(head) = inner.wait(inner.wire.head(&key))? {
            return Ok(There::File(key, head));
        }
        Ok(if inner.wait(inner.wire.has_any(&prefix(path)?))? {
            There::Dir
        } else {
            There::Nothing
        })
    }

    /// Why nothing is at a path. A bucket may have objects of the names `a` and `a/b`, so this is asked only where nothing
    /// was found.
    fn nothing(&self, path: &StorePath) -> ErrorKind {
        let mut above = path.split().map(|(dir, _)| dir);
        while let Some(dir) = above.filter(|dir| dir != &StorePath::ROOT) {
            let head = key(&dir).map(|key| self.inner.wait(self.inner.wire.head(&key)));
            match head {
                Ok(Ok(None)) => {}
                Ok(Ok(Some(_))) => return ErrorKind::NotDir,
                Ok(Err(error)) => return error.kind(),
                Err(kind) => return kind,
            }
            above = dir.split().map(|(dir, _)| dir);
        }
        ErrorKind::NotFound
    }

    /// The entry at a path. A missing one is an error.
    fn find(&self, doing: Doing<'_>) -> Result<There> {
        match doing.or(self.there(doing.path()))? {
            There::Nothing if self.inner.parents == Parents::Required => {
                doing.fail(self.nothing(doing.path()))
            }
            There::Nothing => doing.fail(ErrorKind::NotFound),
            there => Ok(there),
        }
    }

    /// Whether a new name can be made, and its key.
    fn spot(&self, doing: Doing<'_>) -> Result<String> {
        let key = doing.or(key(doing.path()))?;
        let Some((dir, _)) = doing.path().split() else {
            return doing.fail(ErrorKind::Exists);
        };
        if self.inner.parents == Parents::Required {
            match doing.or(self.there(&dir))? {
                There::Dir => {}
                There::File(..) => return doing.fail(ErrorKind::NotDir),
                There::Nothing => return doing.fail(self.nothing(&dir)),
            }
        }
        Ok(key)
    }

    fn lacks<T>(&self, what: &'static str, path: &StorePath, ability: Ability) -> Result<T> {
        doing(what, path).fail(ErrorKind::Unsupported(ability))
    }

    /// Removes the object that marks a directory, if nothing else is in it.
    fn remove_dir(&self, doing: Doing<'_>) -> std::result::Result<(), ErrorKind> {
        let (marker, inner) = (prefix(doing.path())?, &self.inner);
        let page =
            crate::objects::Page { prefix: &marker, depth: Depth::All, room: 2, after: None };
        let listing = inner.wait(inner.wire.list(&page))?;
        match listing.objects.iter().any(|object| object.key != marker) {
            true => Err(ErrorKind::NotEmpty),
            false => Ok(inner.wait(inner.wire.delete(&marker))?),
        }
    }
}

impl Store for S3 {
    fn abilities(&self) -> Abilities {
        self.inner.abilities
    }

    fn look(&self, path: &StorePath) -> Result<Found> {
        Ok(match self.find(doing("look at", path))? {
            There::File(key, head) => head.found(&key),
            There::Dir | There::Nothing => dir(&String::from_utf8_lossy(path.as_bytes())),
        })
    }

    /// The time of a file is that of its upload: a listing has no other. A file and a directory of one name, which a bucket
    /// can have, are both listed.
    fn list(&self, path: &StorePath, after: Option<&Cursor>, room: usize) -> Result<Page> {
        let (doing, inner) = (doing("list", path), &self.inner);
        let prefix = doing.or(prefix(path))?;
        let after = match after {
            Some(Cursor(after)) => {
                Some(doing.or(str::from_utf8(after).map_err(|_| ErrorKind::Gone))?)
            }
            None => None,
        };
        let room = room.min(PAGE_ROOM);
        let wanted = crate::objects::Page { prefix: &prefix, depth: Depth::Names, room, after };
        let listing = doing.or(inner.wait(inner.wire.list(&wanted)))?;
        let is_empty = listing.objects.is_empty() && listing.prefixes.is_empty();
        if is_empty && after.is_none() && path != &StorePath::ROOT {
            return match self.find(doing)? {
                There::File(..) => doing.fail(ErrorKind::NotDir),
                // It has been filled just now.
                There::Dir | There::Nothing => Ok(Page::default()),
            };
        }
        let mut page =
            Page { next: listing.next.map(|next| Cursor(next.into_bytes())), ..Page::default() };
        let mut add = |name: &str, found: Found| match Name::new(name.as_bytes()) {
            Ok(name) => page.items.push(Item { name, found }),
            Err(_) => page.skipped += 1,
        };
        for object in listing.objects {
            match object.key.strip_prefix(&prefix) {
                // The marker of the directory itself, or what was not asked for.
                Some("") | None => {}
                Some(name) => add(name, object.found()),
            }
        }
        for dir_prefix in &listing.prefixes {
            let name = dir_prefix.strip_prefix(&prefix).and_then(|name| name.strip_suffix('/'));
            if let Some(name) = name {
                add(name, dir(dir_prefix.trim_end_matches('/')));
            }
        }
        Ok(page)
    }

    fn open(&self, path: &StorePath, access: Access) -> Result<Box<dyn Open>> {
        let doing = doing("open", path);
        match self.find(doing)? {
            There::File(..) if access == Access::Update => {
                doing.fail(ErrorKind::Unsupported(Ability::Update))
            }
            There::File(key, head) => Ok(Box::new(S3Open::new(self, path, key, head))),
            There::Dir | There::Nothing => doing.fail(ErrorKind::IsDir),
        }
    }

    fn create(&self, path: &StorePath, make: &Make) -> Result<Box<dyn Draft>> {
        let key = self.spot(doing("create", path))?;
        Ok(Box::new(S3Draft::new(self, path, key, make)?))
    }

    fn take_up(&self, path: &StorePath, _: &Token) -> Result<Box<dyn Draft>> {
        self.lacks("resume", path, Ability::TakeUp)
    }

    fn make_dir(&self, path: &StorePath, _: u32) -> Result<()> {
        let (doing, inner) = (doing("make the directory", path), &self.inner);
        let marker = self.spot(doing)? + "/";
        if !matches!(doing.or(self.there(path))?, There::Nothing) {
            return doing.fail(ErrorKind::Exists);
        }
        let made = inner.wire.put(&marker, Bytes::new(), None, &Condition::None);
        doing.or(inner.wait(made))?;
        // A server that keeps objects as files makes a file of it, which nothing can be put into.
        let name = doing.or(key(path))?;
        match doing.or(inner.wait(inner.wire.head(&name)))? {
            None => Ok(()),
            Some(_) => {
                doing.or(inner.wait(inner.wire.delete(&name)))?;
                doing.fail(ErrorKind::BadName)
            }
        }
    }

    fn make_link(&self, path: &StorePath, _: &[u8]) -> Result<()> {
        self.lacks("make the link", path, Ability::Links)
    }

    fn read_link(&self, path: &StorePath) -> Result<Vec<u8>> {
        self.lacks("read the link", path, Ability::Links)
    }

    fn remove(&self, path: &StorePath, kind: Kind) -> Result<()> {
        let (doing, inner) = (doing("remove", path), &self.inner);
        if path == &StorePath::ROOT {
            return doing.fail(ErrorKind::Busy);
        }
        match (self.find(doing)?, kind) {
            (There::File(..), Kind::Dir) => doing.fail(ErrorKind::NotDir),
            (There::File(key, _), _) => doing.or(inner.wait(inner.wire.delete(&key))),
            (_, Kind::Dir) => doing.or(self.remove_dir(doing)),
            _ => doing.fail(ErrorKind::IsDir),
        }
    }

    /// A copy and a removal would not be atomic.
    fn rename(&self, from: &StorePath, _: &StorePath, _: Replace) -> Result<()> {
        self.lacks("rename", from, Ability::Rename)
    }

    fn change(&self, path: &StorePath, change: &Change) -> Result<()> {
        self.find(doing("change", path))?;
        let lacking = [
            (change.mode.is_some(), Ability::Modes),
            (change.modified.is_some(), Ability::Times),
            (change.owner.is_some(), Ability::Owners),
            (!change.attributes.is_empty(), Ability::Attributes),
        ];
        match lacking.into_iter().find(|(is_wanted, _)| *is_wanted) {
            Some((_, ability)) => self.lacks("change", path, ability),
            None => Ok(()),
        }
    }

    fn attributes(&self, path: &StorePath) -> Result<Vec<Attribute>> {
        self.lacks("read the attributes of", path, Ability::Attributes)
    }

    fn space(&self) -> Result<Space> {
        self.lacks("ask for the space of", &StorePath::ROOT, Ability::Space)
    }

    /// The places of replicas within a service are unknown.
    fn places(&self, path: &StorePath) -> Result<Vec<Place>> {
        self.find(doing("find the replicas of", path)).map(|_| Vec::new())
    }

    fn walk(&self, root: &StorePath, each: &mut dyn FnMut(Entry) -> ControlFlow<()>) -> Result<()> {
        let doing = doing("list", root);
        let survey = match self.survey(root) {
            Err(error) if error.is_not_found() && self.inner.parents == Parents::Required => {
                return doing.fail(self.nothing(root));
            }
            survey => doing.or(survey)?,
        };
        survey.pass_on(root, each);
        Ok(())
    }

    /// Each operation is a request or a few, and up to as many are under way as parts of uploads.
    fn batch(&self, ops: &[Op<'_>], each: &mut dyn FnMut(usize, Result<Reply>)) {
        for run in runs(ops) {
            let of_run: Vec<(usize, Op<'_>)> = run.clone().zip(ops[run].iter().copied()).collect();
            do_at_once(self, &of_run, self.inner.requests_max(), each);
        }
    }

    /// A server keeps acknowledged objects without a sync.
    fn sync(&self, dirs: &[StorePath]) -> Result<()> {
        if self.inner.parents == Parents::Required {
            for dir in dirs {
                self.find(doing("sync", dir))?;
            }
        }
        Ok(())
    }
}
