//! One request after the other over a stream, and their answers, which hyper writes and reads.

use crate::fault::Fault;
use crate::head::Head;
use crate::wire::{Stop, Stream, Wire};
use hyper::body::{Body, Bytes, Incoming};
use hyper::client::conn::http1::{self, Connection, SendRequest};
use hyper::http::request::Builder;
use hyper_util::rt::TokioIo;
use std::error::Error;
use std::future::poll_fn;
use std::io::{self, ErrorKind};
use std::iter::successors;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::Duration;

/// Octets of a head at most: twice as many as common servers send.
const HEAD_BYTES_MAX: usize = 64 << 10;
/// Header lines of a head or a trailer at most.
const HEADERS_MAX: usize = 128;
/// Octets of a body that hyper reads at once, at most.
const BODY_BYTES_MAX: usize = 256 << 10;

/// Polls of an unneeded body, after which its connection is closed.
const SKIPPING_POLLS: u32 = 8;

/// A connection of HTTP/1.1. Its requests have no body: an empty text.
pub(crate) struct Exchange {
    sender: SendRequest<String>,
    driver: Driver,
    /// The body, until it has been read to its end.
    body: Option<Incoming>,
    /// The body comes in chunks: its end follows its last byte.
    is_chunked: bool,
    /// Bytes of the body that have arrived.
    rest: Bytes,
}

/// Drives hyper's connection while an operation waits for it.
struct Driver {
    wire: Wire,
    connection: Connection<TokioIo<Box<dyn Stream>>, String>,
    /// The connection has ended.
    is_over: bool,
}

impl Exchange {
    /// A connection without a request.
    pub(crate) fn new(wire: Wire, stream: Box<dyn Stream>) -> Result<Self, Fault> {
        let mut builder = http1::Builder::new();
        builder.max_buf_size(BODY_BYTES_MAX).max_header_size(HEAD_BYTES_MAX);
        builder.max_headers(HEADERS_MAX).title_case_headers(true);
        // RFC 9112, section 5.2.
        builder.allow_obsolete_multiline_headers_in_responses(true);
        let made = wire.run(builder.handshake(TokioIo::new(stream)), Fault::Slow)?;
        let (sender, connection) = made.map_err(fault_of)?;
        let driver = Driver { wire, connection, is_over: false };
        Ok(Self { sender, driver, body: None, is_chunked: false, rest: Bytes::new() })
    }

    /// Replaces the stop.
    pub(crate) fn end_with(&mut self, stop: &Stop) {
        self.driver.wire.end_with(stop);
    }

    /// Sends a request and reads the head of the final answer, which may arrive in pieces.
    pub(crate) fn ask(&mut self, request: Builder) -> Result<Head, Fault> {
        let request = request.body(String::new()).map_err(Fault::Request)?;
        let mut answer = pin!(self.sender.send_request(request));
        let answer = self.driver.run(Fault::Slow, |context| answer.as_mut().poll(context))?;
        let answer = answer.map_err(fault_of)?;
        let head = Head::of(&answer)?;
        self.is_chunked = head.is_chunked();
        self.body = Some(answer.into_body()).filter(|body| !body.is_end_stream());
        Ok(head)
    }

    /// Reads bytes of the body, at most `most`. Returns none at its end.
    pub(crate) fn read(&mut self, most: usize) -> Result<Bytes, Fault> {
        while most > 0
            && self.rest.is_empty()
            && let Some(body) = &mut self.body
        {
            let poll = |context: &mut Context<'_>| Pin::new(&mut *body).poll_frame(context);
            let frame = self.driver.run(Fault::Silent, poll)?;
            match frame.transpose().map_err(fault_of)? {
                Some(frame) => self.rest = frame.into_data().unwrap_or_default(),
                None => self.body = None,
            }
            self.body.take_if(|body| body.is_end_stream());
        }
        Ok(self.rest.split_to(most.min(self.rest.len())))
    }

    /// Skips the rest of a body that has arrived. A longer body is left: to wait for it would cost more than another connection.
    pub(crate) fn skip_at_hand(&mut self) {
        self.rest.clear();
        for _ in 0..SKIPPING_POLLS {
            let Some(body) = self.body.as_mut().filter(|body| !body.is_end_stream()) else {
                self.body = None;
                return;
            };
            // The first poll only lets hyper read on, so that a pending one is not the end.
            let poll =
                |context: &mut Context<'_>| Poll::Ready(Pin::new(&mut *body).poll_frame(context));
            match self.driver.run(Fault::Silent, poll) {
                Ok(Poll::Ready(Some(Ok(_))) | Poll::Pending) => {}
                Ok(Poll::Ready(None)) => self.body = None,
                Ok(Poll::Ready(Some(Err(_)))) | Err(_) => return,
            }
        }
    }

    /// Reads the end of a body whose bytes have been read. Returns whether another request can be sent.
    pub(crate) fn finish(&mut self) -> bool {
        if self.is_chunked {
            // Further bytes stay unread, and the connection is of no use.
            let _ = self.read(1);
        }
        self.is_idle()
    }

    /// Whether a request can be sent.
    pub(crate) fn is_idle(&self) -> bool {
        self.body.is_none() && self.rest.is_empty() && self.sender.is_ready()
    }

    /// The stream behind the answer to a CONNECT. `None` if the other end has sent bytes behind it.
    pub(crate) fn into_stream(self) -> Option<(Wire, Box<dyn Stream>)> {
        let parts = self.driver.connection.into_parts();
        parts.read_buf.is_empty().then(|| (self.driver.wire, parts.io.into_inner()))
    }
}

impl Driver {
    /// Runs an operation to its end. `late` is the fault of one that takes too long.
    fn run<T>(
        &mut self,
        late: fn(Duration) -> Fault,
        mut operation: impl FnMut(&mut Context<'_>) -> Poll<T>,
    ) -> Result<T, Fault> {
        let (connection, is_over) = (&mut self.connection, &mut self.is_over);
        let driven = poll_fn(|context| {
            // The error of the connection is that of the operation, too.
            *is_over = *is_over || connection.poll_without_shutdown(context).is_ready();
            match operation(context) {
                Poll::Ready(done) => Poll::Ready(Ok(done)),
                Poll::Pending if *is_over => Poll::Ready(Err(Fault::Closed)),
                Poll::Pending => Poll::Pending,
            }
        });
        self.wire.run(driven, late)?
    }
}

fn fault_of(error: hyper::Error) -> Fault {
    let chain = || successors(Some(&error as &(dyn Error + 'static)), |&link| link.source());
    let io = chain().find_map(|link| link.downcast_ref::<io::Error>());
    let of_tls = io.and_then(|io| io.get_ref()?.downcast_ref::<rustls::Error>());
    let mut of_hyper = chain().filter_map(|link| link.downcast_ref::<hyper::Error>());
    let is_cut = of_hyper.any(hyper::Error::is_incomplete_message);
    match (io.and_then(io::Error::raw_os_error), of_tls) {
        (Some(code), _) => Fault::Connection(io::Error::from_raw_os_error(code)),
        (None, Some(error)) => {
            Fault::Connection(io::Error::new(ErrorKind::InvalidData, error.clone()))
        }
        // TLS without a final alert may have been cut off by an attacker on the path.
        _ if is_cut || io.is_some_and(|io| io.kind() == ErrorKind::UnexpectedEof) => Fault::Closed,
        _ => Fault::Invalid(error),
    }
}

#[cfg(test)]
mod tests;
