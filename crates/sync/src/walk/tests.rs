//! Tests of what is deleted, and of what is not.

use super::*;
use crate::apply::Applying;
use crate::options::{Deletion, EmptySource, Excluded, Existing};
use crate::side::testing::TestSide;

use hikyaku_console::Interrupt;
use hikyaku_store::{ErrorKind, Operation};

fn options() -> Options {
    let deletion = Deletion { most: None, excluded: Excluded::Stay, empty: EmptySource::Refused };
    Options { is_recursive: true, deletion: Some(deletion), ..Options::default() }
}

fn plan(source: &TestSide, target: &TestSide, rules: &[&str], options: &Options) -> Plan {
    let mut all = Rules::default();
    rules.iter().for_each(|rule| all.filter(rule).unwrap());
    let walk = Walk {
        source,
        target,
        rules: &all,
        options,
        way: Way::Received,
        names: None,
        plan_max: u64::MAX,
    };
    walk.plan(Target::There, &mut |_| Ok(())).unwrap()
}

fn deleted(plan: &Plan) -> Vec<&str> {
    plan.delete.iter().map(|doomed| std::str::from_utf8(&doomed.path).unwrap()).collect()
}

#[test]
fn nothing_is_deleted_in_a_directory_that_was_not_listed_whole_or_below_it() {
    let names = ["a/", "a/x", "b/", "b/x"];
    let all = [&names[..], &["a/y/", "a/y/z", "b/y", "c/", "c/z"]].concat();
    // Directories of the source and of the target that cannot be listed, and what is deleted.
    let cases: [([&[&str]; 2], &[&str]); 5] = [
        ([&[], &[]], &["a/y", "a/y/z", "b/y", "c", "c/z"]),
        ([&["a"], &[]], &["b/y", "c", "c/z"]),
        ([&[], &["a"]], &["b/y", "c", "c/z"]),
        ([&[], &["a/y"]], &["b/y", "c", "c/z"]),
        ([&[], &["c"]], &["a/y", "a/y/z", "b/y"]),
    ];
    for ((closed, wanted), is_far) in
        cases.into_iter().flat_map(|case| [(case, false), (case, true)])
    {
        let [source, target] =
            [(&names[..], closed[0]), (&all[..], closed[1])].map(|(names, closed)| {
                let side = TestSide::new(names).closed(closed);
                if is_far { side.far() } else { side }
            });
        let plan = plan(&source, &target, &[], &options());
        let mut found = deleted(&plan);
        found.sort_unstable();
        assert_eq!(found, wanted, "{closed:?}");
        assert_eq!(plan.failures.len(), closed.concat().len(), "{closed:?}");
        assert_eq!(plan.unread, closed[0].len() as u64, "{closed:?}");
    }
}

#[test]
fn a_directory_that_vanishes_while_the_source_is_read_costs_nothing() {
    // It is listed in its parent, and is not there when its own turn comes.
    let source = TestSide::new(&["a/", "b"]);
    let source = source.failing((Operation::List, 1), &["a"], ErrorKind::NotFound);
    let target = TestSide::new(&["a/", "a/kept", "b", "extra"]);
    let plan = plan(&source, &target, &[], &options());
    assert_eq!(deleted(&plan), ["extra"]);
    assert_eq!((plan.vanished, plan.failures), (vec!["a".to_owned()], vec![]));
}

#[test]
fn a_tree_of_a_storage_is_walked_through_and_what_was_not_read_is_listed_again() {
    let source = TestSide::new(&["a/", "a/b/", "a/b/x", "a/y", "c/", "c/z", "l"]).far();
    let source = source.failing((Operation::List, 1), &["a/b", "c"], ErrorKind::Denied);
    let target = TestSide::new(&["a/", "a/b/", "a/b/x", "c/", "c/extra"]).far();
    let plan = plan(&source, &target, &[], &options());
    assert_eq!(String::from_utf8(plan.files.clone()).unwrap(), "l\0a/y\0c/z\0");
    assert_eq!(deleted(&plan), ["c/extra"]);
    assert!(plan.failures.is_empty(), "{:?}", plan.failures);
}

