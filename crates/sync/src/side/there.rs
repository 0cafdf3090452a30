//! A directory of an SFTP server. Names that the server tells are checked before they are used.

use super::{Done, Item, Kind, Meta, Setting, Side, What, Why};
use crate::plan::{join, parent};
use blake3::Hash;
use hikyaku_fs::{Name, PeerPath, Token};
use hikyaku_sftp::{
    Attributes, Client, Entry, Extension, Failed, Handle, Request, Response, Status,
};
use hikyaku_store::Time;
use hikyaku_units::DataSize;
use std::collections::VecDeque;
use std::time::SystemTime;

/// Requests for entries of one directory that are under way at once.
const REQUESTS_AHEAD: usize = 8;
/// The share of the memory of this process that one listing may take: 32 of them are under way at each end.
const LISTING_SHARE: u64 = 64;
/// What an entry takes beside its name, in bytes.
const ENTRY_BYTES: u64 = 72;

/// A directory of a server.
pub(crate) struct There {
    client: Client,
    root: Vec<u8>,
    /// The bytes of a directory's names that are kept.
    listing_max: u64,
    /// When this session began, in seconds since 1970.
    begin: i64,
}

impl There {
    /// `memory` is what this process may take.
    pub(crate) fn new(client: Client, root: Vec<u8>, memory: DataSize) -> Self {
        let begin = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let begin = i64::try_from(begin.as_secs()).unwrap_or(i64::MAX);
        Self { client, root, listing_max: memory.bytes() / LISTING_SHARE, begin }
    }

    /// A path of the server. It is one that the file system of this machine would take, too: a server that invents an
    /// endless tree comes to an end.
    fn at(&self, path: &[u8]) -> Done<Vec<u8>> {
        if path.is_empty() {
            return Ok(self.root.clone());
        }
        PeerPath::new(path).map_err(|error| Why::of_name(error.to_string()))?;
        let slash = if self.root.ends_with(b"/") { &b""[..] } else { b"/" };
        Ok([&self.root, slash, path].concat())
    }

    fn entries(&self, handle: &Handle) -> Done<Vec<Item>> {
        let (mut all, mut asked, mut bytes) = (Vec::new(), VecDeque::new(), 0);
        loop {
            while asked.len() < REQUESTS_AHEAD {
                asked.push_back(self.client.ask(&Request::ReadDir(handle.bytes())));
            }
            let Some(ticket) = asked.pop_front() else { return Ok(all) };
            let entries = match self.client.wait(ticket) {
                Ok(Response::Names(entries)) => entries,
                Ok(_) => return Err(why(Failed::Odd)),
                Err(Failed::Refused { status: Status::End, .. }) => return Ok(all),
                Err(error) => return Err(why(error)),
            };
            for entry in entries.iter().filter(|entry| !matches!(&entry.name[..], b"." | b"..")) {
                bytes += entry.name.len() as u64 + ENTRY_BYTES;
                if bytes > self.listing_max {
                    return Err(Why::of_name("too many names in one directory"));
                }
                all.extend(item(entry, self.begin)?);
            }
        }
    }
}

impl There {
    /// Fails if a time is none that SFTP sets, and a copy has not set it either.
    fn has_time(&self, path: &[u8], setting: Setting) -> Done {
        let Some(time) = setting.modified.filter(|time| u32::try_from(time.secs).is_err()) else {
            return Ok(());
        };
        match self.look(path)?.low_secs() == time.secs as u32 {
            true => Ok(()),
            false => {
                Err(Why::of_name(format!("its time is not kept: {}", hikyaku_sftp::NO_SUCH_TIME)))
            }
        }
    }

    /// Reads all links of a directory. So many requests are under way at once as the client allows.
    fn read_links(&self, dir: &[u8], all: &mut [Item]) -> Done {
        let mut asked = Vec::new();
        for item in all.iter_mut().filter(|item| item.meta.kind == Kind::Link) {
            let path = self.at(&join(dir, &item.name))?;
            asked.push((self.client.ask(&Request::ReadLink(&path)), item));
        }
        for (ticket, item) in asked {
            item.link = Some(match self.client.wait(ticket) {
                Ok(Response::Names(mut names)) if names.len() == 1 => Ok(names.remove(0).name),
                Ok(_) => return Err(why(Failed::Odd)),
                Err(error) => match why(error) {
                    end if end.is_end() => return Err(end),
                    of_name => Err(of_name),
                },
            });
        }
        Ok(())
    }
}

fn why(error: Failed) -> Why {
    let what = match &error {
        error if error.is_end() => What::End,
        error if error.is_absent() => What::Absent,
        _ => What::Name,
    };
    Why { text: error.to_string(), what }
}

/// The metadata of attributes, if they are all there.
fn meta(attributes: &Attributes) -> Option<Meta> {
    let kind = match attributes.kind()? {
        hikyaku_sftp::Kind::File => Kind::File,
        hikyaku_sftp::Kind::Dir => Kind::Dir,
        hikyaku_sftp::Kind::Link => Kind::Link,
        hikyaku_sftp::Kind::Special => Kind::Special,
    };
    let modified = Time { secs: i64::from(attributes.times?.1), nanos: 0 };
    // As of a store: a directory has no size.
    let size = if kind == Kind::Dir { 0 } else { attributes.size? };
    Some(Meta { kind, size, mode: attributes.mode? & 0o7777, modified, identity: None })
}

