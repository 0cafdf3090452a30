//! A file that comes from its beginning to its end through one connection, from a server that gives no parts.

use crate::fetch::{Conduct, Unfetched};
use crate::http::client::{Answer, Client};
use crate::http::fault::Fault;
use crate::http::wire::Stop;
use crate::limit::Limit;
use crate::offer::Offer;
use crate::show::Show;
use crate::source::{Source, backoff};
use hikyaku_fs::{Draft, Zeros};
use std::sync::atomic::Ordering;

/// Bytes that are read at once.
const BUFFER_BYTES: usize = 256 << 10;

/// What a stream needs.
pub(crate) struct Streamed<'a> {
    pub(crate) client: &'a Client,
    pub(crate) source: &'a Source,
    pub(crate) draft: &'a Draft,
    pub(crate) limit: &'a Limit,
    pub(crate) show: &'a Show,
    pub(crate) conduct: Conduct,
    pub(crate) stop: &'a Stop,
}

impl Streamed<'_> {
    /// Fetches the file, whose beginning is in `answer`. After a failure it begins anew. Returns its size.
    pub(crate) fn run(&self, answer: Answer) -> Result<u64, Unfetched> {
        let (mut answer, mut failures) = (Some(answer), 0);
        loop {
            let counted = self.show.sent();
            let fault = match self.once(answer.take()) {
                Err(Unfetched::Fault(fault)) => fault,
                ended => return ended,
            };
            failures += 1;
            if !fault.may_pass() || failures > self.conduct.retries {
                return Err(Unfetched::Fault(fault));
            }
            let wait = backoff(self.conduct.wait, failures);
            self.stop.sleep(fault.retry_after().unwrap_or(wait));
            self.show.forget(self.show.sent().saturating_sub(counted));
        }
    }

    fn once(&self, answer: Option<Answer>) -> Result<u64, Unfetched> {
        let answer = match answer {
            Some(answer) => Ok(answer),
            None => self.client.get(None, &self.source.place, None, self.stop),
        };
        let Answer { mut connection, head } = answer.map_err(Unfetched::Fault)?;
        let total = Offer::of(&head, None).map_err(Unfetched::Fault)?.total;
        let mut buffer = vec![0; BUFFER_BYTES];
        let mut at = 0;
        loop {
            let room = self.limit.read_bytes(buffer.len());
            let length = connection.read(&mut buffer[..room]).map_err(Unfetched::Fault)?;
            if length == 0 {
                break;
            }
            let written = self.draft.write_at(at, &buffer[..length], Zeros::Written);
            written.map_err(|error| Unfetched::Local(error.into()))?;
            at += length as u64;
            self.show.counted().fetch_add(length as u64, Ordering::Relaxed);
            self.limit.wait(length, self.stop);
        }
        match total {
            Some(total) if total != at => Err(Unfetched::Fault(Fault::Closed)),
            _ => Ok(at),
        }
    }
}
