//! Files of a tree that are complete, recorded for a later attempt of the same command.
//!
//! A text file in the user's state folder beside the journals of single files. Each line is a hash of a source, its version,
//! and the file of this machine that was made of it: its identity and the time of its last change. So neither a source nor a
//! file that was changed since has a line. It is removed when the whole tree is complete.

use crate::download::version;
use crate::several::Down;
use anyhow::{Context, Result};
use hikyaku_console::Folder;
use hikyaku_fs::Meta;
use std::collections::HashSet;
use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

/// What an earlier attempt has completed, and where more is recorded.
#[derive(Debug)]
pub(crate) struct Finished {
    path: PathBuf,
    earlier: HashSet<String>,
    /// Opened when the first file is complete.
    file: Mutex<Option<File>>,
}

impl Finished {
    /// Of a tree that is copied from `source` to `target`.
    pub(crate) fn of(source: &str, target: &str) -> Result<Self> {
        let folder = Folder::State.of_user()?.join("guc");
        fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        let name = blake3::hash(format!("tree\0{source}\0{target}").as_bytes()).to_hex();
        let path = folder.join(&name[..32]);
        let text = match fs::read_to_string(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
            read => read.with_context(|| format!("cannot read {}", path.display()))?,
        };
        let earlier = text.lines().map(str::to_owned).collect();
        Ok(Self { path, earlier, file: Mutex::default() })
    }

    /// Whether an earlier attempt has completed this file, and neither it nor its source was changed since.
    pub(crate) fn has(&self, down: &Down) -> bool {
        let is_any = !self.earlier.is_empty();
        is_any && there(down).is_some_and(|meta| self.earlier.contains(&line(down, &meta)))
    }

    /// Records a file that has its name.
    ///
    /// # Errors
    /// The record cannot be written.
    pub(crate) fn record(&self, down: &Down) -> Result<()> {
        let Some(meta) = there(down) else { return Ok(()) };
        let text = format!("{}\n", line(down, &meta));
        let mut open = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let mut write = || {
            let mut file = match open.take() {
                Some(file) => file,
                None => OpenOptions::new().create(true).append(true).open(&self.path)?,
            };
            file.write_all(text.as_bytes())?;
            *open = Some(file);
            Ok::<(), std::io::Error>(())
        };
        write().with_context(|| format!("cannot write {}", self.path.display()))
    }

    /// The whole tree is complete.
    pub(crate) fn forget(&self) {
        // A record that stays does no harm: it is about these versions only.
        let _ = fs::remove_file(&self.path);
    }
}

fn there(down: &Down) -> Option<Meta> {
    let meta = down.spot.dir.meta(&down.spot.name).ok().flatten()?;
    (meta.kind == hikyaku_fs::Kind::File && Some(meta.size) == down.facts.size).then_some(meta)
}

fn line(down: &Down, meta: &Meta) -> String {
    let version = version(meta.size, &down.facts);
    let (identity, changed) = (meta.identity, meta.changed);
    let text = format!("{}\0{version}\0{}\0{identity:?} {changed:?}", down.names.0, down.names.1);
    blake3::hash(text.as_bytes()).to_hex()[..32].to_owned()
}
