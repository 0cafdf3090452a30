//! Names at the target that several sources of one command want.

use super::{LeftOut, Why};
use crate::plan::Plan;
use hikyaku_store::StorePath;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// The names that the sources of one command have taken at its target. A name belongs to the first source that has it.
#[derive(Debug, Default)]
pub struct Claims {
    /// Who took a name: the number of the source's servers, and the path of the file there or the text of the link.
    taken: BTreeMap<StorePath, (usize, Vec<u8>)>,
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
    /// Takes the names of the files and links of `plan`, which comes from the servers that are called `origin`. What wants
    /// a name of another source is left out, and so is what an earlier source has brought already; the first is
    /// noted as not copied ([`Why::Taken`]).
    pub fn take(&mut self, origin: &str, plan: &mut Plan) {
        let known = self.origins.iter().position(|known| known == origin);
        let origin = known.unwrap_or_else(|| {
            self.origins.push(origin.to_owned());
            self.origins.len() - 1
        });
        let mut refused = Vec::new();
        let mut is_granted = |content: &[u8], path: &[u8], to: &StorePath| {
            let claim = self.claim(origin, content, to);
            if claim == Claim::Refused {
                refused.push(LeftOut { path: path.to_vec(), why: Why::Taken });
            }
            claim == Claim::Granted
        };
        plan.links.retain(|(to, link)| is_granted(&link.text, to.as_bytes(), to));
        plan.files.retain(|file| {
            let path = file.path.as_bytes();
            is_granted(path, path, &file.to)
        });
        plan.left_out.extend(refused);
    }

    /// `content` is the path of a file at its servers, or the text of a link.
    fn claim(&mut self, origin: usize, content: &[u8], name: &StorePath) -> Claim {
        match self.taken.entry(name.clone()) {
            Entry::Vacant(free) => {
                free.insert((origin, content.to_vec()));
                Claim::Granted
            }
            Entry::Occupied(taken) if (taken.get().0, &*taken.get().1) == (origin, content) => {
                Claim::Again
            }
            Entry::Occupied(_) => Claim::Refused,
        }
    }
}
