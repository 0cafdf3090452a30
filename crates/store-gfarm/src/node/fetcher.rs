//! A node as a channel that fetches files.

use super::{File, Node};
use crate::gfarm::Trouble;
use crate::pool::LANES_MAX;
use hikyaku_store::{
    Asked, Begins, ConnectionCount, Cut, Cutting, ErrorKind, FetchError, Fetcher, FetcherTraits,
    Segment, Wanted,
};
use hikyaku_transfer::{Geometry, SegmentHash};
use hikyaku_units::Rate;
use std::time::Duration;

/// The round-trip time of a node that was not connected to.
const USUAL_RTT: Duration = Duration::from_millis(100);
/// Requests that may be under way: as many wait as connections are busy, so that none of these is idle between two requests.
const REQUESTS_MAX: u32 = 2 * LANES_MAX as u32;
/// Files up to this size are read many at a time: above it, a node sends a file for longer than a request costs.
const SMALL_BYTES: u64 = 256 << 10;

impl Fetcher for Node {
    fn traits(&self) -> FetcherTraits {
        FetcherTraits {
            requests_max: REQUESTS_MAX,
            request_bytes: None,
            small_bytes: SMALL_BYTES,
            cutting: Cutting::Free,
            connections: ConnectionCount::Own,
            begins: Begins::WithSegment,
        }
    }

    fn ranges(
        &self,
        file: &Wanted,
        asked: &Asked<'_>,
        cut: &Cut,
        arrived: &(dyn Fn(u64) + Sync),
        each: &mut dyn FnMut(Segment<'_>),
    ) -> Result<usize, FetchError> {
        let geometry = Geometry::new(file.size);
        let arrived = |bytes| self.arrived(bytes, arrived);
        self.read(File::of(file), asked.ranges, cut, &arrived, |at, bytes| {
            let index = geometry.and_then(|geometry| geometry.at(at));
            let hash = geometry
                .zip(index)
                .and_then(|(geometry, index)| SegmentHash::new(geometry, index, bytes));
            if let (Some(index), Some(hash)) = (index, hash) {
                each(Segment { index, hash, bytes });
            }
        })?;
        Ok(0)
    }

    fn small(
        &self,
        files: &[&Wanted],
        cut: &Cut,
        arrived: &(dyn Fn(u64) + Sync),
        each: &mut dyn FnMut(usize, Result<Vec<u8>, ErrorKind>),
    ) -> Result<(), FetchError> {
        let files: Vec<File<'_>> = files.iter().copied().map(File::of).collect();
        let arrived = |bytes| self.arrived(bytes, arrived);
        Ok(self.read_whole(&files, cut, &arrived, each)?)
    }

    fn limit(&self, rate: Option<Rate>) {
        self.paced.limit(rate);
    }

    fn round_trip(&self) -> Duration {
        self.pool.round_trip().filter(|rtt| !rtt.is_zero()).unwrap_or(USUAL_RTT)
    }

    fn is_alive(&self) -> bool {
        self.probe().is_ok()
    }

    fn close(&self, _: &str) {
        self.paced.close();
        self.pool.hang_up();
    }
}

impl Node {
    /// Bytes have come. Its protocol has no limit of the rate, so that this end waits.
    fn arrived(&self, bytes: u64, arrived: &dyn Fn(u64)) {
        self.paced.wait(bytes);
        arrived(bytes);
    }
}

impl<'a> File<'a> {
    fn of(file: &'a Wanted) -> Self {
        Self { path: file.path.as_bytes(), content: file.content.as_ref() }
    }
}

impl From<Trouble> for FetchError {
    fn from(trouble: Trouble) -> Self {
        match trouble {
            Trouble::Refused(kind) => Self::File(kind),
            Trouble::Away(text) | Trouble::MetadataAway(text) => Self::Lost(text),
        }
    }
}
