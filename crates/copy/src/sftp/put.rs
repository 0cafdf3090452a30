//! From this machine to the server.

mod walk;

use super::fault::{Trouble, second, there};
use super::file::limit_of;
use super::links::link_there;
use super::present::Present;
use super::remote::{join, resolved, without_slashes};
use super::small::upload_together;
use super::upload::{Upload, rehearse_upload, upload};
use super::{Run, crew};
use crate::outcome::of_new_tree;
use anyhow::Result;
use hikyaku_job::{Choice, End};
use hikyaku_pair::Refused;
use hikyaku_sftp::{Kind, Request};
use hikyaku_transfer::{Depth, FailureKind, OtherSources, Pass};
use std::collections::BTreeSet;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};
use walk::Walk;

/// Names of a list that are looked at together.
const NAMES_TOGETHER: usize = 512;

/// Copies them.
pub(super) fn put(run: &Run<'_>, sources: &[PathBuf], target: &[u8]) -> Result<()> {
    let target = resolved(target)?;
    let client = &run.server.client;
    let (into, is_nothing) = match client.attributes(&Request::Stat(&target)) {
        Ok(found) => (found.kind() == Some(Kind::Dir), false),
        Err(error) if error.is_absent() => (false, true),
        Err(error) => return Err(there(&target)(error).into_error()),
    };
    // What a list names goes into the target, which is made if it is not there.
    let is_listed = !run.options.files.is_empty();
    let is_several = sources.len() > 1 || run.options.other_sources == OtherSources::Some;
    // As with cp, the new name of a directory may end with a slash.
    let is_new_dir = is_nothing
        && run.options.rules.depth == Depth::Tree
        && matches!(sources, [source] if !is_several && source.is_dir());
    let target = if is_new_dir { without_slashes(&target).to_vec() } else { target };
    if !into && !is_listed && (is_several || target.ends_with(b"/")) {
        let (kind, why) = (FailureKind::NotDirectory, "no such directory");
        return Err(Refused::of_path(End::There, &target, kind, why).into());
    }
    // A link that was named is kept: the file that it leads to is replaced.
    let target = match client.attributes(&Request::LStat(&target)) {
        Ok(found) if found.kind() == Some(Kind::Link) && is_nothing => {
            let (kind, why) = (FailureKind::Link, "a symbolic link that leads nowhere");
            return Err(Refused::of_path(End::There, &target, kind, why).into());
        }
        Ok(found) if found.kind() == Some(Kind::Link) && !into => {
            let leads_to = client.name(&Request::RealPath(&target));
            leads_to.map_err(|error| there(&target)(error).into_error())?
        }
        _ => target,
    };
    let (limit, present) = (limit_of(run), Present::default());
    let mut walk = Walk::new(run, Choice::new(&run.options.patterns)?);
    if is_listed && !into {
        walk.make_target(&target).map_err(Trouble::into_error)?;
    }
    let copied = crew::run(
        run,
        |jobs| {
            let mut names = BTreeSet::new();
            for source in sources.iter().filter(|_| is_listed) {
                for files in run.options.files.chunks(NAMES_TOGETHER) {
                    walk.listed(source, (&target, files), jobs)?;
                    walk.descend(jobs)?;
                }
            }
            for source in sources.iter().filter(|_| !is_listed) {
                let to = match name_of(source).filter(|_| into) {
                    Some(name) => join(&target, name),
                    None => target.clone(),
                };
                // Contents of directories are merged; two sources of one name are not.
                let is_new = name_of(source).is_none_or(|name| names.insert(name));
                let added = match is_new {
                    true => walk.source(source, to, jobs),
                    false => Err(second(End::Here, source.as_os_str().as_bytes())),
                };
                run.told(added)?;
                walk.descend(jobs)?;
            }
            run.meter.set_counted();
            jobs.add(Job::Files(walk.rest()))
        },
        |job| match job {
            Job::File(file) if run.options.rules.pass == Pass::DryRun => {
                rehearse_upload(run, &file)
            }
            Job::File(file) => upload(run, &limit, &file),
            Job::Files(files) => upload_together(run, (&limit, &present), &files),
            Job::Link { from, to } => link_there(run, &from, &to),
        },
    );
    // What is complete gets its name, also if the user has ended the copy.
    let settled = run.settling.map_or(Ok(()), |settling| settling.rest(run));
    let is_named = !is_listed && sources.iter().any(|source| name_of(source).is_some());
    let is_new_tree = !into && is_named && walk.has_directories();
    let copied = copied.and_then(|()| settled.map_err(Trouble::into_error));
    copied.map_err(|error| of_new_tree(error, is_new_tree))?;
    walk.finish()
}

/// The name that a source gets in a directory; `None` if its contents are meant.
fn name_of(source: &Path) -> Option<&[u8]> {
    let is_contents = source.as_os_str().as_bytes().ends_with(b"/.");
    match source.components().next_back() {
        Some(Component::Normal(name)) if !is_contents => Some(name.as_bytes()),
        _ => None,
    }
}

/// What was found.
enum Job {
    File(Upload),
    Files(Vec<Upload>),
    Link { from: PathBuf, to: Vec<u8> },
}
