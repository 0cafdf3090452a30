//! Where a copy lands: a directory held open, and what its sources are called in it.

use super::journal::Place;
use anyhow::{Context, Result, bail};
use hikyaku_fs::{Dir, Name, PathError, PeerPath, Shown};
use hikyaku_transfer::Sources;
use std::fs::{self, File, Metadata};
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// The directory, and the one source's name in it if it is not its own.
pub(crate) struct Landing {
    dir: Dir,
    path: PathBuf,
    name: Option<Name>,
    stream: Option<Stream>,
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
        making: Making,
    ) -> Result<Self> {
        let target = if target.as_os_str().is_empty() { Path::new(".") } else { target };
        let shown = Shown::new(target.as_os_str().as_bytes());
        match (fs::metadata(target), sources) {
            // The same command made it, and was interrupted: it goes on, and not beneath it.
            (Ok(meta), Sources::One) if meta.is_dir() && is_begun(target, of) => {
                Self::named(target)
            }
            (Ok(meta), _) if meta.is_dir() => Self::into(target),
            (Ok(meta), Sources::One) => Self::over(target, &meta, making),
            (Ok(_), Sources::Several | Sources::Contents) => bail!("{shown}: not a directory"),
            (Err(error), _) if error.kind() != ErrorKind::NotFound => {
                Err(error).with_context(|| format!("cannot write to {shown}"))
            }
            (Err(_), Sources::One) => Self::named(target),
            (Err(_), Sources::Contents) if making == Making::Nothing => Self::named(target),
            (Err(_), Sources::Contents) => {
                fs::create_dir(target).with_context(|| format!("cannot make {shown}"))?;
                Self::into(target)
            }
            (Err(_), Sources::Several) => {
                bail!("{shown}: no such directory, and several sources need one")
            }
        }
    }

    fn into(target: &Path) -> Result<Self> {
        Ok(Self { dir: Dir::open(target)?, path: target.to_path_buf(), name: None, stream: None })
    }

    /// Something that is there: a file behind a link is the target, and not the link.
    fn over(target: &Path, meta: &Metadata, making: Making) -> Result<Self> {
        if !meta.is_file() {
            let mut landing = Self::named(target)?;
            if making == Making::Allowed {
                let opened = File::options().write(true).open(target);
                let shown = Shown::new(target.as_os_str().as_bytes());
                let file = opened.with_context(|| format!("cannot write to {shown}"))?;
                landing.stream = Some(Mutex::new(Some(file)));
            }
            return Ok(landing);
        }
        match fs::symlink_metadata(target)?.is_symlink() {
            true => Self::named(&fs::canonicalize(target)?),
            false => Self::named(target),
        }
    }

    fn named(target: &Path) -> Result<Self> {
        let Some(Component::Normal(name)) = target.components().next_back() else {
            bail!("{}: not a name", Shown::new(target.as_os_str().as_bytes()));
        };
        let parent = match target.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        if !parent.is_dir() {
            let shown = Shown::new(parent.as_os_str().as_bytes());
            bail!("{shown}: no such directory; make it first: mkdir -p {shown}");
        }
        let name = Name::new(name.as_bytes())?;
        let (dir, path) = (Dir::open(parent)?, parent.to_path_buf());
        Ok(Self { dir, path, name: Some(name), stream: None })
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

/// Whether a copy of these sources was begun that makes `target`.
fn is_begun(target: &Path, of: [u8; 32]) -> bool {
    Landing::named(target).is_ok_and(|landing| landing.place(of).is_begun())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_a_directory_or_a_name() {
        let scratch = std::env::temp_dir().join(format!("hikyaku-landing-{}", std::process::id()));
        fs::create_dir_all(scratch.join("there")).unwrap();
        fs::write(scratch.join("file"), b"old").unwrap();
        let of = hikyaku_crypto::random_array();
        let open =
            |name: &str, sources| Landing::open(&scratch.join(name), sources, of, Making::Allowed);
        let place = |landing: Landing| {
            String::from_utf8(landing.locate(b"run7/a").unwrap().as_bytes().to_vec()).unwrap()
        };
        assert_eq!(place(open("there", Sources::One).unwrap()), "run7/a");
        assert_eq!(place(open("new", Sources::One).unwrap()), "new/a");
        assert_eq!(place(open("file", Sources::One).unwrap()), "file/a");
        assert_eq!(place(open("made", Sources::Contents).unwrap()), "run7/a");
        assert!(scratch.join("made").is_dir());
        assert!(open("file", Sources::Several).is_err());
        assert!(open("gone", Sources::Several).is_err());
        assert!(open("gone/deep", Sources::One).is_err());
        std::os::unix::fs::symlink("../file", scratch.join("there/link")).unwrap();
        assert_eq!(place(open("there/link", Sources::One).unwrap()), "file/a");
        assert!(!open("file", Sources::One).unwrap().is_stream());
        let null =
            Landing::open(Path::new("/dev/null"), Sources::One, of, Making::Allowed).unwrap();
        assert!(null.is_stream() && null.take_stream().is_some() && null.take_stream().is_none());
        let landing = open("there", Sources::One).unwrap();
        assert!(landing.locate(b"../x").is_err() && landing.locate(b"/x").is_err());
        fs::remove_dir_all(scratch).unwrap();
    }
}
