//! Requests about leases, and changes that are made under them.

use super::edit::{edit, writable};
use super::leases::{Known, Leases};
use super::list::{Granting, list};
use super::requests::{Teller, store_path};
use super::{Session, Writes};
use crate::message::{Attempt, Edit, Extent, Holder, Lease, Leased, Refusal, Reply};
use hikyaku_reach::TalkError;
use hikyaku_store::{ErrorKind, Kind, Result, StoreError, StorePath};

#[cfg(test)]
mod tests;

type Told = std::result::Result<(), TalkError>;

/// Answers a request about leases.
pub(super) fn lease(session: &Session, lease: Lease, teller: &Teller) -> Told {
    // spec: store-feature-5
    let Some((leases, party)) = &session.leases else {
        // EOPNOTSUPP
        let kind = ErrorKind::System(95);
        return teller.say(Reply::Refused(Refusal {
            kind,
            text: "this server grants no leases".to_owned(),
        }));
    };
    match (lease, session.who.get()) {
        (Lease::Hear { holder }, None) => {
            leases.hear(holder, (session.number, *party));
            if session.who.set(holder).is_ok() {
                recalls(session, leases, holder, teller)
            } else {
                Ok(())
            }
        }
        (Lease::Take { path, extent, ahead }, holder) => match store_path(&path) {
            Ok(path) => {
                // Whoever may not write could only keep others out.
                // spec: store-lease-1
                let extent = match session.limits.writes {
                    Writes::Allowed => extent,
                    Writes::Refused => Extent::Read,
                };
                let granting = holder.map(|&holder| Granting { leases, holder, extent });
                list(session, (&path, ahead), granting, teller)
            }
            Err(error) => teller.refuse(&error),
        },
        (Lease::Renew, Some(&holder)) => {
            // spec: store-lease-3
            if leases.hear(holder, (session.number, *party)) == Known::Yes {
                return teller.say(Reply::Done);
            }
            let text = "the leases are lost".to_owned();
            teller.say(Reply::Refused(Refusal { kind: ErrorKind::Changed, text }))
        }
        (Lease::GiveBack { lease }, Some(&holder)) => {
            leases.give_back(holder, lease);
            Ok(())
        }
        (Lease::Hear { .. } | Lease::Renew | Lease::GiveBack { .. }, _) => {
            let text = "a holder of leases tells its name once, first".to_owned();
            teller.say(Reply::Refused(Refusal { kind: ErrorKind::System(22), text }))
        }
    }
}

/// Tells the client which leases it is to give back, until the connection ends.
// spec: store-lease-2
fn recalls(session: &Session, leases: &Leases, holder: Holder, teller: &Teller) -> Told {
    while session.connection.close_reason().is_none() {
        for lease in leases.recalls(holder) {
            teller.say(Reply::Recall { lease })?;
        }
    }
    Ok(())
}

/// Makes a change that its client has decided on.
// spec: store-lease-4
pub(super) fn held(
    session: &Session,
    (change, attempt): (&Edit, Attempt),
    bytes: &[u8],
) -> Result<Reply> {
    let (Some((leases, _)), Some(&holder)) = (&session.leases, session.who.get()) else {
        return Err(lost(&StorePath::ROOT));
    };
    let paths = paths(change)?;
    for path in &paths {
        let (dir, _) = path.split().ok_or_else(|| lost(path))?;
        if !leases.may_decide(holder, session.plain.look(&dir)?.identity) {
            return Err(lost(path));
        }
    }
    let path = &paths[0];
    let made = match change {
        Edit::Write { at, .. } => {
            writable(session, path)?;
            let open = session.open(path, hikyaku_store::Access::Update)?;
            open.write_at(*at, bytes)?;
            open.found().map(Reply::Looked)
        }
        change => edit(session, change, bytes),
    };
    let made = match (made, attempt) {
        (Err(error), Attempt::Again) => made_before(session, change, path, error),
        (made, _) => made,
    };
    match (made?, change) {
        (Reply::Looked(found), Edit::MakeDir { .. }) => {
            let granted = leases.grant_made(holder, found.identity);
            let dir = path.as_bytes().to_vec();
            let leased = |lease| Reply::Leased(Leased { dir, lease, extent: Extent::Write, found });
            Ok(granted.map_or(Reply::Looked(found), leased))
        }
        (reply, _) => Ok(reply),
    }
}

/// What has become of a change that failed and may have been made before.
fn made_before(
    session: &Session,
    change: &Edit,
    path: &StorePath,
    error: StoreError,
) -> Result<Reply> {
    let made = |kind| session.plain.look(path).ok().filter(|found| found.kind == kind);
    let found = match (change, error.kind) {
        (Edit::Create { .. }, ErrorKind::Exists) => made(Kind::File),
        (Edit::MakeDir { .. }, ErrorKind::Exists) => made(Kind::Dir),
        (Edit::MakeLink { .. }, ErrorKind::Exists) => made(Kind::Link),
        (Edit::Remove { .. } | Edit::Rename { .. }, ErrorKind::NotFound) => {
            return Ok(Reply::Done);
        }
        _ => None,
    };
    found.map(Reply::Looked).ok_or(error)
}

/// The paths that a change touches.
fn paths(change: &Edit) -> Result<Vec<StorePath>> {
    change.paths().map(store_path).collect()
}

/// The client decided without a lease.
fn lost(path: &StorePath) -> StoreError {
    StoreError::new("change without a lease", path, ErrorKind::Changed)
}
