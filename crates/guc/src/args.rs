//! The command line.

use crate::checksum::Checksum;
use crate::other_args::GlobusUrlCopy;
use clap::{Args, ValueEnum};
use hikyaku_console::{Audience, FormArgs, Given, OtherArgs};
use hikyaku_gridftp::Privacy;
use hikyaku_mover::{ClientParameters, Parameters};
use hikyaku_reach::FamilyArgs;
use hikyaku_store_ftp::{Connections, Limits, Retry};
use hikyaku_transfer::Pass;
use hikyaku_tuner::PaperOptions;
use hikyaku_units::{DataSize, Rate, parse_duration, parse_limit, parse_timeout};
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::time::Duration;

/// Copy files from and to GridFTP and FTP servers, as globus-url-copy does.
///
/// One of the two URLs, or both, are of servers (ftp://HOST/PATH or gsiftp://HOST/PATH); a local file is file:///PATH, or just
/// a path. Between two servers, the data do not pass through this host. A directory ends in a slash and needs -r. The last
/// part of a source may be a pattern (*.h5); -r includes directories.
///
/// A file goes through several TCP connections at once. Their number is tuned while files are transferred: it begins with 16, and
/// grows while new connections bring as much as those before. -p fixes it; -apt-tuner paper uses the published rule. A server of
/// plain FTP, without GridFTP's extended block mode, sends and takes a file through one connection.
///
/// If a copy is interrupted, the same command goes on with what is missing.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct GucArgs {
    #[command(flatten)]
    pub(crate) given: Given,
    // As an attribute, because rustdoc would take the brackets for links.
    #[arg(value_name = "SOURCE", help = SOURCE, required_unless_present_any = ["list", "file_of_urls"])]
    pub(crate) source: Option<OsString>,
    /// Where to: the same forms
    #[arg(value_name = "TARGET", required_unless_present_any = ["list", "file_of_urls"])]
    pub(crate) target: Option<OsString>,
    /// Copy the pairs of this file, one on each line: a source and a target, in double quotes if they have spaces. A line that
    /// begins with # is a comment; - is standard input
    #[arg(short, long = "file-of-urls", value_name = "FILE", conflicts_with_all = ["source", "target"])]
    pub(crate) file_of_urls: Option<PathBuf>,
    /// Print the names in a directory of a server, below each other; with -r those of its directories as well
    #[arg(long, value_name = "URL", conflicts_with_all = ["source", "target", "file_of_urls"])]
    pub(crate) list: Option<OsString>,
    /// Use N data connections, and do not tune their number
    #[arg(short = 'p', long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=512))]
    pub(crate) parallel: Option<u32>,
    /// Do not tune the number of data connections: use one, or as many as -p says
    #[arg(long)]
    pub(crate) noapt: bool,
    // As an attribute, because rustdoc would take the brackets for a link.
    #[arg(long, value_name = "RULE", help = TUNER, value_enum, conflicts_with_all = ["parallel", "noapt"])]
    pub(crate) apt_tuner: Option<Rule>,
    #[arg(long, visible_alias = "n0", value_name = "N", help = FIRST,
          value_parser = clap::value_parser!(u32).range(1..=512), conflicts_with_all = ["parallel", "noapt"])]
    pub(crate) apt_n0: Option<u32>,
    #[arg(long, visible_alias = "alpha", value_name = "X", help = FACTOR,
          value_parser = factor, conflicts_with_all = ["parallel", "noapt"])]
    pub(crate) apt_alpha: Option<f64>,
    #[arg(long, visible_alias = "delta", value_name = "TIME", help = CHUNK,
          value_parser = seconds, conflicts_with_all = ["parallel", "noapt"])]
    pub(crate) apt_delta: Option<Duration>,
    // As an attribute, because rustdoc would take the brackets for a link.
    #[arg(long, value_name = "N", help = MOST, value_parser = clap::value_parser!(u32).range(1..=512))]
    pub(crate) max_connections: Option<u32>,
    /// At most this rate (300mbit, 10MB)
    #[arg(long, value_name = "RATE", value_parser = parse_limit)]
    pub(crate) rate: Option<Rate>,
    /// The address family of the servers.
    #[command(flatten)]
    pub(crate) family: FamilyArgs,
    /// Size of TCP's buffers at both ends, in bytes; without it the kernels choose
    #[arg(long, visible_alias = "tcp-buffer-size", value_name = "SIZE")]
    pub(crate) tcp_bs: Option<DataSize>,
    /// Size of the blocks of an upload, in bytes
    #[arg(long, visible_alias = "block-size", value_name = "SIZE", default_value = "262144")]
    pub(crate) bs: DataSize,
    /// Copy the part of a file that begins at this byte, to the same place of the target
    #[arg(long, visible_alias = "partial-offset", value_name = "SIZE", default_value = "0")]
    pub(crate) off: DataSize,
    /// Copy so many bytes of a file
    #[arg(long, visible_alias = "partial-length", value_name = "SIZE")]
    pub(crate) len: Option<DataSize>,
    /// Copy N files at once, each through a session and data connections of its own
    #[arg(long, visible_alias = "concurrency", value_name = "N", default_value_t = 1,
          value_parser = clap::value_parser!(u32).range(1..=64))]
    pub(crate) cc: u32,
    /// Ask for N small files of a directory before the first one is complete; 1: only for the next one
    #[arg(long, visible_alias = "pipeline", value_name = "N", num_args = 0..=1, require_equals = true,
          default_value_t = 20, default_missing_value = "20", value_parser = clap::value_parser!(u32).range(1..=64))]
    pub(crate) pp: u32,
    /// Print the paths of the files that would be copied, and copy nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Copy directories with all that is in them
    #[arg(short, long)]
    pub(crate) recurse: bool,
    /// Make missing directories of the target
    #[arg(long, visible_alias = "create-dest")]
    pub(crate) cd: bool,
    /// Copy only files that the target does not have, or has in another version (--sync-level)
    #[arg(long)]
    pub(crate) sync: bool,
    // As an attribute, because rustdoc would take the brackets for a link.
    #[arg(long, value_name = "LEVEL", help = LEVEL, requires = "sync",
          value_parser = clap::value_parser!(u8).range(0..=3))]
    pub(crate) sync_level: Option<u8>,
    /// Go on with the next file if one cannot be copied
    #[arg(short, long)]
    pub(crate) continue_on_error: bool,
    /// Write straight to the final name of a file, not to a temporary name that is renamed at the end
    #[arg(long)]
    pub(crate) inplace: bool,
    /// Compare each copy with its source by this checksum, which servers must be able to compute (CKSM)
    #[arg(long, value_name = "HOW", value_enum)]
    pub(crate) cksm: Option<Checksum>,
    // As an attribute, because rustdoc would take the brackets for a link.
    #[arg(long, visible_alias = "restart-retries", value_name = "N", help = RETRIES)]
    pub(crate) rst_retries: Option<u32>,
    /// Time before it is tried again
    #[arg(long, visible_alias = "restart-interval", value_name = "TIME", default_value = "2", value_parser = seconds)]
    pub(crate) rst_interval: Duration,
    /// Give a server up after so long without a byte
    #[arg(long, visible_alias = "stall-timeout", value_name = "TIME", default_value = "60", value_parser = parse_timeout)]
    pub(crate) st: Duration,
    /// Let all data nodes of a striped server send or store a file at once; -p and the tuner's number are of each node
    #[arg(long)]
    pub(crate) stripe: bool,
    /// Encrypt the data connections of gsiftp://; without it both ends are authenticated and the data are in the clear
    #[arg(long, visible_alias = "data-channel-private", conflicts_with = "nodcau")]
    pub(crate) dcpriv: bool,
    /// Protect the data connections of gsiftp:// against changes; servers encrypt them as well
    #[arg(long, visible_alias = "data-channel-safe", conflicts_with_all = ["nodcau", "dcpriv"])]
    pub(crate) dcsafe: bool,
    /// Accept that data connections of gsiftp:// are neither authenticated nor encrypted
    #[arg(long, visible_alias = "no-data-channel-authentication")]
    pub(crate) nodcau: bool,
    /// Let data connections go to, and come from, hosts that the server names
    #[arg(long)]
    pub(crate) trust_pasv: bool,
    /// Show progress, also if standard error is no terminal, and each decision on the number of connections
    #[arg(short = 'v', long, visible_aliases = ["verbose-perf", "verbose"])]
    pub(crate) vb: bool,
    /// Show nothing but errors
    #[arg(short, long, conflicts_with = "vb")]
    pub(crate) quiet: bool,
    /// Show the commands and replies of the control connection
    #[arg(long, visible_alias = "debugftp")]
    pub(crate) dbg: bool,
    #[command(flatten)]
    pub(crate) form: FormArgs,
    /// Options of globus-url-copy that ask for what is always so, or are refused
    #[command(flatten)]
    pub(crate) other: OtherArgs<GlobusUrlCopy>,
}

