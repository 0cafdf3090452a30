//! Contents are copied by `hikyaku cp`, which is given a list of names.

use crate::args::{Limit, SyncArgs};
use crate::ends::{Place, parsed};
use crate::options::{Copied as Kept, Options};
use crate::rsh;
use crate::run::usage;
use anyhow::{Context, Result};
use hikyaku_console::{ExitCode, Interrupt, Way};
use hikyaku_copy::{CopyArgs, OpenSftp};
use rustix::fs::{MemfdFlags, memfd_create};
use std::ffi::OsString;
use std::fs::File;
use std::io::Write;
use std::os::fd::AsRawFd;

/// What copies contents.
pub(crate) struct Copying<'a> {
    pub(crate) args: &'a SyncArgs,
    pub(crate) ends: [&'a Place; 2],
    /// What the one file is called at the target, if it has another name there.
    pub(crate) new_name: Option<&'a [u8]>,
    pub(crate) way: Way,
    pub(crate) interrupt: &'a Interrupt,
    /// The SFTP server of the far side, if contents go by it, too.
    pub(crate) server: Option<OpenSftp<'a>>,
}

/// Bytes and names of a list that go in one copy. A far side that reads them has bounds for both.
const LIST_BYTES_MAX: usize = 16 << 20;
const LIST_NAMES_MAX: usize = 1 << 19;

/// The bytes of the first part of a list, in which a zero byte follows each path.
fn part_len(list: &[u8]) -> usize {
    let ends = list.iter().enumerate().filter(|&(_, &byte)| byte == 0).map(|(at, _)| at + 1);
    let fits = ends.take(LIST_NAMES_MAX).take_while(|&end| end <= LIST_BYTES_MAX);
    fits.last().unwrap_or(list.len())
}

/// What is copied of the names of a list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum What {
    Files,
    /// Directories, without what is in them.
    Dirs,
}

/// Whether all files of a list were copied.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Copied {
    All,
    NotAll,
}

impl Copying<'_> {
    /// Copies the names of a list, in which a zero byte follows each path.
    ///
    /// # Errors
    ///
    /// Those of `hikyaku cp`. A file that could not be copied is none: the copy has told the user of it.
    pub(crate) fn run(&self, what: What, files: &[u8], options: &Options) -> Result<Copied> {
        let (mut rest, mut copied) = (files, Copied::All);
        while !rest.is_empty() {
            let (part, after) = rest.split_at(part_len(rest));
            if self.part(what, part, options)? == Copied::NotAll {
                copied = Copied::NotAll;
            }
            rest = after;
        }
        Ok(copied)
    }

    fn part(&self, what: What, files: &[u8], options: &Options) -> Result<Copied> {
        // The list is in memory, and so is what the copy makes of it; a file of the disk would have to be removed.
        let mut list = File::from(memfd_create("hikyaku-sync", MemfdFlags::CLOEXEC)?);
        list.write_all(files).context("cannot keep the list of files")?;
        let args: CopyArgs = parsed(self.words((what, &list), files, options)?)?;
        Ok(match hikyaku_copy::run_over(&args, self.interrupt, self.server)? {
            ExitCode::Success => Copied::All,
            _ => Copied::NotAll,
        })
    }

    fn words(
        &self,
        (what, list): (What, &File),
        files: &[u8],
        options: &Options,
    ) -> Result<Vec<OsString>> {
        let mut words: Vec<OsString> = vec!["cp".into()];
        if self.new_name.is_none() {
            let list = format!("/proc/self/fd/{}", list.as_raw_fd());
            words.extend(["--files-from".into(), list.into(), "-0".into()]);
        }
        words.extend(far_words(self.args, self.way)?);
        for port in self.ends.iter().filter_map(|place| place.port()) {
            words.extend(["-P".into(), port.to_string().into()]);
        }
        words.extend(match options.copied {
            Kept::Nothing => None,
            Kept::Time => Some(OsString::from("--times")),
            Kept::All => Some("-p".into()),
        });
        if what == What::Dirs {
            words.extend(["-r", "--exclude", "*"].map(OsString::from));
        }
        if self.args.is_quiet() {
            words.push("-q".into());
        }
        words.push("--".into());
        let names = match self.new_name {
            Some(name) => [files.strip_suffix(b"\0").unwrap_or(files), name],
            None => [&b""[..]; 2],
        };
        words.extend(self.ends.iter().zip(names).map(|(place, name)| place.word(name)));
        Ok(words)
    }
}

/// Flags that say how data go this way, as both `hikyaku cp` and `hikyaku sftp` take them.
pub(crate) fn far_words(args: &SyncArgs, way: Way) -> Result<Vec<OsString>> {
    let far = &args.far;
    let mut words: Vec<OsString> = Vec::new();
    if let Some(rate) = far.rate.or_else(|| far.bwlimit.and_then(Limit::rate)) {
        words.extend(["-l".into(), format!("{}bit", rate.bits_per_sec()).into()]);
    }
    words.extend((0..args.verbosity()).map(|_| OsString::from("-v")));
    if way == Way::Here {
        return Ok(words);
    }
    if let Some(command) = &far.rsh {
        words.extend(rsh::ssh_words(command).map_err(|error| usage(&error.to_string()))?);
    }
    if way == Way::Sftp {
        // Hikyaku cannot be started there. If the connection is lost, the copy makes another one of the same kind.
        words.extend(["--via".into(), "sftp".into()]);
        return Ok(words);
    }
    if let Some(secs) = far.timeout.filter(|secs| *secs > 0) {
        words.extend(["--timeout".into(), format!("{secs}s").into()]);
    }
    if let Some(path) = &far.remote_path {
        words.extend(["--remote-path".into(), path.into()]);
    }
    words.extend(far.bootstrap.words());
    if far.no_udp {
        words.push("--no-udp".into());
    }
    Ok(words)
}
