//! Answers in memory, for fuzzers and tests: they are read by the code that reads those of a server.

use crate::cookies::Cookies;
use crate::digest::digests_of;
use crate::exchange::Exchange;
use crate::fault::Fault;
use crate::head::Head;
use crate::name::name;
use crate::offer::{Offer, Proof};
use crate::range::ContentRange;
use crate::url::Url;
use crate::wire::{Stop, Wire};
use hyper::Request;
use std::time::{Duration, SystemTime};
use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

/// Octets of the request at most.
const REQUEST_BYTES_MAX: usize = 1024;
/// The time for one operation, all of which is in this process.
const PATIENCE: Duration = Duration::from_secs(60);

/// The head of an answer in memory.
///
/// # Errors
///
/// Those of an answer from a server.
// fuzz: web
pub fn head_of(bytes: &[u8]) -> Result<Head, Fault> {
    Ok(asked(bytes)?.1)
}

/// The head and the body of an answer in memory.
// fuzz: web
pub(crate) fn answer_of(bytes: &[u8]) -> Result<(Head, Vec<u8>), Fault> {
    let (mut exchange, head) = asked(bytes)?;
    let mut body = Vec::new();
    loop {
        let bytes = exchange.read(usize::MAX)?;
        if bytes.is_empty() {
            return Ok((head, body));
        }
        body.extend_from_slice(&bytes);
    }
}

/// A server that sends these bytes after a request, and closes the connection.
fn asked(bytes: &[u8]) -> Result<(Exchange, Head), Fault> {
    let wire = Wire::new(PATIENCE, Stop::default())?;
    let (near, mut far) = duplex(bytes.len().max(REQUEST_BYTES_MAX));
    let bytes = bytes.to_vec();
    wire.runtime().spawn(async move {
        if far.read(&mut [0; REQUEST_BYTES_MAX]).await.is_ok() {
            let _ = far.write_all(&bytes).await;
        }
    });
    let mut exchange = Exchange::new(wire, Box::new(near))?;
    let head = exchange.ask(Request::builder())?;
    Ok((exchange, head))
}

/// Passes `bytes` to every reader of a server's bytes. Wrong input is an error and never a panic.
// fuzz: web
pub fn read_anything(bytes: &[u8]) {
    if let Ok((_, body)) = answer_of(bytes) {
        assert!(body.len() <= bytes.len());
    }
    if let Ok(head) = head_of(bytes) {
        let _ = (digests_of(&head), Offer::of(&head, None));
        if let Ok(offer) = Offer::of(&head, Some(&(0..100)))
            && let Ok(range) = offer.check_part(&head, &(10..100), Proof::Version)
        {
            assert!(range.start == 10 && range.end <= 100);
        }
    }
    let Ok(text) = str::from_utf8(bytes) else { return };
    if let Some(part) = ContentRange::parse(text) {
        assert!(part.range.start < part.range.end);
    }
    let base = Url::parse("https://example.org/a/b?c");
    if let Ok(url) = &base {
        let mut cookies = Cookies::default();
        cookies.set(url, text, SystemTime::now());
        let sent = cookies.of(url, SystemTime::now()).unwrap_or_default();
        assert!(!sent.contains(['\r', '\n']));
    }
    for url in [Url::parse(text), base.and_then(|base| base.join(text))].into_iter().flatten() {
        assert!(
            url.target.starts_with('/') && url.target.bytes().all(|byte| byte.is_ascii_graphic())
        );
        if let Some(name) = name(Some(text), &url) {
            assert!(!name.as_bytes().starts_with(b"."));
        }
    }
}
