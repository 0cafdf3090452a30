//! `hikyaku cp --unfinished` and `--abandon`: copies of this machine's user that have not come to their end.

mod abandon;
mod told;

use crate::outcome::{code_of_failures, failed};
use anyhow::{Context, Result};
use hikyaku_console::{ExitCode, Form, Tone, print, say};
use hikyaku_fs::Shown;
use hikyaku_job::{Journaled, Known, Unfinished, unfinished};
use hikyaku_stores::Location;
use hikyaku_transfer::{FailureKind, Head, Part, Remains};
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// What is wanted of them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Wish {
    /// Tell of those to these targets; of all, if there are none.
    List(Vec<OsString>),
    /// Drop those to these targets; all, if there are none.
    Abandon(Vec<OsString>),
}

/// Does as is wished.
pub(crate) fn run(wish: &Wish, form: Form) -> Result<ExitCode> {
    let all = unfinished()?.context("neither XDG_STATE_HOME nor HOME says where journals are")?;
    match wish {
        Wish::List(targets) => list(&choose(&all, targets)?, form),
        Wish::Abandon(targets) => abandon(&all, targets, form),
    }
}

fn list(all: &[&Unfinished], form: Form) -> Result<ExitCode> {
    print(match form {
        Form::Words if all.is_empty() => "no copy onto this host is unfinished\n".to_owned(),
        Form::Document => told::list(all),
        Form::Words | Form::Lines => all.iter().map(|copy| told::listed(copy, form)).collect(),
    })?;
    Ok(ExitCode::Success)
}

fn abandon(all: &[Unfinished], targets: &[OsString], form: Form) -> Result<ExitCode> {
    let chosen = choose(all, targets)?;
    let (mut kinds, mut done) = (BTreeSet::new(), Vec::new());
    for copy in chosen {
        let dropped = abandon::abandon(copy);
        for (kind, text) in &dropped.failures {
            kinds.insert(*kind);
            say(Tone::Note, text);
        }
        match form {
            Form::Document => done.push((copy, dropped)),
            Form::Words | Form::Lines => print(told::abandoned(copy, &dropped, form))?,
        }
    }
    if form == Form::Document {
        print(told::abandoned_list(&done))?;
    }
    Ok(if kinds.is_empty() { ExitCode::Success } else { code_of_failures(&kinds) })
}

/// Those that are meant: before anything is removed it is known that each target means something.
fn choose<'a>(all: &'a [Unfinished], targets: &[OsString]) -> Result<Vec<&'a Unfinished>> {
    if targets.is_empty() {
        return Ok(all.iter().collect());
    }
    let mut chosen = BTreeSet::new();
    for target in targets {
        let location = Location::parse(target)?;
        let meant = |path: &Path| -> Vec<usize> {
            (0..all.len()).filter(|&at| is_meant(&all[at], path)).collect()
        };
        let meant = match &location {
            Location::Local(path) => meant(&without_links(path)),
            // A journal has the address as it is printed.
            _ => meant(Path::new(&location.to_string())),
        };
        if meant.is_empty() {
            check_is_here(&location)?;
            let shown = Shown::new(target.as_bytes());
            let text = format!("{shown}: no unfinished copy has this target");
            let advice = "try: hikyaku cp --unfinished, which lists them";
            return Err(failed(FailureKind::NotFound, text).context(advice));
        }
        chosen.extend(meant);
    }
    Ok(chosen.into_iter().map(|at| &all[at]).collect())
}

/// A path of this machine as journals write it, with no link on the way.
fn without_links(path: &Path) -> PathBuf {
    // The last name may be that of a file that is not there yet.
    let name = path.file_name().map(OsStr::to_os_string);
    let above = match path.parent() {
        Some(above) if !above.as_os_str().is_empty() => above,
        _ => Path::new("."),
    };
    let named = || Some(above.canonicalize().ok()?.join(name?));
    path.canonicalize().ok().or_else(named).unwrap_or_else(|| path.to_path_buf())
}

/// Fails if the journals of a target are on another machine.
fn check_is_here(location: &Location) -> Result<()> {
    let Location::Remote(remote) = location else { return Ok(()) };
    let (host, path) = (remote.login.to_string(), Shown::new(&remote.path).to_string());
    let text = format!("what {host} receives is known to that machine only");
    Err(failed(FailureKind::NotFound, text)
        .context(format!("try: ssh {host} hikyaku cp --abandon {path}")))
}

/// Whether a path, as its user wrote it, names this copy: by its target, a file in it, or its journal.
fn is_meant(copy: &Unfinished, path: &Path) -> bool {
    let is_journal = || copy.path.canonicalize().is_ok_and(|own| own == path);
    let is_target = |known: &Known| {
        let dir = Path::new(OsStr::from_bytes(&known.begun.dir));
        let mut files =
            known.files.iter().filter(|(_, remains)| !matches!(remains, Remains::Whole(_)));
        target(known) == path || files.any(|(file, _)| dir.join(OsStr::from_bytes(file)) == path)
    };
    matches!(&copy.content, Journaled::Known(known) if is_target(known)) || is_journal()
}

/// The target of a copy.
fn target(known: &Known) -> PathBuf {
    let dir = Path::new(OsStr::from_bytes(&known.begun.dir));
    match &known.begun.name {
        Some(name) if dir.is_absolute() => dir.join(OsStr::from_bytes(name)),
        // The address of another storage has the name in it.
        Some(_) | None => dir.to_path_buf(),
    }
}

/// The address of a target in another storage; `None` if it is a path of this machine.
fn address(known: &Known) -> Option<String> {
    let is_address = !known.begun.dir.starts_with(b"/");
    is_address.then(|| String::from_utf8_lossy(&known.begun.dir).into_owned())
}

/// The directory that the paths of a journal are relative to.
fn base(known: &Known) -> &Path {
    let is_here = known.begun.dir.starts_with(b"/");
    Path::new(OsStr::from_bytes(if is_here { &known.begun.dir } else { b"" }))
}

/// Where the unfinished form of a file is: beside its final name.
fn partial_path(base: &Path, path: &[u8], partial: &[u8]) -> PathBuf {
    base.join(OsStr::from_bytes(path)).with_file_name(OsStr::from_bytes(partial))
}

/// Bytes of a part that reached the disk, and bytes that were written since.
fn progress(part: &Part) -> (u64, u64) {
    let is_open = |head: &&Head| part.proven.lacks(head.index) && part.claimed.lacks(head.index);
    let heads: u64 = part.heads.iter().filter(is_open).map(Head::length).sum();
    (part.proven.bytes(), part.claimed.bytes() + heads)
}

#[cfg(test)]
mod tests;
