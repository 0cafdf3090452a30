//! What users type after `hikyaku sync`.

mod kept;
mod limit;

use crate::filter::{BadRule, Rules};
use crate::line::Escape;
use crate::names::{Depth, Names};
use crate::options::{
    Copied, Deletion, EmptySource, Excluded, Existing, Modes, OddTimes, Options, Quick, Sizes,
    Sources, Times, Window,
};
use crate::print::Ending;
use crate::rsh::ssh_options;
use crate::rsync::Rsync;
use crate::rule_args::RuleArgs;
use crate::run::usage;
use anyhow::Result;
use clap::{ArgAction, Args};
use hikyaku_console::{Audience, FormArgs, Given, Noise, OtherArgs};
use hikyaku_copy::By;
use hikyaku_reach::bootstrap::BootstrapArgs;
use hikyaku_reach::options::{pipes, silence};
use hikyaku_reach::settings::Typed;
use hikyaku_reach::tcp::Pipes;
use hikyaku_reach::{FamilyArgs, SshArgs, SshOptions, WayPlan};
use hikyaku_units::{DataSize, Rate, parse_limit};
use kept::Kept;
use limit::{Limit, limit};
use std::ffi::OsString;
use std::path::PathBuf;

/// What is printed of each name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Printing {
    /// Nothing.
    Nothing,
    /// Its path.
    Names,
    /// Eleven letters, and its path.
    Letters,
}

/// Whether hosts behind ssh take part.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Hosts {
    None,
    Some,
}

/// Makes a tree like another one, with rsync's habits.
#[derive(Clone, Debug, Args)]
#[command(after_help = EXAMPLES, disable_version_flag = true, disable_help_flag = true)]
#[command(args_override_self = true, override_usage = "hikyaku sync [OPTIONS] SRC DST")]
pub struct SyncArgs {
    // The first field: the others take their values out of what was parsed.
    #[command(flatten)]
    pub(crate) given: Given,
    /// A file or directory, and the directory that receives it: a local path, USER@HOST:PATH, hikyaku://HOST/PATH,
    /// gfarm:///PATH or s3://BUCKET/PATH. SRC with a slash at its end is what is in the directory
    #[arg(required = true, num_args = 2.., value_names = ["SRC", "DST"])]
    pub(crate) paths: Vec<OsString>,

    #[command(flatten)]
    what: What,
    #[command(flatten)]
    which: Which,
    #[command(flatten)]
    deleting: Deleting,
    #[command(flatten)]
    far: Far,
    #[command(flatten)]
    ssh: SshArgs,
    #[command(flatten)]
    form: FormArgs,
    #[command(flatten)]
    _others: OtherArgs<Rsync>,
}

/// What is kept.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "As in rsync")]
struct What {
    // The first one: the others take their values out of what was parsed.
    #[command(flatten)]
    kept: Kept,
    /// Change nothing, and say what would be changed
    #[arg(short = 'n', long)]
    dry_run: bool,
    /// Print what differs of each name in eleven letters
    #[arg(short = 'i', long)]
    itemize_changes: bool,
    /// Print each name; twice also how the far side is reached
    #[arg(short = 'v', long, action = ArgAction::Count)]
    verbose: u8,
    /// Print errors only
    #[arg(short = 'q', long)]
    quiet: bool,
    /// Print the bytes of names beyond ASCII as they are, whatever the locale
    #[arg(short = '8', long = "8-bit-output", hide = true)]
    eight_bit: bool,
    /// Keep a file that is replaced under its name and a suffix
    #[arg(short = 'b', long)]
    backup: bool,
    /// The suffix of --backup
    #[arg(long, value_name = "SUFFIX", default_value = "~")]
    suffix: String,
    /// Print help
    #[arg(long, action = ArgAction::HelpLong)]
    help: Option<bool>,
}

/// Which files are copied.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Which files")]
struct Which {
    /// Leave files alone that are newer at the target
    #[arg(short = 'u', long)]
    update: bool,
    /// Make no new names
    #[arg(long, alias = "ignore-non-existing", conflicts_with = "ignore_existing")]
    existing: bool,
    /// Leave files alone that are there
    #[arg(long)]
    ignore_existing: bool,
    /// Files of the same size are the same
    #[arg(long)]
    size_only: bool,
    /// No file is taken for the same: all are copied
    #[arg(short = 'I', long)]
    ignore_times: bool,
    /// Compare contents, and not sizes and times: files of one size are read at both ends
    #[arg(short = 'c', long)]
    checksum: bool,
    /// Copy only what is named in FILE, a line each, relative to SRC ('-' is standard input)
    #[arg(long, value_name = "FILE", conflicts_with_all = ["delete", "delete_excluded"])]
    files_from: Option<PathBuf>,
    /// The names of --files-from end with a zero byte
    #[arg(short = '0', long, requires = "files_from")]
    from0: bool,
    /// Times that differ by no more than so many seconds are the same; -1 compares nanoseconds, not with ssh
    #[arg(
        short = '@',
        long,
        value_name = "SECONDS",
        default_value_t = 0,
        allow_negative_numbers = true
    )]
    modify_window: i64,
    /// Leave out files that are larger (10m, 1.5g)
    #[arg(long, value_name = "SIZE")]
    max_size: Option<DataSize>,
    /// Leave out files that are smaller
    #[arg(long, value_name = "SIZE")]
    min_size: Option<DataSize>,
    #[command(flatten)]
    rules: RuleArgs,
}

