//! The command line of `hikyaku`.

use crate::completions::CompletionsArgs;
use crate::fail;
use crate::far::FarArgs;
use crate::help;
use crate::keys::{KeysArgs, KnownPeersArgs};
use crate::man::ManArgs;
use crate::serve::ServeArgs;
use crate::usage;
use clap::builder::EnumValueParser;
use clap::error::ErrorKind;
use clap::{
    Arg, ArgAction, Command, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum,
};
use hikyaku_console::{Color, ConfigArgs, Exit, ExitCode as Code, Noise, Tone, printed, say};
use hikyaku_copy::{CopyArgs, StatusArgs};
use hikyaku_doctor::DoctorArgs;
use hikyaku_guc::GucArgs;
use hikyaku_lab::LabArgs;
use hikyaku_ls::LsArgs;
use hikyaku_mount::{MountArgs, UmountArgs};
use hikyaku_perf::PerfArgs;
use hikyaku_proxy::{ProxyArgs, WebArgs};
use hikyaku_report::ReportArgs;
use hikyaku_shell::SftpArgs;
use hikyaku_sync::SyncArgs;
use hikyaku_view::ViewArgs;
use hikyaku_web_get::GetArgs;
use std::ffi::OsString;
use std::io::{Write, stdout};
use std::path::Path;

/// Move files and measure paths at the full rate of long fat networks.
#[derive(Parser)]
#[command(name = "hikyaku", version, propagate_version = true, disable_version_flag = true)]
#[command(after_help = UNITS_AND_EXIT_CODES)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) verb: Verb,
}

/// The output of `--version`, for every subcommand and program name.
pub(crate) const VERSION: &str = concat!("hikyaku ", env!("CARGO_PKG_VERSION"), "\n");

const UNITS_AND_EXIT_CODES: &str = "\
Units: a rate is in bits (100mbit) or bytes (10MB) per second, a size in bytes
(5MB, 5MiB), and a time in seconds or with a unit (200ms).
Exit codes: 0 success, 1 usage error, 2 failure, 5 failure that may pass by
itself, 6 failure that needs a change before another attempt.";

#[derive(Subcommand)]
pub(crate) enum Verb {
    /// Copy files between hosts, as scp does.
    Cp(Box<CopyArgs>),
    /// Work with the files of another host, as sftp does.
    Sftp(Box<SftpArgs>),
    /// Make a tree like another one, as rsync does.
    Sync(Box<SyncArgs>),
    /// List files of this host, daemons, Gfarm or S3, as ls does.
    Ls(Box<LsArgs>),
    /// Fetch files from web servers through several connections.
    Get(Box<GetArgs>),
    /// Copy files from and to GridFTP servers, as globus-url-copy does.
    Guc(Box<GucArgs>),
    /// Show the settings, and where each comes from.
    Config(ConfigArgs),
    /// Measure goodput, round-trip time and loss between two hosts.
    Perf(Box<PerfArgs>),
    /// Find what limits a transfer, on this host and on a path.
    Doctor(Box<DoctorArgs>),
    /// Carry TCP connections of other programs, as ssh -L and -D do.
    Proxy(Box<ProxyArgs>),
    /// Run a browser whose downloads come at line rate.
    Web(Box<WebArgs>),
    /// Play very large pictures, also of a remote host, in the browser.
    View(Box<ViewArgs>),
    /// Run programs on emulated long fat links, in namespaces.
    Lab(Box<LabArgs>),
    /// Exchange keys with daemons, and list the remembered ones.
    Keys(KeysArgs),
    /// Show which daemons can be reached, and what they serve.
    Status(StatusArgs),
    /// Draw transfers from the logs of --log-dir, as a page.
    Report(ReportArgs),
    /// Install hikyaku on other hosts, or list and remove copies.
    Far(FarArgs),
    /// The old name of 'hikyaku keys list' and 'hikyaku keys forget'.
    #[command(hide = true)]
    KnownPeers(KnownPeersArgs),
    /// Print a completion script for a shell.
    Completions(CompletionsArgs),
    /// Print a manual page, or write all of them to a directory.
    Man(ManArgs),
    /// Serve files to clients, as a daemon.
    Serve(ServeArgs),
    /// Mount a directory of a daemon, as sshfs does.
    Mount(Box<MountArgs>),
    /// Unmount what 'hikyaku mount' has mounted.
    Umount(UmountArgs),
}

