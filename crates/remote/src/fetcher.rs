//! A client as a channel that fetches files.

use crate::client::Client;
use crate::error::RemoteError;
use crate::message::{Class, Give, Seen, Wanted as WantedSmall};
use hikyaku_store::{
    Asked, Begins, ConnectionCount, Cut, Cutting, ErrorKind, FetchError, Fetcher, FetcherTraits,
    Segment, StorePath, Wanted,
};
use hikyaku_units::Rate;
use std::time::Duration;

/// Requests that may be under way. Each file that is larger than a small one is a request: in a round trip of 200 ms a server
/// sends 80 files of 300 kB at 1 Gbit/s.
const REQUESTS_MAX: u32 = 256;
/// Files up to this size are fetched many at a time: above it, a server sends a file for longer than a request costs.
const SMALL_BYTES: u64 = 256 << 10;

impl Fetcher for Client {
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
        let ranges = asked.ranges.iter().map(|range| (range.start, range.end)).collect();
        let (path, seen) = (file.path.as_bytes().to_vec(), Seen::from(file));
        let incoming = self.give(Give { path, seen, ranges, class: Class::Bulk })?;
        let (client, request) = (self.clone(), incoming.id());
        cut.on_cut(move |from| client.cut(request, from));
        let outcome = incoming.receive(arrived, |segment| {
            let (index, hash, bytes) = (segment.index, segment.hash, segment.bytes);
            each(Segment { index, hash, bytes });
        })?;
        Ok(outcome.damaged.len())
    }

    fn small(
        &self,
        files: &[&Wanted],
        cut: &Cut,
        arrived: &(dyn Fn(u64) + Sync),
        each: &mut dyn FnMut(usize, Result<Vec<u8>, ErrorKind>),
    ) -> Result<(), FetchError> {
        let wanted = |file: &&Wanted| {
            let (path, seen) = (file.path.as_bytes().to_vec(), Seen::from(*file));
            WantedSmall { path, seen }
        };
        let begun = |request| {
            let client = self.clone();
            cut.on_cut(move |from| client.cut(request, from));
        };
        let given = self.give_many(files.iter().map(wanted).collect(), begun, |index, content| {
            if let Ok(bytes) = &content {
                arrived(bytes.len() as u64);
            }
            each(index, content);
        });
        Ok(given?)
    }

    fn limit(&self, rate: Option<Rate>) {
        self.cap(rate);
    }

    fn round_trip(&self) -> Duration {
        Self::round_trip(self)
    }

    fn is_alive(&self) -> bool {
        self.connection().close_reason().is_none() && self.look(&StorePath::ROOT).is_ok()
    }

    fn close(&self, why: &str) {
        self.connection().close(hikyaku_net::code::APPLICATION, why);
    }
}

impl From<&Wanted> for Seen {
    fn from(file: &Wanted) -> Self {
        Self { size: file.size, modified: file.modified }
    }
}

impl From<RemoteError> for FetchError {
    fn from(error: RemoteError) -> Self {
        match error {
            RemoteError::Refused { kind, .. } => Self::File(kind),
            RemoteError::Closed(_) | RemoteError::Protocol(_) => Self::Lost(error.to_string()),
        }
    }
}
