//! Contents are copied by `hikyaku cp`, which is given a list of names.

use crate::args::SyncArgs;
use crate::ends::{Place, parsed};
use crate::options::Options;
use anyhow::{Context, Result, bail};
use hikyaku_console::{ExitCode, Interrupt};
use hikyaku_copy::CopyArgs;
use rustix::fs::{MemfdFlags, memfd_create};
use std::ffi::OsString;
use std::fs::File;
use std::io::Write;
use std::os::fd::AsRawFd;

/// What copies contents.
pub(crate) struct Copying<'a> {
    pub(crate) args: &'a SyncArgs,
    pub(crate) ends: [&'a Place; 2],
    pub(crate) interrupt: &'a Interrupt,
}

/// Whether all files of a list were copied.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Copied {
    All,
    NotAll,
}

impl Copying<'_> {
    /// Copies the files of a list, in which a zero byte follows each path.
    ///
    /// # Errors
    ///
    /// Those of `hikyaku cp`. A file that could not be copied is none: the copy has told the user of it.
    pub(crate) fn run(&self, files: &[u8], options: &Options) -> Result<Copied> {
        if files.is_empty() {
            return Ok(Copied::All);
        }
        // The list is in memory, and so is what the copy makes of it; a file of the disk would have to be removed.
        let mut list = File::from(memfd_create("hikyaku-sync", MemfdFlags::CLOEXEC)?);
        list.write_all(files).context("cannot keep the list of files")?;
        let args: CopyArgs = parsed(self.words(&list, options)?)?;
        Ok(match hikyaku_copy::run(&args, self.interrupt)? {
            ExitCode::Success => Copied::All,
            _ => Copied::NotAll,
        })
    }

    fn words(&self, list: &File, options: &Options) -> Result<Vec<OsString>> {
        let far = &self.args.far;
        let list = format!("/proc/self/fd/{}", list.as_raw_fd());
        let mut words: Vec<OsString> =
            vec!["cp".into(), "--files-from".into(), list.into(), "-0".into()];
        words.extend(ssh_words(self.args)?);
        for port in self.ends.iter().filter_map(|place| place.port()) {
            words.extend(["-P".into(), port.to_string().into()]);
        }
        if options.keeps_modes && options.keeps_times {
            words.push("-p".into());
        }
        if self.args.is_quiet() {
            words.push("-q".into());
        }
        if let Some(rate) = far.rate.or(far.bwlimit) {
            words.extend(["-l".into(), format!("{}bit", rate.bits_per_sec()).into()]);
        }
        if let Some(secs) = far.timeout {
            words.extend(["--timeout".into(), format!("{secs}s").into()]);
        }
        words.push("--".into());
        words.extend(self.ends.iter().map(|place| place.word()));
        Ok(words)
    }
}

/// Flags that say how the far side is reached, as both `hikyaku cp` and `hikyaku sftp` take them.
pub(crate) fn ssh_words(args: &SyncArgs) -> Result<Vec<OsString>> {
    let far = &args.far;
    let mut words: Vec<OsString> = Vec::new();
    if let Some(command) = &far.rsh {
        let mut rest = command.split_whitespace();
        words.extend(["-S".into(), rest.next().context("-e: no command")?.into()]);
        while let Some(word) = rest.next() {
            let (flag, value) = word.split_at_checked(2).unwrap_or((word, ""));
            match flag {
                "-4" | "-6" | "-A" if value.is_empty() => words.push(flag.into()),
                "-p" | "-i" | "-F" | "-J" | "-o" => {
                    let value =
                        Some(value).filter(|value| !value.is_empty()).or_else(|| rest.next());
                    let value = value.with_context(|| format!("-e: {flag} has no value"))?;
                    let flag = if flag == "-p" { "-P" } else { flag };
                    words.extend([flag.into(), value.into()]);
                }
                "-q" | "-T" | "-x" | "-C" if value.is_empty() => {}
                _ => bail!("-e: '{word}' is not known here; -4 -6 -A -p -i -F -J -o are"),
            }
        }
    }
    if let Some(path) = &far.remote_path {
        words.extend(["--remote-path".into(), path.into()]);
    }
    if far.no_udp {
        words.push("--no-udp".into());
    }
    words.extend((0..args.verbosity()).map(|_| OsString::from("-v")));
    Ok(words)
}
