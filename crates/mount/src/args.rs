//! The command lines of `hikyaku mount` and `hikyaku umount`.

use crate::guests::Guests;
use clap::Args;
use hikyaku_console::{FormArgs, NoiseArgs, OtherArgs};
use hikyaku_session::ConnectArgs;
use hikyaku_units::{DataSize, parse_duration};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// Options of `hikyaku mount`.
#[derive(Clone, Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct MountArgs {
    /// The files to mount: hikyaku://HOST:PORT/PATH, CLUSTER:/PATH of the settings, or hikyaku://HOST,HOST/PATH for the union
    /// of the files of several servers, read-only
    #[arg(required_unless_present = "status")]
    pub source: Option<OsString>,
    /// The empty directory where it appears
    #[arg(required_unless_present = "status")]
    pub directory: Option<PathBuf>,
    /// Options as of mount(8), such as allow_other or default_permissions
    #[arg(short = 'o', value_name = "OPTION", value_delimiter = ',')]
    pub options: Vec<String>,
    /// Stay in the foreground; Ctrl-C unmounts
    #[arg(short = 'f', long)]
    pub foreground: bool,
    /// Memory for file contents. Default: a quarter of the machine's, at most 8 GiB
    #[arg(long, value_name = "SIZE")]
    pub cache: Option<DataSize>,
    /// Sizes, times and names may be as old as this
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = parse_duration)]
    pub attr_ttl: Duration,
    /// For files that do not change: like --attr-ttl, and files that were looked up within this time are opened for reading
    /// without a request to the server
    #[arg(long, value_name = "TIME", value_parser = parse_duration, conflicts_with = "attr_ttl")]
    pub attr_cache: Option<Duration>,
    /// Where locks of files are: at the server, so that they hold between mounts, or in this mount only, without a round trip
    #[arg(long, value_name = "WHERE", value_enum, default_value = "server")]
    pub locks: LocksAt,
    /// How long programs wait for a lost server; then they get an input/output error
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = parse_duration)]
    pub timeout: Duration,
    /// The carrier of the connections to the servers.
    #[command(flatten)]
    pub connect: ConnectArgs,
    /// Objects for programs: one when the mount is there and, with -f, one at its end.
    #[command(flatten)]
    pub form: FormArgs,
    /// The messages of the start.
    #[command(flatten)]
    pub noise: NoiseArgs,
    /// Put what programs write onto the disk of this machine first, below this directory, and send it from there: closing and
    /// fsync do not wait for the server, and what is left after a crash is sent by the next mount
    #[arg(long, value_name = "DIRECTORY")]
    pub stage: Option<PathBuf>,
    /// Print figures of the mount at this directory as JSON
    #[arg(long, value_name = "DIRECTORY", conflicts_with_all = ["source", "directory"])]
    pub status: Option<PathBuf>,
    /// Passed by the process in the foreground to the one in the background
    #[arg(long, hide = true)]
    pub is_background: bool,
    #[command(flatten)]
    pub(crate) others: OtherArgs<Guests>,
}

/// Where locks of files are.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum LocksAt {
    /// At the server.
    Server,
    /// In this mount.
    Local,
}

/// Options of `hikyaku umount`.
#[derive(Clone, Debug, Args)]
pub struct UmountArgs {
    /// The directory where it is mounted
    pub directory: PathBuf,
    /// Even if programs use it: their reads fail
    #[arg(long)]
    pub now: bool,
}

const EXAMPLES: &str = "\
Examples:
  hikyaku mount hikyaku://node1/data /mnt
      mount a directory of a server that runs 'hikyaku serve'
  hikyaku mount hikyaku://node1,node2/data /mnt
      the files of both; what both have comes from both
  ls -lR /mnt; cat /mnt/run7/frame.png  any program reads the files
  hikyaku mount --status /mnt           rate, cache and requests
  hikyaku mount --stage /var/stage hikyaku://node1/data /mnt
      programs write at the speed of the disk here
  hikyaku umount /mnt                   the end

Programs can write if the server runs with --writable. Files are read
ahead as far as the path holds, so large files come at its full rate. A
file that changes at the server while it is read gives the error ESTALE,
never a mixture.";
