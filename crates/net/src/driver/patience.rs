//! How many strangers are answered while more has come than can be read.

/// Maximum number of answers until the socket was empty again.
const AT_ONCE: u32 = 64;

/// Answers that may be sent before those that have a connection must have had their turn: a flood of
/// strangers is answered in the time that is left. To send an answer takes longer than to read a question,
/// so without answers the socket is soon empty again.
#[derive(Debug)]
pub(super) struct Patience {
    left: u32,
}

/// The state of the socket after a read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Found {
    /// As many messages as were asked for: there may be more.
    Plenty,
    /// Fewer: nothing waits.
    All,
}

impl Patience {
    pub(super) const fn new() -> Self {
        Self { left: AT_ONCE }
    }

    pub(super) fn on_receive(&mut self, found: Found) {
        if found == Found::All {
            self.left = AT_ONCE;
        }
    }

    /// Whether one more datagram may be answered. A client without an answer sends its datagram again.
    pub(super) const fn take(&mut self) -> bool {
        let has_some = self.left > 0;
        self.left = self.left.saturating_sub(1);
        has_some
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strangers_wait_while_more_comes_than_can_be_read() {
        let mut patience = Patience::new();
        for found in [Found::Plenty, Found::All] {
            patience.on_receive(found);
            assert_eq!((0..1000).filter(|_| patience.take()).count(), AT_ONCE as usize);
            patience.on_receive(Found::Plenty);
            assert!(!patience.take());
        }
    }
}
