//! A session's connection: to hikyaku at the far side, to ssh's subsystem, or to a server that runs on this machine.

use crate::args::SftpArgs;
use crate::line::{unescaped, words};
use crate::opening::{By, Opening};
use crate::table::TABLE;
use crate::target::Target;
use crate::transfer::Carrier;
use anyhow::{Context, Error, Result};
use hikyaku_console::{Scope, Way, headline};
use hikyaku_reach::{Commands, settings};
use hikyaku_sftp::Client;
use hikyaku_stores::{Host, HostBy, HostPlan, Native};
use hikyaku_units::{DataSize, Rate};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

/// A session with an SFTP server. Dropping it ends the session.
pub struct Link {
    pub(crate) client: Client,
    pub(crate) carrier: Carrier,
    /// What of the options of the command line has no effect on it, for the user.
    pub(crate) notes: Vec<String>,
    /// The most that all transfers together move in a second, if this end keeps the limit.
    pub(crate) limit: Option<Rate>,
    way: Way,
    host: Host,
}

impl Link {
    /// The client of the server.
    pub const fn client(&self) -> &Client {
        &self.client
    }

    /// The client, if the server is the only way to the machine, as hikyaku cannot be started there, and whether commands
    /// can.
    pub fn only_way(&self) -> Option<(&Client, Commands)> {
        match self.host.native() {
            Native::NotStarted(Some(commands)) => Some((&self.client, commands)),
            Native::NotStarted(None) | Native::Used | Native::NoServer | Native::Unwanted => None,
        }
    }

    /// What would make it faster, for the user.
    pub fn advice(&self) -> Option<&str> {
        self.host.advice()
    }

    /// The way that files go which another command copies beside the session: by SFTP only if the far side has no
    /// hikyaku that can be started.
    pub const fn way(&self) -> Way {
        self.way
    }

    /// Whether both ends are programs of ours that have a feature.
    pub fn has(&self, feature: &str) -> bool {
        self.host.agreed().is_some_and(|agreed| agreed.has(feature))
    }

    /// Connects as the arguments say.
    pub(crate) fn open(args: &SftpArgs, memory: DataSize, scope: &Scope) -> Result<Self> {
        let notes = TABLE.check(&args.given, &[args.asked()])?;
        let mut link = match &args.session.direct {
            Some(command) => Self::direct(command, args.transfers.limit(), scope)?,
            None => {
                let destination = args.destination.as_deref().unwrap_or_default();
                let target = Target::of_user(destination.as_bytes())?;
                Self::connect(&args.opening(target.login), memory, scope)?
            }
        };
        link.notes.extend(notes);
        Ok(link)
    }

    /// The server that a command on this machine starts.
    fn direct(command: &OsStr, limit: Option<Rate>, scope: &Scope) -> Result<Self> {
        let words = words(command.as_bytes()).ok().filter(|words| !words.is_empty());
        let words = words.context("-D: not a command")?;
        let words = words.iter().map(|word| OsString::from_vec(unescaped(word)));
        let host = Host::of_command(&words.collect::<Vec<_>>(), scope)?;
        Ok(Self { limit, ..Self::new(host, (Carrier::Wide, Way::Direct)) })
    }

    /// Opens a session. `memory` is what this process may take; `scope` ends ssh while it logs in.
    ///
    /// # Errors
    ///
    /// The machine cannot be reached, or has no SFTP server.
    pub fn connect(opening: &Opening, memory: DataSize, scope: &Scope) -> Result<Self> {
        let (settings, name) = (settings::of_user()?, &opening.login.host);
        let plan = &opening.way;
        let mut way = plan.way((name, &settings), (crate::SERVICE, memory), scope.clone())?;
        way.offer.otherwise = "go through ssh, which is slower";
        let mut notes = Vec::new();
        let fallback = |_: &Error| {
            notes = TABLE.check(&opening.given, &[Way::Sftp]).map_err(|refused| {
                // The remedy stays where the user looks for it.
                let text = headline(&refused);
                refused.context(format!("{name} has no hikyaku that can be started, and {text}"))
            })?;
            Ok(())
        };
        let by = match opening.by {
            By::Auto => HostBy::Auto,
            By::Native => HostBy::Native,
            By::Sftp => HostBy::Sftp,
        };
        let subsystem = opening.subsystem.as_deref();
        let plan = HostPlan { login: &opening.login, way: &way, by, subsystem };
        let host = Host::connect(plan, fallback)?;
        let rate = way.tuning.rate.map(Rate::from_bits_per_sec);
        let (carried, limit) = match host.native() {
            // A far hikyaku keeps it together with this end. Two limits in a row would let less pass than either.
            Native::Used => ((Carrier::Wide, Way::Ssh), None),
            Native::NoServer => ((Carrier::Ssh, Way::Ssh), rate),
            Native::NotStarted(_) | Native::Unwanted => ((Carrier::Ssh, Way::Sftp), rate),
        };
        Ok(Self { notes, limit, ..Self::new(host, carried) })
    }

    fn new(host: Host, (carrier, way): (Carrier, Way)) -> Self {
        let client = host.client().clone();
        Self { client, carrier, notes: Vec::new(), limit: None, way, host }
    }
}