/// What becomes of names that the source does not have, and of its files.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Deletion")]
struct Deleting {
    /// Delete names that the source does not have, in directories that were read whole, when all else is done
    #[arg(long, visible_alias = "del", aliases = ["delete-after", "delete-delay", "delete-during", "delete-before"])]
    delete: bool,
    /// Delete also what rules leave out
    #[arg(long)]
    delete_excluded: bool,
    /// If more names would have to be deleted, delete none, and end with 25
    #[arg(long, value_name = "COUNT")]
    max_delete: Option<u64>,
    /// Delete also if the source has no file at all
    #[arg(long)]
    delete_all: bool,
    /// Remove files and links of the source that this run has copied
    #[arg(long)]
    remove_source_files: bool,
}

/// How the far side is reached.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "The far side")]
struct Far {
    /// ssh with its options: -e 'ssh -p 2222 -i key'
    #[arg(short = 'e', long, value_name = "COMMAND")]
    rsh: Option<String>,
    /// Where hikyaku is on the far side
    #[arg(long, value_name = "PATH")]
    remote_path: Option<String>,
    #[command(flatten)]
    bootstrap: BootstrapArgs,
    /// Send the data without UDP, as where it is blocked
    #[arg(long, conflicts_with = "via")]
    no_udp: bool,
    /// The carrier of the data (auto)
    #[arg(long, value_name = "WAY", value_enum)]
    via: Option<By>,
    /// How many TCP connections carry the data where TCP does: 1 to 64, or as many as bring something (auto)
    #[arg(long = "connections", alias = "pipes", value_name = "N", value_parser = pipes)]
    pipes: Option<Pipes>,
    #[command(flatten)]
    family: FamilyArgs,
    /// At most this rate (300mbit, 10MB)
    #[arg(long, value_name = "RATE", conflicts_with = "bwlimit", value_parser = parse_limit)]
    rate: Option<Rate>,
    /// At most this rate, as in rsync: a bare number is KiB a second, 5m and 5MB are bytes; 0 is no limit
    #[arg(long, value_name = "KIB", value_parser = limit)]
    bwlimit: Option<Limit>,
    /// Give a connection up that was silent for so many seconds
    #[arg(long, value_name = "SECONDS")]
    timeout: Option<u64>,
    /// Server of the bucket, if it is not Amazon's: MinIO, Ceph, Wasabi and others [default: AWS_ENDPOINT_URL]
    #[arg(long, value_name = "URL")]
    endpoint: Option<String>,
}

const EXAMPLES: &str = "\
Examples:
  hikyaku sync -a run7/ anna@far:/data/run7  what is in run7, into /data/run7
  hikyaku sync -ani --delete run7/ far:run7
      say what that would do, and delete
  hikyaku sync -a --exclude '*.tmp' far:run7 .
      fetch run7 without temporary files
  hikyaku sync -a --delete hikyaku://node1/run7/ hikyaku://node2/run7
      from a daemon to another one, through this machine

Options of rsync that mean nothing here, such as -z, are noted. Others are
refused, and the message says what comes nearest.

Exit codes: 0 done, 1 usage, 2 failure, 5 and 6 as of all commands; as of
rsync 23 some names failed, 24 some names had gone, 25 more than --max-delete
would have to be deleted.";

impl SyncArgs {
    /// The messages beside the names. The first flag `-v` prints names.
    pub const fn says(&self) -> Noise {
        Noise::new(self.what.quiet, self.what.verbose.saturating_sub(1))
    }

    /// How hosts behind ssh are reached, for the sessions and for the copies of contents.
    ///
    /// # Errors
    ///
    /// The command of `-e` is not understood, or the time of `--timeout` is too short.
    pub(crate) fn way(&self, hosts: Hosts) -> Result<WayPlan> {
        let far = &self.far;
        let ssh = match &far.rsh {
            Some(command) if hosts == Hosts::Some => {
                ssh_options(command).map_err(|error| usage(&error.to_string()))?
            }
            _ => SshOptions::default(),
        };
        let ssh = self.ssh.over(ssh);
        // rsync takes 0 for no limit.
        let timeout = far.timeout.filter(|secs| *secs > 0);
        let timeout = timeout.map(|secs| silence(&format!("{secs}s"))).transpose();
        let timeout =
            timeout.map_err(|error| usage(&format!("--timeout: {error}; try: --timeout 60")))?;
        Ok(WayPlan {
            ssh: SshOptions {
                verbose: self.says().verbosity(),
                family: far.family.family().or(ssh.family),
                ..ssh
            },
            carriers: self.by().carriers(),
            pipes: far.pipes.unwrap_or_default(),
            typed: Typed {
                rate: far.rate.or_else(|| far.bwlimit.and_then(Limit::rate)),
                timeout,
                udp: far.no_udp.then_some(false),
                remote_path: far.remote_path.clone(),
                ..Typed::default()
            },
            bootstrap: far.bootstrap.clone(),
            ..WayPlan::default()
        })
    }

