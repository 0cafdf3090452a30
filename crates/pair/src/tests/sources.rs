//! Several sources: of one name, missing ones, and what an interrupted copy has left among them.

use super::*;

/// Copies into a new directory. Returns the failures and the listing.
fn into(
    scratch: &Scratch,
    sources: &[&str],
    options: &Options,
) -> (Vec<String>, Vec<(PathBuf, Vec<u8>)>) {
    let to = scratch.at("into");
    let _ = fs::remove_dir_all(&to);
    fs::create_dir(&to).unwrap();
    let sources: Vec<PathBuf> = sources.iter().map(|source| scratch.at(source)).collect();
    let outcome = copy(&sources, &to, options);
    assert_eq!((&outcome.sender, &outcome.receiver), (&None, &None), "{outcome:?}");
    (outcome.failures, listing(&to))
}

fn file(name: &str, bytes: &[u8]) -> (PathBuf, Vec<u8>) {
    (PathBuf::from(name), bytes.to_vec())
}

#[test]
fn of_two_sources_with_one_name_the_first_is_copied_and_the_other_said() {
    let scratch = Scratch::new("sources");
    for (name, bytes) in
        [("a/f", "a"), ("b/f", "b"), ("a/d/x", "ax"), ("b/d/x", "bx"), ("b/d/y", "by"), ("c", "c")]
    {
        let path = scratch.at(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
    for _ in 0..5 {
        let (failures, there) = into(&scratch, &["a/f", "b/f", "c"], &recursive());
        assert_eq!(there, [file("c", b"c"), file("f", b"a")]);
        assert_eq!(failures.len(), 1, "{failures:?}");
        assert!(
            failures[0].contains("b/f") && failures[0].contains("just-created"),
            "{failures:?}"
        );
    }
    // Directories of one name become one, as with cp.
    let (failures, there) = into(&scratch, &["a/d", "b/d"], &recursive());
    assert_eq!(there, [file("d", b"dir"), file("d/x", b"ax"), file("d/y", b"by")]);
    assert!(failures.len() == 1 && failures[0].contains("b/d/x"), "{failures:?}");
    let (failures, there) = into(&scratch, &["a/.", "b/."], &recursive());
    assert_eq!((there.len(), failures.len()), (4, 2), "{failures:?}");
    // A source may be named twice.
    let (failures, there) = into(&scratch, &["a/f", "a/../a/f"], &recursive());
    assert_eq!((there, failures), (vec![file("f", b"a")], Vec::new()));
    let files = [b"f".to_vec(), b"d/x".to_vec(), b"f".to_vec(), b"d/x".to_vec()].to_vec();
    let options = Options { files, ..Options::default() };
    let (failures, there) = into(&scratch, &["a"], &options);
    assert_eq!((there.len(), failures), (3, Vec::new()));
}

#[test]
fn a_source_that_is_missing_does_not_stop_the_others() {
    let scratch = Scratch::new("sources-missing");
    fs::write(scratch.at("f"), b"f").unwrap();
    fs::write(scratch.at("g"), b"g").unwrap();
    let (failures, there) = into(&scratch, &["f", "none", "g"], &Options::default());
    assert_eq!(there, [file("f", b"f"), file("g", b"g")]);
    assert!(failures.len() == 1 && failures[0].contains("none"), "{failures:?}");
}

#[test]
fn what_an_interrupted_copy_left_is_no_source() {
    let scratch = Scratch::new("sources-partial");
    fs::create_dir(scratch.at("t")).unwrap();
    let partial = ".f.abcdefghabcde.hikyaku";
    for name in ["f", partial, ".f.hikyaku"] {
        fs::write(scratch.at("t").join(name), b"f").unwrap();
    }
    let (failures, there) = into(&scratch, &["t"], &recursive());
    assert_eq!(there, [file("t", b"dir"), file("t/.f.hikyaku", b"f"), file("t/f", b"f")]);
    assert!(failures.is_empty(), "{failures:?}");
    // A user may name it as a source.
    let (failures, there) = into(&scratch, &[&format!("t/{partial}"), "t/f"], &recursive());
    assert_eq!((there.len(), failures.len()), (2, 0), "{failures:?}");
}
