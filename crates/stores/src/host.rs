//! A host behind ssh as a server of SFTP. Where the host has hikyaku, its program starts the host's `sftp-server`, and the
//! bytes travel over the transport; elsewhere they travel through ssh's subsystem.

use anyhow::{Context, Error, Result};
use hikyaku_console::{Scope, with_remedy};
use hikyaku_net::blocking::block_on;
use hikyaku_reach::{
    Agreed, Commands, Destination, FarSide, Loss, NO_CONNECTION, PathMemory, ReachError, Reached,
    Readers, Service, SshFailed, SshOptions, StreamReader, StreamWriter, Way, ended,
};
use hikyaku_sftp::Client;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::process::{Child, Command, ExitStatus, Stdio};

/// The service of a far side that starts the SFTP server of its host.
pub const SFTP: Service = Service {
    name: "sftp",
    streams_max: 1,
    readers: Readers::One,
    path_memory: PathMemory::OfUser,
    loss: Loss::Ends,
};

/// Starts a program that Ctrl-C does not end: the session ends the command, and the program goes on.
const SHIELD: [&str; 4] = ["/bin/sh", "-c", "trap '' INT; exec \"$@\"", "sh"];

/// An SFTP server of a host, and its client. Dropping it ends the session.
pub struct Host {
    client: Client,
    advice: Option<String>,
    native: Native,
    end: HostEnd,
}

/// The part that hikyaku on the host has in a session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Native {
    /// It carries the session.
    Used,
    /// It runs on the host, and finds no SFTP server to start.
    NoServer,
    /// It cannot be started. Whether the host runs commands, if that is known.
    NotStarted(Option<Commands>),
    /// It was not asked for.
    Unwanted,
}

/// The program that starts the server.
enum HostEnd {
    /// Another program of ours.
    Far { _side: FarSide, agreed: Agreed },
    /// A process of this machine: ssh, or the server itself.
    Child(Child),
}

/// The carrier of a session with a host.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum HostBy {
    /// hikyaku on the host; where it cannot be started, ssh's subsystem.
    #[default]
    Auto,
    /// hikyaku on the host.
    Native,
    /// The subsystem `sftp` of ssh.
    Sftp,
}

/// The way to a host.
#[derive(Clone, Copy)]
pub struct HostPlan<'a> {
    /// The host.
    pub login: &'a Destination,
    /// How hikyaku is started on it, and its options of ssh. Its service is [`SFTP`].
    pub way: &'a Way,
    /// The carrier.
    pub by: HostBy,
    /// Another subsystem than `sftp`, or the path of an SFTP server on the host.
    pub subsystem: Option<&'a OsStr>,
}

impl Host {
    /// Opens a session. `fallback` is called with the error of hikyaku before ssh's subsystem is used in its place; if it
    /// fails, no subsystem is used.
    ///
    /// # Errors
    ///
    /// The host cannot be reached, has no SFTP server, or `fallback` fails.
    pub fn connect(
        plan: HostPlan<'_>,
        fallback: impl FnOnce(&Error) -> Result<()>,
    ) -> Result<Self> {
        if plan.by == HostBy::Sftp {
            return Self::through_ssh(plan);
        }
        match Self::open_native(plan) {
            Err(error) if plan.by == HostBy::Auto && is_the_way_out(&error) => {
                Self::in_its_place(plan, &error, fallback)
            }
            opened => opened,
        }
    }

    /// Uses ssh's subsystem in the place of hikyaku, which has failed with this error. `fallback` is called before.
    ///
    /// # Errors
    ///
    /// The host cannot be reached, has no SFTP server, or `fallback` fails.
    pub(crate) fn in_its_place(
        plan: HostPlan<'_>,
        error: &Error,
        fallback: impl FnOnce(&Error) -> Result<()>,
    ) -> Result<Self> {
        fallback(error)?;
        let native = match error.is::<NoServer>() {
            true => Native::NoServer,
            false => Native::NotStarted(commands(error)),
        };
        let mut host = Self::through_ssh(plan)?;
        (host.advice, host.native) = (Some(advice(&plan.login.host, error)), native);
        Ok(host)
    }

    fn open_native(HostPlan { login, way, .. }: HostPlan<'_>) -> Result<Self> {
        let reached = way.open(login).map_err(explained)?;
        let Reached { connection, agreed, advice, side, .. } = reached;
        let stream = block_on(connection.open_stream()).context("no stream")?;
        let (send, receive) = stream.split();
        let client = Client::start(StreamReader::new(receive), StreamWriter::new(send));
        let client = client.map_err(|error| {
            let why = connection.close_reason().map(|reason| reason.to_string());
            Error::new(error).context(NoServer(why.unwrap_or_default()))
        })?;
        let (native, end) = (Native::Used, HostEnd::Far { _side: side, agreed });
        Ok(Self { client, advice, native, end })
    }

