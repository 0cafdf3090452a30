//! From the server to this machine.

use super::fetch::Fetch;
use super::{COMPARED_BYTES, DEPTH_MAX, Progress, no_time};
use crate::command::{self, Begin, Depth, How, Transfer, Until};
use crate::fault::{Done, Fault, failed, told, unfound};
use crate::glob::expand;
use crate::line::{escaped, unescaped};
use crate::local::path;
use crate::path::{absolute, base, join};
use crate::shell::{Shell, told_of, worse};
use crate::show::Shown;
use crate::tree::{Remote, listed};
use hikyaku_sftp::{Attributes, Handle, Kind, Request};
use std::fs::{self, File, FileTimes, OpenOptions, Permissions};
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

impl Shell {
    /// Fetches what matches. The first failure does not spare the others.
    pub(crate) fn get(&self, transfer: &Transfer) -> Done {
        let how = transfer.how.or(self.how);
        let pattern = absolute(&transfer.from, &escaped(&self.dir));
        let found = expand(&Remote(&self.client), &pattern).map_err(unfound(&pattern))?;
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
        let mut done = Ok(());
        for one in found {
            self.go_on()?;
            let to = match target {
                Some((to, true)) => join(to, base(&one.path)),
                Some((to, false)) => to.to_vec(),
                None => base(&one.path).to_vec(),
            };
            let is_link = one.attributes.kind() == Some(Kind::Link);
            let is_dir = one.is_dir() || (is_link && self.is_dir(&one.path)?);
            let slash = if is_dir && !one.path.ends_with(b"/") { "/" } else { "" };
            let verb = if how.begin == Begin::Resumed { "Resuming" } else { "Fetching" };
            let (from, shown) = (Shown::new(&one.path), Shown::new(&to));
            self.note(format_args!("{verb} {from}{slash} to {shown}"))?;
            let got = if is_dir && how.depth == Depth::Tree {
                self.get_dir(&one.path, &to, how, 0)
            } else {
                self.get_file(&one.path, &to, how)
            };
            done = worse(done, got)?;
        }
        done
    }

