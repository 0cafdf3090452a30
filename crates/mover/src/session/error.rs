//! What goes wrong with a session.

use crate::fetch::Fetched;
use crate::kind::Kind;
use crate::losses::Loss;
use crate::plan::Plan;
use hikyaku_crypto::Untrusted;
use hikyaku_reach::dial::{Address, DialError};
use hikyaku_session::SetupError;
use hikyaku_transfer::FileHash;
use std::collections::{BTreeMap, BTreeSet};
use std::io;

/// Why a session does not begin, or a call of it transfers nothing.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// This machine cannot connect to any server.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// No server can be used: the reason of each.
    #[error("{}", told(.0))]
    NoServer(Vec<HostError>),
    /// The call cannot be carried out.
    #[error("{text}")]
    Refused {
        /// Why, for programs.
        kind: Kind,
        /// Why, for people.
        text: String,
    },
    /// The machine has no room for another thread.
    #[error("cannot start a thread")]
    Thread(#[from] io::Error),
}

/// Why a server takes no part.
#[derive(Debug, thiserror::Error)]
#[error("{address}: {source}")]
pub struct HostError {
    /// The server.
    pub address: Address,
    /// Why.
    pub source: DialError,
}

/// A file, or a name, that could not be transferred.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Failed {
    /// Its path, at the source.
    pub path: Vec<u8>,
    /// Why, for programs.
    pub kind: Kind,
    /// Why, for people.
    pub text: String,
}

/// What came of a download or an upload.
#[derive(Debug, Default)]
pub struct Done {
    /// Files that were transferred and have their names.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Files that were not transferred, since the target has them.
    pub kept: u64,
    /// The hashes of files by their paths at the target, if they are wanted.
    pub hashes: BTreeMap<Vec<u8>, FileHash>,
    /// Paths at the target that a rehearsal would write.
    pub would: Vec<Vec<u8>>,
    /// What could not be transferred.
    pub failed: Vec<Failed>,
    /// Properties of the sources that the target does not keep.
    pub losses: BTreeSet<Loss>,
    /// Servers whose connection was lost, each once, and the first reason. Others did their work, where they could.
    pub lost: Vec<(Address, String)>,
}

impl SessionError {
    pub(crate) fn refused(kind: impl Into<Kind>, text: impl Into<String>) -> Self {
        Self::Refused { kind: kind.into(), text: text.into() }
    }

    /// The kind of failure.
    pub fn kind(&self) -> Option<Kind> {
        match self {
            Self::NoServer(hosts) => hosts.first().map(HostError::kind),
            Self::Refused { kind, .. } => Some(*kind),
            Self::Setup(_) | Self::Thread(_) => None,
        }
    }

    /// What to do about it, if that is known.
    /// It begins with `try: `.
    pub fn remedy(&self) -> Option<String> {
        let of_kind = || self.kind().and_then(Kind::remedy).map(|remedy| format!("try: {remedy}"));
        match self {
            Self::Setup(error) => error.remedy(),
            Self::NoServer(hosts) => {
                let refusal = hosts.first().and_then(|host| host.source.refusal());
                refusal.map(Untrusted::remedy).or_else(of_kind)
            }
            _ => of_kind(),
        }
    }
}

impl Failed {
    pub(crate) fn new(path: &[u8], kind: impl Into<Kind>, text: impl ToString) -> Self {
        Self { path: path.to_vec(), kind: kind.into(), text: text.to_string() }
    }
}

impl Done {
    /// Adds what came of a download of these files.
    pub fn add_fetched(&mut self, plan: &Plan, fetched: Fetched) {
        let Fetched { files, bytes, kept, hashes, would, failed, losses, lost: _, lost_targets } =
            fetched;
        self.losses.extend(losses);
        self.lost.extend(lost_targets);
        let hashes = hashes.into_iter().map(|(path, hash)| (plan.listed(&path), hash));
        self.hashes.extend(hashes);
        self.add_would(plan, &would);
        self.files += files;
        self.bytes += bytes;
        self.kept += kept;
        let left_out = plan.left_out.iter();
        self.failed.extend(left_out.map(|left| Failed::new(&left.path, left.why, left.why)));
        self.failed.extend(failed.iter().map(|(path, error)| Failed::new(path, error, error)));
    }

    /// Adds what a rehearsal would write, in the order of the names.
    fn add_would(&mut self, plan: &Plan, would: &[Vec<u8>]) {
        let mut listed: Vec<_> = would.iter().map(|path| plan.listed(path)).collect();
        listed.sort_unstable();
        self.would.extend(listed);
    }
}

impl HostError {
    /// The kind of failure.
    pub fn kind(&self) -> Kind {
        Kind::from(&self.source)
    }
}

fn told(hosts: &[HostError]) -> String {
    let lines: Vec<_> = hosts.iter().map(HostError::to_string).collect();
    if lines.is_empty() { "no server was named".to_owned() } else { lines.join("; ") }
}
