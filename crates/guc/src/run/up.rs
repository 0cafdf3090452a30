//! Copies to a server.

use super::{Copy, ODD};
use crate::fetching::{Ended, Told, code};
use crate::glob::Pattern;
use crate::outcome::{lasting, part_of_several};
use crate::part::{Wanted, part_up};
use crate::paths::split;
use crate::sending::{About, Compared, Sending, left_out, writing};
use crate::there::meant;
use crate::url::Remote;
use anyhow::{Context, Error, Result, bail};
use hikyaku_console::{At, ExitCode};
use hikyaku_fs::Shown;
use hikyaku_gridftp::{Facts, Kind};
use hikyaku_mover::{
    Choice, Claims, Destination, Existing, Landed, Same, SessionError, Sources, Streams, Target,
    Times, Together, Written,
};
use hikyaku_store::{End, Kind as Theirs, Led, Store, StorePath};
use hikyaku_store_ftp::Ftp;
use hikyaku_transfer::{Depth, FailureKind, Links, Resume};
use std::ffi::OsStr;
use std::fs::{File, Metadata};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// The place of the server that receives a copy.
struct Place {
    /// The root of the store: that of the server, or a directory if the path does not begin there. With a slash at its end.
    root: Vec<u8>,
    /// The path below the root.
    at: StorePath,
    /// The facts of what is there, or of the directory above it.
    facts: Facts,
    /// What has the path.
    there: Option<Theirs>,
}

impl Place {
    fn new(path: &[u8], facts: Facts, there: Option<Theirs>) -> Result<Self> {
        let path = path.strip_suffix(b"/").unwrap_or(path);
        if let Some(at) = path.strip_prefix(b"/").and_then(|path| StorePath::new(path).ok()) {
            return Ok(Self { root: b"/".to_vec(), at, facts, there });
        }
        let (folder, name) = split(path);
        let (root, at) = match name {
            b"" | b"." | b".." => ([path, b"/"].concat(), StorePath::ROOT),
            name if folder.is_empty() => (b"./".to_vec(), StorePath::new(name)?),
            name => (folder.to_vec(), StorePath::new(name)?),
        };
        Ok(Self { root, at, facts, there })
    }
}

