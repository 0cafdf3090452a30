//! A file that comes from its beginning to its end by one answer, from a server that gives no parts, or does not say which
//! version of the file a part is of.

use crate::fetch::{Conduct, Unfetched};
use crate::show::Show;
use hikyaku_fs::{Draft, Zeros};
use hikyaku_http::{Answer, Attempts, Client, Fault, Source, Stop};
use hikyaku_transfer::Limit;
use std::sync::atomic::Ordering;

/// Bytes that are read at once.
const BUFFER_BYTES: usize = 256 << 10;

/// The parts that a stream needs.
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
    /// Fetches the file. `answer` has all of it, and its size, if that is told. After a failure the file is begun anew.
    /// Returns its size.
    pub(crate) fn run(&self, answer: Option<(Answer, Option<u64>)>) -> Result<u64, Unfetched> {
        let (mut answer, mut attempts) = (answer, Attempts::new(self.conduct.retry));
        loop {
            let counted = self.show.sent();
            let fault = match self.once(answer.take()) {
                Err(Unfetched::Fault(fault)) => fault,
                ended => return ended,
            };
            let Some(wait) = attempts.next(&fault, self.conduct.retries) else {
                return Err(Unfetched::Fault(fault));
            };
            self.stop.sleep(wait);
            self.show.forget(self.show.sent().saturating_sub(counted));
        }
    }

    fn once(&self, answer: Option<(Answer, Option<u64>)>) -> Result<u64, Unfetched> {
        let answer = match answer {
            Some(answer) => Ok(answer),
            None => {
                let whole = self.source.whole(self.client, None, self.stop);
                whole.map(|(answer, offer)| (answer, offer.total))
            }
        };
        let (Answer { mut connection, .. }, total) = answer.map_err(Unfetched::Fault)?;
        let mut buffer = vec![0; BUFFER_BYTES];
        let mut at = 0;
        loop {
            let room = self.limit.piece_bytes(buffer.len());
            let length = connection.read(&mut buffer[..room]).map_err(Unfetched::Fault)?;
            if length == 0 {
                break;
            }
            let written = self.draft.write_at(at, &buffer[..length], Zeros::Written);
            written.map_err(|error| Unfetched::Local(error.into()))?;
            at += length as u64;
            self.show.counted().fetch_add(length as u64, Ordering::Relaxed);
            self.limit.wait(length as u64, || self.stop.is_set());
        }
        match total {
            Some(total) if total != at => Err(Unfetched::Fault(Fault::Closed)),
            _ => Ok(at),
        }
    }
}
