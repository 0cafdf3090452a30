//! Files that are on no web server: of a host by ssh, of daemons, of a Gfarm file system, of a bucket, of a server of FTP.
//! `hikyaku cp` copies them, with the rules of `hikyaku get`.

use crate::args::GetArgs;
use crate::output::Output;
use crate::run::{is_metalink, lasting, of_several};
use crate::table::TABLE;
use anyhow::{Result, ensure};
use aws_lc_rs::digest::Context;
use hikyaku_console::{Audience, ExitCode, Interrupt, Tone, misuse, say, with_remedy};
use hikyaku_copy::{Condition, CopyPlan, Existing, SshHosts};
use hikyaku_http::Digest;
use hikyaku_mover::{Expected, File, ReadAt};
use hikyaku_reach::bootstrap::Asking;
use hikyaku_reach::settings;
use hikyaku_reach::tcp::Pipes;
use hikyaku_store::StoreError;
use hikyaku_stores::{Location, LocationError};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Bytes that are read at once.
const READ_BYTES: usize = 1 << 20;

/// The places of a command whose files are on no web server; empty if they are.
///
/// # Errors
///
/// An address has a mistake, or there are files of both sorts.
pub(crate) fn locations(args: &GetArgs) -> Result<Vec<Location>> {
    let words: Vec<&OsString> =
        args.urls.iter().filter(|word| !is_metalink(Path::new(word))).collect();
    let known = settings::of_user()?;
    let mut all = Vec::new();
    for word in words {
        match Location::named(word, &known) {
            Ok(Location::Web(_) | Location::Local(_)) | Err(LocationError::BadUrl(_)) => {}
            // It has an unknown scheme.
            Ok(Location::Remote(_)) if !is_host(word) => {}
            Ok(location) => all.push(location),
            Err(LocationError::NoHost(_) | LocationError::Destination(_)) if !is_host(word) => {}
            Err(error) => {
                let remedy = error.remedy().unwrap_or("hikyaku help get");
                return Err(with_remedy(error.into(), Some(remedy)));
            }
        }
    }
    let is_more =
        all.len() < args.urls.len() || !args.mirror.is_empty() || args.input_file.is_some();
    let is_mixed = !all.is_empty() && is_more;
    match is_mixed {
        true => Err(misuse(
            "files of web servers and others do not go together",
            "a command for each sort",
        )),
        false => Ok(all),
    }
}

/// Whether a word is a place of a host by ssh, or has a scheme of one.
// fuzz: none, the user's own words
fn is_host(word: &OsStr) -> bool {
    let bytes = word.as_bytes();
    let has_scheme = bytes.windows(3).any(|part| part == b"://");
    !has_scheme || bytes.starts_with(b"sftp://") || bytes.starts_with(b"scp://")
}

/// Fetches the files of these places.
pub(crate) fn run(
    args: &GetArgs,
    sources: Vec<Location>,
    interrupt: &Interrupt,
) -> Result<ExitCode> {
    ensure!(sources.len() == 1 || args.sha256.is_none(), of_several("--sha256"));
    ensure!(sources.len() == 1 || args.output.is_none(), of_several("-o"));
    let target = target(args)?;
    let output = args.output.as_deref().map(Output::of).transpose()?.flatten();
    if args.sha256.is_some() && output.is_some() {
        let text = "--sha256 is not possible where the bytes go to an output as they come";
        return Err(misuse(text, "-o FILE"));
    }
    let plan = plan(args, sources, target);
    let ways = hikyaku_copy::ways(&plan)?;
    let notes = TABLE.check(&args.given, &ways)?;
    notes.iter().filter(|_| !args.quiet).for_each(|note| say(Tone::Note, note));
    hikyaku_copy::copy(&plan, interrupt, None)
}

fn is_standard(args: &GetArgs) -> bool {
    args.output.as_deref().is_some_and(|path| path.as_os_str() == "-")
}

/// Where the files go.
fn target(args: &GetArgs) -> Result<PathBuf> {
    match &args.output {
        Some(_) if is_standard(args) => Ok(PathBuf::from("/dev/stdout")),
        Some(path) => {
            let text = || lasting(format!("{}: is a directory", path.display()));
            ensure!(!path.is_dir(), with_remedy(text(), Some("-d DIR")));
            Ok(path.clone())
        }
        None => {
            let dir = args.dir.clone().unwrap_or_else(|| PathBuf::from("."));
            ensure!(dir.is_dir(), lasting(format!("{} is no directory", dir.display())));
            Ok(dir)
        }
    }
}

fn plan(args: &GetArgs, sources: Vec<Location>, target: PathBuf) -> CopyPlan {
    let mut plan = CopyPlan::new(sources, Location::Local(target));
    plan.hosts = SshHosts::Storages;
    plan.condition = args.sha256.clone().map(|digest| Condition(Arc::new(HasDigest(digest))));
    plan.options.rules.existing = if args.force { Existing::Replaced } else { Existing::Refused };
    plan.report.audience = args.audience();
    let way = &mut plan.transport.way;
    way.typed.rate = args.rate.or(args.limit_rate);
    if args.given.ids().any(|id| id == "timeout") {
        way.typed.timeout = Some(args.timeout);
    }
    way.pipes = args.connections.map_or(Pipes::Auto, Pipes::Fixed);
    let is_person = matches!(plan.report.audience, Audience::Person | Audience::Lines);
    way.asking = if is_person { Asking::AtTerminal } else { Asking::Never };
    way.ssh.quiet = args.quiet;
    plan
}

/// A file must have this digest.
struct HasDigest(Digest);

impl Expected for HasDigest {
    fn is_met(&self, file: &File, read: &ReadAt<'_>) -> Result<bool, StoreError> {
        let mut sum: Context = self.0.function.begin();
        let (mut buffer, mut at) = (vec![0; READ_BYTES], 0);
        while at < file.seen.size {
            let length = read(at, &mut buffer)?;
            if length == 0 {
                break;
            }
            sum.update(&buffer[..length]);
            at += length as u64;
        }
        Ok(self.0.is(sum))
    }
}