impl Verb {
    /// The messages on standard error.
    pub(crate) fn says(&self) -> Noise {
        match self {
            Self::Cp(args) => args.says(),
            Self::Sftp(args) => args.says(),
            Self::Sync(args) => args.says(),
            Self::Get(args) => args.says(),
            Self::Ls(args) => args.noise.noise(),
            Self::Mount(args) => args.noise.noise(),
            Self::View(args) => args.noise.noise(),
            Self::Perf(args) => args.noise.noise(),
            Self::Doctor(args) => args.noise.noise(),
            Self::Proxy(args) => args.noise.noise(),
            Self::Web(args) => args.noise.noise(),
            Self::Serve(args) => args.daemon.noise.noise(),
            Self::Status(args) => args.noise.noise(),
            Self::Keys(args) => args.says(),
            Self::Far(args) => args.says(),
            _ => Noise::Usual,
        }
    }
}

/// Chooses the colours by the option `--color`, before the command line is parsed, so that they are those of its errors too.
/// Words after `--` belong to another program. A wrong value is left to the parser.
pub(crate) fn choose_color(typed: &[OsString]) {
    let ours = typed.iter().take_while(|word| *word != "--");
    let mut words = ours.filter_map(|word| word.to_str());
    let mut chosen = Color::default();
    while let Some(word) = words.next() {
        let value = match word.strip_prefix("--color") {
            Some("") => words.next(),
            Some(rest) => rest.strip_prefix('='),
            None => continue,
        };
        if let Some(Ok(color)) = value.map(|value| Color::from_str(value, false)) {
            chosen = color;
        }
    }
    chosen.choose();
}

/// The command line with the texts of its help.
pub(crate) fn command() -> Command {
    help::of_program(plain())
}

/// The command line as its commands define it.
pub(crate) fn plain() -> Command {
    // `-V` prints the version of the program only: some subcommands use it for something else.
    let short = Arg::new("short-version").short('V').action(ArgAction::Version).hide(true);
    let color = Arg::new("color").long("color").value_name("WHEN").global(true);
    let color = color.value_parser(EnumValueParser::<Color>::new()).hide_possible_values(true);
    let color = color
        .hide_short_help(true)
        .help("Colours: auto, always or never [default: auto: on a terminal]");
    with_version(Cli::command()).arg(short).arg(color)
}

/// Adds the same `--version` flag to every subcommand and program name.
pub(crate) fn with_version(command: Command) -> Command {
    let flag = Arg::new("version").long("version").action(ArgAction::Version).global(true);
    command.arg(flag.help("Print the version").hide_short_help(true))
}

/// The name under which the program was started.
pub(crate) fn called_as() -> Option<String> {
    let name = std::env::args_os().next()?;
    Some(Path::new(&name).file_name()?.to_str()?.to_owned())
}

/// Parses the command line.
pub(crate) fn parse(typed: impl IntoIterator<Item = OsString>) -> Result<Cli, clap::Error> {
    let mut typed: Vec<OsString> = typed.into_iter().collect();
    choose_color(&typed);
    if typed.get(1).is_some_and(|verb| verb == "guc") {
        typed = hikyaku_guc::with_long_options(typed);
    }
    // In rsync -h beside other options is --human-readable.
    if typed.get(1..).is_some_and(|words| words == ["sync", "-h"]) {
        typed[2] = "--help".into();
    }
    let mut matches = command().try_get_matches_from(typed)?;
    Cli::from_arg_matches_mut(&mut matches).map_err(|error| error.format(&mut command()))
}

/// Prints help, the version or a usage error to the right stream.
pub(crate) fn explain(error: &clap::Error) -> Exit {
    explain_as(error, Code::Usage.into())
}

/// The same with a different exit code for usage errors.
pub(crate) fn explain_as(error: &clap::Error, misuse: Exit) -> Exit {
    let written = match error.kind() {
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            let _ = error.print();
            return misuse;
        }
        ErrorKind::DisplayVersion => stdout().write_all(VERSION.as_bytes()),
        _ if error.use_stderr() => {
            say(Tone::Error, usage::Misuse::of(error));
            return misuse;
        }
        _ => error.print(),
    };
    let written = written.and_then(|()| stdout().flush());
    match printed(written) {
        Ok(()) => Code::Success.into(),
        Err(error) => fail(&error),
    }
}
