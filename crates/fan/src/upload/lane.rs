//! One stream to a server: files are read, and sent in order.

use super::UploadError;
use super::run::{At, Attempt, Event, LOOK, Run};
use crate::census::File;
use hikyaku_remote::{
    Client, NewFile, RemoteError, RequestId, SMALL_BYTES_MAX, Seen, Taken, Uploads,
};
use hikyaku_store::{Access, ErrorKind, Extent, Open, StoreError};
use std::ops::Range;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// What a message and a name cost a server beside the bytes of a file: so many small files are under way as would be with
/// so many more bytes each.
const SMALL_COST: u64 = 4 << 10;

/// The first error that the server told of a file.
type Trouble = Arc<Mutex<Option<RemoteError>>>;

/// Where a file goes, and who hears of it.
struct Way<'a> {
    uploads: &'a Uploads,
    at: At,
    attempt: Attempt,
    say: &'a Sender<Event>,
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
        while let Some(attempt) = self.next(at) {
            let way = Way { uploads: &uploads, at, attempt, say };
            if let Err(error) = self.send(&way, &mut buffer) {
                tell(say, Event::Ended { at, attempt, result: Err(error) });
            }
            self.idle();
            self.sleep(self.job.parameters.pause);
        }
    }

    /// Waits so long, or until all is over.
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

    /// Sends a file. What comes of it is told later, unless this is an error.
    fn send(&self, way: &Way<'_>, buffer: &mut [u8]) -> Result<(), UploadError> {
        let file = &self.job.plan.files[way.attempt.file];
        let path = file.to.as_bytes();
        self.job.meter.file_begins(path, file.seen.size, way.at.server);
        let open = self.job.source.open(&file.path.clone().into(), Access::Read)?;
        if Seen::from(&open.found()?) != file.seen {
            return Err(changed(file).into());
        }
        let size = file.seen.size;
        let new = NewFile {
            path: file.to.as_bytes().to_vec(),
            size,
            mode: Some(self.job.dress.file(file.mode, self.there.found(way.at.server, &file.to))),
            modified: Some(file.seen.modified),
            taken: Taken::Replaced,
        };
        let reading = Reading { file, open: &*open };
        if size <= SMALL_BYTES_MAX {
            let bytes = &mut buffer[..size as usize];
            reading.read(0, bytes)?;
            reading.check()?;
            self.small(way, new, bytes);
            return Ok(());
        }
        self.large(way, new, &reading, buffer)
    }

    fn small(&self, way: &Way<'_>, new: NewFile, bytes: &[u8]) {
        let (at, attempt, say) = (way.at, way.attempt, way.say.clone());
        let size = bytes.len() as u64;
        if !self.room(at, attempt, size + SMALL_COST) || !self.hand_over(attempt) {
            return;
        }
        way.uploads.small(new, bytes, move |named| {
            let written = if named.is_ok() { size } else { 0 };
            tell(&say, Event::Answered { at, attempt, bytes: size + SMALL_COST, written });
            let result = named.map(drop).map_err(UploadError::Server);
            tell(&say, Event::Ended { at, attempt, result });
        });
    }

    /// Sends a large file in pieces.
    fn large(
        &self,
        way: &Way<'_>,
        new: NewFile,
        reading: &Reading<'_>,
        buffer: &mut [u8],
    ) -> Result<(), UploadError> {
        let (at, attempt, uploads) = (way.at, way.attempt, way.uploads);
        let trouble = Trouble::default();
        let (note, data) = (trouble.clone(), reading.open.found()?.allocated.min(new.size));
        let draft = uploads.begin(new, data, move |begun| note_error(&note, begun));
        let sent = self.pieces(way, (draft, &trouble), reading, buffer);
        match sent.and_then(|sent| reading.check().map(|()| sent).map_err(UploadError::from)) {
            Ok(Sent::All) if self.hand_over(attempt) => {
                let say = way.say.clone();
                uploads.finish(draft, move |named| {
                    let result = named.map(drop).map_err(UploadError::Server);
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
    ) -> Result<Sent, UploadError> {
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
                        return Err(UploadError::Server(error));
                    }
                    let length = (data.end - data.start).min(buffer.len() as u64);
                    let bytes = &mut buffer[..length as usize];
                    reading.read(data.start, bytes)?;
                    if !self.room(at, attempt, length) {
                        return Ok(Sent::Unwanted);
                    }
                    let (note, say) = (trouble.clone(), way.say.clone());
                    way.uploads.bytes(draft, data.start, bytes, move |written| {
                        let counted = if written.is_ok() { length } else { 0 };
                        note_error(&note, written);
                        tell(
                            &say,
                            Event::Answered { at, attempt, bytes: length, written: counted },
                        );
                    });
                    data.start += length;
                }
            }
        }
        Ok(Sent::All)
    }
}

/// How much of a file was sent.
enum Sent {
    All,
    /// Another server has it, or this one is lost: nobody waits for an end.
    Unwanted,
}

/// Bytes of a file in which holes are looked for at once.
const RUN_BYTES: u64 = 64 << 20;

/// A file that is read.
struct Reading<'a> {
    file: &'a File,
    open: &'a dyn Open,
}

impl Reading<'_> {
    fn read(&self, at: u64, into: &mut [u8]) -> Result<(), StoreError> {
        match self.open.read_at(at, into) {
            Ok(length) if length == into.len() => Ok(()),
            // A short read, or an error, of a file that was truncated meanwhile is a change.
            read => {
                self.check()?;
                Err(read.err().unwrap_or_else(|| changed(self.file)))
            }
        }
    }

    /// Whether the file is still the one that was found.
    fn check(&self) -> Result<(), StoreError> {
        let is_same = Seen::from(&self.open.found()?) == self.file.seen;
        if is_same && self.open.is_unchanged()? { Ok(()) } else { Err(changed(self.file)) }
    }

    /// Data and holes of a range, which cover it.
    fn extents(&self, range: Range<u64>) -> Result<Vec<Extent>, StoreError> {
        let extents = self.open.extents(range.clone())?;
        let mut end = range.start;
        for extent in &extents {
            let (Extent::Data(part) | Extent::Hole(part)) = extent;
            if part.start != end {
                return Err(changed(self.file));
            }
            end = part.end;
        }
        if end == range.end { Ok(extents) } else { Err(changed(self.file)) }
    }
}

fn changed(file: &File) -> StoreError {
    StoreError::new("read", &file.path.clone().into(), ErrorKind::Changed)
}

/// Nobody hears it any more when all is over.
fn tell(say: &Sender<Event>, event: Event) {
    let _ = say.send(event);
}

fn note_error(trouble: &Trouble, answer: Result<(), RemoteError>) {
    if let Err(error) = answer {
        trouble.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
    }
}

fn first(trouble: &Trouble) -> Option<RemoteError> {
    trouble.lock().unwrap_or_else(PoisonError::into_inner).clone()
}
