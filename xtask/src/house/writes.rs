//! Files that are replaced as a whole: code that writes a new file and gives it the name of the old one.
//!
//! `fs/whole.rs` does it for paths of the user, and `crypto/private_file.rs`, which stands on the same floor, for keys.
//! `mount/notes.rs` names its file when it has locked it, and `run-log/file.rs` gives a full log another name.

use super::Place;
use super::code::Code;

const WRITES: &[&str] = &[".write_all(", "fs::write(", ".append(true)"];
const NAMES: &[&str] = &["fs::rename(", "fs::hard_link(", "renameat("];
/// The crate with the operations of files: its drafts are named in several ways, by one method.
const FILES: &str = "fs";

/// Every file of the code that replaces one by itself, and the one that others call.
pub(super) fn replacements(all: &[Code<'_>]) -> Vec<Place> {
    let by_hand =
        |code: &Code<'_>| code.crate_name != FILES && code.has_any(WRITES) && code.has_any(NAMES);
    let is_place = |code: &&Code<'_>| by_hand(code) || code.has_any(&["fn write_whole("]);
    all.iter().filter(is_place).map(|code| Place::file(code.path)).collect()
}
