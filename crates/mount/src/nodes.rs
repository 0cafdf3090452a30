//! The files that the kernel knows, by number.
//!
//! A node is a path with one file behind it. If another file has the path, or the file's content has changed while it is
//! open, the path gets a new node: the pages that the kernel holds of the old one are never mixed with those of the new one. The one
//! exception is a file that has grown: it keeps its node, so that `tail -f` works.

use crate::changes::Turn;
use crate::crew::Places;
use crate::look::Pages;
use fuser::Errno;
use hikyaku_read_ahead::Content;
use hikyaku_store::{Found, Kind, StorePath, Time};
use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

mod numbers;
mod successor;
#[cfg(test)]
mod tests;
mod touched;

pub(crate) use numbers::Numbering;
pub(crate) use successor::Company;
pub(crate) use touched::Touched;

/// The number of the mounted directory.
pub(crate) const ROOT: u64 = 1;

/// A file, directory or link that the kernel knows.
#[derive(Debug)]
pub(crate) struct Node {
    /// Its path at the server.
    pub(crate) path: StorePath,
    /// Its metadata.
    pub(crate) found: Found,
    /// The servers that have it so.
    pub(crate) at: Places,
    /// When the server was asked for them.
    pub(crate) asked: Instant,
    /// Its content.
    pub(crate) content: Content,
    /// The content of which the kernel has pages.
    pub(crate) cached: Option<Content>,
    /// The text of a link.
    pub(crate) link: Option<Vec<u8>>,
    /// Whether the path has another file by now.
    pub(crate) is_stale: bool,
    /// Whether the server is to be asked before the metadata are used again.
    pub(crate) is_doubted: bool,
    /// Handles that are open.
    pub(crate) opens: u64,
    /// Writes of programs here that the server has not confirmed.
    pub(crate) unconfirmed: u64,
    /// Those of them, and other changes, that were decided here under a lease.
    pub(crate) held: u64,
    /// Those of them that are in the journal of this machine.
    pub(crate) staged: u64,
    /// Writes in the journal, also those that the server has confirmed.
    pub(crate) journaled: u64,
    /// The server's metadata since the first unconfirmed write.
    told: Option<Found>,
    /// Times that were given here.
    pub(crate) touched: Touched,
    /// The error of a write that was lost after the close, until a call has returned it.
    pub(crate) lost: Option<Errno>,
    /// When the server confirmed the last write, if its metadata have not been asked for since.
    pub(crate) written: Option<Instant>,
    lookups: u64,
    /// Whether the kernel has forgotten the node, but its writes are not confirmed.
    is_left: bool,
}

/// All nodes.
#[derive(Debug, Default)]
pub(crate) struct Nodes {
    nodes: HashMap<u64, Node>,
    paths: HashMap<StorePath, u64>,
    /// Nodes that are used although another node of the same file has their path.
    twins: HashSet<u64>,
    numbering: Numbering,
    /// The device of the mounted directory.
    device: Option<u64>,
    contents: u64,
}

/// The known state of a path.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) found: Found,
    pub(crate) link: Option<Vec<u8>>,
    /// The servers that have it so.
    pub(crate) at: Places,
    /// When the server was asked.
    pub(crate) asked: Instant,
    /// The last change of this mount that the server had made when the question was sent.
    pub(crate) sent: Turn,
}

impl Node {
    /// How long its metadata may be used, if they may be as old as `limit`.
    pub(crate) fn fresh(&self, limit: Duration, now: Instant) -> Option<Duration> {
        if self.is_stale || self.is_doubted || (self.written.is_some() && self.unconfirmed == 0) {
            return None;
        }
        if self.unconfirmed > 0 {
            return Some(limit);
        }
        rest(self.asked, limit, now)
    }
}

impl Node {
    /// Whether a program here has written to the file since the server was asked for its metadata.
    pub(crate) const fn is_own(&self) -> bool {
        self.unconfirmed > 0 || self.written.is_some()
    }

    /// Whether all that is unconfirmed of it was decided here.
    pub(crate) const fn is_held_only(&self) -> bool {
        self.unconfirmed == self.held
    }

