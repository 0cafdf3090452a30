//! One stream to a server: files come by the channels of the source, and are sent in order.

use super::relay::{GROUP_BYTES, GROUP_MAX};
use super::run::{At, Attempt, Event, LOOK, Run};
use crate::census::File;
use crate::dress::Times;
use crate::fetch::FetchError;
use hikyaku_remote::{Client, NewFile, RemoteError, RequestId, SMALL_BYTES_MAX, Taken, Uploads};
use std::ops::Range;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Cost of a message and a name at a server, in bytes of a file. Each small file counts as this number of bytes larger,
/// which limits the number of small files under way.
const SMALL_COST: u64 = 4 << 10;

/// The first error that the server returned for a file.
pub(super) type Trouble = Arc<Mutex<Option<RemoteError>>>;

/// The server that a file goes to, and the channel for the events of this file.
pub(super) struct Way<'a> {
    uploads: &'a Uploads,
    pub(super) at: At,
    pub(super) attempt: Attempt,
    pub(super) say: &'a Sender<Event>,
}

impl Run<'_> {
    /// Sends files to a server until there are no more, or its connection is lost.
    pub(super) fn lane(&self, client: &Client, at: At, say: &Sender<Event>) {
        let uploads = match client.uploads() {
            Ok(uploads) => uploads,
            Err(error) => return tell(say, Event::Lost { at, error }),
        };
        let servers_before = u32::try_from(at.server.0).unwrap_or(u32::MAX);
        let stagger = self.job.parameters.client.stagger.saturating_mul(servers_before);
        self.sleep(stagger.saturating_sub(self.now()));
        let mut rest = None;
        while let Some(attempt) = rest.take().or_else(|| self.next(at)) {
            let way = |attempt| Way { uploads: &uploads, at, attempt, say };
            if self.is_small(attempt) {
                let group = self.group(at, attempt, &mut rest);
                for (attempt, content) in self.contents(at, group) {
                    let sent = content.map(|bytes| self.small(&way(attempt), &bytes));
                    self.over(&way(attempt), sent);
                }
            } else {
                let way = way(attempt);
                let sent = self.pass_on(&way);
                self.over(&way, sent);
            }
        }
    }

    /// Ends the work of a stream on a file. An error is reported at once; otherwise the result follows with the answer
    /// of the server.
    fn over(&self, way: &Way<'_>, sent: Result<(), FetchError>) {
        if let Err(error) = sent {
            let (at, attempt) = (way.at, way.attempt);
            tell(way.say, Event::Ended { at, attempt, result: Err(error) });
        }
        self.idle();
        self.sleep(self.job.parameters.client.pause);
    }

    /// Whether a file is fetched together with others.
    fn is_small(&self, attempt: Attempt) -> bool {
        self.size(attempt) <= SMALL_BYTES_MAX.min(self.channels.small_bytes())
    }

    fn size(&self, attempt: Attempt) -> u64 {
        self.job.plan.files[attempt.file].seen.size
    }

    /// A small file and those that the server takes beside it. A larger one that it took is the `rest`.
    fn group(&self, at: At, first: Attempt, rest: &mut Option<Attempt>) -> Vec<Attempt> {
        let (mut group, mut bytes) = (vec![first], self.size(first));
        while group.len() < GROUP_MAX
            && bytes < GROUP_BYTES
            && let Some(next) = self.next_now(at)
        {
            if !self.is_small(next) {
                *rest = Some(next);
                break;
            }
            bytes += self.size(next);
            group.push(next);
        }
        group
    }

    /// Waits for `time`, or until the upload is over or stopped.
    fn sleep(&self, time: Duration) {
        let until = Instant::now() + time;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() || self.is_stopped() || self.state().is_over {
                return;
            }
            thread::sleep(left.min(LOOK));
        }
    }

    /// The file as the server gets it.
    fn new_file(&self, way: &Way<'_>) -> NewFile {
        let file = &self.job.plan.files[way.attempt.file];
        NewFile {
            path: file.to.as_bytes().to_vec(),
            size: file.seen.size,
            mode: Some(self.job.dress.file(file.mode, self.there.found(way.at.server, &file.to))),
            modified: (self.job.times == Times::Kept).then_some(file.seen.modified),
            taken: Taken::Replaced,
        }
    }

    /// Sends a file as it comes.
    fn pass_on(&self, way: &Way<'_>) -> Result<(), FetchError> {
        let File { seen, data, .. } = &self.job.plan.files[way.attempt.file];
        if seen.size <= SMALL_BYTES_MAX {
            self.small(way, &self.content(way)?);
            return Ok(());
        }
        self.large(way, *data, |draft| self.relay(way, draft))
    }

    fn small(&self, way: &Way<'_>, bytes: &[u8]) {
        let (at, attempt, say) = (way.at, way.attempt, way.say.clone());
        let size = bytes.len() as u64;
        if !self.room(at, attempt, size + SMALL_COST) || !self.hand_over(attempt) {
            return;
        }
        way.uploads.small(self.new_file(way), bytes, move |named| {
            let written = if named.is_ok() { size } else { 0 };
            tell(&say, Event::Answered { at, attempt, bytes: size + SMALL_COST, written });
            let result = named.map(drop).map_err(FetchError::Server);
            tell(&say, Event::Ended { at, attempt, result });
        });
    }

    /// Makes a large file of which about `data` bytes are not in holes. `send` sends its bytes.
    fn large(
        &self,
        way: &Way<'_>,
        data: u64,
        send: impl FnOnce((RequestId, &Trouble)) -> Result<Sent, FetchError>,
    ) -> Result<(), FetchError> {
        let (at, attempt, uploads) = (way.at, way.attempt, way.uploads);
        let trouble = Trouble::default();
        let note = trouble.clone();
        let draft = uploads.begin(self.new_file(way), data, move |begun| note_error(&note, begun));
        match send((draft, &trouble)) {
            Ok(Sent::All) if self.hand_over(attempt) => {
                let say = way.say.clone();
                uploads.finish(draft, move |named| {
                    let result = named.map(drop).map_err(FetchError::Server);
                    tell(&say, Event::Ended { at, attempt, result });
                });
                Ok(())
            }
            Ok(Sent::All | Sent::Unwanted) => {
                uploads.discard(draft);
                Ok(())
            }
            Err(error) => {
                uploads.discard(draft);
                Err(error)
            }
        }
    }

    /// The next bytes of a draft are a hole.
    pub(super) fn hole(
        &self,
        way: &Way<'_>,
        (draft, trouble): (RequestId, &Trouble),
        hole: Range<u64>,
    ) {
        let (note, say, length) = (trouble.clone(), way.say.clone(), hole.end - hole.start);
        let (at, attempt) = (way.at, way.attempt);
        way.uploads.zeros(draft, hole.start, length, move |told| {
            let written = if told.is_ok() { length } else { 0 };
            note_error(&note, told);
            tell(&say, Event::Answered { at, attempt, bytes: 0, written });
        });
    }

    /// Sends the next bytes of a draft.
    pub(super) fn piece(
        &self,
        way: &Way<'_>,
        (draft, trouble): (RequestId, &Trouble),
        begin: u64,
        bytes: &[u8],
    ) {
        let (note, say, length) = (trouble.clone(), way.say.clone(), bytes.len() as u64);
        let (at, attempt) = (way.at, way.attempt);
        way.uploads.bytes(draft, begin, bytes, move |written| {
            let counted = if written.is_ok() { length } else { 0 };
            note_error(&note, written);
            tell(&say, Event::Answered { at, attempt, bytes: length, written: counted });
        });
    }
}

/// How much of a file was sent.
pub(super) enum Sent {
    All,
    /// Another server has the file, or this server is lost: the upload waits for no result of this attempt.
    Unwanted,
}

/// Reports an event. After the end of the upload the receiver may be closed, so `send` may fail.
pub(super) fn tell(say: &Sender<Event>, event: Event) {
    let _ = say.send(event);
}

fn note_error(trouble: &Trouble, answer: Result<(), RemoteError>) {
    if let Err(error) = answer {
        trouble.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
    }
}

pub(super) fn first(trouble: &Trouble) -> Option<RemoteError> {
    trouble.lock().unwrap_or_else(PoisonError::into_inner).clone()
}
