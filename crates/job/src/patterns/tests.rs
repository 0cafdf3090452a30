//! Names that a far side may send, and paths that a pattern matches.

use super::*;

fn of(sources: &[&str], depth: Depth) -> Allowed {
    Allowed::of(&sources.iter().map(|s| s.as_bytes().to_vec()).collect::<Vec<_>>(), depth)
}

/// Checks which paths, given as `dir/` or `file`, may come.
fn check(allowed: &Allowed, good: &[&str], bad: &[&str]) {
    let admits = |path: &str| match path.strip_suffix('/') {
        Some(dir) => allowed.admits(dir.as_bytes(), Kind::Dir),
        None => allowed.admits(path.as_bytes(), Kind::File),
    };
    for path in good {
        assert!(admits(path), "{path} is refused by {allowed:?}");
    }
    for path in bad {
        assert!(!admits(path), "{path} is admitted by {allowed:?}");
    }
}

const STRANGERS: [&str; 7] =
    ["1.txt", "b", "cc", ".bashrc", ".ssh/authorized_keys", "1.dat2", ".1.dat"];

#[test]
fn only_names_that_were_asked_for_may_come() {
    let asked = ["run7/*.dat", "a/b/c", "[x]"];
    check(&of(&asked, Depth::File), &["1.dat", "c", "x", "[x]"], &STRANGERS);
    check(&of(&asked, Depth::File), &[], &["c/", "1.dat/", "c/below/that"]);
    check(&of(&asked, Depth::Tree), &["1.dat", "c/", "c/below/that", "c/.hidden"], &STRANGERS);
    check(&of(&["*"], Depth::Tree), &["a", "a/.x"], &[".bashrc", ".ssh/"]);
    check(&of(&[".*"], Depth::Tree), &[".bashrc"], &["a"]);
}

#[test]
fn what_is_in_a_directory_may_have_any_name_if_directories_were_asked_for() {
    for contents in [".", "run7/.", "/", "~", "~/", "", ".."] {
        check(&of(&[contents], Depth::Tree), &["whatever", "d/", "d/x"], &[]);
        check(&of(&[contents], Depth::File), &[], &["whatever", "d/", "d/x", ".bashrc"]);
        check(&of(&["a", contents], Depth::File), &[], &["whatever"]);
    }
    check(&of(&["a/", "~/b"], Depth::Tree), &["a/", "a/x", "b"], &["c", "~"]);
}

#[test]
fn a_name_that_looks_like_a_pattern_is_allowed_beside_it() {
    check(&of(&["a[1].txt"], Depth::File), &["a[1].txt", "a1.txt"], &["a2.txt", "a[2].txt"]);
    check(&of(&["d/b[.txt"], Depth::File), &["b[.txt"], &["b", "b.txt"]);
    let bytes = Allowed::of(&[b"\xffa[".to_vec()], Depth::File);
    assert!(bytes.admits(b"\xffa[", Kind::File) && !bytes.admits(b"\xfea[", Kind::File));
}

#[test]
fn of_a_list_only_its_paths_may_come_and_the_directories_above() {
    let list: Vec<Vec<u8>> = ["a", "d/e/f", "d/g", "t"].map(|path| path.into()).to_vec();
    let strangers = [
        ".bashrc",
        ".ssh/",
        ".ssh/authorized_keys",
        "d/x",
        "d/e/",
        "d/e/x",
        "e/f",
        "a2",
        "f",
        "x/",
    ];
    let flat: Vec<&str> = strangers.into_iter().filter(|path| *path != "d/e/").collect();
    check(&Allowed::listed(&list, Depth::File), &["a", "d/", "d/e/", "d/e/f", "d/g", "t"], &flat);
    check(&Allowed::listed(&list, Depth::File), &[], &["a/", "t/", "t/x", "d", "d/e", "d/e/f/"]);
    let tree = Allowed::listed(&list, Depth::Tree);
    check(&tree, &["a", "t/", "t/x/y", "t/x/", "d/e/f", "d/e/f/deep"], &flat);
    check(&tree, &["d/", "d/e/"], &["d", "d/e", "d/e/fx"]);
}

#[test]
fn a_name_with_a_star_in_it_is_itself() {
    let scratch = std::env::temp_dir().join(format!("hikyaku-expand-{}", std::process::id()));
    fs::create_dir_all(scratch.join("d1")).unwrap();
    fs::create_dir_all(scratch.join("d2")).unwrap();
    fs::create_dir_all(scratch.join("e[")).unwrap();
    for name in ["a.dat", "b.dat", ".c.dat", "x*y", "d1/f", "d2/f", "a[1].txt", "b[.txt", "e[/f"] {
        fs::write(scratch.join(name), b"").unwrap();
    }
    let names = |pattern: &str| -> Vec<String> {
        let found = expand(&scratch.join(pattern));
        let relative = found.iter().map(|path| path.strip_prefix(&scratch).unwrap());
        relative.map(|path| path.display().to_string()).collect()
    };
    assert_eq!(names("*.dat"), ["a.dat", "b.dat"]);
    assert_eq!(names(".*.dat"), [".c.dat"]);
    assert_eq!(names("x*y"), ["x*y"]);
    assert_eq!(names("d?/f"), ["d1/f", "d2/f"]);
    assert_eq!(names("a[1].txt"), ["a[1].txt"]);
    assert_eq!(names("b[.txt"), ["b[.txt"]);
    assert_eq!(names("e[/*"), ["e[/f"]);
    for nothing in ["no", "no[", "*.none"] {
        assert_eq!(names(nothing), [nothing], "whoever reads it says that it is not there");
    }
    fs::remove_dir_all(scratch).unwrap();
}

#[test]
fn a_pattern_goes_through_directories_only() {
    use hikyaku_store::{Finish, Make, Memory, Naming};
    let path = |text: &str| StorePath::new(text.as_bytes()).unwrap();
    let store = Memory::default();
    for dir in ["d", "d/e", "d/g"] {
        store.make_dir(&path(dir), 0o755).unwrap();
    }
    for file in ["d/f", "d/e/x", "d/g/x", "d/g/y"] {
        let draft = store.create(&path(file), &Make::default()).unwrap();
        draft.name(Naming::Replace, &Finish::default()).unwrap();
    }
    let names = |pattern: &str| -> Vec<String> {
        let found = in_store(&store, &path(pattern)).unwrap();
        found.iter().map(ToString::to_string).collect()
    };
    assert_eq!(names("d/*"), ["d/e", "d/f", "d/g"]);
    assert_eq!(names("d/*/x"), ["d/e/x", "d/g/x"]);
    assert_eq!(names("d/*/*"), ["d/e/x", "d/g/x", "d/g/y"]);
    assert_eq!(names("d/f/*"), ["d/f/*"], "nothing matches");
}
