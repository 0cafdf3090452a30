//! A Gfarm file system that is in use.

use crate::convert;
use crate::lane::Lane;
use crate::opens::Opens;
use crate::place::Writers;
use hikyaku_fs::{FsError, Token};
use hikyaku_gfarm::{
    Account, Address, CallError, Code, Config, ConfigError, ConnectError, Dial, Each, KeyError,
    Metadata, Place, is_local,
};
use hikyaku_store::{Begun, ErrorKind, Left, Note, left_over};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// A Gfarm file system. A session with gfmd that has ended is begun anew when it is needed.
#[derive(Debug)]
pub struct Gfarm {
    config: Config,
    account: Account,
    session: Mutex<Arc<Metadata>>,
    /// Whether gfmd was away since the last [`Store::sync`](hikyaku_store::Store::sync).
    was_away: AtomicBool,
    /// Since when gfmd is away.
    away: Mutex<Option<Instant>>,
    /// Nodes whose replicas are read by their descriptors.
    pub(crate) here: Here,
    /// Connections to those nodes for later use.
    pub(crate) lanes: Mutex<Vec<Lane>>,
    /// Where files are being written.
    pub(crate) writers: Arc<Writers>,
    /// The small files that are open at gfmd.
    pub(crate) opens: Opens,
    /// Set to end all waits.
    stopped: AtomicBool,
    /// Where the drafts are noted.
    recorded: Option<PathBuf>,
    /// Begun with the first draft; `None` if the folder cannot be used.
    begun: OnceLock<Option<Arc<Begun>>>,
    /// The common part of the temporary names of files that are written.
    pub(crate) group: Token,
}

/// Nodes on this machine, whose replicas are read without gfsd.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Here {
    /// None: every file comes by Gfarm's protocol.
    #[default]
    Nothing,
    /// Each node whose gfsd has a socket on this machine.
    Any,
    /// The node of this name.
    Node(String),
}

impl Here {
    pub(crate) fn has(&self, node: &Address) -> bool {
        match self {
            Self::Nothing => false,
            Self::Any => is_local(node),
            Self::Node(name) => *name == node.host,
        }
    }
}

/// Why a Gfarm file system cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConnectGfarm {
    /// The settings of Gfarm.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The user's key.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The metadata server.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The random names of files that are written.
    #[error(transparent)]
    Random(#[from] FsError),
}

impl ConnectGfarm {
    /// The remedy, for the user.
    pub const fn remedy(&self) -> Option<&'static str> {
        match self {
            Self::Config(_) => Some(
                "set GFARM_CONFIG_FILE, or metadb_server_host and metadb_server_port in ~/.gfarm2rc",
            ),
            Self::Key(error) => Some(error.remedy()),
            Self::Connect(error) => error.remedy(),
            Self::Random(_) => None,
        }
    }

    /// Whether a later attempt may succeed without a change.
    pub const fn is_worth_retrying(&self) -> bool {
        matches!(self, Self::Connect(error) if error.is_worth_retrying())
    }
}

/// Why something cannot be done.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Trouble {
    /// gfmd or a node refuses it.
    #[error("{0}")]
    Refused(ErrorKind),
    /// A node cannot be reached, or its connection has ended. The caller names it.
    #[error("{0}")]
    Away(String),
    /// A failure of gfmd, without which no node can be used. Its text names the server.
    #[error("{0}")]
    MetadataAway(String),
}

impl Trouble {
    /// For a store.
    pub const fn kind(&self) -> ErrorKind {
        match self {
            Self::Refused(kind) => *kind,
            Self::Away(_) | Self::MetadataAway(_) => ErrorKind::Unreachable,
        }
    }
}

impl From<CallError> for Trouble {
    fn from(error: CallError) -> Self {
        match error {
            CallError::Refused(code) => code.into(),
            CallError::Short => Self::Refused(ErrorKind::Changed),
            CallError::MetadataLost { .. } => Self::MetadataAway(error.to_string()),
            error => Self::Away(error.to_string()),
        }
    }
}

impl From<Code> for Trouble {
    fn from(code: Code) -> Self {
        Self::Refused(convert::error(code))
    }
}

impl Trouble {
    /// A node that cannot be connected to.
    pub(crate) fn of_node(error: &ConnectError) -> Self {
        Self::Away(error.reason())
    }

    fn of_metadata(error: &ConnectError) -> Self {
        Self::MetadataAway(format!("the metadata server {error}"))
    }
}

impl Gfarm {
    /// Logs in at the metadata server that the user's settings name, or at `server`, which is dialled so.
    ///
    /// # Errors
    ///
    /// The settings or the key cannot be read, or the server cannot be reached or does not accept the user.
    pub fn connect(server: Option<Address>, dial: Dial) -> Result<Self, ConnectGfarm> {
        Self::with(Config { dial, ..Config::of_user(server)? })
    }

