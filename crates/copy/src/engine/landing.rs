//! Where a copy lands: a directory held open, and what its sources are called in it.

use super::descriptor;
use super::journal::Place;
use crate::outcome::failed;
use anyhow::{Context, Result, bail, ensure};
use hikyaku_fs::{Dir, FsError, Name, PathError, PeerPath, Shown};
use hikyaku_transfer::{FailureKind, Sources};
use std::fs::{self, File, Metadata};
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// The directory, and the one source's name in it if it is not its own.
pub(crate) struct Landing {
    dir: Dir,
    path: PathBuf,
    name: Option<Name>,
    stream: Option<Stream>,
    /// Its user wrote a slash behind the name: it is to be a directory.
    must_be_dir: bool,
    /// The directory above, if the target was made in it just now.
    made_in: Option<Dir>,
}

/// Whose the standard descriptors of this process are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Descriptors {
    /// The user's who began the copy: `/dev/stdout` may be a target.
    Users,
    /// They carry what the two ends say to each other.
    Carrier,
}

/// A target that is no plain file (/dev/null, a FIFO): its user named it, so it is opened as they
/// would open it, and what comes is written into it. It is there for one file.
type Stream = Mutex<Option<File>>;

/// Whether a directory may be made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Making {
    Allowed,
    /// It is a rehearsal.
    Nothing,
}

/// `path` with another name for its first.
pub(crate) fn renamed(path: &[u8], name: &[u8]) -> Vec<u8> {
    let below = path.iter().position(|&byte| byte == b'/').unwrap_or(path.len());
    [name, &path[below..]].concat()
}

impl Landing {
    /// What `target`, which this machine's user named, means for these sources. `of` is the same for
    /// the same sources.
    pub(crate) fn open(
        target: &Path,
        sources: Sources,
        of: [u8; 32],
        (making, descriptors): (Making, Descriptors),
    ) -> Result<Self> {
        let target = if target.as_os_str().is_empty() { Path::new(".") } else { target };
        let shown = Shown::new(target.as_os_str().as_bytes());
        if let Some(number) = descriptor::number(target) {
            ensure!(sources == Sources::One, "{shown}: not a directory");
            ensure!(
                descriptors == Descriptors::Users,
                "{shown}: is not free on this side, it carries the copy itself"
            );
            let file = descriptor::open(number)
                .with_context(|| format!("{shown}: no such open descriptor"))?;
            let stream = (making == Making::Allowed).then(|| Mutex::new(Some(file)));
            return Ok(Self { stream, ..Self::into(Path::new("."))?.named_as(b"stdout")? });
        }
        match (fs::metadata(target), sources) {
            // The same command made it, and was interrupted: it goes on, and not beneath it.
            (Ok(meta), Sources::One) if meta.is_dir() && is_begun(target, of) => {
                Self::named(target)
            }
            (Ok(meta), _) if meta.is_dir() => Self::into(target),
            (Ok(meta), Sources::One) => Self::over(target, &meta, making),
            (Ok(_), Sources::Several | Sources::Contents) => {
                Err(failed(FailureKind::NotDirectory, format!("{shown}: not a directory")))
            }
            (Err(error), _) if error.kind() != ErrorKind::NotFound => {
                Err(FsError::io("look at", target.as_os_str().as_bytes(), &error).into())
            }
            (Err(_), Sources::One) => Self::named(target),
            (Err(_), Sources::Contents) if making == Making::Nothing => Self::named(target),
            (Err(_), Sources::Contents) => {
                let path = target.as_os_str().as_bytes();
                fs::create_dir(target).map_err(|e| FsError::io("make the directory", path, &e))?;
                Ok(Self { made_in: Some(Dir::open(&above(target))?), ..Self::into(target)? })
            }
            (Err(_), Sources::Several) => {
                let text = format!("{shown}: no such directory, and several sources need one");
                Err(failed(FailureKind::NotFound, text))
            }
        }
    }

    fn into(target: &Path) -> Result<Self> {
        let (dir, path) = (Dir::open(target)?, target.to_path_buf());
        Ok(Self { dir, path, name: None, stream: None, must_be_dir: false, made_in: None })
    }

    fn named_as(self, name: &[u8]) -> Result<Self> {
        Ok(Self { name: Some(Name::new(name)?), ..self })
    }

    /// Something that is there: a file behind a link is the target, and not the link.
    fn over(target: &Path, meta: &Metadata, making: Making) -> Result<Self> {
        if !meta.is_file() {
            let mut landing = Self::named(target)?;
            if making == Making::Allowed {
                let opened = File::options().write(true).open(target);
                let shown = Shown::new(target.as_os_str().as_bytes());
                let path = target.as_os_str().as_bytes();
                let file = opened.map_err(|error| FsError::io("open", path, &error))?;
                // In a directory of many users somebody may have put something else there meanwhile.
                let now = file.metadata()?;
                ensure!(
                    (now.dev(), now.ino()) == (meta.dev(), meta.ino()),
                    "{shown}: is exchanged for something else just now"
                );
                landing.stream = Some(Mutex::new(Some(file)));
            }
            return Ok(landing);
        }
        let landing = match fs::symlink_metadata(target)?.is_symlink() {
            true => Self::named(&fs::canonicalize(target)?)?,
            false => Self::named(target)?,
        };
        let found = landing.name.as_ref().map(|name| landing.dir.meta(name)).transpose()?.flatten();
        ensure!(
            found.is_none_or(|found| found.identity == (meta.dev(), meta.ino())),
            "{}: is exchanged for something else just now",
            Shown::new(target.as_os_str().as_bytes())
        );
        Ok(landing)
    }

