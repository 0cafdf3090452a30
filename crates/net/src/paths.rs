//! The rates of paths, their least round-trip times and numbers of connections by TCP, and where UDP does not get through,
//! remembered from one connection to the next in one small file.
//!
//! A path is a pair of the peer's network (/24 or /48) and a local address. A reader sees the
//! old file or the new one. If two programs write at the same time, one overwrites the entry of the other, whose next
//! connection then starts without a hint.

mod connections;

use connections::{Granted, Held};
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

/// The two ends of a path, in the precision that distinguishes paths.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct PathKey {
    peer: String,
    local: IpAddr,
}

/// The entries of a cache at one time.
#[derive(Default)]
pub(crate) struct Snapshot(Vec<Line>);

/// An application's observation of UDP on a path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum UdpSeen {
    /// It gets through.
    Works,
    /// Nothing came back by UDP, while the same host was reached otherwise.
    Blocked,
}

#[derive(Serialize, Deserialize, Default)]
struct Document {
    paths: Vec<Line>,
    #[serde(default)]
    udp_blocked: Vec<Blocked>,
    #[serde(default)]
    tcp: Vec<ByTcp>,
    #[serde(default)]
    held: Vec<Held>,
    #[serde(default)]
    granted: Vec<Granted>,
}

/// A path over which TCP has connected.
#[derive(Serialize, Deserialize, Clone)]
struct ByTcp {
    peer: String,
    local: IpAddr,
    round_trip_micros: u64,
    /// Seconds since 1970.
    seen: u64,
}

