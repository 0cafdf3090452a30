//! Sources as scp names them.

use super::*;
use hikyaku_transfer::Sources;

fn named(path: &str) -> Option<String> {
    let mut roots = Roots::new(&[PathBuf::from(path)], &[], Descriptors::Users);
    roots.all.remove(0).name.map(|name| String::from_utf8(name).unwrap())
}

#[test]
fn names_at_the_target_are_those_of_scp() {
    for (path, name) in
        [("run7", "run7"), ("a/run7", "run7"), ("run7/", "run7"), ("/data/run7//", "run7")]
    {
        assert_eq!(named(path).as_deref(), Some(name), "{path}");
    }
    for path in [".", "..", "/", "run7/.", "a/.."] {
        assert_eq!(named(path), None, "{path}");
    }
}

#[test]
fn what_a_target_means_depends_on_the_sources() {
    let roots = |paths: &[&str]| {
        Roots::new(&paths.iter().map(PathBuf::from).collect::<Vec<_>>(), &[], Descriptors::Users)
    };
    let sources = |paths: &[&str]| roots(paths).sources;
    assert_eq!(sources(&["run7"]), Sources::One);
    assert_eq!(sources(&["run7/."]), Sources::Contents);
    assert_eq!(sources(&["a", "b"]), Sources::Several);
    assert!(roots(&["a"]).of == roots(&["a"]).of && roots(&["a"]).of != roots(&["b"]).of);
}

#[test]
fn sources_may_meet_only_if_one_can_have_a_name_of_another() {
    let roots = |paths: &[&str], files: &[&str]| {
        let files: Vec<Vec<u8>> = files.iter().map(|file| file.as_bytes().to_vec()).collect();
        Roots::new(&paths.iter().map(PathBuf::from).collect::<Vec<_>>(), &files, Descriptors::Users)
            .meeting
    };
    for apart in [&["a", "b"][..], &["a/."], &["x/a", "y/b/"]] {
        assert_eq!(roots(apart, &[]), Meeting::Never, "{apart:?}");
    }
    for together in [&["x/a", "y/a"][..], &["a/.", "b"], &["a", "a/"]] {
        assert_eq!(roots(together, &[]), Meeting::Perhaps, "{together:?}");
    }
    assert_eq!(roots(&["s"], &["d/a", "d/b", "c"]), Meeting::Never);
    for list in [&["d/a", "d/a"][..], &["d", "d/e/a"]] {
        assert_eq!(roots(&["s"], list), Meeting::Perhaps, "{list:?}");
    }
    assert_eq!(roots(&["s", "t"], &["a"]), Meeting::Perhaps);
}
