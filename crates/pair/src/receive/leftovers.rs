//! Unfinished files that no copy continues. They are removed before other files are written beside them.

use super::{Attempt, Receiver};
use hikyaku_fs::{Dir, Draft, Kind, Meta, Name, Token};
use hikyaku_job::live_tokens;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Names that are looked at in a directory that this copy sees for the first time. (One that it has
/// written into before is looked at as a whole.)
const MOST_NAMES: usize = 10_000;
/// Age from which on an unfinished file without a journal is removed. A younger one may belong to another machine that shares
/// the directory and cannot lock the file.
const STRANGER: Duration = Duration::from_secs(24 * 3600);

impl Receiver<'_> {
    /// Removes unfinished files of earlier attempts that no copy continues. A directory that cannot be listed keeps them.
    pub(super) fn sweep(&mut self, dir: &Arc<Dir>) {
        let Ok(meta) = Meta::of(dir) else { return };
        // Once: later there are those in it that are being written.
        if self.landing.is_stream() || !self.swept.insert(meta.identity) {
            return;
        }
        let most = match self.attempt {
            Attempt::First | Attempt::Beside => MOST_NAMES,
            Attempt::Later => usize::MAX,
        };
        // A disk may fail once.
        let listed = dir.first_entries(most).or_else(|_| dir.first_entries(most));
        let Ok(entries) = listed else {
            self.unswept += 1;
            return;
        };
        for entry in entries {
            if let Some(token) = Token::of(&entry.name)
                && self.is_nobodys(dir, &entry.name, token)
            {
                let _ = dir.remove_file(&entry.name);
            }
        }
    }

    fn is_nobodys(&self, dir: &Arc<Dir>, name: &Name, token: Token) -> bool {
        let Ok(Some(meta)) = dir.meta(name) else { return false };
        if meta.kind == Kind::Dir || meta.owner.user != rustix::process::geteuid().as_raw() {
            return false;
        }
        if token == self.disk.token {
            // Of an earlier attempt at this copy, unless this one will take it up or has made it.
            return !self.partials.contains(name.as_bytes()) && !is_held(dir, name);
        }
        let age = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let age = age.as_secs().saturating_sub(u64::try_from(meta.modified.0).unwrap_or(0));
        age > STRANGER.as_secs() && !live_tokens().contains(&token) && !is_held(dir, name)
    }
}

/// Whether a process has it open for writing.
fn is_held(dir: &Arc<Dir>, name: &Name) -> bool {
    match Draft::in_place(dir.clone(), name) {
        // It is a draft of its own name, which nothing becomes of when it is dropped.
        Ok(_) => false,
        Err(error) => matches!(error, hikyaku_fs::FsError::Busy { .. }),
    }
}
