//! The place of a copy at the target: an open directory, and the names of the sources in it.

use crate::error::PairError;
use crate::failure::Fatal;
use hikyaku_fs::{
    Device, Dir, FsError, Name, PathError, Patience, PeerPath, Shown, Spot, Stream, Target,
};
use hikyaku_job::{Base, Place};
use hikyaku_transfer::{FailureKind, Sources};
use std::fs;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// The directory, and the names of the sources in it.
pub(crate) struct Landing {
    dir: Dir,
    path: PathBuf,
    naming: Naming,
    stream: Option<OneStream>,
    /// Its user wrote a slash behind the name: it is to be a directory.
    must_be_dir: bool,
    /// The directory above, if the target was made in it just now.
    made_in: Option<Dir>,
}

/// How the paths of the sender become paths in the directory.
enum Naming {
    Unchanged,
    /// The only source has this name.
    Renamed(Name),
    /// In a rehearsal: the sources go into a directory of this name, which a copy would make.
    Below(Name),
}

/// Whose the standard descriptors of this process are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Descriptors {
    /// The user's who began the copy: `/dev/stdout` may be a target.
    Users,
    /// They carry the messages between the two ends.
    Carrier,
}

/// A target that is no plain file (/dev/null, a FIFO): its user named it, so it is opened as they
/// would open it, and what comes is written into it. It is there for one file.
type OneStream = Mutex<Option<Stream>>;

/// Whether a directory may be made, and a stream be opened.
#[derive(Clone, Debug)]
pub(crate) enum Making {
    /// A FIFO is waited for with this patience.
    Allowed(Patience),
    /// It is a rehearsal.
    Nothing,
}

/// `path` with another name for its first.
pub(crate) fn renamed(path: &[u8], name: &[u8]) -> Vec<u8> {
    let below = path.iter().position(|&byte| byte == b'/').unwrap_or(path.len());
    [name, &path[below..]].concat()
}

impl Landing {
    /// The meaning of `target`, a path of this machine's user, for these sources. `of` is a hash of the sources.
    pub(crate) fn open(
        target: &Path,
        sources: Sources,
        of: [u8; 32],
        (making, descriptors): (Making, Descriptors),
    ) -> Result<Self, PairError> {
        let target = if target.as_os_str().is_empty() { Path::new(".") } else { target };
        let shown = Shown::new(target.as_os_str().as_bytes());
        let several = || {
            let text = format!("{shown}: no such directory, and several sources need one");
            Fatal::of(FailureKind::NotFound, text)
        };
        let is_absent =
            fs::metadata(target).is_err_and(|error| error.kind() == ErrorKind::NotFound);
        if is_absent && sources == Sources::Several {
            return Err(several().into());
        }
        has_directory(target)?;
        match (Target::of(target)?, sources) {
            // An interrupted run of the same command made it: this run continues it, and does not copy into it.
            (Target::Dir, Sources::One) if is_begun(target, of) => {
                Ok(Self::named(Spot::of(target)?))
            }
            (Target::Dir, _) => Self::into(target),
            (Target::Stream(device), Sources::One) => {
                if descriptors == Descriptors::Carrier && matches!(device, Device::Descriptor(_)) {
                    let text = "is not free on this side, it carries the copy itself";
                    return Err(PairError::ended(format_args!("{shown}: {text}")));
                }
                let stream = match making {
                    Making::Allowed(patience) => Some(device.open(patience)?),
                    Making::Nothing => None,
                };
                let stream = Some(Mutex::new(stream));
                Ok(Self { stream, ..Self::named(Spot::of(target)?) })
            }
            (Target::Name(spot), Sources::One) => Ok(Self::named(spot)),
            (Target::Name(spot), _) if spot.is_taken()? => {
                Err(Fatal::of(FailureKind::NotDirectory, format!("{shown}: not a directory"))
                    .into())
            }
            (Target::Stream(_), Sources::Several | Sources::Contents) => {
                Err(Fatal::of(FailureKind::NotDirectory, format!("{shown}: not a directory"))
                    .into())
            }
            (Target::Name(spot), Sources::Contents) if matches!(making, Making::Nothing) => {
                let naming = Naming::Below(spot.name.clone());
                Ok(Self { naming, must_be_dir: false, ..Self::named(spot) })
            }
            (Target::Name(spot), Sources::Contents) => {
                let path = target.as_os_str().as_bytes();
                fs::create_dir(target).map_err(|e| FsError::io("make the directory", path, &e))?;
                Ok(Self { made_in: Some(spot.dir), ..Self::into(target)? })
            }
            (Target::Name(_), Sources::Several) => Err(several().into()),
        }
    }

