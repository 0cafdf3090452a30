//! Stream mode: the blocks go in order over one connection, and the server confirms none of them before the end of the file.
//! After a loss the length of the file at the server shows how much it has stored. So the last bytes stay in memory, and the
//! upload goes on from that length.

use super::{Block, Piece};
use crate::ftp::Ftp;
use crate::tuning::Tuning;
use hikyaku_gridftp::{FtpError, Mode, Transferred};
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Receiver;
use std::time::Instant;

/// Bytes that stay in memory after they were handed to the connection: more than buffers and a path hold of one connection.
const KEPT_BYTES: u64 = 64 << 20;

/// The blocks of an upload.
pub(super) struct InOrder {
    from: Receiver<Block>,
    /// The offset of the first block.
    begin: u64,
    /// The last pieces that were handed to a connection, and behind them those that are to be sent again.
    kept: VecDeque<Piece>,
    /// The number of kept pieces that the present connection was given.
    given: usize,
    bytes: u64,
    /// The end of the last piece.
    end: u64,
}

impl InOrder {
    pub(super) fn new(from: Receiver<Block>, begin: u64) -> Self {
        Self { from, begin, kept: VecDeque::new(), given: 0, bytes: 0, end: begin }
    }

    /// Sends all blocks to `path`.
    ///
    /// # Errors
    ///
    /// That of the last attempt.
    pub(super) fn send(mut self, ftp: &Ftp, path: &[u8]) -> Result<(), FtpError> {
        let (counter, begun) = (ftp.sent().counter(), Instant::now());
        let (mut at, mut attempts) = (self.begin, ftp.attempts());
        loop {
            let sent = ftp.with(|channel| {
                channel.put_blocks((path, at), &counter.bytes, &mut || Ok(self.next()))
            });
            let Err(error) = sent else { break };
            if at > self.begin && is_restart(&error) && self.go_back(self.begin) {
                // The server takes whole files only.
                at = self.begin;
                counter.bytes.store(0, Ordering::Relaxed);
                continue;
            }
            attempts.after(error)?;
            let facts = ftp.with_retries(|channel| channel.facts(path))?;
            let stored = facts.and_then(|facts| facts.size).unwrap_or(0).max(self.begin);
            if stored > at {
                attempts.renew();
            }
            if !self.go_back(stored) {
                // The missing bytes are not in memory any more: the file has to begin anew.
                return Err(FtpError::Data(io::ErrorKind::UnexpectedEof.into()));
            }
            at = stored;
            counter.bytes.store(at - self.begin, Ordering::Relaxed);
        }
        let tuning = Tuning::new(&ftp.writing().connections, Mode::Stream, ftp.traits().rtt);
        let (connections, elapsed, local_share) = (1, begun.elapsed(), 0.0);
        let done = Transferred { connections, elapsed, local_share, retransmitted: None };
        ftp.observed(|observer| observer.chunk(&tuning.asked(), self.end - self.begin, &done));
        Ok(())
    }

    /// The next bytes for the connection.
    fn next(&mut self) -> Option<Vec<u8>> {
        if self.given == self.kept.len() {
            let piece = Piece::from(self.from.recv().ok()?);
            self.bytes += piece.length();
            self.end = piece.end();
            self.kept.push_back(piece);
        }
        let bytes = self.kept.get(self.given).map(|piece| piece.bytes.to_vec());
        self.given += 1;
        while self.bytes > KEPT_BYTES && self.given > 1 {
            let Some(piece) = self.kept.pop_front() else { break };
            self.bytes -= piece.length();
            self.given -= 1;
        }
        bytes
    }

    /// The next connection begins at this offset. Returns whether the bytes from there on are in memory.
    fn go_back(&mut self, at: u64) -> bool {
        let first = self.kept.front().map_or(self.end, |piece| piece.offset);
        if at < first || at > self.end {
            return false;
        }
        while let Some(piece) = self.kept.front()
            && piece.offset < at
        {
            let rest = (piece.end() > at).then(|| {
                let bytes = Arc::new(piece.bytes[(at - piece.offset) as usize..].to_vec());
                Piece { offset: at, bytes, numbers: piece.numbers.clone() }
            });
            self.kept.pop_front();
            if let Some(rest) = rest {
                self.kept.push_front(rest);
            }
        }
        self.bytes = self.kept.iter().map(Piece::length).sum();
        self.given = 0;
        true
    }
}

/// Whether the server refuses to go on with a file that it has begun to store.
fn is_restart(error: &FtpError) -> bool {
    matches!(error, FtpError::Refused { command, .. } if command == "REST" || command == "STOR")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::sync_channel;

    fn piece(number: u64) -> Block {
        Block { number, offset: 100 + number * 10, bytes: vec![number as u8; 10] }
    }

    #[test]
    fn an_upload_goes_on_at_any_byte_that_is_in_memory() {
        let (blocks, from) = sync_channel(8);
        (0..4).for_each(|number| blocks.send(piece(number)).unwrap());
        let mut sending = InOrder::new(from, 100);
        assert_eq!((0..3).filter_map(|_| sending.next()).count(), 3);
        assert!(!sending.go_back(99) && !sending.go_back(131));
        assert!(sending.go_back(115));
        assert_eq!(sending.next(), Some(vec![1; 5]));
        assert_eq!(sending.next(), Some(vec![2; 10]));
        assert!(sending.go_back(130));
        assert_eq!(sending.next(), Some(vec![3; 10]));
        assert!(!sending.go_back(120), "it is not in memory any more");
        drop(blocks);
        assert_eq!(sending.next(), None);
    }

    #[test]
    fn the_memory_is_bounded() {
        let (blocks, from) = sync_channel(1);
        let mut sending = InOrder::new(from, 0);
        let block = KEPT_BYTES / 4;
        for number in 0..9 {
            let (offset, bytes) = (number * block, vec![0; block as usize]);
            blocks.send(Block { number, offset, bytes }).unwrap();
            assert!(sending.next().is_some());
            assert!(sending.bytes <= KEPT_BYTES);
        }
        assert!(sending.go_back(5 * block) && !sending.go_back(4 * block));
    }
}
