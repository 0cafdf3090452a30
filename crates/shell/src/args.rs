//! What users type after `hikyaku sftp`, and after `hsftp`.

use crate::command::{Attributes, Begin, Depth, How, Until};
use crate::guests::Guests;
use crate::opening::{By, Opening};
use crate::shell::Noise;
use clap::{ArgAction, Args};
use hikyaku_console::{Given, Noise as Says, OtherArgs, Way as Carried};
use hikyaku_reach::bootstrap::{Asking, BootstrapArgs};
use hikyaku_reach::options::{limit, pipes, ports, silence};
use hikyaku_reach::settings::Typed;
use hikyaku_reach::tcp::Pipes;
use hikyaku_reach::{Destination, ScpArgs, SshOptions, WayPlan, is_harmless};
use hikyaku_units::{DataSize, Rate, parse_limit};
use std::ffi::OsString;
use std::num::NonZeroUsize;
use std::ops::RangeInclusive;
use std::time::Duration;

/// A session with the files of another machine, in the language of OpenSSH's sftp.
#[derive(Clone, Debug, Args)]
#[command(after_help = EXAMPLES, disable_version_flag = true, args_override_self = true)]
pub struct SftpArgs {
    // The first field: the others take their values out of what was parsed.
    #[command(flatten)]
    pub(crate) given: Given,
    /// USER@HOST:PATH or sftp://USER@HOST:PORT/PATH, of which only HOST is needed; a PATH that is a
    /// file is fetched, any other is where the session begins
    #[arg(
        required_unless_present = "direct",
        conflicts_with = "direct",
        value_name = "DESTINATION"
    )]
    pub(crate) destination: Option<OsString>,
    /// Where a PATH that is a file goes to
    #[arg(value_name = "LOCAL")]
    pub(crate) local: Option<OsString>,

    #[command(flatten)]
    pub(crate) session: Session,
    #[command(flatten)]
    pub(crate) transfers: Transfers,
    #[command(flatten)]
    ssh: ScpArgs,
    #[command(flatten)]
    ours: Ours,
    #[command(flatten)]
    _others: OtherArgs<Guests>,
}

/// How commands come, and what is said.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Session, as in sftp")]
pub(crate) struct Session {
    /// Take commands from FILE ('-' is standard input), ask for nothing, and end at the first that fails
    #[arg(short = 'b', value_name = "FILE")]
    pub(crate) batch: Option<OsString>,
    /// Say what is done also in a batch
    #[arg(short = 'N')]
    noisy: bool,
    /// Say results and errors only
    #[arg(short = 'q')]
    quiet: bool,
    /// Say how the far side is reached; twice and three times also what ssh says with -v and -vv
    #[arg(short = 'v', action = ArgAction::Count)]
    verbose: u8,
    /// Start this SFTP server on this machine, in place of ssh
    #[arg(short = 'D', value_name = "COMMAND")]
    pub(crate) direct: Option<OsString>,
    /// Subsystem of the far side, or the path of an SFTP server there
    #[arg(short = 's', value_name = "SUBSYSTEM")]
    pub(crate) subsystem: Option<OsString>,
    /// Compression of ssh, where data go through it
    #[arg(short = 'C')]
    compress: bool,
}

