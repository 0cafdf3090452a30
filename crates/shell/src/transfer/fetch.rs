//! The bytes of a file of the server in their order, asked for ahead.

use super::Flow;
use hikyaku_sftp::{Asked, Client, Handle, Request, Ticket};
use std::collections::VecDeque;

/// Reads an open file from an offset on.
pub(super) struct Fetch<'a> {
    client: &'a Client,
    handle: &'a Handle,
    flow: Flow,
    /// Where the next request begins.
    next: u64,
    /// Up to here many requests are under way; beyond it one at a time, until the file has ended.
    end: u64,
    asked: VecDeque<(u64, usize, Ticket)>,
}

impl<'a> Fetch<'a> {
    /// Of a file that should have `end` bytes.
    pub(super) fn new(
        client: &'a Client,
        handle: &'a Handle,
        flow: Flow,
        next: u64,
        end: u64,
    ) -> Self {
        Self { client, handle, flow, next, end, asked: VecDeque::new() }
    }

    /// The next bytes; `None` at the end of the file.
    pub(super) fn bytes(&mut self) -> Asked<Option<Vec<u8>>> {
        while self.asked.len() < self.flow.requests
            && (self.next < self.end || self.asked.is_empty())
        {
            let ticket = self.ask(self.next, self.flow.chunk);
            self.asked.push_back((self.next, self.flow.chunk, ticket));
            self.next += self.flow.chunk as u64;
        }
        let Some((offset, length, ticket)) = self.asked.pop_front() else { return Ok(None) };
        let mut bytes = self.client.data(ticket, length)?;
        // A server may give less than was asked for; at the end of the file it gives nothing.
        let mut has_more = !bytes.is_empty();
        while has_more && bytes.len() < length {
            let (at, left) = (offset + bytes.len() as u64, length - bytes.len());
            let ticket = self.ask(at, left);
            let more = self.client.data(ticket, left)?;
            has_more = !more.is_empty();
            bytes.extend(more);
        }
        if !has_more {
            self.asked.clear();
            // What comes behind it later is read from here on.
            self.next = offset + bytes.len() as u64;
            self.end = self.next;
        }
        Ok(Some(bytes).filter(|bytes| !bytes.is_empty()))
    }

    fn ask(&self, offset: u64, length: usize) -> Ticket {
        // The chunk is at most 255 KiB.
        let length = u32::try_from(length).unwrap_or(u32::MAX);
        self.client.ask(&Request::Read { handle: self.handle.bytes(), offset, length })
    }
}
