//! From the server to this machine.

use super::words::{From, Source, Words, reason};
use crate::command::{Begin, Depth, Transfer};
use crate::fault::{Done, told, unfound};
use crate::glob::{expand, literal};
use crate::line::{escaped, unescaped};
use crate::local::path;
use crate::path::{absolute, base, join};
use crate::shell::{Shell, worse};
use crate::show::Shown;
use crate::tree::Remote;
use hikyaku_fs::{Name, Patience};
use hikyaku_mover::{Destination, NamedSource, Sources, Streams, Together};
use hikyaku_store::{ErrorKind, Kind, Last, Store, StorePath, fetchers};
use hikyaku_store_sftp::{Named, Sftp};
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

/// A path of the server that was found, as it was written.
struct Match {
    path: Vec<u8>,
    /// The kind of the entry itself; `None` if the server has not sent it.
    is: Option<Kind>,
}

/// Directories of the server by their paths as they were written.
type Dirs = BTreeMap<Vec<u8>, Result<StorePath, ErrorKind>>;

impl Shell {
    /// Fetches what matches. The first failure does not spare the others.
    pub(crate) fn get(&self, transfer: &Transfer) -> Done {
        let how = transfer.how.or(self.how);
        let pattern = absolute(&transfer.from, &escaped(&self.dir));
        let (store, mut dirs) = (self.store()?, Dirs::new());
        let found = match literal(&pattern) {
            Some(path) => self.found(&store, path, &mut dirs)?,
            None => {
                let found = expand(&Remote(&self.client), &pattern).map_err(unfound(&pattern))?;
                let found = found.into_iter().map(|one| Match {
                    is: one.attributes.kind().map(of_protocol),
                    path: one.path,
                });
                found.collect()
            }
        };
        if found.is_empty() {
            let text = unescaped(&pattern);
            return Err(told(format!("File \"{}\" not found.", Shown::new(&text))));
        }
        let target = transfer.to.as_deref().map(|to| (to, path(to).is_dir()));
        if let Some((to, false)) = target
            && found.len() > 1
        {
            let text = "Multiple paths match, but destination";
            return Err(told(format!("{text} \"{}\" is not a directory", Shown::new(to))));
        }
        let (mut done, mut named) = (Ok(()), Vec::new());
        for one in &found {
            self.go_on()?;
            let to = match target {
                Some((to, true)) => join(to, base(&one.path)),
                Some((to, false)) => to.to_vec(),
                None => base(&one.path).to_vec(),
            };
            let is_dir = match one.is {
                Some(Kind::Link) => self.is_dir(&one.path)?,
                kind => kind == Some(Kind::Dir),
            };
            let slash = if is_dir && !one.path.ends_with(b"/") { "/" } else { "" };
            let verb = if how.begin == Begin::Resumed { "Resuming" } else { "Fetching" };
            let (from, shown) = (Shown::new(&one.path), Shown::new(&to));
            self.note(format_args!("{verb} {from}{slash} to {shown}"))?;
            if is_dir && how.depth == Depth::File {
                done = Err(told(format!("download \"{from}\": not a regular file")));
                continue;
            }
            match source(&store, one, &mut dirs) {
                Ok(source) => named.push(source),
                Err(ErrorKind::Unreachable) => return Err(self.lost()),
                Err(kind) => {
                    done = Err(told(format!("stat remote \"{from}\": {}", reason(kind))));
                }
            }
        }
        let sources: Vec<_> = named
            .iter()
            .map(|one| Source { name: one.name.clone(), typed: one.typed.clone() })
            .collect();
        let words = Words { from: From::Server, root: b"/", sources: &sources };
        let (choice, mut failed) = (how.choice(), Vec::new());
        let store: Arc<dyn Store> = Arc::new(store);
        let origin = (store.clone(), &b"/"[..], String::new());
        let sources = Sources::in_store(origin, &named, &choice, &mut failed);
        done = worse(done, words.refused(&failed))?;
        if sources.count() == 0 {
            return self.go_on().and(done);
        }
        let (claims, stop) = (Mutex::default(), self.stop.clone());
        let together = Together { others: 0, claims: &claims };
        let streams = Streams::Written(Patience::new(move || !stop.load(Ordering::Relaxed)));
        let to = Destination::Here(path(target.map_or(b".", |(to, _)| to)));
        let mut failed = Vec::new();
        let landed = sources.land(&to, (&choice, together, &streams), &mut failed);
        let landed = landed.map_err(|error| told(error.to_string()))?;
        done = worse(done, words.refused(&failed))?;
        let servers = fetchers(&store, 1).map_err(|_| self.lost())?;
        for one in landed {
            done = worse(done, self.carry(how, (&servers, one), &words))?;
        }
        done
    }
}

impl Shell {
    /// The entry at a path of the server, if there is one.
    fn found(&self, store: &Sftp, path: Vec<u8>, dirs: &mut Dirs) -> Done<Vec<Match>> {
        match store.named(&path, &[]) {
            Err(ErrorKind::Unreachable) => Err(self.lost()),
            // An entry that cannot be looked at is not found.
            Err(_) | Ok(Named { kind: None, .. }) => Ok(Vec::new()),
            Ok(Named { path: at, kind, .. }) => {
                let slash = last_slash(&path).filter(|slash| slash + 1 < path.len());
                if let (Some(slash), Some((dir, _))) = (slash, at.split()) {
                    dirs.insert(path[..=slash].to_vec(), Ok(dir));
                }
                Ok(vec![Match { path, is: kind }])
            }
        }
    }
}

const fn of_protocol(kind: hikyaku_sftp::Kind) -> Kind {
    match kind {
        hikyaku_sftp::Kind::File => Kind::File,
        hikyaku_sftp::Kind::Dir => Kind::Dir,
        hikyaku_sftp::Kind::Link => Kind::Link,
        hikyaku_sftp::Kind::Special => Kind::Special,
    }
}

fn last_slash(path: &[u8]) -> Option<usize> {
    path.iter().rposition(|&byte| byte == b'/')
}

/// The source at a path of the server. A link is followed; any other name is looked up in its directory, which the server is
/// asked for once.
fn source(store: &Sftp, found: &Match, dirs: &mut Dirs) -> Result<NamedSource, ErrorKind> {
    let typed = found.path.clone();
    let name = Name::new(base(&typed)).ok();
    let is_link = found.is == Some(Kind::Link);
    let from = match (&name, last_slash(&typed)) {
        (Some(name), Some(at)) if !is_link && at + 1 < typed.len() => {
            let dir = &typed[..=at];
            let real = dirs
                .entry(dir.to_vec())
                .or_insert_with_key(|dir| store.path_of(dir, Last::Followed));
            real.clone()?.join(name).map_err(|_| ErrorKind::BadName)?
        }
        _ => store.path_of(&typed, Last::Followed)?,
    };
    Ok(NamedSource { from, name, typed })
}
