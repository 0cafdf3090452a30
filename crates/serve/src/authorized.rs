//! The keys of clients that may come in.

mod add;
mod line;

pub use add::{Added, NotAdded, add_key, check_line};

use anyhow::{Error, Result, anyhow};
use hikyaku_console::{At, ExitCode, Tone, causes, say, with_remedy};
use hikyaku_crypto::Fingerprint;
use hikyaku_forward::{AllowList, Pattern, Permits, Share};
use hikyaku_fs::{descriptor_number, trust_list};
use hikyaku_remote::Writes;
use hikyaku_store::StorePath;
use hikyaku_units::Rate;
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

/// The file with the keys. It is read again whenever it has changed, so that a key that is removed from it is refused from
/// then on, and its sessions end (`Sessions::review`).
#[derive(Debug)]
pub(crate) struct Authorized {
    path: PathBuf,
    state: Mutex<(Stamp, Keys)>,
}

/// What a change of the list is seen by.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stamp {
    /// There is nothing of this name.
    Nothing,
    /// A pipe or the null device, which is read once.
    Once,
    /// A file with this time and size.
    File(SystemTime, u64),
}

/// A list of keys: a line each, `OPTIONS ed25519:KEY COMMENT`.
#[derive(Debug, Default)]
struct Keys(BTreeMap<Fingerprint, Permit>);

/// What the holder of a key may do, beyond which nothing that a client asks for goes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Permit {
    /// `root=`: the directory that is all that this client sees, below that of the daemon.
    pub root: Option<StorePath>,
    /// `max-rate=`: what all sessions of this client send, and are sent, at most.
    pub max_rate: Option<Rate>,
    /// Whether the client may write, if the daemon lets clients write; `ro` refuses it.
    pub writes: Writes,
    /// `forward=`: of the targets that the daemon allows, this client may reach these only; `no-forward`: none.
    pub forward: Option<Vec<Pattern>>,
    /// `max-sessions=`: how many sessions this client has at once. Without it a quarter of the daemon's, and at least two.
    pub max_sessions: Option<usize>,
    /// `max-flows=`: how many flows this client has at once, over all its connections.
    pub max_flows: Option<u32>,
    /// `listen=`: where the daemon listens for this client (`hikyaku proxy -R`). Nowhere, if there is none.
    pub listen: Vec<Pattern>,
}

impl Default for Permit {
    /// Everything that the daemon allows.
    fn default() -> Self {
        Self {
            root: None,
            max_rate: None,
            writes: Writes::Allowed,
            forward: None,
            max_sessions: None,
            max_flows: None,
            listen: Vec::new(),
        }
    }
}

impl Permit {
    /// What is forwarded of this client, where the daemon's list is this one: each list must allow a flow. `None` if
    /// nothing is. `share` makes the client's share of so many flows.
    pub(crate) fn flows(
        &self,
        of_daemon: &AllowList,
        share: impl FnOnce(u32) -> Share,
    ) -> Option<Permits> {
        let own = self.forward.iter().map(|own| own.iter().cloned().collect::<AllowList>());
        let targets: Vec<AllowList> = own.chain([of_daemon.clone()]).collect();
        let listens = self.listen.iter().cloned().collect();
        let is_any = targets.iter().all(|list| !list.is_empty());
        is_any.then(|| Permits { targets, listens, share: self.max_flows.map(share) })
    }
}

impl Authorized {
    /// Reads a list. A file that does not exist yet is an empty list, until it is made.
    ///
    /// # Errors
    ///
    /// The file cannot be read, is not trusted, or has a line with a mistake.
    pub(crate) fn read(path: &Path) -> Result<Self> {
        let stamp = Stamp::of(path);
        let keys = match Keys::read(path) {
            Err(error) if is_absent(&error) => Keys::default(),
            read => read?,
        };
        Ok(Self { path: path.to_owned(), state: Mutex::new((stamp, keys)) })
    }

    /// Whether no client can connect because of the state of a file that may still be filled. The null device stays empty on
    /// purpose.
    pub(crate) fn waits_for_keys(&self) -> bool {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.1.0.is_empty() && state.0 != Stamp::Once
    }

    /// What the holder of this key may do; `None` for one that may not come in. If the file was changed and cannot be read any more, the last list
    /// holds, and standard error tells why.
    pub(crate) fn find(&self, key: &Fingerprint) -> Option<Permit> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Stamp::of(&self.path);
        if now != state.0 {
            // Nobody waits here for the writer of a pipe that has come in place of the file.
            let read = match now {
                Stamp::Once => Err(anyhow!("{} is no file any more", self.path.display())),
                Stamp::Nothing | Stamp::File(..) => Keys::read(&self.path),
            };
            match read {
                Ok(keys) => state.1 = keys,
                Err(error) => say(
                    Tone::Warning,
                    format_args!("{}; the last list of keys holds", causes(&error)),
                ),
            }
            state.0 = now;
        }
        state.1.0.get(key).cloned()
    }
}

impl Stamp {
    fn of(path: &Path) -> Self {
        match fs::metadata(path) {
            Ok(meta) if !meta.is_file() => Self::Once,
            Ok(meta) => Self::File(meta.modified().unwrap_or(SystemTime::UNIX_EPOCH), meta.len()),
            Err(_) => Self::Nothing,
        }
    }
}

impl Keys {
    fn read(path: &Path) -> Result<Self> {
        let mut file = fs::File::open(path).at(path.display())?;
        // Whoever may write to the list lets in whom they want. sshd(8) refuses such a list too.
        if let Err(reason) = trust_list(&file)
            && !is_handed_over(path, &file)
        {
            let text = format!("the list of keys {} is not used: {reason}", path.display());
            return Err(with_remedy(ExitCode::WillFail.error(text), reason.remedy(path)));
        }
        let mut text = String::new();
        file.read_to_string(&mut text).at(path.display())?;
        Self::parse(&text).map_err(|(line, error)| {
            ExitCode::WillFail.error(format!("{}:{line}: {error}", path.display()))
        })
    }

    // fuzz: none, the administrator's own file
    fn parse(text: &str) -> Result<Self, (usize, String)> {
        let mut keys = BTreeMap::new();
        for (number, line) in (1..).zip(text.lines()) {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let (key, permit) = line::parse(line).map_err(|error| (number, error))?;
            if keys.insert(key, permit).is_some() {
                return Err((number, "this key is on an earlier line too".to_owned()));
            }
        }
        Ok(Self(keys))
    }
}

fn is_absent(error: &Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == ErrorKind::NotFound)
}

/// Whether a list comes through a pipe that this process was begun with (`/dev/stdin`, `<(COMMAND)`): whoever began it chose
/// what is at the other end, as they chose its options.
fn is_handed_over(path: &Path, file: &fs::File) -> bool {
    let is_pipe = || file.metadata().is_ok_and(|meta| meta.file_type().is_fifo());
    descriptor_number(path).is_some() && is_pipe()
}

#[cfg(test)]
mod tests;