/// How files are copied.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Transfers, as in sftp")]
pub(crate) struct Transfers {
    /// Resume: begin where the target ends, if its end is the same as in the source
    #[arg(short = 'a')]
    resume: bool,
    /// Wait until each file is on the disk
    #[arg(short = 'f')]
    sync: bool,
    /// Keep times and modes
    #[arg(short = 'p')]
    preserve: bool,
    /// Directories with all that is in them; links in them are left out
    #[arg(short = 'r')]
    recursive: bool,
    /// At most this rate, with its unit (300mbit, 10MB); a bare number is kbit/s, as in sftp
    #[arg(short = 'l', value_name = "LIMIT", value_parser = limit, conflicts_with = "rate")]
    limit: Option<Rate>,
    /// At most this rate (300mbit, 10MB)
    #[arg(long, value_name = "RATE", value_parser = parse_limit)]
    rate: Option<Rate>,
    /// Bytes of a request [default: 32768 through ssh, otherwise 261120]
    #[arg(short = 'B', value_name = "SIZE", value_parser = some_bytes)]
    pub(crate) bytes: Option<DataSize>,
    /// Requests of a file that are under way at once [default: 64; 16 MiB at most]
    #[arg(short = 'R', value_name = "COUNT")]
    pub(crate) requests: Option<NonZeroUsize>,
    /// The same as nrequests=COUNT (-R) and buffer=BYTES (-B)
    #[arg(short = 'X', value_name = "OPTION", value_parser = extra)]
    pub(crate) extra: Vec<(Extra, usize)>,
}

impl Transfers {
    /// The limit of the rate, by either name.
    pub(crate) fn limit(&self) -> Option<Rate> {
        self.rate.or(self.limit)
    }
}

/// A setting of `-X`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Extra {
    /// `nrequests`.
    Requests,
    /// `buffer`.
    Bytes,
}

/// What sftp does not have.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Beyond sftp")]
struct Ours {
    /// What carries the session: hikyaku at the far side, or ssh where it has none (auto); only the one, or only the other
    #[arg(long, value_name = "WAY", value_enum, default_value_t)]
    via: By,
    /// Commands that come through a pipe end at the first that fails, as with -b
    #[arg(long)]
    strict: bool,
    /// Without UDP, as where it is blocked: over TCP, or else through ssh
    #[arg(long)]
    no_udp: bool,
    /// How many TCP connections carry the session where TCP does: 1 to 64, or as many as bring something (auto)
    #[arg(long = "connections", alias = "pipes", value_name = "N", value_parser = pipes)]
    pipes: Option<Pipes>,
    /// UDP ports of which each end uses one (60001-60999)
    #[arg(long, value_name = "FROM-TO", value_parser = ports)]
    udp_ports: Option<RangeInclusive<u16>>,
    /// Where hikyaku is on the far side
    #[arg(long, value_name = "PATH", value_parser = remote_path)]
    remote_path: Option<String>,
    /// Give a connection up that was silent for so long (3m)
    #[arg(long, value_name = "TIME", value_parser = silence)]
    timeout: Option<Duration>,
    #[command(flatten)]
    bootstrap: BootstrapArgs,
}

const EXAMPLES: &str = "\
Examples:
  hikyaku sftp anna@far:run7     a session; 'help' lists its commands
  hikyaku sftp far:run7/a.dat .  fetch a file
  echo 'put -r run7' | hikyaku sftp -b - far
      a batch: the first failure ends it

In a session, Tab completes commands and names. A link named 'hsftp' to
hikyaku is this command, with the exit codes of sftp.";

/// What a failure means where commands come through a pipe.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Strictness {
    /// Nothing, as in OpenSSH's sftp.
    Lenient,
    /// The end.
    Strict,
}

impl SftpArgs {
    /// What is said beside the results.
    pub const fn says(&self) -> Says {
        Says::new(self.session.quiet, self.session.verbose)
    }

    /// What carries the session. A subsystem that was named is ssh's, unless only hikyaku may serve.
    pub(crate) const fn by(&self) -> By {
        match (&self.session.subsystem, self.ours.via) {
            (Some(_), By::Auto) => By::Sftp,
            (_, via) => via,
        }
    }

    /// The way that was asked for; where the far side may have no hikyaku, another one may be found to be left.
    pub(crate) fn asked(&self) -> Carried {
        match self.by() {
            _ if self.session.direct.is_some() => Carried::Direct,
            By::Sftp => Carried::Sftp,
            By::Auto | By::Native => Carried::Ssh,
        }
    }