    /// The carrier of the data.
    pub(crate) fn by(&self) -> By {
        self.far.via.unwrap_or_default()
    }

    /// What is to be the same.
    pub(crate) fn options(&self) -> Options {
        let (what, which) = (&self.what, &self.which);
        let kept = what.kept;
        Options {
            is_recursive: kept.recursive || kept.archive || which.files_from.is_some(),
            keeps_links: kept.links,
            keeps_modes: kept.perms,
            keeps_times: kept.times,
            is_update: which.update,
            existing: match (which.existing, which.ignore_existing) {
                (true, _) => Existing::OnlyThese,
                (_, true) => Existing::LeftAlone,
                _ => Existing::All,
            },
            quick: match (which.ignore_times, which.size_only) {
                _ if which.checksum => Quick::Content,
                // As in rsync, in whatever order they are given.
                (_, true) => Quick::Size,
                (true, _) => Quick::Never,
                _ => Quick::SizeAndTime,
            },
            window: u64::try_from(which.modify_window).map_or(Window::Exact, Window::Seconds),
            sizes: Sizes {
                min: which.min_size.map_or(0, DataSize::bytes),
                max: which.max_size.map_or(u64::MAX, DataSize::bytes),
            },
            is_rehearsal: what.dry_run,
            deletion: self.deletion(),
            backup: what.backup.then(|| what.suffix.clone()),
            sources: match self.deleting.remove_source_files {
                true => Sources::Removed,
                false => Sources::Stay,
            },
            copied: Copied::Nothing,
            odd_times: OddTimes::Copied,
            modes: Modes::All,
            times: Times::All,
        }
    }

    fn deletion(&self) -> Option<Deletion> {
        let deleting = &self.deleting;
        let deletion = Deletion {
            most: deleting.max_delete,
            excluded: match deleting.delete_excluded {
                true => Excluded::Deleted,
                false => Excluded::Stay,
            },
            empty: match deleting.delete_all {
                true => EmptySource::Meant,
                false => EmptySource::Refused,
            },
        };
        (deleting.delete || deleting.delete_excluded).then_some(deletion)
    }

    /// The only names that take part, if not all do.
    pub(crate) fn names(&self) -> Result<Option<Names>> {
        let Some(path) = &self.which.files_from else { return Ok(None) };
        // -a has no -r in it where there is a list, as in rsync.
        let depth = if self.what.kept.recursive { Depth::Tree } else { Depth::Name };
        Names::read(path, if self.which.from0 { 0 } else { b'\n' }, depth).map(Some)
    }

    /// The rules of which names take part.
    pub(crate) fn rules(&self) -> std::result::Result<Rules, BadRule> {
        self.which.rules.rules()
    }

    /// Whether each name is printed, with letters or without.
    pub(crate) const fn printing(&self) -> Printing {
        let what = &self.what;
        if what.itemize_changes {
            Printing::Letters
        } else if !what.quiet && (what.verbose > 0 || what.dry_run) {
            Printing::Names
        } else {
            Printing::Nothing
        }
    }

    /// Which bytes of names are printed as they are.
    pub(crate) fn escape(&self) -> Escape {
        if self.what.eight_bit { Escape::EightBit } else { Escape::of_locale() }
    }

    /// What is printed at the end.
    pub(crate) const fn ending(&self) -> Ending {
        match (self.what.quiet, self.what.verbose, self.what.dry_run) {
            (true, ..) | (_, 0, _) => Ending::Nothing,
            (_, _, false) => Ending::Summary,
            (_, _, true) => Ending::Rehearsal,
        }
    }

    /// Whether nothing but errors is said.
    pub(crate) const fn is_quiet(&self) -> bool {
        self.what.quiet
    }

    /// The reader of the progress.
    pub(crate) const fn audience(&self) -> Audience {
        let words = if self.what.quiet { Audience::Quiet } else { Audience::Person };
        self.form.form().audience(words)
    }

    /// The service that has buckets, if the user names one.
    pub(crate) fn endpoint(&self) -> Option<String> {
        self.far.endpoint.clone()
    }
}

#[cfg(test)]
mod tests;
