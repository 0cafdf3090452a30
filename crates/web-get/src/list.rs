//! A list of URLs in a file or from standard input (`-i`), as wget and aria2c read it: a file on each line, with tabs between its
//! mirrors. Lines that begin with a blank are options of the file above, as aria2c has them: `out=`, `dir=` and `checksum=`.
//!
//! The list is read while the files are fetched, so it may have any length, and may come slowly.

use crate::download::{Job, Naming};
use crate::guests::Guests;
use anyhow::{Context, Error, Result, ensure};
use hikyaku_console::{ExitCode, Others, Role, misuse, with_remedy};
use hikyaku_fs::{Lines, PeerPath, Step};
use hikyaku_http::{Digest, Function};
use std::ffi::OsString;
use std::fmt::Display;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Octets of a line at most: a file with as many mirrors as a Metalink file may have, and usual URLs.
const LINE_BYTES_MAX: usize = 64 << 10;
/// Lines of options of a file at most.
const OPTIONS_MAX: usize = 64;
/// The time within which the options of a file have to follow its URL: they come with it, and the file must not wait for a
/// line that may come much later.
const OPTIONS_WITHIN: Duration = Duration::from_secs(1);

/// The files of a list, one after the other.
pub(crate) struct List {
    lines: Lines,
    /// Its name for the user.
    shown: String,
    /// Lines that were read.
    number: usize,
    /// A line that was read and belongs to the next file.
    ahead: Option<Vec<u8>>,
    /// It cannot be read any more.
    is_broken: bool,
}

/// A file of a list.
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct Entry {
    /// The list and the number of the line.
    pub(crate) place: String,
    /// Its URLs.
    pub(crate) urls: Vec<OsString>,
    options: Vec<String>,
}

impl List {
    /// Opens a list; `-` is standard input.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let shown = match path.as_os_str() == "-" {
            true => "standard input".to_owned(),
            false => path.display().to_string(),
        };
        let lines = Lines::open(path, LINE_BYTES_MAX);
        let lines = lines.with_context(|| format!("cannot read {shown}"))?;
        Ok(Self { lines, shown, number: 0, ahead: None, is_broken: false })
    }

    /// Its name for the user.
    pub(crate) fn shown(&self) -> &str {
        &self.shown
    }

    /// The next file. `None` at the end of the list, or if `goes_on` has returned false.
    pub(crate) fn next(&mut self, goes_on: &dyn Fn() -> bool) -> Result<Option<Entry>> {
        let line = loop {
            let Some(line) = self.line(goes_on)? else { return Ok(None) };
            if !is_empty(&line) {
                break line;
            }
        };
        let place = format!("{}, line {}", self.shown, self.number);
        if is_option(&line) {
            let text =
                format!("{place}: an option without a URL above it, or a second later than that");
            return Err(misuse(text, "the URL and its options together"));
        }
        let urls = line.split(|&byte| byte == b'\t').map(<[u8]>::trim_ascii);
        let urls = urls.filter(|url| !url.is_empty());
        let urls = urls.map(|url| OsString::from_vec(url.to_vec())).collect();
        let mut options = Vec::new();
        let begin = Instant::now();
        let waits = || goes_on() && begin.elapsed() < OPTIONS_WITHIN;
        while let Some(line) = self.line(&waits)? {
            if !is_option(&line) {
                self.number -= 1;
                self.ahead = Some(line);
                break;
            }
            if !is_empty(&line) {
                ensure!(options.len() < OPTIONS_MAX, "{place}: more than {OPTIONS_MAX} options");
                options.push(String::from_utf8_lossy(line.trim_ascii()).into_owned());
            }
        }
        Ok(Some(Entry { place, urls, options }))
    }

    fn line(&mut self, goes_on: &dyn Fn() -> bool) -> Result<Option<Vec<u8>>> {
        let line = match self.ahead.take() {
            Some(line) => line,
            None if self.is_broken => return Ok(None),
            None => {
                let step = self.lines.next(goes_on).inspect_err(|_| self.is_broken = true);
                match step.with_context(|| format!("cannot read {}", self.shown))? {
                    Step::Line(line) => line,
                    Step::Awaited | Step::End => return Ok(None),
                }
            }
        };
        self.number += 1;
        Ok(Some(line))
    }
}

/// Whether a line is empty or a comment.
fn is_empty(line: &[u8]) -> bool {
    let line = line.trim_ascii();
    line.is_empty() || line.starts_with(b"#")
}

fn is_option(line: &[u8]) -> bool {
    line.first().is_some_and(|byte| matches!(byte, b' ' | b'\t'))
}

impl Entry {
    /// The job with the options of this file. `dir` is the directory of the command.
    // fuzz: none, the user's own list
    pub(crate) fn apply(&self, mut job: Job, dir: &Path) -> Result<Job> {
        let (mut dir, mut out) = (dir.to_owned(), None);
        for option in &self.options {
            let (name, value) = option.split_once('=').unwrap_or((option, ""));
            let value = value.trim();
            match name.trim() {
                "dir" => dir = PathBuf::from(value),
                "out" => out = Some(value),
                "checksum" => job.expect.digests.push(checksum(value)?),
                name => refuse(name, value)?,
            }
        }
        if let Some(out) = out {
            let path = PeerPath::new(out.as_bytes());
            let path =
                path.with_context(|| format!("out={out} is not a path below a directory"))?;
            if let Some(parent) = path.parent() {
                dir.push(OsString::from_vec(parent.as_bytes().to_vec()));
            }
            job.naming = Naming::Within(dir, Some(path.name()));
        } else if let Naming::Within(place, _) = &mut job.naming {
            *place = dir;
        }
        Ok(job)
    }

    /// Whether it has options.
    pub(crate) const fn has_options(&self) -> bool {
        !self.options.is_empty()
    }

    /// The error of this file.
    pub(crate) fn failed(&self, error: Error) -> Error {
        error.context(self.place.clone())
    }
}

/// The digest in `checksum=TYPE=DIGEST`.
fn checksum(value: &str) -> Result<Digest> {
    let digest = value.split_once('=').and_then(|(function, hex)| {
        let function = Function::parse(function).filter(|it| *it != Function::Sha1)?;
        Digest::parse(function, hex)
    });
    digest.ok_or_else(|| {
        misuse(
            format!("checksum={value} cannot be compared"),
            "checksum=sha-256=HEX or sha-512=HEX",
        )
    })
}

/// Refuses an option of aria2c that a file cannot have, unless it asks for what is always so.
fn refuse(name: &str, value: &str) -> Result<()> {
    let known = Guests::OPTIONS.iter().find(|other| other.id == name);
    let no = |remedy: &dyn Display| {
        let text = format!("{name}={value} is not possible for one file of a list");
        Err(with_remedy(ExitCode::Usage.error(text), Some(remedy)))
    };
    match known.map(|other| other.role) {
        Some(Role::Always | Role::Idle(_)) => Ok(()),
        Some(Role::Refused(_, remedy)) => no(&format!("{remedy} for all files, without that line")),
        None => no(&"the options of the command, which hold for all files"),
    }
}

#[cfg(test)]
mod tests;