    /// The metadata that programs see.
    pub(crate) fn shown(&self) -> Found {
        Found { modified: self.touched.shown(self.found.modified), ..self.found }
    }

    fn take_over(&mut self, seen: Seen) {
        self.found = self.touched.corrected(seen.found);
        self.at = seen.at;
        self.asked = seen.asked;
        self.is_doubted = false;
        self.written = None;
        self.link = seen.link.or_else(|| self.link.take());
    }
}

/// How long what was asked for at `asked` may be used.
pub(crate) fn rest(asked: Instant, limit: Duration, now: Instant) -> Option<Duration> {
    limit.checked_sub(now.saturating_duration_since(asked)).filter(|rest| !rest.is_zero())
}

impl Nodes {
    pub(crate) fn new(numbering: Numbering) -> Self {
        Self { numbering, ..Self::default() }
    }

    /// The number of a path: that of its node, or the one that its node would get.
    pub(crate) fn number_of(&self, path: &StorePath, found: &Found) -> u64 {
        let known = self.paths.get(path).copied();
        known.unwrap_or_else(|| self.free_number(path, found))
    }

    /// A number that no node has.
    fn free_number(&self, path: &StorePath, found: &Found) -> u64 {
        let number = self.numbering.number(path, found, self.device);
        let others = (0..).map(|attempt| Numbering::another(number, path, attempt));
        let mut all = std::iter::once(number).chain(others);
        // A hash that is taken is followed by another one, and there are fewer nodes than numbers.
        all.find(|number| !self.nodes.contains_key(number)).unwrap_or(number)
    }

    pub(crate) fn at(&self, number: u64) -> Option<&Node> {
        self.nodes.get(&number)
    }

    pub(crate) fn at_mut(&mut self, number: u64) -> Option<&mut Node> {
        self.nodes.get_mut(&number)
    }

    pub(crate) fn of_path(&self, path: &StorePath) -> Option<(u64, &Node)> {
        let number = *self.paths.get(path)?;
        Some((number, self.nodes.get(&number)?))
    }

    pub(crate) fn of_path_mut(&mut self, path: &StorePath) -> Option<&mut Node> {
        self.nodes.get_mut(self.paths.get(path)?)
    }

    pub(crate) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Updates the node of a path with the server's metadata. Returns the number of the node.
    pub(crate) fn observe(&mut self, path: &StorePath, seen: Seen) -> u64 {
        if let Some(&number) = self.paths.get(path)
            && let Some(node) = self.nodes.get_mut(&number)
        {
            if seen.asked < node.asked || (node.is_doubted && seen.asked == node.asked) {
                return number;
            }
            // For a file with own writes the local metadata are newer, until a request after the last confirmation.
            let is_own = node.is_own();
            if is_own && (node.unconfirmed > 0 || node.written.is_some_and(|at| seen.asked < at)) {
                return number;
            }
            match change(&node.found, &seen.found) {
                Change::Time | Change::Cut | Change::Other
                    if is_own && node.found.identity == seen.found.identity =>
                {
                    self.contents += 1;
                    node.content = Content(self.contents);
                    // The kernel has the pages that were written here.
                    node.cached = Some(node.content);
                    node.take_over(seen);
                    return number;
                }
                // A server's file system shows the new time of a growing file before its new size. No program has bytes of the
                // old content that could be mixed with others, and the kernel drops its pages when the file is opened. So the
                // file keeps its number, and can be opened although others keep changing it.
                Change::Time | Change::Cut if node.opens == 0 => {
                    self.contents += 1;
                    node.content = Content(self.contents);
                    node.take_over(seen);
                    return number;
                }
                Change::Time | Change::Cut | Change::Other if number != ROOT => {
                    node.is_stale = true
                }
                change => {
                    if change != Change::None {
                        self.contents += 1;
                        node.content = Content(self.contents);
                    }
                    node.take_over(seen);
                    return number;
                }
            }
        }
        let before = self.paths.get(path).copied();
        let number = match self.nodes.contains_key(&ROOT) {
            true => self.free_number(path, &seen.found),
            // The mounted directory is the first one that is observed.
            false => {
                self.device = Some(seen.found.identity.device);
                ROOT
            }
        };
        self.add(number, path, seen);
        self.paths.insert(path.clone(), number);
        // The kernel cannot forget a node that it has not received.
        if let Some(before) = before {
            self.prune(before);
        }
        number
    }

