//! What users write for a path on daemons.

use super::{Address, NotAnAddress, PORT};
use hikyaku_console::Cluster;
use hikyaku_crypto::{Fingerprint, KnownPeers, Trust};
use hikyaku_fs::Shown;
use std::fmt;
use std::num::NonZeroU16;

/// A path on daemons, each of which may have parts of the same tree.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Servers {
    /// Where they listen.
    pub servers: Vec<Address>,
    /// The path below their roots.
    pub path: Vec<u8>,
    /// How the path was written.
    pub ending: Ending,
    /// The keys of the servers, if the user gave them: each server has one of these.
    pub keys: Vec<Fingerprint>,
}

/// How a path was written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ending {
    /// As a name.
    Name,
    /// As a directory, with a slash at its end: nothing else is meant.
    Slash,
    /// As what is in a directory, with `/.` at its end.
    Contents,
}

impl Ending {
    /// A path without what it ends with, and that. A root is a directory.
    pub fn split(path: &[u8]) -> (&[u8], Self) {
        let dir = path
            .strip_suffix(b"/.")
            .or_else(|| path.strip_suffix(b".").filter(|dir| dir.is_empty()));
        match (dir, path.strip_suffix(b"/")) {
            (Some(dir), _) => (dir, Self::Contents),
            (None, Some(dir)) => (dir, Self::Slash),
            (None, None) if path.is_empty() => (path, Self::Slash),
            (None, None) => (path, Self::Name),
        }
    }
}

/// `hikyaku://HOST[:PORT][,HOST[:PORT]...]/PATH`.
const SCHEME: &[u8] = b"hikyaku://";

impl Servers {
    /// Reads `hikyaku://HOST[:PORT][,HOST[:PORT]...]/PATH`; `None` for a text that does not begin so.
    // fuzz: lines
    pub fn parse(text: &[u8]) -> Option<Result<Self, NotAnAddress>> {
        let rest = text.strip_prefix(SCHEME)?;
        let slash = rest.iter().position(|&byte| byte == b'/').unwrap_or(rest.len());
        let (hosts, path) = rest.split_at(slash);
        let hosts = String::from_utf8_lossy(hosts);
        let servers: Result<_, _> = hosts.split(',').map(str::parse).collect();
        let (path, ending) = trimmed(path);
        Some(servers.map(|servers| Self { servers, path, ending, keys: Vec::new() }))
    }

    /// The path `CLUSTER:PATH`, where the user's settings have such a cluster.
    pub fn of_cluster(cluster: &Cluster, path: &[u8]) -> Self {
        let port = cluster.port.map_or(PORT, NonZeroU16::get);
        let address = |host: &String| Address { host: host.clone(), port };
        let servers = cluster.hosts.iter().map(address).collect();
        let (path, ending) = trimmed(path);
        Self { servers, path, ending, keys: cluster.keys.clone() }
    }
}

/// Whom to trust as a server: one that has one of these keys; if there are none, the one that was met first.
pub fn trust(keys: &[Fingerprint], known: &KnownPeers) -> Trust {
    match keys {
        [] => Trust::FirstUse(known.clone()),
        keys => Trust::AnyOf(keys.into()),
    }
}

/// The path without a slash at its begin and without what it ends with, and that.
fn trimmed(path: &[u8]) -> (Vec<u8>, Ending) {
    let (path, ending) = Ending::split(path);
    (path.strip_prefix(b"/").unwrap_or(path).to_vec(), ending)
}

impl fmt::Display for Servers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hosts: Vec<_> = self.servers.iter().map(Address::to_string).collect();
        write!(f, "hikyaku://{}/{}", hosts.join(","), Shown::new(&self.path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_ends_as_it_was_written() {
        use Ending::{Contents, Name, Slash};
        for (path, name, ending) in [
            ("/run7", "run7", Name),
            ("/run7/", "run7", Slash),
            ("/run7/.", "run7", Contents),
            ("/a/b.", "a/b.", Name),
            ("/a/..", "a/..", Name),
            ("/.", "", Contents),
            (".", "", Contents),
            ("/", "", Slash),
            ("", "", Slash),
        ] {
            assert_eq!(trimmed(path.as_bytes()), (name.as_bytes().to_vec(), ending), "{path}");
        }
    }
}
