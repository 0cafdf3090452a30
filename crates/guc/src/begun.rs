//! Unfinished files of batches, noted before they are made: what a killed command has left, the next one removes.

use hikyaku_console::begun;
use hikyaku_fs::{Dir, Name, Token};
use hikyaku_store::{Begun, Left, Note, left_here, left_over};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

/// The notes of a command.
pub(crate) struct Notes {
    folder: Option<PathBuf>,
    /// Where the files are: the root of this machine, or the URL of a server.
    place: Vec<u8>,
    /// Begun with the first file; `None` if nothing can be noted.
    begun: OnceLock<Option<Arc<Begun>>>,
}

impl Notes {
    /// Of a command whose files come to this machine. Removes what killed ones have left.
    pub(crate) fn here() -> Self {
        let notes = Self::of(b"/".to_vec());
        notes.folder.iter().for_each(|folder| left_here(folder));
        notes
    }

    /// Of a command whose files go to the server of this URL.
    pub(crate) fn there(url: &str) -> Self {
        Self::of(url.as_bytes().to_vec())
    }

    fn of(place: Vec<u8>) -> Self {
        Self { folder: begun(), place, begun: OnceLock::new() }
    }

    /// Has `remove` remove what killed commands have left at the server: it returns whether nothing is left of a path.
    pub(crate) fn remove_left(&self, mut remove: impl FnMut(&[u8]) -> bool) {
        let Some(folder) = &self.folder else { return };
        left_over(
            folder,
            |place| place == self.place,
            |_, path| match !Token::is_in(path) || remove(path) {
                true => Left::Removed,
                false => Left::Stays,
            },
        );
    }

    /// Notes an unfinished file of the server.
    pub(crate) fn note(&self, path: &[u8]) -> Option<Note> {
        let folder = self.folder.as_ref()?;
        self.begun.get_or_init(|| Begun::new(folder, &self.place).ok()).as_ref()?.note(path)
    }

    /// Notes an unfinished file of this machine.
    pub(crate) fn note_here(&self, dir: &Dir, partial: &Name) -> Option<Note> {
        let dir = std::fs::read_link(format!("/proc/self/fd/{}", dir.as_fd().as_raw_fd())).ok()?;
        let path = dir.strip_prefix("/").ok()?.join(partial.as_os_str());
        self.note(path.as_os_str().as_bytes())
    }
}
