//! Directories that are listed: one by itself, and by pages.

use crate::convert::{found, reason};
use crate::store::Sftp;
use hikyaku_fs::{Name, Token as Partial};
use hikyaku_sftp::{Asked, Entry, Failed, Handle, Request, Response, Status, Ticket};
use hikyaku_store::{Cursor, Doing, ErrorKind, Found, Item, Page, Result, StorePath};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, PoisonError};

/// Requests for entries of one directory that are under way at once.
const AHEAD_MAX: usize = 32;
/// Answers after which one more request is sent ahead. A directory of so few answers costs no request that is in vain.
const ANSWERS_A_REQUEST: usize = 4;
/// Listings that are kept between two pages.
const KEPT_MAX: usize = 32;

/// A directory that is open at the server.
pub(crate) struct Listing {
    handle: Handle,
    asked: VecDeque<Ticket>,
    answers: usize,
}

impl Listing {
    /// Opens a directory.
    pub(crate) fn open(store: &Sftp, dir: &StorePath) -> Asked<Self> {
        Self::opened(store, store.ask_for_dir(dir))
    }

    /// Waits for a directory that was asked for, and requests its first entries.
    pub(crate) fn opened(store: &Sftp, ticket: Ticket) -> Asked<Self> {
        let handle = store.inner.client.answer(ticket).handle()?;
        let mut listing = Self { handle, asked: VecDeque::new(), answers: 0 };
        listing.ask(store);
        Ok(listing)
    }

    fn ask(&mut self, store: &Sftp) {
        let ahead = (self.answers / ANSWERS_A_REQUEST).clamp(1, AHEAD_MAX);
        while self.asked.len() < ahead {
            self.asked.push_back(store.inner.client.ask(&Request::ReadDir(self.handle.bytes())));
        }
    }

    /// The next entries, and the request for those after them; `None` at the end.
    pub(crate) fn next(&mut self, store: &Sftp) -> Asked<Option<Vec<Entry>>> {
        let Some(ticket) = self.asked.pop_front() else { return Ok(None) };
        let entries = match store.inner.client.wait(ticket) {
            Ok(Response::Names(entries)) => entries,
            Ok(_) => return Err(Failed::Odd),
            Err(Failed::Refused { status: Status::End, .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        self.answers += 1;
        self.ask(store);
        Ok(Some(entries))
    }

    /// Closes the directory. Nothing was written, so the answer is not awaited.
    pub(crate) fn close(self, store: &Sftp) {
        drop(store.inner.client.ask(&Request::Close(self.handle.bytes())));
    }
}

/// An entry as a store lists it.
pub(crate) enum Listed {
    Item(Name, Found),
    /// The server has sent no kind, time, or size: it is to be looked at.
    Bare(Name),
    /// A name that cannot be part of a path.
    Unusable,
    /// The directory itself, the one above it, or a draft.
    Hidden,
}

impl Listed {
    pub(crate) fn of(store: &Sftp, dir: &StorePath, entry: &Entry) -> Self {
        if matches!(&entry.name[..], b"." | b"..") {
            return Self::Hidden;
        }
        let Ok(name) = Name::new(&entry.name) else { return Self::Unusable };
        if Partial::of(&name).is_some() {
            return Self::Hidden;
        }
        let Ok(path) = dir.join(&name) else { return Self::Unusable };
        let modified = entry.modified(store.inner.begin);
        match found(&path, &entry.attributes, modified) {
            Some(found) => {
                store.note(&path, &found);
                Self::Item(name, found)
            }
            None => Self::Bare(name),
        }
    }
}

/// Listings of which a page was sent, each with the entries that did not fit on it.
#[derive(Default)]
pub(crate) struct Kept(Mutex<KeptListings>);

#[derive(Default)]
struct KeptListings {
    next: u64,
    all: BTreeMap<u64, (StorePath, Paged)>,
}

struct Paged {
    listing: Listing,
    left: VecDeque<Entry>,
}

impl Kept {
    /// Keeps a listing. If there are too many, the oldest one ends.
    fn keep(&self, store: &Sftp, dir: &StorePath, paged: Paged) -> Cursor {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let number = kept.next;
        kept.next += 1;
        kept.all.insert(number, (dir.clone(), paged));
        if kept.all.len() > KEPT_MAX
            && let Some((_, (_, oldest))) = kept.all.pop_first()
        {
            oldest.listing.close(store);
        }
        Cursor(number.to_be_bytes().to_vec())
    }

    /// Takes a listing.
    fn take(&self, dir: &StorePath, cursor: &Cursor) -> Option<Paged> {
        let number = u64::from_be_bytes(cursor.0.as_slice().try_into().ok()?);
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.all.remove(&number).filter(|(of, _)| of == dir).map(|(_, paged)| paged)
    }
}

impl Sftp {
    pub(crate) fn ask_for_dir(&self, dir: &StorePath) -> Ticket {
        self.inner.client.ask(&Request::OpenDir(&self.at(dir)))
    }

    /// A page of a listing. The directory stays open at the server between the pages.
    pub(crate) fn page(
        &self,
        doing: Doing<'_>,
        after: Option<&Cursor>,
        room: usize,
    ) -> Result<Page> {
        let dir = doing.path();
        let mut paged = match after {
            // The listing has ended: too many others were begun, or the page was sent before.
            Some(cursor) => match self.inner.kept.take(dir, cursor) {
                Some(paged) => paged,
                None => return doing.fail(ErrorKind::Gone),
            },
            None => {
                if !self.inner.known.has(dir) {
                    doing.or(self.looked([dir]).dir(dir))?;
                }
                let opened = Listing::open(self, dir);
                let listing = doing.or(opened.map_err(|failed| self.why_not_used(dir, &failed)))?;
                Paged { listing, left: VecDeque::new() }
            }
        };
        let (mut page, mut bare) = (Page::default(), Vec::new());
        loop {
            while page.items.len() + bare.len() < room
                && let Some(entry) = paged.left.pop_front()
            {
                match Listed::of(self, dir, &entry) {
                    Listed::Item(name, found) => page.items.push(Item { name, found }),
                    Listed::Bare(name) => bare.push(name),
                    Listed::Unusable => page.skipped += 1,
                    Listed::Hidden => {}
                }
            }
            if !paged.left.is_empty() {
                page.next = Some(self.inner.kept.keep(self, dir, paged));
                break;
            }
            match paged.listing.next(self) {
                Ok(Some(entries)) => paged.left.extend(entries),
                Ok(None) => {
                    paged.listing.close(self);
                    break;
                }
                Err(failed) => {
                    paged.listing.close(self);
                    return doing.fail(reason(&failed));
                }
            }
        }
        self.look_at_bare(doing, bare, &mut page)?;
        Ok(page)
    }

    /// Adds entries of which the server has sent only the names.
    fn look_at_bare(&self, doing: Doing<'_>, bare: Vec<Name>, page: &mut Page) -> Result<()> {
        if bare.is_empty() {
            return Ok(());
        }
        let paths: Vec<_> = bare.iter().filter_map(|name| doing.path().join(name).ok()).collect();
        let looked = self.looked(&paths);
        for (name, path) in bare.into_iter().zip(&paths) {
            match looked.entry(path) {
                // It was removed meanwhile.
                Err(ErrorKind::NotFound) => {}
                entry => {
                    let found = entry.and_then(|attributes| self.of_entry(path, &attributes));
                    page.items.push(Item { name, found: doing.or(found)? });
                }
            }
        }
        Ok(())
    }
}