#[test]
fn what_rules_leave_out_stays_and_so_do_the_directories_above_it() {
    let source = TestSide::new(&["x", "s.tmp"]);
    let target = TestSide::new(&["x", "d/", "d/k.tmp", "d/y", "e/", "e/z", "s.tmp", "p"]);
    let found = |rules: &[&str], options: &Options| {
        let plan = plan(&source, &target, rules, options);
        deleted(&plan).into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(found(&[], &options()), ["e/z", "e", "d/y", "d/k.tmp", "d", "p"]);
    assert_eq!(found(&["- *.tmp"], &options()), ["e/z", "e", "d/y", "p"]);
    assert_eq!(found(&["P *.tmp", "- /e/"], &options()), ["d/y", "p"]);
    let mut all = options();
    all.deletion.as_mut().unwrap().excluded = Excluded::Deleted;
    assert_eq!(found(&["- *.tmp", "P p"], &all), ["e/z", "e", "d/y", "d/k.tmp", "d", "s.tmp"]);
}

#[test]
fn a_directory_gives_way_to_a_file_only_if_all_in_it_is_deleted() {
    let (source, target) = (TestSide::new(&["d", "x"]), TestSide::new(&["d/", "d/k", "d/y", "x"]));
    let plain = Options { deletion: None, ..options() };
    let refused = plan(&source, &target, &[], &plain);
    assert_eq!((deleted(&refused).len(), refused.failures.len()), (0, 1));
    let kept = plan(&source, &target, &["P k"], &options());
    assert_eq!((&deleted(&kept)[..], kept.failures.len()), (&["d/y"][..], 1));
    assert!(kept.late_files.is_empty());
    let empty = plan(&source, &TestSide::new(&["d/", "x"]), &[], &plain);
    assert_eq!((&deleted(&empty)[..], &empty.late_files[..]), (&["d"][..], &b"d\0"[..]));
    let replaced = plan(&source, &target, &[], &options());
    assert_eq!(deleted(&replaced), ["d/y", "d/k", "d"]);
    assert_eq!((&replaced.late_files[..], &replaced.files[..]), (&b"d\0"[..], &b""[..]));
}

#[test]
fn what_is_deleted_and_what_is_replaced_is_kept_where_the_user_wants_that() {
    let source = TestSide::new(&["x", "same", "taken", "taken~"]);
    let names = ["x", "same", "taken", "taken~", "y", "y~", "d/", "d/z", "d/e/", "d/e/z~"];
    let target = TestSide::new(&names);
    target.add("x", 2);
    target.add("taken", 2);
    let options = Options { backup: Some("~".to_owned()), ..options() };
    let plan = plan(&source, &target, &["P *~"], &options);
    let text = |path: &[u8]| String::from_utf8(path.to_vec()).unwrap();
    let kept: Vec<_> = plan.backups.iter().map(|(from, to)| text(from) + " " + &text(to)).collect();
    assert_eq!(kept, ["taken taken~~", "x x~"]);
    let kept = plan.delete.iter().map(|doomed| match &doomed.end {
        End::Renamed(to) => text(&doomed.path) + " " + &text(to),
        End::Removed => text(&doomed.path),
    });
    assert_eq!(kept.collect::<Vec<_>>(), ["d/z d/z~", "y y~"]);
    let scope = Interrupt::default().scope();
    let mut applying = Applying { target: &target, scope: &scope, failures: Vec::new() };
    applying.delete(&plan.delete).unwrap();
    assert!(applying.failures.is_empty(), "{:?}", applying.failures);
    for name in ["d/z~", "d/e/z~", "y~", "taken~"] {
        assert!(target.names().contains(&name.to_owned()), "{name}");
    }
}

#[test]
fn a_directory_with_the_name_of_a_backup_makes_way_before_it_and_only_whole() {
    let source = TestSide::new(&["x"]);
    let target = TestSide::new(&["x", "x~/", "x~/k", "x~/y", "z", "z~/", "z~/y"]);
    target.add("x", 2);
    let options = Options { backup: Some("~".to_owned()), ..options() };
    let free = plan(&source, &target, &["P *~"], &options);
    let early: Vec<_> = free.early.iter().map(|doomed| &doomed.path[..]).collect();
    assert_eq!(early, [&b"x~/y"[..], b"x~/k", b"x~", b"z~/y", b"z~"]);
    assert_eq!((deleted(&free), free.deletions()), (vec!["z"], 4));
    assert_eq!((&free.files[..], free.backups.len()), (&b"x\0"[..], 1));
    let kept = plan(&source, &target, &["P k", "P *~"], &options);
    assert_eq!((kept.failures.len(), kept.files.len(), kept.backups.len()), (1, 0, 0));
}

#[test]
fn names_are_left_alone_by_what_the_target_has_under_them() {
    let source = TestSide::new(&["both", "d/", "d/x", "f", "new"]);
    let target = TestSide::new(&["both", "d", "f/"]);
    target.add("both", 2);
    let files = |existing: Existing| {
        let options = Options { existing, deletion: None, ..options() };
        let plan = plan(&source, &target, &[], &options);
        let files = [&plan.files[..], &plan.late_files[..]].concat();
        (String::from_utf8(files).unwrap(), plan.dirs.len(), plan.failures.len())
    };
    assert_eq!(files(Existing::All), ("both\0new\0d/x\0f\0".to_owned(), 1, 0));
    assert_eq!(files(Existing::OnlyThese), ("both\0f\0".to_owned(), 1, 0));
    assert_eq!(files(Existing::LeftAlone), ("new\0".to_owned(), 0, 1));
}

#[test]
fn what_has_changed_since_it_was_listed_is_not_deleted() {
    let (source, target) =
        (TestSide::new(&["x"]), TestSide::new(&["x", "d/", "d/e/", "d/e/f", "g"]));
    let plan = plan(&source, &target, &[], &options());
    target.add("d/e/f", 2);
    target.add("d/new", 1);
    let scope = Interrupt::default().scope();
    let mut applying = Applying { target: &target, scope: &scope, failures: Vec::new() };
    applying.delete(&plan.delete).unwrap();
    assert_eq!(target.names(), ["d", "d/e", "d/e/f", "d/new", "x"]);
    assert_eq!(applying.failures.len(), 1, "{:?}", applying.failures);
}

#[test]
fn a_tree_without_end_is_refused() {
    let source = TestSide::new(&["a", "b", "c/", "c/d"]);
    let target = TestSide::new(&[]);
    let (rules, options) = (Rules::default(), options());
    let walk = |plan_max| Walk {
        source: &source,
        target: &target,
        rules: &rules,
        options: &options,
        way: Way::Received,
        names: None,
        plan_max,
    };
    assert!(walk(4 * NAME_BYTES + 6).plan(Target::There, &mut |_| Ok(())).is_ok());
    let refused = walk(4 * NAME_BYTES + 5).plan(Target::There, &mut |_| Ok(()));
    assert!(matches!(refused, Err(NoPlan::End(_))));
}