    fn add(&mut self, number: u64, path: &StorePath, seen: Seen) {
        self.contents += 1;
        let node = Node {
            path: path.clone(),
            found: seen.found,
            at: seen.at,
            asked: seen.asked,
            content: Content(self.contents),
            cached: None,
            link: seen.link,
            is_stale: false,
            is_doubted: false,
            opens: 0,
            unconfirmed: 0,
            held: 0,
            staged: 0,
            journaled: 0,
            told: None,
            touched: Touched::default(),
            lost: None,
            written: None,
            lookups: 0,
            is_left: false,
        };
        self.nodes.insert(number, node);
    }

    /// A program here writes: the file has another content, at least `end` bytes of it. Returns the old content.
    pub(crate) fn write(&mut self, number: u64, end: u64, modified: Time) -> Option<Content> {
        let node = self.nodes.get_mut(&number)?;
        let old = node.content;
        self.contents += 1;
        node.content = Content(self.contents);
        node.cached = Some(node.content);
        node.found.size = node.found.size.max(end);
        node.found.modified = modified;
        Some(old)
    }

    /// A program here sets the length: the file has another content. Returns the old one.
    pub(crate) fn set_length(&mut self, number: u64, size: u64, modified: Time) -> Option<Content> {
        let old = self.write(number, 0, modified);
        self.nodes.get_mut(&number)?.found.size = size;
        old
    }

    /// The server has confirmed a change of the file under a write lease, and sends the metadata after it.
    pub(crate) fn confirm(&mut self, number: u64, found: Option<Found>, now: Instant) {
        let Some(node) = self.nodes.get_mut(&number) else { return };
        node.unconfirmed -= 1;
        node.held -= 1;
        if let Some(found) = found {
            // Later changes are not part of the server's metadata.
            node.found.identity = found.identity;
            node.told = Some(found);
        }
        // The answer to a change of the name has no metadata: the known ones stay.
        if node.unconfirmed == 0
            && let Some(found) = node.told.take()
        {
            let shown = node.touched.shown(node.found.modified);
            node.found = node.touched.corrected(found);
            node.touched.confirmed(node.found.modified, shown);
            (node.asked, node.written) = (now, None);
        }
    }

    /// A name has been changed, and with it the paths of all nodes below it. Nodes below the replaced name are removed.
    pub(crate) fn rename(&mut self, from: &StorePath, to: &StorePath) {
        let numbers = self.paths.values().chain(&self.twins).copied();
        let (mut moved, mut gone) = (Vec::new(), Vec::new());
        for number in numbers {
            match self.nodes.get(&number) {
                Some(node) if is_within(from, &node.path) => moved.push(number),
                Some(node) if is_within(to, &node.path) => gone.push(number),
                _ => {}
            }
        }
        gone.into_iter().for_each(|number| self.lose_name(number));
        for number in moved {
            let Some(node) = self.nodes.get_mut(&number) else { continue };
            let below = node.path.as_bytes().get(from.as_bytes().len()..).unwrap_or_default();
            let Ok(path) = StorePath::new(&[to.as_bytes(), below].concat()) else { continue };
            let old = std::mem::replace(&mut node.path, path.clone());
            if self.paths.get(&old) == Some(&number) {
                self.paths.remove(&old);
                self.paths.insert(path, number);
            }
        }
    }

    /// The file of a node has no name any more.
    fn lose_name(&mut self, number: u64) {
        let Some(node) = self.nodes.get_mut(&number) else { return };
        node.is_stale = true;
        if self.paths.get(&node.path) == Some(&number) {
            self.paths.remove(&node.path);
        }
        self.twins.remove(&number);
    }

