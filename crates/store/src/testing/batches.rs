//! Batches: rule R10.

use super::{Case, Rig, get, names, path, put, random};
use crate::{
    Ability, Change, ErrorKind, Finish, Kind, Naming, Op, Put, Replace, Reply, Result, Store,
    StorePath, Time, Version,
};
use hikyaku_transfer::Durable;

pub(super) const CASES: &[Case] = &[
    Case { name: "R10: a batch has one result for each operation", run: results },
    Case { name: "R10: an empty batch has no result", run: empty },
    Case { name: "R10: operations on one path are in order", run: order },
    Case { name: "R10: an operation that fails does not affect the others", run: failures },
    Case { name: "R10: files of a batch are whole", run: files },
    Case { name: "R10: a file of a batch obeys the naming", run: naming },
    Case { name: "R10: mode, time and durability come with a file of a batch", run: finish },
];

/// The results in the order of the operations.
fn run(store: &dyn Store, ops: &[Op<'_>]) -> Vec<Result<Reply>> {
    let mut results: Vec<Option<Result<Reply>>> = vec![None; ops.len()];
    store.batch(ops, &mut |index, result| {
        assert!(index < ops.len(), "a result for operation {index} of {}", ops.len());
        assert!(results[index].replace(result).is_none(), "two results for operation {index}");
    });
    let missing = results.iter().position(Option::is_none);
    assert_eq!(missing, None, "no result for this operation");
    results.into_iter().flatten().collect()
}

fn kinds(results: &[Result<Reply>]) -> Vec<Option<ErrorKind>> {
    results.iter().map(|result| result.as_ref().err().map(|error| error.kind)).collect()
}

const NEW: &Finish =
    &Finish { mode: None, made: None, modified: None, owner: None, attributes: Vec::new() };

fn file<'a>(path: &'a StorePath, bytes: &'a [u8], naming: Naming) -> Op<'a> {
    Op::Put(Put { path, bytes, naming, finish: NEW, durable: Durable::Cache })
}

fn results(rig: &dyn Rig) {
    let store = rig.store();
    store.make_dir(&path("d"), 0o755).unwrap();
    let old = put(&*store, "d/old", b"12345");
    let [dir, new, old_path, gone] = ["d/dir", "d/new", "d/old", "d/gone"].map(path);
    put(&*store, "d/gone", b"x");
    let done = run(
        &*store,
        &[
            Op::Look(&old_path),
            Op::MakeDir(&dir, 0o750),
            file(&new, b"content", Naming::Replace),
            Op::Remove(&gone, Kind::File),
        ],
    );
    let Ok(Reply::Found(looked)) = &done[0] else { panic!("{:?}", done[0]) };
    assert_eq!((looked.size, looked.identity), (5, old.identity));
    assert_eq!(done[1], Ok(Reply::Done));
    let Ok(Reply::Found(made)) = &done[2] else { panic!("{:?}", done[2]) };
    let found = store.look(&new).unwrap();
    assert_eq!((made.size, made.identity), (7, found.identity));
    assert_eq!(done[3], Ok(Reply::Done));
    let wanted = [("dir", Kind::Dir), ("new", Kind::File), ("old", Kind::File)];
    assert_eq!(names(&*store, "d", 10), wanted.map(|(name, kind)| (name.to_owned(), kind)));
    if !store.abilities().links {
        return;
    }
    let link = path("d/link");
    let done = run(&*store, &[Op::MakeLink(&link, b"to here"), Op::ReadLink(&link)]);
    assert_eq!(done, [Ok(Reply::Done), Ok(Reply::Text(b"to here".to_vec()))]);
}

fn empty(rig: &dyn Rig) {
    assert_eq!(run(&*rig.store(), &[]), []);
}

fn order(rig: &dyn Rig) {
    let store = rig.store();
    let (at, other) = (path("f"), path("g"));
    let put_at = |bytes| file(&at, bytes, Naming::Replace);
    let mut ops = vec![put_at(b"1"), Op::Look(&at), put_at(b"22"), Op::Look(&at)];
    if store.abilities().rename {
        ops.extend([Op::Rename(&at, &other, Replace::Allowed), Op::Look(&at), put_at(b"333")]);
    }
    ops.extend([Op::Remove(&at, Kind::File), Op::MakeDir(&at, 0o755), Op::Look(&at)]);
    let results = run(&*store, &ops);
    let sizes: Vec<Option<u64>> = results
        .iter()
        .zip(&ops)
        .filter(|(_, op)| matches!(op, Op::Look(_)))
        .map(|(result, _)| match result {
            Ok(Reply::Found(found)) if found.kind == Kind::File => Some(found.size),
            _ => None,
        })
        .collect();
    assert_eq!(sizes[..2], [Some(1), Some(2)]);
    assert_eq!(sizes[2..].iter().flatten().count(), 0, "{results:?}");
    let failed: Vec<_> = kinds(&results).into_iter().flatten().collect();
    match store.abilities().rename {
        true => {
            assert_eq!(failed, [ErrorKind::NotFound]);
            assert_eq!(get(&*store, "g"), b"22");
        }
        false => assert_eq!(failed, []),
    }
    assert_eq!(store.look(&at).unwrap().kind, Kind::Dir);
}

fn failures(rig: &dyn Rig) {
    let store = rig.store();
    store.make_dir(&path("d"), 0o755).unwrap();
    let [none, dir, below, one, two] = ["none", "d", "none/f", "one", "two"].map(path);
    let done = run(
        &*store,
        &[
            Op::Look(&none),
            file(&one, b"one", Naming::Replace),
            Op::MakeDir(&dir, 0o755),
            file(&below, b"x", Naming::Replace),
            Op::Remove(&none, Kind::File),
            file(&two, b"two", Naming::Replace),
        ],
    );
    let not_found = Some(ErrorKind::NotFound);
    let wanted = [not_found, None, Some(ErrorKind::Exists), not_found, not_found, None];
    assert_eq!(kinds(&done), wanted);
    assert_eq!((get(&*store, "one"), get(&*store, "two")), (b"one".to_vec(), b"two".to_vec()));
    let error = done[0].as_ref().unwrap_err().to_string();
    assert!(error.contains("none"), "{error}");
}

/// Of many sizes, an empty one among them, in two directories.
fn files(rig: &dyn Rig) {
    let store = rig.store();
    store.make_dir(&path("d"), 0o755).unwrap();
    let number = if rig.seeds() < 40 { 40 } else { 300 };
    let name = |n: usize| if n.is_multiple_of(2) { format!("d/{n}") } else { n.to_string() };
    let contents = |n: usize| random(n as u64, n * 97 % 5000);
    let all: Vec<(StorePath, Vec<u8>)> =
        (0..number).map(|n| (path(&name(n)), contents(n))).collect();
    let ops: Vec<Op<'_>> = all.iter().map(|(at, bytes)| file(at, bytes, Naming::Replace)).collect();
    for (result, (at, bytes)) in run(&*store, &ops).into_iter().zip(&all) {
        let Ok(Reply::Found(found)) = result else { panic!("{at}: {result:?}") };
        assert_eq!(found.size, bytes.len() as u64, "{at}");
    }
    for n in 0..number {
        assert!(get(&*store, &name(n)) == contents(n), "file {n}");
    }
    let looks: Vec<Op<'_>> = all.iter().map(|(at, _)| Op::Look(at)).collect();
    assert!(run(&*store, &looks).iter().all(Result::is_ok));
}

fn naming(rig: &dyn Rig) {
    let store = rig.store();
    let old = put(&*store, "old", b"old");
    store.make_dir(&path("dir"), 0o755).unwrap();
    let [old_path, dir, new] = ["old", "dir", "new"].map(path);
    let one = |at: &StorePath, naming| kinds(&run(&*store, &[file(at, b"new", naming)]))[0];
    assert_eq!(one(&dir, Naming::Replace), Some(ErrorKind::IsDir));
    match store.abilities().name_if_absent {
        true => {
            assert_eq!(one(&old_path, Naming::IfAbsent), Some(ErrorKind::Exists));
            assert_eq!(one(&new, Naming::IfAbsent), None);
            assert_eq!(get(&*store, "new"), b"new");
        }
        false => {
            let lacks = Some(ErrorKind::Unsupported(Ability::NameIfAbsent));
            assert_eq!(one(&new, Naming::IfAbsent), lacks);
        }
    }
    let other = Naming::IfVersion(Version([0xee; 32]));
    assert_eq!(one(&old_path, other), Some(ErrorKind::Changed));
    assert_eq!(get(&*store, "old"), b"old");
    if let Some(version) = store.look(&old_path).unwrap().version.filter(|_| old.version.is_some())
    {
        assert_eq!(one(&old_path, Naming::IfVersion(version)), None);
        assert_eq!(get(&*store, "old"), b"new");
    }
    assert_eq!(one(&old_path, Naming::Replace), None);
    assert_eq!(get(&*store, "old"), b"new");
}

fn finish(rig: &dyn Rig) {
    let store = rig.store();
    let able = store.abilities();
    let time = Time { secs: 1_234_567_890, nanos: 987_654_321 };
    let finish = Finish {
        mode: able.modes.then_some(0o440),
        modified: able.times.then_some(time),
        ..Finish::default()
    };
    let [cached, durable] = ["cached", "durable"].map(path);
    let op = |path, durable| {
        Op::Put(Put { path, bytes: b"x", naming: Naming::Replace, finish: &finish, durable })
    };
    let later =
        Change { modified: able.times.then_some(Time { secs: 5, nanos: 0 }), ..Change::default() };
    let ops =
        [op(&cached, Durable::Cache), op(&durable, Durable::Disk), Op::Change(&cached, &later)];
    assert_eq!(kinds(&run(&*store, &ops)), [None; 3]);
    store.sync(&[StorePath::ROOT]).unwrap();
    for (at, wanted) in [(&cached, 5), (&durable, time.secs)] {
        let found = store.look(at).unwrap();
        assert!(!able.modes || found.mode & 0o777 == 0o440, "{at}: {found:?}");
        assert!(!able.times || found.modified.secs == wanted, "{at}: {found:?}");
    }
    if let Some(after) = rig.crash() {
        assert_eq!(get(&*after, "durable"), b"x");
    }
}
