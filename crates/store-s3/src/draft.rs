//! A file that is being written: small ones go at once when they get their names, larger ones in parts before that.

use crate::connect::{PART_MIB, Parents, S3};
use crate::error::S3Error;
use crate::objects::{Condition, Head};
use crate::parts::{NotHere, Parts, Sizes};
use bytes::Bytes;
use hikyaku_store::{
    Ability, Doing, Draft, ErrorKind, Finish, Found, Make, Naming, Note, Result, StorePath, Time,
    Token, doing,
};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};
use tokio::task::JoinHandle;

/// A draft. Its parts are with the server as an upload that has no name yet.
#[derive(Debug)]
pub(crate) struct S3Draft {
    s3: S3,
    path: StorePath,
    key: String,
    /// The time of the file that is stored with the object: it is sent when the upload begins.
    modified: Option<Time>,
    token: u64,
    writing: Mutex<Writing>,
}

#[derive(Debug)]
struct Writing {
    parts: Parts,
    /// Whether it is known from the beginning that there are several parts.
    is_large: bool,
    /// The number of the upload, once a part has gone.
    upload: Option<String>,
    /// It is dropped behind the upload.
    note: Option<Note>,
    under_way: Vec<(u64, JoinHandle<()>)>,
    /// Entity tags of the parts that have arrived, and the first failure of one.
    arrived: Arc<Mutex<Arrived>>,
    is_named: bool,
}

#[derive(Debug, Default)]
struct Arrived {
    tags: Vec<(u64, String)>,
    failed: Option<S3Error>,
}

/// Parts of a file whose size is known: fewer than an upload may have, so that it may still grow a little.
const PARTS_WANTED: u64 = 9_000;
const MIB: u64 = 1 << 20;
/// A part is never larger (Amazon S3 user guide, "Multipart upload limits").
const PART_MIB_MAX: u64 = 5 << 10;
/// A server that does not answer is not waited for longer when an upload is dropped.
const ABORT_TIME: Duration = Duration::from_secs(5);

impl S3Draft {
    pub(crate) fn new(s3: &S3, path: &StorePath, key: String, make: &Make) -> Result<Self> {
        let wanted = make.size.unwrap_or(0).div_ceil(PARTS_WANTED * MIB);
        if wanted > PART_MIB_MAX {
            return doing("create", path).fail(ErrorKind::TooLarge);
        }
        let part = u64::from(PART_MIB.max(wanted as u32)) * MIB;
        let sizes = if make.size.is_some() { Sizes::Equal(part) } else { Sizes::Doubling(part) };
        let writing = Writing {
            parts: Parts::new(sizes),
            is_large: make.size.is_some_and(|size| size > part),
            upload: None,
            note: None,
            under_way: Vec::new(),
            arrived: Arc::default(),
            is_named: false,
        };
        Ok(Self {
            s3: s3.clone(),
            path: path.clone(),
            key,
            modified: make.modified,
            token: fastrand::u64(..),
            writing: Mutex::new(writing),
        })
    }

