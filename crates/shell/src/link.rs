//! A session's connection: to hikyaku at the far side, to ssh's subsystem, or to a server that runs on this machine.

use crate::args::SftpArgs;
use crate::line::{unescaped, words};
use crate::opening::{By, Opening};
use crate::pipe::{From, To};
use crate::table::TABLE;
use crate::target::Target;
use crate::transfer::Carrier;
use anyhow::{Context, Error, Result};
use hikyaku_console::{Scope, Way, headline, with_remedy};
use hikyaku_net::blocking::block_on;
use hikyaku_reach::{
    Agreed, Commands, Destination, FarSide, NO_CONNECTION, ReachError, Reached, SshFailed, ended,
    settings,
};
use hikyaku_sftp::Client;
use hikyaku_units::{DataSize, Rate};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::process::{Child, Command, ExitStatus, Stdio};

/// Starts a program that Ctrl-C does not end: the session ends the command, and the program goes on.
const SHIELD: [&str; 4] = ["/bin/sh", "-c", "trap '' INT; exec \"$@\"", "sh"];

/// A client of an SFTP server, and what has to live as long as it. Dropping it ends the session.
pub struct Link {
    pub(crate) client: Client,
    pub(crate) carrier: Carrier,
    /// What would make it faster, for the user.
    pub(crate) advice: Option<String>,
    /// What of the options of the command line has no effect on it, for the user.
    pub(crate) notes: Vec<String>,
    /// The most that all transfers together move in a second.
    pub(crate) limit: Option<Rate>,
    way: Way,
    /// What is known of commands of a machine where hikyaku cannot be started.
    commands: Option<Commands>,
    end: LinkEnd,
}

/// What runs the server.
enum LinkEnd {
    /// Another program of ours.
    Far { _side: FarSide, agreed: Agreed },
    /// A process: ssh, or the server itself.
    Child(Child),
}

impl Link {
    /// The client of the server.
    pub const fn client(&self) -> &Client {
        &self.client
    }

    /// The client, if the server is the only way to the machine, as hikyaku cannot be started there, and whether commands
    /// can.
    pub fn only_way(&self) -> Option<(&Client, Commands)> {
        self.commands.map(|commands| (&self.client, commands))
    }

    /// What would make it faster, for the user.
    pub fn advice(&self) -> Option<&str> {
        self.advice.as_deref()
    }

    /// The way that files go which another command copies beside the session: by SFTP only if the far side has no
    /// hikyaku that can be started.
    pub const fn way(&self) -> Way {
        self.way
    }

    /// Whether both ends are programs of ours that have a feature.
    pub fn has(&self, feature: &str) -> bool {
        matches!(&self.end, LinkEnd::Far { agreed, .. } if agreed.has(feature))
    }

