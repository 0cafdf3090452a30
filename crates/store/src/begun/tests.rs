//! Tests of the notes of drafts.

use super::*;

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("store-begun-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        Self(path)
    }

    /// The drafts that are left at a place; `answer` is the result for each.
    fn left(&self, place: &[u8], answer: Left) -> Vec<Vec<u8>> {
        let mut left = Vec::new();
        left_over(
            &self.0,
            |other| other == place,
            |_, what| {
                left.push(what.to_vec());
                answer
            },
        );
        left.sort();
        left
    }

    fn files(&self) -> usize {
        read_dir(&self.0).map_or(0, Iterator::count)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The state after a kill: the lock is released, the file stays.
fn kill(begun: Arc<Begun>) {
    let begun = Arc::into_inner(begun).expect("its notes are gone");
    let kept = begun.path.with_extension("kept");
    std::fs::rename(&begun.path, &kept).unwrap();
    let path = begun.path.clone();
    drop(begun);
    std::fs::rename(kept, path).unwrap();
}

#[test]
fn what_a_killed_process_has_begun_is_told_and_what_a_living_one_has_is_not() {
    let folder = Folder::new("killed");
    assert!(folder.left(b"here", Left::Removed).is_empty());
    let begun = Begun::new(&folder.0, b"here").unwrap();
    let notes = [&b"a"[..], b"b", b"c\nd"].map(|what| begun.note(what).unwrap());
    assert!(folder.left(b"here", Left::Removed).is_empty());
    // An ended one frees its slot for another.
    let [a, b, c] = notes;
    drop(b);
    let e = begun.note(b"e").unwrap();
    assert_eq!(e.slot, 2);
    for note in [a, c, e] {
        // A killed process drops nothing.
        let slot = note.slot;
        let what = slot_of(&begun, slot);
        drop(note);
        begun.write(slot, &what);
    }
    kill(begun);
    assert!(folder.left(b"there", Left::Removed).is_empty());
    let wanted = [&b"a"[..], b"c\nd", b"e"];
    assert_eq!(folder.left(b"here", Left::Stays), wanted);
    assert_eq!(folder.left(b"here", Left::Removed), wanted);
    assert_eq!(folder.files(), 0);
}

fn slot_of(begun: &Begun, number: u64) -> Vec<u8> {
    slot(&begun.file, number).unwrap()
}

#[test]
fn a_process_that_ends_leaves_no_file() {
    let folder = Folder::new("ended");
    let begun = Begun::new(&folder.0, b"here").unwrap();
    assert_eq!(folder.files(), 1);
    assert!(begun.note(&[b'a'; SLOT_BYTES]).is_none());
    drop(begun.note(b"a"));
    drop(begun);
    assert_eq!(folder.files(), 0);
}
