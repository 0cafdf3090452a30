//! What the subcommands need of a running lab of either kind: with a client and servers, or with
//! sites.

use crate::namespace::Namespace;
use crate::report::Report;
use crate::site::PairName;
use crate::sites::SitesReport;
use anyhow::{Result, anyhow};
use hikyaku_link::Setting;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::PathBuf;

/// A running lab. Dropping it removes it.
pub(crate) trait Running {
    /// The path of its control socket.
    fn socket(&self) -> PathBuf;
    /// Restarts the clock and the counters.
    fn restart(&self) -> Result<()>;
    /// The counters of the links.
    fn status(&self) -> Result<Status>;
    /// Changes links from now on.
    fn change(&self, changes: &[Change]) -> Result<()>;
    /// The namespace in which `lab run` runs its command.
    fn first(&self) -> &Namespace;
    /// The namespaces in which `lab run` runs the server command.
    fn servers(&self) -> Vec<&Namespace>;
    /// Environment variables for programs in the lab.
    fn environment(&self) -> Vec<(String, String)>;
}

/// A change of all links, or of the link between two sites.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Change {
    pub(crate) pair: Option<PairName>,
    pub(crate) key: String,
    pub(crate) value: String,
}

impl Change {
    /// The change, parsed as a setting of a link.
    pub(crate) fn setting(&self) -> Result<Setting> {
        Setting::parse(&self.key, &self.value).map_err(|error| anyhow!("--{}: {error}", self.key))
    }
}

/// The counters of the links of a lab.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum Status {
    Ends(Box<Report>),
    Sites(Box<SitesReport>),
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ends(report) => report.fmt(f),
            Self::Sites(report) => report.fmt(f),
        }
    }
}