    /// A file that several hosts use continues with the server's content, also if it was taken for another file meanwhile.
    /// `None` if the path has another file.
    pub(crate) fn go_on(&mut self, number: u64, seen: Seen) -> Option<Pages> {
        let node = self.nodes.get(&number)?;
        let is_same =
            |found: &Found| (found.kind, found.identity) == (seen.found.kind, seen.found.identity);
        if !is_same(&node.found) {
            return None;
        }
        if node.unconfirmed > 0 && !node.is_stale {
            // For a file with own writes the local metadata are newer.
            return Some(Pages::Right);
        }
        let path = node.path.clone();
        match self.paths.get(&path).copied() {
            Some(at) if at == number => {}
            Some(at) if self.nodes.get(&at).is_some_and(|node| is_same(&node.found)) => {
                self.twins.insert(number);
            }
            other => {
                other.into_iter().for_each(|other| self.lose_name(other));
                self.paths.insert(path, number);
            }
        }
        let node = self.nodes.get_mut(&number)?;
        if node.is_stale || node.is_own() || change(&node.found, &seen.found) != Change::None {
            self.contents += 1;
            node.content = Content(self.contents);
            node.cached = None;
        }
        node.is_stale = false;
        node.take_over(seen);
        Some(if node.cached == Some(node.content) { Pages::Right } else { Pages::Other })
    }

    /// A stale node of the path was used. The kernel looks the path up once more and not again, so what is known of it
    /// must be new.
    pub(crate) fn doubt(&mut self, path: &StorePath) {
        if let Some(number) = self.paths.get(path)
            && let Some(node) = self.nodes.get_mut(number)
        {
            node.is_doubted = true;
        }
    }

    /// The server has no such path any more.
    pub(crate) fn observe_absent(&mut self, path: &StorePath) {
        let twins = self.twins.iter().copied();
        let of_path = |number: &u64| self.nodes.get(number).is_some_and(|node| node.path == *path);
        let numbers: Vec<u64> =
            twins.filter(of_path).chain(self.paths.get(path).copied()).collect();
        numbers.into_iter().filter(|&number| number != ROOT).for_each(|n| self.lose_name(n));
    }

    /// The kernel has received the node once more.
    pub(crate) fn look_up(&mut self, number: u64) {
        if let Some(node) = self.nodes.get_mut(&number) {
            node.lookups += 1;
            node.is_left = false;
        }
    }

    /// The kernel drops `times` of its references to the node. Returns the content that has no reference any more.
    pub(crate) fn forget(&mut self, number: u64, times: u64) -> Option<Content> {
        let node = self.nodes.get_mut(&number)?;
        node.lookups = node.lookups.saturating_sub(times);
        self.prune(number)
    }

    /// Removes a node that was left before everything was confirmed. One that was made just now is not among them.
    pub(crate) fn prune_left(&mut self, number: u64) -> Option<Content> {
        let is_left = self.nodes.get(&number)?.is_left;
        if is_left { self.prune(number) } else { None }
    }

    /// Removes a node that neither the kernel nor a handle knows.
    pub(crate) fn prune(&mut self, number: u64) -> Option<Content> {
        let node = self.nodes.get_mut(&number)?;
        if node.lookups > 0 || node.opens > 0 || number == ROOT {
            return None;
        }
        if node.unconfirmed > 0 || node.journaled > 0 {
            node.is_left = true;
            return None;
        }
        let node = self.nodes.remove(&number)?;
        if self.paths.get(&node.path) == Some(&number) {
            self.paths.remove(&node.path);
        }
        self.twins.remove(&number);
        Some(node.content)
    }
}

/// Whether `path` is `dir` or below it.
pub(crate) fn is_within(dir: &StorePath, path: &StorePath) -> bool {
    let rest = path.as_bytes().strip_prefix(dir.as_bytes());
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Change {
    None,
    Grown,
    /// The time of the file has changed, and its size has not.
    Time,
    /// The file has become smaller.
    Cut,
    Other,
}

/// The change of a file's content between two answers.
fn change(old: &Found, new: &Found) -> Change {
    let is_same_file = old.kind == new.kind && old.identity == new.identity;
    match (is_same_file, new.kind) {
        (false, _) => Change::Other,
        (true, Kind::File) if (old.size, old.modified) == (new.size, new.modified) => Change::None,
        (true, Kind::File) if new.size > old.size => Change::Grown,
        (true, Kind::File) if new.size == old.size => Change::Time,
        (true, Kind::File) => Change::Cut,
        (true, _) => Change::None,
    }
}
