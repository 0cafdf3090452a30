//! A sender that was asked for a list of paths and sends others (CVE-2019-6111, CVE-2022-29154).

use super::hostile::{Script, against_asking, made, small};
use super::*;
use hikyaku_transfer::{EntryKind, Sources};

const LIST: [&[u8]; 3] = [b"a", b"d/b", b"d/deep/c"];

fn listed(depth: Depth) -> Allowed {
    Allowed::listed(&LIST.map(<[u8]>::to_vec), depth)
}

/// Receives the entries that a far side sends for a list. Returns the error, and the paths at the target.
fn run(scratch: &Scratch, allowed: &Allowed, script: &Script) -> (Option<String>, Vec<PathBuf>) {
    let target = scratch.at("home");
    let _ = fs::remove_dir_all(&target);
    fs::create_dir(&target).unwrap();
    let files = LIST.map(<[u8]>::to_vec).to_vec();
    let options = Options {
        rules: Rules { depth: Depth::Tree, ..Rules::default() },
        files,
        ..Options::default()
    };
    let (error, _) = against_asking(script, &target, (&options, allowed), Sources::Contents);
    (error, listing(&target).into_iter().map(|(path, _)| path).collect())
}

#[test]
fn a_liar_that_was_asked_for_a_list_writes_nothing_else() {
    let scratch = Scratch::new("list");
    let dir = |path: &[u8]| made(9, path, EntryKind::Dir);
    let link = |path: &[u8]| made(9, path, EntryKind::Link(b"/etc".to_vec()));
    let lies: [Script; 10] = [
        vec![small(0, b".bashrc")],
        vec![dir(b".ssh"), small(0, b".ssh/authorized_keys")],
        vec![dir(b"d"), small(0, b"d/x")],
        vec![dir(b"d"), dir(b"d/other")],
        vec![dir(b"d"), dir(b"d/deep"), small(0, b"d/deep/c2")],
        vec![small(0, b"d")],
        vec![link(b"a")],
        vec![link(b"d")],
        vec![made(0, b"b", EntryKind::File { size: 1 << 20 })],
        vec![small(0, b"src/a")],
    ];
    for script in &lies {
        for depth in [Depth::File, Depth::Tree] {
            let (error, made) = run(&scratch, &listed(depth), script);
            assert!(error.unwrap_or_default().contains("not asked for"), "{depth:?} {script:?}");
            let is_above =
                |path: &PathBuf| ["d", "d/deep"].iter().any(|dir| path == Path::new(dir));
            assert!(made.iter().all(is_above), "{depth:?} {script:?}: {made:?}");
        }
    }
    // Without -r no directory comes for a requested file.
    let below: Script = vec![dir(b"a"), small(0, b"a/x")];
    assert!(run(&scratch, &listed(Depth::File), &below).0.unwrap().contains("not asked for"));
    assert_eq!(run(&scratch, &listed(Depth::Tree), &below).1.len(), 2);
    let trusted: Script = vec![small(0, b"x")];
    assert_eq!(run(&scratch, &Allowed::anything(), &trusted), (None, vec![PathBuf::from("x")]));
}

#[test]
fn what_a_list_names_comes_with_the_directories_above_it() {
    let scratch = Scratch::new("list-honest");
    let dir = |path: &[u8]| made(9, path, EntryKind::Dir);
    let all: Script =
        vec![small(0, b"a"), dir(b"d"), small(1, b"d/b"), dir(b"d/deep"), small(2, b"d/deep/c")];
    for depth in [Depth::File, Depth::Tree] {
        let (error, made) = run(&scratch, &listed(depth), &all);
        assert_eq!((error, made.len()), (None, 5), "{depth:?} {made:?}");
    }
}
