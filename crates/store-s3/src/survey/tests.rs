//! Listings of buckets.

use super::*;

fn survey(keys: &[(&str, u64)], root: &str) -> (Vec<(String, Kind)>, Vec<String>) {
    let mut survey = Survey::default();
    for (key, size) in keys {
        let object = Object { key: (*key).to_owned(), size: *size, ..Object::default() };
        survey.add(&object, root);
    }
    let text = |path: &[u8]| String::from_utf8(path.to_vec()).unwrap();
    let all = survey.all.iter().map(|(path, found)| (text(path), found.kind)).collect();
    (all, survey.doubles.iter().map(|path| text(path)).collect())
}

#[test]
fn an_object_whose_name_is_a_directory_too_is_noted() {
    use Kind::{Dir, File};
    let named = |all: &[(&str, Kind)]| -> Vec<(String, Kind)> {
        all.iter().map(|(path, kind)| ((*path).to_owned(), *kind)).collect()
    };
    for keys in [
        &[("a", 3), ("a-", 1), ("a/b", 2), ("a/c/d", 0)][..],
        // A listing may have any order.
        &[("a/c/d", 0), ("a/b", 2), ("a-", 1), ("a", 3)],
    ] {
        let (all, doubles) = survey(keys, "");
        let wanted = [("a", Dir), ("a-", File), ("a/b", File), ("a/c", Dir), ("a/c/d", File)];
        assert_eq!(all, named(&wanted));
        assert_eq!(doubles, ["a"]);
    }
    let (all, doubles) = survey(&[("a", 3), ("a/", 0)], "");
    assert_eq!((all, doubles), (named(&[("a", Dir)]), vec!["a".to_owned()]));
    let (all, doubles) = survey(&[("r/a/b", 3), ("r/", 0)], "r");
    assert_eq!(all, named(&[("r", Dir), ("r/a", Dir), ("r/a/b", File)]));
    assert!(doubles.is_empty());
}

#[test]
fn a_walk_has_each_path_once_and_reports_what_it_hides() {
    let mut survey = Survey::default();
    for key in ["a", "a-", "a/b", "x//y", "z"] {
        survey.add(&Object { key: key.to_owned(), ..Object::default() }, "");
    }
    let walk = |most: usize| {
        let mut seen = Vec::new();
        survey.clone().pass_on(&StorePath::ROOT, &mut |entry| {
            let kind = entry.found.map(|found| found.kind).map_err(|error| error.kind);
            seen.push((String::from_utf8(entry.path.as_bytes().to_vec()).unwrap(), kind));
            if seen.len() < most { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        seen
    };
    use Kind::{Dir, File};
    let wanted = [
        ("", Ok(Dir)),
        ("a", Ok(Dir)),
        ("a", Err(ErrorKind::IsDir)),
        ("a-", Ok(File)),
        ("a/b", Ok(File)),
        ("x", Err(ErrorKind::BadName)),
        ("z", Ok(File)),
    ];
    assert_eq!(walk(100), wanted.map(|(path, kind)| (path.to_owned(), kind)));
    assert_eq!((walk(1).len(), walk(3).len()), (1, 3));
}

#[test]
fn a_key_that_no_path_can_have_is_not_taken_for_another() {
    let (all, _) = survey(&[("a//b", 3), ("d//", 0), ("/e", 1)], "");
    let paths: Vec<_> = all.iter().map(|(path, _)| path.as_str()).collect();
    assert_eq!(paths, ["/e", "a//b", "d/"]);
    assert!(paths.iter().all(|path| StorePath::new(path.as_bytes()).is_err()));
}
