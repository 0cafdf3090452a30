//! Where the files of a download go.

use super::{Kind, SessionError};
use crate::fetch::Taking;
use hikyaku_console::begun;
use hikyaku_fs::{FsError, Patience, PeerPath, Shown, Spot, Target, umask};
use hikyaku_store::{ErrorKind, Kind as FileKind, StorePath};
use hikyaku_store_local::{Local, NewModes, Opening};
use hikyaku_transfer::{FailureKind, Pass};
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Where the files of one source go.
pub struct Landing {
    /// The directory that receives them.
    pub store: Arc<Local>,
    /// In which order the target takes bytes.
    pub taking: Taking,
    /// Bytes of the path at the servers that the path at the target does not have.
    skipped: usize,
    place: Place,
    kind: FileKind,
}

/// What the target means for the names of a source.
enum Place {
    /// It receives them.
    Into,
    /// It receives the source under this name: a link of this name led to the source.
    Called(PeerPath),
    /// It is the new name of the source.
    Renamed(PeerPath),
    /// It is not there, and would receive them: this is a rehearsal.
    Below(PeerPath),
}

/// What comes to a target.
#[derive(Clone, Copy, Debug)]
pub struct Arriving<'a> {
    /// What the names of the source become.
    pub renamed: Renamed,
    /// Whether the source is a directory or a file.
    pub kind: FileKind,
    /// Whether anything is written.
    pub pass: Pass,
    /// Whether it may be a stream.
    pub streams: &'a Streams,
}

/// Whether the target may take bytes in order only, as a FIFO, a device and an open descriptor do.
#[derive(Clone, Debug, Default)]
pub enum Streams {
    /// It has to be a file or a directory.
    #[default]
    Refused,
    /// It may be one. A FIFO is waited for with this patience.
    Written(Patience),
}

/// Whether a source may get another name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Renamed {
    /// The target may be the new name of the source.
    Allowed,
    /// The target must be a directory, since there are several sources.
    Never,
    /// The target is a directory that receives what is in the source, and that is made if it is not there.
    Contents,
    /// The same beside other sources, for which the target must be there.
    ContentsBeside,
}

impl Landing {
    /// As scp has it: a target that is a directory receives the source, any other target is its new name. A link to a file
    /// stands for that file. The source is at `root` and was `named`, by a link if that differs.
    ///
    /// # Errors
    ///
    /// The target is no directory and has to be one, is a FIFO, a socket or a device that must not be, or is a link that leads
    /// nowhere; the directory cannot be written to; or the name is not possible.
    pub fn new(
        (root, named): (&StorePath, &StorePath),
        target: &Path,
        arriving: Arriving<'_>,
    ) -> Result<Self, SessionError> {
        let Arriving { renamed, kind, pass, streams } = arriving;
        let renamed = if *named == StorePath::ROOT { Renamed::Contents } else { renamed };
        let own_name = match (root.split(), named.split()) {
            _ if matches!(renamed, Renamed::Contents | Renamed::ContentsBeside) => None,
            (Some((_, own)), Some((_, name))) if own == name => None,
            (None, Some(_)) => {
                let text = "its link leads to all that the server offers";
                return Err(SessionError::refused(ErrorKind::Link, format!("{named}: {text}")));
            }
            (_, name) => name.map(|(_, name)| name),
        };
        let skipped = match (root.split(), renamed) {
            (None, _) => 0,
            (Some(_), Renamed::Contents | Renamed::ContentsBeside) => root.as_bytes().len() + 1,
            (Some((dir, _)), _) if dir != StorePath::ROOT => dir.as_bytes().len() + 1,
            (Some(_), _) => 0,
        };
        let (dir, place) = match look(target)? {
            There::Dir => {
                let place = own_name.map_or(Place::Into, |name| Place::Called(name.into()));
                (target.to_path_buf(), place)
            }
            There::File(_) | There::Stream | There::Special
                if renamed != Renamed::Allowed || kind == FileKind::Dir || has_slash(target) =>
            {
                return Err(refused(target, ErrorKind::NotDir, "is not a directory"));
            }
            There::Stream => match streams {
                Streams::Written(patience) => {
                    return Self::stream(target, (pass, patience), skipped);
                }
                Streams::Refused => return Err(special(target)),
            },
            There::Special => return Err(special(target)),
            There::File(spot) => (spot.path, Place::Renamed(spot.name.into())),
            There::Nothing if matches!(renamed, Renamed::Never | Renamed::ContentsBeside) => {
                let text = "no such directory, and several sources need one";
                return Err(refused(target, ErrorKind::NotFound, text));
            }
            There::Nothing if renamed == Renamed::Contents => contents(target, pass)?,
            There::Nothing if kind != FileKind::Dir && has_slash(target) => {
                return Err(refused(target, ErrorKind::NotFound, "no such directory"));
            }
            There::Nothing => new_name(target)?,
        };
        let dir = if dir.as_os_str().is_empty() { Path::new(".") } else { &dir };
        let modes = NewModes { file: 0o666 & !umask() };
        let store = Local::open(dir, modes).map_err(cannot_write)?;
        let store = Arc::new(store.recorded(begun().as_deref()));
        Ok(Self { store, taking: Taking::AnyOrder, skipped, place, kind })
    }

