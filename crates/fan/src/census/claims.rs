//! Names at the target that several sources of one command want.

use super::{Census, LeftOut, Why};
use hikyaku_fs::PeerPath;
use hikyaku_store::StorePath;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// The names that the sources of one command have taken at its target. A name belongs to the first source that has it.
#[derive(Debug, Default)]
pub struct Claims {
    /// Who took a name: the number of the source's servers, and its path there.
    taken: BTreeMap<StorePath, (usize, PeerPath)>,
    /// The sets of servers that were met, by their names.
    origins: Vec<String>,
}

/// What becomes of a file that wants a name.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Claim {
    /// The name was free.
    Granted,
    /// The same file has it: it was named twice.
    Again,
    /// Another file has it.
    Refused,
}

impl Claims {
    /// Takes the names of the files and links of `census`, which comes from the servers that are called `origin`. What wants
    /// a name of another source is left out, and so is what an earlier source has brought already; the first is
    /// noted as not copied ([`Why::Taken`]). `place` tells the name of a path at the target.
    pub fn take(
        &mut self,
        origin: &str,
        census: &mut Census,
        place: impl Fn(&PeerPath) -> Option<StorePath>,
    ) {
        let known = self.origins.iter().position(|known| known == origin);
        let origin = known.unwrap_or_else(|| {
            self.origins.push(origin.to_owned());
            self.origins.len() - 1
        });
        let mut refused = Vec::new();
        let mut is_granted = |path: &PeerPath| match self.claim(origin, path, place(path)) {
            Claim::Granted => true,
            Claim::Again => false,
            Claim::Refused => {
                refused.push(LeftOut { path: path.as_bytes().to_vec(), why: Why::Taken });
                false
            }
        };
        census.links.retain(|(path, _)| is_granted(path));
        census.files.retain(|file| is_granted(&file.path));
        census.left_out.extend(refused);
    }

    fn claim(&mut self, origin: usize, path: &PeerPath, name: Option<StorePath>) -> Claim {
        // A path without a place is refused where it would be written.
        let Some(name) = name else { return Claim::Granted };
        match self.taken.entry(name) {
            Entry::Vacant(free) => {
                free.insert((origin, path.clone()));
                Claim::Granted
            }
            Entry::Occupied(taken) if *taken.get() == (origin, path.clone()) => Claim::Again,
            Entry::Occupied(_) => Claim::Refused,
        }
    }
}