    /// Connects with other settings.
    ///
    /// # Errors
    ///
    /// As for [`Self::connect`].
    pub fn with(config: Config) -> Result<Self, ConnectGfarm> {
        let account = config.account()?;
        let session = Arc::new(Metadata::connect(&config.metadata, &account)?);
        let session = Mutex::new(session);
        let (here, lanes, writers) = (Here::Nothing, Mutex::default(), Arc::default());
        let (opens, stopped, group) = (Opens::default(), AtomicBool::new(false), Token::random()?);
        let (away, was_away) = (Mutex::default(), AtomicBool::new(false));
        let (recorded, begun) = (None, OnceLock::new());
        Ok(Self {
            recorded,
            begun,
            config,
            account,
            session,
            away,
            was_away,
            here,
            lanes,
            writers,
            opens,
            stopped,
            group,
        })
    }

    /// Reads replicas of these nodes by their descriptors. Default: of none.
    #[must_use]
    pub fn reading_here(self, here: Here) -> Self {
        Self { here, ..self }
    }

    /// The store, with records for writing. It records its drafts in `folder`, and removes the drafts of killed processes of
    /// this user at this metadata server. Without a folder, or with one that cannot be used, nothing is recorded.
    #[must_use]
    pub fn recorded(self, folder: Option<PathBuf>) -> Self {
        let place = self.place();
        if let Some(folder) = &folder {
            left_over(folder, |other| other == place, |_, path| self.remove_left(path));
        }
        Self { recorded: folder, ..self }
    }

    /// The name of the file system in records.
    fn place(&self) -> Vec<u8> {
        format!("gfarm://{}", self.server()).into_bytes()
    }

    /// Notes a draft.
    pub(crate) fn note(&self, path: &[u8]) -> Option<Note> {
        let folder = self.recorded.as_ref()?;
        let begun = self.begun.get_or_init(|| Begun::new(folder, &self.place()).ok());
        begun.as_ref()?.note(path)
    }

    /// Removes a draft of a killed process. It has to have the name of one.
    fn remove_left(&self, path: &[u8]) -> Left {
        let (dir, name) = match path.iter().rposition(|&byte| byte == b'/') {
            Some(slash) => (&path[..slash], &path[slash + 1..]),
            None => (&b""[..], path),
        };
        if !Token::is_in(name) {
            return Left::Removed;
        }
        match self.ask(|session| session.remove(Place { dir, name })) {
            Ok((_, Ok(()) | Err(Code::NOT_FOUND))) => Left::Removed,
            Ok((_, Err(_))) | Err(_) => Left::Stays,
        }
    }

    /// The metadata server.
    pub fn server(&self) -> Address {
        self.session().server().clone()
    }

    pub(crate) const fn account(&self) -> &Account {
        &self.account
    }

    pub(crate) fn session(&self) -> Arc<Metadata> {
        self.held().clone()
    }

    fn held(&self) -> MutexGuard<'_, Arc<Metadata>> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks gfmd. If the session has ended, a new one is begun, and the question is asked once more: it must be one that
    /// does not need the old session.
    pub(crate) fn ask<T>(
        &self,
        question: impl Fn(&Metadata) -> Result<T, CallError>,
    ) -> Result<(Arc<Metadata>, T), Trouble> {
        let session = self.session();
        match question(&session) {
            Err(CallError::MetadataLost { .. }) => {}
            answer => return Ok((session, answer?)),
        }
        let session = self.again(&session)?;
        let answer = question(&session)?;
        Ok((session, answer))
    }

    /// A session that is not `ended`. A gfmd that is not there is waited for: it may be started again, and then all goes on.
    fn again(&self, ended: &Arc<Metadata>) -> Result<Arc<Metadata>, Trouble> {
        // Those who need a session at the same time wait for this one.
        let mut session = self.held();
        if !Arc::ptr_eq(&session, ended) {
            return Ok(session.clone());
        }
        let mut away = self.away.lock().unwrap_or_else(PoisonError::into_inner);
        let since = *away.get_or_insert_with(Instant::now);
        loop {
            match Metadata::connect(&self.config.metadata, &self.account) {
                Ok(new) => {
                    (*session, *away) = (Arc::new(new), None);
                    self.was_away.store(true, Ordering::Relaxed);
                    return Ok(session.clone());
                }
                Err(error) => {
                    // Later callers do not wait for the whole time again.
                    let is_over = since.elapsed() >= METADATA_TIME || self.is_stopped();
                    if is_over || !error.is_worth_retrying() {
                        return Err(Trouble::of_metadata(&error));
                    }
                }
            }
            thread::sleep(METADATA_EVERY);
        }
    }

    /// Whether gfmd was away since the last call. One that was killed may have lost changes that it had acknowledged: it
    /// writes them to its database later, unless it has a journal.
    pub(crate) fn was_away(&self) -> bool {
        self.was_away.swap(false, Ordering::Relaxed)
    }

    /// Ends all waits for gfmd.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }
}

/// A gfmd that was there is waited for so long, as long as copies wait for daemons that are all gone.
const METADATA_TIME: Duration = Duration::from_secs(20);
/// It is tried this often.
const METADATA_EVERY: Duration = Duration::from_millis(250);

/// The answer to a question about one thing.
pub(crate) fn one<T>(answers: Each<T>) -> Result<T, Trouble> {
    let answer = answers.into_iter().next();
    Ok(answer.ok_or_else(|| Trouble::Away("gfmd gives no answer".to_owned()))??)
}
