//! What the target on this machine means.

use super::bad_name;
use crate::outcome::failed;
use crate::sftp::Run;
use crate::sftp::fault::Trouble;
use crate::sftp::remote::join;
use anyhow::{Context, Result};
use hikyaku_console::begun;
use hikyaku_fs::{FsError, Name, Patience, Shown, umask};
use hikyaku_job::kind_of_fs_error;
use hikyaku_store::StorePath;
use hikyaku_store_local::{Local, NewModes, Opening};
use hikyaku_transfer::{Pass, Sources};
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Where it goes.
pub(super) struct Target {
    pub(super) store: Local,
    /// The one source gets this name; `None` if it keeps its own.
    pub(super) renamed: Option<Name>,
    /// What a list names goes here. It is not the store itself only in a rehearsal, where that would be made.
    listed: StorePath,
}

impl Target {
    /// As scp has it: a target that is a directory receives the source, any other target is its new name. What a list names
    /// goes into a directory, which is made if it is not there.
    pub(super) fn open(run: &Run<'_>, path: &Path, arriving: Sources) -> Result<Self> {
        let modes = NewModes { file: 0o666 & !umask() };
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        let shown = Shown::new(path.as_os_str().as_bytes());
        let cannot = || format!("cannot write to {shown}");
        let is_missing =
            || fs::metadata(path).is_err_and(|error| error.kind() == io::ErrorKind::NotFound);
        let is_made = arriving == Sources::Contents && is_missing();
        if is_made && run.options.rules.pass == Pass::Copy {
            fs::create_dir(path).map_err(|error| {
                let error = FsError::io("make the directory", path.as_os_str().as_bytes(), &error);
                of_target(path, error)
            })?;
        }
        let is_dir = arriving != Sources::One || path.as_os_str().as_bytes().ends_with(b"/");
        if is_dir && !(is_made && run.options.rules.pass == Pass::DryRun) {
            let store = Local::open(path, modes).with_context(cannot)?;
            let store = store.recorded(begun().as_deref());
            return Ok(Self { store, renamed: None, listed: StorePath::ROOT });
        }
        let scope = run.scope.clone();
        let patience = Patience::new(move || scope.stop_cause().is_none());
        let opening = if run.options.rules.pass == Pass::DryRun {
            Opening::Never
        } else {
            Opening::Waits(patience)
        };
        let opened = Local::of_target(path, modes, opening);
        let (store, renamed) = opened.map_err(|error| of_target(path, error))?;
        let store = store.recorded(begun().as_deref());
        let name = renamed.clone().filter(|_| is_made);
        let listed = name.and_then(|name| StorePath::ROOT.join(&name).ok());
        Ok(Self { store, renamed, listed: listed.unwrap_or(StorePath::ROOT) })
    }
}

impl Target {
    /// The place of a name that a list has.
    pub(super) fn of_list(&self, name: &[u8]) -> Result<StorePath, Trouble> {
        let path = join(self.listed.as_bytes(), name);
        StorePath::new(&path).map_err(|_| bad_name(name))
    }
}

/// Why nothing can be written to the target.
fn of_target(path: &Path, error: FsError) -> anyhow::Error {
    let shown = Shown::new(path.as_os_str().as_bytes());
    failed(kind_of_fs_error(&error), format!("{shown}: {}", error.reason()))
}
