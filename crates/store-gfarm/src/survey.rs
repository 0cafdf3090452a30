//! Everything below a path, with the nodes that have it.

use crate::gfarm::{Gfarm, Trouble};
use crate::resolve::{Led, resolve};
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
    /// How the paths here are called at gfmd, if links led to the root. [`Node::led_by`](crate::Node::led_by) has to know it.
    pub led: Option<Led>,
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

/// Lists everything at and below `root`. Unreadable entries are listed with the error. Symbolic links on the way to the root
/// are followed, since the user has named it; all paths begin with the root as it was named. Those below it are listed as
/// links.
///
/// # Errors
///
/// There is nothing at `root`, or gfmd cannot be reached.
pub fn survey(gfarm: &Gfarm, root: &StorePath) -> Result<Survey, Trouble> {
    let (named, root) = (root, resolve(gfarm, root)?);
    let led = Led::new(named, &root);
    let mut numbers = Numbers::of(gfarm)?;
    let mut all = BTreeMap::new();
    walk(gfarm, root.as_bytes(), &mut |entry| {
        let path = led.as_ref().map_or_else(|| entry.path.clone(), |led| led.shown(&entry.path));
        let nodes = entry.replicas.iter().filter(|replica| replica.is_up);
        let one = Surveyed {
            path: path.clone(),
            found: entry.found,
            link: entry.link,
            at: nodes.filter_map(|replica| numbers.of_host(&replica.host)).collect(),
        };
        all.insert(path, one);
        if all.len() > NAMES_MAX { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    if all.len() > NAMES_MAX {
        return Err(Trouble::Refused(ErrorKind::TooLarge));
    }
    Ok(Survey { all: all.into_values().collect(), nodes: numbers.nodes, led })
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
