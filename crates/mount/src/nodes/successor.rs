//! A node that goes on with another file, and one that a single thread is given for that.

use super::{Node, Nodes, ROOT, Seen, Touched};
use crate::changes::Turn;
use hikyaku_store::{Kind, StorePath};

/// Other programs that have a file open when a node continues with another content.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Company {
    None,
    /// They must not see it.
    Others,
}

impl Nodes {
    /// The file of a node was removed: the node continues with the present file of its name. If a program has the node open,
    /// that must be the same file with another content. `None` if it is not.
    pub(crate) fn succeed(&mut self, number: u64, seen: Seen) -> Option<Company> {
        let node = self.nodes.get_mut(&number)?;
        let is_same_file = node.found.identity == seen.found.identity;
        let is_used = node.opens > 0 || node.unconfirmed > 0 || node.journaled > 0;
        let is_other_kind = node.found.kind != seen.found.kind;
        if number == ROOT || is_other_kind || (is_used && !is_same_file) {
            return None;
        }
        if !is_same_file {
            node.touched = Touched::default();
        }
        let company = if node.opens > 0 { Company::Others } else { Company::None };
        node.found = seen.found;
        // With this it gets a content of its own.
        node.is_stale = true;
        self.go_on(number, seen)?;
        Some(company)
    }

    /// The node of a file that a program has open under this name.
    pub(crate) fn open_at(&self, path: &StorePath) -> Option<u64> {
        let mut numbers = self.paths.get(path).into_iter().chain(&self.twins).copied();
        numbers.find(|&number| {
            let node = self.nodes.get(&number).filter(|node| !node.is_stale);
            node.is_some_and(|node| node.path == *path) && self.is_open(number)
        })
    }

    /// Whether a program has the file of a node open.
    pub(crate) fn is_open(&self, number: u64) -> bool {
        self.nodes.get(&number).is_some_and(|node| node.found.kind == Kind::File && node.opens > 0)
    }

    /// Another node of the same file, which no program has open. `None` while the server does not have the file as it is
    /// here.
    pub(crate) fn twin(&mut self, number: u64) -> Option<u64> {
        let node = self.nodes.get(&number)?;
        if node.unconfirmed > 0 || node.journaled > 0 {
            return None;
        }
        let (path, seen) = (node.path.clone(), node.seen());
        let twin = self.free_number(&path, &seen.found);
        self.add(twin, &path, seen);
        self.twins.insert(twin);
        Some(twin)
    }
}

impl Node {
    /// Its known state.
    pub(crate) fn seen(&self) -> Seen {
        let (found, link) = (self.found, self.link.clone());
        Seen { found, link, at: self.at, asked: self.asked, sent: Turn::default() }
    }
}