    fn through_ssh(HostPlan { login, way, subsystem, .. }: HostPlan<'_>) -> Result<Self> {
        let ssh: &SshOptions = &way.ssh;
        let mut words = ssh.sftp(login);
        if let (Some(subsystem), Some(last)) = (subsystem, words.last_mut()) {
            subsystem.clone_into(last);
            if subsystem.as_bytes().contains(&b'/') {
                // A path is a command, and "-s" stands before "--", the host and it.
                words.remove(words.len() - 4);
            }
        }
        Self::start(&words, &way.scope).map_err(|(error, status)| {
            let host = login.host.clone();
            if status.and_then(|status| status.code()) == Some(NO_CONNECTION) {
                let remedy = format!("try: {}", ssh.by_hand(login));
                return Error::new(SshFailed::Ended { host }).context(remedy);
            }
            error.context(format!("{host} has no SFTP server"))
        })
    }

    /// The server that a command of this machine starts.
    ///
    /// # Errors
    ///
    /// The command cannot be started, or starts no SFTP server.
    pub fn of_command(words: &[OsString], scope: &Scope) -> Result<Self> {
        Self::start(words, scope).map_err(|(error, _)| error)
    }

    fn start(words: &[OsString], scope: &Scope) -> Result<Self, (Error, Option<ExitStatus>)> {
        let program = words.first().map(OsString::as_os_str).unwrap_or_default();
        let mut command = Command::new(SHIELD[0]);
        command.args(&SHIELD[1..]).args(words).stdin(Stdio::piped()).stdout(Stdio::piped());
        let spawned = scope.spawn(&mut command);
        let shown = program.to_string_lossy().into_owned();
        let (mut child, _starting) = spawned
            .with_context(|| format!("cannot start {shown}"))
            .map_err(|error| (error, None))?;
        let Some((input, output)) = child.stdin.take().zip(child.stdout.take()) else {
            return Err((Error::msg("the server has no pipes"), None));
        };
        match Client::start(output, input) {
            Ok(client) => {
                let (native, end) = (Native::Unwanted, HostEnd::Child(child));
                Ok(Self { client, advice: None, native, end })
            }
            Err(error) => Err((Error::new(error), ended(&mut child))),
        }
    }

    /// The client of the server.
    pub const fn client(&self) -> &Client {
        &self.client
    }

    /// A change that would make the session faster, for the user.
    pub fn advice(&self) -> Option<&str> {
        self.advice.as_deref()
    }

    /// The part that hikyaku on the host has in the session.
    pub const fn native(&self) -> Native {
        self.native
    }

    /// The common features of both ends, if both are programs of ours.
    pub const fn agreed(&self) -> Option<&Agreed> {
        match &self.end {
            HostEnd::Far { agreed, .. } => Some(agreed),
            HostEnd::Child(_) => None,
        }
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        self.client.hang_up();
        if let HostEnd::Child(child) = &mut self.end {
            ended(child);
        }
    }
}

impl fmt::Debug for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Host").field("agreed", &self.agreed()).finish_non_exhaustive()
    }
}

/// The host has hikyaku, and no SFTP server.
#[derive(Debug)]
struct NoServer(String);

impl fmt::Display for NoServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let why = hikyaku_fs::sentence(&self.0);
        write!(f, "hikyaku at the far side starts no SFTP server: {why}")
    }
}

impl std::error::Error for NoServer {}

/// Whether ssh's subsystem may serve in place of hikyaku: that cannot be started, or is an older one.
pub(crate) fn is_the_way_out(error: &Error) -> bool {
    error.is::<NoServer>()
        || error.chain().any(|link| {
            let reach = link.downcast_ref::<ReachError>();
            reach.is_some_and(|error| {
                let is_older = matches!(error.without_delivery(), ReachError::NoHello { .. });
                error.no_program().is_some() || is_older
            })
        })
}

/// Whether a host where hikyaku cannot be started runs commands, as far as the error shows it.
pub(crate) fn commands(error: &Error) -> Option<Commands> {
    error.chain().find_map(|link| link.downcast_ref::<ReachError>()?.no_program())
}

/// Why the data go through ssh, and what the user can do.
fn advice(host: &str, error: &Error) -> String {
    let reached = error.chain().find_map(|link| link.downcast_ref::<ReachError>());
    let why = match reached {
        Some(undelivered @ ReachError::NotDelivered { .. }) => undelivered.to_string(),
        _ => format!("{host} has no hikyaku that can be started"),
    };
    let remedy = reached.and_then(ReachError::remedy);
    let remedy = remedy.map(|remedy| format!("\n{remedy}")).unwrap_or_default();
    format!("{why}: data go through ssh, over one TCP connection{remedy}")
}

/// The error with its remedy in the chain.
pub(crate) fn explained(error: ReachError) -> Error {
    let remedy = error.remedy();
    with_remedy(error.into(), remedy)
}