const SOURCE: &str = "What to copy: ftp://[USER[:PASSWORD]@]HOST[:PORT]/PATH, gsiftp://HOST[:PORT]/PATH or file:///PATH";

const LEVEL: &str = "What another version is: 0, no file; 1, another size; 2, another size or an older time; 3, another size or checksum (CKSM, sha256 unless -cksm says) [default: 2]";

const TUNER: &str = "How the number of data connections is found: ours, in steps while data flow; paper, the published rule, chunk by chunk [default: ours, or paper if an option of its own is given]";
const FIRST: &str = "Published rule: connections of the first chunk [default: 4]";
const FACTOR: &str = "Published rule: factor by which the number of connections grows until goodput falls, above 1 [default: 2]";
const CHUNK: &str =
    "Published rule: time that a chunk should take, in seconds or with a unit [default: 3]";
const MOST: &str = "Never use more data connections than this [default: 64; 128 by the published rule, or what -p says]";

/// A rule for the number of data connections.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Rule {
    /// It grows while new connections bring as much as those before.
    Ours,
    /// GridFTP with automatic parallelism tuning (Osaka University, 2007).
    Paper,
}

const RETRIES: &str = "How often a transfer is tried again after a failure that may pass [default: 5; 0 if nobody listens at the server's port]";

