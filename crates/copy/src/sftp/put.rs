//! From this machine to the server, by the mover: the server is a store into which files of this machine go.

use super::Run;
use super::moved::{self, Pending, Sides, tell_all};
use super::remote::{resolved, without_slashes};
use crate::cluster::of_session;
use crate::outcome::failed;
use anyhow::Result;
use hikyaku_job::End;
use hikyaku_mover::{Destination, SessionError, Sources, Streams, Target, Together, Written};
use hikyaku_store::{End as Led, ErrorKind, Kind, Last, Store, StorePath, fetcher};
use hikyaku_store_sftp::Sftp;
use hikyaku_transfer::OtherSources;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

/// Fewer files are synced one by one sooner than ssh has logged in again.
const MANY: usize = 32;
/// Files of this machine that are read at once.
const REQUESTS: u32 = 16;
/// Where the paths of both stores are.
const SIDES: Sides<'_> = Sides { source: End::Here, target: End::There, target_root: b"/" };

/// Copies them.
pub(super) fn put(run: &Run<'_>, sources: &[PathBuf], target: &[u8]) -> Result<()> {
    let watched = moved::watched(run, Pending::Awaited);
    let store = Sftp::of_dir(run.server.client.clone(), b"/")?;
    let target = place(run, &store, target)?;
    let shared: Arc<dyn Store> = Arc::new(store.clone());
    let choice = &moved::choice(run);
    let mut failed = Vec::new();
    let found = Sources::find_with_streams(sources, choice, &mut failed).map_err(of_session)?;
    tell_all(run, (End::Here, b""), &failed)?;
    let claims = Mutex::default();
    let missing = sources.len() - found.count();
    let others = missing + usize::from(run.options.other_sources == OtherSources::Some);
    let together = Together { others, claims: &claims };
    let mut failed = Vec::new();
    let landed = found
        .land(
            &Destination::Store(shared, &target),
            (choice, together, &Streams::Refused),
            &mut failed,
        )
        .map_err(of_session)?;
    tell_all(run, (End::Here, &found.root), &failed)?;
    let files: usize = landed.iter().map(|one| one.plan.files.len()).sum();
    store.begin_uploads(run.sync_dirs().filter(|_| files >= MANY));
    let servers = [fetcher(&found.store, REQUESTS)];
    for one in landed {
        moved::carry(run, (&servers, &found.root), one, (&SIDES, &watched))?;
    }
    Ok(())
}

/// The place of the target. A link that was named is kept: the file to which it leads is replaced.
fn place(run: &Run<'_>, store: &Sftp, typed: &[u8]) -> Result<Target> {
    let typed = resolved(typed)?;
    let named = without_slashes(&typed);
    let named = if named.is_empty() { &typed[..] } else { named };
    let written = if named.len() < typed.len() { Written::AsDirectory } else { Written::AsName };
    let shown = format!("{}:{}", run.host, hikyaku_fs::Shown::new(&typed));
    let refused = |kind: ErrorKind| match kind {
        ErrorKind::Unreachable => moved::lost(moved::LOST),
        kind => failed(kind.into(), format!("{shown}: {kind}")),
    };
    let look = |at: &StorePath| match store.look(at) {
        Ok(found) => Ok(Some(found.kind)),
        Err(error) if error.kind == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error.kind),
    };
    let at = store.path_of(named, Last::Kept).map_err(refused)?;
    let (path, kind, end) = match look(&at).map_err(refused)? {
        None => (at, None, Led::Nothing),
        Some(Kind::Link) => {
            let real = store.path_of(named, Last::Followed);
            let kind = real.as_ref().map_or(Ok(None), look).map_err(refused)?;
            let end = if kind.is_some() { Led::There } else { Led::Dangling };
            (real.unwrap_or(at), kind, end)
        }
        kind => (at, kind, Led::There),
    };
    let known = |at: &StorePath| -> Result<_, SessionError> {
        // The server has resolved the path of its directory.
        Ok(vec![if *at == path { kind } else { Some(Kind::Dir) }])
    };
    let led = hikyaku_store::Led { path: path.clone(), end };
    let target = Target::find(&known, &shown, (written, led)).map_err(of_session)?;
    let is_stream = kind == Some(Kind::Special) && store.write_into(&path).is_ok();
    Ok(if is_stream { target.with_streams() } else { target })
}
