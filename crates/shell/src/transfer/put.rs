//! From this machine to the server.

use super::words::{From, Source, Words, reason};
use crate::command::{Begin, Depth, Transfer, Until};
use crate::fault::{Done, told};
use crate::glob::{Unfound, expand};
use crate::line::unescaped;
use crate::local::path;
use crate::path::{absolute, base, join};
use crate::shell::{Shell, told_of, worse};
use crate::show::Shown;
use crate::tree::Local;
use hikyaku_fs::Name;
use hikyaku_mover::{Destination, SessionError, Sources, Streams, Target, Together, Written};
use hikyaku_sftp::Extension;
use hikyaku_store::{End, ErrorKind, Kind, Last, Led, Store, StorePath, fetcher_by_file};
use hikyaku_store_sftp::{Named, Sftp};
use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

/// Files of this machine that are read at once.
const READ_MAX: usize = 16;
/// Names in the target that the server is asked for together with the target.
const NAMES_MAX: usize = 16;

impl Shell {
    /// Sends what matches. The first failure does not spare the others.
    pub(crate) fn put(&self, transfer: &Transfer) -> Done {
        let how = transfer.how.or(self.how);
        let found = match expand(&Local, &transfer.from) {
            Ok(found) => found.into_iter().map(|one| one.path).collect(),
            Err(Unfound::TooMany) => Vec::new(),
            Err(Unfound::End(never)) => match never {},
        };
        let paths = if found.is_empty() { vec![unescaped(&transfer.from)] } else { found };
        let to = transfer.to.as_deref();
        let to = to.map_or_else(|| self.dir.clone(), |to| absolute(to, &self.dir));
        let names = paths.iter().filter_map(|typed| Name::new(base(typed)).ok());
        let (store, names) = (self.store()?, names.take(NAMES_MAX).collect::<Vec<_>>());
        let named = store.named(without_slashes(&to), &names);
        if named == Err(ErrorKind::Unreachable) {
            return Err(self.lost());
        }
        let is_dir = named.as_ref().is_ok_and(|named| named.end == Some(Kind::Dir));
        if !is_dir && paths.len() > 1 {
            let text = "Multiple paths match, but destination";
            return Err(told(format!("{text} \"{}\" is not a directory", Shown::new(&to))));
        }
        if how.until == Until::Synced && !self.client.version().has(Extension::Sync) {
            let text = "the server cannot sync files; put it without -f";
            return Err(told(format!("dest \"{}\": {text}", Shown::new(&to))));
        }
        let (mut done, mut from, mut sources) = (Ok(()), Vec::new(), Vec::new());
        for typed in paths {
            self.go_on()?;
            let found = match fs::metadata(path(&typed)) {
                Ok(found) => found,
                Err(error) => {
                    done = Err(told_of("stat", &typed, &error));
                    continue;
                }
            };
            let verb = match how.begin {
                Begin::Resumed => "Resuming upload of",
                Begin::Anew => "Uploading",
            };
            let slash = if found.is_dir() && !typed.ends_with(b"/") { "/" } else { "" };
            let place = if is_dir { join(&to, base(&typed)) } else { to.clone() };
            let shown = Shown::new(&typed);
            self.note(format_args!("{verb} {shown}{slash} to {}", Shown::new(&place)))?;
            let is_wanted = found.is_file() || (found.is_dir() && how.depth == Depth::Tree);
            if !is_wanted {
                done = Err(told(format!("local \"{shown}\" is not a regular file")));
                continue;
            }
            from.push(PathBuf::from(path(&typed)));
            sources.push(Source { name: Name::new(base(&typed)).ok(), typed });
        }
        if from.is_empty() {
            return done;
        }
        let refused = |error: SessionError| told(error.to_string());
        let (choice, mut failed) = (how.choice(), Vec::new());
        let found = Sources::find(&from, &choice, &mut failed).map_err(refused)?;
        let words = Words { from: From::Here, root: &found.root, sources: &sources };
        done = worse(done, words.refused(&failed))?;
        let target = self.place((&store, &to), named, how.begin)?;
        let claims = Mutex::default();
        let together = Together { others: 0, claims: &claims };
        let to = Destination::Store(Arc::new(store), &target);
        let mut failed = Vec::new();
        let landed = found.land(&to, (&choice, together, &Streams::Refused), &mut failed);
        let landed = landed.map_err(refused)?;
        done = worse(done, words.refused(&failed))?;
        let files: usize = landed.iter().map(|one| one.plan.files.len()).sum();
        // The parts of one file are read one after the other, as they are written.
        let requests = u32::try_from(files.clamp(1, READ_MAX)).unwrap_or(1);
        let servers = [fetcher_by_file(&found.store, requests)];
        for one in landed {
            done = worse(done, self.carry(how, (&servers, one), &words))?;
        }
        done
    }

    /// The place of the target, links followed.
    fn place(
        &self,
        (store, typed): (&Sftp, &[u8]),
        named: Result<Named, ErrorKind>,
        begin: Begin,
    ) -> Done<Target> {
        let shown = Shown::new(typed).to_string();
        let refused = |kind: ErrorKind| match kind {
            ErrorKind::Unreachable => self.lost(),
            kind => told(format!("dest open \"{shown}\": {}", reason(kind))),
        };
        let look = |at: &StorePath| match store.look(at) {
            Ok(found) => Ok(Some(found.kind)),
            Err(error) if error.kind == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error.kind),
        };
        let trimmed = without_slashes(typed);
        let has_slash = trimmed.len() < typed.len();
        let written = if has_slash { Written::AsDirectory } else { Written::AsName };
        let Named { path: at, kind, .. } = named.map_err(refused)?;
        let (path, kind, end) = match kind {
            None => (at, None, End::Nothing),
            Some(Kind::Link) => {
                let real = store.path_of(trimmed, Last::Followed).unwrap_or(at);
                let kind = look(&real).map_err(refused)?.filter(|kind| *kind != Kind::Link);
                let end = if kind.is_some() { End::There } else { End::Dangling };
                (real, kind, end)
            }
            kind => (at, kind, End::There),
        };
        let known = |at: &StorePath| -> Result<_, SessionError> {
            // The server has resolved the path of its directory.
            Ok(vec![if *at == path { kind } else { Some(Kind::Dir) }])
        };
        let led = Led { path: path.clone(), end };
        let target = Target::find(&known, &shown, (written, led));
        let target = target.map_err(|error| told(error.to_string()))?;
        // A FIFO or device takes bytes as they come, and has none that could be gone on with.
        let is_stream =
            kind == Some(Kind::Special) && begin == Begin::Anew && store.write_into(&path).is_ok();
        Ok(if is_stream { target.with_streams() } else { target })
    }
}

/// A path without slashes at its end, but for that of the root.
fn without_slashes(path: &[u8]) -> &[u8] {
    let end = path.iter().rposition(|&byte| byte != b'/').map_or(path.len(), |at| at + 1);
    &path[..end]
}
