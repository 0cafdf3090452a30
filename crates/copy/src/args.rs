//! What users type after `hikyaku cp`, and after `hscp`.

mod gfarm;
mod help;
mod s3;
mod servers;

use crate::guests::Guests;
use crate::names;
use crate::plan::{By, CopyPlan, FarNames, Report, StartServers, Transport as Carriage};
use crate::run::{copy, refused};
use crate::unfinished::{self, Wish};
use anyhow::{Error, Result};
use clap::{ArgAction, Args};
use hikyaku_console::{
    Audience, ExitCode, Form, FormArgs, Given, Interrupt, Noise, OtherArgs, Settings, with_remedy,
};
use hikyaku_job::{Pattern, Patterns};
use hikyaku_reach::bootstrap::{Asking, BootstrapArgs};
use hikyaku_reach::options::{cipher, limit, pipes, policy, ports, silence, size};
use hikyaku_reach::settings::{self, Typed};
use hikyaku_reach::tcp::{Decisions, Pipes};
use hikyaku_reach::{ScpArgs, SshOptions, WayPlan};
use hikyaku_stores::{CookiesArgs, Location};
use hikyaku_transfer::{
    Attributes, Depth, Durable, Existing, Links, Owners, Pass, Preserve, Resume, Rules, Verify,
    Write,
};
use hikyaku_units::{DataSize, Rate, parse_duration, parse_limit};
use std::ffi::OsString;
use std::ops::RangeInclusive;
use std::path::PathBuf;
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
    /// to a bucket: s3://BUCKET/KEY; from or to a server: ftp://HOST/PATH or gsiftp://HOST/PATH; from a web server:
    /// http://HOST/PATH or https://HOST/PATH
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
    #[command(flatten, next_help_heading = "Web servers")]
    cookies: CookiesArgs,
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
    #[arg(short = 'l', value_name = "LIMIT", value_parser = limit, conflicts_with = "rate")]
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
    exclude: Vec<Pattern>,
    /// Copy only names that match, where --exclude would leave them out
    #[arg(long, value_name = "PATTERN")]
    include: Vec<Pattern>,
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
    /// At most this rate (300mbit, 10MB)
    #[arg(long, value_name = "RATE", value_parser = parse_limit)]
    rate: Option<Rate>,
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
    #[arg(long = "connections", alias = "pipes", value_name = "N", value_parser = pipes)]
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

/// The messages on standard error.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Output")]
struct Printing {
    #[command(flatten)]
    form: FormArgs,
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

/// Does what the arguments say. For a program the run ends with an event, however it ends. A signal ends the copy;
/// the caller then ends the process ([`Interrupt::end_by_signal`]).
pub fn run(args: &CopyArgs, interrupt: &Interrupt) -> Result<ExitCode> {
    if let Some((wish, form)) = args.wish() {
        return unfinished::run(&wish, form);
    }
    let settings = settings::of_user().map_err(Error::from);
    match settings.and_then(|settings| args.plan(&settings)) {
        Ok(plan) => copy(&plan, interrupt, None),
        Err(error) => refused(args.audience(), error),
    }
}

impl CopyArgs {
    /// Sources and target.
    fn locations(&self, settings: &Settings) -> Result<(Vec<Location>, Location)> {
        let location = |path: &OsString| {
            Location::named(path, settings).map_err(|error| {
                let remedy = error.remedy().map(str::to_owned);
                with_remedy(error.into(), remedy)
            })
        };
        let mut all: Vec<Location> = self.paths.iter().map(location).collect::<Result<_>>()?;
        // The parser has seen to it that there are two.
        let mut target = all.pop().unwrap_or_else(|| Location::Local(PathBuf::from(".")));
        all.iter_mut().for_each(|source| standard(source, "/dev/stdin"));
        standard(&mut target, "/dev/stdout");
        Ok((all, target))
    }

    /// What is wanted of unfinished copies, if it is about those.
    pub(crate) fn wish(&self) -> Option<(Wish, Form)> {
        let wish = match self.unfinished.abandon.clone() {
            // A rehearsal tells what would be dropped.
            Some(targets) if self.choice.dry_run => Wish::List(targets),
            Some(targets) => Wish::Abandon(targets),
            None => self.unfinished.unfinished.then(|| Wish::List(Vec::new()))?,
        };
        Some((wish, self.printing.form.form()))
    }

