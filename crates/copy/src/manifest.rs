//! A list of hashes that `b3sum --check` takes.

use hikyaku_console::At;
use hikyaku_fs::write_whole;
use hikyaku_transfer::FileHash;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::Path;

/// Writes the list into a file, which is there as a whole or not at all.
pub(crate) fn save(path: &Path, hashes: &BTreeMap<Vec<u8>, FileHash>) -> anyhow::Result<()> {
    let mut text = Vec::new();
    write(&mut text, hashes)?;
    write_whole(path, &text).at(path.display())
}

/// Writes a line a file: the hash, two spaces, the path. As in `b3sum`, a path with a line feed or a
/// backslash in it is escaped and its line begins with a backslash.
fn write(out: &mut impl Write, hashes: &BTreeMap<Vec<u8>, FileHash>) -> io::Result<()> {
    for (path, hash) in hashes {
        let is_odd = path.iter().any(|byte| b"\\\n".contains(byte));
        if is_odd {
            out.write_all(b"\\")?;
        }
        write!(out, "{hash}  ")?;
        for &byte in path {
            match byte {
                b'\\' => out.write_all(b"\\\\")?,
                b'\n' => out.write_all(b"\\n")?,
                byte => out.write_all(&[byte])?,
            }
        }
        out.write_all(b"\n")?;
    }
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_those_of_b3sum() {
        let hash = FileHash(*blake3::hash(b"").as_bytes());
        let hashes = BTreeMap::from([(b"run/a b".to_vec(), hash), (b"x\n\\".to_vec(), hash)]);
        let mut out = Vec::new();
        write(&mut out, &hashes).unwrap();
        let text = String::from_utf8(out).unwrap();
        let empty = "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262";
        assert_eq!(text, format!("{empty}  run/a b\n\\{empty}  x\\n\\\\\n"));
    }
}
