//! A sender that was asked for a list of paths and sends others (CVE-2019-6111, CVE-2022-29154).

use super::hostile::{Script, against_asking, made, small};
use super::*;
use crate::args::CopyArgs;
use clap::Parser;
use hikyaku_transfer::{EntryKind, Sources};

#[derive(Parser)]
struct Command {
    #[command(flatten)]
    args: CopyArgs,
}

/// What `hikyaku cp` makes of a command line with a list, run against this far side.
fn run(scratch: &Scratch, flags: &str, script: &Script) -> (Option<String>, Vec<PathBuf>) {
    let (list, target) = (scratch.at("list"), scratch.at("home"));
    let _ = fs::remove_dir_all(&target);
    fs::create_dir(&target).unwrap();
    fs::write(&list, "a\nd/b\nd/deep/c\n").unwrap();
    let list = list.display().to_string();
    let words = ["cp", flags, "--files-from", &list, "host:src", "."];
    let words = words.into_iter().filter(|word| !word.is_empty());
    let args = Command::try_parse_from(words).unwrap().args;
    let plan = args.plan().unwrap();
    let options = plan.options().unwrap();
    let allowed = plan.allowed(&[b"src".to_vec()], &options);
    let (error, _) = against_asking(script, &target, (&options, &allowed), Sources::Contents);
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
        for flags in ["", "-r"] {
            let (error, made) = run(&scratch, flags, script);
            assert!(error.unwrap_or_default().contains("not asked for"), "{flags} {script:?}");
            let is_above =
                |path: &PathBuf| ["d", "d/deep"].iter().any(|dir| path == Path::new(dir));
            assert!(made.iter().all(is_above), "{flags} {script:?}: {made:?}");
        }
    }
    // Who did not say -r gets no directory for a file that was asked for.
    let below: Script = vec![dir(b"a"), small(0, b"a/x")];
    assert!(run(&scratch, "", &below).0.unwrap().contains("not asked for"));
    assert_eq!(run(&scratch, "-r", &below).1.len(), 2);
    let trusted: Script = vec![small(0, b"x")];
    assert_eq!(run(&scratch, "-T", &trusted), (None, vec![PathBuf::from("x")]));
}

#[test]
fn what_a_list_names_comes_with_the_directories_above_it() {
    let scratch = Scratch::new("list-honest");
    let dir = |path: &[u8]| made(9, path, EntryKind::Dir);
    let all: Script =
        vec![small(0, b"a"), dir(b"d"), small(1, b"d/b"), dir(b"d/deep"), small(2, b"d/deep/c")];
    for flags in ["", "-r", "-a"] {
        let (error, made) = run(&scratch, flags, &all);
        assert_eq!((error, made.len()), (None, 5), "{flags} {made:?}");
    }
}
