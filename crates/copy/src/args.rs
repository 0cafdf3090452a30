//! What users type after `hikyaku cp`, and after `hscp`.

mod gfarm;
mod help;
mod list;
mod s3;
mod servers;
mod way;

use crate::engine::{Existing, Options, Patterns, Preserve};
use crate::guests::Guests;
use crate::location::{Location, LocationError};
use crate::patterns::{Allowed, Depth};
use crate::unfinished::{Reader, Wish};
use anyhow::Result;
use clap::{ArgAction, Args, ValueEnum};
use hikyaku_console::{Audience, Given, OtherArgs};
use hikyaku_reach::bootstrap::BootstrapArgs;
use hikyaku_reach::options::{cipher, limit, pipes, policy, ports, silence, size};
use hikyaku_reach::tcp::Pipes;
use hikyaku_reach::{ScpArgs, SshOptions};
use hikyaku_units::{DataSize, Rate, parse_duration};
use std::ffi::OsString;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::Duration;

#[cfg(test)]
mod tests;

/// Copies files between machines as scp does, its data over the transport.
#[derive(Clone, Debug, Args)]
#[command(after_help = help::EXAMPLES, disable_version_flag = true, args_override_self = true)]
pub struct CopyArgs {
    // The first field: the others take their values out of what was parsed.
    #[command(flatten)]
    given: Given,
    /// What to copy, and last where to: USER@HOST:PATH, scp://HOST:PORT/PATH, a local path, or '-' for standard input
    /// or output; from or to daemons: hikyaku://HOST,HOST/PATH or CLUSTER:PATH; from or to Gfarm: gfarm:///PATH; from or
    /// to a bucket: s3://BUCKET/KEY
    #[arg(
        required_unless_present_any = ["unfinished", "abandon"],
        conflicts_with_all = ["unfinished", "abandon"],
        num_args = 2..,
        value_names = ["SOURCE", "TARGET"]
    )]
    paths: Vec<OsString>,

    #[command(flatten)]
    scp: Scp,
    #[command(flatten)]
    ssh: ScpArgs,
    #[command(flatten)]
    choice: Choice,
    #[command(flatten)]
    safety: Safety,
    #[command(flatten)]
    unfinished: Unfinished,
    #[command(flatten)]
    transport: Transport,
    #[command(flatten)]
    servers: servers::ServersArgs,
    #[command(flatten)]
    gfarm: gfarm::GfarmArgs,
    #[command(flatten)]
    s3: s3::S3Args,
    #[command(flatten)]
    printing: Printing,
    #[command(flatten)]
    _others: OtherArgs<Guests>,
}

/// scp's own flags, with scp's meanings.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "As in scp")]
struct Scp {
    /// Directories with all that is in them; links are followed
    #[arg(short = 'r', long)]
    recursive: bool,
    /// Keep times and modes
    #[arg(short = 'p', long)]
    preserve: bool,
    /// Keep times alone
    #[arg(long)]
    times: bool,
    /// As -rp, and links stay links, holes stay holes, extended attributes are kept; owners too, by number, if root writes
    #[arg(short = 'a', long)]
    archive: bool,
    /// Say nothing but errors
    #[arg(short = 'q', long, overrides_with = "shown")]
    quiet: bool,
    /// Show the transfer as it goes also where standard error is no terminal: a line a second (of the first hscp)
    #[arg(short = 'I', overrides_with = "quiet")]
    shown: bool,
    /// Say how the far side is reached; twice and three times also what ssh says with -v and -vv
    #[arg(short = 'v', long, action = ArgAction::Count)]
    verbose: u8,
    /// At most this rate, with its unit (300mbit, 10MB); a bare number is kbit/s, as in scp
    #[arg(short = 'l', value_name = "LIMIT", value_parser = limit)]
    limit: Option<Rate>,
    /// Never ask for a password
    #[arg(short = 'B')]
    batch: bool,
    /// Between two remote hosts through this one; it is always so
    #[arg(short = '3')]
    through_here: bool,
    /// Between two remote hosts directly; here they go through this one
    #[arg(short = 'R')]
    directly: bool,
    /// Do not check the far side's names against the pattern asked for
    #[arg(short = 'T')]
    trust_names: bool,
    /// Compression: accepted and without effect, data are sent as they are
    #[arg(short = 'C')]
    compress: bool,
    /// scp's old protocol: accepted and without effect
    #[arg(short = 'O')]
    old: bool,
    /// Path of a local sftp server: accepted and without effect
    #[arg(short = 'D', value_name = "PATH")]
    sftp_server: Option<OsString>,
}