/// Attempts after a failure that may pass, if the user does not say how many.
const RETRIES_DEFAULT: u32 = 5;

const EXAMPLES: &str = "\
Options of more than one letter may begin with one dash, as globus-url-copy's
do: -tcp-bs 65536.

Examples:
  hikyaku guc ftp://data.example.org/big.tar file:///tmp/big.tar
  hikyaku guc -p 8 file:///tmp/big.tar ftp://me:secret@data.example.org/in/
  hikyaku guc -cc 4 'ftp://data.example.org/run7/*.h5' file:///tmp/run7/
  hikyaku guc -r -cd ftp://data.example.org/set/ file:///tmp/set/
  hikyaku guc -dcpriv gsiftp://data.example.org/big.tar file:///tmp/big.tar
  hikyaku guc -cksm sha256 ftp://a.example.org/b.tar ftp://b.example.org/
  hikyaku guc -sync -r -cd ftp://data.example.org/set/ file:///tmp/set/
  hikyaku guc -f list-of-pairs
  hikyaku guc -list ftp://data.example.org/set/";

impl GucArgs {
    /// The rule for the number of data connections.
    pub(crate) fn connections(&self) -> Connections {
        let default = PaperOptions::default();
        let chunk = self.apt_delta.unwrap_or(default.chunk);
        if let Some(n) = self.fixed() {
            return Connections::Fixed { n, chunk };
        }
        if self.rule() == Rule::Ours {
            let all = Limits::default();
            let most = self.max_connections.unwrap_or(all.most);
            return Connections::Tuned(Limits { most, ..all });
        }
        Connections::Published(PaperOptions {
            first: self.apt_n0.unwrap_or(default.first),
            alpha: self.apt_alpha.unwrap_or(default.alpha),
            chunk,
            window: self.tcp_bs.unwrap_or(default.window),
            cap: self.max_connections.unwrap_or(default.cap),
        })
    }

    /// The rule by which the number is tuned.
    fn rule(&self) -> Rule {
        let has_own = self.apt_n0.is_some() || self.apt_alpha.is_some() || self.apt_delta.is_some();
        self.apt_tuner.unwrap_or(if has_own { Rule::Paper } else { Rule::Ours })
    }

    /// The number of data connections, if the user has chosen it.
    fn fixed(&self) -> Option<u32> {
        let wanted = self.parallel.or_else(|| self.noapt.then_some(1))?;
        Some(wanted.min(self.max_connections.unwrap_or(u32::MAX)))
    }

    /// How data travel.
    pub(crate) fn parameters(&self) -> Parameters {
        let client = ClientParameters { rate: self.rate, ..ClientParameters::default() };
        Parameters { client, ..Parameters::default() }
    }

    /// Copy or dry run.
    pub(crate) const fn pass(&self) -> Pass {
        if self.dry_run { Pass::DryRun } else { Pass::Copy }
    }

    /// Attempts after a failure that may pass.
    pub(crate) const fn retry(&self) -> Retry {
        let attempts = match self.rst_retries {
            Some(retries) => retries,
            None => RETRIES_DEFAULT,
        };
        Retry { attempts, interval: self.rst_interval }
    }

    /// How data connections of gsiftp:// are protected; `None`: not at all.
    pub(crate) const fn privacy(&self) -> Option<Privacy> {
        match (self.nodcau, self.dcpriv, self.dcsafe) {
            (true, ..) => None,
            (_, true, _) => Some(Privacy::Private),
            (.., true) => Some(Privacy::Safe),
            _ => Some(Privacy::Clear),
        }
    }

    pub(crate) const fn audience(&self) -> Audience {
        self.form.form().audience(match self {
            Self { quiet: true, .. } => Audience::Quiet,
            Self { vb: true, .. } => Audience::Lines,
            _ => Audience::Person,
        })
    }
}

/// Writes options of several letters that begin with one dash, as globus-url-copy takes them, with two.
pub fn with_long_options(words: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let mut is_over = false;
    let long = |word: OsString| {
        is_over |= word == "--";
        let is_long = |text: &str| {
            let name = text.strip_prefix('-')?;
            let mut letters = name.chars();
            let (first, second) = (letters.next()?, letters.next()?);
            // `-p4` is an option and its value.
            (first.is_ascii_alphabetic() && second.is_ascii_alphabetic() || name.starts_with("n0"))
                .then(|| OsString::from(format!("--{name}")))
        };
        let name = OsStr::to_str(&word).filter(|_| !is_over).and_then(is_long);
        name.unwrap_or(word)
    };
    words.into_iter().map(long).collect()
}

// fuzz: none, the user's own words
fn seconds(text: &str) -> Result<Duration, String> {
    parse_duration(text).map_err(|error| error.to_string())
}

fn factor(text: &str) -> Result<f64, String> {
    let factor = text.parse().map_err(|_| "not a number".to_owned())?;
    if factor > 1.0 && factor <= 16.0 {
        Ok(factor)
    } else {
        Err("not from above 1 to 16".to_owned())
    }
}

#[cfg(test)]
pub(crate) mod tests;
