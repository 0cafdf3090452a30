//! A record under construction, extended packet by packet until a packet does not continue it.

use super::Again;
use crate::sent::{Content, RECORD_PACKETS_MAX, Sent};

/// The record of the packets of a batch that is being built.
pub(crate) struct Draft {
    pub(crate) sent: Sent,
    pub(crate) bytes: u64,
}

impl Draft {
    /// Whether packet `pn` with the stream data `again` continues this record.
    pub(crate) fn continues(&self, pn: u64, again: &Again) -> bool {
        match &self.sent.content {
            &Content::Data { stream, offset, len, chunk, generation } => {
                self.sent.count < RECORD_PACKETS_MAX
                    && self.sent.first + u64::from(self.sent.count) == pn
                    && stream == again.stream
                    && generation == again.generation
                    && offset + u64::from(len) == again.offset
                    && len % chunk == 0
                    && again.len <= u64::from(chunk)
            }
            Content::Control(_) | Content::Probe(_) => false,
        }
    }
}
