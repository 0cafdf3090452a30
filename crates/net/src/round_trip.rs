//! The least round-trip time of the connections between this host and another one.

use crate::paths::Memory;
use std::net::IpAddr;
use std::time::Duration;

/// A round-trip time that is shorter by less than this part of it is no news.
const NEWS: u32 = 16;

/// The least round-trip time of some connections. Earlier connections may have seen the path with shorter queues.
#[derive(Debug)]
pub struct LeastRoundTrip {
    memory: Memory,
    known: Option<Duration>,
}

impl LeastRoundTrip {
    /// Of connections of which none has been seen.
    pub const fn new(memory: Memory) -> Self {
        Self { memory, known: None }
    }

    /// The least one, or zero if there was none.
    pub fn get(&self) -> Duration {
        self.known.unwrap_or_default()
    }

    /// Notes that of a connection. The function returns the addresses of the other host and of this one, if they are known.
    pub fn note(
        &mut self,
        round_trip: Duration,
        addresses: impl FnOnce() -> Option<(IpAddr, IpAddr)>,
    ) {
        let is_news = self.known.is_none_or(|known| round_trip < known - known / NEWS);
        if round_trip.is_zero() || !is_news {
            return;
        }
        let least = addresses().map_or(round_trip, |(peer, local)| {
            self.memory.least_round_trip(peer, local, round_trip)
        });
        self.known = Some(self.known.map_or(least, |known| known.min(least)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paths::PathCache;
    use std::net::Ipv4Addr;

    #[test]
    fn the_least_of_all_connections_is_kept_and_remembered() {
        let folder = std::env::temp_dir().join(format!("hikyaku-least-{}", std::process::id()));
        let memory = Memory::File(PathCache::at(folder.join("paths.json")));
        let host = |last| IpAddr::from(Ipv4Addr::new(192, 0, 2, last));
        let millis = Duration::from_millis;
        let mut least = LeastRoundTrip::new(memory.clone());
        assert_eq!(least.get(), Duration::ZERO);
        for (rtt, expected) in [(0, 0), (50, 50), (48, 50), (90, 50), (20, 20)] {
            least.note(millis(rtt), || Some((host(1), host(9))));
            assert_eq!(least.get(), millis(expected), "{rtt}");
        }
        let mut later = LeastRoundTrip::new(memory);
        later.note(millis(45), || Some((host(2), host(9))));
        assert_eq!(later.get(), millis(20));
        later.note(millis(10), || None);
        assert_eq!(later.get(), millis(10));
        std::fs::remove_dir_all(folder).unwrap();
    }
}
