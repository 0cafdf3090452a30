//! Changes of metadata.
//!
//! SETSTAT of the protocol follows a symbolic link. A directory that is known is changed by it. Everything else is changed
//! by `lsetstat@openssh.com`, or looked at first.

use crate::convert::{kind, reason, times};
use crate::store::Sftp;
use hikyaku_sftp::{Attributes, Failed, Request};
use hikyaku_store::{Ability, Change, ErrorKind, Kind, StorePath};
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether `lsetstat@openssh.com` has failed where SETSTAT did not: OpenSSH sets modes by it with the help of `/proc`,
/// which a server in a chroot may not have.
#[derive(Default)]
pub(crate) struct Refusals(AtomicBool);

/// How an entry is changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Way {
    /// By SETSTAT: it is no link.
    Set,
    /// By the extension, which does not follow links.
    SetOfLink,
    /// By SETSTAT, after it was looked at.
    LookAndSet,
}

/// The attributes that are set, in this order: a change of the owner clears bits of the mode (chown(2)).
pub(crate) fn parts(change: &Change) -> Result<Vec<Attributes>, ErrorKind> {
    if !change.attributes.is_empty() {
        return Err(ErrorKind::Unsupported(Ability::Attributes));
    }
    let owner = change.owner.map(|owner| Attributes {
        owner: Some((owner.user, owner.group)),
        ..Attributes::default()
    });
    let rest = Attributes {
        mode: change.mode.map(|mode| mode & 0o7777),
        times: change.modified.map(times).transpose()?,
        ..Attributes::default()
    };
    let rest = (rest != Attributes::default()).then_some(rest);
    Ok(owner.into_iter().chain(rest).collect())
}

impl Sftp {
    pub(crate) fn way_of_change(&self, path: &StorePath) -> Way {
        let has_extension = self.sets_times_of_links();
        match self.inner.known.has(path) {
            true => Way::Set,
            false if has_extension && !self.inner.refusals.0.load(Ordering::Relaxed) => {
                Way::SetOfLink
            }
            false => Way::LookAndSet,
        }
    }

    /// The ability that a link lacks for this change; `None` if it can be made.
    pub(crate) fn lacking_of_link(&self, change: &Change) -> Option<Ability> {
        let has_extension = self.sets_times_of_links();
        match change {
            Change { mode: Some(_), .. } => Some(Ability::Modes),
            Change { modified: Some(_), .. } if !has_extension => Some(Ability::Times),
            Change { owner: Some(_), .. } if !has_extension => Some(Ability::Owners),
            _ => None,
        }
    }

    /// Changes an entry for which the first way has failed.
    pub(crate) fn change_after(
        &self,
        (path, change): (&StorePath, &Change),
        way: Way,
        failed: &Failed,
    ) -> Result<(), ErrorKind> {
        if failed.is_end() || way != Way::SetOfLink || failed.is_absent() {
            return Err(self.why_not_used(path, failed));
        }
        let entry = self.looked([path]).entry(path)?;
        if kind(&entry) == Some(Kind::Link) {
            let lacking = self.lacking_of_link(change);
            return Err(lacking.map_or_else(|| reason(failed), ErrorKind::Unsupported));
        }
        let at = self.at(path);
        let sets: Vec<_> =
            parts(change)?.into_iter().map(|set| Request::SetStat(&at, set)).collect();
        let done: Result<Vec<()>, _> =
            self.inner.client.all(&sets).into_iter().map(|answer| answer.done()).collect();
        match done {
            Ok(_) => {
                self.inner.refusals.0.store(true, Ordering::Relaxed);
                Ok(())
            }
            Err(failed) => Err(reason(&failed)),
        }
    }
}
