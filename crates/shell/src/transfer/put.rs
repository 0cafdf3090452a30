//! From this machine to the server.

use super::fetch::Fetch;
use super::{COMPARED_BYTES, DEPTH_MAX, Progress, no_time};
use crate::command::{self, Begin, Depth, How, Transfer, Until};
use crate::fault::{Done, Fault, failed, told};
use crate::glob::{Unfound, expand};
use crate::line::unescaped;
use crate::local::path;
use crate::path::{absolute, base, join};
use crate::shell::{Shell, told_of, worse};
use crate::show::Shown;
use crate::tree::{Local, attributes};
use hikyaku_sftp::{Attributes, Extension, Failed, Handle, Kind, Request, Status, Ticket};
use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::os::unix::ffi::OsStringExt;

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
        let target = match &transfer.to {
            None => None,
            Some(to) => {
                let to = absolute(to, &self.dir);
                let is_dir = self.is_dir(&to)?;
                Some((to, is_dir))
            }
        };
        if let Some((to, false)) = &target
            && paths.len() > 1
        {
            let text = "Multiple paths match, but destination";
            return Err(told(format!("{text} \"{}\" is not a directory", Shown::new(to))));
        }
        let mut done = Ok(());
        for from in paths {
            self.go_on()?;
            let to = match &target {
                Some((to, true)) => join(to, base(&from)),
                Some((to, false)) => to.clone(),
                None => absolute(base(&from), &self.dir),
            };
            done = worse(done, self.put_one(&from, &to, how))?;
        }
        done
    }

    fn put_one(&self, from: &[u8], to: &[u8], how: How) -> Done {
        let found = fs::metadata(path(from)).map_err(|error| told_of("stat", from, &error))?;
        let slash = if found.is_dir() && !from.ends_with(b"/") { "/" } else { "" };
        let verb = match how.begin {
            Begin::Resumed => "Resuming upload of",
            Begin::Anew => "Uploading",
        };
        self.note(format_args!("{verb} {}{slash} to {}", Shown::new(from), Shown::new(to)))?;
        if found.is_dir() && how.depth == Depth::Tree {
            self.put_dir(from, to, how, 0)
        } else {
            self.put_file(from, to, how)
        }
    }

    fn put_dir(&self, from: &[u8], to: &[u8], how: How, depth: usize) -> Done {
        if depth >= DEPTH_MAX {
            return Err(told(format!("Maximum directory depth exceeded: {depth} levels")));
        }
        let here = |what: &'static str| move |error| told_of(what, from, &error);
        writeln!(std::io::stdout(), "Entering {}", Shown::new(from))?;
        let found = attributes(&fs::metadata(path(from)).map_err(here("stat"))?);
        let mode = found.mode.map(|mode| mode & 0o1777);
        let shown = Shown::new(to);
        let begin = Attributes { mode: mode.map(|mode| mode | 0o300), ..Attributes::default() };
        let made = self.client.done(&Request::MakeDir(to, begin));
        let is_made = made.is_ok();
        if let Err(error) = made {
            let is_there = self.is_dir(to)?;
            if !is_there {
                return Err(failed(format!("remote mkdir \"{shown}\""))(error));
            }
        }
        let listed = fs::read_dir(path(from)).map_err(here("local opendir"))?;
        let names: Result<Vec<_>, _> = listed.map(|entry| Ok(entry?.file_name())).collect();
        let mut names = names.map_err(here("local readdir"))?;
        names.sort();
        let mut done = Ok(());
        for name in names {
            self.go_on()?;
            let name = name.into_vec();
            let (from, to) = (join(from, &name), join(to, &name));
            let put = match fs::symlink_metadata(path(&from)) {
                Ok(found) if found.is_dir() => self.put_dir(&from, &to, how, depth + 1),
                Ok(found) if found.is_file() => self.put_file(&from, &to, how),
                Ok(_) => {
                    eprintln!("\"{}\": not a regular file", Shown::new(&from));
                    Ok(())
                }
                Err(error) => Err(told_of("local lstat", &from, &error)),
            };
            done = worse(done, put)?;
        }
        let is_kept = how.attributes == command::Attributes::Kept;
        if is_kept || (is_made && begin.mode != mode) {
            let times = found.times.filter(|_| is_kept);
            let end = Attributes { mode, times, ..Attributes::default() };
            let set = self.client.done(&Request::SetStat(to, end));
            set.map_err(failed(format!("remote setstat \"{shown}\"")))?;
        }
        if is_kept && found.times.is_none() {
            return worse(done, Err(no_time(to)))?;
        }
        done
    }

    fn put_file(&self, from: &[u8], to: &[u8], how: How) -> Done {
        let here = |what: &'static str| move |error| told_of(what, from, &error);
        let mut file = File::open(path(from)).map_err(here("open local"))?;
        let found = file.metadata().map_err(here("fstat local"))?;
        if !found.is_file() {
            return Err(told(format!("local \"{}\" is not a regular file", Shown::new(from))));
        }
        let found = attributes(&found);
        let is_synced = how.until == Until::Synced;
        if is_synced && !self.client.version().has(Extension::Sync) {
            let text = "the server cannot sync files; put it without -f";
            return Err(told(format!("dest \"{}\": {text}", Shown::new(to))));
        }
        let mut at = 0;
        if how.begin == Begin::Resumed {
            at = self.check_end(from, to, &mut file, found.size.unwrap_or(0))?;
        }
        let shown = Shown::new(to);
        let truncate = if how.begin == Begin::Anew { Request::TRUNCATE } else { 0 };
        let flags = Request::WRITE | Request::CREATE | truncate;
        let mode = found.mode.map(|mode| mode & 0o777);
        let kept = Attributes { mode, times: found.times, ..Attributes::default() };
        let sent = if how.attributes == command::Attributes::Kept {
            kept
        } else {
            Attributes { times: None, ..kept }
        };
        let handle = self.client.open(&Request::Open { path: to, flags, attributes: sent });
        let handle = handle.map_err(failed(format!("dest open \"{shown}\"")))?;
        let put = self.put_contents((from, &mut file), (to, &handle), (at, &found));
        let put = put.and_then(|()| self.finish_file(to, &handle, kept, how));
        self.closed(&handle, to, put)
    }

    fn finish_file(&self, to: &[u8], handle: &Handle, kept: Attributes, how: How) -> Done {
        let shown = Shown::new(to);
        if how.attributes == command::Attributes::Kept {
            let set = self.client.done(&Request::FSetStat(handle.bytes(), kept));
            set.map_err(failed(format!("remote fsetstat \"{shown}\"")))?;
        }
        if how.until == Until::Synced {
            let synced = self.client.done(&Request::Sync(handle.bytes()));
            synced.map_err(failed(format!("remote fsync \"{shown}\"")))?;
        }
        match how.attributes == command::Attributes::Kept && kept.times.is_none() {
            true => Err(no_time(to)),
            false => Ok(()),
        }
    }

    fn put_contents(
        &self,
        (from, file): (&[u8], &mut File),
        (to, handle): (&[u8], &Handle),
        (at, found): (u64, &Attributes),
    ) -> Done {
        let size = found.size.unwrap_or(0);
        let mut progress = Progress::new(base(from), (at, size), self);
        let mut under_way: VecDeque<(usize, Ticket)> = VecDeque::new();
        let mut buffer = vec![0; self.flow.chunk];
        let mut offset = at;
        let what = || format!("write remote \"{}\"", Shown::new(to));
        loop {
            self.go_on()?;
            let length = match file.read(&mut buffer) {
                Ok(length) => length,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(told_of("read local", from, &error)),
            };
            if length > 0 {
                let data = &buffer[..length];
                let write = Request::Write { handle: handle.bytes(), offset, data };
                under_way.push_back((length, self.client.ask(&write)));
                offset += length as u64;
            }
            while under_way.len() >= self.flow.requests || (length == 0 && !under_way.is_empty()) {
                let Some((length, ticket)) = under_way.pop_front() else { break };
                let written = self.client.is_done(ticket);
                written.map_err(|error| failed(what())(error))?;
                progress.add(length);
            }
            if length == 0 {
                return Ok(());
            }
        }
    }

    /// Where a resumed upload begins: where the server's file ends, if its end is the same as here, or at the beginning if
    /// the server does not have it. The file here stands there then.
    fn check_end(&self, from: &[u8], to: &[u8], file: &mut File, size: u64) -> Done<u64> {
        let shown = Shown::new(from);
        let there = match self.client.attributes(&Request::Stat(to)) {
            Ok(there) => there,
            Err(Failed::Refused { status: Status::NoSuchFile, .. }) => return Ok(0),
            Err(error) => return Err(failed(format!("stat remote \"{}\"", Shown::new(to)))(error)),
        };
        let at = there.size.unwrap_or(0);
        if there.kind() != Some(Kind::File) || at > size {
            return Err(told(format!("resume \"{shown}\": destination is larger, or no file")));
        }
        let attributes = Attributes::default();
        let open = Request::Open { path: to, flags: Request::READ, attributes };
        let handle = self.client.open(&open);
        let handle = handle.map_err(failed(format!("remote open \"{}\"", Shown::new(to))))?;
        let compared = self.compare_end(&handle, file, at);
        let closed: Result<(), Failed> = self.client.close(&handle);
        match compared.and_then(|same| Ok((same, closed.map_err(Fault::Lost)?)))? {
            (true, ()) => Ok(at),
            (false, ()) => {
                let text = "the remote file differs from the local one";
                Err(told(format!("resume \"{shown}\": {text}")))
            }
        }
    }

    fn compare_end(&self, handle: &Handle, file: &mut File, at: u64) -> Done<bool> {
        let begin = at.saturating_sub(COMPARED_BYTES);
        let mut fetch = Fetch::new(&self.client, handle, self.flow, begin, at);
        file.seek(SeekFrom::Start(begin))?;
        let mut left = at - begin;
        while left > 0 {
            let there = fetch.bytes().map_err(failed("read remote".to_owned()))?;
            let mut there = there.unwrap_or_default();
            there.truncate(usize::try_from(left).unwrap_or(usize::MAX));
            let mut here = vec![0; there.len()];
            if there.is_empty() || file.read_exact(&mut here).is_err() || here != there {
                return Ok(false);
            }
            left -= there.len() as u64;
        }
        Ok(true)
    }
}
