//! A node that goes on with another file.

use super::{Nodes, ROOT, Seen, Touched};

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
}