/// What is copied.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "What is copied")]
struct Choice {
    /// Say what would be copied, and copy nothing
    #[arg(short = 'n', long)]
    dry_run: bool,
    /// Leave out names that match (*.tmp, /logs/, a/**/b)
    #[arg(long, value_name = "PATTERN")]
    exclude: Vec<String>,
    /// Copy only names that match, where --exclude would leave them out
    #[arg(long, value_name = "PATTERN")]
    include: Vec<String>,
    /// Copy what is named in FILE, a line each, relative to the source ('-' is standard input)
    #[arg(long, value_name = "FILE")]
    files_from: Option<PathBuf>,
    /// The names of --files-from end with a zero byte, and not with the line ('find -print0')
    #[arg(short = '0', long, requires = "files_from")]
    from0: bool,
    /// Leave files alone that are newer at the target
    #[arg(short = 'u', long)]
    update: bool,
    /// Leave files alone that are there
    #[arg(long)]
    ignore_existing: bool,
}

/// What is made sure of.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Safety")]
struct Safety {
    /// Read every file again at the target before it gets its name
    #[arg(long)]
    verify: bool,
    /// Write a list of hashes for 'b3sum --check'
    #[arg(long, value_name = "FILE", conflicts_with = "dry_run")]
    manifest: Option<PathBuf>,
    /// Do not wait for the disk: faster, and lost if the power fails soon after
    #[arg(long)]
    no_fsync: bool,
    /// Write into the old file in place of making a new one; keeps its owner and hard links, and
    /// leaves neither old nor new if it is interrupted
    #[arg(long)]
    inplace: bool,
    /// Begin anew what an earlier attempt left unfinished
    #[arg(long)]
    fresh: bool,
}

/// Copies that have not come to their end.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Unfinished copies")]
struct Unfinished {
    /// List the copies onto this machine that have not come to their end
    #[arg(long, conflicts_with = "abandon")]
    unfinished: bool,
    /// Drop those to these targets, or all: what is unfinished of them is removed; with -n they are listed
    #[arg(long, value_name = "TARGET", num_args = 0..)]
    abandon: Option<Vec<OsString>>,
}

/// How data travel.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Transport")]
struct Transport {
    /// Cipher of the data: aegis128l, aes128gcm or chacha20poly1305
    #[arg(long, value_name = "NAME", value_parser = cipher)]
    cipher: Option<String>,
    /// How to share the path: fair, scavenger (gives way to all others), or fixed:RATE whatever the
    /// loss
    #[arg(long, value_name = "POLICY", value_parser = policy)]
    policy: Option<String>,
    /// The most memory for data under way at each end (512MB)
    #[arg(long, value_name = "SIZE", value_parser = size)]
    window: Option<DataSize>,
    /// Receive buffer to ask the kernel for at each end (32MiB)
    #[arg(long, value_name = "SIZE", value_parser = size)]
    buffer: Option<DataSize>,
    /// UDP ports of which each end uses one (60001-60999)
    #[arg(long, value_name = "FROM-TO", value_parser = ports)]
    udp_ports: Option<RangeInclusive<u16>>,
    /// Without UDP, as where it is blocked: over TCP, or else through ssh
    #[arg(long, conflicts_with = "via")]
    no_udp: bool,
    /// What carries the copy (auto)
    #[arg(long, value_name = "WAY", value_enum)]
    via: Option<By>,
    /// How many TCP connections carry the copy where TCP does: 1 to 64, or as many as bring something (auto)
    #[arg(long, value_name = "N", value_parser = pipes)]
    pipes: Option<Pipes>,
    /// Give a connection up that was silent for so long (3m)
    #[arg(long, value_name = "TIME", value_parser = silence)]
    timeout: Option<Duration>,
    /// When a connection is lost, try for so long to go on by a new one (24h); 0 is not at all
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    retry_for: Option<Duration>,
    /// Where hikyaku is on the far side
    #[arg(long, value_name = "PATH")]
    remote_path: Option<String>,
    /// Start the servers of hikyaku://HOST,HOST/PATH or CLUSTER:/PATH through ssh, for this copy: they need no daemon. PATH
    /// begins at the root of their file systems
    #[arg(long)]
    start_servers: bool,
    /// With --start-servers: log in to the other servers through this host
    #[arg(long, value_name = "HOST", requires = "start_servers")]
    primary: Option<String>,
    #[command(flatten)]
    bootstrap: BootstrapArgs,
}

/// What carries a copy.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, ValueEnum)]
pub(crate) enum By {
    /// UDP; where it does not get through, TCP, else ssh; where the far side has no hikyaku, SFTP
    #[default]
    Auto,
    /// UDP only
    Udp,
    /// TCP only, by several connections (--pipes)
    Tcp,
    /// The connection of ssh
    Ssh,
    /// As auto, but never SFTP
    Native,
    /// SFTP
    Sftp,
}

/// What is said.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Output")]
struct Printing {
    /// Events as JSON, a line each
    #[arg(long)]
    json: bool,
    /// A line of rate and losses every so often (1s)
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    stats: Option<Duration>,
    /// Write into this directory what the copy looks like, twice a second, for 'hikyaku report DIR'
    #[arg(long, value_name = "DIR")]
    log_dir: Option<PathBuf>,
}

/// `-` is this process's standard input or output, as for cat and tar.
fn standard(location: &mut Location, stream: &str) {
    if matches!(location, Location::Local(path) if path.as_os_str() == "-") {
        *location = Location::Local(PathBuf::from(stream));
    }
}

