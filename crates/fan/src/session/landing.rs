//! Where the files of a download go.

use super::SessionError;
use hikyaku_fs::{FsError, PeerPath};
use hikyaku_store::{ErrorKind, StorePath};
use hikyaku_store_local::{Local, NewModes};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

pub use hikyaku_fs::umask;

/// Where the files of one source go.
pub struct Landing {
    /// The directory that receives them.
    pub store: Arc<Local>,
    /// Bytes of the path at the servers before the name of the source.
    skipped: usize,
    /// The name that the source gets, in place of its own.
    renamed: Option<PeerPath>,
}

/// Whether a source may get another name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Renamed {
    /// The target may be the new name of the source.
    Allowed,
    /// The target must be a directory, since there are several sources.
    Never,
}

impl Landing {
    /// As scp has it: a target that is a directory receives the source, any other target is its new name.
    ///
    /// # Errors
    ///
    /// The directory cannot be written to, or the name is not possible.
    pub fn new(root: &StorePath, target: &Path, renamed: Renamed) -> Result<Self, SessionError> {
        let modes = NewModes { file: 0o666 & !umask() };
        let open = |path: &Path| {
            let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
            Local::open(path, modes).map_err(cannot_write)
        };
        let skipped = match root.split() {
            Some((dir, _)) if dir != StorePath::ROOT => dir.as_bytes().len() + 1,
            _ => 0,
        };
        if renamed == Renamed::Never || target.is_dir() || root == &StorePath::ROOT {
            return Ok(Self { store: Arc::new(open(target)?), skipped, renamed: None });
        }
        let name = target.file_name().unwrap_or_else(|| OsStr::new("."));
        let renamed = PeerPath::new(name.as_bytes()).map_err(|error| {
            let text = format!("{} cannot be the name of a file: {error}", target.display());
            SessionError::refused(ErrorKind::BadName, text)
        })?;
        let dir = target.parent().unwrap_or_else(|| Path::new("."));
        Ok(Self { store: Arc::new(open(dir)?), skipped, renamed: Some(renamed) })
    }

    /// The place of a path of the servers; `None` if there can be none.
    pub fn of(&self, path: &PeerPath) -> Option<StorePath> {
        let below = path.as_bytes().get(self.skipped..)?;
        let Some(renamed) = &self.renamed else { return StorePath::new(below).ok() };
        let rest = below.iter().position(|&byte| byte == b'/').map_or(&b""[..], |at| &below[at..]);
        StorePath::new(&[renamed.as_bytes(), rest].concat()).ok()
    }
}

fn cannot_write(error: FsError) -> SessionError {
    let text = format!("cannot write to {error}");
    SessionError::refused(ErrorKind::from(error), text)
}