impl Copy<'_> {
    pub(super) fn up(&mut self, from: &Path, to: &Remote) -> Result<()> {
        let is_there = || Ok(from.symlink_metadata().is_ok());
        if let Some(pattern) = Pattern::parse(from.as_os_str().as_bytes(), is_there)? {
            return self.matches_up(&pattern, from, to);
        }
        if from.as_os_str().as_bytes().ends_with(b"/") {
            self.check_directory(to.path.ends_with(b"/"))?;
            // A directory that is missing here makes none there.
            from.metadata().at(from.display())?;
            let place = self.directory(to)?;
            return self.send(&[from.join(".")], to, place);
        }
        let meta = from.metadata().at(from.display())?;
        check_source(from, &meta)?;
        let source = split(from.as_os_str().as_bytes()).1;
        let mut there = None;
        let (path, _) = meant(&to.path, source, |path| {
            there = self.session.ask(|channel| channel.facts(path))?;
            Ok(there.clone())
        })?;
        let to = Remote { path, ..to.clone() };
        match self.wanted() {
            Wanted::Whole => {
                let place = self.place(&to.path, there)?;
                self.send(&[from.to_owned()], &to, place)
            }
            wanted @ Wanted::Part { .. } => {
                self.place(&to.path, there)?;
                if self.args.dry_run {
                    self.would(to.to_string().as_bytes());
                    return Ok(());
                }
                let range = wanted.range(meta.len());
                self.session.show.count(|counts| {
                    counts.total_files = 1;
                    counts.total_bytes = range.end - range.start;
                    counts.is_counted = true;
                });
                part_up(&mut self.session, from, &to.path, wanted)
                    .with_context(|| from.display().to_string())?;
                self.count_file();
                Ok(())
            }
        }
    }

    /// Copies what a pattern means in a directory of this machine.
    fn matches_up(&mut self, pattern: &Pattern, from: &Path, to: &Remote) -> Result<()> {
        if !to.path.ends_with(b"/") {
            bail!(lasting("the source is a pattern, so the target has to end in a slash"));
        }
        if self.wanted() != Wanted::Whole {
            bail!(part_of_several());
        }
        let folder = if pattern.folder.is_empty() { b"." } else { pattern.folder.as_slice() };
        let folder = Path::new(OsStr::from_bytes(folder));
        let names = || std::fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect();
        let mut paths: Vec<PathBuf> = std::io::Result::at(names(), folder.display())?;
        paths.retain(|path| {
            let name = path.file_name().map(OsStr::as_bytes);
            name.is_some_and(|name| pattern.matches(name)) && (self.args.recurse || !path.is_dir())
        });
        paths.sort();
        if paths.is_empty() {
            bail!(lasting(format!("{}: no such file", from.display())));
        }
        // Several names need a directory that exists.
        if self.makes_dirs() {
            self.session.ask(|channel| channel.make_dirs(&to.path))?;
        }
        let mut place = self.directory(to)?;
        place.there = Some(Theirs::Dir);
        self.send(&paths, to, place)
    }

    /// The directory that a user means by a path with a slash at its end. The mover makes it if it is missing, if the user wants
    /// that.
    fn directory(&mut self, to: &Remote) -> Result<Place> {
        let facts = self.session.ask(|channel| channel.facts(&to.path))?;
        let path = to.path.strip_suffix(b"/").unwrap_or(&to.path);
        match facts {
            Some(facts) if matches!(facts.kind, Kind::Directory | Kind::Listed) => {
                Place::new(path, facts, Some(Theirs::Dir))
            }
            Some(_) => bail!(lasting(format!("{to}: not a directory"))),
            None if self.args.cd => self.place(path, None),
            None => bail!(lasting(format!("{to}: no such directory"))),
        }
    }

    /// The place of a path, which `there` has the facts of. The directory above it is made if it is missing, if the user wants
    /// that.
    fn place(&mut self, path: &[u8], there: Option<Facts>) -> Result<Place> {
        if let Some(facts) = there {
            return Place::new(path, facts, Some(Theirs::File));
        }
        let folder = split(path).0;
        let folder = if folder.is_empty() { b"./" } else { folder };
        let mut facts = self.session.ask(|channel| channel.facts(folder))?;
        if facts.is_none() && self.makes_dirs() {
            self.session.ask(|channel| channel.make_dirs(folder))?;
            facts = self.session.ask(|channel| channel.facts(folder))?;
        } else if facts.is_none() && self.args.cd {
            // A dry run needs the facts of any directory: they show which facts the server has.
            facts = self.session.ask(|channel| channel.facts(b"/"))?;
        }
        let missing = || lasting(format!("{}: no such directory", Shown::new(folder)));
        Place::new(path, facts.ok_or_else(missing)?, None)
    }

    /// Sends files and directories of this machine to a place.
    fn send(&mut self, paths: &[PathBuf], to: &Remote, place: Place) -> Result<()> {
        let told = Arc::new(Told::new((&to.server, self.session.parts()), &self.show));
        let (writing, compared) = writing(self.args, &told);
        let ftp = self.session.store_of(&place.root, &place.facts)?;
        let ftp = ftp.with_writing(writing).with_sessions(self.args.cc as usize);
        let ftp = ftp.with_notes(Arc::clone(self.session.notes));
        let sent = self.land(paths, &ftp, (to, &place)).and_then(|(sources, landed)| {
            landed.into_iter().try_for_each(|landed| {
                let (told, compared) = (&*told, compared.clone());
                self.send_all((&sources, landed), &ftp, (to, &place.root), (told, compared))
            })
        });
        self.session.borrow_from(&ftp);
        sent
    }

    /// Looks through the sources, and finds the place of each file at the server.
    fn land(
        &mut self,
        paths: &[PathBuf],
        ftp: &Ftp,
        (to, place): (&Remote, &Place),
    ) -> Result<(Sources, Vec<Landed>)> {
        let look = |path: &StorePath| {
            Ok(vec![if *path == place.at { place.there } else { Some(Theirs::Dir) }])
        };
        let is_dir = to.path.ends_with(b"/");
        let written = if is_dir { Written::AsDirectory } else { Written::AsName };
        let led = Led { path: place.at.clone(), end: End::There };
        let target = Target::find(&look, &to.to_string(), (written, led)).map_err(of_session)?;
        let choice = Choice {
            pass: self.args.pass(),
            depth: if self.args.recurse { Depth::Tree } else { Depth::File },
            links: Links::Followed,
            existing: Existing::Replaced,
            same: Same::Never,
            times: Times::New,
            // A file that is written in place is begun anew.
            resume: (!self.args.inplace).then_some(Resume::Journal),
            ..Choice::FILES
        };
        let (claims, mut failed) = (Mutex::new(Claims::default()), Vec::new());
        let together = Together { others: 0, claims: &claims };
        let sources = Sources::find(paths, &choice, &mut failed).map_err(of_session)?;
        let store: Arc<dyn Store> = Arc::new(ftp.clone());
        let destination = Destination::Store(store, &target);
        let of = (&choice, together, &Streams::Refused);
        let mut landed = sources.land(&destination, of, &mut failed).map_err(of_session)?;
        for one in failed {
            let shown = Shown::new(&one.path);
            self.after(Err(code(one.kind).error(format!("{shown}: {}", one.text))))?;
        }
        for one in &mut landed {
            // The server chooses the bits of directories.
            one.plan.dirs.iter_mut().for_each(|(_, meta)| meta.mode |= 0o700);
            for left in std::mem::take(&mut one.plan.left_out) {
                self.keep(left_out(&[&sources.root, &left.path[..]].concat(), left.why));
            }
        }
        Ok((sources, landed))
    }

    /// Sends the files of a plan.
    fn send_all(
        &mut self,
        (sources, mut landed): (&Sources, Landed),
        ftp: &Ftp,
        (to, root): (&Remote, &[u8]),
        (told, compared): (&Told, Option<Arc<Compared>>),
    ) -> Result<()> {
        if self.args.sync {
            self.session.borrow_from(ftp);
            let left = self.others_of(&mut landed.plan.files, (&sources.root, root));
            self.session.return_to(ftp);
            left?;
        }
        let (files, bytes) = (landed.plan.files.len() as u64, landed.plan.bytes());
        self.session.show.count(|counts| {
            counts.total_files += files;
            counts.total_bytes = counts.total_bytes.saturating_add(bytes);
            counts.is_counted = true;
        });
        let sending = Sending {
            args: self.args,
            ftp,
            sources,
            landed,
            compared,
            told,
            show: &self.show,
            scope: self.scope,
            stop: self.session.stop(),
        };
        let (Ended { record, stopped, would }, failed) = sending.run()?;
        self.record = record;
        let shown = |path: &[u8]| {
            let path = [root, path].concat();
            Remote { path, ..to.clone() }.to_string()
        };
        for path in would {
            self.would(shown(&path).as_bytes());
        }
        if let Some(kept) = stopped {
            return Err(kept.into());
        }
        for (about, error) in failed {
            let about = match about {
                About::Source(path) => path.display().to_string(),
                About::Target(path) => shown(&path),
            };
            self.after(Err(error.context(about)))?;
        }
        Ok(())
    }
}

/// Refuses a source whose bytes are not known before they are read.
fn check_source(from: &Path, meta: &Metadata) -> Result<()> {
    let shown = from.display();
    let text = match () {
        () if meta.is_dir() => {
            format!("{shown}: is a directory; with a slash at its end it is copied")
        }
        () if !meta.is_file() => format!("{shown} {ODD}, and its size is not known"),
        () if meta.len() == 0 && has_bytes(from) => {
            format!("{shown} gives more bytes than its size says; copy what 'cat' makes of it")
        }
        // An error of reading is reported before any request to the server.
        () => return File::open(from).map(drop).at(shown),
    };
    Err(ExitCode::WillFail.error(text))
}

/// Whether reading a file gives bytes, as files of /proc do that are told to be empty. A file that cannot be read has none
/// here: it is told when it is sent.
fn has_bytes(path: &Path) -> bool {
    File::open(path).is_ok_and(|mut file| file.read(&mut [0]).is_ok_and(|length| length > 0))
}

fn of_session(error: SessionError) -> Error {
    let kind = error.kind().map_or(FailureKind::Io, hikyaku_mover::Kind::as_file);
    hikyaku_job::exit_code_of(kind).error(error.to_string())
}