impl CopyArgs {
    /// Sources and target.
    pub fn locations(&self) -> std::result::Result<(Vec<Location>, Location), LocationError> {
        let mut all: Vec<Location> = self
            .paths
            .iter()
            .map(|path| Location::parse(path))
            .collect::<std::result::Result<_, _>>()?;
        // The parser has seen to it that there are two.
        let mut target = all.pop().unwrap_or_else(|| Location::Local(PathBuf::from(".")));
        all.iter_mut().for_each(|source| standard(source, "/dev/stdin"));
        standard(&mut target, "/dev/stdout");
        Ok((all, target))
    }

    /// What is wanted of unfinished copies, if it is about those.
    pub(crate) fn wish(&self) -> Option<(Wish, Reader)> {
        let reader = if self.printing.json { Reader::Program } else { Reader::Person };
        let wish = match self.unfinished.abandon.clone() {
            // A rehearsal tells what would be dropped.
            Some(targets) if self.choice.dry_run => Wish::List(targets),
            Some(targets) => Wish::Abandon(targets),
            None => self.unfinished.unfinished.then(|| Wish::List(Vec::new()))?,
        };
        Some((wish, reader))
    }

    /// What `ssh` is told.
    pub fn ssh(&self) -> SshOptions {
        let scp = &self.scp;
        SshOptions {
            batch: scp.batch,
            quiet: scp.quiet,
            verbose: scp.verbose,
            ..self.ssh.options()
        }
    }

    /// How the copy is made. A list of files is read: it may come through a pipe, where it comes once.
    pub(crate) fn options(&self) -> Result<Options> {
        let archive = self.scp.archive;
        Ok(Options {
            recursive: self.scp.recursive || archive,
            preserve: match (self.scp.preserve || archive, self.scp.times) {
                (true, _) => Preserve::All,
                (false, true) => Preserve::Times,
                (false, false) => Preserve::Nothing,
            },
            keep_links: archive,
            keep_owners: archive,
            keep_attributes: archive,
            in_place: self.safety.inplace,
            durable: !self.safety.no_fsync,
            fresh: self.safety.fresh,
            verify: self.safety.verify,
            limit: self.scp.limit.map(Rate::bits_per_sec),
            several: self.paths.len() > 2,
            existing: match (self.choice.ignore_existing, self.choice.update) {
                (true, _) => Existing::Kept,
                (_, true) => Existing::KeptIfNewer,
                _ => Existing::Replaced,
            },
            patterns: self.patterns(),
            rehearsal: self.choice.dry_run,
            files: match &self.choice.files_from {
                Some(path) => list::read(path, if self.choice.from0 { 0 } else { b'\n' })?,
                None => Vec::new(),
            },
        })
    }

    /// What is left out.
    pub(crate) fn patterns(&self) -> Patterns {
        let (exclude, include) = (self.choice.exclude.clone(), self.choice.include.clone());
        Patterns { exclude, include }
    }

    /// How files of a Gfarm file system come.
    pub(crate) const fn gfarm(&self) -> &gfarm::GfarmArgs {
        &self.gfarm
    }

    /// Sources and target as they were typed.
    pub(crate) fn typed(&self) -> &[OsString] {
        &self.paths
    }

    /// Where a log of the copy is wanted.
    pub(crate) fn log_dir(&self) -> Option<&Path> {
        self.printing.log_dir.as_deref()
    }

    /// How often a line of figures is wanted.
    pub(crate) const fn stats_every(&self) -> Option<Duration> {
        self.printing.stats
    }

    /// Where a list of hashes is wanted.
    pub(crate) fn manifest(&self) -> Option<&Path> {
        self.safety.manifest.as_deref()
    }

    /// Whether it is only to be said what would be copied.
    pub(crate) const fn is_rehearsal(&self) -> bool {
        self.choice.dry_run
    }

    /// What carries the copy.
    pub(crate) fn by(&self) -> By {
        self.transport.via.unwrap_or_default()
    }

    /// What may come of these sources.
    pub(crate) fn allowed(&self, sources: &[Vec<u8>], options: &Options) -> Allowed {
        let depth = if options.recursive { Depth::Tree } else { Depth::File };
        match options.files.as_slice() {
            _ if self.scp.trust_names => Allowed::anything(),
            [] => Allowed::of(sources, depth),
            files => Allowed::listed(files, depth),
        }
    }

    /// Who reads what is shown.
    pub(crate) fn audience(&self) -> Audience {
        match self.scp {
            _ if self.printing.json => Audience::Program,
            Scp { quiet: true, .. } => Audience::Quiet,
            Scp { shown: true, .. } => Audience::Lines,
            _ => Audience::Person,
        }
    }

    /// The number of flags `-v`.
    pub const fn verbosity(&self) -> u8 {
        self.scp.verbose
    }

    /// Whether nothing is to be said but errors.
    pub(crate) const fn is_quiet(&self) -> bool {
        self.scp.quiet
    }

    /// The options that were typed.
    pub(crate) const fn given(&self) -> &Given {
        &self.given
    }
}