    /// A target that takes the bytes of one file in order.
    fn stream(
        target: &Path,
        (pass, patience): (Pass, &Patience),
        skipped: usize,
    ) -> Result<Self, SessionError> {
        let opening = match pass {
            Pass::Copy => Opening::Waits(patience.clone()),
            Pass::DryRun => Opening::Never,
        };
        let opened = Local::of_target(target, NewModes::default(), opening);
        let (store, _) = opened.map_err(cannot_write)?;
        let (_, Place::Renamed(name)) = new_name(target)? else {
            return Err(refused(target, ErrorKind::NotDir, "is not a directory"));
        };
        let (store, place) = (Arc::new(store), Place::Renamed(name));
        Ok(Self { store, taking: Taking::InOrder, skipped, place, kind: FileKind::File })
    }

    /// Whether the target is the new name of a directory.
    pub const fn is_new_tree(&self) -> bool {
        matches!((&self.place, self.kind), (Place::Renamed(_), FileKind::Dir))
    }

    /// The place of a path of the servers; `None` if there can be none.
    pub fn of(&self, path: &PeerPath) -> Option<StorePath> {
        let below = path.as_bytes().get(self.skipped..)?;
        let place = match &self.place {
            Place::Into => below.to_vec(),
            Place::Renamed(name) | Place::Called(name) => {
                let rest = below.iter().position(|&byte| byte == b'/');
                [name.as_bytes(), rest.map_or(&b""[..], |at| &below[at..])].concat()
            }
            Place::Below(name) => [name.as_bytes(), b"/", below].concat(),
        };
        StorePath::new(&place).ok()
    }
}

/// What has the name of a target, links followed.
enum There {
    Dir,
    File(Spot),
    /// A FIFO, a device or an open descriptor.
    Stream,
    /// A socket.
    Special,
    Nothing,
}

fn look(target: &Path) -> Result<There, SessionError> {
    let of_file = |error: FsError| {
        let kind = ErrorKind::from(error);
        refused(target, kind, &kind.to_string())
    };
    match Target::of(target) {
        Ok(Target::Dir) => Ok(There::Dir),
        Ok(Target::Name(spot)) => match spot.dir.meta(&spot.name).map_err(of_file)? {
            Some(meta) if meta.kind == hikyaku_fs::Kind::Link => {
                let text = "is a symbolic link that leads nowhere";
                Err(refused(target, ErrorKind::Link, text))
            }
            Some(_) => Ok(There::File(spot)),
            None => Ok(There::Nothing),
        },
        Ok(Target::Stream(_)) => Ok(There::Stream),
        Err(FsError::Special { .. }) => Ok(There::Special),
        Err(error) => Err(of_file(error)),
    }
}

/// A directory for what is in a source, which is made unless nothing is to be written.
fn contents(target: &Path, pass: Pass) -> Result<(PathBuf, Place), SessionError> {
    if pass == Pass::DryRun {
        let (dir, place) = new_name(target)?;
        return Ok(match place {
            Place::Renamed(name) => (dir, Place::Below(name)),
            place => (dir, place),
        });
    }
    fs::create_dir(target).map_err(|error| unknown(target, &error))?;
    Ok((target.to_path_buf(), Place::Into))
}

fn new_name(target: &Path) -> Result<(PathBuf, Place), SessionError> {
    let name = target.file_name().unwrap_or_else(|| OsStr::new("."));
    let name = PeerPath::new(name.as_bytes()).map_err(|error| {
        refused(target, ErrorKind::BadName, &format!("cannot be the name of a file: {error}"))
    })?;
    let dir = target.parent().unwrap_or_else(|| Path::new("."));
    Ok((dir.to_path_buf(), Place::Renamed(name)))
}

fn special(target: &Path) -> SessionError {
    let text = "not a regular file; it is left unchanged";
    refused(target, Kind::File(FailureKind::Special), text)
}

fn has_slash(target: &Path) -> bool {
    target.as_os_str().as_bytes().ends_with(b"/")
}

fn refused(target: &Path, kind: impl Into<Kind>, text: &str) -> SessionError {
    let shown = Shown::new(target.as_os_str().as_bytes());
    SessionError::refused(kind, format!("{shown}: {text}"))
}

fn unknown(target: &Path, error: &io::Error) -> SessionError {
    let errno = rustix::io::Errno::from_io_error(error);
    let kind = errno.map_or(ErrorKind::NotFound, ErrorKind::of);
    refused(target, kind, &kind.to_string())
}

fn cannot_write(error: FsError) -> SessionError {
    let text = format!("cannot write to {error}");
    SessionError::refused(ErrorKind::from(error), text)
}

#[cfg(test)]
mod tests;