/// A path on which UDP did not get through.
#[derive(Serialize, Deserialize, Clone)]
struct Blocked {
    peer: String,
    local: IpAddr,
    /// Seconds since 1970.
    seen: u64,
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
/// A round-trip time that is more than this many times the remembered one is that of another route, not of a queue.
const ROUND_TRIP_FACTOR: u32 = 4;
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
        let mut document = self.document();
        let paths = &mut document.paths;
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
        self.write(&document)
    }

    /// Notes what was seen of UDP on a path.
    fn note_udp(&self, key: &PathKey, seen: UdpSeen, today: SystemTime) -> io::Result<()> {
        let now = seconds(today);
        let mut document = self.document();
        let blocked = &mut document.udp_blocked;
        let before = blocked.len();
        blocked.retain(|line| !line.is(key) && line.is_fresh(now));
        match seen {
            UdpSeen::Works if blocked.len() == before => return Ok(()),
            UdpSeen::Works => {}
            UdpSeen::Blocked => {
                blocked.truncate(MAX_LINES - 1);
                blocked.insert(0, Blocked { peer: key.peer.clone(), local: key.local, seen: now });
            }
        }
        self.write(&document)
    }

    /// The least round-trip time of a path. Notes `measured` if no other one is known, or that is another route's.
    fn least_round_trip(
        &self,
        key: &PathKey,
        measured: Duration,
        today: SystemTime,
    ) -> io::Result<Duration> {
        let now = seconds(today);
        let mut document = self.document();
        let all = &mut document.tcp;
        let known = all.iter().find(|line| line.is(key) && line.is_fresh(now));
        let known = known.map(|line| Duration::from_micros(line.round_trip_micros));
        let same_route = |known: &Duration| measured <= known.saturating_mul(ROUND_TRIP_FACTOR);
        if let Some(known) = known.filter(|known| *known <= measured).filter(same_route) {
            return Ok(known);
        }
        all.retain(|line| !line.is(key) && line.is_fresh(now));
        all.truncate(MAX_LINES - 1);
        let round_trip_micros = u64::try_from(measured.as_micros()).unwrap_or(u64::MAX);
        let (peer, local) = (key.peer.clone(), key.local);
        all.insert(0, ByTcp { peer, local, round_trip_micros, seen: now });
        self.write(&document).map(|()| measured)
    }

    fn is_udp_blocked(&self, key: &PathKey, today: SystemTime) -> bool {
        let now = seconds(today);
        self.document().udp_blocked.iter().any(|line| line.is(key) && line.is_fresh(now))
    }

    fn write(&self, document: &Document) -> io::Result<()> {
        let text = serde_json::to_string_pretty(document).map_err(io::Error::other)?;
        if let Some(folder) = self.file.parent() {
            fs::create_dir_all(folder)?;
        }
        hikyaku_fs::write_whole(&self.file, text.as_bytes())
    }

    fn read(&self) -> Vec<Line> {
        self.document().paths
    }

    fn document(&self) -> Document {
        let text = fs::read(&self.file).unwrap_or_default();
        serde_json::from_slice(&text).unwrap_or_default()
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

    /// Notes for a day what was seen of UDP between the networks of two addresses. A file that cannot be written is not
    /// written: the next connection then finds out by itself.
    pub fn note_udp(&self, peer: IpAddr, local: IpAddr, seen: UdpSeen) {
        if let Self::File(cache) = self {
            let _ = cache.note_udp(&PathKey::new(peer, local), seen, SystemTime::now());
        }
    }

    /// The least round-trip time between two addresses, of a handshake of TCP that took `measured` now and of those of the last
    /// day. The difference is what packets wait in queues. Nothing is remembered of this host.
    pub fn least_round_trip(&self, peer: IpAddr, local: IpAddr, measured: Duration) -> Duration {
        match self {
            Self::File(cache) if !peer.to_canonical().is_loopback() => {
                let key = PathKey::new(peer, local);
                cache.least_round_trip(&key, measured, SystemTime::now()).unwrap_or(measured)
            }
            _ => measured,
        }
    }

    /// Whether UDP did not get through there when it was tried last.
    pub fn is_udp_blocked(&self, peer: IpAddr, local: IpAddr) -> bool {
        let key = PathKey::new(peer, local);
        matches!(self, Self::File(cache) if cache.is_udp_blocked(&key, SystemTime::now()))
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

impl Blocked {
    fn is(&self, key: &PathKey) -> bool {
        self.peer == key.peer && self.local == key.local
    }

    const fn is_fresh(&self, now: u64) -> bool {
        self.seen <= now && now - self.seen < KEEP.as_secs()
    }
}

impl ByTcp {
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
        // Where UDP does not get through is beside that.
        let blocked = |peer: &str| cache.is_udp_blocked(&key(peer), today);
        cache.note_udp(&key("192.0.2.1"), UdpSeen::Blocked, today).unwrap();
        assert!(blocked("192.0.2.200") && !blocked("192.0.3.1"));
        assert!(!cache.is_udp_blocked(&key("192.0.2.1"), today + KEEP));
        cache.record(&key("192.0.2.1"), hint(8), today).unwrap();
        assert!(blocked("192.0.2.1"));
        cache.note_udp(&key("192.0.2.1"), UdpSeen::Works, today).unwrap();
        assert!(!blocked("192.0.2.1"));
        assert_eq!(cache.recall(&key("192.0.2.1"), today), Some(hint(8)));
        // A handshake that waits in a queue does not change the least round trip; another route does.
        let least = |millis, today| {
            let measured = Duration::from_millis(millis);
            cache.least_round_trip(&key("192.0.2.1"), measured, today).unwrap().as_millis()
        };
        assert_eq!([40, 90, 30, 80].map(|millis| least(millis, today)), [40, 40, 30, 30]);
        assert_eq!([300, 290].map(|millis| least(millis, today)), [300, 290]);
        assert_eq!(least(299, today + KEEP), 299);
        assert!(cache.recall(&key("192.0.2.1"), today).is_some());
        let (peer, local) = (Ipv4Addr::LOCALHOST.into(), Ipv4Addr::LOCALHOST.into());
        let millis = |millis| Duration::from_millis(millis);
        let memory = Memory::File(cache.clone());
        assert_eq!(
            [7, 9].map(|time| memory.least_round_trip(peer, local, millis(time))),
            [7, 9].map(millis)
        );
        fs::write(cache.file(), "not json").unwrap();
        assert_eq!(cache.recall(&key("192.0.2.1"), today), None);
        fs::remove_dir_all(folder).unwrap();
    }
}
