//! A source that has no length: what comes through a FIFO or an open descriptor is sent piece by piece.

use super::feed::Feeder;
use crate::fault::Stopped;
use crate::read::ReadSource;
use crate::spot::Spot;
use crate::walk::Spring;
use hikyaku_fs::{FsError, Kind, Meta, read_incoming};
use hikyaku_transfer::{Entry, FileHash, FromSender, Pass};
use rustix::io::Errno;
use std::fs::File;

/// The most bytes of one piece: what small files have at most.
const PIECE: usize = crate::SMALL as usize;
/// A pipe belongs to its user alone; a file that is made of one is as new files are.
const MODE: u32 = 0o666;

impl Feeder<'_> {
    /// Sends all that comes.
    pub(super) fn pour(
        &mut self,
        mut entry: Entry,
        spot: &Spot,
        spring: Spring,
    ) -> Result<(), Stopped> {
        let before = self.knowledge.wait()?;
        if self.options.rules.pass == Pass::DryRun {
            self.meter.add_rehearsed();
            return self.say(&FromSender::Entry(entry));
        }
        let mut file = match open(spot, spring) {
            Ok(file) => file,
            Err(error) => {
                self.complaints.say(None, spot.failure(&error));
                return Ok(());
            }
        };
        if matches!(spring, Spring::Descriptor(_)) {
            entry.mode = MODE;
        }
        let (id, at_target) = (entry.id, before.at_target(&entry.path));
        self.meter.set_spent();
        self.say(&FromSender::Stream(entry))?;
        let (mut all, mut size) = (blake3::Hasher::new(), 0);
        let mut bytes = vec![0; PIECE];
        loop {
            let length = match self.next(&mut file, &mut bytes)? {
                Ok(0) => break,
                Ok(length) => length,
                Err(error) => {
                    self.complaints.say(Some(id), spot.failure(&error));
                    return Ok(());
                }
            };
            let piece = &bytes[..length];
            all.update(piece);
            size += length as u64;
            self.meter.correct_total(0, length as u64);
            let hash = FileHash(*blake3::hash(piece).as_bytes());
            let message = FromSender::Piece { id, length: length as u32, hash };
            let said = self.out.say_with(&message, piece);
            said.map_err(|error| self.fault.report(error))?;
        }
        let hash = FileHash(*all.finalize().as_bytes());
        self.meter.add_hash(&at_target, || Some(hash));
        self.say(&FromSender::Last { id, size, hash })
    }

    /// Waits for bytes and reads them. Returns no bytes at the end.
    fn next(
        &self,
        file: &mut File,
        bytes: &mut [u8],
    ) -> Result<Result<usize, ReadSource>, Stopped> {
        match read_incoming(file, bytes, &|| !self.fault.is_there()) {
            Err(error) if Errno::from_io_error(&error) == Some(Errno::CANCELED) => Err(Stopped),
            read => Ok(read.map_err(|error| failed(&error))),
        }
    }
}

fn failed(error: &std::io::Error) -> ReadSource {
    FsError::io("read", b"", error).into()
}

fn open(spot: &Spot, spring: Spring) -> Result<File, ReadSource> {
    match spring {
        Spring::Descriptor(number) => {
            hikyaku_fs::open_descriptor(number).map_err(|_| ReadSource::Closed)
        }
        // Without waiting for its writer.
        Spring::Fifo => {
            let file = spot.open()?;
            match Meta::of(&file)?.kind {
                Kind::Special => Ok(file),
                _ => Err(ReadSource::Exchanged),
            }
        }
    }
}
