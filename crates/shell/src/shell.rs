//! What the commands do: the state of a session, and the commands that are a request or two.

use crate::command::{Change, Changed, Command, How, LinkKind, Links, RenameKind};
use crate::fault::{Done, Fault, failed, system, told, unfound};
use crate::glob::{Found, expand};
use crate::line::{OnFailure, escaped, unescaped};
use crate::local;
use crate::path::absolute;
use crate::show::Shown;
use crate::transfer::{Flow, Meter};
use crate::tree::Remote;
use hikyaku_console::{Kept, Scope};
use hikyaku_sftp::{Attributes, Client, Extension, Kind, Request};
use std::io::{Write, stdout};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether what is done is printed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Noise {
    /// Each file, as in an interactive session.
    Each,
    /// Results only, as in a batch.
    Results,
}

/// A session with a server.
pub(crate) struct Shell {
    pub(crate) client: Client,
    /// Where the user is, as an absolute path.
    pub(crate) dir: Vec<u8>,
    /// Where the user began.
    start: Vec<u8>,
    pub(crate) noise: Noise,
    pub(crate) meter: Meter,
    /// What the command line says of all transfers.
    pub(crate) how: How,
    /// How requests of a transfer follow each other.
    pub(crate) flow: Flow,
    /// What a failure means for the names that the command has not come to.
    pub(crate) on_failure: OnFailure,
    /// Set by Ctrl-C.
    pub(crate) stop: Arc<AtomicBool>,
    /// Set in a batch: a signal ends the transfer, and the session with it.
    pub(crate) scope: Option<Scope>,
}

/// What follows a command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Next {
    /// The next line.
    Line,
    /// The end.
    End,
}

impl Shell {
    /// A session that begins where the server says.
    pub(crate) fn new(client: Client, flow: Flow, stop: Arc<AtomicBool>) -> Done<Self> {
        let dir = client.name(&Request::RealPath(b".")).map_err(failed("realpath .".to_owned()))?;
        let (start, noise, meter) = (dir.clone(), Noise::Each, Meter::Hidden);
        let (how, on_failure) = (How::default(), OnFailure::GoesOn);
        let scope = None;
        Ok(Self { client, dir, start, noise, meter, how, flow, on_failure, stop, scope })
    }

    /// Fails if the user has ended the command.
    pub(crate) fn go_on(&self) -> Done {
        if self.stop.load(Ordering::Relaxed) { Err(Fault::Stopped) } else { Ok(()) }
    }

    /// Does what a command says.
    pub(crate) fn obey(&mut self, command: &Command) -> Done<Next> {
        self.stop.store(false, Ordering::Relaxed);
        match command {
            Command::Quit => return Ok(Next::End),
            Command::ChangeDir(path) => self.change_dir(path.as_deref())?,
            Command::Change(change) => self.change(change)?,
            Command::Copy([from, to]) => self.copy(from, to)?,
            Command::Space { path, unit } => self.space(path.as_deref(), *unit)?,
            Command::Get(transfer) => self.until_stopped(|| self.get(transfer))?,
            Command::Put(transfer) => self.until_stopped(|| self.put(transfer))?,
            Command::Help => write!(stdout(), "{}", crate::help::TEXT)?,
            Command::List { pattern, style } => self.list(pattern.as_deref(), *style)?,
            Command::Link(kind, [old, new]) => self.link(*kind, old, new)?,
            Command::MakeDir(path) => self.make_dir(path)?,
            Command::Progress => self.toggle_meter()?,
            Command::Dir => {
                writeln!(stdout(), "Remote working directory: {}", Shown::new(&self.dir))?;
            }
            Command::Rename(kind, [old, new]) => self.rename(*kind, old, new)?,
            Command::Remove(pattern) => self.remove(pattern)?,
            Command::RemoveDir(path) => {
                let path = absolute(path, &self.dir);
                let what = format!("remote rmdir \"{}\"", Shown::new(&path));
                self.client.done(&Request::RemoveDir(&path)).map_err(failed(what))?;
            }
            Command::Version => {
                writeln!(stdout(), "SFTP protocol version {}", self.client.version().number)?;
            }
            Command::LocalChangeDir(path) => local::change_dir(path.as_deref())?,
            Command::LocalDir => local::dir()?,
            Command::LocalList(words) => local::list(words)?,
            Command::LocalMakeDir(path) => local::make_dir(path)?,
            Command::LocalMask(mask) => local::mask(*mask)?,
            Command::Shell(text) => local::shell(text)?,
        }
        Ok(Next::Line)
    }

