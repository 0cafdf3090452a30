//! A Gfarm file system that is in use.

use crate::convert;
use crate::lane::Lane;
use crate::place::Writers;
use hikyaku_fs::{FsError, Token};
use hikyaku_gfarm::{
    Account, Address, CallError, Code, Config, ConfigError, ConnectError, Each, KeyError, Metadata,
    is_local,
};
use hikyaku_store::ErrorKind;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A Gfarm file system. A session with gfmd that has ended is begun anew when it is needed.
#[derive(Debug)]
pub struct Gfarm {
    config: Config,
    account: Account,
    session: Mutex<Arc<Metadata>>,
    /// Nodes whose replicas are read by their descriptors.
    pub(crate) here: Here,
    /// Connections to those nodes for later use.
    pub(crate) lanes: Mutex<Vec<Lane>>,
    /// Where files are being written.
    pub(crate) writers: Arc<Writers>,
    /// The common part of their temporary names.
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
    /// What the user can do about it.
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
    /// gfmd or a node cannot be reached, or its connection has ended.
    #[error("{0}")]
    Away(String),
}

impl Trouble {
    /// For a store.
    pub const fn kind(&self) -> ErrorKind {
        match self {
            Self::Refused(kind) => *kind,
            Self::Away(_) => ErrorKind::Unreachable,
        }
    }
}

impl From<CallError> for Trouble {
    fn from(error: CallError) -> Self {
        match error {
            CallError::Refused(code) => code.into(),
            CallError::Short => Self::Refused(ErrorKind::Changed),
            error => Self::Away(error.to_string()),
        }
    }
}

impl From<Code> for Trouble {
    fn from(code: Code) -> Self {
        Self::Refused(convert::error(code))
    }
}

impl From<ConnectError> for Trouble {
    fn from(error: ConnectError) -> Self {
        Self::Away(error.to_string())
    }
}

impl Gfarm {
    /// Logs in at the metadata server that the user's settings name, or at `server`.
    ///
    /// # Errors
    ///
    /// The settings or the key cannot be read, or the server cannot be reached or does not accept the user.
    pub fn connect(server: Option<Address>) -> Result<Self, ConnectGfarm> {
        Self::with(Config::of_user(server)?)
    }

    /// The same with other settings.
    ///
    /// # Errors
    ///
    /// As for [`Self::connect`].
    pub fn with(config: Config) -> Result<Self, ConnectGfarm> {
        let account = config.account()?;
        let session = Arc::new(Metadata::connect(&config.metadata, &account)?);
        let session = Mutex::new(session);
        let (here, lanes, writers) = (Here::Nothing, Mutex::default(), Arc::default());
        Ok(Self { config, account, session, here, lanes, writers, group: Token::random()? })
    }

    /// Reads replicas of these nodes by their descriptors. Default: of none.
    #[must_use]
    pub fn reading_here(self, here: Here) -> Self {
        Self { here, ..self }
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
            Err(CallError::Lost(_)) => {}
            answer => return Ok((session, answer?)),
        }
        let session = self.again(&session)?;
        let answer = question(&session)?;
        Ok((session, answer))
    }

    /// A session that is not `ended`.
    fn again(&self, ended: &Arc<Metadata>) -> Result<Arc<Metadata>, Trouble> {
        let mut session = self.held();
        if Arc::ptr_eq(&session, ended) {
            *session = Arc::new(Metadata::connect(&self.config.metadata, &self.account)?);
        }
        Ok(session.clone())
    }
}

/// The answer to a question about one thing.
pub(crate) fn one<T>(answers: Each<T>) -> Result<T, Trouble> {
    let answer = answers.into_iter().next();
    Ok(answer.ok_or_else(|| Trouble::Away("gfmd gives no answer".to_owned()))??)
}
