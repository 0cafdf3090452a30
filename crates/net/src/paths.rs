//! The rates of paths, remembered from one connection to the next in one small file.
//!
//! A path is a pair of the peer's network (/24 or /48) and a local address. A writer writes the whole
//! file under a temporary name and renames it, so a reader sees the old or the new file. If two
//! programs write at the same time, one overwrites the entry of the other, whose next connection then
//! starts without a hint.

use hikyaku_proto::PathHint;
use hikyaku_units::Rate;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// A file with the rates of paths.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PathCache {
    file: PathBuf,
}

/// Whether the rates of paths are remembered.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Memory {
    /// They are, in this file.
    File(PathCache),
    /// They are not: no file is read or written.
    Off,
}

/// The two ends of a path, in the precision in which paths are told apart.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct PathKey {
    peer: String,
    local: IpAddr,
}

/// The entries of a cache at one time.
#[derive(Default)]
pub(crate) struct Snapshot(Vec<Line>);

#[derive(Serialize, Deserialize, Default)]
struct Document {
    paths: Vec<Line>,
}

#[derive(Serialize, Deserialize, Clone)]
struct Line {
    peer: String,
    local: IpAddr,
    rate_bits_per_second: u64,
    base_rtt_micros: u64,
    /// Seconds since 1970.
    seen: u64,
}

/// An entry is used for a day: routes and loads change.
const KEEP: Duration = Duration::from_secs(24 * 3600);
/// Entries kept; the oldest are dropped.
const MAX_LINES: usize = 1000;

impl PathCache {
    /// A cache in `file`, which need not exist.
    pub fn at(file: impl Into<PathBuf>) -> Self {
        Self { file: file.into() }
    }

    /// The cache of the user: `hikyaku/paths.json` in `$XDG_CACHE_HOME`, or else in `~/.cache`. `None`
    /// if neither variable holds an absolute path.
    pub fn of_user() -> Option<Self> {
        let below =
            |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|p| p.is_absolute());
        let cache = below("XDG_CACHE_HOME").or_else(|| Some(below("HOME")?.join(".cache")))?;
        Some(Self::at(cache.join("hikyaku").join("paths.json")))
    }

    /// The path of the file.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// The hint for a path. A file that cannot be read counts as empty.
    pub(crate) fn recall(&self, key: &PathKey, today: SystemTime) -> Option<PathHint> {
        self.snapshot().recall(key, today)
    }

    /// All entries, for the driver thread, which must not wait for a disk later.
    pub(crate) fn snapshot(&self) -> Snapshot {
        Snapshot(self.read())
    }

    /// Adds the entry of a path, or replaces it.
    pub(crate) fn record(
        &self,
        key: &PathKey,
        hint: PathHint,
        today: SystemTime,
    ) -> io::Result<()> {
        let now = seconds(today);
        let mut paths = self.read();
        paths.retain(|line| !line.is(key) && line.is_fresh(now));
        paths.truncate(MAX_LINES - 1);
        let line = Line {
            peer: key.peer.clone(),
            local: key.local,
            rate_bits_per_second: hint.rate.bits_per_sec(),
            base_rtt_micros: hint.base_rtt.as_micros() as u64,
            seen: now,
        };
        paths.insert(0, line);
        let text = serde_json::to_string_pretty(&Document { paths }).map_err(io::Error::other)?;
        if let Some(folder) = self.file.parent() {
            fs::create_dir_all(folder)?;
        }
        let draft = self.file.with_extension(format!("{}.tmp", std::process::id()));
        fs::write(&draft, text)?;
        fs::rename(&draft, &self.file)
    }

    fn read(&self) -> Vec<Line> {
        let text = fs::read(&self.file).unwrap_or_default();
        serde_json::from_slice::<Document>(&text).unwrap_or_default().paths
    }
}

impl Snapshot {
    pub(crate) fn recall(&self, key: &PathKey, today: SystemTime) -> Option<PathHint> {
        let now = seconds(today);
        let line = self.0.iter().find(|line| line.is(key) && line.is_fresh(now))?;
        Some(PathHint {
            rate: Rate::from_bits_per_sec(line.rate_bits_per_second),
            base_rtt: Duration::from_micros(line.base_rtt_micros),
        })
    }
}

impl Memory {
    /// In the file of [`PathCache::of_user`]; off if that is `None`.
    pub fn of_user() -> Self {
        PathCache::of_user().map_or(Self::Off, Self::File)
    }
}

impl Line {
    fn is(&self, key: &PathKey) -> bool {
        self.peer == key.peer && self.local == key.local
    }

    const fn is_fresh(&self, now: u64) -> bool {
        self.seen <= now && now - self.seen < KEEP.as_secs()
    }
}

impl PathKey {
    /// The path from `local` to `peer`.
    pub(crate) fn new(peer: IpAddr, local: IpAddr) -> Self {
        let peer = match peer.to_canonical() {
            IpAddr::V4(ip) => {
                let [a, b, c, _] = ip.octets();
                format!("{}/24", Ipv4Addr::new(a, b, c, 0))
            }
            IpAddr::V6(ip) => {
                let [a, b, c, ..] = ip.segments();
                format!("{}/48", Ipv6Addr::new(a, b, c, 0, 0, 0, 0, 0))
            }
        };
        Self { peer, local: local.to_canonical() }
    }
}

fn seconds(time: SystemTime) -> u64 {
    time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_remembered_for_a_day_and_for_its_network() {
        let folder = std::env::temp_dir().join(format!("hikyaku-paths-{}", std::process::id()));
        let cache = PathCache::at(folder.join("deep").join("paths.json"));
        let key = |peer: &str| PathKey::new(peer.parse().unwrap(), Ipv4Addr::LOCALHOST.into());
        let hint = |bits| PathHint {
            rate: Rate::from_bits_per_sec(bits),
            base_rtt: Duration::from_micros(1234),
        };
        let today = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000);
        assert_eq!(cache.recall(&key("192.0.2.1"), today), None);
        cache.record(&key("192.0.2.1"), hint(5), today).unwrap();
        cache.record(&key("2001:db8::1"), hint(6), today).unwrap();
        cache.record(&key("192.0.2.9"), hint(7), today).unwrap();
        assert_eq!(cache.recall(&key("192.0.2.77"), today), Some(hint(7)));
        assert_eq!(cache.recall(&key("2001:db8:0:9::"), today), Some(hint(6)));
        assert_eq!(cache.recall(&key("192.0.3.1"), today), None);
        assert_eq!(cache.recall(&key("192.0.2.1"), today + KEEP), None);
        fs::write(cache.file(), "not json").unwrap();
        assert_eq!(cache.recall(&key("192.0.2.1"), today), None);
        fs::remove_dir_all(folder).unwrap();
    }
}