/// An entry; `None` if it is the temporary file of an unfinished copy, which is no part of a tree. An error means that
/// the listing is not whole.
fn item(entry: &Entry, now: i64) -> Done<Option<Item>> {
    let unusable = || Why::of_name("the server tells a name that cannot be used");
    let name = Name::new(&entry.name).map_err(|_| unusable())?;
    let mut meta = meta(&entry.attributes).ok_or_else(unusable)?;
    meta.modified.secs = entry.modified(now).unwrap_or(meta.modified.secs);
    let is_part = Token::of(&name).is_none();
    Ok(is_part.then(|| Item { name: entry.name.clone(), meta, link: None }))
}

fn attributes(setting: Setting) -> Attributes {
    let modified = setting.modified.and_then(|time| u32::try_from(time.secs).ok());
    let times = modified.map(|time| (time, time));
    Attributes { mode: setting.mode, times, ..Attributes::default() }
}

impl Side for There {
    fn look(&self, path: &[u8]) -> Done<Meta> {
        let path = self.at(path)?;
        let found = self.client.attributes(&Request::LStat(&path)).map_err(why)?;
        meta(&found).ok_or_else(|| why(Failed::Odd))
    }

    fn entry(&self, path: &[u8]) -> Done<Item> {
        let at = self.at(path)?;
        let found = self.client.attributes(&Request::LStat(&at)).map_err(why)?;
        let mut meta = meta(&found).ok_or_else(|| why(Failed::Odd))?;
        let modified = self.client.modified(&at, &found, self.begin).map_err(why)?;
        meta.modified.secs = modified.ok_or_else(|| {
            Why::of_name(format!(
                "the server does not tell its time: {}",
                hikyaku_sftp::NO_SUCH_TIME
            ))
        })?;
        let name = path.rsplit(|&byte| byte == b'/').next().unwrap_or_default().to_vec();
        let mut all = [Item { name, meta, link: None }];
        self.read_links(parent(path), &mut all)?;
        let [item] = all;
        Ok(item)
    }

    fn list(&self, dir: &[u8]) -> Done<Vec<Item>> {
        let handle = self.client.open(&Request::OpenDir(&self.at(dir)?)).map_err(why)?;
        let entries = self.entries(&handle);
        let closed = self.client.close(&handle);
        let mut all = entries?;
        closed.map_err(why)?;
        self.read_links(dir, &mut all)?;
        all.sort_by(|a, b| a.name.cmp(&b.name));
        // A server that tells a name twice would have one of two decide.
        match all.windows(2).any(|two| two[0].name == two[1].name) {
            true => Err(Why::of_name("the server tells a name twice")),
            false => Ok(all),
        }
    }

    fn below(&self, link: &[u8]) -> Done<Option<Box<dyn Side>>> {
        // With a slash at its end a path is what the link leads to.
        let root = [&self.at(link)?[..], b"/"].concat();
        let found = match self.client.attributes(&Request::Stat(&root)).map_err(why) {
            Ok(found) => found,
            Err(why) if why.is_end() => return Err(why),
            Err(_) => return Ok(None),
        };
        let is_dir = found.kind() == Some(hikyaku_sftp::Kind::Dir);
        let (client, listing_max, begin) = (self.client.clone(), self.listing_max, self.begin);
        let side = Self { client, root, listing_max, begin };
        Ok(is_dir.then(|| Box::new(side) as Box<dyn Side>))
    }

    fn hash(&self, _: &[u8]) -> Done<Hash> {
        Err(Why::of_name("by SFTP, contents are not compared"))
    }

    fn make_dir(&self, path: &[u8], mode: u32) -> Done {
        let attributes = Attributes { mode: Some(mode & 0o777 | 0o700), ..Attributes::default() };
        let at = self.at(path)?;
        match self.client.done(&Request::MakeDir(&at, attributes)) {
            Err(error) if !error.is_end() => match self.look(path) {
                Ok(found) if found.kind == Kind::Dir => Ok(()),
                _ => Err(why(error)),
            },
            made => made.map_err(why),
        }
    }

    fn make_link(&self, path: &[u8], text: &[u8]) -> Done {
        let at = self.at(path)?;
        if self.look(path).is_ok_and(|found| found.kind == Kind::Link) {
            self.client.done(&Request::Remove(&at)).map_err(why)?;
        }
        self.client.done(&Request::MakeLink(text, &at)).map_err(why)
    }

    fn remove(&self, path: &[u8], kind: Kind) -> Done {
        let path = self.at(path)?;
        let request = match kind {
            Kind::Dir => Request::RemoveDir(&path),
            _ => Request::Remove(&path),
        };
        self.client.done(&request).map_err(why)
    }

    fn rename(&self, from: &[u8], to: &[u8]) -> Done {
        let (from, to) = (self.at(from)?, self.at(to)?);
        self.client.done(&self.client.version().renaming(&from, &to)).map_err(why)
    }

    fn set(&self, path_below: &[u8], kind: Kind, setting: Setting) -> Done {
        let (path, attributes) = (self.at(path_below)?, attributes(setting));
        let set = match kind {
            // Without the extension the link is followed, and what it leads to would get the time.
            Kind::Link if !self.keeps_times_of_links() => Ok(()),
            Kind::Link => self.client.done(&Request::SetOfLink(&path, attributes)).map_err(why),
            _ => self.client.done(&Request::SetStat(&path, attributes)).map_err(why),
        };
        set.and_then(|()| self.has_time(path_below, setting))
    }

    fn sets_time(&self, time: Time) -> bool {
        u32::try_from(time.secs).is_ok()
    }

    fn keeps_times_of_links(&self) -> bool {
        self.client.version().has(Extension::SetOfLink)
    }
}