    fn named(target: &Path) -> Result<Self> {
        let Some(Component::Normal(name)) = target.components().next_back() else {
            bail!("{}: not a name", Shown::new(target.as_os_str().as_bytes()));
        };
        let parent = &*above(target);
        let path = parent.as_os_str().as_bytes();
        match fs::metadata(parent) {
            Ok(meta) if meta.is_dir() => {}
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(FsError::io("look at", path, &error).into());
            }
            Ok(_) | Err(_) => {
                let shown = Shown::new(path);
                let text = format!("{shown}: no such directory; make it first: mkdir -p {shown}");
                return Err(failed(FailureKind::NotFound, text));
            }
        }
        let name = Name::new(name.as_bytes())?;
        let (dir, path) = (Dir::open(parent)?, parent.to_path_buf());
        let must_be_dir = target.as_os_str().as_bytes().ends_with(b"/");
        Ok(Self { dir, path, name: Some(name), stream: None, must_be_dir, made_in: None })
    }

    /// Whether its user wrote `NAME/`, and there is nothing of that name: only a directory may be made.
    pub(crate) const fn must_be_dir(&self) -> bool {
        self.must_be_dir
    }

    /// Makes the directory's own name last through a power failure, if it was made just now.
    pub(crate) fn sync_made(&self) -> Result<(), FsError> {
        self.made_in.as_ref().map_or(Ok(()), Dir::sync)
    }

    /// The directory as its user wrote it.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The directory.
    pub(crate) const fn dir(&self) -> &Dir {
        &self.dir
    }

    /// What a journal of it is about.
    pub(crate) fn place(&self, of: [u8; 32]) -> Place<'_> {
        Place { of, dir: &self.path, name: self.name.as_ref().map(Name::as_bytes) }
    }

    /// The one source's name, if it is not its own.
    pub(crate) const fn name(&self) -> Option<&Name> {
        self.name.as_ref()
    }

    /// Whether it is no plain file.
    pub(crate) const fn is_stream(&self) -> bool {
        self.stream.is_some()
    }

    /// What is written into, for the first who asks, if it is no plain file.
    pub(crate) fn take_stream(&self) -> Option<File> {
        self.stream.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Where an entry of the sender's goes, beneath the directory.
    pub(crate) fn locate(&self, path: &[u8]) -> Result<PeerPath, PathError> {
        let placed = PeerPath::new(path)?;
        let Some(name) = &self.name else { return Ok(placed) };
        PeerPath::new(&renamed(path, name.as_bytes()))
    }
}

/// The directory that a path is in.
fn above(path: &Path) -> PathBuf {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_path_buf(),
        _ => PathBuf::from("."),
    }
}

/// Whether a copy of these sources was begun that makes `target`.
fn is_begun(target: &Path, of: [u8; 32]) -> bool {
    Landing::named(target).is_ok_and(|landing| landing.place(of).is_begun())
}

#[cfg(test)]
mod tests {
    use super::*;

    const USERS: (Making, Descriptors) = (Making::Allowed, Descriptors::Users);

    #[test]
    fn a_target_is_a_directory_or_a_name() {
        let scratch = std::env::temp_dir().join(format!("hikyaku-landing-{}", std::process::id()));
        fs::create_dir_all(scratch.join("there")).unwrap();
        fs::write(scratch.join("file"), b"old").unwrap();
        let of = hikyaku_crypto::random_array();
        let open = |name: &str, sources| Landing::open(&scratch.join(name), sources, of, USERS);
        let place = |landing: Landing| {
            String::from_utf8(landing.locate(b"run7/a").unwrap().as_bytes().to_vec()).unwrap()
        };
        assert_eq!(place(open("there", Sources::One).unwrap()), "run7/a");
        assert_eq!(place(open("new", Sources::One).unwrap()), "new/a");
        assert!(open("new/", Sources::One).unwrap().must_be_dir());
        assert!(open("file/", Sources::One).is_err());
        assert_eq!(place(open("file", Sources::One).unwrap()), "file/a");
        assert_eq!(place(open("made", Sources::Contents).unwrap()), "run7/a");
        assert!(scratch.join("made").is_dir());
        assert!(open("file", Sources::Several).is_err());
        assert!(open("gone", Sources::Several).is_err());
        assert!(open("gone/deep", Sources::One).is_err());
        std::os::unix::fs::symlink("../file", scratch.join("there/link")).unwrap();
        assert_eq!(place(open("there/link", Sources::One).unwrap()), "file/a");
        assert!(!open("file", Sources::One).unwrap().is_stream());
        let null = Landing::open(Path::new("/dev/null"), Sources::One, of, USERS).unwrap();
        assert!(null.is_stream() && null.take_stream().is_some() && null.take_stream().is_none());
        let landing = open("there", Sources::One).unwrap();
        assert!(landing.locate(b"../x").is_err() && landing.locate(b"/x").is_err());
        fs::remove_dir_all(scratch).unwrap();
    }
}
