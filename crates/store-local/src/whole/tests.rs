//! Tests of small files that are written together.

use super::*;
use crate::local::NewModes;
use hikyaku_store::{Store, Time};
use std::fs;
use std::os::unix::fs::MetadataExt;

#[test]
fn small_files_of_a_batch_fail_by_themselves() {
    let root = std::env::temp_dir().join(format!("hikyaku-put-all-{}", std::process::id()));
    let _ = fs::remove_dir_all(&root);
    fs::create_dir_all(root.join("d/taken")).unwrap();
    fs::create_dir_all(root.join("e")).unwrap();
    fs::write(root.join("d/0"), "old").unwrap();
    let store = Local::open(&root, NewModes::default()).unwrap();
    let path = |text: &str| StorePath::new(text.as_bytes()).unwrap();
    let finish = Finish { mode: Some(0o640), ..Finish::default() };
    for (durable, count) in [(Durable::Disk, 3), (Durable::Disk, 20), (Durable::Cache, 20)] {
        let files: Vec<StorePath> = (0..count)
            .map(|n| path(&format!("{}/{n}", if n % 3 == 0 { "e" } else { "d" })))
            .chain([path("d/taken"), path("none/x")])
            .collect();
        let (naming, finish) = (Naming::Replace, &finish);
        let put = |path| Op::Put(Put { path, bytes: b"new", naming, finish, durable });
        let ops: Vec<Op<'_>> = files.iter().map(put).collect();
        let mut results = vec![None; ops.len()];
        store.batch(&ops, &mut |index, result| {
            assert!(results[index].replace(result.map_err(|error| error.kind)).is_none());
        });
        for (number, result) in results.into_iter().enumerate() {
            let result = result.unwrap();
            match number.checked_sub(count) {
                None => assert!(matches!(result, Ok(Reply::Found(_))), "{result:?}"),
                Some(0) => assert_eq!(result, Err(ErrorKind::IsDir)),
                Some(_) => assert_eq!(result, Err(ErrorKind::NotFound)),
            }
        }
        for file in &files[..count] {
            let at = root.join(file.to_string());
            assert_eq!(fs::read(&at).unwrap(), b"new");
            assert_eq!(fs::metadata(&at).unwrap().mode() & 0o7777, 0o640);
            fs::write(&at, "old").unwrap();
        }
        let is_draft = |dir: &str| {
            let mut names = fs::read_dir(root.join(dir)).unwrap();
            names.any(|entry| entry.unwrap().path().extension().is_some())
        };
        assert!(!is_draft("d") && !is_draft("e"));
    }
    fs::remove_dir_all(&root).unwrap();
}

#[test]
fn whole_files_get_their_names_together_and_leave_nothing_else() {
    let root = std::env::temp_dir().join(format!("hikyaku-whole-{}", std::process::id()));
    let _ = fs::remove_dir_all(&root);
    fs::create_dir_all(root.join("d/taken")).unwrap();
    let store = Local::open(&root, NewModes::default()).unwrap();
    let name = |text: &str| Name::new(text.as_bytes()).unwrap();
    let dir = StorePath::new(b"d").unwrap();
    let folder = store.folder(&dir).unwrap();
    let modified = Some(Time { secs: -5, nanos: 0 });
    let finish = Finish { mode: Some(0o440), modified, ..Finish::default() };
    let cases = [
        ("kernel", &b"one"[..], Reached::Kernel),
        ("disk", b"", Reached::Disk),
        ("others", b"three", Reached::DiskWithOthers),
        ("taken", b"no", Reached::DiskWithOthers),
    ];
    let write = |(at, bytes, reached)| folder.write((&name(at), bytes), &finish, reached).unwrap();
    let whole: Vec<Whole> = cases.map(write).into();
    drop(write(("dropped", b"x", Reached::Kernel)));
    let listed = || {
        let names = fs::read_dir(root.join("d")).unwrap();
        let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.filter(|name| name != "taken").collect::<Vec<_>>()
    };
    assert_eq!(listed().len(), 4);
    assert!(listed().iter().all(|name| name.ends_with(".hikyaku")), "one has its name");
    let named = name_all(whole);
    assert!(named[..3].iter().all(Result::is_ok), "{named:?}");
    assert_eq!(named[3].as_ref().unwrap_err().kind, ErrorKind::IsDir);
    let mut names = listed();
    names.sort();
    assert_eq!(names, ["disk", "kernel", "others"]);
    for (at, bytes, _) in &cases[..3] {
        let path = root.join("d").join(at);
        let meta = fs::metadata(&path).unwrap();
        assert_eq!((meta.mode() & 0o7777, meta.mtime()), (0o440, -5), "{at}");
        assert_eq!(fs::read(&path).unwrap(), *bytes, "{at}");
    }
    let draft = name(".a.abcdefghabcde.hikyaku");
    let refused = folder.write((&draft, b""), &finish, Reached::Kernel);
    assert_eq!(refused.err().map(|error| error.kind), Some(ErrorKind::BadName));
    assert!(store.folder(&StorePath::new(b"none").unwrap()).is_err());
    assert!(store.look(&dir).is_ok());
    fs::remove_dir_all(&root).unwrap();
}