    /// The copy that the arguments ask for. This call reads a list of names, which may come through a pipe and can then be read
    /// once only.
    ///
    /// # Errors
    ///
    /// A source or the target is none, or the list cannot be read.
    pub(crate) fn plan(&self, settings: &Settings) -> Result<CopyPlan> {
        let (sources, target) = self.locations(settings)?;
        let (mut plan, choice) = (CopyPlan::new(sources, target), &self.choice);
        plan.options.rules = self.rules();
        if let Some(path) = &choice.files_from {
            plan.options.files = names::read(path, either(choice.from0, 0, b'\n'))?;
        }
        plan.options.patterns =
            Patterns { exclude: choice.exclude.clone(), include: choice.include.clone() };
        plan.far_names = either(self.scp.trust_names, FarNames::Trusted, FarNames::Checked);
        plan.transport = self.carriage();
        plan.report = Report {
            audience: self.audience(),
            stats_every: self.printing.stats,
            log_dir: self.printing.log_dir.clone(),
            manifest: self.safety.manifest.clone(),
            typed: self.paths.clone(),
        };
        plan.given = self.given.clone();
        Ok(plan)
    }

    fn rules(&self) -> Rules {
        let (scp, choice, safety) = (&self.scp, &self.choice, &self.safety);
        let archive = scp.archive;
        Rules {
            depth: either(scp.recursive || archive, Depth::Tree, Depth::File),
            preserve: match (scp.preserve || archive, scp.times) {
                (true, _) => Preserve::All,
                (false, true) => Preserve::Times,
                (false, false) => Preserve::Nothing,
            },
            links: either(archive, Links::Kept, Links::Followed),
            owners: either(archive, Owners::Kept, Owners::New),
            attributes: either(archive, Attributes::Kept, Attributes::Dropped),
            existing: match (choice.ignore_existing, choice.update) {
                (true, _) => Existing::Kept,
                (_, true) => Existing::KeptIfNewer,
                _ => Existing::Replaced,
            },
            write: either(safety.inplace, Write::InPlace, Write::Beside),
            durable: either(safety.no_fsync, Durable::Cache, Durable::Disk),
            resume: either(safety.fresh, Resume::Fresh, Resume::Journal),
            verify: either(safety.verify, Verify::ReadBack, Verify::Arrived),
            pass: either(choice.dry_run, Pass::DryRun, Pass::Copy),
        }
    }

    fn carriage(&self) -> Carriage {
        let (scp, flags) = (&self.scp, &self.transport);
        let by = flags.via.unwrap_or_default();
        let is_person = matches!(self.audience(), Audience::Person | Audience::Lines);
        Carriage {
            way: WayPlan {
                ssh: SshOptions {
                    batch: scp.batch,
                    quiet: scp.quiet,
                    verbose: scp.verbose,
                    ..self.ssh.options()
                },
                typed: Typed {
                    rate: self.rate(),
                    cipher: flags.cipher.clone(),
                    policy: flags.policy.clone(),
                    window: flags.window,
                    buffer: flags.buffer,
                    timeout: flags.timeout,
                    ports: flags.udp_ports.clone(),
                    udp: flags.no_udp.then_some(false),
                    remote_path: flags.remote_path.clone(),
                },
                carriers: by.carriers(),
                pipes: flags.pipes.unwrap_or_default(),
                decisions: Decisions::default(),
                bootstrap: flags.bootstrap.clone(),
                asking: match is_person && !scp.batch {
                    true => Asking::AtTerminal,
                    false => Asking::Never,
                },
            },
            by,
            retry_for: flags.retry_for,
            start: flags.start_servers.then(|| StartServers { primary: flags.primary.clone() }),
            daemons: self.parameters(),
            gfarm_daemons: self.gfarm.daemons(),
            endpoint: self.s3.endpoint(),
            cookies: self.cookies.clone(),
        }
    }

    /// Who reads what is shown.
    pub(crate) fn audience(&self) -> Audience {
        self.printing.form.form().audience(match self.scp {
            Scp { quiet: true, .. } => Audience::Quiet,
            Scp { shown: true, .. } => Audience::Lines,
            _ => Audience::Person,
        })
    }

    /// The limit of the rate, by either name.
    fn rate(&self) -> Option<Rate> {
        self.transport.rate.or(self.scp.limit)
    }

    /// The messages on standard error.
    pub const fn says(&self) -> Noise {
        Noise::new(self.scp.quiet, self.scp.verbose)
    }
}

fn either<T>(is_so: bool, then: T, otherwise: T) -> T {
    if is_so { then } else { otherwise }
}
