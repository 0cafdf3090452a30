//! Holes: ranges of a file without allocated blocks. They read as zeros and occupy no disk space.

use crate::system::punch_hole;
use rustix::fs::{SeekFrom, seek};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;

/// The holes of a file of `size` bytes, in order, by `SEEK_HOLE` and `SEEK_DATA` (lseek(2)). Empty
/// on a file system that does not report holes.
///
/// The search moves the file's offset, so the caller reads by explicit offsets.
pub fn holes(file: &File, size: u64) -> impl Iterator<Item = Range<u64>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        // The kernel reports the end of a file as a hole; the search stops before it.
        let from = (at < size).then(|| seek(file, SeekFrom::Hole(at)).ok())??;
        let to = match seek(file, SeekFrom::Data(from)) {
            Ok(to) => to.min(size),
            Err(Errno::NXIO) => size,
            Err(_) => return None,
        };
        at = to;
        (from < to).then_some(from..to)
    })
}

/// Zeros become a hole in units of this many bytes. Most file systems allocate smaller blocks, but
/// a system call for each of those would cost more than the space that it saves.
const HOLE_UNIT_BYTES: usize = 64 << 10;
static ZEROS: [u8; HOLE_UNIT_BYTES] = [0; HOLE_UNIT_BYTES];

/// Writes `bytes` at `offset`, and makes holes of blocks of zeros.
pub fn write_sparse(file: &File, bytes: &[u8], offset: u64) -> io::Result<()> {
    let mut rest = bytes;
    let mut at = offset;
    while !rest.is_empty() {
        let zeros = blocks(rest, true);
        punch(file, at..at + zeros as u64)?;
        let data = blocks(&rest[zeros..], false);
        file.write_all_at(&rest[zeros..zeros + data], at + zeros as u64)?;
        at += (zeros + data) as u64;
        rest = &rest[zeros + data..];
    }
    Ok(())
}

/// The length of the longest prefix of whole blocks (and a last partial one) that are all zeros, or
/// with `zeros` false, that are not.
fn blocks(bytes: &[u8], zeros: bool) -> usize {
    let is_zero = |block: &[u8]| block == &ZEROS[..block.len()];
    bytes.chunks(HOLE_UNIT_BYTES).take_while(|block| is_zero(block) == zeros).map(<[u8]>::len).sum()
}

/// Deallocates a range of a file, within its length or beyond it; the length is unchanged. Writes
/// zeros on a file system without holes.
pub fn punch(file: &File, range: Range<u64>) -> io::Result<()> {
    if range.is_empty() {
        return Ok(());
    }
    match punch_hole(file, range.clone()) {
        Ok(()) => Ok(()),
        // The file system or the system does not support holes.
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => fill(file, range),
        Err(errno) => Err(errno.into()),
    }
}

fn fill(file: &File, range: Range<u64>) -> io::Result<()> {
    let mut at = range.start;
    while at < range.end {
        let here = (range.end - at).min(HOLE_UNIT_BYTES as u64) as usize;
        file.write_all_at(&ZEROS[..here], at)?;
        at += here as u64;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    fn scratch(name: &str) -> (std::path::PathBuf, File) {
        let path = std::env::temp_dir().join(format!("hikyaku-{name}-{}", std::process::id()));
        let mut options = File::options();
        let file = options.read(true).write(true).create(true).truncate(true).open(&path).unwrap();
        (path, file)
    }

    #[test]
    fn holes_are_found_and_nothing_else() {
        let (path, file) = scratch("holes");
        let size = 16 << 20;
        file.set_len(size).unwrap();
        assert_eq!(holes(&file, size).collect::<Vec<_>>(), [Range { start: 0, end: size }]);
        file.write_all_at(&[1; 1 << 20], 4 << 20).unwrap();
        let found: Vec<_> = holes(&file, size).collect();
        assert_eq!(found, [0..4 << 20, 5 << 20..size]);
        file.write_all_at(&[1], size - 1).unwrap();
        assert!(holes(&file, size).all(|hole| hole.end < size));
        assert_eq!(holes(&file, 0).count(), 0);
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn zeros_become_holes_over_what_was_there() {
        let (path, file) = scratch("sparse");
        let mut bytes = vec![7; 5 * HOLE_UNIT_BYTES + 100];
        file.write_all_at(&bytes, 0).unwrap();
        bytes[HOLE_UNIT_BYTES..4 * HOLE_UNIT_BYTES].fill(0);
        bytes[4 * HOLE_UNIT_BYTES + 5] = 0;
        write_sparse(&file, &bytes, 0).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), bytes);
        let blocks = file.metadata().unwrap().blocks() * 512;
        assert!(blocks <= 3 * HOLE_UNIT_BYTES as u64, "{blocks} bytes in use");
        fill(&file, 10..HOLE_UNIT_BYTES as u64 + 20).unwrap();
        bytes[10..HOLE_UNIT_BYTES + 20].fill(0);
        assert_eq!(std::fs::read(&path).unwrap(), bytes);
        std::fs::remove_file(path).unwrap();
    }
}
