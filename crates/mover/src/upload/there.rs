//! What the servers have already of what is to be uploaded.

use super::UploadJob;
use crate::blocked::Blocked;
use crate::census::{File, ServerId};
use crate::choice::{Action, InTheWay, Link, LinkAction, Same, action, action_of_link};
use crate::fetch::{FetchError, Fetched};
use crate::plan::Plan;
use hikyaku_remote::{Client, Entry, RemoteError};
use hikyaku_store::{Change, Clock, Found, Kind, StorePath};
use hikyaku_transfer::Existing;
use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;
use std::thread;

/// The clock of daemons.
const CLOCK: Clock = Clock::Nanoseconds;

/// Names that a server has and that are in the plan, and servers that are lost.
#[derive(Default)]
pub(super) struct There {
    entries: HashMap<Vec<u8>, Vec<(ServerId, Entry)>>,
    /// Directories of the plan whose names something else has on a server.
    pub(super) blocked: Blocked,
    pub(super) lost: Vec<(ServerId, RemoteError)>,
}

/// What is to happen to a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Wish {
    /// It is not sent.
    Kept,
    /// Any one server is to get it.
    Anywhere,
    /// These servers are to get it, since they have another version.
    At(Vec<ServerId>),
    /// It cannot be written.
    Refused(InTheWay),
}

impl There {
    /// Asks all servers at once.
    pub(super) fn ask(servers: &[Client], plan: &Plan) -> Self {
        let wanted: HashSet<&[u8]> = (plan.files.iter().map(|file| file.to.as_bytes()))
            .chain(plan.dirs.iter().map(|(path, _)| path.as_bytes()))
            .chain(plan.links.iter().map(|(path, _)| path.as_bytes()))
            .collect();
        let told: Vec<_> = thread::scope(|scope| {
            let wanted = &wanted;
            let ask = |client| scope.spawn(move || ask(client, &plan.roots, wanted));
            let asked: Vec<_> = servers.iter().map(ask).collect();
            let closed = || Err(RemoteError::Closed(None));
            asked.into_iter().map(|one| one.join().unwrap_or_else(|_| closed())).collect()
        });
        let mut there = Self::default();
        for (server, told) in (0..).map(ServerId).zip(told) {
            match told {
                Ok(entries) => {
                    for entry in entries {
                        let of_path = there.entries.entry(entry.path.clone()).or_default();
                        of_path.push((server, entry));
                    }
                }
                Err(error) => there.lost.push((server, error)),
            }
        }
        let is_other = |entry: &Entry| entry.found.is_ok_and(|found| found.kind != Kind::Dir);
        let mut blocked = Blocked::default();
        for (dir, _) in &plan.dirs {
            if there.at(dir).iter().any(|(_, entry)| is_other(entry)) {
                blocked.add(dir);
            }
        }
        Self { blocked, ..there }
    }

    /// The directories of the plan that cannot be made because something else has their names, and are in none of these.
    pub(super) fn in_the_way(&self, plan: &Plan) -> Vec<(Vec<u8>, FetchError)> {
        let is_told = |dir: &StorePath| self.blocked.is_one(dir) && !self.blocked.is_above(dir);
        let told = plan.dirs.iter().filter(|(dir, _)| is_told(dir));
        let error = FetchError::InTheWay(InTheWay::NoDirectory);
        told.map(|(dir, _)| (dir.as_bytes().to_vec(), error.clone())).collect()
    }

    /// Whether a directory can be made and filled.
    pub(super) fn is_free(&self, dir: &StorePath) -> bool {
        !self.blocked.is_one(dir) && !self.blocked.is_above(dir)
    }

    fn at(&self, path: &StorePath) -> &[(ServerId, Entry)] {
        self.entries.get(path.as_bytes()).map_or(&[], Vec::as_slice)
    }

    /// What this server has of this name.
    pub(super) fn found(&self, server: ServerId, path: &StorePath) -> Option<&Found> {
        let of_server = self.at(path).iter().find(|(at, _)| *at == server);
        of_server.and_then(|(_, entry)| entry.found.as_ref().ok())
    }

    /// Whether this server has a directory of this name.
    pub(super) fn has_dir(&self, server: ServerId, path: &StorePath) -> bool {
        self.found(server, path).is_some_and(|found| found.kind == Kind::Dir)
    }

