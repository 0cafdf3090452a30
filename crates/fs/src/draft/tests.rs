//! A draft gets its final name complete or leaves nothing behind.

use super::*;
use std::path::{Path, PathBuf};

struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let path =
            std::env::temp_dir().join(format!("hikyaku-draft-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn dir(&self) -> Arc<Dir> {
        Arc::new(Dir::open(&self.0).unwrap())
    }

    fn names(&self) -> Vec<String> {
        let all = std::fs::read_dir(&self.0).unwrap();
        all.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn name() -> Name {
    Name::new(b"a").unwrap()
}

fn begin(scratch: &Scratch) -> Draft {
    let draft = Draft::create(scratch.dir(), &name(), &Token::random().unwrap()).unwrap();
    draft.write_at(0, b"courier", Zeros::Written).unwrap();
    draft
}

#[test]
fn it_has_its_name_or_is_gone() {
    let scratch = Scratch::new("named");
    std::fs::write(scratch.0.join("a"), b"old").unwrap();
    drop(begin(&scratch));
    assert_eq!(scratch.names(), ["a"], "a dropped draft that was not kept is removed");
    let kept = begin(&scratch);
    kept.keep();
    let partial = kept.partial().clone();
    drop(kept);
    assert_eq!(scratch.names().len(), 2);
    let taken = Draft::take_up(scratch.dir(), partial, &name()).unwrap();
    assert_eq!(std::fs::read(scratch.0.join("a")).unwrap(), b"old");
    taken.sync().unwrap();
    let made = taken.name(Replace::Allowed).unwrap().unwrap();
    assert_eq!(made.size, 7);
    assert_eq!(std::fs::read(scratch.0.join("a")).unwrap(), b"courier");
    drop(taken);
    assert_eq!(scratch.names(), ["a"]);
    begin(&scratch).discard();
    assert_eq!(scratch.names(), ["a"]);
}

#[test]
fn a_draft_that_cannot_be_renamed_is_removed() {
    let scratch = Scratch::new("refused");
    std::fs::create_dir_all(scratch.0.join("a/x")).unwrap();
    let draft = begin(&scratch);
    assert_eq!(draft.name(Replace::Allowed).unwrap_err().errno(), Some(Errno::ISDIR));
    assert_eq!(scratch.names(), ["a"]);
    assert!(draft.write_at(0, b"x", Zeros::Written).is_err(), "it is closed");
}

#[test]
fn a_file_has_one_writer_in_place() {
    let scratch = Scratch::new("writer");
    std::fs::write(scratch.0.join("a"), b"old").unwrap();
    let first = Draft::in_place(scratch.dir(), &name()).unwrap();
    match Draft::in_place(scratch.dir(), &name()) {
        Err(FsError::Busy { by, .. }) => {
            assert!(by.is_none_or(|by| by == std::process::id()), "{by:?}");
        }
        other => panic!("{other:?}"),
    }
    assert!(Path::new(&scratch.0.join("a")).exists(), "the refused writer removes nothing");
    first.name(Replace::Allowed).unwrap();
    Draft::in_place(scratch.dir(), &name()).unwrap();
}