    fn into(target: &Path) -> Result<Self, PairError> {
        let (dir, path) = (Dir::open(target)?, target.to_path_buf());
        let naming = Naming::Unchanged;
        Ok(Self { dir, path, naming, stream: None, must_be_dir: false, made_in: None })
    }

    fn named(spot: Spot) -> Self {
        let Spot { dir, path, name, must_be_dir } = spot;
        let naming = Naming::Renamed(name);
        Self { dir, path, naming, stream: None, must_be_dir, made_in: None }
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

    /// The copy that its journal belongs to.
    pub(crate) fn place(&self, of: [u8; 32]) -> Place<'_> {
        Place { of, base: Base::Dir(&self.path), name: self.name().map(Name::as_bytes) }
    }

    /// The one source's name, if it is not its own.
    pub(crate) const fn name(&self) -> Option<&Name> {
        match &self.naming {
            Naming::Renamed(name) => Some(name),
            Naming::Unchanged | Naming::Below(_) => None,
        }
    }

    /// Whether it is no plain file.
    pub(crate) const fn is_stream(&self) -> bool {
        self.stream.is_some()
    }

    /// The FIFO, device or descriptor that is written into, if the target is one. The first call returns it.
    pub(crate) fn take_stream(&self) -> Option<Stream> {
        self.stream.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Where an entry of the sender's goes, beneath the directory.
    pub(crate) fn locate(&self, path: &[u8]) -> Result<PeerPath, PathError> {
        let placed = PeerPath::new(path)?;
        match &self.naming {
            Naming::Unchanged => Ok(placed),
            Naming::Renamed(name) => PeerPath::new(&renamed(path, name.as_bytes())),
            Naming::Below(name) => PeerPath::new(&[name.as_bytes(), b"/", path].concat()),
        }
    }
}

/// Fails if the directory that a target is in does not exist.
fn has_directory(target: &Path) -> Result<(), PairError> {
    let above = match target.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let path = above.as_os_str().as_bytes();
    match fs::metadata(above) {
        Ok(meta) if meta.is_dir() => Ok(()),
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(FsError::io("look at", path, &error).into())
        }
        Ok(_) | Err(_) => {
            let shown = Shown::new(path);
            let error = Fatal::of(FailureKind::NotFound, format!("{shown}: no such directory"));
            Err(error.with_remedy(format!("try: mkdir -p {shown}")).into())
        }
    }
}

/// Whether a copy of these sources was begun that makes `target`.
fn is_begun(target: &Path, of: [u8; 32]) -> bool {
    Spot::of(target).is_ok_and(|spot| Landing::named(spot).place(of).is_begun())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn users() -> (Making, Descriptors) {
        (Making::Allowed(Patience::endless()), Descriptors::Users)
    }

    #[test]
    fn a_target_is_a_directory_or_a_name() {
        let scratch = std::env::temp_dir().join(format!("hikyaku-landing-{}", std::process::id()));
        fs::create_dir_all(scratch.join("there")).unwrap();
        fs::write(scratch.join("file"), b"old").unwrap();
        let of = hikyaku_crypto::random_array();
        let open = |name: &str, sources| Landing::open(&scratch.join(name), sources, of, users());
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
        let rehearsal = (Making::Nothing, Descriptors::Users);
        let landing = Landing::open(&scratch.join("later"), Sources::Contents, of, rehearsal);
        assert_eq!(place(landing.unwrap()), "later/run7/a");
        assert!(!scratch.join("later").exists());
        assert!(open("file", Sources::Several).is_err());
        assert!(open("gone", Sources::Several).is_err());
        assert!(open("gone/deep", Sources::One).is_err());
        std::os::unix::fs::symlink("../file", scratch.join("there/link")).unwrap();
        assert_eq!(place(open("there/link", Sources::One).unwrap()), "file/a");
        assert!(!open("file", Sources::One).unwrap().is_stream());
        let null = Landing::open(Path::new("/dev/null"), Sources::One, of, users()).unwrap();
        assert!(null.is_stream() && null.take_stream().is_some() && null.take_stream().is_none());
        let landing = open("there", Sources::One).unwrap();
        assert!(landing.locate(b"../x").is_err() && landing.locate(b"/x").is_err());
        fs::remove_dir_all(scratch).unwrap();
    }
}
