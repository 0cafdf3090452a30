//! One stream to a server: files are read, and sent in order.

use super::relay::{GROUP_BYTES, GROUP_MAX};
use super::run::{At, Attempt, Event, LOOK, Run};
use super::source::{Channels, Reading, Source};
use crate::fetch::FetchError;
use hikyaku_remote::{Client, NewFile, RemoteError, RequestId, SMALL_BYTES_MAX, Taken, Uploads};
use hikyaku_store::{Access, Extent, Store};
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
        let mut buffer = vec![0; SMALL_BYTES_MAX as usize];
        let servers_before = u32::try_from(at.server.0).unwrap_or(u32::MAX);
        let stagger = self.job.parameters.stagger.saturating_mul(servers_before);
        self.sleep(stagger.saturating_sub(self.now()));
        let mut rest = None;
        while let Some(attempt) = rest.take().or_else(|| self.next(at)) {
            let way = |attempt| Way { uploads: &uploads, at, attempt, say };
            match (self.job.source, &self.channels) {
                (Source::Channels(..), Some(channels)) if self.is_small(channels, attempt) => {
                    let group = self.group((channels, at), attempt, &mut rest);
                    for (attempt, content) in self.contents(channels, group) {
                        let sent = content.map(|bytes| self.small(&way(attempt), &bytes));
                        self.over(&way(attempt), sent);
                    }
                }
                (Source::Channels(..), channels) => {
                    let way = way(attempt);
                    let sent = channels.as_ref().map_or(Ok(()), |all| self.pass_on(all, &way));
                    self.over(&way, sent);
                }
                (Source::Store(store), _) => {
                    let way = way(attempt);
                    let sent = self.send(store, &way, &mut buffer);
                    self.over(&way, sent);
                }
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
        self.sleep(self.job.parameters.pause);
    }

    /// Whether a file is fetched together with others.
    fn is_small(&self, channels: &Channels<'_>, attempt: Attempt) -> bool {
        self.size(attempt) <= SMALL_BYTES_MAX.min(channels.small_bytes())
    }

    fn size(&self, attempt: Attempt) -> u64 {
        self.job.plan.files[attempt.file].seen.size
    }

    /// A small file and those that the server takes beside it. A larger one that it took is the `rest`.
    fn group(
        &self,
        (channels, at): (&Channels<'_>, At),
        first: Attempt,
        rest: &mut Option<Attempt>,
    ) -> Vec<Attempt> {
        let (mut group, mut bytes) = (vec![first], self.size(first));
        while group.len() < GROUP_MAX
            && bytes < GROUP_BYTES
            && let Some(next) = self.next_now(at)
        {
            if !self.is_small(channels, next) {
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
            modified: Some(file.seen.modified),
            taken: Taken::Replaced,
        }
    }

    /// Sends a file of a store.
    fn send(&self, store: &dyn Store, way: &Way<'_>, buffer: &mut [u8]) -> Result<(), FetchError> {
        let file = &self.job.plan.files[way.attempt.file];
        let size = file.seen.size;
        self.job.meter.file_begins(file.to.as_bytes(), size, way.at.server);
        let open =
            store.open(&file.path.clone().into(), Access::Read).map_err(FetchError::Source)?;
        let reading = Reading { file, open: &*open };
        reading.begin()?;
        if size <= SMALL_BYTES_MAX {
            let bytes = &mut buffer[..size as usize];
            reading.read(0, bytes)?;
            reading.check()?;
            self.small(way, bytes);
            return Ok(());
        }
        let data = reading.data()?;
        self.large(way, data, |draft| {
            let sent = self.pieces(way, draft, &reading, buffer)?;
            reading.check().map(|()| sent)
        })
    }

    /// Sends a file of another source as it comes.
    fn pass_on(&self, channels: &Channels<'_>, way: &Way<'_>) -> Result<(), FetchError> {
        let size = self.size(way.attempt);
        if size <= SMALL_BYTES_MAX {
            self.small(way, &self.content(channels, way)?);
            return Ok(());
        }
        self.large(way, size, |draft| self.relay(channels, way, draft))
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

    fn pieces(
        &self,
        way: &Way<'_>,
        (draft, trouble): (RequestId, &Trouble),
        reading: &Reading<'_>,
        buffer: &mut [u8],
    ) -> Result<Sent, FetchError> {
        let (at, attempt, size) = (way.at, way.attempt, reading.file.seen.size);
        let mut from = 0;
        while from < size {
            let run = from..size.min(from + RUN_BYTES);
            from = run.end;
            for extent in reading.extents(run)? {
                let mut data = match extent {
                    Extent::Data(data) => data,
                    Extent::Hole(hole) => {
                        let (say, length) = (way.say.clone(), hole.end - hole.start);
                        let note = trouble.clone();
                        way.uploads.zeros(draft, hole.start, length, move |told| {
                            let counted = if told.is_ok() { length } else { 0 };
                            note_error(&note, told);
                            tell(&say, Event::Answered { at, attempt, bytes: 0, written: counted });
                        });
                        continue;
                    }
                };
                while !data.is_empty() {
                    if let Some(error) = first(trouble) {
                        return Err(FetchError::Server(error));
                    }
                    let length = (data.end - data.start).min(buffer.len() as u64);
                    let bytes = &mut buffer[..length as usize];
                    reading.read(data.start, bytes)?;
                    if !self.room(at, attempt, length) {
                        return Ok(Sent::Unwanted);
                    }
                    self.piece(way, (draft, trouble), data.start, bytes);
                    data.start += length;
                }
            }
        }
        Ok(Sent::All)
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

/// Bytes of a file in which holes are looked for at once.
const RUN_BYTES: u64 = 64 << 20;

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
