//! Which copies a target names, and what is read of them.

use super::*;
use hikyaku_fs::Token;
use hikyaku_job::State;
use hikyaku_store::{Make, Memory, Store, StorePath};
use hikyaku_transfer::{
    Begun, Done, EarlierFile, FileHash, FileRecord, Geometry, Proven, Reached, SEGMENT,
    SegmentHash, SegmentIndex, Version,
};
use std::collections::BTreeMap;

fn part(path: &str, segments: u64) -> (Vec<u8>, Remains) {
    let size = 4 * SEGMENT;
    let mut proven = Proven::nothing(Geometry::new(size).unwrap());
    let claimed = proven.clone();
    (0..segments).for_each(|at| {
        proven.insert(SegmentIndex(at as u32), SegmentHash([1; 32]));
    });
    let name = path.rsplit('/').next().unwrap_or_default();
    let record = FileRecord {
        path: path.as_bytes().to_vec(),
        partial: format!(".{name}.abcdefghabcde.hikyaku").into_bytes(),
        size,
        version: Version([7; 32]),
    };
    (
        path.as_bytes().to_vec(),
        Remains::Part(Part { record, proven, claimed, heads: Vec::new(), stamp: None }),
    )
}

fn whole(path: &str) -> (Vec<u8>, Remains) {
    let (version, made) = (Version([1; 32]), Version([2; 32]));
    let path = path.as_bytes().to_vec();
    let (hash, reached) = (Some(FileHash([3; 32])), Reached::Disk);
    (path.clone(), Remains::Whole(Done { path, size: 9, version, made, hash, reached }))
}

fn copy(name: Option<&str>, files: Vec<(Vec<u8>, Remains)>) -> Unfinished {
    let begun = Begun {
        token: b"abcdefgh".to_vec(),
        dir: b"/data".to_vec(),
        name: name.map(|name| name.as_bytes().to_vec()),
        from: "/source/run7\u{1b}[2J".to_owned(),
    };
    let token = Token::parse(b"abcdefgh").unwrap();
    Unfinished {
        path: "/state/1.journal2".into(),
        touched: None,
        state: State::Waiting,
        content: Journaled::Known(Known { begun, token, files: files.into_iter().collect() }),
    }
}

#[test]
fn a_copy_is_named_by_its_target_and_by_a_file_that_it_has_not_finished() {
    let tree = copy(None, vec![part("run7/a", 1), whole("run7/b")]);
    let one = copy(Some("x"), vec![part("x", 1)]);
    let is_named = |copy, path: &str| is_meant(copy, Path::new(path));
    assert!(is_named(&tree, "/data") && is_named(&tree, "/data/run7/a"));
    assert!(is_named(&one, "/data/x"));
    for (copy, path) in [
        (&tree, "/data/run7/b"),
        (&tree, "/data/run7"),
        (&tree, "/"),
        (&one, "/data"),
        (&one, "/data/y"),
        (&one, "x"),
    ] {
        assert!(!is_named(copy, path), "{path}");
    }
}

#[test]
fn a_person_reads_what_where_and_how_much() {
    let tree = copy(None, vec![part("run7/a", 3), whole("run7/b")]);
    let expected = "/data
  from     /source/run7\u{fffd}[2J
  state    waits for the same command, which goes on with it
  file     /data/run7/a
           is /data/run7/.a.abcdefghabcde.hikyaku
           3.1 MB of 4.2 MB proven
  done     1 file with the final name
  journal  /state/1.journal2
";
    assert_eq!(told::listed(&tree, Form::Words), expected);
    let line = told::listed(&tree, Form::Lines);
    let value: serde_json::Value = serde_json::from_str(&line).unwrap();
    assert_eq!((&value["event"], &value["target"]), (&"unfinished".into(), &"/data".into()));
    assert_eq!((&value["state"], &value["done_files"]), (&"waiting".into(), &1.into()));
    assert_eq!(value["files"][0]["proven_bytes"], 3 * SEGMENT);
    assert_eq!(line.lines().count(), 1);
}

#[test]
fn a_copy_of_which_nothing_can_be_read_is_named_by_its_journal() {
    let earlier = EarlierFile { partial: b".a.x.hikyaku".to_vec(), size: 9, written: 5 };
    let files = BTreeMap::from([(b"run/a".to_vec(), earlier)]);
    for (content, wanted) in [
        (Journaled::Earlier(files), "run/.a.x.hikyaku"),
        (Journaled::Unreadable("why".to_owned()), "why"),
    ] {
        let copy = Unfinished { content, ..copy(None, Vec::new()) };
        let text = told::listed(&copy, Form::Words);
        assert!(text.contains(wanted) && text.contains("/state/1.journal2"), "{text}");
        assert_eq!(told::name(&copy), "/state/1.journal2");
    }
}

#[test]
fn unfinished_files_of_another_storage_are_listed_by_their_paths_there_and_removed_there() {
    let (store, path) = (Memory::default(), StorePath::new(b"a").unwrap());
    let draft = store.create(&path, &Make::default()).unwrap();
    draft.write_at(0, b"part").unwrap();
    let token = draft.token();
    draft.keep();
    drop(draft);
    let mut copy = copy(None, vec![part("a", 1), part("b", 1), whole("c")]);
    let Journaled::Known(known) = &mut copy.content else { panic!() };
    known.begun.dir = b"far:run7".to_vec();
    if let Some(Remains::Part(part)) = known.files.get_mut(&b"a"[..]) {
        part.record.partial.clone_from(&token.0);
    }
    assert!(is_meant(&copy, Path::new("far:run7")) && !is_meant(&copy, Path::new("far:run8")));
    let listed = told::listed(&copy, Form::Words);
    assert!(listed.starts_with("far:run7\n") && listed.contains("  file     a\n"), "{listed}");
    let Journaled::Known(known) = &copy.content else { panic!() };
    let mut dropped = abandon::Dropped::default();
    dropped.remove_in(&store, known);
    assert_eq!((dropped.files, dropped.failures.len()), (1, 0), "{:?}", dropped.failures);
    assert!(store.take_up(&path, &token).is_err());
}
