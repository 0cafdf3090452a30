//! Writes the unfinished files of downloads to the disk steadily, a piece at a time behind the program that writes them. So
//! few pages are dirty, and the kernel never makes the program wait until many of them are written.
//!
//! The file stays the program's: the gateway has it open for reading, which is enough to start its write-back
//! (sync_file_range(2)). The page cache keeps what was written.

use super::file::SOUGHT_BYTES;
use super::program::Program;
use super::{Board, Track};
use hikyaku_tcp::{Diag, start_write_back};
use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// Files are looked at so often.
const EVERY: Duration = Duration::from_millis(100);
/// Bytes that one call starts to write.
const PIECE_BYTES: u64 = 16 << 20;

/// Files that are written back.
struct Writing {
    board: Arc<Board>,
    diag: Diag,
    files: HashMap<u64, Behind>,
}

/// A program, and how far its file was written back.
#[derive(Default)]
struct Behind {
    program: Program,
    done: u64,
}

/// Starts the thread. It ends with [`Board::end`].
///
/// # Errors
///
/// The kernel does not tell of sockets, or the system refuses a thread.
pub(crate) fn start(board: Arc<Board>) -> io::Result<()> {
    let mut writing = Writing { board, diag: Diag::new()?, files: HashMap::new() };
    let run = move || {
        while !writing.board.is_over() {
            writing.pass();
            writing.board.pause(EVERY);
        }
    };
    thread::Builder::new().name("proxy-write-back".to_owned()).spawn(run).map(drop)
}

impl Writing {
    /// Looks once at the files of all downloads.
    fn pass(&mut self) {
        let tracks = self.board.open();
        self.files.retain(|id, _| tracks.iter().any(|track| track.id == *id));
        for track in &tracks {
            // Without the file, or with an error, the kernel writes it when it wants to.
            let _ = self.look(track);
        }
    }

    fn look(&mut self, track: &Track) -> Option<()> {
        let (ends, arrived) = (track.ends?, track.meters.incoming.bytes());
        if arrived < PIECE_BYTES.max(SOUGHT_BYTES) {
            return None;
        }
        let behind = self.files.entry(track.id).or_default();
        if arrived < behind.done + PIECE_BYTES {
            return None;
        }
        let inode = self.diag.queues(ends.program, ends.gateway).ok()??.inode;
        let file = behind.program.file(inode, arrived)?;
        while let Some(piece) = next_piece(behind.done, file.size()) {
            start_write_back(file.as_file(), piece, PIECE_BYTES).ok()?;
            behind.done = piece + PIECE_BYTES;
        }
        Some(())
    }
}

/// Where the next whole piece of a file of this size begins, of which `done` bytes were written back.
const fn next_piece(done: u64, size: u64) -> Option<u64> {
    if size.saturating_sub(done) >= PIECE_BYTES { Some(done) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board::{Asking, Ends};
    use std::fs::{self, File};
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};
    use std::path::Path;
    use std::time::Instant;

    #[test]
    fn whole_pieces_are_written_one_after_the_other() {
        assert_eq!(next_piece(0, PIECE_BYTES - 1), None);
        assert_eq!(next_piece(0, PIECE_BYTES), Some(0));
        assert_eq!(next_piece(PIECE_BYTES, 2 * PIECE_BYTES + 5), Some(PIECE_BYTES));
        assert_eq!(next_piece(PIECE_BYTES, 5), None, "the file was cut");
    }

    #[test]
    fn the_file_of_a_download_does_not_stay_dirty() {
        let _turn = super::super::tests::open_files();
        const LENGTH: usize = 3 * PIECE_BYTES as usize + 100_000;
        let path = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join(format!("../../target/hikyaku-write-back-{}.part", std::process::id()));
        let mut file = File::create(&path).unwrap();
        file.write_all(&vec![7; LENGTH]).unwrap();
        let dirty = |path: &Path| {
            hikyaku_tcp::file_pages(File::open(path).unwrap()).map(|pages| pages.dirty)
        };
        match dirty(&path) {
            Ok(dirty) if dirty > PIECE_BYTES => {}
            _ => {
                eprintln!("\n*** SKIPPED, because pages are not counted or not dirty here ***\n");
                return fs::remove_file(path).unwrap();
            }
        }
        // The program of the flow is this process: it has the socket and the file.
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let gateway = listener.local_addr().unwrap();
        let socket = TcpStream::connect(gateway).unwrap();
        let board = Board::new("far".to_owned(), Instant::now());
        let program = socket.local_addr().unwrap();
        let ends = Some(Ends { program, gateway });
        let asking = Asking { ends, target: "web:80".to_owned() };
        let place = board.enter(asking, Instant::now());
        place.meters().incoming.add(LENGTH + 1000);
        let mut writing = Writing { board, diag: Diag::new().unwrap(), files: HashMap::new() };
        writing.pass();
        let left = dirty(&path).unwrap();
        assert!(left < PIECE_BYTES, "{left} bytes are dirty");
        drop((place, file));
        writing.pass();
        assert!(writing.files.is_empty());
        fs::remove_file(path).unwrap();
    }
}
