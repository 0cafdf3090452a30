//! Everything below a path, with the nodes that have it.

use crate::gfarm::{Gfarm, Trouble};
use crate::walk::walk;
use hikyaku_gfarm::Address;
use hikyaku_store::{ErrorKind, Found, StorePath};
use std::collections::{BTreeMap, HashMap};
use std::ops::ControlFlow;

/// The found entries.
#[derive(Debug, Default)]
pub struct Survey {
    /// Everything at and below the path, in the order of their paths.
    pub all: Vec<Surveyed>,
    /// The nodes that have replicas of files in `all`.
    pub nodes: Vec<Address>,
}

/// A name that was found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Surveyed {
    /// Its path below the root of the file system.
    pub path: Vec<u8>,
    /// Its metadata, or why there is none.
    pub found: Result<Found, ErrorKind>,
    /// The text of a symbolic link.
    pub link: Option<Vec<u8>>,
    /// The nodes that have a whole replica of this content and are up, as numbers in [`Survey::nodes`].
    pub at: Vec<usize>,
}

/// Names that one survey may have: some 2 GB of memory with long paths.
const NAMES_MAX: usize = 10_000_000;

/// Lists everything at and below `root`. Unreadable entries are listed with the error. Symbolic links are listed as links,
/// and none may be in the path of the root.
///
/// # Errors
///
/// `root` does not exist, or gfmd cannot be reached.
pub fn survey(gfarm: &Gfarm, root: &StorePath) -> Result<Survey, Trouble> {
    let mut numbers = Numbers::of(gfarm)?;
    let mut all = BTreeMap::new();
    walk(gfarm, root.as_bytes(), &mut |entry| {
        let nodes = entry.replicas.iter().filter(|replica| replica.is_up);
        let one = Surveyed {
            path: entry.path.clone(),
            found: entry.found,
            link: entry.link,
            at: nodes.filter_map(|replica| numbers.of_host(&replica.host)).collect(),
        };
        all.insert(entry.path, one);
        if all.len() > NAMES_MAX { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    if all.len() > NAMES_MAX {
        return Err(Trouble::Refused(ErrorKind::TooLarge));
    }
    Ok(Survey { all: all.into_values().collect(), nodes: numbers.nodes })
}

/// Numbers of the nodes that are needed.
struct Numbers {
    ports: HashMap<String, u16>,
    numbers: HashMap<String, usize>,
    nodes: Vec<Address>,
}

impl Numbers {
    fn of(gfarm: &Gfarm) -> Result<Self, Trouble> {
        let hosts = gfarm.ask(hikyaku_gfarm::Metadata::hosts)?.1;
        let port = |host: hikyaku_gfarm::Host| (host.address.host, host.address.port);
        let ports = hosts.into_iter().map(port).collect();
        Ok(Self { ports, numbers: HashMap::new(), nodes: Vec::new() })
    }

    /// The number of a host; `None` for one whose port gfmd does not send.
    fn of_host(&mut self, host: &str) -> Option<usize> {
        if let Some(number) = self.numbers.get(host) {
            return Some(*number);
        }
        let (host, port) = self.ports.get_key_value(host)?;
        self.nodes.push(Address { host: host.clone(), port: *port });
        let number = self.nodes.len() - 1;
        self.numbers.insert(host.clone(), number);
        Some(number)
    }
}
