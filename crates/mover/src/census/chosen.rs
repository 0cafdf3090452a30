//! What of a census is copied.

use super::{Census, LeftOut, Why};
use crate::choice::{Choice, Selection, Wanted};
use hikyaku_fs::PeerPath;
use hikyaku_store::{ErrorKind, Kind, StorePath};
use hikyaku_transfer::Depth;
use std::collections::BTreeSet;

impl Census {
    /// Keeps what is wanted of what was found at `root`, which the user has called `named`. What is listed and cannot be copied is noted as left out. Returns
    /// whether the source is a directory or a file.
    ///
    /// # Errors
    ///
    /// The source is a directory and directories are not copied, or it is a file and was written as a directory, or a list
    /// names files below it.
    pub fn choose(
        &mut self,
        (root, named): (&StorePath, &StorePath),
        choice: &Choice<'_>,
    ) -> Result<Kind, ErrorKind> {
        let selection = Selection::new(choice);
        let is_root = |path: &PeerPath| path.as_bytes() == root.as_bytes();
        let is_dir =
            *root == StorePath::ROOT || self.dirs.first().is_some_and(|(path, _)| is_root(path));
        match (is_dir, selection.is_list()) {
            (true, false) if selection.depth() == Depth::File => return Err(ErrorKind::IsDir),
            (false, true) => return Err(ErrorKind::NotDir),
            (false, _)
                if choice.dirs.contains(named)
                    && self.files.iter().any(|file| file.to == *root) =>
            {
                return Err(ErrorKind::NotDir);
            }
            _ => {}
        }
        // Bytes of a path before what is below the source; a source that is a file has its own name.
        let skip = match (root.as_bytes(), is_dir) {
            (b"", _) => 0,
            (path, true) => path.len() + 1,
            (path, false) => path.iter().rposition(|&byte| byte == b'/').map_or(0, |at| at + 1),
        };
        let below = |path: &[u8]| path.get(skip..).unwrap_or_default().to_vec();
        let mut missing: BTreeSet<&[u8]> = selection.listed().collect();
        let mut wants = |path: &[u8], is_dir: bool| {
            let path = below(path);
            missing.remove(path.as_slice());
            selection.of(&path, is_dir)
        };
        let mut trees = Vec::new();
        self.dirs.retain(|(path, _)| match wants(path.as_bytes(), true) {
            Wanted::Copied | Wanted::Above => true,
            Wanted::LeftOut => false,
            Wanted::Tree => {
                trees.push(LeftOut { path: path.as_bytes().to_vec(), why: Why::Tree });
                false
            }
        });
        let mut is_copied = |path: &[u8]| wants(path, false) == Wanted::Copied;
        self.links.retain(|(path, _)| is_copied(path.as_bytes()));
        self.files.retain(|file| is_copied(file.to.as_bytes()));
        // Nobody knows what it is.
        self.left_out.retain(|left| {
            let is_file = is_copied(&left.path);
            is_file || selection.of(&below(&left.path), true) == Wanted::Copied
        });
        let missing = missing
            .into_iter()
            .map(|path| LeftOut { path: path.to_vec(), why: Why::Server(ErrorKind::NotFound) });
        self.left_out.extend(trees.into_iter().chain(missing));
        Ok(if is_dir { Kind::Dir } else { Kind::File })
    }
}
