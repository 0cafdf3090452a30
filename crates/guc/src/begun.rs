//! Unfinished files of batches, noted before they are made: what a killed command has left, the next one removes.

use hikyaku_console::begun;
use hikyaku_fs::Token;
use hikyaku_store::{Begun, Left, Note, left_over};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

/// The notes of a command.
pub(crate) struct Notes {
    folder: Option<PathBuf>,
    /// The URL of the server that has the files.
    place: Vec<u8>,
    /// Begun with the first file; `None` if nothing can be noted.
    begun: OnceLock<Option<Arc<Begun>>>,
}

impl Notes {
    /// Of a command that makes no files at a server.
    pub(crate) const fn none() -> Self {
        Self { folder: None, place: Vec::new(), begun: OnceLock::new() }
    }

    /// Of a command whose files go to the server of this URL.
    pub(crate) fn there(url: &str) -> Self {
        Self { folder: begun(), place: url.as_bytes().to_vec(), begun: OnceLock::new() }
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
}
