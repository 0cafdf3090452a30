//! Sources as scp names them.

use super::*;

fn named(path: &str) -> Option<String> {
    root(Path::new(path)).name.map(|name| String::from_utf8(name).unwrap())
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
    let roots =
        |paths: &[&str]| Roots::new(&paths.iter().map(PathBuf::from).collect::<Vec<_>>(), &[]);
    let sources = |paths: &[&str]| roots(paths).sources;
    assert_eq!(sources(&["run7"]), Sources::One);
    assert_eq!(sources(&["run7/."]), Sources::Contents);
    assert_eq!(sources(&["a", "b"]), Sources::Several);
    assert!(roots(&["a"]).of == roots(&["a"]).of && roots(&["a"]).of != roots(&["b"]).of);
}
