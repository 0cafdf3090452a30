//! From the server to this machine, by the mover: the server is a store whose files are fetched over its one connection.
//!
//! Every name that the server sends is used beneath the target only, and never through a symbolic link.

use super::Run;
use super::moved::{self, LOST, Pending, Sides, lost, tell, tell_all};
use super::remote::{expanded, resolved, split};
use crate::cluster::of_session;
use anyhow::{Context, Result};
use hikyaku_console::Kept;
use hikyaku_fs::{Name, Patience};
use hikyaku_job::End;
use hikyaku_mover::{Destination, NamedSource, Sources, Streams, Together};
use hikyaku_store::{ErrorKind, Last, Store, fetchers};
use hikyaku_store_sftp::Sftp;
use hikyaku_transfer::{Links, OtherSources};
use std::path::Path;
use std::sync::{Arc, Mutex};

/// Where the paths of both stores are.
const SIDES: Sides<'_> = Sides { source: End::There, target: End::Here, target_root: b"" };

/// Copies them.
pub(super) fn get(run: &Run<'_>, sources: &[Vec<u8>], target: &Path) -> Result<()> {
    let (options, client) = (run.options, &run.server.client);
    let watched = moved::watched(run, Pending::Abandoned);
    let store = Sftp::of_dir(client.clone(), b"/")?;
    let (named, missing) = named(run, &store, sources)?;
    let store: Arc<dyn Store> = Arc::new(store);
    let choice = &moved::choice(run);
    let mut failed = Vec::new();
    let found = Sources::in_store(
        (store.clone(), b"/", format!("sftp://{}", run.host)),
        &named,
        choice,
        &mut failed,
    );
    tell_all(run, (End::There, b""), &failed)?;
    if found.count() == 0 {
        return run
            .is_stopped()
            .then_some(Kept::Unrecorded)
            .map_or(Ok(()), |kept| Err(kept.into()));
    }
    let claims = Mutex::default();
    let missing = missing + named.len() - found.count();
    let others = missing + usize::from(options.other_sources == OtherSources::Some);
    let together = Together { others, claims: &claims };
    let scope = run.scope.clone();
    let streams = Streams::Written(Patience::new(move || scope.stop_cause().is_none()));
    let mut failed = Vec::new();
    let landed = found.land(&Destination::Here(target), (choice, together, &streams), &mut failed);
    let landed = landed.map_err(of_session)?;
    tell_all(run, (End::There, &found.root), &failed)?;
    let servers = fetchers(&store, 1).context("cannot read from the server")?;
    for one in landed {
        moved::carry(run, (&servers, &found.root), one, (&SIDES, &watched))?;
    }
    Ok(())
}

/// The sources by their paths on the server, and the number of those that have none.
fn named(run: &Run<'_>, store: &Sftp, sources: &[Vec<u8>]) -> Result<(Vec<NamedSource>, usize)> {
    let last = match run.options.rules.links {
        Links::Followed => Last::Followed,
        Links::Kept => Last::Kept,
    };
    let (mut named, mut failed) = (Vec::new(), 0);
    for source in sources {
        let all = match expanded(store, resolved(source)?) {
            Err(ErrorKind::Unreachable) => return Err(lost(LOST)),
            all => all,
        };
        if let Err(kind) = all {
            tell(run, End::There, source, kind.into(), &kind.to_string());
            failed += 1;
        }
        for typed in all.into_iter().flatten() {
            // A list names what is in the directory itself.
            let last = if run.options.files.is_empty() { last } else { Last::Followed };
            let name = split(&typed).1.filter(|_| !typed.ends_with(b"/."));
            let name = name.map(Name::new).transpose().map_err(|_| ErrorKind::BadName);
            match store.path_of(&typed, last).and_then(|from| Ok((from, name?))) {
                Ok((from, name)) => named.push(NamedSource { from, name, typed }),
                Err(ErrorKind::Unreachable) => return Err(lost(LOST)),
                Err(kind) => {
                    tell(run, End::There, &typed, kind.into(), &kind.to_string());
                    failed += 1;
                }
            }
        }
    }
    Ok((named, failed))
}
