//! From the server to this machine.
//!
//! The target is a store of this machine: every name that the server tells is used beneath it only, and never through a
//! symbolic link.

mod target;
mod walk;

use super::download::{Download, download, rehearse_download};
use super::fault::{Trouble, second};
use super::file::limit_of;
use super::landing::Landing;
use super::links::link_here;
use super::remote::{expanded, resolved, split, without_slashes};
use super::small::download_together;
use super::{Run, crew};
use crate::outcome::of_new_tree;
use anyhow::Result;
use hikyaku_fan::Modes;
use hikyaku_job::{Choice, End};
use hikyaku_sftp::{Kind, Request};
use hikyaku_store::{StorePath, Time};
use hikyaku_transfer::{Depth, FailureKind, OtherSources, Pass, Sources};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::io::ErrorKind::NotFound;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use target::Target;
use walk::Walk;

/// Names of a list that the server is asked for together.
const NAMES_TOGETHER: usize = 512;

/// Copies them.
pub(super) fn get(run: &Run<'_>, sources: &[Vec<u8>], target: &Path) -> Result<()> {
    let mut all = Vec::new();
    for source in sources {
        let path = resolved(source)?;
        match expanded(run, &path) {
            Ok(paths) => all.extend(paths),
            Err(trouble) => return Err(trouble.into_error()),
        }
    }
    let is_listed = !run.options.files.is_empty();
    let arriving = match all.len() > 1 || run.options.other_sources == OtherSources::Some {
        _ if is_listed => Sources::Contents,
        true => Sources::Several,
        false => Sources::One,
    };
    let target =
        Target::open(run, new_dir(run, (&all, arriving), target).unwrap_or(target), arriving)?;
    let is_stream = target.renamed.as_ref().is_some_and(|name| target.store.is_stream(name));
    if is_stream {
        // What is written cannot be taken back, so nothing goes on with it.
        run.meter.set_stream();
    }
    let run = &Run { journal: run.journal.filter(|_| !is_stream), ..*run };
    let (limit, landing) = (limit_of(run), Landing::default());
    let modes = if run.options.rules.preserve.modes() { Modes::Kept } else { Modes::Usual };
    let dress = modes.dress();
    let mut walk = Walk::new(run, &target, dress, Choice::new(&run.options.patterns)?);
    let done = crew::run(
        run,
        |jobs| {
            let mut names = BTreeSet::new();
            for source in all.iter().filter(|_| is_listed) {
                for files in run.options.files.chunks(NAMES_TOGETHER) {
                    run.go_on()?;
                    walk.listed(source, files, jobs)?;
                    walk.descend(jobs)?;
                }
            }
            for source in all.iter().filter(|_| !is_listed) {
                let is_new = split(source).1.is_none_or(|name| names.insert(name));
                let added = match is_new {
                    true => walk.source(source, jobs),
                    false => Err(second(End::There, source)),
                };
                run.told(added)?;
                walk.descend(jobs)?;
            }
            run.meter.set_counted();
            jobs.add(Job::Files(walk.rest()))
        },
        |job| match job {
            Job::File(file) if run.options.rules.pass == Pass::DryRun => {
                rehearse_download(run, &target.store, &file)
            }
            Job::File(file) => download(run, &limit, (&target.store, dress), &file),
            Job::Files(files) => {
                download_together(run, &limit, ((&target.store, dress), &landing), &files)
            }
            Job::Link { from, modified, to } => {
                link_here(run, &target.store, (&from, modified), &to)
            }
        },
    );
    // What is complete gets its name, also if the user has ended the copy.
    landing.rest(run);
    let is_new_tree = target.renamed.is_some() && walk.has_directories();
    done.map_err(|error| of_new_tree(error, is_new_tree))?;
    walk.finish()
}

/// The new name of the one source, if it is a directory: as with cp, it may end with a slash.
fn new_dir<'a>(
    run: &Run<'_>,
    (sources, arriving): (&[Vec<u8>], Sources),
    target: &'a Path,
) -> Option<&'a Path> {
    let ([source], Sources::One) = (sources, arriving) else { return None };
    let name = without_slashes(target.as_os_str().as_bytes());
    let is_new = || fs::symlink_metadata(target).is_err_and(|error| error.kind() == NotFound);
    if run.options.rules.depth == Depth::File || name.len() == target.as_os_str().len() || !is_new()
    {
        return None;
    }
    let found = run.server.client.attributes(&Request::Stat(source)).ok()?;
    (found.kind() == Some(Kind::Dir)).then(|| Path::new(OsStr::from_bytes(name)))
}

/// What was found.
enum Job {
    File(Download),
    Files(Vec<Download>),
    Link { from: Vec<u8>, modified: Option<Time>, to: StorePath },
}

fn bad_name(path: &[u8]) -> Trouble {
    Trouble::of(
        End::There,
        path,
        FailureKind::BadName,
        "this file system cannot have a file of this name",
    )
}