    /// Does a transfer. If the user stops it, prints how it is continued.
    fn until_stopped(&self, transfer: impl FnOnce() -> Done) -> Done {
        let ended = self.scope.as_ref().map(|scope| {
            let (stop, client) = (self.stop.clone(), self.client.clone());
            // A server that does not answer would keep the transfer from seeing the flag.
            scope.on_stop(move || {
                stop.store(true, Ordering::Relaxed);
                client.abandon();
            })
        });
        let done = transfer();
        let is_stopped = self.stop.load(Ordering::Relaxed);
        match (done, &ended) {
            // The connection is not used any more, whatever the transfer has come to.
            (_, Some(_)) if is_stopped => Err(Fault::Stopped),
            (Err(Fault::Stopped), None) => {
                told(Kept::InPlace.to_string());
                Err(Fault::Stopped)
            }
            (done, _) => done,
        }
    }

    /// Whether a path of the server is a directory, or a link to one.
    pub(crate) fn is_dir(&self, path: &[u8]) -> Done<bool> {
        match self.client.attributes(&Request::Stat(path)) {
            Ok(found) => Ok(found.kind() == Some(Kind::Dir)),
            Err(error) if error.is_end() => Err(Fault::Lost(error)),
            Err(_) => Ok(false),
        }
    }

    /// What a pattern means: what is there, or the name itself if nothing is.
    fn meant(&self, pattern: &[u8]) -> Done<Vec<Vec<u8>>> {
        let pattern = absolute(pattern, &escaped(&self.dir));
        let found = expand(&Remote(&self.client), &pattern).map_err(unfound(&pattern))?;
        let paths: Vec<Vec<u8>> = found.into_iter().map(|one: Found| one.path).collect();
        Ok(if paths.is_empty() { vec![unescaped(&pattern)] } else { paths })
    }

    fn change_dir(&mut self, path: Option<&[u8]>) -> Done {
        let path = absolute(path.filter(|path| !path.is_empty()).unwrap_or(&self.start), &self.dir);
        let what = format!("realpath {}", Shown::new(&path));
        let path = self.client.name(&Request::RealPath(&path)).map_err(failed(what))?;
        let found = self.client.attributes(&Request::Stat(&path));
        let found = found.map_err(failed(format!("stat remote \"{}\"", Shown::new(&path))))?;
        match found.kind() {
            Some(Kind::Dir) => {
                self.dir = path;
                Ok(())
            }
            None => Err(told("Can't change directory: Can't check target")),
            Some(_) => {
                let shown = Shown::new(&path);
                Err(told(format!("Can't change directory: \"{shown}\" is not a directory")))
            }
        }
    }

    fn make_dir(&self, path: &[u8]) -> Done {
        let path = absolute(path, &self.dir);
        let attributes = Attributes { mode: Some(0o777), ..Attributes::default() };
        let what = format!("remote mkdir \"{}\"", Shown::new(&path));
        self.client.done(&Request::MakeDir(&path, attributes)).map_err(failed(what))
    }

    /// Removes what matches.
    fn remove(&self, pattern: &[u8]) -> Done {
        self.of_each(pattern, |path| {
            let shown = Shown::new(path);
            self.note(format_args!("Removing {shown}"))?;
            let removed = self.client.done(&Request::Remove(path));
            removed.map_err(failed(format!("remote delete {shown}")))
        })
    }

    /// Does the same to all that a pattern means. As in OpenSSH's sftp, the first failure spares the others where it ends
    /// the session, and not elsewhere.
    fn of_each(&self, pattern: &[u8], work: impl Fn(&[u8]) -> Done) -> Done {
        let mut done = Ok(());
        for path in self.meant(pattern)? {
            self.go_on()?;
            done = worse(done, work(&path))?;
            if done.is_err() && self.on_failure == OnFailure::Ends {
                return done;
            }
        }
        done
    }

    fn rename(&self, kind: RenameKind, old: &[u8], new: &[u8]) -> Done {
        let (old, new) = (absolute(old, &self.dir), absolute(new, &self.dir));
        let request = match kind {
            RenameKind::Replacing => self.client.version().renaming(&old, &new),
            RenameKind::Plain => Request::Rename(&old, &new),
        };
        let what = format!("remote rename \"{}\" to \"{}\"", Shown::new(&old), Shown::new(&new));
        self.client.done(&request).map_err(failed(what))
    }

    fn link(&self, kind: LinkKind, old: &[u8], new: &[u8]) -> Done {
        let new = absolute(new, &self.dir);
        match kind {
            LinkKind::Symbolic => {
                let (text, name) = (Shown::new(old), Shown::new(&new));
                let what = format!("remote symlink file \"{text}\" to \"{name}\"");
                self.client.done(&Request::MakeLink(old, &new)).map_err(failed(what))
            }
            LinkKind::Hard => {
                if !self.client.version().has(Extension::HardLink) {
                    return Err(told("Server does not support hardlink@openssh.com extension"));
                }
                let old = absolute(old, &self.dir);
                let (from, to) = (Shown::new(&old), Shown::new(&new));
                let what = format!("remote link \"{from}\" to \"{to}\"");
                self.client.hard_link(&old, &new).map_err(failed(what))
            }
        }
    }