    /// What is to happen to a link of which this server has the name, and what has it; `None` if nothing has.
    pub(super) fn link(
        &self,
        server: ServerId,
        (path, link): (&StorePath, &Link),
        existing: Existing,
    ) -> Option<(LinkAction, Kind)> {
        let (_, entry) = self.at(path).iter().find(|(at, _)| *at == server)?;
        let found = entry.found.as_ref().ok()?;
        Some((action_of_link(link, (found, entry.link.as_deref()), existing), found.kind))
    }

    /// What a file gets that this server has with the same size and time.
    pub(super) fn same_file(
        &self,
        server: ServerId,
        job: &UploadJob<'_>,
        file: &File,
    ) -> Option<Change> {
        let found = self.found(server, &file.to)?;
        let is_same =
            action(file.seen, Some(found), (job.existing, job.same), CLOCK) == Action::Same;
        job.dress.same_file(file.mode, found).filter(|_| is_same)
    }

    /// What is to happen to a file.
    pub(super) fn wish(&self, file: &File, rules: (Existing, Same)) -> Wish {
        let (mut others, mut has_it) = (Vec::new(), false);
        for (server, entry) in self.at(&file.to) {
            // What cannot be looked at is told by the server once it is written to.
            let found = entry.found.as_ref().ok();
            match found.map_or(Action::Write, |found| action(file.seen, Some(found), rules, CLOCK))
            {
                Action::Stay | Action::Same => has_it = true,
                Action::Write => others.push(*server),
                Action::Refuse(way) => return Wish::Refused(way),
            }
        }
        match (others.is_empty(), has_it) {
            (true, true) => Wish::Kept,
            (true, false) => Wish::Anywhere,
            (false, _) => Wish::At(others),
        }
    }
}

/// Tells what an upload would write.
pub(super) fn rehearse(job: &UploadJob<'_>) -> Fetched {
    let mut there = There::ask(job.servers, job.plan);
    let lost = std::mem::take(&mut there.lost).into_iter();
    let lost = lost.map(|(server, error)| (server, error.to_string())).collect();
    let mut told = Fetched { lost, ..Fetched::default() };
    told.failed.extend(there.in_the_way(job.plan));
    for (path, link) in job.plan.links.iter().filter(|(path, _)| !there.blocked.is_above(path)) {
        let servers = (0..job.servers.len()).map(ServerId);
        let actions = servers.map(|server| there.link(server, (path, link), job.existing));
        let actions: Vec<_> = actions.map(|one| one.map(|(action, _)| action)).collect();
        let way = actions.iter().find_map(|action| match action {
            Some(LinkAction::Refuse(way)) => Some(*way),
            _ => None,
        });
        let is_made = |action: &_| matches!(action, None | Some(LinkAction::Make));
        let path = path.as_bytes().to_vec();
        match way {
            Some(way) => told.failed.push((path, FetchError::InTheWay(way))),
            None if actions.iter().any(is_made) => told.would.push(path),
            None => {}
        }
    }
    for file in job.plan.files.iter().filter(|file| !there.blocked.is_above(&file.to)) {
        let path = file.to.as_bytes().to_vec();
        match there.wish(file, (job.existing, job.same)) {
            Wish::Kept => {
                told.kept += 1;
                job.meter.add_kept(file.seen.size);
            }
            Wish::Anywhere | Wish::At(_) => told.would.push(path),
            Wish::Refused(way) => told.failed.push((path, FetchError::InTheWay(way))),
        }
    }
    told
}

/// What one server has at and below the roots, as far as it is wanted.
fn ask(
    client: &Client,
    roots: &[StorePath],
    wanted: &HashSet<&[u8]>,
) -> Result<Vec<Entry>, RemoteError> {
    let mut all = Vec::new();
    for root in roots {
        let walked = client.walk(root, |_, entry| {
            all.extend(Some(entry).filter(|entry| wanted.contains(&entry.path[..])));
            ControlFlow::Continue(())
        });
        match walked {
            Ok(()) => {}
            Err(error) if error.is_of_server() => return Err(error),
            // It has nothing of this name.
            Err(_) => {}
        }
    }
    Ok(all)
}