    const fn doing(&self, what: &'static str) -> Doing<'_> {
        doing(what, &self.path)
    }

    fn writing(&self) -> MutexGuard<'_, Writing> {
        self.writing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a part, once there is room for it among those under way.
    fn send(
        &self,
        writing: &mut Writing,
        number: u64,
        bytes: Bytes,
    ) -> std::result::Result<(), S3Error> {
        let inner = &self.s3.inner;
        let upload = match &writing.upload {
            Some(upload) => upload.clone(),
            None => {
                let begun = inner.wait(inner.wire.begin(&self.key, self.modified))?;
                writing.note = inner.note((&self.key, &begun));
                writing.upload.insert(begun).clone()
            }
        };
        let mib = (bytes.len() as u64).div_ceil(MIB).clamp(1, u64::from(inner.uploads_mib)) as u32;
        let room = inner.wait(inner.budget.clone().acquire_many_owned(mib));
        let room = room.map_err(|_| S3Error::Here("the store has ended".to_owned()))?;
        let (wire, key, arrived) = (inner.wire.clone(), self.key.clone(), writing.arrived.clone());
        let sent = inner.spawn(async move {
            let part = wire.part((&key, &upload), number + 1, bytes).await;
            drop(room);
            let mut arrived = arrived.lock().unwrap_or_else(PoisonError::into_inner);
            match part {
                Ok(tag) => arrived.tags.push((number, tag)),
                Err(error) => {
                    arrived.failed.get_or_insert(error);
                }
            }
        });
        writing.under_way.push((number, sent));
        Ok(())
    }

    /// Waits for all parts under way.
    fn settle(&self, writing: &mut Writing) -> std::result::Result<(), S3Error> {
        for (_, sent) in writing.under_way.drain(..) {
            let ended = self.s3.inner.wait(sent);
            ended.map_err(|_| S3Error::Here("a part was not sent".to_owned()))?;
        }
        writing.failed()
    }

    /// Makes the object.
    fn make(
        &self,
        writing: &mut Writing,
        modified: Option<Time>,
        condition: &Condition,
    ) -> std::result::Result<Option<String>, S3Error> {
        let inner = &self.s3.inner;
        if writing.upload.is_none() && writing.parts.is_small() {
            let bytes = writing.parts.take_next().map_or_else(Bytes::new, |(_, bytes)| bytes);
            return inner.wait(inner.wire.put(&self.key, bytes, modified, condition));
        }
        while let Some((number, bytes)) = writing.parts.take_next() {
            self.send(writing, number, bytes)?;
        }
        self.settle(writing)?;
        let upload = writing.upload.clone().unwrap_or_default();
        let mut arrived = writing.arrived.lock().unwrap_or_else(PoisonError::into_inner);
        arrived.tags.sort_unstable();
        let tags: Vec<String> = arrived.tags.iter().map(|(_, tag)| tag.clone()).collect();
        drop(arrived);
        inner.wait(inner.wire.complete((&self.key, &upload), &tags, condition)).map(Some)
    }

    /// The condition on the replaced object.
    fn condition(&self, naming: Naming) -> Result<Condition> {
        let (doing, inner) = (self.doing("name"), &self.s3.inner);
        match naming {
            Naming::Replace => Ok(Condition::None),
            Naming::IfAbsent if inner.abilities.name_if_absent => Ok(Condition::Absent),
            Naming::IfAbsent => doing.fail(ErrorKind::Unsupported(Ability::NameIfAbsent)),
            // The header alone would not do: servers are there that ignore it.
            Naming::IfVersion(version) => match doing.or(inner.wait(inner.wire.head(&self.key)))? {
                Some(head) if head.version() == Some(version) => {
                    Ok(head.e_tag.map_or(Condition::None, Condition::Is))
                }
                _ => doing.fail(ErrorKind::Changed),
            },
        }
    }
}

impl Writing {
    fn failed(&self) -> std::result::Result<(), S3Error> {
        let arrived = self.arrived.lock().unwrap_or_else(PoisonError::into_inner);
        arrived.failed.clone().map_or(Ok(()), Err)
    }
}

impl From<NotHere> for ErrorKind {
    fn from(not_here: NotHere) -> Self {
        match not_here {
            NotHere::Away | NotHere::Scattered => Self::Unsupported(Ability::Update),
            NotHere::TooLong => Self::TooLarge,
        }
    }
}

impl Draft for S3Draft {
    /// Parts that are whole go to the server while others are written. Bytes that have gone cannot be changed
    /// (`Unsupported`), and at most sixteen parts are begun and not whole.
    fn write_at(&self, at: u64, bytes: &[u8]) -> Result<()> {
        let (doing, mut writing) = (self.doing("write"), self.writing());
        doing.or(writing.failed())?;
        doing.or(writing.parts.write(at, bytes))?;
        if writing.is_large || !writing.parts.is_small() {
            for (number, part) in writing.parts.take_whole() {
                doing.or(self.send(&mut writing, number, part))?;
            }
        }
        Ok(())
    }

    /// Of bytes that have not gone to the server.
    fn read_at(&self, at: u64, into: &mut [u8]) -> Result<usize> {
        self.doing("read").or(self.writing().parts.read(at, into))
    }

    fn set_len(&self, length: u64) -> Result<()> {
        self.doing("change the length of").or(self.writing().parts.set_length(length))
    }

    fn token(&self) -> Token {
        Token(self.token.to_le_bytes().to_vec())
    }

    /// It cannot be resumed, so nothing is kept.
    fn keep(&self) {}

    /// The server keeps the acknowledged parts. The rest is sent with the name.
    fn sync(&self) -> Result<()> {
        let mut writing = self.writing();
        self.doing("sync").or(self.settle(&mut writing))
    }

    fn name(self: Box<Self>, naming: Naming, finish: &Finish) -> Result<Found> {
        let (doing, inner) = (self.doing("name"), &self.s3.inner);
        if inner.parents == Parents::Required
            && doing.or(inner.wait(inner.wire.has_any(&format!("{}/", self.key))))?
        {
            return doing.fail(ErrorKind::IsDir);
        }
        let condition = self.condition(naming)?;
        let mut writing = self.writing();
        doing.or(writing.failed())?;
        let modified = finish.modified.or(self.modified);
        let made = self.make(&mut writing, modified, &condition);
        let made = made.map_err(|error| match (error.kind(), &condition) {
            (ErrorKind::Changed | ErrorKind::Busy, Condition::Absent) => ErrorKind::Exists,
            (ErrorKind::NotFound, Condition::Is(_)) => ErrorKind::Changed,
            // The bucket exists, so the server refuses the name.
            _ if error.is_not_found() => ErrorKind::BadName,
            (kind, _) => kind,
        });
        let e_tag = doing.or(made)?;
        writing.is_named = true;
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let written = Time { secs: i64::try_from(now.as_secs()).unwrap_or(i64::MAX), nanos: 0 };
        let size = writing.parts.length();
        Ok(Head { size, e_tag, written, modified }.found(&self.key))
    }

    fn discard(self: Box<Self>) {}
}

impl Drop for S3Draft {
    /// The parts would cost their owner money for ever.
    fn drop(&mut self) {
        let mut writing = self.writing();
        for (_, sent) in writing.under_way.drain(..) {
            sent.abort();
            // Its end is awaited, so that no part comes after the upload was dropped.
            let _ = self.s3.inner.wait(sent);
        }
        let (upload, is_named) = (writing.upload.take(), writing.is_named);
        drop(writing);
        if let Some(upload) = upload.filter(|_| !is_named) {
            let inner = &self.s3.inner;
            let aborted = inner.wire.abort((&self.key, &upload));
            // The upload stays then; docs/s3.md describes how such uploads are removed.
            let _ = inner.wait(async { tokio::time::timeout(ABORT_TIME, aborted).await });
        }
    }
}