    /// Connects as the arguments say.
    pub(crate) fn open(args: &SftpArgs, memory: DataSize, scope: &Scope) -> Result<Self> {
        let notes = TABLE.check(&args.given, &[args.asked()])?;
        let mut link = match &args.session.direct {
            Some(command) => Self::direct(command, args.transfers.limit, scope)?,
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
        let carried = (Carrier::Wide, Way::Direct);
        let link = Self::start(&words.collect::<Vec<_>>(), carried, scope);
        let mut link = link.map_err(|(error, _)| error)?;
        link.limit = limit;
        Ok(link)
    }

    /// Opens a session. `memory` is what this process may take; `scope` ends ssh while it logs in.
    ///
    /// # Errors
    ///
    /// The machine cannot be reached, or has no SFTP server.
    pub fn connect(opening: &Opening, memory: DataSize, scope: &Scope) -> Result<Self> {
        let (settings, host) = (settings::of_user()?, &opening.login.host);
        let plan = &opening.way;
        let mut way = plan.way((host, &settings), (crate::SERVICE, memory), scope.clone())?;
        way.offer.otherwise = "go through ssh, which is slower";
        let mut link = Self::by(opening, &way)?;
        // A far hikyaku keeps it together with this end. Two limits in a row would let less pass than either.
        if matches!(link.end, LinkEnd::Child(_)) {
            link.limit = way.tuning.rate.map(Rate::from_bits_per_sec);
        }
        Ok(link)
    }

    fn by(opening: &Opening, way: &hikyaku_reach::Way) -> Result<Self> {
        if opening.by == By::Sftp {
            return Self::through_ssh(opening, &way.scope);
        }
        match Self::native(&opening.login, way) {
            Err(error) if opening.by == By::Auto && is_the_way_out(&error) => {
                let host = &opening.login.host;
                let notes = TABLE.check(&opening.given, &[Way::Sftp]);
                let notes = notes.map_err(|refused| {
                    // The remedy stays where the user looks for it.
                    let text = headline(&refused);
                    refused
                        .context(format!("{host} has no hikyaku that can be started, and {text}"))
                })?;
                let mut link = Self::through_ssh(opening, &way.scope)?;
                link.notes = notes;
                link.commands = commands(&error);
                if error.is::<NoServer>() {
                    link.way = Way::Ssh;
                }
                link.advice = Some(advice(host, &error));
                Ok(link)
            }
            link => link,
        }
    }

    fn native(login: &Destination, way: &hikyaku_reach::Way) -> Result<Self> {
        let reached = way.open(login);
        let Reached { connection, agreed, advice, side, .. } = reached.map_err(explained)?;
        let stream = block_on(connection.open_stream()).context("no stream")?;
        let (send, receive) = stream.split();
        let client = Client::start(From::new(receive), To::new(send)).map_err(|error| {
            let why = connection.close_reason().map(|reason| reason.to_string());
            Error::new(error).context(NoServer(why.unwrap_or_default()))
        })?;
        let (carrier, way, end) = (Carrier::Wide, Way::Ssh, LinkEnd::Far { _side: side, agreed });
        Ok(Self {
            client,
            carrier,
            advice,
            notes: Vec::new(),
            limit: None,
            way,
            commands: None,
            end,
        })
    }

    fn through_ssh(opening: &Opening, scope: &Scope) -> Result<Self> {
        let (ssh, login) = (&opening.way.ssh, &opening.login);
        let mut words = ssh.sftp(login);
        if let (Some(subsystem), Some(last)) = (&opening.subsystem, words.last_mut()) {
            last.clone_from(subsystem);
            if subsystem.as_bytes().contains(&b'/') {
                // A path is a command, and "-s" stands before "--", the host and it.
                words.remove(words.len() - 4);
            }
        }
        let carried = (Carrier::Ssh, Way::Sftp);
        Self::start(&words, carried, scope).map_err(|(error, status)| {
            let host = login.host.clone();
            if status.and_then(|status| status.code()) == Some(NO_CONNECTION) {
                let remedy = format!("try: {}", ssh.by_hand(login));
                return Error::new(SshFailed::Ended { host }).context(remedy);
            }
            error.context(format!("{host} has no SFTP server"))
        })
    }

    fn start(
        words: &[OsString],
        (carrier, way): (Carrier, Way),
        scope: &Scope,
    ) -> Result<Self, (Error, Option<ExitStatus>)> {
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
                let (notes, end) = (Vec::new(), LinkEnd::Child(child));
                let (advice, limit, commands) = (None, None, None);
                Ok(Self { client, carrier, advice, notes, limit, way, commands, end })
            }
            Err(error) => Err((Error::new(error), ended(&mut child))),
        }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.client.hang_up();
        if let LinkEnd::Child(child) = &mut self.end {
            ended(child);
        }
    }
}

/// The far side has hikyaku, and no SFTP server.
#[derive(Debug)]
struct NoServer(String);

impl std::fmt::Display for NoServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "hikyaku at the far side starts no SFTP server: {}",
            hikyaku_fs::sentence(&self.0)
        )
    }
}

impl std::error::Error for NoServer {}

/// Whether ssh's subsystem may serve where hikyaku does not: it cannot be started, or is an older one.
fn is_the_way_out(error: &Error) -> bool {
    error.is::<NoServer>()
        || error.chain().any(|link| {
            let reach = link.downcast_ref::<ReachError>();
            reach.is_some_and(|error| {
                let is_older = matches!(error.without_delivery(), ReachError::NoHello { .. });
                error.no_program().is_some() || is_older
            })
        })
}

/// What an error tells of commands of a machine where hikyaku cannot be started.
fn commands(error: &Error) -> Option<Commands> {
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
fn explained(error: ReachError) -> Error {
    let remedy = error.remedy();
    with_remedy(error.into(), remedy)
}
