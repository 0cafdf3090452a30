//! Everything below a path, with the nodes that have it.

use crate::convert::{self, found};
use crate::gfarm::{Gfarm, Trouble, one};
use crate::resolve::{Led, resolve};
use hikyaku_fs::Token;
use hikyaku_gfarm::{Address, Handle, Stat};
use hikyaku_store::{ErrorKind, Found, Kind, StorePath};
use std::collections::{BTreeMap, HashMap};

/// The found entries.
#[derive(Debug, Default)]
pub struct Survey {
    /// Everything at and below the path, in the order of their paths.
    pub all: Vec<Surveyed>,
    /// The nodes that have replicas of files in `all`.
    pub nodes: Vec<Address>,
    /// The contents of the files, by their paths.
    pub handles: Handles,
    /// How the paths here are called at gfmd, if links led to the root. [`Node::led_by`](crate::Node::led_by) has to know it.
    pub led: Option<Led>,
}

/// The contents of files, by their paths.
pub type Handles = HashMap<Vec<u8>, Handle>;

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
/// Levels of directories.
const LEVELS_MAX: usize = 2048;

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
    let root = root.as_bytes();
    let stat = one(gfarm.ask(|session| session.look(&[root]))?.1)?;
    let mut names = BTreeMap::new();
    let is_dir = found(&stat).kind == Kind::Dir;
    names.insert(root.to_vec(), Ok(stat));
    let mut level: Vec<Vec<u8>> = if is_dir { vec![root.to_vec()] } else { Vec::new() };
    for _ in 0..LEVELS_MAX {
        if level.is_empty() {
            break;
        }
        level = below(gfarm, &level, &mut names)?;
    }
    let mut survey = Survey { led, ..Survey::default() };
    let mut numbers = Numbers::of(gfarm)?;
    add_all(gfarm, names, &mut survey, &mut numbers)?;
    Ok(survey)
}

/// Adds the entries of directories to `names`; the directories among them.
fn below(
    gfarm: &Gfarm,
    dirs: &[Vec<u8>],
    names: &mut BTreeMap<Vec<u8>, Result<Stat, ErrorKind>>,
) -> Result<Vec<Vec<u8>>, Trouble> {
    let paths: Vec<&[u8]> = dirs.iter().map(Vec::as_slice).collect();
    let listed = gfarm.ask(|session| session.list(&paths))?.1;
    let mut next = Vec::new();
    for (dir, entries) in dirs.iter().zip(listed) {
        let entries = match entries {
            Ok(entries) => entries,
            Err(code) => {
                names.insert(dir.clone(), Err(convert::error(code)));
                continue;
            }
        };
        for (name, stat) in entries {
            // The replicas of unfinished files of other copies are not requested.
            if Token::is_in(&name) {
                continue;
            }
            let path = if dir.is_empty() { name } else { [dir, &b"/"[..], &name].concat() };
            if found(&stat).kind == Kind::Dir {
                next.push(path.clone());
            }
            names.insert(path, Ok(stat));
            if names.len() > NAMES_MAX {
                return Err(Trouble::Refused(ErrorKind::TooLarge));
            }
        }
    }
    Ok(next)
}

/// Asks for the replicas of the files and for the texts of the links.
fn add_all(
    gfarm: &Gfarm,
    names: BTreeMap<Vec<u8>, Result<Stat, ErrorKind>>,
    survey: &mut Survey,
    numbers: &mut Numbers,
) -> Result<(), Trouble> {
    let of = |kind: Kind| {
        let is = move |stat: &Result<Stat, ErrorKind>| {
            stat.as_ref().is_ok_and(|stat| found(stat).kind == kind)
        };
        let paths = names.iter().filter(move |(_, stat)| is(stat)).map(|(path, _)| path.as_slice());
        paths.collect::<Vec<_>>()
    };
    let (files, links) = (of(Kind::File), of(Kind::Link));
    let replicas = gfarm.ask(|session| session.replicas(&files))?.1;
    let texts = gfarm.ask(|session| session.read_links(&links))?.1;
    let mut replicas: HashMap<&[u8], _> = files.iter().copied().zip(replicas).collect();
    let mut texts: HashMap<&[u8], _> = links.iter().copied().zip(texts).collect();
    let mut surveyed = Vec::with_capacity(names.len());
    for (path, stat) in &names {
        let shown = survey.led.as_ref().map_or_else(|| path.clone(), |led| led.shown(path));
        let mut one = Surveyed {
            path: shown.clone(),
            found: stat.as_ref().map(found).map_err(|kind| *kind),
            link: None,
            at: Vec::new(),
        };
        match replicas.remove(path.as_slice()) {
            // The file may have changed since its directory was read.
            Some(Ok((stat, replicas))) => {
                one.found = Ok(found(&stat));
                survey.handles.insert(shown, stat.handle);
                let good = replicas.iter().filter(|replica| {
                    replica.is_complete
                        && replica.is_up
                        && replica.generation == stat.handle.generation
                });
                one.at = good.filter_map(|replica| numbers.of_host(&replica.host)).collect();
            }
            Some(Err(code)) => one.found = Err(convert::error(code)),
            None => {}
        }
        match texts.remove(path.as_slice()) {
            Some(Ok(text)) => one.link = Some(text),
            Some(Err(code)) => one.found = Err(convert::error(code)),
            None => {}
        }
        surveyed.push(one);
    }
    survey.all = surveyed;
    survey.nodes = std::mem::take(&mut numbers.nodes);
    Ok(())
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
