//! A copy command by value: its ends, its rules, its transport and its output. The arguments of `hikyaku cp` are turned into
//! a plan once; `hikyaku sync` makes its plans itself.

use crate::memory;
use anyhow::Result;
use clap::ValueEnum;
use hikyaku_console::{Audience, Given, Scope, Settings, misuse};
use hikyaku_job::Allowed;
use hikyaku_mover::{Expected, Parameters, Same, Times};
use hikyaku_pair::{Options, SERVICE};
use hikyaku_reach::dial::Via;
use hikyaku_reach::launch::Launcher;
use hikyaku_reach::settings::RETRY_FOR;
use hikyaku_reach::{Carriers, Way, WayPlan};
use hikyaku_stores::{CookiesArgs, HostBy, Location};
use hikyaku_transfer::{OtherSources, Pass};
use hikyaku_units::{DataSize, RetryPolicy};
use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// One copy command.
#[derive(Clone, Debug)]
pub struct CopyPlan {
    /// The sources, in the order of the command.
    pub sources: Vec<Location>,
    /// The target.
    pub target: Location,
    /// The rules of the copy, and the choice of files.
    pub options: Options,
    /// Whether names that the far side sends are compared with the requested ones.
    pub far_names: FarNames,
    /// The rules of a copy with a storage beside those of all copies.
    pub stored: StoredRules,
    /// How data go.
    pub transport: Transport,
    /// The output, and the log.
    pub report: Report,
    /// Whether hosts behind ssh are storages also if no other end is one.
    pub hosts: SshHosts,
    /// A condition for each file before it gets its name. The hosts have to be storages.
    pub condition: Option<Condition>,
    /// The options that were typed; none where no user has typed any.
    pub(crate) given: Given,
}

/// The role of hosts behind ssh in a copy.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum SshHosts {
    /// Programs of ours, which send and receive, unless another end is a storage.
    #[default]
    Programs,
    /// Storages, which this program reads and writes.
    Storages,
}

/// A condition for files.
#[derive(Clone)]
pub struct Condition(pub Arc<dyn Expected + Send + Sync>);

impl fmt::Debug for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Condition")
    }
}

/// Rules of a copy with a storage. By default files of equal size and time count as copied, and files keep their times.
#[derive(Clone, Copy, Debug)]
pub struct StoredRules {
    /// When a file of the same name counts as copied already.
    pub same: Same,
    /// Which modification times files get.
    pub times: Times,
}

impl Default for StoredRules {
    fn default() -> Self {
        Self { same: Same::SizeAndTime, times: Times::Kept }
    }
}

/// Names that a far side sends.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum FarNames {
    /// Each must be one that was asked for.
    #[default]
    Checked,
    /// Any name is taken (`-T`).
    Trusted,
}

/// How data go.
#[derive(Clone, Debug, Default)]
pub struct Transport {
    /// How far sides are reached.
    pub way: WayPlan,
    /// The carrier of the copy.
    pub by: By,
    /// When a connection is lost, how long another one is tried; `None` is that of the settings.
    pub(crate) retry_for: Option<Duration>,
    /// How servers are started for this copy, if they are not daemons.
    pub(crate) start: Option<StartServers>,
    /// How data go between this machine and daemons.
    pub(crate) daemons: Parameters,
    /// The port of daemons on the nodes of Gfarm, if these are to send the files.
    pub(crate) gfarm_daemons: Option<u16>,
    /// The server of a bucket, if it is not Amazon's.
    pub endpoint: Option<String>,
    /// The file of cookies for web servers. It is read once a copy.
    pub cookies: CookiesArgs,
}

/// Servers that are started through ssh.
#[derive(Clone, Debug)]
pub(crate) struct StartServers {
    /// The host through which all others are logged in to.
    pub(crate) primary: Option<String>,
}

/// The carrier of a copy.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, ValueEnum)]
pub enum By {
    /// UDP; where it does not get through, TCP, else ssh; where the far side has no hikyaku, SFTP
    #[default]
    Auto,
    /// UDP only
    Udp,
    /// TCP only, by several connections (--connections)
    Tcp,
    /// The connection of ssh
    Ssh,
    /// As auto, but never SFTP
    Native,
    /// SFTP
    Sftp,
}

impl By {
    /// The only carriers of a session with hikyaku on a host; `None` leaves the choice to the settings.
    pub const fn carriers(self) -> Option<Carriers> {
        match self {
            Self::Udp => Some(Carriers::Udp),
            Self::Tcp => Some(Carriers::Tcp),
            Self::Ssh => Some(Carriers::Ssh),
            Self::Auto | Self::Native | Self::Sftp => None,
        }
    }

    /// What may carry a connection to a daemon; `udp` is whether the user allows UDP.
    ///
    /// # Errors
    ///
    /// The user wants a carrier that leads to no daemon.
    pub fn of_daemon(self, udp: Option<bool>) -> Result<Via> {
        Ok(match self {
            Self::Ssh | Self::Sftp => {
                let text = "a daemon is reached by UDP or TCP, not through ssh";
                return Err(misuse(text, "--via auto, udp or tcp"));
            }
            Self::Tcp => Via::Tcp,
            Self::Udp => Via::Udp,
            Self::Auto | Self::Native if udp == Some(false) => Via::Tcp,
            Self::Auto | Self::Native => Via::Auto,
        })
    }