    pub(crate) const fn strictness(&self) -> Strictness {
        if self.ours.strict || self.session.batch.is_some() {
            Strictness::Strict
        } else {
            Strictness::Lenient
        }
    }

    pub(crate) const fn noise(&self) -> Noise {
        let session = &self.session;
        if !session.noisy && (session.quiet || session.batch.is_some()) {
            Noise::Results
        } else {
            Noise::Each
        }
    }

    /// What all transfers do.
    pub(crate) const fn how(&self) -> How {
        let transfers = &self.transfers;
        How {
            attributes: if transfers.preserve { Attributes::Kept } else { Attributes::New },
            depth: if transfers.recursive { Depth::Tree } else { Depth::File },
            begin: if transfers.resume { Begin::Resumed } else { Begin::Anew },
            until: if transfers.sync { Until::Synced } else { Until::Written },
        }
    }

    /// Requests at once, and bytes of each.
    pub(crate) fn requests(&self) -> (Option<usize>, Option<usize>) {
        let transfers = &self.transfers;
        let extra = |wanted: Extra| {
            transfers.extra.iter().rfind(|(name, _)| *name == wanted).map(|(_, value)| *value)
        };
        let requests = transfers.requests.map(NonZeroUsize::get);
        let requests = requests.or_else(|| extra(Extra::Requests));
        (requests, transfers.bytes.and_then(bytes).or_else(|| extra(Extra::Bytes)))
    }

    /// How the session with the machine at `login` is opened.
    pub(crate) fn opening(&self, login: Destination) -> Opening {
        let mut ssh = self.ssh.options();
        if self.session.compress {
            ssh.options.push("Compression=yes".into());
        }
        let session = &self.session;
        let is_asked = session.batch.is_none() && !session.quiet;
        let way = WayPlan {
            ssh: SshOptions {
                batch: session.batch.is_some(),
                quiet: session.quiet,
                verbose: session.verbose,
                ..ssh
            },
            typed: Typed {
                rate: self.transfers.limit(),
                timeout: self.ours.timeout,
                ports: self.ours.udp_ports.clone(),
                udp: self.ours.no_udp.then_some(false),
                remote_path: self.ours.remote_path.clone(),
                ..Typed::default()
            },
            pipes: self.ours.pipes.unwrap_or_default(),
            bootstrap: self.ours.bootstrap.clone(),
            asking: if is_asked { Asking::AtTerminal } else { Asking::Never },
            ..WayPlan::default()
        };
        // Where hikyaku is not found and not sent, these had their effect.
        let ids = ["remote_path", "bootstrap", "far_binary"];
        let given = ids.iter().fold(self.given.clone(), |given, id| given.without(id));
        Opening {
            by: self.by(),
            subsystem: session.subsystem.clone(),
            given,
            ..Opening::new(login, way)
        }
    }
}

fn extra(text: &str) -> Result<(Extra, usize), String> {
    let (name, value) = text.split_once('=').ok_or("expected NAME=VALUE")?;
    let name = match name {
        "nrequests" => Extra::Requests,
        "buffer" => Extra::Bytes,
        _ => return Err("the names are nrequests and buffer".to_owned()),
    };
    let value = match name {
        Extra::Requests => value.parse().ok(),
        Extra::Bytes => value.parse().ok().and_then(bytes),
    };
    let value = value.filter(|value| *value > 0);
    value.map(|value| (name, value)).ok_or_else(|| "not a number of 1 or more".to_owned())
}

fn some_bytes(text: &str) -> Result<DataSize, String> {
    match text.parse::<DataSize>() {
        Ok(DataSize::ZERO) => Err("must be 1 byte or more".to_owned()),
        size => size.map_err(|error| error.to_string()),
    }
}

fn bytes(size: DataSize) -> Option<usize> {
    usize::try_from(size.bytes()).ok()
}

fn remote_path(text: &str) -> Result<String, String> {
    is_harmless(text).map_err(|error| error.to_string())?;
    Ok(text.to_owned())
}