    fn get_dir(&self, from: &[u8], to: &[u8], how: How, depth: usize) -> Done {
        if depth >= DEPTH_MAX {
            return Err(told(format!("Maximum directory depth exceeded: {depth} levels")));
        }
        let shown = Shown::new(from);
        println(format_args!("Retrieving {shown}"))?;
        let found = self.client.attributes(&Request::Stat(from));
        let found = found.map_err(failed(format!("stat remote \"{shown}\" directory")))?;
        let mode = found.mode.map_or(0o777, |mode| mode & 0o1777);
        match fs::DirBuilder::new().mode(mode | 0o300).create(path(to)) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => {
                return Err(told_of("mkdir", to, &error));
            }
            _ => {}
        }
        let entries =
            listed(&self.client, from).map_err(failed(format!("remote readdir \"{shown}\"")))?;
        let mut done = Ok(());
        for entry in entries.iter().filter(|entry| !matches!(&entry.name[..], b"." | b"..")) {
            self.go_on()?;
            let (from, to) = (join(from, &entry.name), join(to, &entry.name));
            let got = match entry.attributes.kind() {
                Some(Kind::Dir) => self.get_dir(&from, &to, how, depth + 1),
                // Only what the user named is written into.
                Some(Kind::File) if is_special(&to) => Err(told_special(&to)),
                Some(Kind::File) => self.get_file(&from, &to, how),
                _ => {
                    eprintln!("download \"{}\": not a regular file", Shown::new(&from));
                    Ok(())
                }
            };
            done = worse(done, got)?;
        }
        self.finish_dir((from, &found), to, how)?;
        done
    }

    /// Gives a directory its times and its mode, when nothing is written into it any more.
    fn finish_dir(&self, (from, found): (&[u8], &Attributes), to: &[u8], how: How) -> Done {
        if how.attributes != command::Attributes::Kept {
            return Ok(());
        }
        let times = self.times(from, found);
        let (times, done) = match times {
            Ok(times) => (times, Ok(())),
            Err(fault) => (None, Err(fault)),
        };
        let set = || {
            let dir = File::open(path(to))?;
            if let Some(times) = times {
                dir.set_times(times)?;
            }
            let mode = found.mode.map(|mode| Permissions::from_mode(mode & 0o1777));
            mode.map_or(Ok(()), |mode| dir.set_permissions(mode))
        };
        set().map_err(|error| told_of("set attributes of", to, &error)).and(done)
    }

    /// The times that the server tells of a file or directory, links followed.
    fn times(&self, from: &[u8], found: &Attributes) -> Result<Option<FileTimes>, Fault> {
        let Some((accessed, _)) = found.times else { return Ok(None) };
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let now = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
        let modified = self.client.modified(from, found, now);
        let modified = modified.map_err(failed(format!("stat remote \"{}\"", Shown::new(from))))?;
        let modified = modified.ok_or_else(|| no_time(from))?;
        let at = Duration::from_secs(modified.unsigned_abs());
        let modified = if modified < 0 { UNIX_EPOCH - at } else { UNIX_EPOCH + at };
        let accessed = UNIX_EPOCH + Duration::from_secs(accessed.into());
        Ok(Some(FileTimes::new().set_accessed(accessed).set_modified(modified)))
    }

    fn get_file(&self, from: &[u8], to: &[u8], how: How) -> Done {
        let shown = Shown::new(from);
        let found = self.client.attributes(&Request::Stat(from));
        let found = found.map_err(failed(format!("stat remote \"{shown}\"")))?;
        if found.kind().is_some_and(|kind| kind != Kind::File) {
            return Err(told(format!("download \"{shown}\": not a regular file")));
        }
        let attributes = Attributes::default();
        let handle =
            self.client.open(&Request::Open { path: from, flags: Request::READ, attributes });
        let handle = handle.map_err(failed(format!("remote open \"{shown}\"")))?;
        let got = self.get_contents((from, &handle), to, &found, how);
        self.closed(&handle, from, got)
    }

    fn get_contents(
        &self,
        (from, handle): (&[u8], &Handle),
        to: &[u8],
        found: &Attributes,
        how: How,
    ) -> Done {
        let here = |what: &'static str| move |error| told_of(what, to, &error);
        let mode = found.mode.map_or(0o666, |mode| mode & 0o777);
        let mut options = OpenOptions::new();
        options.write(true).create(true).mode(mode | 0o200);
        options.truncate(how.begin == Begin::Anew).read(how.begin == Begin::Resumed);
        let mut file = options.open(path(to)).map_err(here("open local"))?;
        let size = found.size.unwrap_or(0);
        let mut at = 0;
        if how.begin == Begin::Resumed {
            at = file.metadata().map_err(here("stat local"))?.len();
            self.check_begin((from, handle), (&mut file, at), size)?;
            file.seek(SeekFrom::Start(at)).map_err(here("seek local"))?;
        }
        let mut progress = Progress::new(base(from), (at, size), self);
        let mut fetch = Fetch::new(&self.client, handle, self.flow, at, size);
        let what = || format!("read remote \"{}\"", Shown::new(from));
        while let Some(bytes) = fetch.bytes().map_err(|error| failed(what())(error))? {
            file.write_all(&bytes).map_err(here("write local"))?;
            progress.add(bytes.len());
            self.go_on()?;
        }
        drop(progress);
        if how.attributes == command::Attributes::Kept {
            let permissions = Permissions::from_mode(mode);
            file.set_permissions(permissions).map_err(here("local chmod"))?;
            if let Some(times) = self.times(from, found)? {
                file.set_times(times).map_err(here("local set times"))?;
            }
        }
        if how.until == Until::Synced {
            file.sync_all().map_err(here("local sync"))?;
        }
        Ok(())
    }

    /// Compares the end of what is there with the same bytes of the server's file: a transfer that was resumed after other
    /// bytes would make a file that neither end had.
    fn check_begin(
        &self,
        (from, handle): (&[u8], &Handle),
        (file, at): (&mut File, u64),
        size: u64,
    ) -> Done {
        let shown = Shown::new(from);
        if at > size {
            let text = "local file is larger than remote";
            return Err(told(format!("Unable to resume download of \"{shown}\": {text}")));
        }
        let begin = at.saturating_sub(COMPARED_BYTES);
        let mut fetch = Fetch::new(&self.client, handle, self.flow, begin, at);
        let mut left = at - begin;
        file.seek(SeekFrom::Start(begin))?;
        while left > 0 {
            let what = format!("read remote \"{shown}\"");
            let mut there = fetch.bytes().map_err(failed(what))?.unwrap_or_default();
            there.truncate(usize::try_from(left).unwrap_or(usize::MAX));
            let mut here = vec![0; there.len()];
            file.read_exact(&mut here).map_err(Fault::Output)?;
            if there.is_empty() || here != there {
                let text = "the local file differs from the remote one";
                return Err(told(format!("Unable to resume download of \"{shown}\": {text}")));
            }
            left -= there.len() as u64;
        }
        Ok(())
    }
}

/// Whether a device, FIFO or socket has the name, links followed as open(2) does.
fn is_special(to: &[u8]) -> bool {
    fs::metadata(path(to)).is_ok_and(|found| !found.is_file() && !found.is_dir())
}

fn told_special(to: &[u8]) -> Fault {
    told(format!("local \"{}\": not a regular file; it is left unchanged", Shown::new(to)))
}

fn println(text: std::fmt::Arguments<'_>) -> Done {
    writeln!(std::io::stdout(), "{text}")?;
    Ok(())
}