    /// The carrier of a session with a host behind ssh that is opened as a storage.
    pub const fn of_host(self) -> HostBy {
        match self {
            Self::Auto => HostBy::Auto,
            Self::Udp | Self::Tcp | Self::Ssh | Self::Native => HostBy::Native,
            Self::Sftp => HostBy::Sftp,
        }
    }
}

/// The output, and the log.
#[derive(Clone, Debug)]
pub struct Report {
    /// The reader of the progress.
    pub audience: Audience,
    /// How often a line of figures is printed.
    pub(crate) stats_every: Option<Duration>,
    /// The directory of a log for `hikyaku report`.
    pub(crate) log_dir: Option<PathBuf>,
    /// The file of a list of hashes.
    pub(crate) manifest: Option<PathBuf>,
    /// The sources and the target as they were typed, for the title of the log.
    pub(crate) typed: Vec<OsString>,
}

impl CopyPlan {
    /// A copy with the usual rules.
    pub fn new(sources: Vec<Location>, target: Location) -> Self {
        let report = Report {
            audience: Audience::Person,
            stats_every: None,
            log_dir: None,
            manifest: None,
            typed: Vec::new(),
        };
        let other_sources = match sources.len() {
            0 | 1 => OtherSources::None,
            _ => OtherSources::Some,
        };
        let (options, far_names) =
            (Options { other_sources, ..Options::default() }, FarNames::default());
        let (transport, given) = (Transport::default(), Given::default());
        let (stored, hosts, condition) = (StoredRules::default(), SshHosts::default(), None);
        Self {
            sources,
            target,
            options,
            far_names,
            stored,
            transport,
            report,
            hosts,
            condition,
            given,
        }
    }

    /// How the far side at `host` is reached: as the plan says, or as the user has set.
    pub(crate) fn way(&self, host: &str, settings: &Settings) -> Result<Way> {
        let memory = DataSize::from_bytes(memory::available());
        let plan = &self.transport.way;
        let mut way = plan.way((host, settings), (SERVICE, memory), Scope::default())?;
        way.offer.otherwise = "go by SFTP, which is slower";
        Ok(way)
    }

    /// How the servers of the copy are started, if the user wants that.
    pub(crate) fn launcher(&self, scope: &Scope) -> Option<Launcher> {
        let way = &self.transport.way;
        self.transport.start.clone().map(|StartServers { primary }| Launcher {
            ssh: way.ssh.clone(),
            remote_path: way.typed.remote_path.clone(),
            primary,
            scope: scope.clone(),
        })
    }

    /// When a copy whose connection to `host` is lost is tried again, and for how long.
    pub(crate) fn retries(&self, host: &str, settings: &Settings) -> Result<RetryPolicy> {
        let time = settings.resolve(self.transport.retry_for, &RETRY_FOR, host)?;
        Ok(time.map_or(RetryPolicy::COPY, |time| RetryPolicy::COPY.within(time)))
    }

    /// The names that may arrive for these sources.
    pub(crate) fn allowed(&self, sources: &[Vec<u8>]) -> Allowed {
        let depth = self.options.rules.depth;
        match (self.far_names, self.options.files.as_slice()) {
            (FarNames::Trusted, _) => Allowed::anything(),
            (FarNames::Checked, []) => Allowed::of(sources, depth),
            (FarNames::Checked, files) => Allowed::listed(files, depth),
        }
    }

    /// Whether it is only printed what would be copied.
    pub(crate) fn is_rehearsal(&self) -> bool {
        self.options.rules.pass == Pass::DryRun
    }

    /// This plan, with an ssh login of its own at each host.
    pub(crate) fn alone(&self) -> Self {
        let mut plan = self.clone();
        plan.transport.way.ssh = plan.transport.way.ssh.alone();
        plan
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::CopyArgs;
    use clap::Parser;
    use hikyaku_fs::Kind;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        args: CopyArgs,
    }

    fn plan(words: &[&str]) -> CopyPlan {
        let words = ["cp"].into_iter().chain(words.iter().copied());
        Command::try_parse_from(words).unwrap().args.plan(&Settings::default()).unwrap()
    }

    #[test]
    fn a_list_limits_the_names_that_the_far_side_may_send() {
        let list = std::env::temp_dir().join(format!("hikyaku-plan-list-{}", std::process::id()));
        std::fs::write(&list, "a\nd/b\n").unwrap();
        let text = list.display().to_string();
        for (flags, below, other) in
            [(&[][..], false, false), (&["-r"], true, false), (&["-r", "-T"], true, true)]
        {
            let plan = plan(&[flags, &["--files-from", &text, "host:src", "."]].concat());
            let allowed = plan.allowed(&[b"src".to_vec()]);
            let admits = |path: &[u8], kind| allowed.admits(path, kind);
            assert!(admits(b"a", Kind::File) && admits(b"d", Kind::Dir), "{flags:?}");
            assert_eq!(admits(b"d/b/x", Kind::File), below, "{flags:?}");
            assert_eq!(admits(b"d/c", Kind::File), other, "{flags:?}");
            assert_eq!(admits(b".bashrc", Kind::File), other, "{flags:?}");
        }
        std::fs::remove_file(list).unwrap();
    }
}