    fn copy(&self, from: &[u8], to: &[u8]) -> Done {
        let (from, to) = (absolute(from, &self.dir), absolute(to, &self.dir));
        if !self.client.version().has(Extension::CopyData) {
            return Err(told("Server does not support copy-data extension"));
        }
        let shown = (Shown::new(&from), Shown::new(&to));
        let source = self.client.attributes(&Request::Stat(&from));
        let source = source.map_err(failed(format!("stat remote \"{}\"", shown.0)))?;
        if source.kind() != Some(Kind::File) {
            return Err(told(format!("Cannot copy non-regular file: {}", shown.0)));
        }
        let mode = source.mode.map(|mode| mode & 0o777);
        let attributes = Attributes { mode, ..Attributes::default() };
        let open = |path, flags| Request::Open { path, flags, attributes };
        let reading = self.client.open(&open(&from, Request::READ));
        let reading = reading.map_err(failed(format!("remote open \"{}\"", shown.0)))?;
        let flags = Request::WRITE | Request::CREATE | Request::TRUNCATE;
        let writing = self.client.open(&open(&to, flags));
        let writing = writing.map_err(failed(format!("remote open \"{}\"", shown.1)));
        let copied = writing.and_then(|writing| {
            let what = format!("remote copy \"{}\" to \"{}\"", shown.0, shown.1);
            let copied = self.client.copy_data(&reading, &writing);
            let closed = self.client.close(&writing);
            copied.and(closed).map_err(failed(what))
        });
        let closed = self.client.close(&reading);
        copied.and_then(|()| closed.map_err(failed(format!("remote close \"{}\"", shown.0))))
    }

    fn change(&self, change: &Change) -> Done {
        let can = self.client.version().has(Extension::SetOfLink);
        if change.links == Links::Themselves && !can {
            return Err(told("Server does not support lsetstat@openssh.com extension"));
        }
        self.of_each(&change.pattern, |path| self.change_one(path, change))
    }

    fn change_one(&self, path: &[u8], change: &Change) -> Done {
        let shown = Shown::new(path);
        let (what, attributes) = match change.what {
            Changed::Mode => {
                ("mode", Attributes { mode: Some(change.value), ..Attributes::default() })
            }
            Changed::Owner | Changed::Group => {
                let request = match change.links {
                    Links::Followed => Request::Stat(path),
                    Links::Themselves => Request::LStat(path),
                };
                let found = self.client.attributes(&request);
                let found = found.map_err(failed(format!("stat remote \"{shown}\"")))?;
                let Some((user, group)) = found.owner else {
                    let text = "Can't get current ownership of remote file";
                    return Err(told(format!("{text} \"{shown}\"")));
                };
                let (what, owner) = match change.what {
                    Changed::Owner => ("owner", (change.value, group)),
                    _ => ("group", (user, change.value)),
                };
                (what, Attributes { owner: Some(owner), ..Attributes::default() })
            }
        };
        self.note(format_args!("Changing {what} on {shown}"))?;
        let set = match change.links {
            Links::Followed => self.client.done(&Request::SetStat(path, attributes)),
            Links::Themselves => self.client.done(&Request::SetOfLink(path, attributes)),
        };
        set.map_err(failed(format!("remote setstat \"{shown}\"")))
    }

    fn toggle_meter(&mut self) -> Done {
        self.meter = match self.meter {
            Meter::Hidden => Meter::Shown,
            Meter::Shown => Meter::Hidden,
        };
        let state = if self.meter == Meter::Shown { "enabled" } else { "disabled" };
        writeln!(stdout(), "Progress meter {state}")?;
        Ok(())
    }

    /// Prints what is being done, unless only results are wanted.
    pub(crate) fn note(&self, text: std::fmt::Arguments<'_>) -> Done {
        if self.noise == Noise::Each {
            writeln!(stdout(), "{text}")?;
        }
        Ok(())
    }
}

/// The first failure of two, unless the second ends everything.
pub(crate) fn worse(first: Done, second: Done) -> Done<Done> {
    match second {
        Ok(()) => Ok(first),
        Err(Fault::Told) => Ok(Err(Fault::Told)),
        Err(end) => Err(end),
    }
}

/// What the system says, for the user.
pub(crate) fn told_of(what: &str, path: &[u8], error: &std::io::Error) -> Fault {
    told(format!("{what} \"{}\": {}", Shown::new(path), system(error)))
}
