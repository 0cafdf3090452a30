//! Notes of unfinished files, made before the files, so that the next command removes those of a killed one.

use hikyaku_fs::Token;
use hikyaku_store::{Begun, Left, Note, left_over};
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

/// The notes of a command about files of a server.
pub struct Notes {
    folder: Option<PathBuf>,
    /// The URL of the server.
    place: Vec<u8>,
    /// Begun with the first file; `None` if nothing can be noted.
    begun: OnceLock<Option<Arc<Begun>>>,
}

impl Notes {
    /// Of a command that makes no files at a server.
    pub const fn none() -> Self {
        Self { folder: None, place: Vec::new(), begun: OnceLock::new() }
    }

    /// Of a command whose files go to the server of this URL, in a folder of the user.
    pub fn there(folder: Option<PathBuf>, url: &str) -> Self {
        Self { folder, place: url.as_bytes().to_vec(), begun: OnceLock::new() }
    }

    /// Has `remove` remove the unfinished files of killed commands: it returns whether nothing is left of a path.
    pub fn remove_left(&self, mut remove: impl FnMut(&[u8]) -> bool) {
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

    /// Notes an unfinished file of the server. It is noted until the note is dropped.
    pub fn note(&self, path: &[u8]) -> Option<Note> {
        let folder = self.folder.as_ref()?;
        self.begun.get_or_init(|| Begun::new(folder, &self.place).ok()).as_ref()?.note(path)
    }
}

impl fmt::Debug for Notes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Notes").field("folder", &self.folder).finish_non_exhaustive()
    }
}
