//! The directories of a copy as a tree of names: each costs its own name, however deep it is and however often the
//! sender comes back to it.

use hikyaku_fs::PeerPath;
use std::collections::HashMap;
use std::sync::Arc;

/// Values by the paths of directories.
pub(super) struct Tree<T> {
    nodes: Vec<Node<T>>,
    below: HashMap<(usize, Arc<[u8]>), usize>,
}

struct Node<T> {
    above: usize,
    name: Arc<[u8]>,
    note: T,
}

/// The number of the copy's own directory.
const ROOT: usize = 0;

impl<T: Default> Default for Tree<T> {
    fn default() -> Self {
        let root = Node { above: ROOT, name: Arc::default(), note: T::default() };
        Self { nodes: vec![root], below: HashMap::new() }
    }
}

impl<T: Default> Tree<T> {
    /// The note of a directory; the copy's own has no path.
    pub(super) fn at(&mut self, path: Option<&PeerPath>) -> &mut T {
        let mut at = ROOT;
        for name in path.iter().flat_map(|path| path.names()) {
            let name: Arc<[u8]> = name.into();
            let next = self.nodes.len();
            let found = *self.below.entry((at, name.clone())).or_insert(next);
            if found == next {
                self.nodes.push(Node { above: at, name, note: T::default() });
            }
            at = found;
        }
        &mut self.nodes[at].note
    }

    /// All notes and their numbers, each before those of the directories above it.
    pub(super) fn innermost_first(&self) -> impl Iterator<Item = (usize, &T)> {
        self.nodes.iter().enumerate().rev().map(|(at, node)| (at, &node.note))
    }

    /// The path of the directory with this number.
    pub(super) fn path(&self, number: usize) -> Option<PeerPath> {
        let (mut names, mut at) = (Vec::new(), number);
        while at != ROOT {
            names.push(&*self.nodes[at].name);
            at = self.nodes[at].above;
        }
        names.reverse();
        // It was one before.
        PeerPath::new(&names.join(&b'/')).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> PeerPath {
        PeerPath::new(text.as_bytes()).unwrap()
    }

    #[test]
    fn directories_are_found_by_path_and_number() {
        let mut tree = Tree::<u32>::default();
        for (at, text) in ["a/b", "a", "c", "a/b/c", "a/b"].iter().enumerate() {
            *tree.at(Some(&path(text))) += 10 + at as u32;
        }
        *tree.at(None) += 1;
        let all: Vec<_> = tree.innermost_first().map(|(at, note)| (tree.path(at), *note)).collect();
        let named = |text: &str, note| (Some(path(text)), note);
        let wanted =
            [named("a/b/c", 13), named("c", 12), named("a/b", 10 + 14), named("a", 11), (None, 1)];
        assert_eq!(all, wanted);
    }

    #[test]
    fn what_comes_again_and_again_costs_nothing_and_what_is_deep_its_name() {
        let mut tree = Tree::<()>::default();
        let deep = vec!["level"; 1000].join("/");
        for _ in 0..100 {
            for n in 0..10 {
                tree.at(Some(&path(&format!("{deep}/{n}"))));
            }
        }
        assert_eq!(tree.nodes.len(), 1 + 1000 + 10);
    }
}
