//! An object that is read.

use crate::connect::S3;
use crate::error::S3Error;
use crate::objects::{Head, e_tag, plain};
use crate::reply::content_range;
use crate::wire::{Ask, Body, Wire};
use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt, stream};
use hikyaku_store::{Doing, ErrorKind, Found, Open, Result, StorePath, doing};
use http::{Method, StatusCode};
use std::ops::{ControlFlow, Range};
use std::sync::atomic::Ordering;

/// One version of an object. Another one is never read in its place.
#[derive(Debug)]
pub(crate) struct S3Open {
    s3: S3,
    path: StorePath,
    key: String,
    head: Head,
}

/// Reads that are longer are made of several requests at once.
const PIECE_BYTES: usize = 8 << 20;
/// Requests of one read at once.
const PIECES: usize = 8;
/// Maximum number of consecutive connections without a byte for the rest of a range.
const TRIES: u32 = 4;

/// A range as it comes.
struct Incoming<'a> {
    wire: &'a Wire,
    body: Body,
    /// Bytes before the range, from a server that ignores ranges.
    skip: u64,
    left: u64,
}

impl Incoming<'_> {
    /// The next bytes of the range; `None` when all have come.
    async fn next(&mut self) -> std::result::Result<Option<Bytes>, S3Error> {
        while self.left > 0 {
            let Some(mut bytes) = self.wire.or_stopped(self.wire.next(&mut self.body)).await?
            else {
                return Err(S3Error::Unreachable("the answer ended early".to_owned()));
            };
            let skipped = self.skip.min(bytes.len() as u64);
            self.skip -= skipped;
            bytes = bytes.slice(skipped as usize..);
            if !bytes.is_empty() {
                let length = self.left.min(bytes.len() as u64);
                self.left -= length;
                return Ok(Some(bytes.slice(..length as usize)));
            }
        }
        Ok(None)
    }
}

impl S3Open {
    pub(crate) fn new(s3: &S3, path: &StorePath, key: String, head: Head) -> Self {
        Self { s3: s3.clone(), path: path.clone(), key, head }
    }

    const fn doing(&self) -> Doing<'_> {
        doing("read", &self.path)
    }

    fn or<T>(&self, done: std::result::Result<T, S3Error>) -> Result<T> {
        self.doing().or(done.map_err(|error| match error {
            // It was there when it was opened.
            error if error.is_not_found() => ErrorKind::Gone,
            error => error.kind(),
        }))
    }

    /// Asks for a range that is not empty and within the object.
    async fn begin(&self, range: Range<u64>) -> std::result::Result<Incoming<'_>, S3Error> {
        let is_whole = range == (0..self.head.size);
        let mut ask = Ask::new(Method::GET, &self.key);
        if let Some(e_tag) = &self.head.e_tag {
            ask = ask.header("if-match", e_tag);
        }
        if !is_whole {
            ask = ask.header("range", format!("bytes={}-{}", range.start, range.end - 1));
        }
        let wire = &*self.s3.inner.wire;
        let (head, body) = wire.send(&ask).await?.into_parts();
        // A server may know ranges and no conditions.
        let opened = self.head.e_tag.as_deref().map(plain);
        if e_tag(&head.headers).is_some_and(|tag| Some(plain(&tag)) != opened) {
            return Err(S3Error::Changed);
        }
        let told = |name: &str| head.headers.get(name).and_then(|value| value.to_str().ok());
        let part = told("content-range").and_then(content_range);
        let skip = match part {
            Some((part, size)) if part == range && size == self.head.size => 0,
            Some(_) => return Err(S3Error::Broken("it sends another range than was asked for")),
            None if head.status == StatusCode::PARTIAL_CONTENT => {
                return Err(S3Error::Broken("it does not say which range it sends"));
            }
            None => {
                let length: Option<u64> = told("content-length").and_then(|text| text.parse().ok());
                if length.is_some_and(|length| length != self.head.size) {
                    return Err(S3Error::Changed);
                }
                if !is_whole {
                    self.s3.inner.ranges_ignored.store(true, Ordering::Relaxed);
                }
                range.start
            }
        };
        Ok(Incoming { wire, body: body.bytes_stream(), skip, left: range.end - range.start })
    }

    /// Fills `into` with the bytes at `at`.
    async fn fill(&self, at: u64, into: &mut [u8]) -> std::result::Result<(), S3Error> {
        let (mut done, mut tries) = (0, TRIES);
        while done < into.len() {
            let begun = at + done as u64;
            let mut incoming = self.begin(begun..at + into.len() as u64).await?;
            loop {
                match incoming.next().await {
                    Ok(Some(bytes)) => {
                        into[done..done + bytes.len()].copy_from_slice(&bytes);
                        (done, tries) = (done + bytes.len(), TRIES);
                    }
                    Ok(None) => break,
                    Err(error) if error.may_pass() && tries > 0 => {
                        tries -= 1;
                        break;
                    }
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(())
    }

    /// Whether the object still has the version that was opened.
    async fn check(&self) -> std::result::Result<(), S3Error> {
        match self.s3.inner.wire.head(&self.key).await? {
            Some(head) if head.version() == self.head.version() && head.size == self.head.size => {
                Ok(())
            }
            _ => Err(S3Error::Changed),
        }
    }
}

impl Open for S3Open {
    /// A version of an object does not change.
    fn found(&self) -> Result<Found> {
        Ok(self.head.found(&self.key))
    }

    fn read_at(&self, at: u64, into: &mut [u8]) -> Result<usize> {
        let end = self.head.size.min(at.saturating_add(into.len() as u64));
        let length = end.saturating_sub(at) as usize;
        if length == 0 {
            let is_of_none = into.is_empty();
            return match is_of_none {
                true => Ok(0),
                false => self.or(self.s3.inner.wait(self.check())).map(|()| 0),
            };
        }
        let pieces = (0..).zip(into[..length].chunks_mut(PIECE_BYTES));
        let pieces = pieces.map(|(number, piece)| {
            let at = at + number * PIECE_BYTES as u64;
            self.fill(at, piece)
        });
        let read = stream::iter(pieces).buffer_unordered(PIECES).try_collect::<()>();
        self.or(self.s3.inner.wait(read)).map(|()| length)
    }

    /// One request for all of the range.
    fn stream(
        &self,
        range: Range<u64>,
        each: &mut dyn FnMut(&[u8]) -> ControlFlow<()>,
    ) -> Result<u64> {
        let end = range.end.min(self.head.size);
        let (mut at, mut tries) = (range.start, TRIES);
        while at < end {
            let mut incoming = self.or(self.s3.inner.wait(self.begin(at..end)))?;
            loop {
                match self.s3.inner.wait(incoming.next()) {
                    Ok(Some(bytes)) => {
                        (at, tries) = (at + bytes.len() as u64, TRIES);
                        if each(&bytes).is_break() {
                            return Ok(at - range.start);
                        }
                    }
                    Ok(None) => break,
                    Err(error) if error.may_pass() && tries > 0 => {
                        tries -= 1;
                        break;
                    }
                    Err(error) => return self.or(Err(error)),
                }
            }
        }
        Ok(at - range.start)
    }

    fn path(&self) -> &StorePath {
        &self.path
    }
}
