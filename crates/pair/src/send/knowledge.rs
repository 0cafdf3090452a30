//! The files and segments that the receiver has already. The sender knows none of them until the receiver's report arrives, and
//! sends for a round trip as if the target were empty. The number of bytes that it sends in vain is bounded.

use super::before::Before;
use crate::fault::Stopped;
use std::sync::Arc;
use std::sync::mpsc::Receiver;

/// Bytes: a gigabit a second for a quarter of a second, and less than a window at the begin.
const EAGER: u64 = 32 << 20;

/// Waits for the receiver's word, or does not.
pub(super) struct Knowledge {
    word: Receiver<Before>,
    known: Option<Arc<Before>>,
    left: u64,
}

impl Knowledge {
    pub(super) const fn new(word: Receiver<Before>) -> Self {
        Self { word, known: None, left: EAGER }
    }

    /// The report of the receiver, if it has arrived. Otherwise `size` bytes are taken from those that may be sent in vain; if
    /// there are too few, the call waits for the report.
    // spec: copy-has-1
    pub(super) fn now(&mut self, size: u64) -> Result<Option<Arc<Before>>, Stopped> {
        if self.is_silent() && self.left >= size.min(EAGER) {
            return Ok(None);
        }
        self.wait().map(Some)
    }

    /// Whether the report has not arrived yet.
    pub(super) fn is_silent(&mut self) -> bool {
        if self.known.is_none()
            && let Ok(before) = self.word.try_recv()
        {
            self.known = Some(Arc::new(before));
        }
        self.known.is_none()
    }

    /// Waits for the report of the receiver.
    pub(super) fn wait(&mut self) -> Result<Arc<Before>, Stopped> {
        if let Some(known) = &self.known {
            return Ok(known.clone());
        }
        let before = Arc::new(self.word.recv().map_err(|_| Stopped)?);
        Ok(self.known.insert(before).clone())
    }

    /// Bytes that may be sent without a word.
    pub(super) const fn may_send(&self) -> u64 {
        self.left
    }

    pub(super) const fn has_sent(&mut self, bytes: u64) {
        self.left = self.left.saturating_sub(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    // spec: copy-has-1
    #[test]
    fn a_round_trip_is_not_waited_for_and_a_second_is() {
        let (say, word) = channel();
        let mut knowledge = Knowledge::new(word);
        assert!(knowledge.now(1 << 40).is_ok_and(|known| known.is_none()));
        knowledge.has_sent(EAGER - 5);
        assert!(knowledge.now(5).is_ok_and(|known| known.is_none()));
        say.send(Before::default()).unwrap();
        assert!(knowledge.now(6).is_ok_and(|known| known.is_some()));
        assert!(knowledge.wait().is_ok());
        let mut cut = Knowledge::new(channel().1);
        assert!(cut.now(EAGER + 1).is_ok() && cut.wait().is_err(), "whoever waits finds out");
    }
}
